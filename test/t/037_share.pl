# 037_share.pl - sessions that share a tablespace's limit.
#
# pg_lookahead_last_statement() tells how far a scan might look ahead (capacity): with a limit of
# 10, a session alone may have 9 reads in flight besides the one that it waits for, and 4 beside
# another one.  (max_distance is below 16, so that blocks are issued in the order of need.)  The other one is a pgbench that scans all the time, or a session that has just
# scanned and is killed, or exits: then nothing of it may count any more.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', conf => "pg_lookahead.tablespace_max_in_flight = 10\nrestart_after_crash = on\n");
my $place = PostgreSQL::Test::Utils::tempdir();

$node->safe_psql('postgres', random_table('t', 20000, width => 300));
$node->safe_psql('postgres', "CREATE TABLESPACE other LOCATION '$place'");
$node->safe_psql('postgres', $_) for
  'CREATE TABLE o (LIKE t INCLUDING ALL) TABLESPACE other',
  'INSERT INTO o SELECT * FROM t',
  'VACUUM ANALYZE o';

sub scan
{
	my ($table, $from) = @_;

	return "SELECT count(w) FROM (SELECT w FROM $table WHERE a BETWEEN $from AND $from + 40000 ORDER BY a OFFSET 0) s";
}

# Capacity, the greatest distance and blocks issued of a scan in this session.
sub figures
{
	my ($session, $table) = @_;

	ask($session, scan($table // 't', 1000));
	return split /\|/, ask($session, 'SELECT capacity, max_distance, blocks_issued FROM pg_lookahead_last_statement()');
}

# Scan until the capacity is this one, in a scan that had no other before (nobody came while it ran).
sub comes_to
{
	my ($session, $capacity, $name) = @_;
	my @figures;

	wait_until(sub {
		@figures = figures($session);
		return $figures[0] == $capacity && $figures[1] <= $capacity && ($capacity > 0 || $figures[2] == 0);
	});
	is($figures[0], $capacity, $name);
	cmp_ok($figures[1], '<=', $capacity, '... and its distance');
	return @figures;
}

# Sessions that scan without a pause.
sub others
{
	my ($clients) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir() . '/scan.sql';

	append_to_file($file, scan('t', 60000) . ";\n");
	return start_pgbench($node, 600, 'scans',
		'-c pg_lookahead.force=on -c enable_seqscan=off -c enable_bitmapscan=off', $clients, '-f', $file);
}

sub end_of
{
	my ($run) = @_;

	$run->{handle}->kill_kill;
	return;
}

# ---- one session, and others beside it -------------------------------------------

my $session = open_session($node, forced(distance => 15));
my ($capacity, $distance, $issued) = figures($session);
is($capacity, 9, 'alone: the limit, less the read that it waits for');
cmp_ok($distance, '<=', 9, '... which it keeps to');
cmp_ok($issued, '>', 100, '... looking ahead');

my $run = others(1);
comes_to($session, 4, 'beside another one: half of it');
is((figures($session, 'o'))[0], 9, '... but all of another tablespace');
end_of($run);
comes_to($session, 9, 'when it has ended: all again');

# as many sessions as reads, and more
$run = others(11);
($capacity, $distance, $issued) = comes_to($session, 0, 'beside eleven: nothing');
is($issued, 0, '... and no read is started');
end_of($run);
comes_to($session, 9, 'when they have ended: all again');

# ---- limits of one's own -----------------------------------------------------------

ask($session, 'SET pg_lookahead.tablespace_max_in_flight = 1');
is((figures($session))[2] // 0, 0, 'a limit of 1: no read is started');
ask($session, 'SET pg_lookahead.tablespace_max_in_flight = 0');
is((figures($session))[0], 15, 'no limit: max_distance');
ask($session, 'RESET pg_lookahead.tablespace_max_in_flight');
my $answer;
$node->append_conf('postgresql.conf', 'pg_lookahead.tablespace_max_in_flight = 6');
$node->reload;
comes_to($session, 5, 'the limit is lowered by a reload');
$node->append_conf('postgresql.conf', 'pg_lookahead.tablespace_max_in_flight = 10');
$node->reload;
comes_to($session, 9, '... and raised');

# in the order of the table requests wait for each other, and all but one of several blocks in them
for my $limit (2, 3, 10)
{
	my $all = 'SELECT count(*), sum(hashtext(w) % 1000 + a) FROM (SELECT w, a FROM t ORDER BY a OFFSET 0) s';
	my $stock = ask($session, "SET pg_lookahead.enable = off; $all; SET pg_lookahead.enable = on");

	is(ask($session, "SET pg_lookahead.max_distance = 64; SET pg_lookahead.tablespace_max_in_flight = $limit; $all"),
		$stock, "a limit of $limit, in the order of the table");
	($capacity, $distance, $issued) =
	  split /\|/, ask($session, 'SELECT capacity, max_distance, blocks_issued FROM pg_lookahead_last_statement()');
	is($capacity, $limit - 1, '... has this share');
	cmp_ok($distance, '>', 64, '... and lots');
	cmp_ok($issued, '>', 100, '... that look ahead');
}
ask($session, 'RESET pg_lookahead.tablespace_max_in_flight; SET pg_lookahead.max_distance = 15');

# more tablespaces than a backend keeps apart
my @places = map { PostgreSQL::Test::Utils::tempdir() } 1 .. 5;
$node->safe_psql('postgres', "CREATE TABLESPACE place$_ LOCATION '$places[$_ - 1]'") for 1 .. 5;
$node->safe_psql('postgres', $_) for
  'CREATE TABLE p (LIKE t) PARTITION BY HASH (id)',
  (map { "CREATE TABLE p$_ PARTITION OF p FOR VALUES WITH (MODULUS 6, REMAINDER $_)" . ($_ > 0 ? " TABLESPACE place$_" : '') } 0 .. 5),
  'CREATE INDEX ON p (a, id)', 'INSERT INTO p SELECT * FROM t', 'VACUUM ANALYZE p';
my $merged = q(SELECT md5(string_agg(id::text, NULL)) FROM (SELECT id FROM p WHERE w > '' ORDER BY a, id) s);
$answer = ask($session, "SET pg_lookahead.enable = off; $merged; SET pg_lookahead.enable = on");
is(ask($session, $merged), $answer, 'six tablespaces in one statement');
ask($session, "BEGIN; DECLARE c CURSOR FOR SELECT id, w FROM p ORDER BY a, id; FETCH 500 FROM c; SAVEPOINT s; SELECT 1 / 0; ROLLBACK TO s; FETCH 500 FROM c");
is(ask($session, $merged), $answer, '... beside a cursor');
ask($session, 'COMMIT');

# a worker is a process of its own
my $parallel = join ' ', map { "SET $_;" } 'max_parallel_workers_per_gather = 2', 'min_parallel_table_scan_size = 0',
  'min_parallel_index_scan_size = 0', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0';
ask($session, $parallel);
my $sum = 'SELECT sum(hashtext(w)), count(*) FROM t WHERE a BETWEEN 1000 AND 100000';
like(ask($session, "EXPLAIN $sum"), qr/Workers Planned/, 'a plan with workers');
$answer = ask($session, $sum);
ask($session, 'SET pg_lookahead.enable = off');
is($answer, ask($session, $sum), '... has the same answer');
ask($session, 'SET pg_lookahead.enable = on; SET max_parallel_workers_per_gather = 0');

# ---- who is gone does not count ----------------------------------------------------

for my $end ('quit', 'terminate')
{
	my $other = open_session($node, forced(distance => 15));
	my $pid = pid_of($other);

	figures($other);
	if ($end eq 'quit')
	{
		$other->quit;
	}
	else
	{
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
		$other->{run}->finish;
	}
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid")
	  or die 'the session is still there';
	my $fresh = open_session($node, forced(distance => 15));
	$session->quit;
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
	  or die 'there are other sessions';
	is((figures($fresh))[0], 9, "$end: the slot is free");
	$session = $fresh;
}

# SIGKILL: the server makes its shared memory anew
my $other = open_session($node, forced(distance => 15));
figures($other);
kill 'KILL', pid_of($other);
$other->{run}->finish;
$session->{run}->finish;
$node->wait_for_log(qr/all server processes terminated; reinitializing/);
$node->poll_query_until('postgres', 'SELECT true') or die 'the server has not restarted';
$session = open_session($node, forced(distance => 15));
is((figures($session))[0], 9, 'after a crash: no slot is taken');
$session->quit;
$node->stop;

# ---- not preloaded -----------------------------------------------------------------

my $alone = new_server('alone', preload => 0);
$alone->safe_psql('postgres', random_table('t', 5000, width => 300));
$session = open_session($alone, "LOAD 'pg_lookahead'; " . forced(distance => 15));
ask($session, 'CREATE EXTENSION pg_lookahead');
like(
	ask($session, 'SET pg_lookahead.tablespace_max_in_flight = 10'),
	qr/^WARNING:  "pg_lookahead.tablespace_max_in_flight" has no effect\nDETAIL:  .*\nHINT:  Add pg_lookahead to "shared_preload_libraries"/,
	'not preloaded: a warning');
is(ask($session, 'SET pg_lookahead.tablespace_max_in_flight = 11'), '', '... once');
is((figures($session))[0], 15, '... and no limit');
$session->quit;
$alone->stop;

done_testing();
