# 027_recovery.pl - recovery: look-ahead that chooses its depth, and what is seen of it.
#
# The server's own functions replay every record.  Checked here is that they do so in every kind of
# recovery, that its end puts everything back, and that the figures are those of what happened:
#   1. After a crash: a line in the log, and the view; wal_level = minimal; switched off.
#   2. WAL that ends too early, or is damaged: replay ends where stock's does.
#   3. On a standby: what it waits for, how far it is behind; pause, conflict, WAL receiver.
#   4. Settings: what is set is respected, also after a reload; what is not is learnt.
#   5. Promotion with a cascaded standby, which does not have the library; pg_rewind.
#   6. Archive recovery up to a target, where it pauses.
#   7. A primary without the library.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $digest = 'SELECT count(*), sum(id), sum(a::bigint), sum(length(w)), md5(string_agg(w, \'\' ORDER BY id)) FROM t';
my $update = "UPDATE t SET w = w || 'x', a = a + 1 WHERE id % 3 = 0";

sub replay
{
	my ($node, $columns) = @_;

	return $node->safe_psql('postgres', "SELECT $columns FROM pg_stat_lookahead_replay");
}

sub soon
{
	my ($node, $condition, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($node->poll_query_until('postgres', "SELECT $condition FROM pg_stat_lookahead_replay"), $name)
	  || diag(join "\n", replay($node, '*'));
}

sub same
{
	my ($one, $other, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($one->safe_psql('postgres', $digest), $other->safe_psql('postgres', $digest), $name);
}

sub log_since
{
	my ($node, $position) = @_;

	return substr(slurp_file($node->logfile), $position);
}

# A server on a copy of a stopped one's files.  Parameters: change (sub of its directory), conf.
sub copy_of
{
	my ($node, $name, %p) = @_;
	my $copy = PostgreSQL::Test::Cluster->new($name);
	my $directory = $node->backup_dir . "/$name";

	mkdir $node->backup_dir;
	system_or_bail('cp', '-a', $node->data_dir, $directory);
	unlink "$directory/postmaster.pid";
	$copy->init_from_backup($node, $name);
	$p{change}->($copy->data_dir) if $p{change};
	$copy->append_conf('postgresql.conf', $p{conf} // '');
	$copy->start;
	return $copy;
}

my $line = qr/LOG:  pg_lookahead: replayed [\d.]+ MB of WAL in [\d.]+ s: [\d.]+ MB\/s, \d+ records\/s, \d+ blocks\/s\n.*DETAIL:  Waited/;

# ---- 1. after a crash ----------------------------------------------------------

my $node = new_server('crash', conf => "wal_level = minimal\nmax_wal_senders = 0\nfull_page_writes = off\nfsync = off\n");

is(replay($node, 'state IS NULL AND records IS NULL AND depth IS NULL'), 't', 'no recovery, no figures');
is($node->safe_psql('postgres', 'SHOW wal_decode_buffer_size'), '4MB', 'the decode buffer is larger by default');
$node->safe_psql('postgres', random_table('t', 3000));
$node->safe_psql('postgres', "CHECKPOINT; BEGIN; CREATE TABLE minimal AS SELECT i FROM generate_series(1, 1000) i; COMMIT; $update");
my $expected = $node->safe_psql('postgres', $digest);
my $end = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
$node->stop('immediate');
my $logged = -s $node->logfile;
$node->start;
like(log_since($node, $logged), $line, 'a line in the log');
is($node->safe_psql('postgres', $digest), $expected, 'the rows are there');
is($node->safe_psql('postgres', 'SELECT count(*) FROM minimal'), 1000, '... and those of wal_level = minimal');
is(replay($node, q(state, ended >= started, waiting_for IS NULL, bytes_behind IS NULL, records > 1000, blocks > 1000,
	wal_rate_1 > 0, record_rate_5 > 0, block_rate_15 > 0, busy_time > 0, pauses, conflict_waits)),
	'ended|t|t|t|t|t|t|t|t|t|0|0', 'figures of recovery');
is(replay($node, 'blocks_advised <= blocks, blocks_on_time + blocks_late + blocks_wasted = blocks_advised, blocks_on_time + blocks_late <= blocks_read'),
	't|t|t', '... that are consistent');
is($node->safe_psql('postgres', 'SELECT abs(r.blocks_advised - p.prefetch) FROM pg_stat_lookahead_replay r, pg_stat_recovery_prefetch p'),
	'0', 'blocks advised are those of the server');
is($node->safe_psql('postgres', q(SELECT setting = boot_val FROM pg_settings WHERE name = 'maintenance_io_concurrency')),
	't', 'the setting itself is as it was');

$node->append_conf('postgresql.conf', "pg_lookahead.enable_replay = off\nwal_decode_buffer_size = 1MB\n");
$node->safe_psql('postgres', $update);
$expected = $node->safe_psql('postgres', $digest);
$node->stop('immediate');
$logged = -s $node->logfile;
$node->start;
unlike(log_since($node, $logged), qr/pg_lookahead: replayed/, 'switched off: no line');
is(replay($node, 'state, records, depth'), 'ended|0|0', '... no figures');
is($node->safe_psql('postgres', 'SHOW wal_decode_buffer_size'), '1MB', 'a size that is set stays');
is($node->safe_psql('postgres', $digest), $expected, 'rows as in stock');
$node->append_conf('postgresql.conf', "pg_lookahead.enable_replay = on\nrecovery_prefetch = off\n");
$node->safe_psql('postgres', $update);
$node->stop('immediate');
$node->start;
is(replay($node, 'depth, records > 0, blocks_advised'), '0|t|0', 'recovery_prefetch = off stays');

# ---- 2. the end of WAL ----------------------------------------------------------

# The server that is copied keeps all that it changes in shared buffers: a page that it had written
# would be newer than the WAL that is left, and could not be written again.
$node->append_conf('postgresql.conf', "shared_buffers = 64MB\n");
$node->restart;
# (where the transactions of the second half begin, and the segment of the third)
$node->safe_psql('postgres', 'CHECKPOINT');
$node->safe_psql('postgres', $update);
my $middle = $node->safe_psql('postgres', q(SELECT pg_walfile_name(l) || ' ' || (pg_walfile_name_offset(l)).file_offset FROM pg_current_wal_insert_lsn() l));
$node->safe_psql('postgres', $update);
$node->safe_psql('postgres', "SELECT pg_switch_wal(); $update");
my $last = $node->safe_psql('postgres', 'SELECT pg_walfile_name(pg_current_wal_insert_lsn())');
$node->stop('immediate');

my ($file, $offset) = split / /, $middle;
my %damages = (
	corrupt => sub { overwrite("$_[0]/pg_wal/$file", $offset + 4096, "\xa5" x 64) },
	torn => sub { overwrite("$_[0]/pg_wal/$file", $offset + 8192, "\0" x 65536) },
	missing => sub { unlink "$_[0]/pg_wal/$last" or die $!; });
for my $damage (sort keys %damages)
{
	my $ours = copy_of($node, "${damage}_ours", change => $damages{$damage}, conf => "recovery_prefetch = try\n");
	my $stock = copy_of($node, "${damage}_stock", change => $damages{$damage}, conf => "recovery_prefetch = try\nshared_preload_libraries = ''\n");

	same($ours, $stock, "$damage WAL: replay ends where stock's does");
	like(slurp_file($ours->logfile), $line, '... and says so');
	$_->safe_psql('postgres', "$update; CHECKPOINT; VACUUM t") for ($ours, $stock);
	same($ours, $stock, '... and both servers work');
	check_log($ours);
	$_->stop for ($ours, $stock);
}
$node->start;

# ---- 3. a standby ----------------------------------------------------------------

my $primary = new_server(
	'primary',
	streaming => 1,
	conf => "fsync = off\nwal_log_hints = on\nwal_keep_size = 256MB\n"
	  . "archive_mode = on\narchive_command = 'true'\n");
$primary->safe_psql('postgres', random_table('t', 3000) . 'CREATE TABLE locked (i int);');
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\n");
$standby->start;

$primary->safe_psql('postgres', $update) for 1 .. 3;
$primary->wait_for_catchup($standby);
same($standby, $primary, 'the standby has what the primary has');
soon($standby, q(state = 'standby' AND waiting_for = 'wal' AND bytes_behind = 0 AND catch_up_time = 0 AND ended IS NULL), 'it waits for WAL, and is not behind');
# (on a busy machine that may be its first wait; it counts when it is over)
$primary->safe_psql('postgres', $update);
$primary->wait_for_catchup($standby);
is(replay($standby, 'records > 1000, blocks > 1000, wal_bytes > 100000, wal_rate_1 > 0, record_rate_1 > 0, block_rate_1 > 0, wal_waits > 0'),
	't|t|t|t|t|t|t', 'figures of a standby');
is($standby->safe_psql('postgres', q(SELECT pg_last_wal_replay_lsn() = replay_lsn FROM pg_stat_lookahead_replay)), 't', 'where it is');
my $waited = replay($standby, 'wal_wait_time');
soon($standby, "wal_wait_time > $waited + 200", 'a wait counts while it goes on');
soon($standby, 'wal_rate_1 < wal_rate_15', 'averages fade');

# paused
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$primary->safe_psql('postgres', $update);
$standby->poll_query_until('postgres', q(SELECT pg_get_wal_replay_pause_state() = 'paused'));
soon($standby, q(waiting_for = 'pause' AND bytes_behind > 100000), 'paused, and behind');
is($standby->safe_psql('postgres', q(SELECT count(*) FROM pg_lookahead_findings() WHERE section = 'replay')), 0, 'the report has nothing to say of a little');
$primary->safe_psql('postgres', "SELECT pg_switch_wal(); $update") for 1 .. 2;
soon($standby, 'bytes_behind > 16 * 1024 * 1024', 'far behind');
is($standby->safe_psql('postgres', q(SELECT code FROM pg_lookahead_findings() WHERE section = 'replay')), 'replay.behind', '... the report says so');
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
$primary->wait_for_catchup($standby);
soon($standby, q(waiting_for = 'wal' AND bytes_behind = 0), 'resumed');
same($standby, $primary, 'nothing is missing');

# delayed
# (a commit that replay comes to before it has read the setting is not delayed)
$standby->safe_psql('postgres', $_) for (q(ALTER SYSTEM SET recovery_min_apply_delay = '2s'), 'SELECT pg_reload_conf()');
ok(wait_until(sub {
		$primary->safe_psql('postgres', 'SELECT txid_current()');
		return replay($standby, q(waiting_for = 'pause')) eq 't';
	}), 'delayed');
$primary->wait_for_catchup($standby);
$standby->safe_psql('postgres', $_) for ('ALTER SYSTEM RESET recovery_min_apply_delay', 'SELECT pg_reload_conf()');
soon($standby, q(pauses > 0 AND pause_time >= 1000), '... and that has been counted');

# in conflict with a session
my $session = open_session($standby, 'BEGIN; SELECT count(*) FROM locked;');
$primary->safe_psql('postgres', 'TRUNCATE locked');
soon($standby, q(waiting_for = 'conflict'), 'replay waits for a session');
sleep 1;
ask($session, 'COMMIT');
$primary->wait_for_catchup($standby);
soon($standby, q(conflict_waits > 0 AND conflict_wait_time >= 500), '... and that has been counted');
$session->quit;

# the WAL receiver ends, and another one begins
my $records = replay($standby, 'records');
$standby->safe_psql('postgres', 'SELECT pg_terminate_backend(pid) FROM pg_stat_wal_receiver');
$primary->safe_psql('postgres', $update);
ok($standby->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_stat_wal_receiver)), 'another WAL receiver');
$primary->wait_for_catchup($standby);
soon($standby, "records > $records + 1000", 'replay goes on');

# ---- 4. settings -------------------------------------------------------------------

# A setting is noticed with a record that comes some time after it.
sub with_settings
{
	my ($settings, $condition, $name) = @_;

	$standby->safe_psql('postgres', $_) for (@$settings, 'SELECT pg_reload_conf()');
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	for (1 .. 50)
	{
		$primary->safe_psql('postgres', $update);
		$primary->wait_for_catchup($standby);
		return ok(1, $name) if replay($standby, $condition) eq 't';
	}
	diag(replay($standby, 'depth, depth_by, blocks_read, read_waits'));
	return ok(0, $name);
}

# Replay may come to some more records before it has read that enable_replay is off.  The number of
# those that it has counted.
sub no_longer_counted
{
	my $counted;

	wait_until(sub {
			$counted = replay($standby, 'records');
			$primary->safe_psql('postgres', $update);
			$primary->wait_for_catchup($standby);
			return replay($standby, 'records') eq $counted;
		});
	return $counted;
}

# Is the time in which enable_replay is off no pause?  Of a pause nothing is known but that it was long, and
# a busy machine stops any process for a while: so there may be others beside.
sub off_is_no_pause
{
	$standby->safe_psql('postgres', $_) for ('ALTER SYSTEM SET pg_lookahead.enable_replay = off', 'SELECT pg_reload_conf()');
	my $counted = no_longer_counted();
	my ($paused, $since) = (replay($standby, 'pause_time'), time);
	sleep 0.5;
	my $off = 1000 * (time - $since);
	$standby->safe_psql('postgres', $_) for ('ALTER SYSTEM RESET pg_lookahead.enable_replay', 'SELECT pg_reload_conf()');
	wait_until(sub {
			$primary->safe_psql('postgres', $update);
			$primary->wait_for_catchup($standby);
			return replay($standby, "records > $counted") eq 't';
		});
	return replay($standby, "pause_time - $paused < $off") eq 't';
}

# (there is no advice while reads are fast, and the operating system may have all blocks)
with_settings([ 'ALTER SYSTEM SET pg_lookahead.min_read_time = 0', 'ALTER SYSTEM SET maintenance_io_concurrency = 5' ],
	q(depth = 5 AND depth_by = 'setting'), 'a depth that is set stays');
my $default = $standby->safe_psql('postgres', q(SELECT boot_val FROM pg_settings WHERE name = 'maintenance_io_concurrency'));
with_settings([ "ALTER SYSTEM SET maintenance_io_concurrency = $default" ], qq(depth = $default AND depth_by = 'setting'), '... also if it is the default');
with_settings([], qq(depth = $default AND read_waits > 1000), '... although reads are waited for');
with_settings([ 'ALTER SYSTEM RESET maintenance_io_concurrency' ], qq(depth > $default AND depth_by = 'learning'), 'not set: more, if reads are waited for');
with_settings([ 'ALTER SYSTEM SET maintenance_io_concurrency = 7' ], q(depth = 7 AND depth_by = 'setting'), 'set again');
with_settings([ 'ALTER SYSTEM SET recovery_prefetch = off' ], 'depth = 0', 'no look-ahead, if that is set');
with_settings([ 'ALTER SYSTEM RESET recovery_prefetch', 'ALTER SYSTEM RESET maintenance_io_concurrency', q(ALTER SYSTEM SET pg_lookahead.min_read_time = '1s') ],
	q(depth = 0 AND depth_by = 'memory'), 'reads that are fast: no advice');
with_settings([ 'ALTER SYSTEM SET pg_lookahead.min_read_time = 0' ], q(depth > 0 AND depth_by <> 'memory'), 'advice again, if they are not');
is($standby->safe_psql('postgres', 'SHOW maintenance_io_concurrency'), $default, 'other processes do not see it');

with_settings([ 'ALTER SYSTEM SET pg_lookahead.enable_replay = off' ], 'true', 'switched off');
$records = no_longer_counted();
my $others = replay($standby, 'pauses, wal_waits');
$primary->safe_psql('postgres', $update);
$primary->wait_for_catchup($standby);
is(replay($standby, 'records'), $records, '... nothing is counted');
same($standby, $primary, '... and everything replayed');
$primary->safe_psql('postgres', 'SELECT pg_sleep(0.2)');
is(replay($standby, 'pauses, wal_waits'), $others, '... no wait either');
with_settings([ 'ALTER SYSTEM RESET pg_lookahead.enable_replay' ], "records > $records", 'and on again');
ok(wait_until(\&off_is_no_pause), '... the time between was no pause');

# ---- 5. promotion, cascade, pg_rewind ----------------------------------------------

$standby->safe_psql('postgres', 'CHECKPOINT');
$standby->backup('cascade');
my $cascade = PostgreSQL::Test::Cluster->new('cascade');
$cascade->init_from_backup($standby, 'cascade', has_streaming => 1);
$cascade->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$cascade->start;
$primary->safe_psql('postgres', $update);
$primary->wait_for_catchup($standby);
$standby->wait_for_catchup($cascade, 'replay', $standby->lsn('replay'));
same($cascade, $primary, 'a cascaded standby without the library');

# (what the last wait has taken counts when it is over, too)
$waited = replay($standby, 'wal_wait_time');
$logged = -s $standby->logfile;
$standby->promote;
is($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery()'), 'f', 'promoted');
like(log_since($standby, $logged), $line, 'a line in the log');
is(replay($standby, "state, waiting_for IS NULL, ended IS NOT NULL, wal_wait_time >= $waited"), 'ended|t|t|t', 'recovery has ended');
same($standby, $primary, 'promoted');
$standby->safe_psql('postgres', $update);
$standby->wait_for_catchup($cascade);
same($cascade, $standby, 'the cascaded standby has followed to the next timeline');

# the primary has gone its own way
$primary->safe_psql('postgres', 'DELETE FROM t WHERE id % 7 = 0; CHECKPOINT');
$primary->stop;
# (before 16, pg_rewind takes the source's timeline from its last checkpoint)
$standby->safe_psql('postgres', 'CHECKPOINT');
command_checks_all([ 'pg_rewind', '--source-server', $standby->connstr('postgres'), '--target-pgdata', $primary->data_dir, '--no-sync' ],
	0, [], [ qr/rewinding from last common checkpoint.*Done!/s ], 'pg_rewind');
$primary->append_conf('postgresql.conf', 'port = ' . $primary->port . "\n");
$primary->enable_streaming($standby);
$primary->set_standby_mode();
$primary->start;
$standby->safe_psql('postgres', $update);
$standby->wait_for_catchup($primary);
same($primary, $standby, 'the old primary is a standby');
is(replay($primary, q(state, records > 0)), 'standby|t', '... with figures');

# crash of a standby, and a shutdown while it replays
$standby->safe_psql('postgres', $update);
$primary->stop('immediate');
$primary->start;
$standby->safe_psql('postgres', $update);
$primary->stop('fast');
$primary->start;
$standby->wait_for_catchup($primary);
same($primary, $standby, 'a standby that has crashed');
check_log($_) for ($primary, $standby, $cascade);
$_->stop for ($primary, $cascade, $standby);

# ---- 6. archive recovery up to a target ----------------------------------------------

my $source = new_server('source', conf => "fsync = off\nwal_level = replica\nmax_wal_senders = 5\narchive_mode = on\narchive_command = 'true'\n", streaming => 1);
$source->enable_archiving;
$source->restart;
$source->safe_psql('postgres', random_table('t', 2000));
$source->backup('base');
$source->safe_psql('postgres', "$update; SELECT pg_create_restore_point('here')");
$expected = $source->safe_psql('postgres', $digest);
$source->safe_psql('postgres', "$update; SELECT pg_switch_wal()");
my $segment = $source->safe_psql('postgres', 'SELECT pg_walfile_name(pg_current_wal_lsn())');
$source->safe_psql('postgres', "$update; SELECT pg_switch_wal()");
$source->poll_query_until('postgres', "SELECT last_archived_wal >= '$segment' FROM pg_stat_archiver") or die 'not archived';
my $target = PostgreSQL::Test::Cluster->new('target');
$target->init_from_backup($source, 'base', has_restoring => 1, standby => 0);
$target->append_conf('postgresql.conf', "recovery_target_name = 'here'\nrecovery_target_action = 'pause'\n");
$target->start;
soon($target, q(state = 'archive recovery' AND waiting_for = 'pause'), 'archive recovery pauses at its target');
is($target->safe_psql('postgres', $digest), $expected, 'rows as they were then');
is(replay($target, 'bytes_behind IS NULL, records > 100'), 't|t', 'where the archive ends is not known');
$target->safe_psql('postgres', 'SELECT pg_sleep(0.3)');
$target->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
ok($target->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()'), 'recovery ends');
like(slurp_file($target->logfile), $line, 'a line in the log');
is(replay($target, 'state, pauses, pause_time > 100'), 'ended|1|t', 'and the view says so, and that it had paused');
is($target->safe_psql('postgres', "SELECT count(*) FROM pg_ls_dir('.') f WHERE f LIKE '%lookahead%'"), 0, 'no file is left');
check_log($target);
$_->stop for ($target, $source);

# ---- 7. a primary without the library ------------------------------------------------

my $plain = new_server('plain', preload => 0, streaming => 1, conf => "fsync = off\n", extensions => ['pg_lookahead']);
$plain->backup('base');
my $other = PostgreSQL::Test::Cluster->new('other');
$other->init_from_backup($plain, 'base', has_streaming => 1);
$other->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_lookahead'\n");
$other->start;
$plain->safe_psql('postgres', random_table('t', 1000) . $update);
$plain->wait_for_catchup($other);
same($other, $plain, 'a primary without the library');
is(replay($other, q(state, records > 0)), 'standby|t', '... is replayed with figures');
check_log($_) for ($other, $plain);
$_->stop for ($other, $plain);

check_log($node);
$node->stop;

done_testing();
