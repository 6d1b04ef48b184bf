# 003_cancel.pl - scans that do not reach their end leave nothing behind.
#
# Scans with look-ahead forced are stopped in the middle in every way there is: by cancel,
# timeout, termination, an error in the query or in a comparison function, LIMIT, closed
# and forgotten cursors, savepoints, and a crash.  Afterwards no buffer of the tables is
# pinned, the server log knows of no leak, and a session that has aborted 2000 scans has
# neither more memory nor more open files than before.
#
# "In the middle" does not depend on time: where a scan has to be caught, the query itself
# waits at a given row for an advisory lock that another session holds.
#
# What the client sees is compared with the same statements with look-ahead off.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server(
	'main',
	extensions => [ 'pg_buffercache', 'amcheck' ],
	conf => "restart_after_crash = on\n");

$node->safe_psql('postgres', random_table('t', 5000) . random_table('u', 5000, kind => 'UNLOGGED'));

# Dead index entries, and blocks that are not all-visible.
$node->safe_psql('postgres', "UPDATE $_ SET b = b, w = w || 'x' WHERE id % 3 = 0") for qw(t u);

# The row that a scan in index order comes to after many leaf pages.
my %middle =
  map { $_ => $node->safe_psql('postgres', "SELECT id FROM $_ ORDER BY a, id OFFSET 2000 LIMIT 1") } qw(t u);

# ... and soon, for scans that are repeated often.
my $soon = $node->safe_psql('postgres', 'SELECT id FROM t ORDER BY a, id OFFSET 200 LIMIT 1');
my $soon_backward = $node->safe_psql('postgres', 'SELECT id FROM t ORDER BY a DESC, id DESC OFFSET 200 LIMIT 1');

# ---- helpers ---------------------------------------------------------------

# Queries that compute $extra for each row, while the scan is under way.
sub queries
{
	my ($table, $extra) = @_;

	return (
		'index scan' =>
		  "SELECT count(*), sum(id + length(w) + $extra) FROM (SELECT * FROM $table WHERE a >= 0 ORDER BY a, id OFFSET 0) s",
		'index-only scan' =>
		  "SELECT count(*), sum(id + $extra) FROM (SELECT a, id FROM $table WHERE a >= 0 ORDER BY a, id OFFSET 0) s",
		'index scan backward' =>
		  "SELECT count(*), sum(id + length(w) + $extra) FROM (SELECT * FROM $table WHERE a >= 0 ORDER BY a DESC, id DESC OFFSET 0) s");
}

# $extra that waits, and $extra that fails, at a row
sub waiting
{
	my ($id) = @_;

	return "CASE WHEN id = $id THEN length(pg_advisory_lock(1)::text) ELSE 0 END";
}

sub failing
{
	my ($id) = @_;

	return "1 / (id - $id)";
}

my $holder = open_session($node, 'SELECT pg_advisory_lock(1)');
my ($out, $session, $pid);

# ---- cancel, timeout, termination --------------------------------------------

for my $table (qw(t u))
{
	my %query = queries($table, waiting($middle{$table}));
	my %plain = queries($table, 0);

	for my $kind (sort keys %query)
	{
		for my $ring (2, 64)
		{
			my $name = "$table, $kind, ring $ring";

			$session = open_session($node, forced(ring => $ring));
			$pid = pid_of($session);

			check_cancel($node, $session, $pid, $name, $query{$kind},
				timeout => '200ms',
				cursor => 'CURSOR',
				meanwhile => sub { cmp_ok(pinned($node), '>=', 1, "$name: caught in mid-scan") });
			is(ask($session, $plain{$kind}), $node->safe_psql('postgres', stock() . $plain{$kind}),
				"$name: the session goes on");
			ask($session, 'COMMIT');

			start_waiting($node, $session, $pid, $query{$kind});
			$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
			$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid");
			nothing_pinned($node, "$name: terminated");
			{
				local $SIG{PIPE} = 'IGNORE';		# psql may be gone by now
				eval { $session->quit };
			}
		}
	}
}

# Timeouts that strike anywhere: the right answer or an error, and nothing left.
$session = open_session($node, forced());
{
	my %plain = queries('t', 0);

	for my $kind (sort keys %plain)
	{
		my $answer = $node->safe_psql('postgres', stock() . $plain{$kind});
		my $script = join("\n", map { "SET statement_timeout = '${_}ms';\n$plain{$kind};" } map { ($_) x 5 } 1 .. 8);
		my @strange = grep { $_ ne $answer && !is_timeout($_) }
		  split /\n/, ask($session, $script);

		is("@strange", '', "$kind with short timeouts");
		reset_timeout($session);
		nothing_pinned($node, "$kind with short timeouts");
	}
}
$session->quit;

# ---- errors in the middle -------------------------------------------------------

create_fail($node);

my %failing = queries('t', failing($soon));
$failing{'index scan backward'} =~ s/id - $soon/id - $soon_backward/;
my %growth;
for my $mode ('off', 'ring 2', 'ring 64')
{
	$session = open_session($node, $mode eq 'off' ? stock() : forced(ring => (split / /, $mode)[1]));
	$pid = pid_of($session);
	for my $kind (sort keys %failing)
	{
		my $name = "$kind, $mode";
		my $once = "SELECT fail(\$\$$failing{$kind}\$\$, 100)";
		my $often = "SELECT fail(\$\$$failing{$kind}\$\$, 2000)";

		is(ask($session, $failing{$kind}), 'ERROR:  division by zero', "$name: an error in mid-scan");
		nothing_pinned($node, "$name: after an error");

		# exception blocks
		ask($session, 'BEGIN');
		is(ask($session, $once), 100, "$name: errors in exception blocks");
		nothing_pinned($node, "$name: after exception blocks, in the transaction");
		my ($memory, $fds) = (memory($session), backend_fds($pid));
		is(ask($session, $often), 2000, "$name: 2000 errors in exception blocks");
		$growth{$kind}{$mode} = memory($session) - $memory;
		cmp_ok($growth{$kind}{$mode}, '<=', $growth{$kind}{off} + 32 * 1024,
			"$name: no more memory than without look-ahead");
		ask($session, 'COMMIT');
	  SKIP:
		{
			skip 'no /proc', 1 unless defined $fds;
			cmp_ok(backend_fds($pid), '<=', $fds + 2, "$name: no more open files");
		}

		# statements; each prints its error, so there are fewer
		ask($session, "$failing{$kind};\n" x 100);
		($memory, $fds) = (memory($session), backend_fds($pid));
		$out = ask($session, "$failing{$kind};\n" x 400);
		is(scalar(() = $out =~ /^ERROR:  division by zero$/mg), 400, "$name: 400 statements with an error");
		cmp_ok(memory($session), '<=', $memory + 16 * 1024, "$name: no more memory");
	  SKIP:
		{
			skip 'no /proc', 1 unless defined $fds;
			cmp_ok(backend_fds($pid), '<=', $fds + 2, "$name: no more open files");
		}
		nothing_pinned($node, "$name: after all that");
	}
	$session->quit;
}

# An error inside the access method: a comparison function that fails at a value, of an
# operator class of our own.
$node->safe_psql(
	'postgres', q(
	CREATE FUNCTION ocmp(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF current_setting('test.bad', true) IN ($1::text, $2::text) THEN
			RAISE EXCEPTION 'cannot compare %', current_setting('test.bad');
		END IF;
		RETURN btint4cmp($1, $2);
	END $$;
	CREATE FUNCTION olt(int, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN ocmp($1, $2) < 0; END $$;
	CREATE FUNCTION ole(int, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN ocmp($1, $2) <= 0; END $$;
	CREATE FUNCTION oge(int, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN ocmp($1, $2) >= 0; END $$;
	CREATE FUNCTION ogt(int, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN ocmp($1, $2) > 0; END $$;
	CREATE OPERATOR <<< (FUNCTION = olt, LEFTARG = int, RIGHTARG = int);
	CREATE OPERATOR <<<= (FUNCTION = ole, LEFTARG = int, RIGHTARG = int);
	CREATE OPERATOR >>>= (FUNCTION = oge, LEFTARG = int, RIGHTARG = int);
	CREATE OPERATOR >>> (FUNCTION = ogt, LEFTARG = int, RIGHTARG = int);
	CREATE OPERATOR CLASS odd_ops FOR TYPE int USING btree AS
		OPERATOR 1 <<<, OPERATOR 2 <<<=, OPERATOR 3 =, OPERATOR 4 >>>=, OPERATOR 5 >>>, FUNCTION 1 ocmp(int, int);
	CREATE TABLE odd AS SELECT (hashint4(i) & 1023) * 1000 + i AS k, repeat('w', 100) AS w FROM generate_series(1, 3000) i;
	CREATE INDEX odd_k ON odd (k odd_ops) WITH (fillfactor = 20);
	ANALYZE odd;));
{
	# k <<< 900000 is compared with the entries of each page, or with the last one only
	my $query = 'SELECT count(*), max(k), min(w) FROM (SELECT * FROM odd WHERE k >>>= 1 AND k <<< 900000 OFFSET 0) s';
	my $bad = $node->safe_psql('postgres', 'SELECT k FROM odd ORDER BY k OFFSET 1500 LIMIT 1');
	my $answer = $node->safe_psql('postgres', 'SELECT count(*), max(k), min(w) FROM odd WHERE k < 900000');

	for my $ring (2, 64)
	{
		$session = open_session($node, forced(ring => $ring));
		like(ask($session, "EXPLAIN $query"), qr/Index Scan using odd_k/, 'a scan with comparisons of our own');
		is(ask($session, $query), $answer, "... has the right answer, ring $ring");
		ask($session, 'BEGIN; SAVEPOINT a');
		for my $id (900000, $bad)
		{
			my $got = ask($session, "SET LOCAL test.bad = $id;\n$query");

			like($got, qr/^ERROR:  cannot compare $id$|^\Q$answer\E$/m, "a comparison fails, ring $ring");
			ask($session, 'ROLLBACK TO a');
			nothing_pinned($node, "a comparison failed, ring $ring");
		}
		is(ask($session, $query), $answer, 'the transaction goes on');
		ask($session, 'COMMIT');
		$session->quit;
	}
}

# ---- cursors, savepoints, early ends: the same as with look-ahead off ---------------

$node->safe_psql(
	'postgres', q(
	CREATE FUNCTION first_rows(n int) RETURNS SETOF int LANGUAGE plpgsql AS $$
	DECLARE
		r record;
	BEGIN
		FOR r IN SELECT a, id, w FROM t WHERE a >= 0 ORDER BY a, id LOOP
			RETURN NEXT r.id;
			n := n - 1;
			IF n = 0 THEN RETURN; END IF;
		END LOOP;
	END $$;
	CREATE FUNCTION caught(n int) RETURNS int LANGUAGE plpgsql AS $$
	DECLARE
		c CURSOR FOR SELECT a, id, w FROM t WHERE a >= 0 ORDER BY a, id;
		r record;
		last int;
	BEGIN
		OPEN c;
		FOR i IN 1 .. n LOOP
			BEGIN
				FETCH c INTO r;
				last := r.id;
				IF i % 2 = 0 THEN
					PERFORM count(*), sum(1 / (id - last)) FROM (SELECT id, w FROM t WHERE a >= 0 ORDER BY a, id) s;
				END IF;
			EXCEPTION WHEN division_by_zero THEN
				NULL;
			END;
		END LOOP;
		FETCH c INTO r;
		RETURN r.id;		-- the cursor stays open
	END $$;
	CREATE FUNCTION open_inside(c refcursor, fail bool) RETURNS refcursor LANGUAGE plpgsql AS $$
	BEGIN
		BEGIN
			OPEN c FOR SELECT a, id, w FROM t WHERE a >= 0 ORDER BY a, id;
			MOVE 200 FROM c;
			IF fail THEN
				RAISE EXCEPTION 'failed';
			END IF;
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
		RETURN c;
	END $$));

my $scan = 'SELECT a, id, w FROM t WHERE a >= 0 ORDER BY a, id';
my $only = 'SELECT a, id FROM t WHERE a >= 0 ORDER BY a, id';
my $wrong = "SELECT id, 1 / (id - $soon) FROM t WHERE a >= 0 ORDER BY a, id";
my $unlogged = 'SELECT a, id, w FROM u WHERE a >= 0 ORDER BY a, id';
my $clean = '=';	# at this step nothing may be pinned

my %scenario = (
	'early LIMIT' => [
		map({ ("$_ LIMIT 3", "SELECT count(*) FROM ($_ LIMIT 500) s", $clean) } $scan, $only, $unlogged),
		'BEGIN', "$scan LIMIT 100", $clean, 'COMMIT',
		"SELECT g, (SELECT id FROM t WHERE a > g ORDER BY a, id LIMIT 1) FROM generate_series(1, 40000, 997) g", $clean,
		"SELECT EXISTS (SELECT FROM ($scan OFFSET 1000) s)", $clean,
		'SELECT min(a), max(a) FROM t WHERE id > 0', $clean,
	],
	'closed cursors' => [
		'BEGIN',
		map({
			("DECLARE c CURSOR FOR $_", 'FETCH 5 FROM c', 'MOVE 300 FROM c', 'CLOSE c', $clean,
			"DECLARE c SCROLL CURSOR FOR $_", 'MOVE 400 FROM c', 'FETCH BACKWARD 5 FROM c', 'FETCH 3 FROM c',
			'CLOSE ALL', $clean)
		} $scan, $only, $unlogged),
		'COMMIT', $clean,
	],
	'forgotten cursors' => [
		map({
			my $end = $_;
			map({
				('BEGIN', "DECLARE c CURSOR FOR $_", 'FETCH 5 FROM c', "DECLARE d CURSOR FOR $_ DESC, id DESC",
				'MOVE 500 FROM d', 'FETCH 2 FROM d', $end, $clean)
			} $scan =~ s/, id$//r, $only =~ s/, id$//r, $unlogged =~ s/, id$//r)
		} 'COMMIT', 'ROLLBACK', 'DISCARD ALL', 'ABORT'),
	],
	'cursors WITH HOLD' => [
		map({
			('BEGIN', "DECLARE c CURSOR WITH HOLD FOR $_", 'FETCH 5 FROM c', 'COMMIT', $clean,
			'FETCH 5 FROM c', 'MOVE 4000 FROM c', 'FETCH 5 FROM c', 'CLOSE c')
		} $scan, $only, $unlogged),
		'BEGIN', "DECLARE c CURSOR WITH HOLD FOR $wrong", 'FETCH 5 FROM c', 'COMMIT', $clean, 'FETCH 1 FROM c',
	],
	'savepoints' => [
		'BEGIN', "DECLARE c CURSOR FOR $scan", "DECLARE o CURSOR FOR $only", 'FETCH 5 FROM c', 'FETCH 5 FROM o',
		'SAVEPOINT a', 'MOVE 400 FROM c', 'MOVE 400 FROM o', 'ROLLBACK TO a', 'FETCH 5 FROM c', 'FETCH 5 FROM o',
		'SAVEPOINT b', "DECLARE d CURSOR FOR $unlogged", 'MOVE 100 FROM d', 'ROLLBACK TO b', 'FETCH d',
		'ROLLBACK TO b', 'FETCH 5 FROM c', 'FETCH 5 FROM o',
		'SAVEPOINT k', "DECLARE d CURSOR FOR $only", 'MOVE 100 FROM d', 'RELEASE k', 'FETCH 3 FROM d',
		'SAVEPOINT l', 'SELECT 1 / 0', 'ROLLBACK TO l', 'FETCH 3 FROM d', 'FETCH 5 FROM c',
		'SAVEPOINT m', 'CLOSE c', 'ROLLBACK TO m', 'FETCH 3 FROM d', 'FETCH 5 FROM c',
		'ROLLBACK TO m', 'MOVE ALL FROM d', 'FETCH BACKWARD 2 FROM d', 'COMMIT', $clean,
	],
	'error in a cursor' => [
		'BEGIN', "DECLARE c CURSOR FOR $scan", 'MOVE 100 FROM c', 'SAVEPOINT a', "DECLARE e CURSOR FOR $wrong",
		'SAVEPOINT b', 'FETCH 5 FROM e', 'MOVE 1000 FROM e', 'ROLLBACK TO b', 'FETCH e', 'ROLLBACK TO b',
		'FETCH 3 FROM c', 'CLOSE e', 'FETCH 3 FROM c', 'ROLLBACK TO a', 'FETCH 3 FROM c', 'CLOSE c', $clean,
		'COMMIT', $clean,
	],
	'loops and functions' => [
		'SELECT * FROM first_rows(7)', $clean, 'SELECT first_rows(300) LIMIT 2', $clean,
		'SELECT count(*) FROM first_rows(700)', $clean,
		'BEGIN', 'SELECT caught(40)', 'SELECT caught(7)', 'COMMIT', $clean,
		'BEGIN', "SELECT open_inside('c', false)", 'FETCH 3 FROM c', 'SAVEPOINT a', "SELECT open_inside('d', true)",
		'FETCH 3 FROM d', 'ROLLBACK TO a', 'FETCH 3 FROM c', 'COMMIT', $clean,
	],
	'temporary tables' => [
		'CREATE TEMP TABLE p AS SELECT * FROM t', 'CREATE INDEX p_a ON p (a, id)', 'ANALYZE p',
		'SELECT count(*), sum(id) FROM (SELECT id, w FROM p WHERE a >= 0 ORDER BY a, id) s',
		"SELECT 1 / (id - $soon), w FROM p WHERE a >= 0 ORDER BY a, id",
		'BEGIN', 'DECLARE c CURSOR FOR SELECT a, id FROM p WHERE a >= 0 ORDER BY a, id', 'FETCH 3 FROM c', 'MOVE 500 FROM c',
		'SAVEPOINT a', "SELECT 1 / (id - $soon), w FROM p WHERE a >= 0 ORDER BY a, id", 'ROLLBACK TO a', 'FETCH 3 FROM c',
		'ROLLBACK', 'SELECT count(w) FROM p WHERE a >= 0', 'DROP TABLE p',
	],
);

for my $name (sort keys %scenario)
{
	my %seen;

	for my $mode ('off', 'ring 2', 'ring 64')
	{
		my $settings = $mode eq 'off' ? stock() : forced(ring => (split / /, $mode)[1]);
		my @transcript;
		my $left = '';

		$session = open_session($node, $settings);
		for my $step (@{ $scenario{$name} })
		{
			if ($step eq $clean)
			{
				$left .= pinned_relations($node);
				next;
			}
			push @transcript, "$step -> " . ask($session, $step);
			ask($session, $settings) if $step eq 'DISCARD ALL';
		}
		$session->quit;
		$seen{$mode} = join("\n", @transcript);
		is($left, '', "$name, $mode: nothing is pinned when it should not be");
		is($seen{$mode}, $seen{off}, "$name: $mode prints what stock prints") if $mode ne 'off';
	}
}

cmp_ok(activated($node), '>', 1000, 'scans have looked ahead');
check_log($node);

# ---- a crash in mid-scan --------------------------------------------------------------

# Both sessions are psql processes of a shell's, whose ends nobody reads: writing to a psql
# that has just lost its server can end the test itself.
sub psql_in_background
{
	my ($name, $sql, $wait_event) = @_;
	my $file = $node->basedir . "/$name.sql";
	my $connstr = $node->connstr('postgres') . " application_name=$name";

	unlink($file);
	append_to_file($file, $sql);
	system(qq(psql -X -q -d "$connstr" -f "$file" >"$file.out" 2>&1 &)) == 0 or die 'no psql';
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = '$name' AND wait_event = '$wait_event'")
	  or die "$name does not wait for $wait_event";
	return $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = '$name'");
}

my $size = -s $node->logfile;
my %answer;
$holder->quit;
for my $kind ('index scan', 'index-only scan')
{
	my %query = queries('t', waiting($middle{t}));
	my %plain = queries('t', 0);

	psql_in_background('holder', "SELECT pg_advisory_lock(1);\nSELECT pg_sleep(600);\n", 'PgSleep');
	$answer{$kind} = $node->safe_psql('postgres', forced() . $plain{$kind});
	$pid = psql_in_background('victim', forced() . "$query{$kind};\n", 'advisory');
	system_or_bail('pg_ctl', 'kill', 'KILL', $pid);

	# the server comes back
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name IN ('holder', 'victim')")
	  or die 'the server does not come back';
	is($node->safe_psql('postgres', forced() . $plain{$kind}), $answer{$kind}, "$kind after a crash in mid-scan");
	nothing_pinned($node, "$kind after a crash");
	is(check_indexes($node), '', 'indexes are sound');
}
is($node->safe_psql('postgres', forced() . 'SELECT count(*) FROM u WHERE a >= 0'), 0, 'the unlogged table is empty');

my $log = slurp_file($node->logfile, $size);
is(scalar(() = $log =~ /was terminated by signal 9/g), 2, 'two backends were killed');
unlike($log, qr/PANIC:|TRAP:|refcount leak|was not closed|terminated by signal (?!9:)/, 'nothing else happened');

$node->stop;

done_testing();
