# 032_failover.pl - a hot standby that is read while it replays, is copied, and takes over.
#
# A primary is written to and vacuumed; sessions on its standby look ahead, forced.
#   1. What they read agrees with a sequential scan of the same snapshot, or is canceled by replay; and the
#      server has counted as many conflicts as sessions have seen.
#   2. pg_basebackup of the standby, meanwhile, gives another one, which follows.
#   3. The standby is promoted under this load: sessions that look ahead go on across it, write, and agree;
#      what was copied follows the new primary, and is equal to it.  So does the old primary, rewound.
#
# 007_standby.pl is about pins and dead entries on a standby; 029_replica.pl about crashes.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Replica;
use Test::More;
use Time::HiRes qw(time usleep);

my @contrib = qw(amcheck pg_visibility pg_buffercache);
my $primary = new_server(
	'primary',
	streaming => 1,
	init => ['-k'],
	conf => "fsync = off\nwal_log_hints = on\nwal_keep_size = 256MB\nshared_buffers = 4MB\nmax_standby_streaming_delay = 100ms\n"
	  . "hot_standby_feedback = off\npg_lookahead.explain = off\n",
	extensions => \@contrib);
$primary->safe_psql('postgres', random_table('t', 6000));
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

my $digest = 'count(*), sum(id), sum(a::bigint), sum(b), sum(length(w))';
my @orders = ('a, id', 'a DESC, id DESC', 'b, id');

# ---- the load ------------------------------------------------------------------

my $write = $primary->basedir . '/write.sql';
append_to_file($write, q(
\set a random(1, 5900)
UPDATE t SET a = (a * 31 + 7) % 60000, b = (b + 1) % 10 WHERE id BETWEEN :a AND :a + 15;
DELETE FROM t WHERE id = :a AND id % 10 = 0;
INSERT INTO t SELECT 1 + (SELECT max(id) FROM t), :a * 7, :a % 10, 'new' WHERE :a % 5 = 0;
));
my $vacuum = $primary->basedir . '/vacuum.sql';
append_to_file($vacuum, "VACUUM t;\n\\sleep 50 ms\n");

# pgbench that goes on until it is told to stop, or its server is gone
sub start_load
{
	my ($node, @scripts) = @_;
	my @pids;

	for my $script (@scripts)
	{
		my $pid = fork() // die 'cannot fork';

		if ($pid == 0)
		{
			open(STDOUT, '>', "$script.out") && open(STDERR, '>&', \*STDOUT) || die $!;
			exec 'pgbench', '-n', '-c', 1, '-T', 600, '-f', $script, '-d', $node->connstr('postgres');
		}
		push @pids, $pid;
	}
	return @pids;
}

sub stop_load
{
	my ($node, @pids) = @_;

	kill 'INT', @pids;
	waitpid($_, 0) for @pids;
	$node->poll_query_until('postgres', q(SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'))
	  or die 'pgbench does not end';
	return;
}

# Read all of it in one snapshot, in several ways.
sub read_all
{
	my ($node, $round, %p) = @_;
	my @pause = $p{slow} ? 'DO $$ BEGIN PERFORM pg_sleep(0.2); END $$' : ();

	return read_in_several_ways($node, $round, "SELECT $digest FROM t",
		map { ("SELECT $digest FROM (SELECT * FROM t ORDER BY $_ OFFSET 0) s", @pause) } @orders);
}

# What a short query on the standby finds, which replay may cancel as well: asked until it does not.
sub beside_replay
{
	my ($ask) = @_;

	for (1 .. 100)
	{
		my $result = eval { $ask->() };

		return $result if $@ eq '';
		die $@ if $@ !~ /conflict with recovery/;
		usleep(100_000);
	}
	die 'canceled a hundred times';
}

# ---- 1. reads and conflicts ------------------------------------------------------

my $counted = q(SELECT sum(confl_tablespace + confl_lock + confl_snapshot + confl_bufferpin + confl_deadlock) FROM pg_stat_database_conflicts);
my $before = $standby->safe_psql('postgres', $counted);
my @load = start_load($primary, $write, $vacuum);
my %result = (same => 0, canceled => 0);
my ($round, $wrong, $copied) = (0, '', undef);
for my $end (time + $PostgreSQL::Test::Utils::timeout_default)
{
	while (time < $end && ($round < 12 || !$result{same} || !$result{canceled}))
	{
		# however long a read takes, it comes to its end where nothing is replayed meanwhile
		my $paused = !$result{same} && $round > 12;

		beside_replay(sub { $standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()') }) if $paused;
		my $what = read_all($standby, $round, slow => $round % 2);

		beside_replay(sub { $standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()') }) if $paused;
		$round++;
		if (exists $result{$what}) { $result{$what}++; }
		else { $wrong .= "round $round: $what\n"; }
		# ---- 2. a copy, in the middle
		if ($round == 6)
		{
			my $done = eval { $standby->backup('copy'); 1 };
			ok($done, 'pg_basebackup of the standby') or diag($@);
		}
	}
}
is($wrong, '', "reads on the standby agree with a sequential scan ($result{same} times; canceled $result{canceled} times)");
cmp_ok($result{same}, '>', 0, '... some came to their end');
cmp_ok($result{canceled}, '>', 0, '... and some were in the way of replay');
# (a backend tells what it has counted when it exits, and the query that asks may be canceled itself)
my ($logged, $server) = (0, -1);
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	my ($ret, $out) = $standby->psql('postgres', "SELECT ($counted) - $before");

	$server = $out if $ret == 0;
	$logged = () = slurp_file($standby->logfile) =~ /due to conflict with recovery/g;
	last if $server == $logged;
	usleep(100_000);
}
is($server, $logged, '... as many as the server has counted')
  or diag($standby->safe_psql('postgres', 'SELECT * FROM pg_stat_database_conflicts'));
# (each of these has read the table in three ways)
cmp_ok(beside_replay(sub { activated($standby) }), '>=', @orders * $result{same}, 'look-ahead was at work');

my $second = PostgreSQL::Test::Cluster->new('second');
$second->init_from_backup($standby, 'copy', has_streaming => 1);
$second->append_conf('postgresql.conf', "recovery_target_timeline = 'latest'\n");
$second->start;
$primary->safe_psql('postgres', 'SELECT txid_current()');
beside_replay(sub { $standby->wait_for_catchup($second, 'replay', $standby->lsn('replay')); 1 });
ok(1, 'what was copied follows the standby');
my %there = (same => 0, canceled => 0);
my $other = '';
for my $try (1 .. 20)
{
	# (as above)
	beside_replay(sub { $second->safe_psql('postgres', 'SELECT pg_wal_replay_pause()') }) if $try == 10;
	my $what = read_all($second, $try);

	if (exists $there{$what}) { $there{$what}++; }
	else { $other .= "$what\n"; }
	last if $there{same} >= 2;
}
beside_replay(sub { $second->safe_psql('postgres', 'SELECT pg_wal_replay_resume()') });
is($other, '', '... nothing else but its answers');
cmp_ok($there{same}, '>', 0, '... and its answers agree');

# ---- 3. promotion -----------------------------------------------------------------

# a session that looks ahead, whose cursor stands in the middle of a scan while the server is promoted; nothing is
# left to replay that would be in its way
stop_load($primary, @load);
$primary->wait_for_catchup($standby);
$primary->stop('immediate');
my $session = open_session($standby, forced() . 'BEGIN ISOLATION LEVEL REPEATABLE READ');
my $all = ask($session, "SELECT $digest FROM (SELECT * FROM t ORDER BY a, id OFFSET 0) s");
ask($session, 'DECLARE c CURSOR FOR SELECT id, length(w) FROM t ORDER BY a, id');
my $rows = () = ask($session, 'FETCH 100 FROM c') =~ /^\d+\|/mg;
is($rows, 100, 'a cursor is open');
$standby->promote;
$rows += () = ask($session, 'FETCH ALL FROM c') =~ /^\d+\|/mg;
is($rows, (split /\|/, $all)[0], '... and reads its rows after promotion');
is(ask($session, "SELECT $digest FROM (SELECT * FROM t ORDER BY a DESC, id DESC OFFSET 0) s"), $all, '... what it saw before');
ask($session, 'COMMIT');
is(ask($session, "INSERT INTO t SELECT i, i * 7 % 60000, i % 10, 'promoted' FROM generate_series(100001, 100500) i; SELECT count(w) FROM (SELECT w FROM t WHERE id > 100000 ORDER BY id OFFSET 0) s"),
	500, '... and can write then');
$session->quit;
@load = start_load($standby, $write, $vacuum);
usleep(500_000);
is(read_all($standby, $_), 'same', "reads under load after promotion, $_") for 0 .. 3;
stop_load($standby, @load);

# everybody follows the new primary
ok(caught_up($standby, 'second'), 'what was copied follows the new primary');
$primary->start;
$primary->stop('fast');
# before 17 the source's control file tells of the new timeline only then
$standby->safe_psql('postgres', 'CHECKPOINT');
command_ok(
	[ 'pg_rewind', '--target-pgdata', $primary->data_dir, '--source-server', $standby->connstr('postgres') ],
	'the old primary is rewound');
$primary->append_conf('postgresql.conf', 'port = ' . $primary->port . "\nunix_socket_directories = '" . $primary->host . "'\n"
	  . "primary_conninfo = '" . $standby->connstr . " application_name=primary'\n");
$primary->set_standby_mode();
$primary->start;
ok(caught_up($standby, 'primary'), '... and follows');
# who reads the new primary may prune pages, and replay of that shall wait for who reads the others
for my $node ($second, $primary)
{
	$node->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\n");
	$node->reload;
}
my %columns = (t => 'id, a, b, w');
same_tables($standby, $_, \%columns) for ($second, $primary);
is(read_all($_, 1), 'same', 'reads agree on ' . $_->name) for ($second, $primary);
nothing_pinned($standby, 'the new primary');
for my $node ($standby, $second, $primary)
{
	check_structure($node, $node->name);
	check_log($node, $node->name . ': server log is clean');
}
$_->stop for ($second, $primary, $standby);
check_checksums($_) for ($standby, $second, $primary);

done_testing();
