# vector.pl - pgvector's HNSW and IVFFlat.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

beside(
	name => 'vector',
	libraries => ['vector'],
	setup => q(
		SELECT setseed(0.5);
		CREATE TABLE v (id int, e vector(16), p text);
		INSERT INTO v SELECT i, (SELECT array_agg(random()) FROM generate_series(1, 16 + i * 0))::vector, repeat('p', 300)
			FROM generate_series(1, 5000) i;
		CREATE TABLE asked AS SELECT id, e FROM v WHERE id % 500 = 1;
		CREATE INDEX v_hnsw ON v USING hnsw (e vector_l2_ops);
		CREATE INDEX v_ivf ON v USING ivfflat (e vector_cosine_ops) WITH (lists = 20);
		VACUUM ANALYZE v, asked;),
	statements => q(
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET max_parallel_workers_per_gather = 0;
		EXPLAIN (COSTS OFF) SELECT id FROM v ORDER BY e <-> (SELECT e FROM asked WHERE id = 1) LIMIT 50;
		SELECT id FROM v ORDER BY e <-> (SELECT e FROM asked WHERE id = 1) LIMIT 50;
		SET hnsw.ef_search = 200; SELECT id FROM v ORDER BY e <-> (SELECT e FROM asked WHERE id = 501) LIMIT 150;
		SET ivfflat.probes = 5; SELECT id FROM v ORDER BY e <=> (SELECT e FROM asked WHERE id = 1001) LIMIT 300;
		SELECT id, length(p) FROM v WHERE id % 3 = 1 ORDER BY e <-> (SELECT e FROM asked WHERE id = 1501) LIMIT 30;
		SELECT asked.id, n.id FROM asked, LATERAL (SELECT id FROM v ORDER BY v.e <-> asked.e LIMIT 5) n;
		BEGIN;
		DECLARE c NO SCROLL CURSOR FOR SELECT id FROM v ORDER BY e <-> (SELECT e FROM asked WHERE id = 2001);
		FETCH 7 FROM c; MOVE 20 IN c; FETCH 9 FROM c;
		COMMIT;));

done_testing();
