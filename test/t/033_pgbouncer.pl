# 033_pgbouncer.pl - look-ahead behind a pooler that gives a session to another client after each transaction.
#
#   1. Two clients that share one session: what one sets for its transaction is gone for the other; what it sets for
#      the session is there for the other, as any setting of the server's, until the pooler's DISCARD ALL.
#   2. The figures of the last statement are those of whoever had the session last, and DISCARD ALL clears them; what
#      scans have learnt is the server's, and stays.
#   3. A transaction that fails or is canceled, and a client that goes away in its middle, leave nothing behind
#      for the next.
#   4. Many clients on few sessions, with look-ahead by SET LOCAL and without, get the same answers.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($program) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin', '/usr/local/sbin';
plan skip_all => 'there is no pgbouncer (Debian: apt-get install pgbouncer)' unless $program;

my $node = new_server('main', extensions => ['pg_buffercache']);
$node->safe_psql('postgres', random_table('t', 6000));
my $user = $node->safe_psql('postgres', 'SELECT current_user');
my $scan = 'SELECT count(*), sum(id), sum(length(w)) FROM (SELECT * FROM t WHERE a > 5000 ORDER BY a, id OFFSET 0) s';
my $rows = $node->safe_psql('postgres', stock() . $scan);

# ---- the pooler -----------------------------------------------------------------

my $dir = PostgreSQL::Test::Utils::tempdir_short;
my $port = $node->port;
my $pooler;

# It listens in a directory of its own, under the server's port; $reset: after each transaction
sub start_pooler
{
	my ($size, $reset) = @_;

	unlink "$dir/ini", "$dir/log";
	append_to_file("$dir/ini", join "\n", '[databases]',
		"postgres = host=" . $node->host . " port=$port dbname=postgres user=$user pool_size=$size",
		'[pgbouncer]', 'listen_addr =', "unix_socket_dir = $dir", "listen_port = $port", 'auth_type = any', 'pool_mode = transaction',
		"logfile = $dir/log", "pidfile = $dir/pid", 'max_client_conn = 100', 'ignore_startup_parameters = extra_float_digits, options',
		"server_reset_query_always = $reset", 'server_reset_query = DISCARD ALL', '');
	$pooler = IPC::Run::start([ $program, "$dir/ini" ], '<' => \undef, '>' => "$dir/out", '2>' => "$dir/err");
	return if wait_until(sub { -S "$dir/.s.PGSQL.$port" && pooled('SELECT 1') eq '1' });
	die 'pgbouncer does not start: ' . slurp_file("$dir/err") . (-e "$dir/log" ? slurp_file("$dir/log") : '');
}

# Not gently, which waits for clients
sub stop_pooler
{
	kill 'TERM', slurp_file("$dir/pid") =~ /(\d+)/;
	$pooler->finish;
	return;
}

# A client that comes, asks and goes; errors last
sub pooled
{
	my ($sql) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run([ 'psql', '-XqAt', '-h', $dir, '-p', $port, '-f', '-', 'postgres' ], '<' => \$sql, '>' => \$out, '2>' => \$err);
	$err =~ s/^psql:<stdin>:\d+: //mg;
	return join "\n", grep { $_ ne '' } map { s/\n+\z//r } $out, $err;
}

# Clients that stay
sub client
{
	my ($in, $out) = ('', '');
	my $handle = IPC::Run::start([ 'psql', '-XqAt', '-h', $dir, '-p', $port, 'postgres' ], '<' => \$in, '>' => \$out, '2>&1',
		my $timer = IPC::Run::timer($PostgreSQL::Test::Utils::timeout_default));

	return { handle => $handle, in => \$in, out => \$out, timer => $timer };
}

sub say_to
{
	my ($client, $sql) = @_;

	${ $client->{out} } = '';
	${ $client->{in} } .= "$sql;\n\\echo done\n";
	$client->{timer}->start($PostgreSQL::Test::Utils::timeout_default);
	$client->{handle}->pump until ${ $client->{out} } =~ /^done$/m || $client->{timer}->is_expired;
	my $answer = ${ $client->{out} };
	$answer =~ s/^(?:psql:<stdin>:\d+: )//mg;
	$answer =~ s/\n?done\n\z//;
	return $answer;
}

my $plans = 'SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off';
my $ahead = "BEGIN; $plans; SET LOCAL pg_lookahead.force = on; $scan; COMMIT";
my $figures = 'SELECT count(*) FROM pg_lookahead_last_statement()';

# ---- 1. settings -------------------------------------------------------------------

start_pooler(1, 0);
my ($a, $b) = (client(), client());
my $pid = say_to($a, 'SELECT pg_backend_pid()');
is(say_to($b, 'SELECT pg_backend_pid()'), $pid, 'two clients share a session');
is(say_to($a, $ahead), $rows, 'look-ahead by SET LOCAL');
is(say_to($b, 'SHOW pg_lookahead.force'), 'off', '... is gone for the other');
is(say_to($b, "BEGIN; SET pg_lookahead.enable = off; SET work_mem = '1MB'; ROLLBACK; SHOW pg_lookahead.enable; SHOW work_mem"), "on\n4MB", 'SET in a transaction that is rolled back');
is(say_to($b, "BEGIN; SET pg_lookahead.enable = off; SET work_mem = '1MB'; COMMIT"), '', 'SET of the session');
is(say_to($a, 'SHOW pg_lookahead.enable; SHOW work_mem'), "off\n1MB", '... is there for the other, as any setting');
is(say_to($a, 'DISCARD ALL; SHOW pg_lookahead.enable; SHOW work_mem'), "on\n4MB", '... until DISCARD ALL');

# ---- 2. what a session keeps ---------------------------------------------------------

say_to($a, $ahead);
is(say_to($b, $figures), 1, 'the figures of the last statement');
say_to($b, 'DISCARD ALL');
is(say_to($a, $figures), 0, '... are cleared by DISCARD ALL');
cmp_ok(activated($node), '>', 0, '... which leaves the statistics');

# ---- 3. failures ------------------------------------------------------------------------

like(say_to($a, "BEGIN; $plans; SET LOCAL pg_lookahead.force = on; DECLARE c CURSOR FOR SELECT 100 / (id - 2000) FROM t ORDER BY a, id; MOVE ALL FROM c; ROLLBACK"),
	qr/^ERROR:  division by zero$/, 'an error in a scan that looks ahead');
nothing_pinned($node, '... afterwards');
is(say_to($b, $ahead), $rows, '... the other goes on');
like(say_to($a, "BEGIN; $plans; SET LOCAL pg_lookahead.force = on; SET LOCAL statement_timeout = '50ms'; SELECT count(*) FROM t x, t y WHERE x.a > y.b AND pg_sleep(0.01) IS NOT NULL; ROLLBACK"),
	qr/^ERROR:  canceling statement due to statement timeout$/, 'a timeout');
is(say_to($b, "$ahead; SHOW statement_timeout"), "$rows\n0", '... the other goes on');
say_to($a, "BEGIN; $plans; SET LOCAL pg_lookahead.force = on; DECLARE c CURSOR FOR SELECT * FROM t ORDER BY a, id; MOVE 100 FROM c");
$a->{handle}->kill_kill;
is(say_to($b, $ahead), $rows, 'a client goes away with a cursor open, and the other goes on');
nothing_pinned($node, '... nothing is left of it');
is(say_to($b, 'SELECT count(*) FROM pg_cursors; SHOW pg_lookahead.force'), "0\noff", '... not its cursor, nor settings');
$b->{handle}->kill_kill;
stop_pooler();

# ---- DISCARD ALL after each transaction

start_pooler(1, 1);
pooled("BEGIN; SET pg_lookahead.enable = off; COMMIT; BEGIN; SELECT 1; COMMIT");
is(pooled("SHOW pg_lookahead.enable; $figures"), "on\n0", 'a pooler that resets each session: nothing is kept');
is(pooled("$ahead; $figures"), "$rows\n0", '... and look-ahead works');
stop_pooler();

# ---- 4. many clients -----------------------------------------------------------------------

start_pooler(3, 0);
my $check = "$dir/check.sql";
append_to_file($check, qq(
\\set low random(0, 50000)
BEGIN;
$plans;
SET LOCAL pg_lookahead.enable = off;
SELECT coalesce(sum(hashtext(w || id)), 0) AS stock FROM (SELECT * FROM t WHERE a BETWEEN :low AND :low + 5000 ORDER BY a, id OFFSET 0) s \\gset
SET LOCAL pg_lookahead.enable = on;
SET LOCAL pg_lookahead.force = on;
SELECT 1 / (coalesce(sum(hashtext(w || id)), 0) = :stock)::int FROM (SELECT * FROM t WHERE a BETWEEN :low AND :low + 5000 ORDER BY a, id OFFSET 0) s;
COMMIT;
SELECT 1 / (current_setting('pg_lookahead.force') = 'off')::int;
));
my ($out, $err) = ('', '');
for my $mode ('simple', 'extended')
{
	ok( IPC::Run::run([ 'pgbench', '-n', '-M', $mode, '-c', 8, '-t', 25, '-h', $dir, '-p', $port, '-f', $check, 'postgres' ], '>' => \$out, '2>' => \$err),
		"eight clients on three sessions, $mode protocol: the same answers")
	  or diag($err);
	like($out, qr{actually processed: 200/200}, '... all of them');
}
nothing_pinned($node, '... afterwards');
stop_pooler();

check_log($node);
$node->stop;
done_testing();
