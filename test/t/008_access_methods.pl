# 008_access_methods.pl - look-ahead in hash, GiST and SP-GiST indexes.
#
# For these access methods rows are read ahead into a queue, so the access method has left
# a row, and often its index page, when the executor gets the row.  What can go wrong:
#
#	dead entries	are marked as by stock, on the right page and no others.  Equal tables are
#					scanned with look-ahead off, forced, and activated in mid-scan, and the flags
#					of all index entries compared.
#	VACUUM			comes while rows are queued, and what it frees is used again at once
#	ends			scans that do not reach their end leave no pin, memory or complaint
#	writers			the indexes give the rows that a sequential scan gives, at any time
#	size			an index is not larger for being scanned ahead: marked entries make room
#	tablespaces		with an effective_io_concurrency of their own limit the reads in flight
#
# SP-GiST has no dead entries; it takes part in the rest.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server(
	'main',
	init => ['--data-checksums'],
	extensions => [ 'pageinspect', 'pg_buffercache' ],
	conf => "shared_buffers = 16MB\nmax_connections = 30\nmax_wal_size = 1GB\nlog_statement = none\n");

# Begins to look ahead after some rows, as a scan without force does; no read is too fast.
my $late = forced() . q(
	SET pg_lookahead.force = off;
	SET pg_lookahead.cache_prefetch_threshold = 20;
	SET pg_lookahead.miss_threshold = 3;
	SET pg_lookahead.min_read_time = 0;);
my %settings = (
	stock => stock(),
	ahead => forced(),
	tight => forced(ring => 2, distance => 1),
	late => $late);
my @modes = qw(stock ahead tight late);

# ---- dead entries --------------------------------------------------------------

# Scans of each kind run in databases of their own, made from one template for each step: GiST
# chooses at random where an entry goes, so only copies are equal page by page.
$node->safe_psql('postgres', 'CREATE DATABASE template TEMPLATE postgres');
$node->safe_psql(
	'template', q(
	CREATE FUNCTION dead_items(index text) RETURNS TABLE (page int, items text) LANGUAGE plpgsql AS $$
	DECLARE
		raw bytea;
	BEGIN
		FOR b IN 0 .. pg_relation_size(index::regclass) / current_setting('block_size')::int - 1 LOOP
			page := b;
			raw := get_raw_page(index, page);
			IF (SELECT am.amname = 'gist' FROM pg_class c JOIN pg_am am ON am.oid = c.relam WHERE c.oid = index::regclass) THEN
				IF 'leaf' <> ALL ((gist_page_opaque_info(raw)).flags) THEN
					CONTINUE;
				END IF;
				SELECT string_agg(itemoffset::text, ' ' ORDER BY itemoffset) INTO items
					FROM gist_page_items_bytea(raw) WHERE dead;
			ELSE
				-- which ones they are, pageinspect does not tell
				IF hash_page_type(raw) NOT IN ('bucket', 'overflow') THEN
					CONTINUE;
				END IF;
				SELECT format('%s of %s', dead_items, live_items + dead_items) INTO items
					FROM hash_page_stats(raw) WHERE dead_items > 0;
			END IF;
			IF items IS NOT NULL THEN
				RETURN NEXT;
			END IF;
		END LOOP;
	END $$));

my %hash = map { $_ => 1 } qw(h few);
my @indexes = qw(few h p r);

# page => what is dead there
sub dead_items
{
	my ($database, $index) = @_;

	return map { split /\|/, $_, 2 } split /\n/,
	  $node->safe_psql($database, "SELECT page, items FROM dead_items('t_$index')");
}

sub count_dead
{
	my ($index, %items) = @_;
	my $n = 0;

	$n += $hash{$index} ? (split / /, $_)[0] : scalar(split / /, $_) for values %items;
	return $n;
}

# Run statements in the template, then others in each way on a copy of it; compare rows and
# flags.  Parameters: marked, the least number of entries that stock must mark;
# early, GiST forgets what it knows of the page where a scan is ended: ours may mark more;
# meanwhile, statements of another session after the first part of an array of them;
# checkpoint, to make the first mark on a page change its LSN.
sub scan
{
	my ($name, $change, $sql, %p) = @_;
	my (%rows, %dead);

	$node->safe_psql('template', $change) if $change ne '';
	for my $mode (@modes)
	{
		$node->safe_psql('postgres', "CREATE DATABASE $mode TEMPLATE template");
		$node->safe_psql('postgres', 'CHECKPOINT') if $p{checkpoint};

		my @parts = ref $sql ? @$sql : ($sql);
		my $session = $node->background_psql($mode, on_error_stop => 0);

		ask($session, $settings{$mode});
		$rows{$mode} = ask($session, shift @parts);
		$node->safe_psql($mode, $p{meanwhile}) if exists $p{meanwhile};
		$rows{$mode} .= ask($session, $_) for @parts;
		$session->quit;
		$dead{$mode}{$_} = { dead_items($mode, $_) } for @indexes;
		$node->safe_psql('postgres', "DROP DATABASE $mode");
	}

	my $marked = 0;
	$marked += count_dead($_, %{ $dead{stock}{$_} }) for @indexes;
	cmp_ok($marked, '>=', $p{marked}, "$name: stock marks entries");
	for my $mode (grep { $_ ne 'stock' } @modes)
	{
		is($rows{$mode}, $rows{stock}, "$name: $mode: rows as stock");
		for my $i (@indexes)
		{
			my %ours = %{ $dead{$mode}{$i} };
			my %stock = %{ $dead{stock}{$i} };
			my @differ = grep { ($ours{$_} // '') ne ($stock{$_} // '') } sort { $a <=> $b } keys %{ { %ours, %stock } };

			@differ = grep { " $ours{$_} " !~ / \Q$stock{$_}\E / } grep { exists $stock{$_} } @differ if $p{early} && !$hash{$i};
			@differ = () if $p{meanwhile};
			# GiST has marked, and so changed, a page in whose midst look-ahead began: of what the
			# queue holds of that page nothing can be marked any more
			@differ = grep { index($stock{$_}, $ours{$_} // '') != 0 } @differ
			  if $mode eq 'late' && $p{checkpoint} && !$hash{$i};
			is(join('; ', map { "page $_: " . ($ours{$_} // 'none') . ', stock ' . ($stock{$_} // 'none') } @differ),
				'', "$name: $mode: dead entries of index $i as stock")
			  or diag(count_dead($i, %ours) . ' marked, stock ' . count_dead($i, %stock));
		}
	}
	return;
}

# aggregates over a scan
sub over
{
	my ($where) = @_;

	return 'SELECT count(*), sum(id) FROM (SELECT * FROM t WHERE ' . $where . ' OFFSET 0) s WHERE w IS NOT NULL;';
}

my $everything = 'p <@ box(point(-1, -1), point(2000, 2000))';
my $loops = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;';

for my $kind ('', 'UNLOGGED')
{
	my $which = $kind eq '' ? 'logged' : 'unlogged';

	# h: 20 rows for each value; few: 2000, over several overflow pages
	$node->safe_psql(
		'template', qq(
		DROP TABLE IF EXISTS t;
		CREATE $kind TABLE t (id int, h int, few int, p point, r int4range, w text) WITH (fillfactor = 70);
		INSERT INTO t SELECT i, i % 300, i % 3, point(i::bigint * 7919 % 1009, i::bigint * 4447 % 1013),
			int4range(i % 1000, i % 1000 + 1 + i % 50), repeat('w', 80) FROM generate_series(1, 6000) i;
		CREATE INDEX t_h ON t USING hash (h) WITH (fillfactor = 50);
		CREATE INDEX t_few ON t USING hash (few);
		CREATE INDEX t_p ON t USING gist (p) WITH (fillfactor = 50);
		CREATE INDEX t_r ON t USING gist (r) WITH (fillfactor = 50);));
	$node->safe_psql('template', 'VACUUM ANALYZE t');

	my %plans = (few => 'few = 1', h => 'h = 1', p => $everything, r => 'r && int4range(1, 1000)');
	like($node->safe_psql('template', forced() . 'EXPLAIN (costs off) ' . over($plans{$_})),
		qr/Index Scan using t_$_ /, "$which, $_: an index scan")
	  for sort keys %plans;

	for my $checkpoint (0, 1)
	{
		my $then = $which . ($checkpoint ? ', after a checkpoint' : '');
		my $delete = $checkpoint ? '' : 'DELETE FROM t WHERE id % 5 = 0';

		scan("$then, hash, overflow pages", $delete, over('few = 1'), marked => 300, checkpoint => $checkpoint);
		scan("$then, GiST, all pages", '', over($everything), marked => 1000, checkpoint => $checkpoint);
		scan("$then, GiST, ranges", '', over('r && int4range(100, 800)'), marked => 500, checkpoint => $checkpoint);
	}
	scan("$which, twice", '', (over('few = 1') . over($everything)) x 2, marked => 300);
	scan("$which, nested loops", 'DELETE FROM t WHERE id % 5 = 1', $loops . q(
		SELECT count(*), sum(x.id) FROM generate_series(0, 299, 2) g JOIN t x ON x.h = g.g WHERE x.w IS NOT NULL;
		SELECT count(*), sum(x.id) FROM generate_series(0, 900, 100) g
			JOIN t x ON x.p <@ box(point(g.g, 0), point(g.g + 70, 1000)) WHERE x.w IS NOT NULL;), marked => 500);
	scan("$which, after updates", 'UPDATE t SET h = (h + 1) % 300, few = (few + 1) % 3, p = p + point(0.5, 0.5) WHERE id % 5 = 2',
		over('few = 0') . over('few = 2') . over('p <@ box(point(0, 0), point(700, 700))') . over('r @> 500'), marked => 1000);
	scan("$which, GiST, index-only", '',
		'SELECT count(*), sum(p[0]) FROM (SELECT p FROM t WHERE p <@ box(point(0, 300), point(2000, 2000)) OFFSET 0) s;', marked => 1000);
	scan("$which, nearest first", '',
		'SELECT count(*), sum(id) FROM (SELECT * FROM t ORDER BY p <-> point(500, 500) LIMIT 3000) s WHERE w IS NOT NULL;', marked => 0);
	scan("$which, LIMIT", 'DELETE FROM t WHERE id % 5 = 3 AND id % 2 = 0', qq(
		SELECT id FROM t WHERE few = 1 LIMIT 300; SELECT id FROM t WHERE few = 0 LIMIT 1;
		SELECT count(*) FROM (SELECT id FROM t WHERE $everything LIMIT 700) s;), marked => 100, early => 1);
	scan("$which, cursors", '', q(
		BEGIN;
		DECLARE x NO SCROLL CURSOR FOR SELECT id FROM t WHERE few = 2;
		DECLARE y CURSOR FOR SELECT id FROM t WHERE p <@ box(point(-1, -1), point(1000, 1000));
		DECLARE z NO SCROLL CURSOR FOR SELECT id FROM t WHERE r && int4range(1, 500);
		MOVE 10 FROM x; MOVE 300 FROM y; MOVE 200 FROM z; MOVE 500 FROM x; FETCH 1 FROM x; MOVE 150 FROM y;
		FETCH 1 FROM y; CLOSE y; FETCH 1 FROM z;
		COMMIT;), marked => 100, early => 1);
	scan("$which, an error in mid-scan", '', q(
		SELECT sum(1 / (id - (SELECT id FROM (SELECT id FROM t WHERE few = 1 LIMIT 1 OFFSET 700) s))) FROM t WHERE few = 1;),
		marked => 0, early => 1);

	# The page has changed since it was read.  What is still marked is a matter of luck, but
	# live rows must not be.
	my $mine = join(' UNION ALL ', map { "SELECT count(*), sum(id), sum(h), sum(few) FROM (SELECT * FROM $_ OFFSET 0) s" }
		  '(SELECT t.* FROM generate_series(0, 2) g JOIN t ON t.few = g) s',
		  '(SELECT t.* FROM generate_series(0, 299) g JOIN t ON t.h = g) s',
		  "t WHERE $everything", 't WHERE r && int4range(-1, 5000)');
	scan("$which, pages change under the cursors", 'DELETE FROM t WHERE id % 7 = 6',
		[ over('few = 2') . "
			BEGIN; DECLARE x NO SCROLL CURSOR FOR SELECT id FROM t WHERE few = 2; MOVE 60 FROM x;
			DECLARE y NO SCROLL CURSOR FOR SELECT id FROM t WHERE $everything; MOVE 60 FROM y;",
			"MOVE ALL FROM x; MOVE ALL FROM y; COMMIT; SET pg_lookahead.enable = off; $loops; $mine;" ],
		meanwhile => q(INSERT INTO t SELECT 10000 + i, i % 300, i % 3, point(i * 5, i * 5), int4range(i, i + 9), 'new'
			FROM generate_series(1, 200) i), marked => 100);
}
cmp_ok($node->safe_psql('postgres', 'SELECT sum(entries_killed) FROM pg_stat_lookahead'),
	'>', 1000, 'the statistics know of dead entries');
check_log($node, 'dead entries: server log is clean');

# ---- VACUUM in mid-scan -----------------------------------------------------------

# Rows that are dead already for the cursor's snapshot are queued like others.  VACUUM
# removes them, and new rows take their places, with the same keys, before the cursor comes
# to them.  The cursor must return the rows that it returns with look-ahead off (their order
# depends on when pages are read, and how they were split then), and no new row may be marked
# dead.  VACUUM waits for the bucket in which a hash scan is, as in stock.
my $moved = 60;
my %methods = (
	hash => [ 'USING hash (few)', 'few = 1', 'id, w' ],
	gist => [ 'USING gist (p)', $everything, 'id, w' ],
	'gist only' => [ 'USING gist (p)', $everything, 'p' ],
	spgist => [ 'USING spgist (p)', $everything, 'id, w' ],
	'spgist only' => [ 'USING spgist (p)', $everything, 'p' ],
	'gist nearest' => [ 'USING gist (p)', "$everything ORDER BY p <-> point(300, 300)", 'id, w' ],
	'spgist nearest' => [ 'USING spgist (p)', "$everything ORDER BY p <-> point(300, 300)", 'id, w' ]);

sub vacuum_in_mid_scan
{
	my ($method, $kind, $mode) = @_;
	my ($index, $where, $columns) = @{ $methods{$method} };
	my $waits;

	$node->safe_psql(
		'postgres', qq(
		CREATE $kind TABLE v (id int, few int, p point, w text) WITH (fillfactor = 70);
		INSERT INTO v SELECT i, i % 3, point(i::bigint * 7919 % 1009, i::bigint * 4447 % 1013), repeat('w', 80)
			FROM generate_series(1, 3000) i;
		CREATE INDEX v_i ON v $index;));
	$node->safe_psql('postgres', 'VACUUM ANALYZE v');
	$node->safe_psql('postgres', 'DELETE FROM v WHERE id % 3 = 1 AND id % 2 = 0; DELETE FROM v WHERE id % 10 = 0');

	my $s = open_session($node, $settings{$mode} . 'BEGIN ISOLATION LEVEL REPEATABLE READ;');
	my $out = ask($s, "DECLARE c NO SCROLL CURSOR FOR SELECT $columns FROM v WHERE $where; FETCH $moved FROM c;");
	my ($sink, $handle) = ('');

	$handle = IPC::Run::start(
		[ 'psql', '-X', '-d', $node->connstr('postgres') . ' application_name=vacuum', '-c', 'VACUUM (INDEX_CLEANUP on, TRUNCATE off) v' ],
		'<' => \undef, '&>' => \$sink,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$waits = 0;
	while ($handle->pumpable && !$waits)
	{
		$waits = $node->safe_psql('postgres',
			q(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'vacuum' AND wait_event IN ('BufferPin', 'BufferCleanup')));
		$handle->pump_nb;
	}
	$node->safe_psql('postgres', q(
		INSERT INTO v SELECT 10000 + i, i % 3, point(i::bigint * 7919 % 1009 + 0.5, i::bigint * 4447 % 1013), repeat('n', 80)
			FROM generate_series(1, 1500) i));
	$out .= "\n" . ask($s, 'FETCH ALL FROM c; CLOSE c; COMMIT;');
	$handle->finish;
	$s->quit;
	is($sink, "VACUUM\n", "$method, $mode: VACUUM");

	my $q = 'SELECT count(*), sum(id), sum(few), sum(p[0]) FROM (SELECT * FROM v WHERE %s OFFSET 0) s';
	my $plain = LookAhead::plans() . 'SET pg_lookahead.enable = off;';

	$where =~ s/ ORDER BY.*//;
	is( $node->safe_psql('postgres', $plain . sprintf($q, $where)),
		$node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;' . sprintf($q, $where)),
		"$method, $mode: all rows are found afterwards");
	$node->safe_psql('postgres', 'DROP TABLE v');
	return (join("\n", sort split /\n/, $out), $waits);
}

for my $method (sort keys %methods)
{
	for my $kind ('', 'UNLOGGED')
	{
		my ($rows, $waits) = vacuum_in_mid_scan($method, $kind, 'stock');

		cmp_ok(scalar(split /\n/, $rows), '>', 300, "$method: rows");
		for my $mode ('ahead', 'tight')
		{
			my ($ours, $ours_wait) = vacuum_in_mid_scan($method, $kind, $mode);

			is($ours, $rows, "$method $kind, VACUUM in mid-scan: $mode: rows as stock");
			cmp_ok($ours_wait, '<=', $waits, "... and VACUUM does not wait where it would not in stock");
		}
	}
}
check_log($node, 'VACUUM: server log is clean');

# ---- scans that do not reach their end -------------------------------------------------

$node->safe_psql(
	'postgres', q(
	CREATE TABLE t (id int, few int, p point, s text, w text) WITH (fillfactor = 70);
	INSERT INTO t SELECT i, i % 3, point(i::bigint * 7919 % 1009, i::bigint * 4447 % 1013), md5(i::text), repeat('w', 80)
		FROM generate_series(1, 6000) i;
	CREATE INDEX t_few ON t USING hash (few);
	CREATE INDEX t_p ON t USING gist (p);
	CREATE INDEX t_s ON t USING spgist (s);
	VACUUM ANALYZE t;
	UPDATE t SET few = few, w = w || 'x' WHERE id % 3 = 0;));

# name => [index, columns, the rest of the query]
my %scans = (
	hash => [ 't_few', '*', 'few = 1' ],
	gist => [ 't_p', '*', $everything ],
	'gist, index only' => [ 't_p', 'p', $everything ],
	'gist, nearest' => [ 't_p', '*', "$everything ORDER BY p <-> point(300, 300)" ],
	spgist => [ 't_s', '*', "s > '2'" ],
	'spgist, index only' => [ 't_s', 's', "s > '2'" ]);

# $extra is computed for the row in the middle of the scan only
sub query
{
	my ($name, $extra) = @_;
	my ($index, $columns, $where) = @{ $scans{$name} };
	my $key = $columns eq '*' ? 'id' : $columns eq 'p' ? 'p::text' : 's';
	my $middle =
	  $node->safe_psql('postgres', stock() . "SELECT $key FROM (SELECT $columns FROM t WHERE $where OFFSET 1000 LIMIT 1) q");

	return "SELECT count(*), min($key), sum(CASE WHEN $key = '$middle' THEN $extra ELSE 0 END) "
	  . "FROM (SELECT $columns FROM t WHERE $where OFFSET 0) q";
}

my $holder = open_session($node, 'SELECT pg_advisory_lock(1)');
create_fail($node);

for my $name (sort keys %scans)
{
	my $waiting = query($name, 'length(pg_advisory_lock(1)::text)');
	my $failing = query($name, "1 / length(left(w, 0))" =~ s/w/$scans{$name}[1] eq '*' ? 'w' : "$scans{$name}[1]::text"/re);
	my $plain = query($name, '1');
	my $answer = $node->safe_psql('postgres', stock() . $plain);

	like($node->safe_psql('postgres', forced() . "EXPLAIN (costs off) $plain"),
		qr/Index (Only )?Scan using $scans{$name}[0] /, "$name: plan");
	for my $mode ('ahead', 'tight')
	{
		# distances of points may fail, for entries that the statement would not come to
		my $vouch = $name =~ /nearest/ ? "SET pg_lookahead.additional_access_methods = 'gist';" : '';
		my $session = open_session($node, $settings{$mode} . $vouch);
		my $pid = pid_of($session);

		check_cancel($node, $session, $pid, "$name, $mode", $waiting,
			timeout => '100ms', cursor => 'NO SCROLL CURSOR');
		is(ask($session, $plain), $answer, "$name, $mode: the session goes on");
		ask($session, 'COMMIT');

		is(ask($session, $failing), 'ERROR:  division by zero', "$name, $mode: an error");
		nothing_pinned($node, "$name, $mode: an error");
		ask($session, 'BEGIN');
		is(ask($session, "SELECT fail(\$\$$failing\$\$, 20)"), 20, "$name, $mode: errors in exception blocks");
		my $memory = ask($session, 'SELECT sum(total_bytes) FROM pg_backend_memory_contexts');
		is(ask($session, "SELECT fail(\$\$$failing\$\$, 200)"), 200, "$name, $mode: more of them");
		cmp_ok(ask($session, 'SELECT sum(total_bytes) FROM pg_backend_memory_contexts'), '<=', $memory + 64 * 1024, '... and no more memory');
		nothing_pinned($node, "$name, $mode: errors in exception blocks");
		is(ask($session, $plain), $answer, "$name, $mode: the transaction goes on");
		ask($session, 'COMMIT');

		# the memory that scans took from the budget has come back
		like(ask($session, "$plain; SELECT sum(scans_activated) > 0 FROM pg_lookahead_last_statement()"),
			qr/^\Q$answer\E\nt$/, "$name, $mode: still looks ahead");

		# what is queued is not wanted any more
		my ($index, $columns, $where) = @{ $scans{$name} };
		my $rows = "SELECT $columns FROM t WHERE $where";
		ask($session, 'BEGIN');
		for my $end ('CLOSE c', 'CLOSE ALL', 'ROLLBACK TO a')
		{
			ask($session, "SAVEPOINT a; DECLARE c NO SCROLL CURSOR FOR $rows; MOVE 300 FROM c");
			ask($session, $end);
			nothing_pinned($node, "$name, $mode: $end");
		}
		ask($session, "DECLARE c NO SCROLL CURSOR WITH HOLD FOR $rows; MOVE 300 FROM c; COMMIT;");
		nothing_pinned($node, "$name, $mode: WITH HOLD");
		is(ask($session, 'FETCH 5 FROM c; CLOSE c;'), $node->safe_psql('postgres', stock() . "$rows OFFSET 300 LIMIT 5"),
			"$name, $mode: the held cursor goes on");

		start_waiting($node, $session, $pid, $waiting);
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
		$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid");
		nothing_pinned($node, "$name, $mode: terminated");
		{
			local $SIG{PIPE} = 'IGNORE';		# psql may be gone by now
			eval { $session->quit };
		}
	}
}
$holder->quit;
check_log($node, 'early ends: server log is clean');

# ---- index size -----------------------------------------------------------------------

# The same updates and scans on equal tables; room is made only where entries were marked.
my %size;
for my $t ('stock', 'ahead')
{
	my @steps;

	$node->safe_psql(
		'postgres', qq(
		CREATE TABLE size_$t (id int PRIMARY KEY, h int, p point) WITH (fillfactor = 50);
		INSERT INTO size_$t SELECT i, i % 100, point(i::bigint * 7919 % 1009, i::bigint * 4447 % 1013) FROM generate_series(1, 8000) i;
		CREATE INDEX size_${t}_h ON size_$t USING hash (h);
		CREATE INDEX size_${t}_p ON size_$t USING gist (p);
		VACUUM ANALYZE size_$t;));
	for my $i (1 .. 40)
	{
		push @steps, "UPDATE size_$t SET h = (h + 1) % 100, p = point(p[1], p[0]) + point(0.01, 0) WHERE id % 10 = $i % 10;",
		  'SELECT count(*), sum(id) FROM (SELECT x.* FROM generate_series(0, 99) g JOIN size_' . $t . ' x ON x.h = g.g OFFSET 0) s;',
		  "SELECT count(*), sum(id) FROM (SELECT * FROM size_$t WHERE $everything OFFSET 0) s;";
	}
	$size{$t}{rows} = $node->safe_psql('postgres',
		$settings{$t} . 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;' . join("\n", @steps));
	$size{$t}{$_} = $node->safe_psql('postgres', "SELECT pg_relation_size('size_${t}_$_')") for ('h', 'p');
}
is($size{ahead}{rows}, $size{stock}{rows}, 'updates and scans: rows as stock');
for my $i ('h', 'p')
{
	# GiST's own choices account for a page or two
	cmp_ok($size{ahead}{$i}, '<=', 1.02 * $size{stock}{$i} + 2 * 8192, "index $i is not larger ($size{ahead}{$i}, stock $size{stock}{$i})");
}

# ---- tablespaces ----------------------------------------------------------------------

# A tablespace whose effective_io_concurrency differs from the session's limits the reads in
# flight; 0 allows none.
$node->safe_psql('postgres', "SET allow_in_place_tablespaces = on; CREATE TABLESPACE space LOCATION ''");
for my $place ('pg_default', 'space')
{
	$node->safe_psql('postgres', qq(
		CREATE TABLE at_$place TABLESPACE $place AS SELECT i AS id, i % 3 AS few, repeat('w', 500) AS w FROM generate_series(1, 6000) i ORDER BY hashint4(i);
		CREATE INDEX at_${place}_id ON at_$place (id);
		CREATE INDEX at_${place}_few ON at_$place USING hash (few);
		VACUUM ANALYZE at_$place;));
}
for my $own (-1, 0, 3)
{
	$node->safe_psql('postgres', $own < 0 ? 'ALTER TABLESPACE space RESET (effective_io_concurrency)' :
		"ALTER TABLESPACE space SET (effective_io_concurrency = $own)");
	for my $place ('pg_default', 'space')
	{
		for my $query ("SELECT * FROM at_$place WHERE id > 10 ORDER BY id", "SELECT * FROM at_$place WHERE few = 1")
		{
			# half of the table is cached, which is a reason to look ahead, too
			my $eager = $own ? forced() : $late . 'SET pg_lookahead.cache_prefetch_threshold = 0; SET pg_lookahead.miss_threshold = 0;';

			$node->restart;
			my ($answer, $issued, $most) = split /[|\n]/, $node->safe_psql('postgres',
				"DO \$\$ BEGIN PERFORM count(*) FROM at_$place WHERE ctid < '(200,0)'; END \$\$;"
				. "$eager SELECT count(w) FROM ($query OFFSET 0) s; SELECT sum(blocks_issued), max(max_distance) FROM pg_lookahead_last_statement()");

			is($answer, $query =~ /few/ ? 2000 : 5990, "$query: rows");
			if ($place eq 'space' && $own == 0)
			{
				is($issued, 0, "$query: no read is started with a concurrency of 0");
			}
			else
			{
				cmp_ok($issued, '>', 10, '... reads are started');
				cmp_ok($most, $own > 0 && $place eq 'space' ? '<=' : '>', 3, "... $most in flight");
			}
		}
	}
}
$node->safe_psql('postgres', 'DROP TABLE at_space; DROP TABLESPACE space');

# ---- writers, VACUUM, readers ------------------------------------------------------------

my $seconds = 8;
my $rows = 3000;

$node->safe_psql(
	'postgres', qq(
	CREATE TABLE busy (id int, h int NOT NULL, p point NOT NULL, s text NOT NULL, r int4range NOT NULL, w text);
	INSERT INTO busy SELECT i, i % 10, point(i::bigint * 7919 % 1009 + i / 1e5, i::bigint * 4447 % 1013), md5(i::text),
		int4range(i % 500, i % 500 + 20), repeat('w', 150) FROM generate_series(1, $rows) i;
	CREATE UNIQUE INDEX busy_id ON busy (id);
	CREATE INDEX busy_h ON busy USING hash (h);
	CREATE INDEX busy_p ON busy USING gist (p);
	CREATE INDEX busy_r ON busy USING gist (r);
	CREATE INDEX busy_s ON busy USING spgist (s);
	CREATE INDEX busy_q ON busy USING spgist (p);
	VACUUM ANALYZE busy;
	CREATE FUNCTION verify(mode int, snapshot_is_kept bool) RETURNS text LANGUAGE plpgsql AS \$\$
	DECLARE
		x int := random() * 900;
		area CONSTANT text := format('p <@ box(point(%s, %s), point(%s, %s))', x, x / 2, x + 300, x + 500);
		wide CONSTANT text := 'p <@ box(point(-1, -1), point(9999, 9999))';
		query text := (ARRAY[
			format('SELECT * FROM busy WHERE h = %s', x % 10),
			'SELECT b.* FROM generate_series(0, 9) g JOIN busy b ON b.h = g',
			'SELECT * FROM busy WHERE ' || area,
			'SELECT * FROM busy WHERE ' || wide,
			format('SELECT * FROM busy WHERE %s ORDER BY p <-> point(%s, %s)', wide, x, x),
			format('SELECT * FROM busy WHERE r && int4range(%s, %s)', x / 2, x / 2 + 30),
			format('SELECT * FROM busy WHERE s > %L AND s < %L', substr(md5(x::text), 1, 2), 'e'),
			'SELECT * FROM busy WHERE s >= ''0'''])[mode + 1];
		facts CONSTANT text := 'SELECT count(*), sum(id), sum(hashtext(row(id, h, p, s, r)::text)::bigint) AS hash, count(w) AS w FROM (%s OFFSET 0) q';
		seen record;
		expected record;
	BEGIN
		PERFORM set_config(name, 'off', true) FROM unnest('{enable_seqscan, enable_bitmapscan, enable_sort, enable_hashjoin,
			enable_mergejoin, enable_memoize}'::text[]) name;
		EXECUTE format(facts, query) INTO seen;
		IF mode IN (1, 3, 4, 7) AND seen.count <> $rows THEN
			RAISE 'mode %: % rows', mode, seen.count;
		END IF;
		IF mode = 4 THEN
			EXECUTE format('SELECT count(*) AS n FROM (SELECT d < lag(d) OVER () AS wrong FROM (SELECT p <-> point(%s, %s) AS d FROM (%s OFFSET 0) q) q) q WHERE wrong',
				x, x, query) INTO expected;
			IF expected.n > 0 THEN
				RAISE '% rows are not in order', expected.n;
			END IF;
		END IF;
		IF snapshot_is_kept THEN
			PERFORM set_config(name, 'off', true) FROM unnest('{enable_indexscan, enable_indexonlyscan, pg_lookahead.enable}'::text[]) name;
			PERFORM set_config(name, 'on', true) FROM unnest('{enable_seqscan, enable_sort, enable_hashjoin}'::text[]) name;
			EXECUTE format(facts, query) INTO expected;
			IF seen <> expected THEN
				RAISE 'mode %: % instead of %', mode, seen, expected;
			END IF;
		END IF;
		RETURN 'good';
	END \$\$;));

my $dir = PostgreSQL::Test::Utils::tempdir();

sub script
{
	my ($name, $text) = @_;

	append_to_file("$dir/$name", $text);
	return ('-f', "$dir/$name");
}

my @move = script('move', qq(
	\\set id random(1, $rows)
	\\set x random(0, 1000)
	WITH r AS (SELECT id FROM busy WHERE id BETWEEN :id AND :id + 20 ORDER BY id FOR UPDATE SKIP LOCKED)
		UPDATE busy SET h = (h + 1) % 10, p = point(:x + busy.id / 1e5, :x), s = md5((:x + busy.id)::text) FROM r WHERE busy.id = r.id;));
my @ranges = script('ranges', qq(
	\\set id random(1, $rows)
	\\set x random(0, 500)
	WITH r AS (SELECT id FROM busy WHERE id BETWEEN :id AND :id + 20 ORDER BY id FOR UPDATE SKIP LOCKED)
		UPDATE busy SET r = int4range(:x, :x + 20) FROM r WHERE busy.id = r.id;));
my @replace = script('replace', qq(
	\\set id random(1, $rows)
	WITH d AS (DELETE FROM busy WHERE id = :id RETURNING *)
		INSERT INTO busy SELECT id, (h + 5) % 10, p, s, r, w FROM d;));
my @vacuum = script('vacuum', q(
	\sleep 20 ms
	VACUUM (INDEX_CLEANUP ON) busy;));
my $ways = q(
	\set distance random(0, 1) * 63 + 1
	\set force random(0, 2)
	\set threshold random(0, 50)
	SET pg_lookahead.max_distance = :distance;
	\if :force > 0
	SET pg_lookahead.force = on;
	\else
	SET pg_lookahead.force = off;
	SET pg_lookahead.miss_threshold = :threshold;
	SET pg_lookahead.min_read_time = 0;
	SET pg_lookahead.cache_prefetch_threshold = :threshold;
	\endif
	\set mode random(0, 7));
my @snapshots = script('snapshots', qq($ways
	\\set serializable random(1, 4)
	\\if :serializable = 1
	BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;
	\\else
	BEGIN ISOLATION LEVEL REPEATABLE READ;
	\\endif
	SELECT verify(:mode, true);
	COMMIT;));
my @queries = script('queries', qq($ways
	BEGIN;
	SELECT verify(:mode, false);
	COMMIT;));

my $log_size = -s $node->logfile;
my $force = '-c pg_lookahead.force=on';
my @running = (
	start_pgbench($node, $seconds, 'writers', '', 2, @move, @ranges, @replace),
	start_pgbench($node, $seconds, 'writers that look ahead', $force, 2, @move, @ranges, @replace),
	start_pgbench($node, $seconds, 'vacuum', '', 1, @vacuum),
	start_pgbench($node, $seconds, 'readers with a snapshot', $force, 4, @snapshots),
	start_pgbench($node, $seconds, 'readers without', $force, 2, @queries));

check_pgbench($_) for @running;
for my $mode (0 .. 7)
{
	is($node->safe_psql('postgres', "SET pg_lookahead.force = on; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT verify($mode, true);"),
		'good', "mode $mode, when all is quiet");
}
nothing_pinned($node, 'in the end');
my @bad = grep { /WARNING:|ERROR:|FATAL:|leak/ } split /\n/, slurp_file($node->logfile, $log_size);
is("@bad", '', 'no warning and no error');
check_log($node);
$node->stop;

done_testing();
