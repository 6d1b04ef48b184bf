# rum.pl - words found, in the order of their distance.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

beside(
	name => 'rum',
	libraries => ['rum'],
	setup => q(
		CREATE TABLE doc (id int, words tsvector, at timestamp, p text);
		INSERT INTO doc SELECT i, to_tsvector('simple', 'w' || i % 7 || ' w' || i % 31 || ' x' || i % 113 || ' y' || i),
				'2020-01-01'::timestamp + i * 7919 % 5003 * interval '1 hour', repeat('p', 300)
			FROM generate_series(1, 5000) i;
		CREATE INDEX doc_words ON doc USING rum (words rum_tsvector_ops);
		CREATE INDEX doc_at ON doc USING rum (words rum_tsvector_addon_ops, at) WITH (attach = 'at', to = 'words');
		VACUUM ANALYZE doc;),
	statements => q(
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET max_parallel_workers_per_gather = 0;
		EXPLAIN (COSTS OFF) SELECT id FROM doc WHERE words @@ 'w3 & x5' ORDER BY words <=> 'w3 & x5';
		SELECT id, words <=> 'w3 & x5' FROM doc WHERE words @@ 'w3 & x5' ORDER BY words <=> 'w3 & x5', id;
		SELECT id FROM doc WHERE words @@ 'w3 | w5' ORDER BY at <=> '2020-03-01' LIMIT 200;
		SELECT id FROM doc WHERE words @@ 'w30' AND length(p) = 300 ORDER BY at <=| '2020-04-01' LIMIT 40;
		SELECT count(*), sum(id) FROM (SELECT id FROM doc WHERE words @@ 'w1 & !x7' OFFSET 0) x;));

done_testing();
