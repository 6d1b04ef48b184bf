# 024_calibrate.pl - pg_lookahead_calibrate(): files, cancels, restarts, and what can go wrong.
#
#	1. A tablespace without files: a temporary file, whose name nobody sees.
#	2. Canceled, timed out, terminated, failed, shut down: no file, descriptor or asynchronous read is left.
#	3. Files of relations: they are only read; a table that is truncated meanwhile is an error.
#	4. Two sessions; a busy disk.
#	5. What was measured is known after a restart, and after a crash.  A file that is damaged, of
#	   another version, or a copy is thrown away with a line in the log.
#	6. A standby.
#	7. A server that does not preload the library.

use strict;
use warnings;

use File::Copy;
use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $in_use = 'SELECT * FROM pg_lookahead_storage_in_use()';
my $canceled = qr/^ERROR:  canceling statement due to user request$/m;
my $node = new_server('main', conf => "log_min_messages = log\n");

# A platform, or a file system, without what is needed says so; there is nothing more to test.
my ($ret, $out, $err) = $node->psql('postgres', 'SELECT count(*) FROM pg_lookahead_calibrate()');
if ($ret != 0)
{
	like($err, qr/cannot be measured on this platform|does not support O_DIRECT|does not allow asynchronous reads|no asynchronous reads left/,
		'what is missing is named');
	check_log($node);
	done_testing();
	exit;
}

my $location = PostgreSQL::Test::Utils::tempdir;
$node->safe_psql('postgres', "CREATE TABLESPACE fast LOCATION '$location'");
my $calibrate = "SELECT count(*) >= 15 FROM pg_lookahead_calibrate('fast')";

# Temporary files of the tablespace.
sub files
{
	return glob "$location/*/pgsql_tmp/*";
}

# What a backend has open of it that has no name any more, and its asynchronous reads; undef where
# /proc does not tell.
sub left_behind
{
	my ($pid) = @_;
	my @fds = map { readlink($_) // () } glob "/proc/$pid/fd/*";
	my $maps = -r "/proc/$pid/maps" ? slurp_file("/proc/$pid/maps") : return;

	# the names of directories do not count
	return join ' ', (grep { m{lookahead[^/]*$} } @fds), ($maps =~ /\[aio\]/ ? '[aio]' : ());
}

# Start a statement, and come back when it reads.  It goes on for some seconds; where it has ended
# before anybody has seen it, once more.
sub start_reading
{
	my ($session, $pid, $sql) = @_;
	my $start = sub { $session->query_until(qr/started/, "\\echo started\n$sql;\n") };

	$start->();
	wait_until(sub {
			my ($event, $state) = split /\|/, $node->safe_psql('postgres', "SELECT wait_event, state FROM pg_stat_activity WHERE pid = $pid");

			return 1 if $event eq 'DataFileRead';
			if ($state =~ /^idle/)
			{
				ask($session, 'ROLLBACK');
				$start->();
			}
			return 0;
		}) or die 'it does not read';
	return;
}

# ---- without files ---------------------------------------------------------------------

is($node->safe_psql('postgres', $calibrate), 't', 'a tablespace without files');
is(join(' ', files()), '', '... leaves none there');
is($node->safe_psql('postgres', q(SELECT string_agg(DISTINCT tablespace_name, ' ' ORDER BY tablespace_name) FROM pg_lookahead_calibration)),
	'fast pg_default', 'rows of other tablespaces stay');
like($node->safe_psql('postgres', q(SELECT string_agg(command, ';') FROM pg_lookahead_recommendations WHERE tablespace_name = 'fast')),
	qr/ALTER TABLESPACE fast SET \(random_page_cost = /, 'recommendations name it');
is($node->safe_psql('postgres', q(SELECT count(*) FROM pg_lookahead_recommendations WHERE setting = 'pg_lookahead.max_distance')),
	1, '... and one max_distance for all');

# ---- errors and cancels ------------------------------------------------------------------

my $session = open_session($node, 'SET client_min_messages = error');
my $pid = pid_of($session);

sub nothing_left
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(left_behind($pid) // '', '', "$name: nothing open");
	is(join(' ', files()), '', "$name: no file");
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE pid = $pid AND locktype IN ('object', 'advisory')"),
		0, "$name: not locked");
	return;
}

start_reading($session, $pid, $calibrate);
like(left_behind($pid) // 'lookahead [aio]', qr/lookahead.*\[aio\]/, 'it has something open');
is(join(' ', files()), '', '... which has no name');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
like(ask($session, 'SELECT 1'), $canceled, 'canceled');
nothing_left('canceled');

like(ask($session, "SET statement_timeout = '1500ms'; $calibrate"), qr/^ERROR:  canceling statement due to (?:statement timeout|user request)$/m, 'timeout');
reset_timeout($session);
nothing_left('timeout');

# the transaction goes on
start_reading($session, $pid,
	"BEGIN; SAVEPOINT s; $calibrate; ROLLBACK TO s; SELECT count(*) FROM pg_lookahead_calibration WHERE tablespace_name = 'fast'");
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
like(ask($session, "SELECT 'in transaction'"), $canceled, 'canceled in a subtransaction');
is(left_behind($pid) // '', '', '... nothing open');
is(ask($session, "SELECT count(*) >= 15 FROM pg_lookahead_calibration WHERE tablespace_name = 'fast'; COMMIT"), 't',
	'... and the older rows are there');
nothing_left('rolled back');

start_reading($session, $pid, $calibrate);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
$node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)");
is(join(' ', files()), '', 'terminated: no file');

($ret, $out, $err) = $node->psql('postgres', "SELECT * FROM pg_lookahead_calibrate('slow')");
like($err, qr/ERROR:  tablespace "slow" does not exist/, 'a tablespace that does not exist');

# ---- files of relations ---------------------------------------------------------------------

$node->safe_psql('postgres', q(CREATE TABLE big (i int, w text) WITH (fillfactor = 10) TABLESPACE fast;
	INSERT INTO big SELECT i, repeat('w', 700) FROM generate_series(1, 10000) i; VACUUM big; CHECKPOINT));
my $size = $node->safe_psql('postgres', q(SELECT pg_relation_size('big') > 64 * 1024 * 1024));
is($size, 't', 'a table that is large enough');
my $sum = 'SELECT sum(hashtext(big::text)) FROM big';
my $before = $node->safe_psql('postgres', $sum);
$session = open_session($node, 'SET client_min_messages = error');
$pid = pid_of($session);
start_reading($session, $pid, $calibrate);
unlike(left_behind($pid) // '', qr/lookahead/, 'it is read in place of a temporary file');
my ($ret2, $out2, $err2) = $node->psql('postgres', $calibrate);
like($err2, qr/ERROR:  tablespace "fast" is being measured by another session/, 'not by two sessions at a time');
my $fast = $node->safe_psql('postgres', "SELECT oid FROM pg_tablespace WHERE spcname = 'fast'");
($ret2, $out2, $err2) = $node->psql('postgres', "SELECT * FROM pg_lookahead_measure_storage($fast)");
like($err2, qr/ERROR:  tablespace "fast" is being measured by another session/, '... however they measure');
is(ask($session, 'SELECT 1'), "t\n1", 'a tablespace with files');
is($node->safe_psql('postgres', $sum), $before, '... which are unchanged');

start_reading($session, $pid, $calibrate);
$node->safe_psql('postgres', 'DROP TABLE big');
like(ask($session, 'SELECT 1'), qr/^ERROR:  file ".*" has become shorter while it was read$/m, 'a table that is dropped meanwhile');
nothing_left('dropped');

start_reading($session, $pid, $calibrate);
$node->restart;
is(join(' ', files()), '', 'a fast shutdown: no file');
unlike(slurp_file($node->logfile), qr/was terminated by signal|database system was not properly shut down/, '... nor does anything crash');

# ---- a busy disk --------------------------------------------------------------------------------

SKIP:
{
	my $device = (stat $location)[0];
	# as Linux numbers them
	my $number = sprintf '%d:%d', ($device >> 8) & 0xfff, ($device & 0xff) | (($device >> 12) & 0xfff00);
	skip 'the load of the device is not known', 1 unless -r "/sys/dev/block/$number/stat";
	my $writer = IPC::Run::start(
		[ 'sh', '-c', "while :; do dd if=/dev/zero of=$location/load bs=1M count=64 oflag=direct 2>/dev/null || exit; done" ]);
	# (until the writer has had its share of the machine)
	my $busy = qr/WARNING:  the storage of tablespace "fast" was busy while it was measured\nDETAIL:.*\nHINT:  Measure again/;
	wait_until(sub { ($ret, $out, $err) = $node->psql('postgres', $calibrate); $err =~ $busy }, 120);
	$writer->kill_kill;
	unlink "$location/load";
	like($err, $busy, 'a busy disk');
	is($node->safe_psql('postgres', q(SELECT bool_or(busy) FROM pg_lookahead_storage WHERE tablespace_name = 'fast')),
		't', '... is kept in mind');
	like($node->safe_psql('postgres', q(SELECT string_agg(reason, ' ') FROM pg_lookahead_recommendations WHERE tablespace_name = 'fast')),
		qr/The storage was busy when it was measured/, '... and mentioned');
}

# ---- restarts -------------------------------------------------------------------------------------

my $file = $node->data_dir . '/pg_stat/pg_lookahead_storage.stat';
my $known = $node->safe_psql('postgres', $in_use);
like($known, qr/^t\|\{/, 'it is known to others');
$node->restart;
is($node->safe_psql('postgres', $in_use), $known, '... after a restart');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', $in_use), $known, '... after a crash');
is($node->safe_psql('postgres', 'SELECT (pg_lookahead_storage_in_use(oid)).calibrated FROM pg_tablespace ORDER BY spcname'),
	"t\nt\nt", '... of all tablespaces');

# The server starts with a file that has been changed, throws it away, and knows nothing.
sub thrown_away
{
	my ($name, $why, $change) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->stop;
	my $contents = slurp_file($file);
	# another name of the same file, for the next case
	link $file, "$file.kept" or die $!;
	$change->();
	my $offset = -s $node->logfile;
	$node->start;
	like(slurp_file($node->logfile, $offset), qr/LOG:  removing file "pg_stat\/pg_lookahead_storage.stat": $why/, "$name: in the log");
	is($node->safe_psql('postgres', 'SELECT calibrated FROM pg_lookahead_storage_in_use()'), 'f', "$name: not used");
	ok(!-e $file, "$name: removed");

	open my $f, '+<', "$file.kept" or die $!;
	binmode $f;
	print $f $contents;
	close $f;
	truncate "$file.kept", length $contents;
	rename "$file.kept", $file or die $!;
	return;
}

thrown_away('damaged', 'it is damaged', sub { overwrite($file, 100, "\xa5\xa5") });
thrown_away('damaged at its beginning', 'it is damaged', sub { overwrite($file, 0, "\xa5\xa5") });
thrown_away('too short', 'it is damaged', sub { truncate $file, 1000 });
thrown_away('empty', 'it is damaged', sub { truncate $file, 0 });
thrown_away('too long', 'it is damaged', sub { overwrite($file, -s $file, 'x') });
thrown_away('another version', 'it is of another version', sub { overwrite($file, 4, pack 'L', 99) });
thrown_away('a copy', 'it is a copy', sub { copy($file, "$file.new"); move("$file.new", $file) });

$node->restart;
is($node->safe_psql('postgres', $in_use), $known, 'as it was, it is used');

# a file that cannot be written
chmod 0500, $node->data_dir . '/pg_stat';
($ret, $out, $err) = $node->psql('postgres', 'SELECT count(*) >= 15 FROM pg_lookahead_calibrate()');
chmod 0700, $node->data_dir . '/pg_stat';
like($err, qr/WARNING:  could not write file "pg_stat.*\nDETAIL:  What has been measured is forgotten when the server stops/,
	'a file that cannot be written is a warning');
is($out, 't', '... and the rows are there');

# ---- a standby ------------------------------------------------------------------------------------

check_log($node);
$node->stop;

my $primary = new_server('primary', streaming => 1);
my $standby = PostgreSQL::Test::Cluster->new('standby');
$primary->safe_psql('postgres', 'SET client_min_messages = error; SELECT count(*) FROM pg_lookahead_calibrate()');
$primary->backup('backup');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);
like(slurp_file($standby->logfile), qr/LOG:  removing file "pg_stat\/pg_lookahead_storage.stat": it is a copy/,
	'a standby has other storage than its primary');
is($standby->safe_psql('postgres', 'SELECT calibrated FROM pg_lookahead_storage_in_use()'), 'f', '... of which nothing is known');
($ret, $out, $err) = $standby->psql('postgres', 'SELECT * FROM pg_lookahead_calibrate()');
like($err, qr/ERROR:  cannot execute pg_lookahead_calibrate\(\) in a read-only transaction/, 'a standby cannot write the table');
is($standby->safe_psql('postgres', 'SET client_min_messages = error; SELECT count(*) >= 15 FROM pg_lookahead_measure_storage(0)'), 't',
	'... but can measure');
is($standby->safe_psql('postgres', 'SELECT calibrated FROM pg_lookahead_storage_in_use()'), 't', '... what it goes by');
check_log($_) for $primary, $standby;
$standby->stop;
$primary->stop;

# ---- not preloaded ----------------------------------------------------------------------------------

$node = new_server('own', preload => 0, extensions => ['pg_lookahead']);
$session = open_session($node, 'SET client_min_messages = error');
is(ask($session, 'SELECT calibrated FROM pg_lookahead_storage_in_use()'), 'f', 'not preloaded: nothing is known');
is(ask($session, 'SELECT count(*) >= 15 FROM pg_lookahead_calibrate()'), 't', '... it is measured');
$known = ask($session, $in_use);
like($known, qr/^t\|/, '... and known to the session');
is($node->safe_psql('postgres', $in_use), $known, '... and to new ones');
is(ask($session, "DISCARD ALL; $in_use"), $known, '... and for good');
# what another session has forgotten does not come back with what this one measures, or forgets
$node->safe_psql('postgres', "CREATE TABLESPACE fast LOCATION '" . PostgreSQL::Test::Utils::tempdir . "'");
$node->safe_psql('postgres', 'SELECT pg_lookahead_calibration_reset()');
is(ask($session, "SET client_min_messages = error; SELECT count(*) >= 15 FROM pg_lookahead_calibrate('fast')"), 't', 'forgotten by another session, and another one measured');
is($node->safe_psql('postgres', 'SELECT spcname, (pg_lookahead_storage_in_use(oid)).calibrated FROM pg_tablespace ORDER BY spcname'),
	"fast|t\npg_default|f\npg_global|f", '... so only that is known');
$node->safe_psql('postgres', 'SET client_min_messages = error; SELECT count(*) FROM pg_lookahead_calibrate()');
$known = $node->safe_psql('postgres', $in_use);
$session->quit;
$node->restart;
is($node->safe_psql('postgres', $in_use), $known, '... after a restart');
$file = $node->data_dir . '/pg_stat/pg_lookahead_storage.stat';
overwrite($file, 100, "\xa5\xa5");
is($node->safe_psql('postgres', 'SELECT calibrated FROM pg_lookahead_storage_in_use()'), 'f', '... but not if the file is damaged');
like(slurp_file($node->logfile), qr/LOG:  removing file "pg_stat\/pg_lookahead_storage.stat": it is damaged/, '... which is in the log');
check_log($node);
$node->stop;

done_testing();
