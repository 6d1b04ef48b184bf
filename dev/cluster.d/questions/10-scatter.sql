-- title: rows of some owners, by a secondary key that all shards have to be asked for
-- part: index scans of all shards at the same time
SELECT count(*), sum(hashtext(v)) FROM kv WHERE owner BETWEEN (:n * 7919) % (:owners - 5 * :shards) AND (:n * 7919) % (:owners - 5 * :shards) + 5 * :shards - 1;
