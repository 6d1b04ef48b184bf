-- Rows of all tables, sent to the shards by the coordinator.
--
-- Keys and values are hashes of the row's number, the same in each run.  An owner has a hundred rows of kv, which lie
-- anywhere.  Orders and lines are of the shape of TPC-H: one to seven lines for an order, whose parts
-- are any; ten orders for a customer; a part for every 30 lines.

SET search_path = loading, public;
CREATE FUNCTION public.anything(i bigint, seed bigint, most bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (hashint8extended(i, seed) & 4611686018427387903) % most;
SELECT :rows / 100 AS owners, :rows / 4 AS orders, greatest(:rows / 40, 1) AS customers, greatest(:rows / 30, 1) AS parts \gset
INSERT INTO kv SELECT i, anything(i, 1, :owners), repeat(md5(i::text), 5) FROM generate_series(1, :rows) i;
INSERT INTO part SELECT i, 'part ' || md5(i::text), 900 + i % 1000 FROM generate_series(1, :parts) i;
INSERT INTO orders SELECT i, 1 + anything(i, 2, :customers), date '1992-01-01' + anything(i, 3, 2400)::int, anything(i, 4, 40000000) / 100.0, repeat(md5(i::text), 2)
    FROM generate_series(1, :orders) i;
INSERT INTO lineitem SELECT i, j, 1 + anything(i * 8 + j, 5, :parts), 1 + anything(i * 8 + j, 6, 50), anything(i * 8 + j, 7, 10000000) / 100.0,
        date '1992-01-01' + anything(i, 3, 2400)::int + anything(i * 8 + j, 8, 120)::int, md5((i * 8 + j)::text)
    FROM generate_series(1, :orders) i, generate_series(1, 1 + anything(i, 9, 7)) j;
