# 015_company.pl - other extensions that hook the executor see what they see without us.
#
# test/modules/company is an extension that does to the executor what others do.  It is loaded before
# and after pg_lookahead, and whatever it sees must be what it sees with look-ahead off:
#
#	- functions that it puts around those of plan nodes, in each of the usual ways and for any
#	  of the nodes, are called as often, and in the same order, also when they are taken away
#	  in mid-query;
#	- the plan state tree that it walks from within a query is that of ExecutorStart, plans
#	  of running queries can be printed, and nobody writes into a Plan tree;
#	- instrumentation, receivers and queries of its own do not change anything;
#	- queries succeed in 16 buffers if they do without look-ahead.
#
# Needs the library's path in LA_TEST_COMPANY, which dev/test sets.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $library = $ENV{LA_TEST_COMPANY};
plan skip_all => 'LA_TEST_COMPANY is not set' unless defined $library;

# ---- tables, functions and settings ----------------------------------------------

my $functions = qq(
	CREATE PROCEDURE la_company_reset() LANGUAGE c AS '$library';
	CREATE PROCEDURE la_company_keep() LANGUAGE c AS '$library';
	CREATE FUNCTION la_company_complaint() RETURNS text LANGUAGE c AS '$library';
	CREATE FUNCTION la_company_difference() RETURNS text LANGUAGE c AS '$library';
	CREATE FUNCTION la_company_counts() RETURNS text LANGUAGE c AS '$library';
	CREATE FUNCTION la_company_calls() RETURNS int LANGUAGE c AS '$library';
	CREATE FUNCTION la_company_workers() RETURNS int LANGUAGE c AS '$library';
	CREATE FUNCTION la_company_observe(int) RETURNS int IMMUTABLE LEAKPROOF STRICT PARALLEL SAFE
		LANGUAGE c AS '$library';
	CREATE FUNCTION la_company_observations() RETURNS int LANGUAGE c AS '$library';
	CREATE FUNCTION la_company_explained() RETURNS text LANGUAGE c AS '$library';
	CREATE FUNCTION la_company_pins() RETURNS int LANGUAGE c AS '$library';
	CREATE FUNCTION la_company_most_pins() RETURNS int LANGUAGE c AS '$library';);

my $tables = q(
	CREATE TABLE o (id int PRIMARY KEY, k int, j int, s text, w text);
	INSERT INTO o SELECT i, CASE WHEN i % 11 > 0 THEN i * 7919 % 901 END, i % 17, 's' || i % 50, repeat('w', i % 90)
		FROM generate_series(1, 300) i;
	CREATE TABLE t (id int PRIMARY KEY, k int, j int, s text, p text) WITH (fillfactor = 30);
	INSERT INTO t SELECT i, i * 4447 % 907, i % 23, 's' || i % 60, repeat('p', i % 90) FROM generate_series(1, 1500) i;
	CREATE INDEX t_k ON t (k, j) WITH (fillfactor = 10);
	CREATE INDEX t_h ON t USING hash (k);
	CREATE TABLE few (k int, v text);
	INSERT INTO few SELECT i * 50, 'v' || i FROM generate_series(1, 12) i;
	CREATE TABLE none (k int);
	CREATE TABLE part (k int, v int) PARTITION BY RANGE (k);
	CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (300);
	CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (300) TO (600);
	CREATE TABLE part3 PARTITION OF part FOR VALUES FROM (600) TO (1000);
	INSERT INTO part SELECT i * 7 % 1000, i FROM generate_series(1, 1000) i;
	CREATE INDEX part_k ON part (k);
	CREATE TABLE big AS SELECT i AS id, i * 4447 % 6007 AS k FROM generate_series(1, 6000) i;
	CREATE INDEX big_id ON big (id);
	CREATE TABLE changed (id int, k int, n int);
	CREATE INDEX changed_k ON changed (k);
	DELETE FROM t WHERE id % 10 = 3;
	VACUUM ANALYZE o, t, few, none, part, big;
	ALTER TABLE o SET (parallel_workers = 2);
	ALTER TABLE t SET (parallel_workers = 2);
	ALTER TABLE big SET (parallel_workers = 2);
	CREATE FUNCTION matches(x int) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
	BEGIN
		RETURN (SELECT count(*) FROM o JOIN t ON t.k = o.k WHERE o.j = x);
	END $$;
	CREATE FUNCTION fails(i int) RETURNS int LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM count(*) / (i - i) FROM o JOIN t USING (k);
		RETURN 0;
	EXCEPTION WHEN OTHERS THEN
		RETURN i;
	END $$;);

my $serial = 'SET max_parallel_workers_per_gather = 0;';
my $scan = "$serial SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;";
my $loop = "$serial SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;
	SET enable_bitmapscan = off; SET enable_memoize = off;";
my $hash = "$serial SET enable_nestloop = off; SET enable_mergejoin = off;";
my $merge = "$serial SET enable_nestloop = off; SET enable_hashjoin = off;";
# plans depend on the size of a table
my $fresh = 'TRUNCATE changed; INSERT INTO changed SELECT id, k, 0 FROM t ORDER BY id; ANALYZE changed;';
my $shared = "SET enable_nestloop = off; SET enable_mergejoin = off; SET parallel_setup_cost = 0;
	SET parallel_tuple_cost = 0; SET max_parallel_workers_per_gather = 2;";

# One worker that does everything; run_case() sees to it that there is exactly one.  There may be
# none, since the last one counts until the postmaster has noted its end, and there may be two one
# after the other, if the first has come to its end before the second is asked for.
my $one_worker = 'SET max_parallel_workers = 1; SET parallel_leader_participation = off;';

# [name, settings, statements, nodes of the first one's plan]; $x in a statement is where a
# function is called for a column
my @cases = (
	[ 'index scan', $scan, 'SELECT id, length(p), $x(id) FROM t WHERE k > 100 ORDER BY k, j', 'Index Scan' ],
	[ 'index scan backward', $scan, 'SELECT $x(id), j FROM t WHERE k < 500 ORDER BY k DESC, j DESC', 'Index Scan Backward' ],
	[ 'index-only scan', $scan, 'SELECT k, $x(j) FROM t WHERE k BETWEEN 100 AND 300 ORDER BY k, j', 'Index Only Scan' ],
	[ 'hash index', $scan . 'DROP INDEX IF EXISTS pg_temp.x;', 'SELECT $x(id) FROM t WHERE k = 100 AND j >= 0', 'Index Scan' ],
	[ 'IN list', $scan, 'SELECT $x(id), p FROM t WHERE k IN (1, 100, 200, 333, 400, 512, 700)', 'Index Scan' ],
	[ 'LIMIT', $scan, 'SELECT $x(id), p FROM t WHERE k > 50 ORDER BY k, j LIMIT 20 OFFSET 5', 'Limit.*Index Scan' ],
	[ 'bitmap scan', "$serial SET enable_seqscan = off; SET enable_indexscan = off;", 'SELECT $x(id), p FROM t WHERE k > 800 OR id < 50', 'Bitmap Heap Scan' ],
	[ 'merge join', $merge . 'SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off;',
		'SELECT a.k, $x(b.j) FROM t a JOIN t b ON a.k = b.k WHERE a.k < 150', 'Merge Join' ],

	[ 'nested loop', $loop, 'SELECT o.id, $x(t.id), p FROM o JOIN t ON t.id = o.k', 'Nested Loop.*Index Scan' ],
	[ 'nested loop, several matches', $loop, 'SELECT $x(o.id), t.id FROM o JOIN t ON t.k = o.k AND $x(t.id) > 10', 'Nested Loop.*Index Scan' ],
	[ 'nested loop, an expression as key', $loop, 'SELECT o.id, t.p FROM o JOIN t ON t.id = $x(o.k)', 'Nested Loop.*Index Scan' ],
	[ 'nested loop, a filter outside', $loop, 'SELECT o.id, t.p FROM o JOIN t ON t.id = o.k WHERE $x(o.j) < 9', 'Nested Loop.*Index Scan' ],
	[ 'nested loop, index-only', $loop, 'SELECT o.id, t.j FROM o JOIN t ON t.k = $x(o.k)', 'Nested Loop.*Index Only Scan' ],
	[ 'nested loop, Memoize', "$loop SET enable_memoize = on;", 'SELECT o.id, $x(t.id), t.p FROM o JOIN t ON t.k = o.j', 'Nested Loop.*Memoize' ],
	[ 'nested loop, Append', $loop, 'SELECT o.id, part.v FROM o JOIN part ON part.k = $x(o.k)', 'Nested Loop.*Append' ],
	[ 'nested loop, left', $loop, 'SELECT o.id, $x(t.id) FROM o LEFT JOIN t ON t.id = o.k', 'Nested Loop Left Join' ],
	[ 'nested loop, semi', $loop, 'SELECT $x(o.id) FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k AND t.id > o.id)', 'Nested Loop Semi Join' ],
	[ 'nested loop, anti', $loop, 'SELECT $x(o.id) FROM o WHERE NOT EXISTS (SELECT FROM t WHERE t.k = o.k AND t.j = o.j)', 'Nested Loop Anti Join' ],
	[ 'nested loops', $loop, 'SELECT o.id, $x(t.id), v.id FROM o JOIN t ON t.id = o.k JOIN t v ON v.k = t.j', 'Nested Loop.*Nested Loop' ],
	[ 'nested loop, LIMIT', $loop, 'SELECT $x(o.id), t.id FROM o JOIN t ON t.k = o.k LIMIT 30', 'Limit.*Nested Loop' ],
	[ 'nested loop over a join', "$serial SET enable_mergejoin = off; SET enable_memoize = off; SET join_collapse_limit = 1;",
		'SELECT o.id, $x(t.id), v.id FROM (few JOIN o ON few.k = o.k) JOIN t ON t.k = o.k JOIN t v ON v.id = t.j', 'Nested Loop.*Hash Join' ],
	[ 'nested loop, below a sort', $loop, 'SELECT o.id, $x(t.id) FROM (SELECT * FROM o ORDER BY s, id) o JOIN t ON t.id = o.k ORDER BY 2 DESC NULLS LAST, 1',
		'Sort.*Nested Loop.*Sort' ],
	[ 'nested loop, lateral', $loop, 'SELECT few.k, x.* FROM few, LATERAL (SELECT $x(o.id), t.id FROM o JOIN t ON t.id = o.k WHERE o.j = few.k / 50 LIMIT 3) x',
		'Nested Loop.*Limit.*Nested Loop' ],
	[ 'recursion', $loop, 'WITH RECURSIVE r(n, id) AS (SELECT 0, id FROM o WHERE id < 20 UNION ALL SELECT n + 1, t.k FROM r JOIN t ON t.id = r.id WHERE n < 5)
		SELECT n, $x(id) FROM r', 'Recursive Union.*Nested Loop' ],

	[ 'hash join', $hash, 'SELECT o.id, $x(t.id) FROM o JOIN t ON t.k = o.k', 'Hash Join' ],
	[ 'hash join, text', $hash, 'SELECT o.id, $x(t.id), o.w FROM o JOIN t ON t.s = o.s WHERE t.j < 6', 'Hash Join' ],
	[ 'hash join, a filter outside', $hash, 'SELECT o.id, o.s, few.v FROM o JOIN few ON few.k = o.id WHERE $x(o.id) > 10', 'Hash Join' ],
	[ 'hash join, an expression as key', $hash, 'SELECT o.id, t.p FROM o JOIN t ON t.k = $x(o.k)', 'Hash Join' ],
	[ 'hash join, a join filter', $hash, 'SELECT o.id, t.p FROM o LEFT JOIN t ON t.k = o.k AND $x(t.id) > o.id', 'Hash.*Join' ],
	[ 'hash join, left', $hash, 'SELECT o.id, $x(t.id) FROM t LEFT JOIN o ON t.k = o.k', 'Hash Left Join' ],
	[ 'hash join, right', $hash, 'SELECT o.id, $x(t.id) FROM o LEFT JOIN t ON t.k = o.k', 'Hash Right Join' ],
	[ 'hash join, full', $hash, 'SELECT o.id, t.id FROM o FULL JOIN t ON t.k = o.k', 'Hash Full Join' ],
	[ 'hash join, semi', $hash, 'SELECT $x(o.id) FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k AND t.id > o.id)', 'Hash.*Semi Join' ],
	[ 'hash join, anti', $hash, 'SELECT $x(t.id) FROM t WHERE NOT EXISTS (SELECT FROM o WHERE t.k = o.k)', 'Hash.*Anti Join' ],
	[ 'hash join, small side first', $hash, 'SELECT $x(few.k) FROM few WHERE NOT EXISTS (SELECT FROM o WHERE o.k = few.k)', 'Hash.*Anti Join' ],
	[ 'hash join, empty inner side', $hash, 'SELECT o.id FROM o JOIN none ON none.k = o.k', 'Hash Join' ],
	[ 'hash join, empty outer side', $hash, 'SELECT t.id FROM none JOIN t ON none.k = t.k', 'Hash Join' ],
	[ 'hash join, batches', "$hash SET work_mem = '64kB'; SET hash_mem_multiplier = 1;",
		'SELECT a.id, $x(b.id) FROM big a JOIN big b ON a.k = b.id WHERE a.id < 900', 'Hash Join' ],
	[ 'hash join, more batches than expected', "$hash SET work_mem = '64kB'; SET hash_mem_multiplier = 1;",
		'SELECT count(*), sum($x(b.id)) FROM t JOIN (SELECT * FROM big WHERE id % 7 < 6 AND k % 8 < 7 AND (id + k) % 9 < 8) b ON t.k = b.id', 'Hash.*Join' ],
	[ 'hash join, LIMIT', $hash, 'SELECT o.id, $x(t.id) FROM t JOIN o ON t.k = o.k LIMIT 20', 'Limit.*Hash Join' ],
	[ 'hash joins', $hash, 'SELECT o.id, t.id, $x(v.id), few.v FROM o JOIN t ON t.k = o.k JOIN t v ON v.k = t.id LEFT JOIN few ON few.k = v.k', 'Hash.*Join.*Hash.*Join' ],
	[ 'hash join, rescans, the table is kept', "$serial SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;",
		'SELECT few.k, x.* FROM few, LATERAL (SELECT count(*), sum($x(t.id)) FROM o JOIN t ON t.k = o.k + 0 WHERE o.j > few.k / 100) x', 'Nested Loop.*Hash Join' ],
	[ 'hash join, rescans, a new table', "$serial SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;",
		'SELECT few.k, x.* FROM few, LATERAL (SELECT count(*), sum($x(o.id)) FROM o FULL JOIN (SELECT * FROM t WHERE t.j > few.k / 50 OFFSET 0) t ON t.k = o.k) x',
		'Nested Loop.*Hash Full Join' ],
	[ 'hash join over an index scan', "$hash SET enable_seqscan = off; SET enable_bitmapscan = off;", 'SELECT o.id, $x(t.id) FROM o JOIN t ON t.k = o.k WHERE o.id > 20', 'Hash Join.*Index Scan' ],
	[ 'aggregates', $hash, 'SELECT o.j, count(*), max($x(t.id)) FROM o JOIN t ON t.k = o.k GROUP BY o.j ORDER BY 1', 'Aggregate.*Hash Join' ],
	[ 'window', $hash, 'SELECT o.id, row_number() OVER (ORDER BY o.id, t.id), $x(t.id) FROM o JOIN t ON t.k = o.k', 'WindowAgg.*Hash Join' ],
	[ 'set operation', $hash, 'SELECT $x(id) FROM o UNION ALL SELECT t.id FROM o JOIN t USING (k)', 'Append.*Hash Join' ],

	[ 'subplan', $loop, 'SELECT o.id, (SELECT sum($x(v.id)) FROM t JOIN t v ON v.id = t.k WHERE t.j = o.j AND t.id < 200) FROM o WHERE o.id < 40', 'SubPlan.*Nested Loop' ],
	[ 'subplan, hash join', $hash, 'SELECT o.id, (SELECT count(*) FROM few JOIN t ON t.k = few.k WHERE t.j = $x(o.j)) FROM o WHERE o.id < 40', 'SubPlan.*Hash Join' ],
	[ 'hashed subplan', $hash, 'SELECT $x(id) FROM o WHERE k NOT IN (SELECT t.k FROM t WHERE t.k % 3 = 0)', 'SubPlan' ],
	[ 'initplan', $hash, 'SELECT o.id, t.id FROM o JOIN t USING (k) WHERE o.j < (SELECT max($x(j)) FROM few JOIN t USING (k))', 'InitPlan.*Hash Join' ],
	[ 'CTE', $hash, 'WITH c AS MATERIALIZED (SELECT o.* FROM o JOIN t USING (k)) SELECT c.id, $x(d.id) FROM c JOIN c d USING (j) LIMIT 90', 'Hash Join.*CTE' ],
	[ 'functions', $hash, 'SELECT k, matches(k / 50), $x(k) FROM few', 'Seq Scan' ],
	[ 'functions inside a join', $loop, 'SELECT o.id, matches($x(t.j)) FROM o JOIN t ON t.id = o.k WHERE o.id < 30', 'Nested Loop' ],
	[ 'an error in a nested statement', $loop, 'SELECT fails(o.id), $x(t.id) FROM o JOIN t ON t.id = o.k WHERE o.id < 30', 'Nested Loop' ],
	[ 'an error', $loop, 'SELECT 1 / (o.id - 60), $x(t.id) FROM o JOIN t ON t.id = o.k', 'Nested Loop' ],
	[ 'an error, hash join', $hash, 'SELECT 1 / (o.id - 60), $x(t.id) FROM o JOIN t ON t.k = o.k', 'Hash Join' ],
	[ 'an error that nobody comes to', $loop,
		'SELECT fails(o.id), $x(t.id) FROM (SELECT id, k, 1 / (id - 60) AS e FROM o) o JOIN t ON t.id = o.k WHERE o.e < 5 LIMIT 20', 'Limit.*Nested Loop' ],
	[ 'prepared', "$hash SET plan_cache_mode = force_generic_plan;",
		'PREPARE q(int) AS SELECT o.id, $x(t.id) FROM o JOIN t ON t.k = o.k WHERE o.j < $1; EXECUTE q(3); EXECUTE q(5); EXECUTE q(0); DEALLOCATE q', '' ],
	[ 'prepared, nested loop', "$loop SET plan_cache_mode = force_generic_plan;",
		'PREPARE q(int) AS SELECT o.id, $x(t.id) FROM o JOIN t ON t.id = o.k WHERE o.j < $1; EXECUTE q(3); EXECUTE q(5); EXECUTE q(0); DEALLOCATE q', '' ],
	[ 'UPDATE', $loop . $fresh, 'BEGIN; UPDATE changed SET n = $x(changed.n) + o.id FROM o WHERE changed.k = o.k RETURNING changed.id, changed.n; ROLLBACK', '' ],
	[ 'UPDATE, hash join', $hash . $fresh, 'BEGIN; UPDATE changed SET n = $x(changed.n) + o.id FROM o WHERE changed.k = o.k RETURNING changed.id, changed.n; ROLLBACK', '' ],
	[ 'writing CTE', $hash . $fresh, 'BEGIN; WITH u AS (UPDATE changed SET n = changed.n + 1 FROM o WHERE changed.k = $x(o.k) RETURNING o.id) SELECT count(*) FROM u; ROLLBACK', '' ],
	[ 'COPY', $hash, 'COPY (SELECT o.id, $x(t.id) FROM o JOIN t ON t.k = o.k) TO STDOUT', '' ],

	map({
			my ($name, $settings, $query) = @$_;
			(   [ "cursor, $name", $settings, "BEGIN; DECLARE c CURSOR FOR $query; FETCH 7 FROM c; FETCH 40 FROM c; CLOSE c; ROLLBACK", '' ],
				[ "cursor to its end, $name", $settings, "BEGIN; DECLARE c CURSOR FOR $query; FETCH 3 FROM c; FETCH ALL FROM c; FETCH 1 FROM c; COMMIT", '' ],
				[ "scrollable cursor, $name", $settings,
					"BEGIN; DECLARE c SCROLL CURSOR FOR $query; FETCH 20 FROM c; FETCH BACKWARD 5 FROM c; MOVE 30 IN c; FETCH PRIOR FROM c; FETCH LAST FROM c; COMMIT", '' ])
		  } [ 'index scan', $scan, 'SELECT $x(id), p FROM t WHERE k > 100 ORDER BY k, j' ],
		[ 'nested loop', $loop, 'SELECT o.id, $x(t.id) FROM o JOIN t ON t.id = o.k' ],
		[ 'hash join', $hash, 'SELECT o.id, $x(t.id) FROM t JOIN o ON t.k = o.k' ]),

	[ 'Parallel Hash', "$shared SET max_parallel_workers = 0;", 'SELECT o.id, $x(t.id) FROM o JOIN t ON t.k = o.k', 'Parallel Hash Join' ],
	[ 'Parallel Hash, nested', "$shared SET parallel_setup_cost = 50; SET max_parallel_workers = 0;", 'SELECT a.id, b.id, $x(c.id) FROM big a JOIN big b ON b.id = a.k JOIN big c ON c.k = b.id WHERE a.id % 20 = 0 AND b.id % 2 = 0', 'Parallel Hash Join.*Parallel Hash Join' ],
	[ 'Parallel Hash, a worker', "$shared $one_worker",
		'SELECT o.id, $x(t.id) FROM o JOIN t ON t.k = o.k', 'Parallel Hash Join' ],
	[ 'parallel nested loop, a worker', "$shared $one_worker SET enable_nestloop = on; SET enable_hashjoin = off; SET enable_material = off; SET enable_memoize = off;",
		'SELECT o.id, $x(t.id) FROM o JOIN t ON t.id = o.k', 'Gather.*Nested Loop' ]);

my %look = (
	off => 'SET pg_lookahead.enable = off; SET pg_lookahead.force = off;',
	default => 'SET pg_lookahead.enable = on; SET pg_lookahead.force = off;',
	forced => 'SET pg_lookahead.enable = on; SET pg_lookahead.force = on;');

# ---- helpers -------------------------------------------------------------------------

# Sessions that have loaded both libraries, or one, in this order; opened anew after a crash.
my %path = (us => 'pg_lookahead', company => $library);

sub session_of
{
	my ($node, $order) = @_;
	my $load = join(' ', map { "LOAD '$path{$_}';" } split /, /, $order);

	return { node => $node, load => $load, psql => open_session($node, $load) };
}

sub ask_session
{
	my ($session, $sql) = @_;
	my $out = eval { ask($session->{psql}, $sql) };

	return $out if defined $out;
	eval { $session->{psql}->quit };
	wait_until(sub { defined($session->{psql} = eval { open_session($session->{node}, $session->{load}) }) })
	  or die 'the server does not come back';
	return 'the server has crashed';
}

# $query with a function called where it has $x(column)
sub with_calls
{
	my ($query, $function) = @_;

	$query =~ s/\$x\(/$function(/g;
	return $query;
}

# Run a case.  Returns its rows and messages, and what $p{after} then is; $p{company} are
# settings meanwhile.  Rows go through a file, not to be repeated in the log of the test.
my $rows_file = PostgreSQL::Test::Utils::tempdir() . '/rows';

sub run_case_once
{
	my ($session, $case, $look, %p) = @_;
	my ($name, $settings, $query) = @$case;
	my $out = ask_session($session,
		"RESET ALL;\n$settings\n$look{$look}\nSET pg_lookahead.explain = off;\nCALL la_company_reset();\n"
		  . ($p{company} // '')
		  . "\n\\o $rows_file\n"
		  . with_calls($query, $p{function} // '')
		  . ";\n\\o\nROLLBACK;\nRESET ALL;\n"
		  . ($p{after} // '')
		  . ";\n\\echo ====\n");
	my ($answer, $messages) = split /^====\n?/m, $out;

	return ($out, '') if $out !~ /^====/m;
	$messages //= '';
	$messages =~ s/WARNING:  there is no transaction in progress\n?//;
	chomp($messages, $answer);
	return (slurp_file($rows_file) . $messages, $answer);
}

# The same; a case with a worker is run until it had one.
sub run_case
{
	my ($session, $case, @p) = @_;
	my @answer = run_case_once($session, $case, @p);
	my $workers;

	return @answer if $case->[0] !~ /, a worker$/;
	my $done = sub {
		$workers = ask_session($session, 'SELECT la_company_workers()');
		return $workers eq '1' || $answer[0] =~ /^(ERROR|the server)/m;
	};
	wait_until(sub { $done->() || do { @answer = run_case_once($session, $case, @p); 0 } })
	  or return ("there were $workers workers instead of 1", '');
	return @answer;
}

# The first line in which two texts differ.
sub first_difference
{
	my ($got, $expected) = @_;
	my @got = split /\n/, $got;
	my @expected = split /\n/, $expected;

	return '' if $got eq $expected;
	for my $i (0 .. ($#got > $#expected ? $#got : $#expected))
	{
		my ($g, $e) = map { $_ // 'nothing' } $got[$i], $expected[$i];
		return "line $i is $g instead of $e" if $g ne $e;
	}
	return 'they differ in blanks';
}

# No complaint: what is wrong comes as a list.
sub nothing
{
	my ($found, $name) = @_;
	my $n = @$found;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	splice(@$found, 12, @$found - 12, '... ' . ($n - 12) . ' more') if $n > 12;
	return is(join("\n", @$found), '', $name);
}

# ---- a server without pg_lookahead's library preloaded -------------------------------

my $node = new_server('main', preload => 0, conf => "restart_after_crash = on\nmax_parallel_workers = 8\n");
$node->safe_psql('postgres', $functions . $tables);
my @orders = ('us, company', 'company, us');

# The cases test what they say.
my $plain = open_session($node, '');
for my $case (grep { $_->[3] } @cases)
{
	my ($name, $settings, $query, $pattern) = @$case;
	my $plan = ask($plain, "RESET ALL; $settings EXPLAIN (costs off) " . with_calls($query, ''));

	$plan =~ s/\n/ /g;
	like($plan, qr/$pattern/, "$name: plan");
}
$plain->quit;

# ---- functions put around those of nodes -------------------------------------------------

# Number of nodes that a case has been seen to have.
sub nodes_of
{
	my ($counts) = @_;
	my %node = map { $_ => 1 } $counts =~ /^\d+\/\w+ (\d+):/mg;

	return sort { $a <=> $b } keys %node;
}

# Run a case as in %p, off and with look-ahead; returns what is different with it.
sub compare_case
{
	my ($session, $case, $what, %p) = @_;
	my ($expected) = run_case($session, $case, 'off', %p, after => 'CALL la_company_keep()');
	my @found;

	for my $look (@{ $p{look} // [ 'default', 'forced' ] })
	{
		my ($rows, $difference) = run_case($session, $case, $look, %p, after => 'SELECT la_company_difference()');

		push @found, "$what, $look: " . first_difference($rows, $expected) if $rows ne $expected;
		push @found, "$what, $look: $difference" if $difference ne '';
	}
	return @found;
}

for my $order (@orders)
{
	for my $mode (qw(node plain live real))
	{
		my $session = session_of($node, $order);
		my $wrap = "SET la_company.wrap = $mode;";

		# what the server's own functions are must not be learnt from such nodes
		run_case($session, $_, 'forced', company => $wrap) for @cases;
		for my $case (@cases)
		{
			my ($rows, $counts) =
			  run_case($session, $case, 'off', company => $wrap, after => 'SELECT la_company_counts()');
			my @ids = nodes_of($counts);
			my @found;

			# a test that tests nothing
			push @found, 'nothing is called' if !@ids;
			push @found, "an error: $1" if $case->[0] !~ /^an error/ && $rows =~ /^(ERROR.*)/m;
			for my $wrapped ('all', @ids > 1 ? @ids : ())
			{
				push @found,
				  compare_case($session, $case, $wrapped,
					company => "SET la_company.wrapped = '$wrapped'; $wrap",
					look => $wrapped eq 'all' ? [ 'default', 'forced' ] : ['forced']);
			}
			for my $call (1, 50, 333)
			{
				push @found,
				  compare_case($session, $case, "until call $call",
					company => "SET la_company.unwrap_call = $call; $wrap",
					look => ['forced']);
			}
			nothing(\@found, "$order, $mode: $case->[0]");
		}
		$session->{psql}->quit;
	}
}

# Rows of such a node are not taken ahead, and the session is told why.
{
	my $session = session_of($node, 'us, company');

	is(ask_session($session,
			"SET client_min_messages = warning; CREATE EXTENSION pg_lookahead; $loop $look{forced} SET la_company.wrap = live; SET la_company.wrapped = 'all';
			SELECT count(*) FROM (SELECT k FROM o OFFSET 0) o JOIN t USING (k)") =~ s/\D//gr,
		$node->safe_psql('postgres', 'SELECT count(*) FROM o JOIN t USING (k)'), 'wrapped nodes: rows');
	is(ask_session($session, "SELECT DISTINCT reason FROM pg_lookahead_last_statement() WHERE kind = 'nested loop'"),
		'another extension executes a node', 'wrapped nodes: the reason');
	ask_session($session, 'DROP EXTENSION pg_lookahead');
	$session->{psql}->quit;
}

# A type that only an expression uses is dropped while the statement is executed: the server has looked up its
# output function by then, and goes on.
{
	my $session = session_of($node, 'company, us');
	my $join = q(SELECT o.id, NULL::gone FROM o JOIN days ON days.d = date_trunc('day', timestamptz '2026-01-01' + o.j * interval '1 day'));

	ask_session($session, q(SET client_min_messages = warning;
		CREATE TABLE days AS SELECT date '2026-01-01' + i % 30 AS d, repeat('f', 100) AS f FROM generate_series(1, 1000) i;
		CREATE INDEX ON days (d); ANALYZE days;));
	for my $look ('off', 'default', 'forced')
	{
		is(ask_session($session, "SET la_company.nested_in = none; CREATE TYPE gone AS ENUM ('a'); $loop SET enable_seqscan = off; $look{$look}
				SET la_company.nested_in = run; SET la_company.nested = 'DROP TYPE IF EXISTS gone'; COPY ($join) TO '/dev/null';"),
			'', "a type is dropped meanwhile, $look");
	}
	ask_session($session, 'SET la_company.nested_in = none; DROP TABLE days');
	$session->{psql}->quit;
}

# ---- plans that are looked at while they are executed --------------------------------------

# Lines of a plan that are nodes, without figures.
sub nodes_only
{
	my ($plan) = @_;

	$plan =~ s/ +\((?:actual|never).*//mg;
	return join("\n", grep { /->|^\w/ && !/^(JIT|Planning|Query)/ } split /\n/, $plan);
}

my %observations = (
	text => 'SET la_company.explain = text; SET la_company.plan = digest;',
	json => 'SET la_company.explain = json; SET la_company.plan = protect;',
	analyze => 'SET la_company.explain = analyze; SET la_company.instrument = 15; SET la_company.plan = protect;');

for my $order (@orders)
{
	my $session = session_of($node, $order);

	for my $case (grep { $_->[2] =~ /\$x/ } @cases)
	{
		my (@found, $rows, $plan);

		for my $format (sort keys %observations)
		{
			for my $look ('off', 'default', 'forced')
			{
				my ($r, $answer) = run_case(
					$session, $case, $look,
					function => 'la_company_observe',
					company => "SET la_company.walk = on; SET la_company.every = 53; $observations{$format}",
					after => "SELECT 'complaint', la_company_complaint(); SELECT la_company_observations() > 0; SELECT la_company_explained()");
				my ($complaint, $observed, $p) = $answer =~ /^complaint\|(.*?)\n(t|f)\n?(.*)/s;

				push @found, "$format, $look: $complaint" if $complaint ne '';
				push @found, "$format, $look: nothing was observed" if $observed ne 't' && $case->[0] !~ /worker/;
				$p = nodes_only($p) if $format eq 'analyze';
				($rows, $plan) = ($r, $p) if $look eq 'off';
				push @found, "$format, $look: " . first_difference($r, $rows) if $r ne $rows;
				push @found, "$format, $look: plan, " . first_difference($p, $plan) if $p ne $plan;
			}
		}
		nothing(\@found, "$order, observed: $case->[0]");
	}
	$session->{psql}->quit;
}

# ---- other uses of the hooks -------------------------------------------------------------

my $join = 'SELECT count(*), sum(t.id) FROM o JOIN t USING (k)';
my %uses = (
	'instrumentation' => 'SET la_company.instrument = 15;',
	'a receiver' => 'SET la_company.replace_dest = on;',
	(map {
			("a statement in $_" => "SET la_company.nested_in = $_; SET la_company.nested = '$join';")
	} qw(start run finish)),
	'a statement at each row' =>
	  "SET la_company.replace_dest = on; SET la_company.nested_in = row; SET la_company.nested = 'SELECT count(*) FROM few JOIN o USING (k)';",
	'an error in nested statements' => 'SET la_company.fail_depth = 2;');
my @some = grep { $_->[0] =~ /^(index scan|nested loop|nested loops|nested loop, (left|LIMIT|Memoize)|hash join|hash join, (full|LIMIT|batches)|functions.*|an error.*|cursor, .*|prepared.*|UPDATE.*|writing CTE|COPY|Parallel Hash)$/ } @cases;

for my $order (@orders)
{
	my $session = session_of($node, $order);

	for my $use (sort keys %uses)
	{
		my @found;

		for my $case (@some)
		{
			push @found, compare_case($session, $case, $case->[0], company => $uses{$use});
			push @found,
			  compare_case($session, $case, "$case->[0], wrapped",
				company => "$uses{$use} SET la_company.wrapped = joins; SET la_company.wrap = node;");
		}
		nothing(\@found, "$order, $use");
	}
	$session->{psql}->quit;
}

# A wrapper that is installed in mid-query is called from then on.  Rows that had been taken
# ahead by then are no calls any more.
my @long = (
	[ 'index scan', $scan, 'SELECT id FROM big WHERE id > 0 ORDER BY id' ],
	[ 'nested loop', $loop, 'SELECT a.id, b.k FROM big a JOIN big b ON b.id = a.k' ],
	[ 'hash join', $hash, 'SELECT a.id, b.k FROM big a JOIN big b ON b.id = a.k' ]);
my $most_ahead = 1000;


for my $order (@orders)
{
	my $session = session_of($node, $order);

	for my $mode (qw(node plain live real))
	{
		my @found;

		for my $case (@long)
		{
			my %p = (
				company => "SET la_company.replace_dest = on; SET la_company.wrap_row = 10; SET la_company.wrap = $mode;",
				after => 'SELECT la_company_counts()');
			my ($rows, $counts) = run_case($session, $case, 'off', %p);

			for my $look ('default', 'forced')
			{
				my ($r, $c) = run_case($session, $case, $look, %p);
				my %calls = $c =~ /^\d+\/(\w+ \d+): (\d+) calls/mg;

				push @found, "$case->[0], $look: " . first_difference($r, $rows) if $r ne $rows;
				while ($counts =~ /^\d+\/(\w+ \d+): (\d+) calls/mg)
				{
					push @found, "$case->[0], $look: $1 is called $calls{$1} times instead of $2"
					  if $calls{$1} > $2 || $calls{$1} < $2 - $most_ahead;
				}
			}
		}
		nothing(\@found, "$order, $mode, installed in mid-query");
	}
	$session->{psql}->quit;
}
check_log($node);
$node->stop;

# ---- few buffers ----------------------------------------------------------------------------

my @wide = (
	[ 'hash join of wide rows', $hash, 'SELECT a.id, b.id, md5(a.w), $x(b.k) FROM wide a JOIN wide b ON b.k = a.id' ],
	[ 'hash join of wide rows, LIMIT', $hash, 'SELECT a.id, b.id, md5(a.w), $x(b.k) FROM wide a JOIN wide b ON b.k = a.id LIMIT 50' ],
	[ 'full hash join of wide rows', $hash, 'SELECT a.id, b.id, md5(a.w) FROM wide a FULL JOIN wide b ON b.k = a.id + 100' ],
	[ 'hash joins of wide rows', $hash,
		'SELECT a.id, b.id, md5(a.w), $x(c.k), md5(c.w) FROM wide a JOIN wide b ON b.k = a.id JOIN wide c ON c.id = b.k JOIN wide d ON d.k = c.id' ],
	[ 'hash join of wide rows, batches', "$hash SET work_mem = '64kB';", 'SELECT a.id, b.id, md5(a.w), $x(b.k), md5(b.w) FROM wide a JOIN wide b ON b.k = a.id' ],
	[ 'hash join of wide rows by an index', "$hash SET enable_seqscan = off; SET enable_bitmapscan = off;",
		'SELECT a.id, b.id, md5(a.w), $x(b.k) FROM wide a JOIN wide b ON b.k = a.id AND b.id > 0 WHERE a.id > 0' ],
	[ 'nested loop over wide rows', $loop, 'SELECT a.id, b.id, md5(a.w), md5(b.w), $x(b.k) FROM wide a JOIN wide b ON b.id = a.k' ],
	[ 'nested loop over wide rows, index-only', $loop, 'SELECT a.id, md5(a.w), $x(l.id) FROM wide a JOIN leaves l ON l.id = a.k' ],
	[ 'index-only scan', $scan, 'SELECT $x(id) FROM leaves WHERE id > 0 ORDER BY id' ],
	[ 'index-only scan backward', $scan, 'SELECT $x(id) FROM leaves WHERE id > 0 ORDER BY id DESC' ],
	[ 'index scan of an unlogged table', $scan, 'SELECT $x(id), k FROM unlogged WHERE id > 0 ORDER BY id' ],
	[ 'merge join of index-only scans', $merge . $scan, 'SELECT $x(a.id), b.id FROM leaves a JOIN leaves b ON a.id = b.id' ],
	[ 'nested loops of index-only scans', $loop . 'SET enable_seqscan = off;',
		'SELECT $x(a.id), b.id, c.id FROM leaves a JOIN leaves b ON b.id = a.id + 500 JOIN leaves c ON c.id = b.id + 500 WHERE a.id > 0' ],
	(map {
			my $n = $_;
			[ "$n index scans", $loop . 'SET enable_seqscan = off; SET join_collapse_limit = 1;',
				'SELECT $x(a1.id), ' . join(', ', map { "length(a$_.w)" } 1 .. $n) . ' FROM wide a1 '
				  . join(' ', map { "JOIN wide a$_ ON a$_.id = a" . ($_ - 1) . '.k' } 2 .. $n) . ' WHERE a1.id > 0' ]
	} 2 .. 18),
	(map {
			my $n = $_;
			[ "$n index-only scans", $loop . 'SET enable_seqscan = off; SET join_collapse_limit = 1;',
				'SELECT $x(a1.id) FROM leaves a1 '
				  . join(' ', map { "JOIN leaves a$_ ON a$_.id = a1.id + 37 * $_" } 2 .. $n) . ' WHERE a1.id > 0' ]
	} 2 .. 18),
	[ 'hash joins of temporary tables', $hash, 'SELECT a.id, b.id, md5(a.w), $x(c.k), md5(c.w) FROM x a JOIN x b ON b.k = a.id JOIN x c ON c.id = b.k JOIN x d ON d.k = c.id', '', 'temp' ],
	[ 'nested loops of temporary tables', $loop, 'SELECT a.id, b.id, md5(a.w), $x(c.k), md5(c.w) FROM x a JOIN x b ON b.id = a.k JOIN x c ON c.id = b.k JOIN x d ON d.id = c.k', '', 'temp' ]);

# made with more buffers: the server's own index builds need them
my $small = new_server('small', preload => 0, conf => "shared_preload_libraries = 'pg_lookahead, $library'\nsynchronize_seqscans = off\ntemp_buffers = 800kB\n");
$small->safe_psql(
	'postgres', $functions . q(
	CREATE TABLE wide (id int, k int, w text);
	ALTER TABLE wide ALTER w SET STORAGE plain;
	INSERT INTO wide SELECT i, i * 7919 % 601 + 1, repeat('w', 2000) FROM generate_series(1, 600) i;
	CREATE INDEX wide_id ON wide (id);
	CREATE TABLE leaves (id int) WITH (fillfactor = 10);
	INSERT INTO leaves SELECT i FROM generate_series(1, 4000) i;
	CREATE INDEX leaves_id ON leaves (id) WITH (fillfactor = 10);
	CREATE UNLOGGED TABLE unlogged AS SELECT i AS id, i AS k FROM generate_series(1, 4000) i;
	CREATE INDEX unlogged_id ON unlogged (id) WITH (fillfactor = 10);
	VACUUM ANALYZE wide, leaves, unlogged;));

for my $p ([ 'few connections', '128kB', 10 ], [ 'many connections', '128kB', 500 ], [ 'more buffers', '1MB', 200 ], [ 'a fair share', '2MB', 10 ])
{
	my ($name, $buffers, $connections) = @$p;

	$small->append_conf('postgresql.conf', "shared_buffers = $buffers\nmax_connections = $connections\n");
	$small->restart;
	my $session = session_of($small, '');
	my $temporary = q(CREATE TEMP TABLE x AS SELECT * FROM wide; ALTER TABLE x ALTER w SET STORAGE plain;
		INSERT INTO x SELECT * FROM wide; CREATE INDEX ON x (id); ANALYZE x;);
	# not less than what the server lets a backend pin, and nothing where that is nothing
	my $share = int(ask_session($session, q(SELECT setting FROM pg_settings WHERE name = 'shared_buffers')) / ($connections + 10));

	is(ask_session($session, $temporary), '', "$name: a temporary table");
	for my $case (@wide)
	{
		my ($rows, $pins, @found);
		my $temp = ($case->[4] // '') eq 'temp';

		for my $look ('off', 'default', 'forced')
		{
			my ($r, $n) =
			  run_case($session, $case, $look, function => 'la_company_observe', after => 'SELECT la_company_most_pins()');

			if ($look eq 'off')
			{
				($rows, $pins) = ($r, $n);
				push @found, "an error: $1" if $r =~ /^(ERROR(?!:  no unpinned buffers).*)/m;
			}
			# rows that were copied need no pins, so look-ahead may do with less
			last if $rows =~ /^ERROR:  no unpinned buffers/;
			push @found, "$look: " . first_difference($r, $rows) if $r ne $rows;
			push @found, "$look: $n buffers are pinned instead of $pins" if !$temp && $n > $pins + $share;
		}
		note("$case->[0]: $pins buffers are pinned, " . ($rows =~ /^ERROR/m ? 'an error' : 'no error'));
		nothing(\@found, "$name: $case->[0]");
	}
	is(ask_session($session, 'SELECT la_company_pins()'), ask_session($session, 'SELECT la_company_pins()'), "$name: at the end");
	$session->{psql}->quit;
}
check_log($small);
$small->stop;
done_testing();
