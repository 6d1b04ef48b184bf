# 029_replica.pl - replicas are equal to their source, whatever happens to either.
#
# A primary, its physical standby, a standby of that, and a logical subscriber with two subscriptions:
# one by binary and two-phase, one by text, to which tables come and go.  While a mixed load
# runs (ReplicaLoad.pm), servers crash and restart, processes are killed, replay pauses, subscriptions
# are disabled and changed, settings change to values that are small or off.  Then:
#   1. Both standbys and the subscriber are equal to their source, their indexes, visibility maps
#      and checksums are whole; logs have nothing unexpected, directories nothing left over.
#   2. A standby that is promoted under load is there promptly, its standby follows, and the old
#      primary, which went on alone and then crashed, is rewound and follows, too.
#
# LA_REPLICA_SECONDS: how long the load runs in 1; without it, the script is skipped.  LA_REPLICA_SEED repeats the
# order of events of a run, though not its timing.  LA_REPLICA_STOCK=1 runs without the library, which
# tests the test.
#
# Settings and views of look-ahead in replicas are used if they are there.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Replica;
use ReplicaLoad;
use Test::More;
use Time::HiRes qw(time usleep);

my $seconds = $ENV{LA_REPLICA_SECONDS}
  or plan skip_all => 'LA_REPLICA_SECONDS is not set';
my $seed = srand($ENV{LA_REPLICA_SEED} || int(time) ^ $$);
my $preload = $ENV{LA_REPLICA_STOCK} ? 0 : 1;
note("LA_REPLICA_SECONDS=$seconds LA_REPLICA_SEED=$seed LA_REPLICA_STOCK=" . !$preload);

# ---- servers -------------------------------------------------------------------

my $conf = q(
	autovacuum = on
	autovacuum_naptime = 1s
	checkpoint_timeout = 30s
	bgwriter_lru_maxpages = 100
	shared_buffers = 4MB
	max_connections = 30
	max_worker_processes = 20
	max_prepared_transactions = 20
	max_wal_senders = 15
	max_replication_slots = 15
	max_logical_replication_workers = 10
	max_sync_workers_per_subscription = 2
	wal_keep_size = 256MB
	max_wal_size = 128MB
	logical_decoding_work_mem = 64kB
	wal_retrieve_retry_interval = 100ms
	wal_receiver_status_interval = 1
	max_standby_streaming_delay = 500ms
	max_standby_archive_delay = 500ms
	deadlock_timeout = 200ms
	dynamic_shared_memory_type = mmap
	restart_after_crash = on
	log_statement = none
	log_replication_commands = off
	log_autovacuum_min_duration = -1
	log_checkpoints = off
	log_error_verbosity = default
);
my @wanted = qw(amcheck pg_visibility);

my $primary = new_server('primary', preload => $preload, streaming => 'logical', init => ['--data-checksums'], conf => $conf);
my $major = int($primary->safe_psql('postgres', 'SHOW server_version_num') / 10000);

# Stock 18 fails an assertion of logical decoding when a transaction has only subtransactions, is spilled
# to disk for want of memory, and found to be aborted before its end is decoded.
if ($major == 18 && $primary->safe_psql('postgres', 'SHOW debug_assertions') eq 'on')
{
	$primary->append_conf('postgresql.conf', 'logical_decoding_work_mem = 64MB');
	$primary->reload;
}
my %available = map { $_ => 1 } split /\n/, $primary->safe_psql('postgres', 'SELECT name FROM pg_available_extensions');
$primary->safe_psql('postgres', "CREATE EXTENSION $_") for grep { $available{$_} } @wanted;
create_published($primary);

my $standby = standby_of($primary, 'standby');
my $cascade = standby_of($standby, 'cascade');
my $subscriber = new_server('subscriber', preload => $preload, streaming => 'logical', init => ['--data-checksums'], conf => $conf);
$subscriber->safe_psql('postgres', "CREATE EXTENSION $_") for grep { $available{$_} } @wanted;
create_subscribed($subscriber);

my $parallel = $major >= 16 ? 'parallel' : 'on';
my @standbys = ($standby, $cascade);
my @all = ($primary, @standbys, $subscriber);

# A running standby of a server, with a slot there.
sub standby_of
{
	my ($source, $name) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$source->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('$name', true)");
	$source->backup($name);
	$node->init_from_backup($source, $name, has_streaming => 1);
	$node->append_conf('postgresql.conf', "primary_slot_name = '$name'");
	start_again($node);
	return $node;
}

for my $pub (qw(pub_two pub_sync))
{
	my $options = $pub eq 'pub_two' ? "binary = true, two_phase = true, streaming = $parallel" : 'streaming = on';

	$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION $pub CONNECTION '"
		  . $primary->connstr . " dbname=postgres' PUBLICATION $pub WITH ($options)");
}
my %published = published();
my @subscriptions = sort keys %published;

# what is there after a stop, of which nothing more may be at the end
my %files;
for my $node (@all)
{
	$files{ $node->name } = [ top_files($node) ];
	$node->stop;
	push @{ $files{ $node->name } }, top_files($node);
	start_again($node);
}
$subscriber->wait_for_subscription_sync;

# ---- what happens --------------------------------------------------------------

my %seen;						# view -> column -> highest value
my $synced = 0;					# tables sync_N so far
my %tables_synced;

# What is started while a load runs
my @sizes = qw(64kB 64kB 256kB 1MB);
my %changes = (
	'pg_lookahead.enable_replay' => [ [@standbys], 'on', 'off' ],
	'pg_lookahead.enable_apply' => [ [$subscriber], 'on', 'off' ],
	'pg_lookahead.apply_queue_size' => [ [$subscriber], @sizes ],
	'pg_lookahead.max_distance' => [ [@all], 1, 8, 256 ],
	'pg_lookahead.max_leaf_pages' => [ [@all], 2, 8 ],
	'pg_lookahead.force' => [ [@all], 'on' ],
	'pg_lookahead.enable_write' => [ [ $primary, $subscriber ], 'on', 'off' ],
	'pg_lookahead.enable_btree_insert' => [ [ $primary, $subscriber ], 'on', 'off' ],
	'recovery_prefetch' => [ [@all], 'on', 'off', 'try' ],
	'maintenance_io_concurrency' => [ [@all], 0, 1, 100 ],
	'wal_decode_buffer_size' => [ [@all], '64kB', '2MB' ],
	'full_page_writes' => [ [$primary], 'off', 'on' ],
	'wal_compression' => [ [$primary], 'pglz' ],
	'wal_consistency_checking' => [ [$primary], 'all', 'heap,btree' ],
	'hot_standby_feedback' => [ [@standbys], 'on' ],
	'max_standby_streaming_delay' => [ [@standbys], 0, '2s' ],
	'debug_logical_replication_streaming' => [ [ $primary, $subscriber ], 'immediate' ],
	'max_parallel_apply_workers_per_subscription' => [ [$subscriber], 0, 1 ],
	'work_mem' => [ [@all], '64kB' ]);

# Not both in a run: without images that are to be restored, the crash recovery of stock meets empty
# pages of relations that will be dropped, and cannot check those.
delete $changes{ one_of('full_page_writes', 'wal_consistency_checking') };

sub one_of
{
	return $_[ int(rand(@_)) ];
}

sub change_settings
{
	for my $name (map { one_of(sort keys %changes) } 1 .. 3)
	{
		my ($nodes, @values) = @{ $changes{$name} };

		set_randomly(one_of(@$nodes), $name, @values);
	}
	return;
}

# Crashes of one server, or of some at a time.
sub crash
{
	my @nodes = rand() < 0.3 ? grep { rand() < 0.6 } @all : ();

	@nodes = (one_of(@all)) unless @nodes;
	@nodes = reverse @nodes if rand() < 0.5;
	say_what('crash of ' . join(', ', map { $_->name } @nodes));
	finish_prepared($primary, crash_under(@nodes));
	return;
}

sub restart
{
	my $node = one_of(@all);

	say_what('restart of ' . $node->name);
	# it ends when all is sent, which takes long where each transaction gets a worker of its own
	try($node, 'ALTER SYSTEM RESET debug_logical_replication_streaming');
	try($node, 'SELECT pg_reload_conf()');
	$node->stop('fast');
	start_again($node);
	return;
}

sub kill_something
{
	my ($node, $type) = @{
		one_of(
			[ $primary, 'walsender' ], [ $primary, 'client backend' ], [ $primary, 'checkpointer' ],
			[ $standby, 'walreceiver' ], [ $standby, 'walsender' ], [ $cascade, 'walreceiver' ],
			[ $subscriber, 'logical replication' ], [ $subscriber, 'client backend' ], [ $standby, 'pg_lookahead' ], [ $subscriber, 'pg_lookahead' ])
	};
	my $killed_at = time;

	say_what('kill: ' . $node->name . ", $type" . (kill_process($node, $type) ? '' : ': none'));
	finish_prepared($primary, $killed_at) if $node == $primary;
	return;
}

# The end of a process that is a matter of course, and begins again.
sub terminate_something
{
	my ($node, $type) = @{
		one_of([ $primary, 'walsender' ], [ $standby, 'walsender' ], [ $subscriber, 'logical replication' ], [ $primary, 'client backend' ])
	};

	say_what('terminate: ' . $node->name . ", $type");
	try($node, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type ~ '$type' AND pid <> pg_backend_pid()");
	return;
}

sub restart_walreceiver
{
	my $node = one_of(@standbys);
	my $pid = insist($node, 'SELECT pid FROM pg_stat_wal_receiver');

	say_what('walreceiver of ' . $node->name);
	kill 'TERM', $pid if $pid =~ /^\d+$/;
	return;
}

sub pause
{
	my $node = one_of(@standbys);

	say_what('pause of ' . $node->name);
	insist($node, 'SELECT pg_wal_replay_pause()');
	usleep(1_000_000 * rand(3));
	insist($node, 'SELECT pg_wal_replay_resume()');
	return;
}

sub change_subscription
{
	my $subscription = one_of(@subscriptions);
	my $what = one_of('disable', 'disable', 'binary', 'streaming', 'streaming');

	say_what("$subscription: $what");
	if ($what eq 'disable')
	{
		insist($subscriber, "ALTER SUBSCRIPTION $subscription DISABLE");
		usleep(1_000_000 * rand(2));
		insist($subscriber, "ALTER SUBSCRIPTION $subscription ENABLE");
	}
	else
	{
		my $value = $what eq 'binary' ? one_of('on', 'off') : one_of('on', 'off', $parallel);

		insist($subscriber, "ALTER SUBSCRIPTION $subscription SET ($what = $value)");
	}
	return;
}

# A new table, which is copied while it changes; of five, the oldest goes.
sub synchronize_table
{
	my $table = 'sync_' . ++$synced;

	say_what("synchronization of $table");
	insist($primary, "CREATE TABLE $table (id serial PRIMARY KEY, v int);
		INSERT INTO $table (v) SELECT g FROM generate_series(1, 5000) g;
		ALTER PUBLICATION pub_sync ADD TABLE $table;");
	insist($subscriber, "CREATE TABLE $table (v int, id int PRIMARY KEY); CREATE INDEX ON $table (v)");
	$tables_synced{$table} = 'id, v';
	insist($subscriber, 'ALTER SUBSCRIPTION pub_sync REFRESH PUBLICATION');
	if (keys %tables_synced > 5)
	{
		my ($oldest) = sort { length $a <=> length $b || $a cmp $b } keys %tables_synced;

		delete $tables_synced{$oldest};
		insist($primary, "ALTER PUBLICATION pub_sync DROP TABLE $oldest");
		# what is under way for it must not come to a table that is not there
		caught_up($primary, 'pub_sync') or die 'the subscriber has stopped';
		insist($subscriber, 'ALTER SUBSCRIPTION pub_sync REFRESH PUBLICATION');
		insist($subscriber, "DROP TABLE $oldest");
		insist($primary, "DROP TABLE $oldest");
	}
	return;
}

sub checkpoint
{
	my $node = one_of(@all);

	say_what('checkpoint of ' . $node->name);
	insist($node, 'CHECKPOINT');
	return;
}

# What may happen, and how often.
my @events = (
	(\&crash) x 5, (\&restart) x 2, (\&kill_something) x 2, (\&terminate_something) x 2,
	(\&restart_walreceiver) x 2, (\&pause) x 2, (\&change_subscription) x 3,
	(\&synchronize_table) x 2, (\&checkpoint) x 2, (\&change_settings) x 4);

sub watch
{
	watch_views($_, 'pg_stat_lookahead_replay', $seen{replay} //= {}) for @standbys;
	watch_views($subscriber, 'pg_stat_lookahead_apply', $seen{apply} //= {});
	return;
}

# How many bytes of WAL is the last one behind?
sub behind
{
	return insist($primary,
		'SELECT coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), coalesce(confirmed_flush_lsn, restart_lsn))), 0)::bigint
			FROM pg_replication_slots');
}

sub everything_caught_up
{
	my ($name) = @_;

	my $all = ok(caught_up($primary, 'standby'), "$name: the standby has caught up");

	$all &= ok(caught_up($standby, 'cascade'), "$name: so has its standby");
	$all &= ok(caught_up($primary, $_), "$name: so has subscription $_") for @subscriptions;
	return if $all;
	say_activity($_), check_logs($_) for @all;
	die 'what has not caught up cannot be compared';
}

# A replica that falls behind for long would fill the disk: have the load wait then, while events go
# on.  Returns how long it has waited, when it goes on.
my $held;

sub let_catch_up
{
	my $limit = 150_000_000;
	my $behind = behind();

	if (!defined $held && $behind > $limit)
	{
		say_what('the load waits');
		hold_load(1);
		$held = time;
	}
	elsif (defined $held && $behind < $limit / 2)
	{
		my $waited = time - $held;

		say_what('the load goes on');
		hold_load(0);
		$held = undef;
		return $waited;
	}
	return 0;
}

# ---- 1. load -------------------------------------------------------------------

sub load_primary
{
	my ($node) = @_;

	start_load($node, 'dml', 3);
	start_load($node, 'large', 1);
	start_load($node, 'ddl', 1);
	return;
}

sub check_load
{
	for my $done (stop_load(@_))
	{
		cmp_ok($done->[1], '>', 0, "load of $done->[0]: transactions");
		note("$done->[0]: $done->[1] transactions");
	}
	return;
}

# a minute does not come to all of them by chance
set_randomly($subscriber, 'pg_lookahead.apply_queue_size', ('64kB') x 3);
change_settings() for 1 .. 3;
load_primary($primary);
start_load($_, 'reader', 1) for (@standbys, $subscriber);
start_load($subscriber, 'keeper', 1);
my $end = time + $seconds;
my $happened = 0;
while (time < $end)
{
	# now and then for long enough that replicas are at their work, without anything happening
	my $until = time + (rand() < 0.2 ? 5 : rand(1.5));

	while (time < $until && time < $end)
	{
		watch();
		usleep(200_000);
	}
	one_of(@events)->();
	finish_prepared($primary, time - 20);
	$end += let_catch_up();
	$happened++;
}
note("$happened events");
check_load();
hold_load(0);

# ---- 1. equal ------------------------------------------------------------------

# One more event would be too much: what is compared shall stand still.
for my $node ($primary, $subscriber)
{
	insist($node, 'ALTER SYSTEM SET autovacuum = off');
	insist($node, 'SELECT pg_reload_conf()');
}
insist($subscriber, "ALTER SUBSCRIPTION $_ ENABLE") for @subscriptions;
finish_prepared($primary, time + 1);
$primary->safe_psql('postgres', 'DROP DATABASE IF EXISTS own_db');
comes_true($subscriber, "SELECT count(*) = 0 FROM pg_subscription_rel WHERE srsubstate <> 'r'")
  or die 'a table is not synchronized';
everything_caught_up('at the end');
same_tables($primary, $subscriber, { %{ $published{pub_two} }, %{ $published{pub_sync} }, %tables_synced });
is($_->safe_psql('postgres', 'SELECT sum(amount) FROM acc'), 0, $_->name . ': nothing is lost, nothing gained') for @all;
is($_->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts'), 0, $_->name . ': nothing is left prepared') for @all;
same_dump('standby', $primary, $standby);
same_dump('cascading standby', $primary, $standby, $cascade);
check_structure($_, $_->name) for @all;

my %views = (replay => [ 'pg_stat_lookahead_replay', $standby ], apply => [ 'pg_stat_lookahead_apply', $subscriber ]);
for my $kind (sort keys %views)
{
	my ($view, $node) = @{ $views{$kind} };
  SKIP:
	{
		skip "$view is not there", 1 unless has_view($node, $view);
		watch();
		my %highest = %{ $seen{$kind} };

		note("$view: " . join(', ', map { "$_ $highest{$_}" } sort keys %highest));
		# apart from what names a row
		cmp_ok(scalar(grep { !/id$/ && $highest{$_} > 0 } keys %highest), '>', 2, "$view shows activity");
	}
}

# The subscriber has done its part.
insist($subscriber, "ALTER SUBSCRIPTION $_ DISABLE; ALTER SUBSCRIPTION $_ SET (slot_name = NONE); DROP SUBSCRIPTION $_") for @subscriptions;
comes_true($primary, "SELECT count(*) = 0 FROM pg_replication_slots WHERE slot_type = 'logical' AND active");
is( $primary->safe_psql('postgres', "SELECT string_agg(slot_name, ' ' ORDER BY slot_name) FROM pg_replication_slots WHERE slot_type = 'logical'"),
	join(' ', @subscriptions),
	'no slot of a table synchronization is left');
$primary->safe_psql('postgres', "SELECT pg_drop_replication_slot('$_')") for @subscriptions;
$subscriber->stop;
check_checksums($subscriber);
check_files($subscriber, $files{subscriber});

# ---- 2. promotion under load ---------------------------------------------------

# What is set to be slow is not what is looked at here.
for my $node ($primary, @standbys)
{
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
	$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
}
# A standby looks whether it is to be promoted when it has replayed all that it has received; how far
# it is behind shall be a matter of replay, not of the sessions that it waits for.
for my $node (@standbys)
{
	$node->safe_psql('postgres', "ALTER SYSTEM SET max_standby_streaming_delay = '0'");
	$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
}
load_primary($primary);
start_load($_, 'reader', 1) for @standbys;
usleep(5_000_000);
ok(caught_up($primary, 'standby'), 'the standby keeps up');
my $to_replay = insist($standby, 'SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())');
my $started = time;
$standby->promote;
my $took = time - $started;
note(sprintf('promotion took %.1f s, with %d bytes to replay', $took, $to_replay));
cmp_ok($took, '<', 30, 'promotion under load is prompt');
is($standby->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type IN ('startup', 'walreceiver')"),
	0, 'no process of recovery is left');

# The old primary goes on for a while, alone, while the new one has a load, too.
start_load($standby, 'dml', 2);
usleep(2_000_000);
$primary->safe_psql('postgres', "CREATE TABLE lost AS SELECT g FROM generate_series(1, 10000) g");
$primary->stop('immediate');
check_load($primary);
$standby->safe_psql('postgres', 'CREATE TABLE kept (a int); INSERT INTO kept VALUES (1); CHECKPOINT');
$standby->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('primary', true)");
ok(comes_true($cascade, "SELECT to_regclass('kept') IS NOT NULL"), 'the cascading standby follows the new primary');

# pg_rewind ends recovery of the crashed server first, in a process without a postmaster
my $own_conf = slurp_file($primary->data_dir . '/postgresql.conf');
$primary->command_ok(
	[
		'pg_rewind', '--no-sync', '-D', $primary->data_dir,
		'--source-server', $standby->connstr('postgres')
	],
	'pg_rewind');
open my $file, '>', $primary->data_dir . '/postgresql.conf' or die $!;
print $file $own_conf, "primary_slot_name = 'primary'\n";
close $file;
$primary->enable_streaming($standby);
start_again($primary);
check_load();

$standby->safe_psql('postgres', 'ALTER SYSTEM SET autovacuum = off');
$standby->safe_psql('postgres', 'SELECT pg_reload_conf()');
finish_prepared($standby, time + 1);
$standby->safe_psql('postgres', 'DROP DATABASE IF EXISTS own_db');
ok(caught_up($standby, 'cascade'), 'the cascading standby has caught up');
ok(caught_up($standby, 'primary'), 'the old primary has caught up');
is($primary->safe_psql('postgres', "SELECT pg_is_in_recovery(), to_regclass('lost') IS NULL, to_regclass('kept') IS NOT NULL"),
	't|t|t', 'the old primary is what it should be');
same_dump('old primary', $standby, $primary);
same_dump('cascading standby of the new primary', $standby, $cascade);
check_structure($_, $_->name . ', after the promotion') for ($standby, $cascade, $primary);
$standby->safe_psql('postgres', "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active");

# ---- the end -------------------------------------------------------------------

$_->stop for ($cascade, $primary, $standby);
check_checksums($_) for ($cascade, $primary, $standby);
check_files($cascade, $files{cascade});
check_files($standby, $files{standby}, 'cascade', 'primary');
check_files($primary, $files{primary});
check_logs($_) for @all;

done_testing();
