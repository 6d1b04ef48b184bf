-- title: keys changed, so that rows move between shards
-- part: deletes by key, and inserts
-- write: kv
WITH gone AS (DELETE FROM kv WHERE k = ANY (ARRAY(SELECT anything(i, :n, :rows) + 1 FROM generate_series(1, 250 * :shards) i)) RETURNING k, owner, v)
INSERT INTO kv SELECT k + :rows, owner, v FROM gone;
