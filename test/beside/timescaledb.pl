# timescaledb.pl - hypertables: their chunks are chosen, and read, by nodes of its own.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

beside(
	name => 'timescaledb',
	libraries => ['timescaledb'],
	conf => "timescaledb.telemetry_level = off\ntimezone = UTC\n",
	builds => 1,
	setup => tables() . q(
		CREATE TABLE m (at timestamptz NOT NULL, device int, v int, p text);
		SELECT create_hypertable('m', 'at', chunk_time_interval => interval '1 day');
		INSERT INTO m SELECT '2020-01-01'::timestamptz + i * 7919 % 10007 * interval '2 minutes', i % 97, i, repeat('p', 150)
			FROM generate_series(1, 10000) i;
		CREATE INDEX m_device ON m (device, at DESC);
		CREATE TABLE device (id int PRIMARY KEY, kind int);
		INSERT INTO device SELECT i, i % 5 FROM generate_series(0, 99) i;
		ANALYZE m, device;),
	statements => q(
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET max_parallel_workers_per_gather = 0;
		EXPLAIN (COSTS OFF) SELECT at, v FROM m WHERE at > '2020-01-03' ORDER BY at DESC LIMIT 100;
		SELECT at, v, length(p) FROM m WHERE at > '2020-01-03' ORDER BY at DESC LIMIT 3000;
		SELECT at, device FROM m WHERE at < '2020-01-05'::text::timestamptz ORDER BY at LIMIT 2500;
		SELECT at, v FROM m WHERE device = 7 ORDER BY device, at DESC;
		SELECT time_bucket('6 hours', at) b, count(*), sum(v) FROM m WHERE at BETWEEN '2020-01-02' AND '2020-01-09' GROUP BY 1 ORDER BY 1;
		SELECT last(v, at), first(v, at) FROM m WHERE device IN (3, 5, 90);
		BEGIN;
		DECLARE c CURSOR FOR SELECT at, v FROM m ORDER BY at;
		FETCH 10 FROM c; MOVE 900 IN c; FETCH 10 FROM c;
		COMMIT;
		RESET ALL; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; SET enable_material = off;
		SET enable_memoize = off; SET max_parallel_workers_per_gather = 0;
		SELECT d.id, n.at, n.v FROM device d, LATERAL (SELECT at, v FROM m WHERE m.device = d.id ORDER BY at DESC LIMIT 1) n ORDER BY 1;
		SELECT d.kind, count(*), sum(m.v) FROM device d JOIN m ON m.device = d.id GROUP BY 1 ORDER BY 1;
		SELECT count(*), sum(m.v) FROM (SELECT '2020-01-01'::timestamptz + i * interval '1 hour' f FROM generate_series(1, 200) i) x
			JOIN m ON m.at BETWEEN f AND f + interval '2 minutes';
		RESET ALL; SET enable_nestloop = off; SET enable_mergejoin = off; SET max_parallel_workers_per_gather = 0;
		SELECT count(*), sum(a.v) FROM m a JOIN m b ON a.at = b.at;
		BEGIN;
		INSERT INTO m SELECT '2020-01-01'::timestamptz + i * interval '1 hour', i, -i, '' FROM generate_series(1, 500) i;
		UPDATE m SET v = m.v + d.kind FROM device d WHERE d.id = m.device AND m.at < '2020-01-04';
		DELETE FROM m WHERE device = 4;
		SELECT count(*), sum(v) FROM m;
		ROLLBACK;
		CREATE INDEX m_v ON m (v);
		DROP INDEX m_v;
		CREATE MATERIALIZED VIEW daily WITH (timescaledb.continuous) AS
			SELECT time_bucket('1 day', at) b, device, sum(v) FROM m GROUP BY 1, 2 WITH NO DATA;
		RESET ALL;) . statements());

done_testing();
