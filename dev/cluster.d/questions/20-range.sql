-- title: the first rows of an order, merged from all shards
-- part: the first rows of index scans of all shards
SELECT owner, k, left(v, 8) FROM kv WHERE owner >= (:n * 7919) % (:owners - 50) ORDER BY owner, k LIMIT 1000;
