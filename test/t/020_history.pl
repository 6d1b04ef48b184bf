# 020_history.pl - what scans have learnt is known to the first scan of a new session.
#
# As in 011_demand, each query visits rows on blocks that nobody has read since the server started,
# and every read counts as a wait.  A scan whose reads are not known to be waits reads three blocks
# before it looks ahead.  One that knows it from others issues all but the first, or the second.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $waits = LookAhead::plans() . "SET pg_lookahead.min_read_time = 0;\n";
my %next;

# A table with one row or two on a block, in an order that has nothing to do with the key.
sub create
{
	my ($node, @tables) = @_;

	$node->safe_psql(
		'postgres', qq(
		CREATE TABLE $_ (k int, v int, w text) WITH (fillfactor = 10);
		INSERT INTO $_ SELECT k, i % 7, repeat('w', 700)
			FROM (SELECT i, row_number() OVER (ORDER BY hashint4(i)) - 1 AS k
				FROM generate_series(0, 5999) i) s ORDER BY i;
		CREATE INDEX ${_}_k ON $_ (k);
		VACUUM (FREEZE, ANALYZE) $_;)) for @tables;
	$node->safe_psql('postgres', 'CHECKPOINT');
	$node->restart;
	return;
}

# The next rows that nobody has read, as a condition.
sub range
{
	my ($table, $rows) = @_;
	my $first = $next{$table} // 0;

	$next{$table} = $first + $rows + 10;
	return sprintf('k BETWEEN %d AND %d', $first, $first + $rows - 1);
}

# SQL that reads so many rows.
sub rows
{
	my ($table, $rows) = @_;

	return "SELECT count(w) FROM $table WHERE " . range($table, $rows) . ';';
}

my $figures = q(SELECT blocks_issued, max_distance, scans_activated, blocks_wasted
	FROM pg_lookahead_last_statement() ORDER BY blocks_issued DESC LIMIT 1);

# Figures of a statement in a session of its own: issued, most in flight, activated, wasted.
sub figures
{
	my ($node, $sql, $before) = @_;

	return split /\|/,
	  $node->safe_psql('postgres', $waits . ($before // '') . "\\o /dev/null\n$sql\n\\o\n$figures");
}

sub issued
{
	return (figures(@_))[0] // 0;
}

# ---- shared ----------------------------------------------------------------------------

my $node = new_server('main', conf => "shared_buffers = 256MB\n");
$node->safe_psql('postgres', q(
	CREATE TABLE o (k int, w text) WITH (fillfactor = 10);
	INSERT INTO o SELECT i, repeat('w', 700) FROM generate_series(0, 999) i;
	CREATE INDEX o_k ON o (k);
	VACUUM (FREEZE, ANALYZE) o;));
create($node, qw(t u c e n m));

my $unknown = issued($node, rows('t', 10));
cmp_ok($unknown, '<=', 7, 'nothing is known at first');
issued($node, rows('t', 10)) for 1 .. 4;
is(issued($node, rows('t', 10)), 9, 'a new session: ten rows, one wait');
is(issued($node, rows('t', 30)), 29, '... thirty rows, one wait');
is(issued($node, rows('t', 10), 'DISCARD ALL;' . $waits), 9, '... DISCARD ALL is about the session');
my ($issued, $distance) = figures($node, rows('u', 10));
cmp_ok($issued, '>', $unknown, "another index of the tablespace: from the first miss on ($issued, not $unknown)");

# rows in the order of the index, which the kernel reads ahead better if nothing is issued
is(issued($node, rows('o', 100)), 0, 'rows in order: known waits of others are no evidence');

$node->safe_psql('postgres', 'CREATE DATABASE other');
is($node->safe_psql('other', "CREATE EXTENSION pg_lookahead; SELECT scans_activated FROM pg_stat_lookahead WHERE kind = 'index scan'") > 0,
	1, 'counted for all sessions');

# reads that are fast: the next session waits for evidence again
$node->safe_psql('postgres', LookAhead::plans() . 'SET pg_lookahead.min_read_time = 1000;' . rows('t', 60));
cmp_ok(issued($node, rows('t', 10)), '<=', 7, 'fast reads are known to others, too');

# cached: look-ahead from the first row on does not go on for long
issued($node, rows('t', 10)) for 1 .. 6;
is(issued($node, rows('t', 10)), 9, 'slow again');
my $session = open_session($node, $waits);
my $activated = "SELECT coalesce(sum(scans_activated), 0) FROM pg_stat_lookahead";
my $before = ask($session, $activated);
ask($session, 'SELECT count(w) FROM t WHERE k BETWEEN 0 AND 9') for 1 .. 50;
my $times = ask($session, $activated) - $before;
cmp_ok($times, '<=', 6, 'cached scans begin without look-ahead after a few of them');
cmp_ok($times, '>=', 1, '... which had begun with it');
$session->quit;

# ---- how far a statement reads ------------------------------------------------------------

# the planner expects thousands of rows, and three are taken
sub cursor
{
	my ($table, $fetch) = @_;
	my $first = $next{$table};

	$next{$table} += $fetch + 40;
	return "BEGIN; DECLARE c CURSOR FOR SELECT w FROM $table WHERE k >= $first ORDER BY k; "
	  . "FETCH $fetch FROM c; CLOSE c; COMMIT;";
}

issued($node, rows('c', 10)) for 1 .. 6;
my @wasted = map { (figures($node, cursor('c', 3)))[3] // 0 } 1 .. 12;
cmp_ok($wasted[0], '<=', 16, 'left early: few reads are wasted');
cmp_ok($wasted[-1], '<=', 1, "... and hardly any when that is known (@wasted)");
my @distance = map { (figures($node, cursor('c', 40)))[1] // 0 } 1 .. 16;
cmp_ok($distance[-1], '>=', 16, "read further: known after some executions (@distance)");

# a loop over all rows
sub loop
{
	my ($table) = @_;

	return 'DO $$ DECLARE r record; BEGIN FOR r IN SELECT w FROM ' . $table . ' WHERE ' . range($table, 9)
	  . ' LOOP END LOOP; END $$;';
}
my @issued = map { issued($node, loop('e')) } 1 .. 12;
cmp_ok($issued[-1], '>=', 8, "always read to its end: known after some executions (@issued)");

# ---- nested loops ---------------------------------------------------------------------------

my $joins = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;';

sub join_of
{
	my ($table, $rows) = @_;
	my $first = $next{$table} // 0;

	$next{$table} = $first + $rows + 10;
	return sprintf('SELECT %s FROM generate_series(%d, %d) g JOIN %s ON k = g', 'count(w)', $first, $first + $rows - 1, $table);
}

cmp_ok(issued($node, join_of('n', 20) . ';', $joins), '>=', 18, 'reads of a join, known by the tablespace');

sub join_cursor
{
	my $sql = join_of('m', 40);

	$sql =~ s/count\(w\)/w/;
	return "BEGIN; DECLARE c CURSOR FOR $sql; FETCH 20 FROM c; CLOSE c; COMMIT;";
}
@wasted = map { (figures($node, join_cursor(), $joins))[3] // 0 } 1 .. 4;
cmp_ok($wasted[0], '>', 8, 'left early: reads of outer rows to come are wasted');
cmp_ok($wasted[-1], '<=', 1, "... and hardly any when that is known (@wasted)");

# a thousand times as many rows as expected
$node->safe_psql('postgres', 'ALTER TABLE t ADD n int DEFAULT 0; CREATE INDEX t_n ON t (n, hashint4(k)); '
	  . 'UPDATE pg_class SET reltuples = 6 WHERE oid = \'t\'::regclass');
$node->restart;
($issued, $distance) = figures($node, 'SELECT count(w) FROM t WHERE n = 0;');
cmp_ok($distance, '>=', 64, 'more rows than expected: distance grows');

check_log($node);
$node->stop;

# ---- not shared -------------------------------------------------------------------------

$node = new_server('own', preload => 0, extensions => ['pg_lookahead'],
	conf => "shared_buffers = 256MB\nsession_preload_libraries = 'pg_lookahead'\n");
create($node, 't');
issued($node, rows('t', 10)) for 1 .. 6;
cmp_ok(issued($node, rows('t', 10)), '<=', 7, 'a session without shared memory knows nothing of others');
is(issued($node, rows('t', 10), "\\o /dev/null\n" . join('', map { rows('t', 10) } 1 .. 6)), 9, '... but what it has learnt itself');
check_log($node);

done_testing();
