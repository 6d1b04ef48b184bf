-- title: a nested loop over foreign inner rows: a request for each outer row
-- part: requests to the shards, one after the other
-- set: enable_hashjoin = off
-- set: enable_mergejoin = off
-- set: enable_material = off
-- set: enable_memoize = off
SELECT count(*), sum(hashtext(kv.v)) FROM (SELECT anything(i, :n, :rows) + 1 AS k FROM generate_series(1, 500) i OFFSET 0) o JOIN kv USING (k);
