# Replica.pm - what 029_replica.pl does to servers, and how it compares them.
#
# No function here knows the test's servers: each is given those it is for.  What cannot be had of a
# server (contrib modules, programs, views and settings of later versions) is found by asking.

package Replica;

use strict;
use warnings;

use Exporter 'import';
use JSON::PP ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(insist comes_true try say_what say_activity start_again crash_under kill_process answers has_setting set_randomly caught_up
  finish_prepared same_dump same_tables check_structure check_checksums check_logs top_files check_files
  watch_views has_view);

# ---- servers -------------------------------------------------------------------

# What happens when, for whoever reads the output of a failed run beside the logs.
sub say_what
{
	my ($what) = @_;
	my ($s, $us) = (int(time), int(1000 * (time - int(time))));

	note(sprintf('%02d:%02d:%02d.%03d %s', (gmtime $s)[ 2, 1, 0 ], $us, $what));
	return;
}

# Who does what, and waits for whom.
sub say_activity
{
	my ($node) = @_;

	for my $query (
		"SELECT pid, leader_pid, backend_type, application_name, state, wait_event_type, wait_event, pg_blocking_pids(pid), left(query, 60)
			FROM pg_stat_activity WHERE pid <> pg_backend_pid() ORDER BY 1",
		'SELECT pid, virtualtransaction, locktype, relation::regclass, transactionid, classid, objid, objsubid, mode
			FROM pg_locks WHERE NOT granted OR virtualtransaction IN (SELECT virtualtransaction FROM pg_locks WHERE pid IS NULL) ORDER BY 1, 2',
		'SELECT * FROM pg_prepared_xacts', 'SELECT * FROM pg_replication_slots')
	{
		my ($ret, $out) = $node->psql('postgres', $query);

		diag($node->name . ":\n$out");
	}
	return;
}

# A server that does not start is a failure of this test, not of all that come after it.
sub start_again
{
	my ($node) = @_;

	$node->start(fail_ok => 1) or die 'cannot start ' . $node->name . ', see ' . $node->logfile;
	return;
}

# Stop these at once, in this order, and start them, in that order.  Returns the time between.
sub crash_under
{
	my (@nodes) = @_;
	my $between;

	$_->stop('immediate') for @nodes;
	$between = time;
	start_again($_) for @nodes;
	return $between;
}

sub answers
{
	my ($node) = @_;

	insist($node, 'SELECT true');
	return;
}

# A statement that must succeed, at last: it may need another server, wait for a process that just ends,
# or stand in the way of replay.  Returns what it returns.
sub insist
{
	my ($node, $sql) = @_;
	my ($ret, $out, $err);
	my $since = time;

	do
	{
		# it dies when the session ends before the statement is sent
		eval { ($ret, $out, $err) = $node->psql('postgres', $sql) };
		$err = $@ if $@;
		return $out if !$@ && $ret == 0;
		usleep(300_000);
	} while (time - $since < $PostgreSQL::Test::Utils::timeout_default);
	die $node->name . ": $sql: $err";
}

# Wait until a query returns true.
sub comes_true
{
	my ($node, $sql) = @_;
	my $since = time;

	while (time - $since < $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if insist($node, $sql) eq 't';
		usleep(100_000);
	}
	return 0;
}

# A statement that may fail.
sub try
{
	my ($node, $sql) = @_;

	eval { $node->psql('postgres', $sql) };
	return;
}

# Kill a process of a server, whose postmaster then ends all others and begins anew.
sub kill_process
{
	my ($node, $type) = @_;
	my $pid = insist($node,
		"SELECT pid FROM pg_stat_activity WHERE backend_type ~ '$type' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1");
	my $offset = -s $node->logfile;

	return 0 unless $pid =~ /^\d+$/ && kill 'KILL', $pid;
	$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset);
	answers($node);
	return 1;
}

# ---- settings ------------------------------------------------------------------

my %settings;

# Does the server know it?
sub has_setting
{
	my ($node, $name) = @_;
	my $known = $settings{ $node->name } //=
	  { map { $_ => 1 } split /\n/, insist($node, 'SELECT name FROM pg_settings') };

	return $known->{$name};
}

# One of the values, or the default.  Those of the server's start come with its next start.
sub set_randomly
{
	my ($node, $name, @values) = @_;

	return unless has_setting($node, $name);
	my $value = $values[ int(rand(@values + 1)) ];
	my $sql = defined $value ? "ALTER SYSTEM SET $name = '$value'" : "ALTER SYSTEM RESET $name";

	say_what($node->name . ": $sql");
	insist($node, $sql);
	insist($node, 'SELECT pg_reload_conf()');
	return;
}

# ---- waiting -------------------------------------------------------------------

# Has what receives the WAL under this name applied it up to where it ends now?  It may take long, as
# long as it goes on.
sub caught_up
{
	my ($source, $name) = @_;
	my $function = insist($source, 'SELECT pg_is_in_recovery()') eq 't'
	  ? 'pg_last_wal_replay_lsn' : 'pg_current_wal_flush_lsn';
	my $target = insist($source, "SELECT $function()");
	my ($last, $since) = ('', time);

	while (time - $since < $PostgreSQL::Test::Utils::timeout_default)
	{
		my $at = insist($source,
			"SELECT replay_lsn, replay_lsn >= '$target' FROM pg_stat_replication WHERE application_name = '$name' AND replay_lsn IS NOT NULL");

		return 1 if $at =~ /\|t$/;
		($last, $since) = ($at, time) if $at ne $last;
		usleep(100_000);
	}
	return 0;
}

# End transactions that a crash has left prepared before that time; some this way, some that way.
sub finish_prepared
{
	my ($node, $before) = @_;

	for my $gid (split /\n/, insist($node, "SELECT gid FROM pg_prepared_xacts WHERE prepared < to_timestamp($before)"))
	{
		# its client may live, and be slow
		try($node, (rand() < 0.5 ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$gid'");
	}
	return;
}

# ---- comparing -----------------------------------------------------------------

# The names of the tables whose rows differ, with the first rows that do.
sub same_tables
{
	my ($source, $target, $columns) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir;

	for my $table (sort keys %$columns)
	{
		my @sums = map {
			$_->safe_psql('postgres',
				"SELECT count(*), sum(hashtextextended(ROW($columns->{$table})::text, 0)::numeric) FROM $table")
		} ($source, $target);

		next if is($sums[1], $sums[0], "$table: rows as on the publisher");
		for my $node ($source, $target)
		{
			append_to_file("$dir/$table." . $node->name,
				$node->safe_psql('postgres',
					"COPY (SELECT $columns->{$table} FROM $table ORDER BY ROW($columns->{$table})::text COLLATE \"C\") TO STDOUT") . "\n");
		}
		diag(substr(`cd $dir && diff $table.@{[$source->name]} $table.@{[$target->name]} | cut -c 1-200 | head -n 20`, 0, 3000));
	}
	return;
}

# A sequence is logged 32 values ahead of its use, and a standby knows what is logged.  Have the source
# log what it is at.
sub align_sequences
{
	my ($name, @chain) = @_;
	my ($source, $target) = @chain[ 0, -1 ];
	my $query = 'SELECT schemaname, sequencename, last_value FROM pg_sequences WHERE last_value IS NOT NULL ORDER BY 1, 2';

	# what a transaction has used that was rolled back is not flushed by its end
	$source->safe_psql('postgres', "SELECT pg_logical_emit_message(true, '', '')");
	caught_up($chain[ $_ - 1 ], $chain[$_]->name) for 1 .. $#chain;
	my %at = map { /^(.*)\|(\d+)$/ } split /\n/, $source->safe_psql('postgres', $query);
	my %logged = map { /^(.*)\|(\d+)$/ } split /\n/, $target->safe_psql('postgres', $query);

	is(join(' ', grep { ($logged{$_} // -1) - $at{$_} < 0 || $logged{$_} - $at{$_} > 32 } sort keys %at),
		'', "$name: sequences");
	$source->safe_psql('postgres',
		'SELECT setval(format(\'%I.%I\', schemaname, sequencename)::regclass, last_value) FROM pg_sequences WHERE last_value IS NOT NULL');
	ok(caught_up($chain[ $_ - 1 ], $chain[$_]->name), "$name: " . $chain[$_]->name . ' has caught up') for 1 .. $#chain;
	return;
}

# pg_dump prints the same of the first and the last of these, of which each follows the one before.
sub same_dump
{
	my ($name, @chain) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir;
	my @files;

	align_sequences($name, @chain);
	for my $node (@chain[ 0, -1 ])
	{
		my $file = "$dir/" . $node->name . '.sql';

		$node->command_ok([ 'pg_dump', '--no-unlogged-table-data', '--no-sync', '-f', $file, '-d', $node->connstr('postgres') ],
			"$name: pg_dump of " . $node->name);
		# newer minor releases print a random word
		system_or_bail('sed', '-i', '-E', '/^\\\\(un)?restrict /d', $file);
		push @files, $file;
	}
	my $differ = system('cmp', '-s', @files);
	cmp_ok(-s $files[0], '>', 1_000_000, "$name: there is something in the dump");
	ok($differ == 0, "$name: dumps are equal") or diag(`diff @files | cut -c 1-200 | head -n 20`);
	return;
}

# Indexes have all rows, heaps are sound, maps of visibility tell the truth.
sub check_structure
{
	my ($node, $name) = @_;
	my $standby = $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't';
	my %have = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', 'SELECT extname FROM pg_extension');

  SKIP:
	{
		skip "$name: amcheck cannot be had", 1 unless $have{amcheck};
		my ($out, $err) = ('', '');
		# locks against writers cannot be had on a standby
		my @parents = $standby ? () : ('--parent-check', '--rootdescend');
		my $ret = IPC::Run::run([ 'pg_amcheck', '--heapallindexed', @parents, '-h', $node->host, '-p', $node->port, 'postgres' ],
			'>' => \$out, '2>' => \$err);
		# index and heap of unlogged tables are not there
		$err =~ s/^.*NOTICE:  cannot verify unlogged .*\n(?:DETAIL.*\n)?//mg;
		is("$out$err", '', "$name: pg_amcheck has no complaints");
		ok($ret, "$name: pg_amcheck") or diag($err);
	}
  SKIP:
	{
		skip "$name: pg_visibility cannot be had", 2 unless $have{pg_visibility};
		for my $function ('pg_check_frozen', 'pg_check_visible')
		{
			is( $node->safe_psql(
					'postgres', "SELECT c.oid::regclass, t FROM pg_class c, $function(c.oid) t
						WHERE relkind IN ('r', 'm', 't') AND (relpersistence = 'p' OR NOT pg_is_in_recovery())
						AND pg_relation_size(c.oid, 'vm') > 0 LIMIT 10"),
				'', "$name: $function finds nothing");
		}
	}
	return;
}

# After the server's stop.
sub check_checksums
{
	my ($node) = @_;

	$node->command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], $node->name . ': pg_checksums');
	return;
}

# ---- logs ----------------------------------------------------------------------

# What crashes, ends of processes and locks on purpose make servers say.  Anything of a level from
# WARNING up that is not here fails the test.
my @expected = (
	qr/the database system is (?:starting up|shutting down|in recovery mode|not (?:yet )?accepting connections)/,
	qr/terminating connection because of (?:unexpected SIGQUIT signal|crash of another server process)/,
	qr/terminating .* due to administrator command/,
	qr/terminating connection due to conflict with recovery/,
	qr/canceling statement due to (?:lock timeout|conflict with recovery|user request)/,
	qr/could not (?:connect to|receive data from|send data to|send end-of-streaming message to|start) /,
	qr/server closed the connection unexpectedly/,
	qr/replication origin with ID \d+ is already active for PID/,
	# which is logged, too
	qr/logical replication parallel apply worker exited due to error/,
	qr/connection to client lost/,
	qr/could not receive (?:database system identifier|list of replicated tables|timeline history)/,
	qr/canceling autovacuum task/,
	qr/deadlock detected/,
	# a standby has received what its source, after a crash, is yet to replay
	qr/requested starting point \S+ is ahead of the WAL flush position/,
	# replay after a crash, of what had been done before it
	qr/could not open directory "base\/\d+": No such file|some useless files may be left behind in old database directory/,
	qr/(?:prepared transaction|replication slot) .* (?:does not exist|is active for PID \d+|is busy)/,
	# a standby replays PREPARE TRANSACTION once more, whose end its commit log has already
	qr/removing stale two-phase state from memory for transaction/,
	# the worker that a parallel apply worker belongs to has ended before this one has begun
	qr/could not find replication state slot for replication origin with OID \d+ which was acquired by/,
	# stock publishers send this when debug_logical_replication_streaming changes while they decode
	qr/STREAM STOP message without STREAM START/,
	# queries of stock standbys that are about to open an index when its source has dropped it
	qr/could not open relation with OID \d+/,
);

sub check_logs
{
	my ($node) = @_;
	my %seen;
	my $log = slurp_file($node->logfile);

	# A transaction of another database, such as an ANALYZE by autovacuum, keeps dead rows from VACUUM FULL, but not
	# their values from what has vacuumed the TOAST table: a defect of stock servers (bugs #18351 and #19519 of
	# PostgreSQL's list).  What is alive is compared at the end.
	$log =~ s/^.*ERROR:  (?:missing|unexpected) chunk number .*\n.*STATEMENT:  VACUUM FULL .*\n//mg;
	my @lines = grep { /(?:WARNING|ERROR|FATAL|PANIC):  |TRAP: |leak|was not closed|terminated by signal (?!9\b)/ } split /\n/, $log;
	my @bad;

	for my $line (@lines)
	{
		my ($known) = grep { $line =~ $_ } @expected;

		$seen{ $line =~ s/^.*?(WARNING|ERROR|FATAL|PANIC):  /$1: /r =~ s/\d+/N/gr }++;
		push @bad, $line unless defined $known && $line !~ /PANIC|TRAP/;
	}
	is(join("\n", @bad > 40 ? @bad[ 0 .. 39 ] : @bad), '', $node->name . ': nothing unexpected in the log');
	note($node->name . ": $seen{$_} x $_") for sort keys %seen;
	return;
}

# ---- files ---------------------------------------------------------------------

# What is in the data directory and where look-ahead keeps files.
sub top_files
{
	my ($node) = @_;
	my $dir = $node->data_dir;

	return map { s/^\Q$dir\E\///r } grep { -e } map { glob "$dir/$_" } ('*', 'global/*', 'pg_stat/*', 'pg_stat_tmp/*');
}

# Nothing is left that a server has not had after its first stop; slots: those that there may be.
sub check_files
{
	my ($node, $before, @slots) = @_;
	my $dir = $node->data_dir;
	my %before = map { $_ => 1 } @$before;
	my @stray;

	push @stray, grep { !$before{$_} && !/^(?:global\/\d+(?:_\w+)?|global\/pg_internal\.init(?:\.\d+)?|backup_label\.old|tablespace_map\.old|current_logfiles|(?:standby|recovery)\.signal|postmaster\.opts|backup_manifest)$/ } top_files($node);
	push @stray, grep { !/\/(?:[0-9A-F]{24}|[0-9A-F]{8}\.history|[0-9A-F]{24}\.[0-9A-F]{8}\.backup|[0-9A-F]{24}\.partial|archive_status|summaries)$/ } glob "$dir/pg_wal/*";
	push @stray, grep { !/\/(?:\d+(?:_(?:fsm|vm|init))?(?:\.\d+)?|PG_VERSION|pg_filenode\.map|pg_internal\.init(?:\.\d+)?)$/ } glob "$dir/base/*/*";
	push @stray, grep { !/\/\d+$/ || !-d } glob "$dir/base/*";
	push @stray, map { glob "$dir/$_" } ('pg_dynshmem/*', 'pg_logical/mappings/*.tmp', 'pg_logical/snapshots/*.tmp');
	# (pg_internal.init with a number is of a session that a crash has ended; stock never removes it)
	# mappings stay until the next checkpoint, in stock; an empty directory for files stays for ever
	@stray = map { s/^\Q$dir\E\///r } grep { !/\/base\/pgsql_tmp$/ || glob "$_/*" } @stray;
	is(join(' ', sort @stray), '', $node->name . ': no file is left over');
	is( join(' ', sort map { s/^.*\///r } glob "$dir/pg_replslot/*"),
		join(' ', sort @slots),
		$node->name . ': its replication slots');
	return;
}

# ---- views ---------------------------------------------------------------------

my %views;

sub has_view
{
	my ($node, $view) = @_;

	return $views{ $node->name . $view } //= insist($node, "SELECT to_regclass('$view') IS NOT NULL") eq 't';
}

# Look at a view while the load runs, and keep of each of its numbers the highest.
sub watch_views
{
	my ($node, $view, $highest) = @_;

	return unless has_view($node, $view);
	my $out = insist($node, "SELECT to_jsonb(v) FROM $view v");

	for my $row (map { JSON::PP::decode_json($_) } grep { /^\{/ } split /\n/, $out)
	{
		for my $column (sort keys %$row)
		{
			my $value = $row->{$column};

			next unless defined $value && !ref $value && $value =~ /^-?[\d.]+(?:e[-+]?\d+)?$/;
			$highest->{$column} = $value if !defined $highest->{$column} || $value > $highest->{$column};
		}
	}
	return;
}

1;
