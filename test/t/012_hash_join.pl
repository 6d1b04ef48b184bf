# 012_hash_join.pl - hash joins that do not reach their end leave nothing behind.
#
# Joins are stopped while the table is built, while stock's table receives the rows that do not
# fit, and while batches of outer rows are looked up in it: by cancel, timeout,
# errors, LIMIT, and again and again in one session, whose memory then is what it is without
# look-ahead.  How a join is caught in the middle is described in 003_cancel.pl.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', extensions => ['pg_buffercache']);
my $joins = q(
	SET enable_mergejoin = off;
	SET enable_nestloop = off;
	SET max_parallel_workers_per_gather = 0;
	SET work_mem = '64MB';);
my %modes = (
	off => "$joins SET pg_lookahead.enable = off;",
	on => "$joins SET pg_lookahead.force = on;");

$node->safe_psql(
	'postgres', q(
	CREATE TABLE o AS SELECT i AS id, i % 5000 AS k, 's' || i % 5000 AS s FROM generate_series(1, 20000) i;
	CREATE TABLE t AS SELECT i AS id, i % 7000 AS k, 's' || i % 7000 AS s, repeat('w', 50) AS w
		FROM generate_series(1, 20000) i;
	-- the planner expects ten rows
	CREATE FUNCTION many(n int) RETURNS SETOF t ROWS 10 LANGUAGE sql STABLE AS 'SELECT * FROM t WHERE id <= n';
	CREATE FUNCTION series(n int) RETURNS SETOF int ROWS 10 LANGUAGE plpgsql STABLE AS $$
	BEGIN
		FOR i IN 1 .. n LOOP
			RETURN NEXT i;
		END LOOP;
	END $$;
	VACUUM ANALYZE o, t;));
create_fail($node);

# The last row of the outer side, and of the inner one, that something happens at.
my ($outer_row, $inner_row) = (7777, 15000);

# Queries in which $at(alias, row) is evaluated for each row: of the side that is built, of the
# joined rows, by columns that are by value and others.
sub queries
{
	my ($at) = @_;
	my $inner = $at->('t', $inner_row);
	my $joined = $at->('o', $outer_row);

	return (
		'build' => "SELECT count(*), sum(x) FROM o JOIN (SELECT k, $inner AS x FROM t OFFSET 0) t USING (k)",
		'probe, by value' => "SELECT count(*), sum(t.id + $joined) FROM o JOIN t USING (k)",
		'probe, by reference' => "SELECT count(*), sum(t.id + length(o.s) + $joined) FROM o JOIN t USING (s)",
		'left join' => "SELECT count(*), sum(o.id + $joined) FROM o LEFT JOIN t ON o.s = t.s AND t.id > 100",
		'full join' => "SELECT count(*), sum(o.id + $joined) FROM o FULL JOIN t USING (k)");
}

my %waiting = queries(sub { "CASE WHEN $_[0].id = $_[1] THEN length(pg_advisory_lock(1)::text) ELSE 0 END" });
my %failing = queries(sub { "1 / ($_[0].id - $_[1])" });
my %plain = queries(sub { '0' });
my $spilling = "SET work_mem = '256kB';";

# kB of memory that the process has of its own, or undef
sub resident
{
	my ($pid) = @_;

	open my $file, '<', "/proc/$pid/status" or return;
	my ($kb) = join('', <$file>) =~ /^RssAnon:\s+(\d+)/m;
	close $file;
	return $kb;
}

# ---- cancel, timeout ----------------------------------------------------------

my $holder = open_session($node, 'SELECT pg_advisory_lock(1)');
my ($session, $pid);

for my $kind (sort keys %waiting)
{
	for my $spill (0, 1)
	{
		my $name = $kind . ($spill ? ', too large' : '');

		$session = open_session($node, $modes{on} . ($spill ? $spilling : ''));
		$pid = pid_of($session);
		check_cancel($node, $session, $pid, $name, $waiting{$kind}, timeout => '300ms', cursor => 'CURSOR');
		is(ask($session, $plain{$kind}), $node->safe_psql('postgres', $modes{off} . $plain{$kind}),
			"$name: the session goes on");
		ask($session, 'COMMIT');
		$session->quit;
	}
}

# ---- errors, again and again ----------------------------------------------------

my $over = 'SELECT count(*), sum(o.id) FROM o JOIN series(20000) x ON o.k = x';
my %memory;
my %resident;
for my $mode ('off', 'on')
{
	for my $spill (0, 1)
	{
		my $name = $mode . ($spill ? ', too large' : '');

		$session = open_session($node, $modes{$mode} . ($spill ? $spilling : ''));
		$pid = pid_of($session);
		for my $kind (sort keys %failing)
		{
			is(ask($session, $failing{$kind}), 'ERROR:  division by zero', "$kind, $name: an error");
			nothing_pinned($node, "$kind, $name: after an error");
		}
		ask($session, "SELECT fail(\$\$$failing{$_}\$\$, 5)") for sort keys %failing;
		my ($memory, $resident) = (memory($session), resident($pid));
		for my $kind (sort keys %failing)
		{
			is(ask($session, "SELECT fail(\$\$$failing{$kind}\$\$, 40)"), 40, "$kind, $name: 40 errors");
		}
		$memory{$name} = memory($session) - $memory;
		$resident{$name} = defined $resident ? resident($pid) - $resident : undef;

		# more rows than were expected: the table grows, or becomes stock's
		is(ask($session, $over), $node->safe_psql('postgres', $modes{off} . $over), "$name: more rows than expected");
		$session->quit;
	}
}
for my $name ('on', 'on, too large')
{
	my $off = $name =~ s/on/off/r;

	cmp_ok($memory{$name}, '<=', $memory{$off} + 32 * 1024, "$name: no more memory than without look-ahead");
  SKIP:
	{
		skip 'no /proc', 1 unless defined $resident{$name};
		cmp_ok($resident{$name}, '<=', $resident{$off} + 8 * 1024, "$name: no more resident memory");
	}
}

# ---- one key for all rows -------------------------------------------------------

# a chain of 200,000 rows that match in hash value, and a join that can be canceled in it
$node->safe_psql(
	'postgres', q(
	CREATE TABLE same AS SELECT 7 AS k, i FROM generate_series(1, 200000) i;
	ANALYZE same;));
my $many = 'SELECT count(*) FROM same a JOIN same b ON a.k = b.k AND a.i + b.i < 0';
$session = open_session($node, "$modes{on} SET statement_timeout = '500ms'");
is(ask($session, $many), 'ERROR:  canceling statement due to statement timeout', 'one key for all rows: can be canceled');
reset_timeout($session);
is(ask($session, "SELECT count(*) FROM (SELECT FROM same a JOIN same b USING (k) LIMIT 300000) s"),
	300000, 'one key for all rows: joined');
$session->quit;

cmp_ok(
	$node->safe_psql('postgres', q(SELECT scans_activated FROM pg_stat_lookahead WHERE kind = 'hash join')),
	'>=', 4 * 46, 'hash joins have looked ahead');
check_log($node);
$holder->quit;
$node->stop;

done_testing();
