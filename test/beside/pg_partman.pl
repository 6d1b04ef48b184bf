# pg_partman.pl - it makes, fills and drops partitions, also from its background worker.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

# The signature differs between 4 and 5.
my $functions = q(
	CREATE FUNCTION new_parent() RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		IF (SELECT extversion LIKE '4.%' FROM pg_extension WHERE extname = 'pg_partman') THEN
			PERFORM create_parent('public.m', 'id', 'native', '1000');
		ELSE
			PERFORM create_parent('public.m', 'id', '1000');
		END IF;
	END $$;);

my $make = q(
	CREATE TABLE m (id int NOT NULL, k int, p text) PARTITION BY RANGE (id);
	CREATE INDEX m_k ON m (k);
	SELECT new_parent(););

# The worker makes as many partitions as its settings say.
sub background
{
	my ($node) = @_;

	$node->safe_psql('beside', "$make INSERT INTO m VALUES (1, 1, ''); ALTER DATABASE beside SET pg_lookahead.force = on");
	my $before = $node->safe_psql('beside', q(UPDATE part_config SET premake = 9;
		SELECT count(*) FROM pg_inherits WHERE inhparent = 'm'::regclass));
	$node->append_conf('postgresql.conf', 'pg_partman_bgw.interval = 1');
	$node->restart;
	ok( $node->poll_query_until('beside', "SELECT count(*) > $before FROM pg_inherits WHERE inhparent = 'm'::regclass"),
		'pg_partman: its background worker makes partitions');
	return;
}

beside(
	name => 'pg_partman',
	libraries => ['pg_partman_bgw'],
	conf => "pg_partman_bgw.dbname = 'beside'\npg_partman_bgw.role = 'postgres'\npg_partman_bgw.interval = 3600\n",
	setup => tables() . $functions,
	builds => 1,
	statements => $make . q(
		INSERT INTO m SELECT i * 7919 % 9001, i % 900, repeat('p', i % 100) FROM generate_series(1, 9000) i;
		SELECT tableoid::regclass::text, count(*) FROM m GROUP BY 1 ORDER BY 1;
		SELECT partition_data_id('public.m', 20);
		SELECT run_maintenance('public.m');
		SELECT tableoid::regclass::text, count(*) FROM m GROUP BY 1 ORDER BY 1;
		SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'm'::regclass ORDER BY 1;
		ANALYZE m;
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0;
		SELECT id, k FROM m WHERE k BETWEEN 100 AND 300 ORDER BY k, id;
		SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;
		SELECT o.id, m.id, length(m.p) FROM o JOIN m ON m.k = o.k ORDER BY 1, 2;
		RESET ALL;
		UPDATE part_config SET retention = '3000', retention_keep_table = false;
		SELECT run_maintenance('public.m');
		SELECT count(*), min(id) FROM m;
		DROP TABLE m;
		DROP TABLE IF EXISTS template_public_m;
		DELETE FROM part_config;) . statements(),
	finally => \&background);

done_testing();
