# 010_third_party.pl - index access methods of other extensions.
#
# HNSW and IVFFlat (pgvector), RUM, and GiST with the operator classes of btree_gist: scans
# in order of distance, with filters, rescans and cursors, must return the same rows in the
# same order with look-ahead off and forced, and must look ahead when forced.  A cancel in
# mid-scan leaves nothing behind, and pg_lookahead.excluded_access_methods keeps a method
# out.  Of a version that was not tested, scans run stock, unless the method is listed in
# pg_lookahead.additional_access_methods.
#
# What is not installed is skipped; dev/lib/thirdparty.sh installs pgvector and RUM.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', extensions => ['pg_buffercache']);
my $holder = open_session($node, 'SELECT pg_advisory_lock(1)');

# Whether the extension could be created.
sub has_extension
{
	my ($name) = @_;

	return 0
	  if $node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = '$name'") == 0;
	$node->safe_psql('postgres', "CREATE EXTENSION $name");
	return 1;
}

# ---- comparisons -------------------------------------------------------------

my $activated = q(SELECT 'activated', coalesce(string_agg(index || ' ' || (scans_activated > 0)::text, ', ' ORDER BY index), 'none')
	FROM pg_lookahead_last_statement());

# The same rows in the same order, from scans of $index that look ahead.  Settings are for
# both; $query is one SELECT.
sub compare
{
	my ($name, $index, $query, $settings) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$settings = 'SET enable_sort = off;' . ($settings // '');
	like($node->safe_psql('postgres', stock() . "$settings EXPLAIN $query"),
		qr/Index (Only )?Scan using \Q$index\E/, "$name: scans $index");
	my $expected = $node->safe_psql('postgres', stock() . "$settings $query");
	isnt($expected, '', "$name: there are rows");
	for my $p ([ 64, 64 ], [ 2, 1 ])
	{
		is( $node->safe_psql(
				'postgres', forced(ring => $p->[0], distance => $p->[1]) . "$settings $query;\n$activated"),
			"$expected\nactivated|$index true",
			"$name: the same rows, distance $p->[1]");
	}
	return;
}

# Two cursors, one that looks ahead, that are half read when all rows are deleted, vacuumed
# and replaced.  Distances must differ: rows with the same one may change places when the
# index changes.  RUM keeps index pages pinned for as long as a cursor is open, look-ahead or
# not, and VACUUM waits for them: it is left out there.
sub compare_cursor
{
	my ($name, $table, $query, $settings) = @_;
	my @vacuum = $name eq 'rum' ? () : ("VACUUM $table");
	my (%session, %got);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->safe_psql('postgres', "DELETE FROM $table WHERE id % 10 = 9");
	for my $mode ('off', 'forced')
	{
		$session{$mode} = open_session($node,
			($mode eq 'off' ? stock() : forced()) . 'SET enable_sort = off;' . ($settings // ''));
		$got{$mode} = ask($session{$mode}, "BEGIN; DECLARE c NO SCROLL CURSOR FOR $query; FETCH 7 FROM c");
	}
	$node->safe_psql('postgres', $_)
	  for (
		@vacuum,
		"CREATE TABLE saved AS SELECT * FROM $table",
		"DELETE FROM $table",
		"INSERT INTO $table SELECT * FROM saved ORDER BY id DESC",
		@vacuum,
		'DROP TABLE saved');
	for my $mode ('off', 'forced')
	{
		$got{$mode} .= "\n" . ask($session{$mode}, 'FETCH 3 FROM c; FETCH ALL FROM c; CLOSE c');
	}
	nothing_pinned($node, "$name: closed cursors");
	$session{$_}->quit for keys %session;
	is($got{forced}, $got{off}, "$name: a cursor over rows that are replaced");
	return;
}

# A cursor between whose FETCHes a setting changes that the access method reads for each row, after
# so many rows that rows to come may be beyond what the index gives with the first value.
sub compare_setting
{
	my ($name, $query, $settings, $later) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	for my $n (3, 20, 38)
	{
		my %got;

		for my $mode ('off', 'forced')
		{
			my $session = open_session($node,
				($mode eq 'off' ? stock() : forced()) . "SET enable_sort = off; $settings");

			$got{$mode} = ask($session,
				"BEGIN; DECLARE c NO SCROLL CURSOR FOR $query; FETCH $n FROM c; $later; FETCH ALL FROM c; CLOSE c");
			$session->quit;
		}
		is($got{forced}, $got{off}, "$name: the same rows, $n before it");
	}
	return;
}

# An operator class whose distance function is not the extension's: it is called for the rows of other
# lists when these are read, and its notice tells in which FETCH.
sub compare_own_class
{
	my %got;

	$node->safe_psql(
		'postgres', q(
		CREATE FUNCTION own_distance(vector, vector) RETURNS float8 IMMUTABLE STRICT LANGUAGE plpgsql AS $$
		BEGIN
			IF current_setting('la.at', true) <> '' THEN RAISE NOTICE 'distance, %', current_setting('la.at'); END IF;
			RETURN public.l2_distance($1, $2);
		END $$;
		CREATE OPERATOR <~~> (LEFTARG = vector, RIGHTARG = vector, FUNCTION = own_distance, COMMUTATOR = <~~>);
		CREATE OPERATOR CLASS own_ops FOR TYPE vector USING ivfflat AS OPERATOR 1 <~~> (vector, vector) FOR ORDER BY float_ops,
			FUNCTION 1 own_distance(vector, vector), FUNCTION 3 l2_distance(vector, vector);
		CREATE TABLE own AS SELECT i AS id, repeat('w', 700) AS w,
			('[' || (i * 7919 % 1000) / 10.0 || ',' || (i * 104729 % 1000) / 10.0 || ']')::vector(2) AS e FROM generate_series(1, 2000) i;
		CREATE INDEX own_e ON own USING ivfflat (e own_ops) WITH (lists = 20);
		ANALYZE own;));
	for my $mode ('off', 'forced')
	{
		my $session = open_session($node,
			($mode eq 'off' ? stock() : forced()) . 'SET enable_sort = off; SET ivfflat.iterative_scan = relaxed_order;');

		ask($session, q(BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT 1 FROM own ORDER BY e <~~> '[50,50]'));
		$got{$mode} .= ask($session, "SET la.at = '$_'; MOVE 10 FROM c") . "\n" for (1 .. 40);
		$session->quit;
	}
	like($got{off}, qr/distance, [2-9]/, "ivfflat, a class of one's own: lists are read in later FETCHes");
	is($got{forced}, $got{off}, "ivfflat, a class of one's own: functions are called in their turn");
	return;
}

# Cancel, and an error, at the row $id of a scan; $from is FROM and what follows.
sub cancel
{
	my ($name, $from, $settings) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$settings = 'SET enable_sort = off;' . ($settings // '');
	my $id = $node->safe_psql('postgres', stock() . "$settings SELECT id FROM (SELECT id $from) s OFFSET 20 LIMIT 1");
	my $query = "SELECT count(*), sum(%s) FROM (SELECT id, w $from OFFSET 0) s";
	my $plain = sprintf($query, 'id + length(w)');
	my $session = open_session($node, forced() . $settings);
	my $pid = pid_of($session);
	my $answer = ask($session, $plain);

	start_waiting($node, $session, $pid,
		sprintf($query, "CASE WHEN id = $id THEN length(pg_advisory_lock(1)::text) ELSE length(w) END"));
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	like(ask($session, 'SELECT 1'), qr/canceling statement due to user request/, "$name: cancelled in mid-scan");
	nothing_pinned($node, "$name: after a cancel");
	is(ask($session, sprintf($query, "1 / (id - $id)")), 'ERROR:  division by zero', "$name: an error in mid-scan");
	nothing_pinned($node, "$name: after an error");
	is(ask($session, $plain), $answer, "$name: the session goes on");
	$session->quit;
	return;
}

# Scans of an excluded access method run stock, others look ahead.
sub exclude
{
	my ($method, $index, $query, $other) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $prepare = forced() . 'SET enable_sort = off;';
	my $expected = $node->safe_psql('postgres', stock() . "SET enable_sort = off; $query");

	is( $node->safe_psql(
			'postgres', $prepare . "SET pg_lookahead.excluded_access_methods = '$other'; $query;\n$activated"),
		"$expected\nactivated|$index true",
		"$method looks ahead while $other is excluded");
	$node->safe_psql('postgres', 'SELECT pg_stat_lookahead_reset()');
	for my $list ($method, "$other, $method")
	{
		is( $node->safe_psql('postgres', $prepare . "SET pg_lookahead.excluded_access_methods = '$list'; $query"),
			$expected, "$method excluded by '$list': the same rows");
	}
	is($node->safe_psql('postgres', 'SELECT sum(scans_attached), sum(scans_activated) FROM pg_stat_lookahead'),
		'0|0', "$method excluded: no scan is attached");
	return;
}

# An extension that claims to be of another version.
sub untested
{
	my ($extension, $version, $method, $index, $query) = @_;
	my $prepare = forced() . 'SET enable_sort = off;';
	my $reason = q(SELECT string_agg(reason, ', ') FROM pg_lookahead_last_statement());

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $rows = $node->safe_psql('postgres', stock() . "SET enable_sort = off; $query");
  SKIP:
	{
		skip "the library of $extension tells its version", 3
		  if $node->pg_version >= 18
		  && $node->safe_psql('postgres', "LOAD '$extension'; SELECT version FROM pg_get_loaded_modules() WHERE file_name LIKE '$extension.%'") ne '';
		my $installed = $node->safe_psql('postgres', "SELECT extversion FROM pg_extension WHERE extname = '$extension'");

		$node->safe_psql('postgres', "UPDATE pg_extension SET extversion = '$version' WHERE extname = '$extension'");
		is($node->safe_psql('postgres', "$prepare $query; $reason"),
			"$rows\nthe index's access method is not known to allow it",
			"$method of $extension $version runs stock");
		is( $node->safe_psql('postgres', "$prepare SET pg_lookahead.additional_access_methods = '$method'; $query; $activated"),
			"$rows\nactivated|$index true",
			'... and looks ahead when it is listed');
		$node->safe_psql('postgres', "UPDATE pg_extension SET extversion = '$installed' WHERE extname = '$extension'");
		is($node->safe_psql('postgres', "$prepare $query; $activated"), "$rows\nactivated|$index true", "$method of $extension $installed looks ahead");
	}

	# the answer is kept in a session, until pg_proc changes
	my $session = open_session($node, $prepare);
	my $handler = "${method}handler";
	is(ask($session, "$query; $activated"), "$rows\nactivated|$index true", "$method looks ahead");
	$node->safe_psql('postgres',
		"ALTER EXTENSION $extension DROP FUNCTION $handler(internal); ALTER FUNCTION $handler(internal) RENAME TO renamed");
	is( ask($session, "$query; $reason"),
		"$rows\nthe index's access method is not known to allow it",
		'... but not by a handler that does not belong to the extension');
	$node->safe_psql('postgres',
		"ALTER EXTENSION $extension ADD FUNCTION renamed(internal); ALTER FUNCTION renamed(internal) COST 2");
	is(ask($session, "$query; $activated"), "$rows\nactivated|$index true", '... and whatever SQL calls the handler');
	$node->safe_psql('postgres', "ALTER FUNCTION renamed(internal) RENAME TO $handler");
	$session->quit;
	return;
}

# While somebody has a catalog locked that tells the version, scans run stock and do not wait for it.
sub locked_catalog
{
	my ($catalog, $method, $index, $query) = @_;
	my $prepare = forced() . "SET enable_sort = off; SET statement_timeout = '60s';";
	my $reason = q(SELECT string_agg(reason, ', ') FROM pg_lookahead_last_statement());

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $rows = $node->safe_psql('postgres', stock() . "SET enable_sort = off; $query");
	my $locker = open_session($node, "BEGIN; LOCK TABLE $catalog IN ACCESS EXCLUSIVE MODE");
	my $session = open_session($node, $prepare);
	is(ask($session, "$query; $reason"),
		"$rows\nthe index's access method is not known to allow it",
		"$method runs stock while $catalog is locked");
	ask($locker, 'ROLLBACK');
	is(ask($session, "$query; $activated"), "$rows\nactivated|$index true", '... and looks ahead when it is not');
	$_->quit for $locker, $session;
	return;
}

# ---- pgvector -------------------------------------------------------------------

# a vector that depends on a number
sub vector_of
{
	my ($number) = @_;

	return "(SELECT array_agg((hashint8($number * 8 + j) & 65535) / 65536.0 ORDER BY j)
		FROM generate_series(1, 8) j)::vector(8)";
}

SKIP:
{
	skip 'pgvector is not installed', 1 unless has_extension('vector');

	$node->safe_psql(
		'postgres', "
		CREATE TABLE v (id int, b int, w text, e vector(8));
		INSERT INTO v SELECT i, i % 10, repeat('w', 500), " . vector_of('i::bigint') . " FROM generate_series(1, 5000) i;
		CREATE INDEX v_hnsw ON v USING hnsw (e vector_l2_ops);
		CREATE INDEX v_ivfflat ON v USING ivfflat (e vector_cosine_ops) WITH (lists = 50);
		CREATE TABLE q (id int, e vector(8));
		INSERT INTO q SELECT i, " . vector_of('(i + 100000)::bigint') . " FROM generate_series(1, 10) i;
		VACUUM ANALYZE v, q;");
	my $near = $node->safe_psql('postgres', 'SELECT e FROM q WHERE id = 1');
	my $iterative = $node->safe_psql('postgres',
		"LOAD 'vector'; SELECT count(*) FROM pg_settings WHERE name = 'hnsw.iterative_scan'");

	for my $method ('hnsw', 'ivfflat')
	{
		my ($op, $wide) = $method eq 'hnsw' ? ('<->', 'SET hnsw.ef_search = 200;') : ('<=>', 'SET ivfflat.probes = 20;');
		my $index = "v_$method";
		my $order = "ORDER BY e $op '$near'";
		my $rows = "SELECT id, e $op '$near', md5(w) FROM v";

		compare("$method, LIMIT 10", $index, "$rows $order LIMIT 10");
		compare("$method, LIMIT 100", $index, "$rows $order LIMIT 100", $wide);
		compare("$method, no LIMIT", $index, "$rows $order", $wide);
		compare("$method, a filter", $index, "$rows WHERE b = 3 $order LIMIT 10", $wide);
		compare("$method, a filter on the distance", $index, "$rows WHERE e $op '$near' < 0.5 $order LIMIT 50", $wide);
		compare("$method, OFFSET", $index, "$rows $order OFFSET 30 LIMIT 30", $wide);
		compare("$method, rescans", $index,
			"SELECT q.id, s.id, s.d FROM q, LATERAL (SELECT v.id, v.e $op q.e AS d FROM v ORDER BY v.e $op q.e LIMIT 12) s",
			$wide);
		compare("$method, parameters", $index, 'EXECUTE p(12)',
			"$wide PREPARE p(int) AS $rows ORDER BY e $op (SELECT e FROM q WHERE id = 2) LIMIT \$1;"
			  . 'SET plan_cache_mode = force_generic_plan;');
		if ($iterative)
		{
			for my $mode ('relaxed_order', $method eq 'hnsw' ? 'strict_order' : ())
			{
				compare("$method, iterative scan in $mode", $index,
					"$rows WHERE b = 3 $order LIMIT 100", "SET $method.iterative_scan = $mode;");
				compare("$method, iterative scan to the end in $mode", $index,
					"$rows WHERE b = 11 OR id < 50 $order", "SET $method.iterative_scan = $mode;");
				compare_setting("$method, $mode between FETCHes", "$rows $order", '',
					"SET $method.iterative_scan = $mode");
				compare_setting("$method, no $mode between FETCHes", "$rows $order",
					"SET $method.iterative_scan = $mode;", "SET $method.iterative_scan = off");
			}
		}
		cancel($method, "FROM v $order LIMIT 100", $wide);
		exclude($method, $index, "$rows $order LIMIT 20", $method eq 'hnsw' ? 'ivfflat' : 'hnsw');
		untested('vector', $_, $method, $index, "$rows $order LIMIT 20") for '0.5', '0.5.0', '0.9.0', '1.5.2';
		locked_catalog($_, $method, $index, "$rows $order LIMIT 20") for 'pg_extension', 'pg_depend';
		compare_cursor($method, 'v', "$rows $order", $wide);
	}

	compare_own_class() if $iterative;

	# rows that are dead, and rows at other places
	$node->safe_psql('postgres', $_)
	  for ('DELETE FROM v WHERE id % 7 = 0', q(UPDATE v SET w = repeat('x', 300) WHERE id % 5 = 0));
	compare("$_->[0], dead rows", "v_$_->[0]", "SELECT id, md5(w) FROM v ORDER BY e $_->[1] '$near' LIMIT 100", $_->[2])
	  for ([ 'hnsw', '<->', 'SET hnsw.ef_search = 200;' ], [ 'ivfflat', '<=>', 'SET ivfflat.probes = 20;' ]);
	$node->safe_psql('postgres', 'VACUUM v');
	compare("$_->[0], after VACUUM", "v_$_->[0]", "SELECT id, md5(w) FROM v ORDER BY e $_->[1] '$near' LIMIT 100", $_->[2])
	  for ([ 'hnsw', '<->', 'SET hnsw.ef_search = 200;' ], [ 'ivfflat', '<=>', 'SET ivfflat.probes = 20;' ]);

	# other types, many equal vectors, elements whose neighbors are on another page
	$node->safe_psql(
		'postgres', "
		CREATE TABLE big (id int, w text, e vector(1200));
		INSERT INTO big SELECT i, repeat('w', 500),
				(SELECT array_agg((hashint8(i::bigint * 1200 + j) & 65535) / 65536.0) FROM generate_series(1, 1200) j)::vector(1200)
			FROM generate_series(1, 300) i;
		CREATE INDEX big_e ON big USING hnsw (e vector_l2_ops);
		CREATE TABLE equal (id int, w text, e vector(8));
		INSERT INTO equal SELECT i, repeat('w', 500), " . vector_of('(i % 100)::bigint') . " FROM generate_series(1, 3000) i;
		CREATE INDEX equal_e ON equal USING hnsw (e vector_l2_ops) WITH (m = 4, ef_construction = 16);
		CREATE TABLE empty (id int, w text, e vector(8));
		CREATE INDEX empty_e ON empty USING hnsw (e vector_l2_ops);
		INSERT INTO empty SELECT 1, 'w', NULL;
		VACUUM ANALYZE big, equal, empty;");
	my $far = $node->safe_psql('postgres', 'SELECT e FROM big WHERE id = 7');
	compare('hnsw, 1200 dimensions', 'big_e', "SELECT id, md5(w) FROM big ORDER BY e <-> '$far' LIMIT 40");
	compare('hnsw, equal vectors', 'equal_e', "SELECT id, md5(w) FROM equal ORDER BY e <-> '$near' LIMIT 100",
		'SET hnsw.ef_search = 100;');
	is($node->safe_psql('postgres', forced() . "SELECT id FROM empty ORDER BY e <-> '$near' LIMIT 5"), '', 'hnsw, no vectors');
	for my $type ($iterative ? qw(halfvec sparsevec) : ())
	{
		$node->safe_psql('postgres', "CREATE INDEX v_$type ON v USING hnsw ((e::$type(8)) ${type}_l2_ops)");
		compare("hnsw, $type", "v_$type",
			"SELECT id, md5(w) FROM v ORDER BY e::$type(8) <-> '$near'::vector(8)::$type(8) LIMIT 40");
	}

	# errors and cancels inside the search
	my $session = open_session($node, forced() . 'SET hnsw.ef_search = 1000; SET enable_sort = off;');
	my $search = "SELECT count(*), sum(id) FROM (SELECT id FROM v ORDER BY e <-> %s LIMIT 50) s";
	my $plain = sprintf($search, "'$near'");
	my $answer = ask($session, $plain);
	for (1 .. 3)
	{
		like(ask($session, sprintf($search, q('[1,2]'))), qr/^ERROR:  different vector dimensions/, 'hnsw: an error in the search');
		is(ask($session, $plain), $answer, 'hnsw: ... and the right answer after it');
	}
	my @strange = grep { $_ ne $answer && !is_timeout($_) } split /\n/,
	  ask($session, join("\n", map { "SET statement_timeout = '${_}ms';\n$plain;" } map { ($_) x 10 } 1 .. 5));
	is("@strange", '', 'hnsw: short timeouts');
	nothing_pinned($node, 'hnsw: short timeouts');
	reset_timeout($session);
	is( ask($session, "$plain;\n SET pg_lookahead.enable = off; $plain"),
		"$answer\n$answer", 'hnsw: the session goes on, with and without look-ahead');

	# searches while others insert, delete and vacuum
	my $writer = open_session($node, stock());
	$writer->query_until(
		qr/started/,
		"\\echo started\nDO \$\$ BEGIN FOR i IN 6000 .. 6400 LOOP INSERT INTO v SELECT i, 0, repeat('w', 500), "
		  . vector_of('i::bigint') . "; DELETE FROM v WHERE id = i - 5; COMMIT; END LOOP; END \$\$; VACUUM v;\n");
	ask($session, 'SET pg_lookahead.enable = on');
	@strange = grep { !/^50\|\d+$/ } split /\n/, ask($session, "$plain;\n" x 100);
	is("@strange", '', 'hnsw: searches beside a writer');
	$_->quit for $writer, $session;
	compare('hnsw, after the writer', 'v_hnsw', "SELECT id, md5(w) FROM v ORDER BY e <-> '$near' LIMIT 100",
		'SET hnsw.ef_search = 200;');
}

# ---- RUM --------------------------------------------------------------------------

SKIP:
{
	skip 'RUM is not installed', 1 unless has_extension('rum');

	$node->safe_psql(
		'postgres', q(
		CREATE TABLE r (id int, b int, w text, t tsvector, at timestamp);
		INSERT INTO r SELECT i, i % 10, repeat('w', 500),
				to_tsvector('simple', 'all ' || (SELECT string_agg('word' || (hashint8(i::bigint * 16 + j) & 31), ' ')
					FROM generate_series(1, 12) j)),
				timestamp '2026-01-01' + (hashint4(i) & 1048575) * interval '1 second'
			FROM generate_series(1, 5000) i;
		CREATE INDEX r_t ON r USING rum (t rum_tsvector_ops);
		CREATE INDEX r_at ON r USING rum (t rum_tsvector_addon_ops, at) WITH (attach = 'at', to = 't');
		VACUUM ANALYZE r;));

	my $q = q('word3 & word7'::tsquery);
	my $rows = "SELECT id, t <=> $q, md5(w) FROM r WHERE t @@ $q";
	my $either = q('word3 | word8'::tsquery);
	my $at = q(timestamp '2026-01-05');
	my $by_time = "SELECT id, at <=> $at, md5(w) FROM r WHERE t @@ $q";

	# one index at a time: the planner has no reason to prefer either
	$node->safe_psql('postgres', q(UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'r_at'::regclass));
	compare('rum, LIMIT 10', 'r_t', "$rows ORDER BY t <=> $q LIMIT 10");
	compare('rum, all matches', 'r_t', "$rows ORDER BY t <=> $q");
	compare('rum, either word', 'r_t',
		"SELECT id, t <=> $either FROM r WHERE t @@ $either ORDER BY t <=> $either LIMIT 500");
	compare('rum, a filter', 'r_t', "$rows AND b = 3 ORDER BY t <=> $q LIMIT 10");
	compare('rum, not in order', 'r_t', $rows);
	compare('rum, a phrase', 'r_t',
		q(SELECT id FROM r WHERE t @@ 'word3 <-> word7'::tsquery ORDER BY t <=> 'word3 <-> word7'::tsquery));
	compare('rum, rescans', 'r_t',
		q(SELECT a.i, s.id, s.d FROM generate_series(0, 9) a(i), LATERAL (SELECT r.id, r.t <=> to_tsquery('simple', 'word' || a.i) AS d
			FROM r WHERE r.t @@ to_tsquery('simple', 'word' || a.i) ORDER BY r.t <=> to_tsquery('simple', 'word' || a.i) LIMIT 12) s));
	cancel('rum', "FROM r WHERE t @@ $either ORDER BY t <=> $either LIMIT 200");
	exclude('rum', 'r_t', "$rows ORDER BY t <=> $q LIMIT 20", 'hash');
	untested('rum', '1.4', 'rum', 'r_t', "$rows ORDER BY t <=> $q LIMIT 20");
	compare_cursor('rum', 'r', "$rows ORDER BY t <=> $q");

	$node->safe_psql('postgres', q(UPDATE pg_index SET indisvalid = indexrelid = 'r_at'::regclass WHERE indrelid = 'r'::regclass));
	compare('rum, by attached time', 'r_at', "$by_time ORDER BY at <=> $at LIMIT 50");
	compare('rum, later', 'r_at', "SELECT id, at <=| $at FROM r WHERE t @@ $q ORDER BY at <=| $at LIMIT 50");
	compare('rum, earlier', 'r_at', "SELECT id, at |=> $at FROM r WHERE t @@ $q ORDER BY at |=> $at LIMIT 50");

	$node->safe_psql('postgres', $_)
	  for ('DELETE FROM r WHERE id % 7 = 0', q(UPDATE r SET w = repeat('x', 300) WHERE id % 5 = 0));
	compare('rum, dead rows', 'r_at', "$by_time ORDER BY at <=> $at");
	$node->safe_psql('postgres', 'VACUUM r');
	compare('rum, after VACUUM', 'r_at', "$by_time ORDER BY at <=> $at");
}

# ---- btree_gist -------------------------------------------------------------------

SKIP:
{
	skip 'btree_gist is not installed', 1 unless has_extension('btree_gist');

	$node->safe_psql(
		'postgres', q(
		CREATE TABLE g (id int, k int, f float8, d date, n text, w text);
		INSERT INTO g SELECT i, hashint4(i) & 1023, hashint4(i) / 1e6, date '2026-01-01' + (hashint4(i) & 255),
				'n' || (hashint4(i) & 63), repeat('w', 500)
			FROM generate_series(1, 5000) i;
		CREATE INDEX g_k ON g USING gist (k);
		CREATE INDEX g_f ON g USING gist (f);
		CREATE INDEX g_nd ON g USING gist (n, d);
		VACUUM ANALYZE g;));

	my $rows = 'SELECT id, k, md5(w) FROM g';

	# operators of an extension may fail for entries that the statement would not come to
	my $near = "$rows ORDER BY k <-> 42 LIMIT 20";
	is( $node->safe_psql(
			'postgres', forced() . "SET enable_sort = off; $near; SELECT string_agg(reason, ', ') FROM pg_lookahead_last_statement()"),
		$node->safe_psql('postgres', stock() . "SET enable_sort = off; $near")
		  . "\nan expression may fail that the server might not evaluate",
		'btree_gist runs stock where nobody vouches for it');
	$node->safe_psql('postgres', "ALTER DATABASE postgres SET pg_lookahead.additional_access_methods = 'gist'");

	for my $n (10, 100, 3000)
	{
		compare("btree_gist, integers, LIMIT $n", 'g_k', "$rows ORDER BY k <-> 42 LIMIT $n");
		compare("btree_gist, floats, LIMIT $n", 'g_f', "$rows ORDER BY f <-> 42.5 LIMIT $n");
	}
	compare('btree_gist, to the end', 'g_k', "$rows ORDER BY k <-> 42");
	compare('btree_gist, a filter', 'g_k', "$rows WHERE id % 10 = 3 ORDER BY k <-> 42 LIMIT 100");
	compare('btree_gist, a range', 'g_k', "$rows WHERE k BETWEEN 100 AND 300");
	compare('btree_gist, a range in order of distance', 'g_k', "$rows WHERE k > 100 ORDER BY k <-> 42 LIMIT 100");
	compare('btree_gist, two columns', 'g_nd',
		q(SELECT id, d FROM g WHERE n = 'n7' ORDER BY d <-> date '2026-03-01' LIMIT 50));
	compare('btree_gist, rescans', 'g_k',
		'SELECT a.i, s.id, s.k FROM generate_series(0, 90, 10) a(i), LATERAL (SELECT id, k FROM g WHERE w > $$$$ ORDER BY k <-> a.i LIMIT 12) s');
	cancel('btree_gist', 'FROM g ORDER BY k <-> 42 LIMIT 200');
	exclude('gist', 'g_k', "$rows ORDER BY k <-> 42 LIMIT 20", 'hash');
	compare_cursor('btree_gist', 'g', 'SELECT id, f, md5(w) FROM g ORDER BY f <-> 42.5 LIMIT 300');

	$node->safe_psql('postgres', $_)
	  for ('DELETE FROM g WHERE id % 7 = 0', q(UPDATE g SET w = repeat('x', 300) WHERE id % 5 = 0));
	compare('btree_gist, dead rows', 'g_k', "$rows ORDER BY k <-> 42 LIMIT 1000");
	compare('btree_gist, dead rows again', 'g_k', "$rows ORDER BY k <-> 42 LIMIT 1000");
	$node->safe_psql('postgres', 'VACUUM g');
	compare('btree_gist, after VACUUM', 'g_k', "$rows ORDER BY k <-> 42 LIMIT 1000");
}

$holder->quit;
$node->stop;
check_log($node);
done_testing();
