# LookAhead.pm - what the TAP tests of pg_lookahead share.
#
# Servers build indexes by look-ahead, which is off by default.  They are small (2 MB of shared
# buffers unless a test asks for something else), so that scans miss and look-ahead has
# something to do; autovacuum is off, so that dead rows stay until the test wants them gone; and
# so are the background writer and timed checkpoints: a buffer that they have pinned counts as
# pinned, and VACUUM passes over its page; after a checkpoint, marking an index entry as dead
# changes the page's LSN.
#
# A test waits for what it needs to have happened, and never for a time: wait_until(), and the
# server's own poll_query_until() and wait_for_log(), which have limits of minutes.  How often
# something has to be tried does not count: such attempts are checked together, or in a subtest,
# so that two runs have the same number of checks.

package LookAhead;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(wait_until new_server forced stock random_table check_log pinned pinned_relations
  check_indexes activated backend_fds memory open_session ask is_timeout reset_timeout pid_of start_waiting nothing_pinned
  path_of overwrite damage transcripts_of same_transcripts no_later read_in_several_ways
  create_walk walk create_fail check_cancel start_pgbench check_pgbench);

# Wait until a function returns true, as long as other queries may take, or so many seconds.
# Returns whether it has.
sub wait_until
{
	my ($happened, $seconds) = @_;
	my $end = time + ($seconds // $PostgreSQL::Test::Utils::timeout_default);

	while (!$happened->())
	{
		return 0 if time > $end;
		usleep(50_000);
	}
	return 1;
}

# A running server.  Parameters: preload (default 1), conf (text), init (array of
# initdb options), extensions (array; pg_lookahead itself is added when preloaded).
sub new_server
{
	my ($name, %p) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	my $preload = $p{preload} // 1;

	$node->init(
		extra => $p{init} // [],
		allows_streaming => $p{streaming} // 0);
	$node->append_conf('postgresql.conf',
		"autovacuum = off\nbgwriter_lru_maxpages = 0\ncheckpoint_timeout = 1h\njit = off\nshared_buffers = 2MB\nmax_prepared_transactions = 0\n"
		  . ($preload ? "shared_preload_libraries = 'pg_lookahead'\npg_lookahead.enable_index_build = on\n" : '')
		  . ($p{conf} // ''));
	$node->start;
	$node->safe_psql('postgres', "CREATE EXTENSION $_")
	  for (($preload ? 'pg_lookahead' : ()), @{ $p{extensions} // [] });
	return $node;
}

# SET statements that make every index scan look ahead, and plans use indexes.
sub forced
{
	my (%p) = @_;
	my ($ring, $distance) = ($p{ring} // 64, $p{distance} // 64);

	return plans() . qq(
		SET pg_lookahead.enable = on;
		SET pg_lookahead.force = on;
		SET pg_lookahead.max_leaf_pages = $ring;
		SET pg_lookahead.max_distance = $distance;);
}

# The same plans without look-ahead.
sub stock
{
	return plans() . "SET pg_lookahead.enable = off;";
}

sub plans
{
	return q(
		SET enable_seqscan = off;
		SET enable_bitmapscan = off;
		SET max_parallel_workers_per_gather = 0;);
}

# SQL for a table with rows in an order that is unrelated to its key a.
sub random_table
{
	my ($table, $rows, %p) = @_;
	my $kind = $p{kind} // '';
	my $width = $p{width} // 100;

	return qq(
		CREATE $kind TABLE $table (id int PRIMARY KEY, a int, b int, w text);
		INSERT INTO $table SELECT i, (hashint4(i) & 2147483647) % (10 * $rows), i % 10, repeat('w', $width)
			FROM generate_series(1, $rows) i;
		CREATE INDEX ${table}_a ON $table (a, id) WITH (fillfactor = 20);
		CREATE INDEX ${table}_b ON $table (b, id) WITH (fillfactor = 20);
		VACUUM ANALYZE $table;);
}

# Nothing in the server log that points at a leak or a crash.
sub check_log
{
	my ($node, $name) = @_;
	my @bad = grep {
		/PANIC:|TRAP:|refcount leak|was not closed|leaked|was terminated by signal|could not be unpinned/
	} split /\n/, slurp_file($node->logfile);

	is(join("\n", @bad), '', $name // 'server log is clean');
	return;
}

# Buffers of user tables and indexes that are pinned right now; needs pg_buffercache.
sub pinned_relations
{
	my ($node) = @_;

	return $node->safe_psql(
		'postgres', q(
		SELECT c.relname, count(*), sum(pinning_backends)
		FROM pg_buffercache b JOIN pg_class c ON pg_relation_filenode(c.oid) = b.relfilenode
			AND b.reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
		WHERE pinning_backends > 0 AND c.relnamespace >= 2200
		GROUP BY 1 ORDER BY 1));
}

sub pinned
{
	my ($node) = @_;
	my $sum = 0;

	$sum += (split /\|/)[2] for split /\n/, pinned_relations($node);
	return $sum;
}

# What was leaked stays pinned; a read that is in flight, or a checkpoint, lets go.  (Where one has
# stayed, others are not waited for as long.)
my $patience = 60;

sub nothing_pinned
{
	my ($node, $name) = @_;
	my $pinned;

	wait_until(sub { ($pinned = pinned_relations($node)) eq '' }, $patience) or $patience = 5;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($pinned, '', "$name: nothing is pinned");
}

# A psql that stays, and goes on after errors.
sub open_session
{
	my ($node, $settings) = @_;
	my $session = LookAhead::Session::of($node->background_psql('postgres', on_error_stop => 0));

	ask($session, $settings);
	return $session;
}

# What psql prints for statements, errors last.
sub ask
{
	my ($session, $sql) = @_;
	my $out = $session->query($sql);
	my $err = $session->{stderr};

	$session->{stderr} = '';
	$err =~ s/^psql:<stdin>:\d+: //mg;
	$err =~ s/^background_psql: .*\n//mg;
	# since 19, where what was canceled waited for a lock
	$err =~ s/^CONTEXT:  waiting for \w+ on .*$//mg;
	chomp($err);
	return join("\n", grep { $_ ne '' } $out, $err);
}

# Is it the error of a timeout?  One that strikes when the server has just disabled it is taken
# for a user's request (by stock, on 18, with a timeout of 1 ms: 26 of 638).
sub is_timeout
{
	my ($error) = @_;

	return $error =~ /^ERROR:  canceling statement due to (?:statement timeout|user request)$/;
}

# The error of a timeout that strikes when a statement has done its work, while it frees
# memory and deletes temporary files, comes in place of the next statement: that may be
# RESET, which then has not been done.  RESET is subject to the timeout itself, too.
sub reset_timeout
{
	my ($session) = @_;

	for (1 .. 1000)
	{
		ask($session, 'RESET statement_timeout');
		return if ask($session, 'SHOW statement_timeout') eq '0';
	}
	die 'statement_timeout cannot be reset';
}

sub pid_of
{
	my ($session) = @_;

	return ask($session, 'SELECT pg_backend_pid()');
}

# Start a statement that will wait for an advisory lock in mid-scan, and come back when it
# does.
sub start_waiting
{
	my ($node, $session, $pid, $sql) = @_;

	$session->query_until(qr/started/, "\\echo started\n$sql;\n");
	$node->poll_query_until('postgres',
		"SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $pid")
	  or die 'the scan does not wait';
	return;
}

# Cancel a statement that waits in mid-scan, let it run into a timeout, and cancel it in a
# cursor of a transaction, which is left open behind the savepoint.  Parameters: timeout,
# cursor (kind of it), meanwhile (sub called while the first statement waits).
sub check_cancel
{
	my ($node, $session, $pid, $name, $waiting, %p) = @_;
	my $canceled = 'ERROR:  canceling statement due to user request';

	start_waiting($node, $session, $pid, $waiting);
	$p{meanwhile}->() if $p{meanwhile};
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	is(ask($session, 'SELECT 1'), "1\n$canceled", "$name: canceled");
	nothing_pinned($node, "$name: canceled");

	like(ask($session, "SET statement_timeout = '$p{timeout}';\n$waiting"),
		qr/^ERROR:  canceling statement due to statement timeout$/, "$name: timeout");
	nothing_pinned($node, "$name: timeout");
	reset_timeout($session);

	# a cursor, in a transaction that goes on
	ask($session, "BEGIN; SAVEPOINT a; DECLARE c $p{cursor} FOR $waiting");
	start_waiting($node, $session, $pid, 'FETCH c');
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	is(ask($session, 'ROLLBACK TO a'), $canceled, "$name: cursor canceled");
	nothing_pinned($node, "$name: cursor canceled");
	return;
}

# Start pgbench on some files; check_pgbench() waits for it.
sub start_pgbench
{
	my ($node, $seconds, $name, $options, $clients, @files) = @_;
	my $run = { name => $name, out => '', err => '' };

	local $ENV{PGOPTIONS} = $options;
	local $ENV{PGHOST} = $node->host;
	local $ENV{PGPORT} = $node->port;
	$run->{handle} = IPC::Run::start(
		[ 'pgbench', '-n', '-T', $seconds, '-c', $clients, @files, 'postgres' ],
		'<' => \undef, '>' => \$run->{out}, '2>' => \$run->{err},
		IPC::Run::timeout($seconds + $PostgreSQL::Test::Utils::timeout_default));
	return $run;
}

sub check_pgbench
{
	my ($run) = @_;
	my $finished = $run->{handle}->finish;
	my ($count) = $run->{out} =~ /number of transactions actually processed: (\d+)/;

	ok($finished, "$run->{name}: no error") or diag($run->{err});
	cmp_ok($count // 0, '>', 0, "$run->{name}: transactions") or diag($run->{out});
	note("$run->{name}: $count transactions") if defined $count;
	return;
}

# amcheck of every btree index of user tables; returns the complaints.
sub check_indexes
{
	my ($node, $function) = @_;

	$function //= 'bt_index_check(c.oid, heapallindexed => true)';
	my ($ret, $out, $err) = $node->psql(
		'postgres', qq(
		SELECT $function
		FROM pg_class c JOIN pg_am am ON am.oid = c.relam
		WHERE c.relkind = 'i' AND am.amname = 'btree' AND c.relnamespace >= 2200
			AND c.relpersistence <> 't' ORDER BY c.relname));
	return $err;
}

sub path_of
{
	my ($node, $relation) = @_;

	return $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$relation')");
}

# Put bytes into a file in place of those there.
sub overwrite
{
	my ($path, $offset, $bytes) = @_;

	open my $file, '+<', $path or die "$path: $!";
	binmode $file;
	seek $file, $offset, 0 or die "$path: $!";
	print $file $bytes;
	close $file or die "$path: $!";
	return;
}

# Change bytes in the middle of a block.
sub damage
{
	my ($path, $block) = @_;
	my $block_size = 8192;

	return overwrite($path, $block * $block_size + $block_size / 2 - 64, "\xa5" x 128);
}

# What psql prints for a script in each mode (a name and its settings), errors included:
# mode => text.
sub transcripts_of
{
	my ($node, $modes, $sql, $begin) = @_;
	my $script = '';
	my %text;

	for my $mode (sort keys %$modes)
	{
		$script .= "\\echo =$mode\n\\warn =$mode\n$modes->{$mode}\n"
		  . ($begin // 'BEGIN')
		  . ";\n$sql;\nROLLBACK;\nRESET ALL;\n";
	}
	my ($ret, $out, $err) = $node->psql('postgres', $script, on_error_stop => 0);

	$err =~ s/^psql:<stdin>:\d+: //mg;
	for my $stream ($out, $err)
	{
		my (undef, %part) = split /^=(.*)\n?/m, $stream;

		$text{$_} .= $part{$_} . "\n" for keys %$modes;
	}
	s/\n+/\n/g for values %text;
	return %text;
}

# The same in all modes as in the one that is off, which prints what matches a pattern.
sub same_transcripts
{
	my ($node, $modes, $sql, $expected, $name) = @_;
	my %text = transcripts_of($node, $modes, $sql);

	like($text{off}, $expected, "$name: off");
	is($text{$_}, $text{off}, "$name: $_") for grep { $_ ne 'off' } sort keys %$modes;
	return;
}

# A transcript of walk() says the same as another one, whose error came after so many rows; it may have
# come after fewer of them.
sub no_later
{
	my ($text, $other, $after, $name) = @_;
	my ($n, $rest) = $text =~ /^(\d+)( rows, .*)$/s;

	ok(defined $n && $n <= $after && "$after$rest" eq $other, $name) or diag($text);
	return;
}

# Read in one snapshot: by a query as a sequential scan, and by others with look-ahead, whose settings depend on the
# round and which have the same answer.  Returns "same", "canceled" if replay was in the way, or what differs.
sub read_in_several_ways
{
	my ($node, $round, $sequential, @queries) = @_;
	my $ahead = forced(ring => (2, 3, 64)[ $round % 3 ], distance => (1, 16, 256)[ $round % 3 ]);
	my ($ret, $out, $err) = $node->psql(
		'postgres', qq(
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off;
		$sequential;
		SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = on;
		$ahead) . join('', map { "$_;" } @queries) . 'COMMIT;',
		# ask for the conflict rather than wait for it: the next round has a new snapshot
		on_error_stop => 1);
	my %seen = map { $_ => 1 } split /\n/, $out;

	return 'canceled' if $err =~ /conflict with recovery/;
	return $ret == 0 && keys %seen == 1 ? 'same' : "$out$err";
}

# walk(query, most): how many rows a cursor returns, and which error then comes.
sub create_walk
{
	my ($node) = @_;

	$node->safe_psql(
		'postgres', q(
		CREATE FUNCTION walk(query text, most int) RETURNS text LANGUAGE plpgsql AS $$
		DECLARE
			c refcursor;
			r record;
			n int := 0;
		BEGIN
			OPEN c FOR EXECUTE query;
			WHILE most IS NULL OR n < most LOOP
				FETCH c INTO r;
				EXIT WHEN NOT FOUND;
				n := n + 1;
			END LOOP;
			CLOSE c;
			RETURN n || ' rows';
		EXCEPTION WHEN OTHERS THEN
			RETURN n || ' rows, ' || SQLSTATE || ': ' || SQLERRM;
		END $$));
	return;
}

# The statement that calls it; without a limit if $most is not given.
sub walk
{
	my ($query, $most) = @_;

	return "SELECT walk(\$\$$query\$\$, " . ($most // 'NULL') . ');';
}

# fail(query, times): how often a query ended in a division by zero, each caught.
sub create_fail
{
	my ($node) = @_;

	$node->safe_psql(
		'postgres', q(
		CREATE FUNCTION fail(query text, times int) RETURNS int LANGUAGE plpgsql AS $$
		DECLARE
			n int := 0;
			r record;
		BEGIN
			FOR i IN 1 .. times LOOP
				BEGIN
					EXECUTE query INTO r;
				EXCEPTION WHEN division_by_zero THEN
					n := n + 1;
				END;
			END LOOP;
			RETURN n;
		END $$));
	return;
}

# Scans that have begun to look ahead since the last reset.
sub activated
{
	my ($node) = @_;

	return $node->safe_psql('postgres', 'SELECT sum(scans_activated) FROM pg_stat_lookahead');
}

# Number of open files of a backend, or undef where /proc does not tell.
sub backend_fds
{
	my ($pid) = @_;
	my @fds = glob "/proc/$pid/fd/*";

	return @fds ? scalar @fds : undef;
}

# Memory of the backend behind a session.
sub memory
{
	my ($session) = @_;

	return ask($session, 'SELECT sum(total_bytes) FROM pg_backend_memory_contexts');
}

# A background psql whose time limit is for each of its queries, and for its end.  That of
# PostgreSQL::Test::BackgroundPsql is for its life, which can be as long as the test.
package LookAhead::Session;

our @ISA = ('PostgreSQL::Test::BackgroundPsql');

sub of
{
	my ($psql) = @_;

	$psql->set_query_timer_restart();
	return bless $psql, 'LookAhead::Session';
}

sub quit
{
	my ($self) = @_;

	$self->{timeout}->start();
	return $self->SUPER::quit();
}

1;
