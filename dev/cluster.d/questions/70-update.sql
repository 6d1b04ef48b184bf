-- title: rows updated by their keys, which have a secondary index
-- part: updates on the shards, one shard after the other
-- write: kv
UPDATE kv SET owner = owner + 1 WHERE k = ANY (ARRAY(SELECT anything(i, :n, :rows) + 1 FROM generate_series(1, 250 * :shards) i));
