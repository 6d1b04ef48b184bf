-- title: the same, written by hand with all keys in one request to each shard
-- part: what could be gained by sending many keys at once
-- set: enable_mergejoin = off
-- set: enable_nestloop = off
-- like: loop
WITH o AS MATERIALIZED (SELECT anything(i, :n, :rows) + 1 AS k FROM generate_series(1, 500) i)
SELECT count(*), sum(hashtext(kv.v)) FROM o JOIN kv USING (k) WHERE kv.k = ANY (ARRAY(SELECT k FROM o));
