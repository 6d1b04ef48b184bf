# Beside.pm - what the tests of pg_lookahead beside other extensions share.
#
# beside() runs statements in a database with some other extension: first without pg_lookahead,
# then with it loaded before the other one and after it; there with look-ahead off, on, on with
# low thresholds, and forced.  What the statements print must be the same every time, and so must
# be what the other extension tells of them.
#
# The statements' text does not depend on the mode, which is set by options of the connection: so
# query identifiers, and what is logged, can be compared.

package Beside;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use lib "$FindBin::RealBin/../t";
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(beside tables statements left_early settings_of logged_since log_position);

# Settings of connections.  All indexes of the tests are built in each mode.
my $writing = '-c pg_lookahead.enable_index_build=on -c pg_lookahead.enable_btree_insert=on';
my %settings = (
	'off' => '-c pg_lookahead.enable=off',
	'on' => '',
	'on, with low thresholds' => "$writing -c pg_lookahead.attach_threshold=0 -c pg_lookahead.miss_threshold=0"
	  . ' -c pg_lookahead.min_read_time=0 -c pg_lookahead.cache_prefetch_threshold=0',
	'forced' => "$writing -c pg_lookahead.force=on");
my @modes = ('off', 'on', 'on, with low thresholds', 'forced');

sub settings_of
{
	my ($mode) = @_;

	# a line of EXPLAIN is the one thing that is meant to differ
	return $settings{$mode} . ' -c pg_lookahead.explain=off';
}

# All that psql prints.
sub run_in
{
	my ($node, $sql, $mode) = @_;

	local $ENV{PGOPTIONS} = settings_of($mode // 'off');
	my ($ret, $out, $err) = $node->psql('beside', $sql, on_error_stop => 0);
	# the connection is the node's own business
	return "$out\n$err";
}

sub log_position
{
	my ($node) = @_;

	return -s $node->logfile;
}

# Lines of the log since then that belong to the database of the test; numbers of processes and
# times are not in the prefix.
sub logged_since
{
	my ($node, $position) = @_;
	my $log = substr(slurp_file($node->logfile), $position);

	return grep { /^beside: / || /^\t/ } split /^/m, $log;
}

# ---- tables and statements for extensions that watch the executor ----------------

sub tables
{
	return q(
	CREATE TABLE o (id int PRIMARY KEY, k int, j int, s text, w text);
	INSERT INTO o SELECT i, CASE WHEN i % 11 > 0 THEN i * 7919 % 901 END, i % 17, 's' || i % 50, repeat('w', i % 90)
		FROM generate_series(1, 300) i;
	CREATE TABLE t (id int PRIMARY KEY, k int, j int, s text, p text) WITH (fillfactor = 30);
	INSERT INTO t SELECT i, i * 4447 % 907, i % 23, 's' || i % 60, repeat('p', 200 + i % 90) FROM generate_series(1, 6000) i;
	CREATE INDEX t_k ON t (k, j) WITH (fillfactor = 10);
	CREATE INDEX t_h ON t USING hash (j);
	CREATE INDEX t_g ON t USING gist (point(k, j));
	CREATE TABLE part (k int, v int) PARTITION BY RANGE (k);
	CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (300);
	CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (300) TO (600);
	CREATE TABLE part3 PARTITION OF part FOR VALUES FROM (600) TO (1000);
	INSERT INTO part SELECT i * 7 % 1000, i FROM generate_series(1, 3000) i;
	CREATE INDEX part_k ON part (k);
	CREATE TABLE big AS SELECT i AS id, i * 4447 % 12007 AS k FROM generate_series(1, 12000) i;
	CREATE TABLE s (id int PRIMARY KEY, k int, n int);
	CREATE INDEX s_k ON s (k);
	CREATE TABLE noted (what text);
	ALTER TABLE big SET (parallel_workers = 1);
	VACUUM ANALYZE o, t, part, big;
	CREATE FUNCTION matches(x int) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
	BEGIN
		RETURN (SELECT count(*) FROM o JOIN t ON t.k = o.k WHERE o.j = x);
	END $$;
	CREATE FUNCTION fails(i int) RETURNS int LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM count(*) / (i - i) FROM o JOIN t USING (k);
		RETURN 0;
	EXCEPTION WHEN division_by_zero THEN
		RETURN i;
	END $$;
	CREATE FUNCTION noting() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO noted SELECT TG_OP || ' ' || count(*) FROM t WHERE k = NEW.k;
		RETURN NEW;
	END $$;
	CREATE TRIGGER noting AFTER UPDATE ON s FOR EACH ROW EXECUTE FUNCTION noting(););
}

my $serial = 'RESET ALL; SET max_parallel_workers_per_gather = 0;';
my $scan = "$serial SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;";
my $loop = "$serial SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;
	SET enable_bitmapscan = off; SET enable_memoize = off;";
my $hash = "$serial SET enable_nestloop = off; SET enable_mergejoin = off;";
my $parallel = 'RESET ALL; SET enable_nestloop = off; SET enable_mergejoin = off; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
	SET max_parallel_workers_per_gather = 1; SET parallel_leader_participation = off; SET min_parallel_table_scan_size = 0;';

# Statements that are read to their end, so that all counts are those of stock.
sub statements
{
	return "$scan
	SELECT id, k, length(p) FROM t WHERE k > 100 ORDER BY k, j;
	SELECT k, j FROM t WHERE k BETWEEN 100 AND 300 ORDER BY k DESC, j DESC;
	SELECT id, p FROM t WHERE k IN (1, 100, 200, 333, 400, 512, 700) ORDER BY k, j;
	SELECT count(*) FROM (SELECT id FROM t WHERE j = 7 AND k > 20 OFFSET 0) x;
	SELECT id FROM t WHERE point(k, j) <@ box '((10,10),(300,20))' ORDER BY id;
	SELECT k, j FROM t ORDER BY point(k, j) <-> point '(500,11)' LIMIT 50;
	SELECT id, p FROM t WHERE k > 50 ORDER BY k, j LIMIT 20 OFFSET 5;
	BEGIN;
	DECLARE c SCROLL CURSOR FOR SELECT id, k FROM t WHERE k > 10 ORDER BY k, j;
	FETCH 10 FROM c; MOVE 50 IN c; FETCH 5 FROM c; FETCH BACKWARD 20 FROM c; CLOSE c;
	COMMIT;
	$loop
	SELECT o.id, t.id, length(p) FROM o JOIN t ON t.id = o.k;
	SELECT o.id, t.id, t.p FROM o JOIN t ON t.k = o.k AND t.id > 10;
	SELECT o.id, t.j FROM o LEFT JOIN t ON t.k = o.k;
	SELECT o.id FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k AND t.j = o.j);
	SELECT o.id, part.v FROM o JOIN part ON part.k = o.k;
	SELECT o.id, (SELECT max(p) FROM t WHERE t.k = o.k) FROM o WHERE o.j < 9;
	SET enable_memoize = on; SELECT o.id, t.id, t.p FROM o JOIN t ON t.k = o.j; SET enable_memoize = off;
	PREPARE q(int) AS SELECT sum(t.id) FROM o JOIN t ON t.k = o.k WHERE o.j < \$1;
	EXECUTE q(1); EXECUTE q(2); EXECUTE q(3); EXECUTE q(4); EXECUTE q(5); EXECUTE q(6); EXECUTE q(16);
	DEALLOCATE q;
	SELECT j, matches(j) FROM o GROUP BY j ORDER BY j;
	SELECT fails(i) FROM generate_series(1, 3) i;
	SELECT o.id / (o.j - o.j) FROM o JOIN t ON t.k = o.k;
	$hash
	SELECT count(*), sum(b.k) FROM big a JOIN big b ON a.k = b.id;
	SELECT o.id, b.id FROM o LEFT JOIN big b ON b.k = o.k ORDER BY 1, 2;
	SELECT count(*) FROM big a WHERE EXISTS (SELECT FROM t WHERE t.k = a.k);
	SELECT count(*) FROM o FULL JOIN t ON t.k = o.k;
	$parallel
	SELECT count(*), sum(b.k) FROM big a JOIN big b ON a.k = b.id;
	$serial
	TRUNCATE s, noted;
	INSERT INTO s SELECT i, i * 7919 % 4001, 0 FROM generate_series(1, 4000) i;
	ANALYZE s;
	$loop
	UPDATE s SET n = t.id FROM t WHERE t.id = s.k AND s.id < 300;
	DELETE FROM s USING t WHERE t.id = s.id AND t.k < 300;
	MERGE INTO s USING (SELECT id, k FROM t WHERE k < 400) x ON s.id = x.id
		WHEN MATCHED AND x.k > 350 THEN UPDATE SET n = x.k WHEN NOT MATCHED THEN INSERT VALUES (x.id, x.k, -1);
	COPY (SELECT s.id, s.n, t.s FROM s JOIN t ON t.id = s.id WHERE s.n <> 0 ORDER BY 1) TO STDOUT;
	SELECT what, count(*) FROM noted GROUP BY 1 ORDER BY 1;
	CREATE TABLE made AS SELECT o.id, t.id AS tid, t.p FROM o JOIN t ON t.k = o.k;
	CREATE UNIQUE INDEX made_tid ON made (id, tid);
	CREATE INDEX made_id ON made (id, p);
	REINDEX INDEX made_id;
	SELECT count(*), sum(id) FROM made;
	DROP TABLE made;
	EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT o.id, t.id FROM o JOIN t ON t.id = o.k;
	RESET ALL;";
}

# Joins that are left before their end: their outer rows may have been counted ahead, in plans, but
# nothing else may tell.
sub left_early
{
	return "$loop
	SELECT o.id, t.id FROM o JOIN t ON t.k = o.k LIMIT 30;
	SELECT count(*) FROM (SELECT t.p FROM o JOIN t ON t.id = o.k OFFSET 3 LIMIT 5) x;
	SELECT EXISTS (SELECT FROM o JOIN t ON t.k = o.k WHERE t.j = 11);
	SELECT o.id, (SELECT t.id FROM o b JOIN t ON t.k = b.k WHERE b.j = o.j LIMIT 1) FROM o WHERE o.id < 40;
	BEGIN;
	DECLARE c CURSOR FOR SELECT o.id, t.id FROM o JOIN t ON t.k = o.k;
	FETCH 10 FROM c; MOVE 50 IN c; FETCH 5 FROM c; CLOSE c;
	COMMIT;
	$hash
	SELECT a.id FROM big a JOIN big b ON a.k = b.id LIMIT 20;
	RESET ALL;";
}

# ---- the comparison ---------------------------------------------------------------

sub configure
{
	my ($node, @libraries) = @_;

	$node->stop;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '" . join(',', @libraries) . "'");
	$node->start;
	return;
}

# Parameters:
#	name         the extension's; has_no_sql: there is no CREATE EXTENSION for it
#	libraries    to preload
#	conf         of the server
#	setup        SQL, once; tables() by default
#	statements   SQL; statements() by default
#	prepare      sub (node, mode), before each run of the statements
#	observe      sub (node, output), after it; returns a text that must not differ
#	builds       indexes are built
sub beside
{
	my (%p) = @_;
	my $name = $p{name};
	my @libraries = @{ $p{libraries} };
	my $node = PostgreSQL::Test::Cluster->new($name);
	my ($expected, $seen);

	$p{builds} = 1 unless $p{statements};
	$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
	$node->append_conf('postgresql.conf',
			"autovacuum = off\njit = off\nfsync = off\nshared_buffers = 2MB\nlog_line_prefix = '%d: '\n"
		  . "max_worker_processes = 24\ncompute_query_id = on\nlog_statement = none\n" . ($p{conf} // ''));
	configure($node, @libraries);
	$node->safe_psql('postgres', 'CREATE DATABASE beside; CREATE EXTENSION pg_lookahead');
	$node->safe_psql('beside', "CREATE EXTENSION $name CASCADE") unless $p{has_no_sql};
	$node->safe_psql('beside', $p{setup} // tables());
	report($node, $name);

	my $round = sub {
		my ($mode) = @_;
		$p{prepare}->($node, $mode) if $p{prepare};
		my $output = run_in($node, $p{statements} // statements(), $mode);
		return ($output, $p{observe} ? $p{observe}->($node, $output) : '');
	};
	# once to fill caches and to set hint bits
	$round->('off');
	($expected, $seen) = $round->('off');
	isnt($expected =~ s/\s//gr, '', "$name: statements print something");
	isnt($seen, '', "$name: it tells something") if $p{observe};

	for my $order ('before', 'after')
	{
		configure($node, $order eq 'after' ? (@libraries, 'pg_lookahead') : ('pg_lookahead', @libraries));
		for my $mode (@modes)
		{
			$node->safe_psql('postgres', 'SELECT pg_stat_lookahead_reset()');
			my ($output, $told) = $round->($mode);
			same($output, $expected, "$name, loaded $order it, $mode: the same answers");
			same($told, $seen, "$name, loaded $order it, $mode: it tells the same") if $p{observe};
			at_work($node, $mode, "$name, loaded $order it, $mode", $p{builds});
		}
	}
	$p{finally}->($node) if $p{finally};
	check_log($node, "$name: server log");
	$node->stop;
	return;
}

# is() of long texts, which shows where they differ first
sub same
{
	my ($got, $expected, $name) = @_;
	my @got = split /\n/, $got;
	my @expected = split /\n/, $expected;
	my $line = 0;

	return if ok($got eq $expected, $name);
	$line++ while $line < @got && $line < @expected && $got[$line] eq $expected[$line];
	diag("line $line of " . @got . ", expected " . @expected);
	diag("got: $_") for grep { defined } @got[ $line .. $line + 4 ];
	diag("expected: $_") for grep { defined } @expected[ $line .. $line + 4 ];
	return;
}

# Off, nothing looks ahead; forced, much does.
sub at_work
{
	my ($node, $mode, $name, $builds) = @_;
	my $activated = activated($node);
	my $built = $node->safe_psql('postgres',
		q(SELECT coalesce(sum(builds), 0) FROM pg_stat_lookahead_index_build WHERE status = 'built'));

	if ($mode eq 'off')
	{
		is("$activated, $built", '0, 0', "$name: nothing looks ahead");
	}
	elsif ($mode eq 'forced')
	{
		cmp_ok($activated, '>', 0, "$name: scans look ahead");
		cmp_ok($built, '>', 0, "$name: indexes are built") if $builds;
		cmp_ok($built, '>', 0, "$name: indexes are built") if $builds;
	}
	return;
}

# For the table that dev/beside makes: the versions of the extension and of the server.
sub report
{
	my ($node, $name) = @_;
	my $version = $node->safe_psql('beside', "SELECT extversion FROM pg_extension WHERE extname = '$name'");

	note("beside server " . $node->safe_psql('beside', 'SHOW server_version') =~ s/ .*//r);
	$version = "the server's" if $name eq 'auto_explain';
	note("beside $name $version") if $version ne '';
	return;
}

1;
