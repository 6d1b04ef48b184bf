# 009_direct_io.pl - look-ahead without a page cache: debug_io_direct = data.
#
# From 18 on, look-ahead then starts asynchronous reads into shared buffers, which stay
# pinned while they are in flight (window/aio.c).  For each io_method that the server can be
# started with: the same rows and errors as with look-ahead off, at any distance; scans that
# are cancelled, fail, end early or rest with reads in flight leave neither pins nor handles
# behind; no backend takes more buffers than its share.  With io_method = sync nothing can
# be started, and nothing is; nor on a standby, until it is promoted.
#
# Tables are put out of shared buffers before each scan, so that there is something to read.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rows = 1500;
my $block_size = 8192;
my $node = new_server(
	'main',
	init => ['--data-checksums'],
	extensions => ['pg_buffercache'],
	# few processes, or each one's share of so few buffers is none, as with the defaults of 19
	conf => "shared_buffers = 8MB\nmax_connections = 30\nmax_wal_senders = 0\nmax_worker_processes = 4\ntemp_buffers = 800kB\n"
	  # what compares points and texts may fail, for entries that a statement would not come to
	  . "pg_lookahead.additional_access_methods = 'gist, spgist'\n");

if ($node->pg_version < 18)
{
	$node->stop;
	plan skip_all => 'asynchronous reads came with 18';
}

my %modes = (
	off => stock(),
	'distance 1' => forced(distance => 1),
	'distance 64' => forced(),
	'distance 1024' => forced(distance => 1024));
my @forced = grep { $_ ne 'off' } sort keys %modes;

# ---- helpers -------------------------------------------------------------------

# One row on each heap block, keys in an order unrelated to that of the blocks.
sub make_table
{
	my ($name, $kind) = @_;

	$node->safe_psql(
		'postgres', qq(
		CREATE $kind TABLE $name (a int, id int, g int, p point, s text, w text) WITH (fillfactor = 10);
		INSERT INTO $name SELECT (i * 7919 + 123) % $rows, i, i % 3, point(i * 7919 % 1009, i * 4447 % 1013), md5(i::text), repeat('w', 820)
			FROM generate_series(1, $rows) i;
		CREATE INDEX ${name}_a ON $name (a, id) WITH (fillfactor = 10);
		CREATE INDEX ${name}_g ON $name USING hash (g);
		CREATE INDEX ${name}_p ON $name USING gist (p);
		CREATE INDEX ${name}_s ON $name USING spgist (s);
		ANALYZE $name;));
	return;
}

# Put it out of shared buffers.
sub cool
{
	$node->safe_psql('postgres', "CHECKPOINT; SELECT pg_buffercache_evict_relation('$_')") for @_;
	return;
}

# What psql prints for a script in each mode, errors included: mode => text.
sub transcripts
{
	my ($sql, @tables) = @_;
	my %text;

	for my $mode (sort keys %modes)
	{
		cool(@tables);
		my ($ret, $out, $err) = $node->psql('postgres', "$modes{$mode}\n$sql", on_error_stop => 0);

		$text{$mode} = "$out\n$err" =~ s/^psql:<stdin>:\d+: //mgr;
	}
	return %text;
}

sub same
{
	my ($sql, $expected, $name, @tables) = @_;
	my %text = transcripts($sql, @tables);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like($text{off}, $expected, "$name: off");
	is($text{$_}, $text{off}, "$name: $_") for @forced;
	nothing_pinned($node, $name);
	return;
}

# Figures of the last statement's scans: scans_activated, blocks_issued
sub figures
{
	return 'SELECT sum(scans_activated) > 0, sum(blocks_issued) FROM pg_lookahead_last_statement()';
}

# ---- tables, and damage ------------------------------------------------------------

make_table('t', '');
make_table('u', 'UNLOGGED');
make_table($_, '') for qw(damaged short);
create_walk($node);
create_fail($node);

my $bad = 436;					# key of the row on the bad block: as many come before it
my $cut = 1400;					# blocks that the short file keeps
my $bad_block = $node->safe_psql('postgres', "SELECT (ctid::text::point)[0] FROM damaged WHERE a = $bad");
my $first_missing = $node->safe_psql('postgres', "SELECT min(a) FROM short WHERE (ctid::text::point)[0] >= $cut");
my $missing_block = $node->safe_psql('postgres', "SELECT (ctid::text::point)[0] FROM short WHERE a = $first_missing");
my $damaged = path_of($node, 'damaged');
my $short = path_of($node, 'short');

$node->stop;
damage($damaged, $bad_block);
truncate $short, $cut * $block_size or die $!;

# ---- the queries -------------------------------------------------------------------

my $everything = 'p <@ box(point(-1, -1), point(2000, 2000))';
my %scans = (
	'index scan' => ['t_a', 'SELECT a, id, w FROM t WHERE a >= 0 ORDER BY a'],
	'index scan backward' => ['t_a', 'SELECT a, id, w FROM t WHERE a >= 0 ORDER BY a DESC'],
	'index-only scan' => ['t_a', 'SELECT a, id FROM t WHERE a >= 0 ORDER BY a'],
	'unlogged' => ['u_a', 'SELECT a, id, w FROM u WHERE a >= 0 ORDER BY a'],
	'hash' => ['t_g', 'SELECT a, id, w FROM t WHERE g = 1'],
	'gist' => ['t_p', "SELECT a, id, w FROM t WHERE $everything"],
	'nearest' => ['t_p', "SELECT a, id, w FROM t WHERE $everything ORDER BY p <-> point(300, 300)"],
	'spgist' => ['t_s', "SELECT a, id, w FROM t WHERE s > '2'"]);
my @tables = qw(t u);

# What one backend may have pinned: its part of shared_buffers, and a few that any scan has.
my $share = 1024 / 30 + 10;

# Servers without direct I/O, or where this method cannot be had, do not start.
sub start_with
{
	my ($method) = @_;

	$node->append_conf('postgresql.conf', "debug_io_direct = data\nio_method = $method\n");
	return $node->start(fail_ok => 1);
}

sub run_all
{
	my ($method) = @_;
	my $asynchronous = $method ne 'sync';
	my $size = -s $node->logfile;
	my ($session, $pid);

	is($node->safe_psql('postgres', 'SHOW io_method; SHOW debug_io_direct'), "$method\ndata", "$method: settings");

	# ---- the same rows ----
	for my $name (sort keys %scans)
	{
		my ($index, $query) = @{ $scans{$name} };

		like($node->safe_psql('postgres', forced() . "EXPLAIN (costs off) $query"), qr/using $index /, "$method, $name: plan");
		same("$query;", qr/^\d+\|\d+/, "$method, $name", @tables);
		same("SELECT * FROM ($query LIMIT 40) s; SELECT 1;", qr/^\d+\|\d+/, "$method, $name, LIMIT", @tables);
		same("BEGIN; DECLARE c NO SCROLL CURSOR FOR $query; MOVE 100 FROM c; FETCH 3 FROM c; SAVEPOINT a; MOVE 100 FROM c;
			ROLLBACK TO a; FETCH 3 FROM c; DECLARE d NO SCROLL CURSOR FOR $query; MOVE 90 FROM d; FETCH 50 FROM c;
			FETCH 50 FROM d; CLOSE d; FETCH 3 FROM c; COMMIT;", qr/^\d+\|\d+/, "$method, $name, cursors", @tables);

		# or an index-only scan had no block to read: from 19 on, scans have set the visibility map
		$node->safe_psql('postgres', 'BEGIN; DELETE FROM t WHERE id % 7 = 0; ROLLBACK');
		cool(@tables);
		my $figures = $node->safe_psql('postgres', forced() . "CREATE TEMP TABLE x AS $query; " . figures());
		like($figures, $asynchronous ? qr/^t\|[1-9]\d/ : qr/^t\|0$/, "$method, $name: reads are " . ($asynchronous ? '' : 'not ') . 'started');
	}
	same('SELECT g, x.id FROM generate_series(0, 400, 7) g, LATERAL (SELECT id, w FROM t WHERE a >= g ORDER BY a LIMIT 9) x WHERE w IS NOT NULL;',
		qr/^0\|/, "$method, rescans with LIMIT", @tables);
	same("CREATE TEMP TABLE tt AS SELECT * FROM t; CREATE INDEX tt_a ON tt (a); ANALYZE tt;
		SELECT count(*), sum(id), min(w) FROM (SELECT * FROM tt WHERE a >= 0 ORDER BY a OFFSET 0) s;", qr/^$rows\|/, "$method, temporary table");

	# ---- scans that do not reach their end ----
	my $holder = open_session($node, 'SELECT pg_advisory_lock(1)');
	for my $name (sort keys %scans)
	{
		my $query = $scans{$name}[1];
		my $middle = $node->safe_psql('postgres', stock() . "SELECT id FROM ($query LIMIT 1 OFFSET 200) s");
		my $at = sub {
			return "SELECT count(*), sum(CASE WHEN id = $middle THEN $_[0] ELSE 0 END) FROM ($query OFFSET 0) s";
		};
		my $waiting = $at->('length(pg_advisory_lock(1)::text)');
		my $plain = $at->('1');
		my $answer = $node->safe_psql('postgres', stock() . $plain);

		# the furthest has most in flight; with sync there is nothing in flight
		for my $mode ($asynchronous ? 'distance 1024' : ())
		{
			my $which = "$method, $name, $mode";

			$session = open_session($node, $modes{$mode});
			$pid = pid_of($session);

			cool(@tables);
			start_waiting($node, $session, $pid, $waiting);
			my $pinned = pinned($node);
			cmp_ok($pinned, '>=', 1, "$which: caught in mid-scan, $pinned buffers pinned");
			cmp_ok($pinned, '<=', $share, '... which are not more than its share');
			$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
			is(ask($session, 'SELECT 1'), "1\nERROR:  canceling statement due to user request", "$which: canceled");
			nothing_pinned($node, "$which: canceled");

			cool(@tables);
			ask($session, "BEGIN; SAVEPOINT a; DECLARE c NO SCROLL CURSOR FOR $waiting");
			start_waiting($node, $session, $pid, 'FETCH c');
			$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
			is(ask($session, 'ROLLBACK TO a'), 'ERROR:  canceling statement due to user request', "$which: cursor canceled");
			nothing_pinned($node, "$which: cursor canceled");
			is(ask($session, $plain), $answer, "$which: the transaction goes on");

			# more often than there are handles and buffers
			cool(@tables);
			is(ask($session, 'SELECT fail($$' . $at->('1 / length(left(w, 0))') =~ s/left\(w, 0\)/left('w', (id - $middle))/r . '$$, 50)'), 50,
				"$which: errors in exception blocks") if $name ne 'hash';
			ask($session, 'ROLLBACK');
			nothing_pinned($node, "$which: errors");

			# a cursor that rests: what was in flight stays, and goes with it
			ask($session, 'BEGIN');
			for my $end ('CLOSE c', 'ROLLBACK TO a', 'COMMIT')
			{
				cool(@tables);
				ask($session, "SAVEPOINT a; DECLARE c NO SCROLL CURSOR FOR $query; FETCH 1 FROM c; MOVE 20 FROM c; MOVE 100 FROM c");
				cmp_ok(pinned($node), '<=', $share, "$which: at rest");
				ask($session, $end);
				nothing_pinned($node, "$which: $end");
			}

			cool(@tables);
			start_waiting($node, $session, $pid, $waiting);
			$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
			$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid");
			nothing_pinned($node, "$which: terminated");
			{
				local $SIG{PIPE} = 'IGNORE';		# psql may be gone by now
				eval { $session->quit };
			}
		}
	}
	$holder->quit;

	# timeouts that strike while reads are in flight
	$session = open_session($node, forced(distance => 1024));
	for my $name (sort keys %scans)
	{
		my $plain = "SELECT count(*), sum(id) FROM ($scans{$name}[1] OFFSET 0) s";
		my $answer = $node->safe_psql('postgres', stock() . $plain);
		my @strange;

		for my $ms (1 .. 4)
		{
			cool(@tables);
			push @strange, grep { $_ ne $answer && !is_timeout($_) }
			  split /\n/, ask($session, "SET statement_timeout = '${ms}ms';\n$plain;");
			reset_timeout($session);
		}
		is("@strange", '', "$method, $name: short timeouts");
		nothing_pinned($node, "$method, $name: short timeouts");
	}
	$session->quit;

	# ---- many cursors: nobody runs out of buffers ----
	my @sessions = map { open_session($node, forced(distance => 1024)) } 1 .. 12;
	my $trouble = '';
	cool(@tables);
	for my $round (1 .. 3)
	{
		for my $s (@sessions)
		{
			$trouble .= ask($s, 'BEGIN') if $round == 1;
			for my $name (sort keys %scans)
			{
				my $c = $name =~ tr/a-z//cdr;

				$trouble .= ask($s, "DECLARE $c NO SCROLL CURSOR FOR $scans{$name}[1]") if $round == 1;
				$trouble .= ask($s, "MOVE 60 FROM $c");
			}
		}
		my $pinned = pinned($node);
		cmp_ok($pinned, '<', 1024 - 100, "$method: pinned by 12 backends with 8 cursors each: $pinned of 1024");
	}
	$trouble .= ask($_, 'ROLLBACK') for @sessions;
	$_->quit for @sessions;
	is($trouble, '', "$method: many cursors: no error");
	nothing_pinned($node, "$method: many cursors");

	# ---- damage ----
	my $file = $damaged =~ s/.*(base\/)/$1/r;
	my $error = qr/invalid page in block $bad_block of relation "?\Q$file\E"?/;
	my $scan = 'SELECT a, id, w FROM damaged WHERE a >= 0 ORDER BY a';

	same(walk($scan), qr/^$bad rows, XX001: $error/, "$method, damaged block", 'damaged');
	same(walk($scan, $bad), qr/^$bad rows\n/, "$method, closed before the damaged block", 'damaged');
	same(walk("$scan LIMIT $bad"), qr/^$bad rows\n/, "$method, LIMIT before the damaged block", 'damaged');
	# (by an index-only scan 19 would not read the block, which it has marked as all-visible)
	same("SELECT count(w) FROM ($scan OFFSET 0) s; SELECT 1;", qr/ERROR:  $error/, "$method, damaged block, no cursor", 'damaged');
	my $one = $scan =~ s/a >= 0/a = n.i/r;

	same(walk("SELECT s.* FROM generate_series(0, $rows) n (i), LATERAL ($one OFFSET 0) s"),
		qr/^$bad rows, XX001: $error/, "$method, damaged block, rescanned", 'damaged');
	same(walk("SELECT id, w FROM damaged WHERE g = 1"), qr/^\d+ rows/, "$method, damaged block, hash", 'damaged');
	same(walk("SELECT id, w FROM damaged WHERE $everything"), qr/^\d+ rows, XX001: $error/, "$method, damaged block, GiST", 'damaged');
	same("BEGIN; DECLARE c CURSOR FOR $scan; MOVE 400 FROM c; SAVEPOINT a; MOVE 100 FROM c; ROLLBACK TO a; FETCH 1 FROM c;
		ROLLBACK TO a; SELECT count(w) FROM t WHERE a BETWEEN 10 AND 300; COMMIT;",
		qr/^291\n.*$error/s, "$method, damaged block, the transaction goes on", 'damaged', @tables);

	# in some of the reads that are in flight there is an error, and the scan never comes there
	same("SELECT count(w) FROM ($scan LIMIT " . ($bad - 3) . ") s; SELECT 2;", qr/^433\n2\n$/, "$method, ended just before", 'damaged');

	my $missing = qr/could not read blocks? $missing_block(?:\.\.$missing_block)? in file "[^"]*": /;
	$scan =~ s/damaged/short/;
	same(walk($scan), qr/^$first_missing rows, XX001: $missing/, "$method, file too short", 'short');
	same(walk("$scan LIMIT $first_missing"), qr/^$first_missing rows\n/, "$method, file too short, LIMIT", 'short');

	# ---- in the end ----
	my @bad = grep { /WARNING:|PANIC:|TRAP:|leak|open AIO|was terminated/ } split /\n/, slurp_file($node->logfile, $size);
	is("@bad", '', "$method: no warning in the server log");
	return;
}

my $ran = 0;
for my $method ('worker', 'io_uring', 'sync')
{
	if (start_with($method))
	{
		run_all($method);
		$node->stop;
		$ran++;
	}
	else
	{
		note("$method: the server does not start");
		ok(1, "$method is not to be had here");
	}
}
check_log($node) if $ran;

# ---- a standby, and its promotion --------------------------------------------------------

# On a standby no read is started, since the pins could cancel queries.  That changes at the
# promotion, in the midst of scans.
if ($ran)
{
	my $primary = new_server('primary', streaming => 1, extensions => ['pg_buffercache'],
		conf => "shared_buffers = 8MB\ndebug_io_direct = data\nio_method = worker\n");

	$primary->safe_psql('postgres', random_table('t', 5000));
	$primary->backup('base');
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	$standby->start;
	$primary->wait_for_catchup($standby);

	my $whole = 'SELECT count(w), sum(id) FROM (SELECT * FROM t WHERE a >= 0 ORDER BY a, id OFFSET 0) s';
	my $answer = $primary->safe_psql('postgres', stock() . $whole);
	my $session = open_session($standby, forced() . 'BEGIN;');

	is(ask($session, "$whole; " . figures()), "$answer\nt|0", 'standby: no reads are started');
	ask($session, 'DECLARE c NO SCROLL CURSOR FOR SELECT * FROM t WHERE a >= 0 ORDER BY a, id; MOVE 100 FROM c');
	$standby->promote;
	is(ask($session, 'FETCH 1 FROM c; MOVE ALL FROM c; CLOSE c; COMMIT;'),
		$primary->safe_psql('postgres', stock() . 'SELECT * FROM t WHERE a >= 0 ORDER BY a, id OFFSET 100 LIMIT 1'),
		'a scan that saw the promotion');
	is(ask($session, $whole), $answer, 'promoted: the session goes on');
	$session->quit;
	$standby->safe_psql('postgres', q(CHECKPOINT; SELECT pg_buffercache_evict_relation('t')));
	like($standby->safe_psql('postgres', forced() . "$whole; " . figures()), qr/^\Q$answer\E\nt\|[1-9]/, 'promoted: reads are started');
	check_log($standby, 'standby: server log is clean');
	$standby->stop;
	$primary->stop;
}

done_testing();
