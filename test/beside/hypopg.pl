# hypopg.pl - it invents indexes in the hook by which pg_lookahead gets to index builds.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

my $plan = q(
	CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
	DECLARE
		line text;
	BEGIN
		FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
			RETURN NEXT regexp_replace(line, '<[0-9]+>', '<oid>');
		END LOOP;
	END $$;);

beside(
	name => 'hypopg',
	libraries => ['hypopg'],
	setup => tables() . $plan,
	builds => 1,
	statements => q(
		SET enable_seqscan = off; SET enable_bitmapscan = off;
		SELECT plan('SELECT * FROM t WHERE s = ''s7''');
		SELECT count(*) FROM hypopg_create_index('CREATE INDEX ON t (s)');
		SELECT count(*) FROM hypopg_create_index('CREATE INDEX ON t USING hash (p)');
		SELECT plan('SELECT * FROM t WHERE s = ''s7''');
		SELECT plan('SELECT * FROM o JOIN t USING (s) WHERE o.id = 7');
		SELECT count(*), sum(id) FROM t WHERE s = 's7';
		SELECT count(*), sum(t.id) FROM o JOIN t USING (s);
		CREATE INDEX t_s ON t (s, id);
		SELECT plan('SELECT * FROM t WHERE s = ''s7''');
		SELECT count(*), sum(id) FROM (SELECT id FROM t WHERE s > 's7' OFFSET 0) x;
		REINDEX INDEX t_s;
		SELECT count(*) FROM hypopg_list_indexes;
		SELECT hypopg_reset();
		SELECT plan('SELECT * FROM t WHERE s = ''s7''');
		DROP INDEX t_s;) . statements());

done_testing();
