# postgis.pl - nearest neighbours, and joins by place.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

beside(
	name => 'postgis',
	libraries => ['postgis-3'],
	setup => q(
		CREATE TABLE place (id int PRIMARY KEY, at geometry(Point, 4326), p text);
		INSERT INTO place SELECT i, ST_SetSRID(ST_MakePoint(i * 7919 % 3600 / 10.0 - 180, i * 4447 % 1700 / 10.0 - 85), 4326), repeat('p', 200)
			FROM generate_series(1, 20000) i;
		CREATE INDEX place_at ON place USING gist (at);
		CREATE INDEX place_geo ON place USING gist ((at::geography));
		CREATE INDEX place_sp ON place USING spgist (at);
		CREATE TABLE area (id int, of geometry(Polygon, 4326));
		INSERT INTO area SELECT i, ST_MakeEnvelope(i * 11 - 180, i * 5 - 85, i * 11 - 165, i * 5 - 75, 4326) FROM generate_series(0, 29) i;
		CREATE TABLE way (id int, line geometry);
		INSERT INTO way SELECT i, ST_Buffer(ST_MakePoint(i % 50, i / 50), 0.7) FROM generate_series(1, 2000) i;
		CREATE INDEX way_line ON way USING gist (line);
		VACUUM ANALYZE place, area, way;),
	statements => q(
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET max_parallel_workers_per_gather = 0;
		EXPLAIN (COSTS OFF) SELECT id FROM place ORDER BY at <-> ST_SetSRID(ST_MakePoint(10, 50), 4326) LIMIT 100;
		SELECT id, ST_AsText(at) FROM place ORDER BY at <-> ST_SetSRID(ST_MakePoint(10, 50), 4326), id LIMIT 100;
		SELECT id FROM place WHERE id % 7 = 3 ORDER BY at <-> ST_SetSRID(ST_MakePoint(-100.03, 20.07), 4326) LIMIT 200;
		SELECT round(ST_Distance(at::geography, 'SRID=4326;POINT(8 50)'::geography)) FROM place
			ORDER BY at::geography <-> 'SRID=4326;POINT(8 50)'::geography LIMIT 50;
		SELECT id FROM way ORDER BY line <-> ST_MakePoint(20.013, 20.029), id LIMIT 60;
		SELECT id FROM way ORDER BY line <#> ST_MakePoint(20.3, 20.7), id LIMIT 10;
		SELECT count(*), sum(id) FROM (SELECT id FROM place WHERE at && ST_MakeEnvelope(-10, 30, 40, 60, 4326) OFFSET 0) x;
		BEGIN;
		DECLARE c NO SCROLL CURSOR FOR SELECT id FROM place ORDER BY at <-> ST_SetSRID(ST_MakePoint(33.3, 12.1), 4326);
		FETCH 30 FROM c; MOVE 100 IN c; FETCH 30 FROM c;
		COMMIT;
		SET enable_hashjoin = off; SET enable_mergejoin = off; RESET enable_sort; RESET enable_seqscan;
		SELECT area.id, count(*), sum(place.id) FROM area JOIN place ON ST_Contains(area.of, place.at) GROUP BY 1 ORDER BY 1;
		SELECT area.id, n.id FROM area, LATERAL (SELECT id FROM place ORDER BY at <-> ST_Centroid(area.of), id LIMIT 3) n;
		SELECT a.id, count(*) FROM way a JOIN way b ON ST_Intersects(a.line, b.line) AND a.id < 100 GROUP BY 1 ORDER BY 1;
		SELECT count(*) FROM place a JOIN place b ON ST_DWithin(a.at, b.at, 0.5) WHERE a.id < 500;));

done_testing();
