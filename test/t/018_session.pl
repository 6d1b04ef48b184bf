# 018_session.pl - what a session keeps for itself, and when it tells what it counted.
#
# DISCARD ALL and RESET ALL, which a connection pooler sends before another client gets the session,
# clear the figures of the last statement (what was learnt of indexes: 011_demand).  A function of the
# extension loads the library into a session that has not loaded it, and look-ahead is on in
# that session from then on.  What a backend has counted is made public when it exits, however
# it does, and nothing is counted twice.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $need_preload = qr/ERROR:  pg_lookahead must be loaded via "shared_preload_libraries"\nHINT:/;
my $node = new_server('main', preload => 0, extensions => ['pg_lookahead']);

$node->safe_psql('postgres', random_table('t', 5000));
my $scan = 'SELECT count(w) FROM (SELECT w FROM t WHERE a > 5000 ORDER BY a OFFSET 0) s';
my $figures = q(SELECT count(*) FROM pg_lookahead_last_statement());
my $plans = 'SET enable_seqscan = off; SET enable_bitmapscan = off;';

# ---- nothing is preloaded: the first call loads the library ---------------------------

my $session = open_session($node, "$plans SET pg_lookahead.force = on");
my $count = ask($session, $scan);
is(ask($session, $figures), 0, 'not loaded: the function returns no rows');
is(ask($session, "$scan; SELECT scans_activated FROM pg_lookahead_last_statement()"), "$count\n1",
	'... and look-ahead is on after its call, with what was set before');
for my $sql ('SELECT * FROM pg_stat_lookahead', 'SELECT * FROM pg_stat_lookahead_index_build', 'SELECT pg_stat_lookahead_reset()')
{
	like(ask($session, $sql), $need_preload, "loaded by a call: $sql");
	my ($ret, $out, $err) = $node->psql('postgres', $sql);
	like($err, $need_preload, "not loaded: $sql");
}
$session->quit;

# in the middle of a transaction, of a query, and with a cursor open
$session = open_session($node, $plans);
like(
	ask($session, "BEGIN; DECLARE c CURSOR FOR SELECT w FROM t WHERE a > 5000 ORDER BY a; MOVE 10 IN c;
		LOAD 'pg_lookahead'; SET pg_lookahead.force = on; MOVE 10 IN c; $scan; MOVE ALL IN c; COMMIT; $figures"),
	qr/^$count\n1$/,
	'LOAD in a transaction');
$session->quit;
is($node->safe_psql('postgres', "$plans SELECT count(w), (SELECT count(*) FROM pg_lookahead_last_statement()) FROM t WHERE a > 5000"),
	"$count|0", 'loaded in the middle of a query');

# ---- a session that another client gets ------------------------------------------------

$session = open_session($node, "LOAD 'pg_lookahead'");
for my $reset ('DISCARD ALL', 'RESET ALL')
{
	is(ask($session, forced() . "$scan; $figures"), "$count\n1", 'there are figures');
	is(ask($session, "$_; $figures"), '1', "$_ leaves them")
	  for 'DISCARD PLANS', 'DISCARD SEQUENCES', 'DISCARD TEMP', 'RESET pg_lookahead.force', 'SET pg_lookahead.force TO DEFAULT';
	is(ask($session, "$reset; $figures"), '0', "$reset clears them");
	is(ask($session, "$figures; SHOW pg_lookahead.force"), "0\noff", '... for good');
}
is(ask($session, forced() . "$scan; BEGIN; DISCARD ALL; ROLLBACK; $figures"),
	"$count\n1\nERROR:  DISCARD ALL cannot run inside a transaction block", 'a DISCARD ALL that fails clears nothing');
is(ask($session, forced() . "$scan; BEGIN; RESET ALL; ROLLBACK; $figures"), "$count\n0", 'RESET ALL in a transaction');
is(ask($session, 'DO $$ BEGIN EXECUTE \'RESET ALL\'; END $$; SELECT 1'), 1, 'RESET ALL in a function');
$session->quit;

# ---- counters at exit -------------------------------------------------------------------

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_lookahead'\n");
$node->restart;
my $settings = "$plans SET pg_lookahead.attach_threshold = 0; SET pg_lookahead.cache_prefetch_threshold = -1; SET pg_lookahead.miss_threshold = 1000;";
my $attached = 'SELECT sum(scans_attached) FROM pg_stat_lookahead';

# Scans that did not look ahead are counted when the backend goes: $end ends it.
sub counted
{
	my ($name, $expected, $end) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->safe_psql('postgres', 'SELECT pg_stat_lookahead_reset()');
	$session = open_session($node, $settings);
	my $pid = pid_of($session);
	ask($session, 'SELECT count(w) FROM (SELECT w FROM t WHERE a = 1 OFFSET 0) s') for 1 .. 3;
	is($node->safe_psql('postgres', $attached), 0, "$name: nothing while the backend is there");
	$end->($pid);
	$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)");
	$node->poll_query_until('postgres', "SELECT ($attached) >= $expected");
	is($node->safe_psql('postgres', $attached), $expected, "$name: counted when it has gone");
	return;
}

counted('end', 3, sub { $session->quit });
counted('terminated', 3, sub { $node->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])") });
counted(
	'terminated with a cursor open',
	4,
	sub {
		ask($session, 'BEGIN; DECLARE c CURSOR FOR SELECT w FROM t WHERE a > 0 ORDER BY a; FETCH 1 FROM c');
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])");
	});

check_log($node);
$node->stop;

done_testing();
