-- title: many rows inserted, with keys and owners that lie anywhere
-- part: rows sent, and index entries added on all shards
-- write: kv
INSERT INTO kv SELECT :rows + anything(i, :n, 1000000000000000) + 1, anything(i, :n + 1, :owners), md5(i::text) FROM generate_series(1, least(:rows, 5000 * :shards)) i;
