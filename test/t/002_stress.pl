# 002_stress.pl - readers that look ahead while rows move, and VACUUM follows them.
#
# Two tables, one logged and one unlogged (where leaf pages stay pinned).  Writers change
# the indexed key of ranges of rows, so that leaf pages split and empty; transfer amounts
# between two rows; delete rows and insert them again under another id and key.  Each of
# their transactions keeps the number of rows and the sum of the amounts.  A VACUUM loop
# removes what they leave, so that line pointers and leaf pages are used again at once.
#
# Readers run verify() with settings chosen at random, most of them with look-ahead forced:
# one kind of scan, checked for the two sums, for its order, and against a sequential scan
# without look-ahead in the same snapshot.  verify() raises an error where something is wrong,
# which ends its pgbench client with exit code 2.
#
# In the end the indexes are checked by amcheck, which also finds live rows whose entries
# were marked dead by mistake, and the server log must not hold any warning.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = 20;
my $rows = 6000;
my $keys = 15000;
my $total = $rows * 1000;
my @tables = qw(logged unlogged);

my $node = new_server(
	'main',
	extensions => ['amcheck'],
	conf => "shared_buffers = 8MB\nmax_connections = 40\nlog_statement = none\nmax_wal_size = 1GB\n");

for my $table (@tables)
{
	my $kind = $table eq 'unlogged' ? 'UNLOGGED' : '';

	$node->safe_psql(
		'postgres', qq(
		CREATE $kind TABLE $table (id int PRIMARY KEY, a int NOT NULL, g int NOT NULL, amount bigint NOT NULL, w text);
		INSERT INTO $table SELECT i, (hashint4(i) & 2147483647) % $keys + 1, i % 20, 1000, repeat('w', 250)
			FROM generate_series(1, $rows) i;
		CREATE INDEX ${table}_a ON $table (a);
		CREATE INDEX ${table}_ai ON $table (a, id) INCLUDE (amount);
		CREATE INDEX ${table}_g ON $table (g);
		VACUUM ANALYZE $table;));
}

# ---- what readers check ------------------------------------------------------

$node->safe_psql(
	'postgres', q(
	CREATE FUNCTION verify(tab text, mode int, snapshot_is_kept bool) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		rows CONSTANT int := ROWS;
		total CONSTANT bigint := TOTAL;
		facts CONSTANT text := 'SELECT count(*), sum(amount), sum(hashint8(a::bigint * 100000 + id)::bigint) AS hash';
		plain CONSTANT text := format('SELECT a, id, amount, w FROM %I WHERE a > 0 AND w IS NOT NULL', tab);
		covered CONSTANT text := format('SELECT a, id, amount FROM %I WHERE a > 0', tab);
		query text;
		seen record;
		expected record;
	BEGIN
		PERFORM set_config(name, 'off', true) FROM unnest('{enable_seqscan, enable_bitmapscan, enable_sort,
			enable_incremental_sort}'::text[]) name;

		IF mode <= 3 THEN
			-- a whole scan, in order
			query := CASE WHEN mode IN (0, 2) THEN plain ELSE covered END
				|| CASE WHEN mode <= 1 THEN ' ORDER BY a, id' ELSE ' ORDER BY a DESC, id DESC' END;
			query := format('%s, count(*) FILTER (WHERE (a, id) %s (pa, pi)) AS disorder
				FROM (SELECT *, lag(a) OVER () AS pa, lag(id) OVER () AS pi FROM (%s OFFSET 0) s) s',
				facts, CASE WHEN mode <= 1 THEN '<=' ELSE '>=' END, query);
		ELSIF mode = 4 THEN
			-- array keys
			query := format('%s, 0::bigint AS disorder FROM %I WHERE g = ANY (ARRAY(SELECT generate_series(-3, 22)))', facts, tab);
		ELSIF mode = 5 THEN
			-- rescans
			query := format('%s, 0::bigint AS disorder FROM generate_series(-1, 20) x,
				LATERAL (SELECT * FROM %I t WHERE t.g = x OFFSET 0) s', facts, tab);
		ELSIF mode = 6 THEN
			-- parallel scans
			PERFORM set_config('max_parallel_workers_per_gather', '2', true);
			PERFORM set_config(name, '0', true) FROM unnest('{parallel_setup_cost, parallel_tuple_cost,
				min_parallel_index_scan_size, min_parallel_table_scan_size}'::text[]) name;
			query := format('%s, 0::bigint AS disorder FROM %I WHERE a > 0 AND w IS NOT NULL', facts, tab);
		ELSIF mode = 7 THEN
			PERFORM verify_merge_join(tab);
			RETURN 'good';
		ELSIF mode = 11 THEN
			PERFORM verify_nested_loop(tab);
			RETURN 'good';
		ELSIF mode <= 9 THEN
			PERFORM verify_cursor(tab, CASE WHEN mode = 8 THEN plain ELSE covered END || ' ORDER BY a, id', rows);
			RETURN 'good';
		ELSE
			PERFORM verify_pieces(plain, rows, total);
			RETURN 'good';
		END IF;

		EXECUTE query INTO seen;
		IF seen.count <> rows OR seen.sum <> total OR seen.disorder <> 0 THEN
			RAISE 'mode %: % rows, sum %, % out of order', mode, seen.count, seen.sum, seen.disorder;
		END IF;
		IF snapshot_is_kept THEN
			PERFORM scan_sequentially();
			EXECUTE format('%s, 0::bigint AS disorder FROM %I', facts, tab) INTO expected;
			IF seen <> expected THEN
				RAISE 'mode %: % instead of %', mode, seen, expected;
			END IF;
		END IF;
		RETURN 'good';
	END $$;

	CREATE FUNCTION scan_sequentially() RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM set_config(name, 'off', true) FROM unnest('{enable_indexscan, enable_indexonlyscan, pg_lookahead.enable}'::text[]) name;
		PERFORM set_config(name, 'on', true) FROM unnest('{enable_seqscan, enable_sort, enable_hashjoin}'::text[]) name;
		PERFORM set_config('max_parallel_workers_per_gather', '0', true);
	END $$;

	-- mark and restore
	CREATE FUNCTION verify_merge_join(tab text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		seen record;
		expected record;
	BEGIN
		PERFORM set_config(name, 'off', true) FROM unnest('{enable_hashjoin, enable_nestloop, enable_material}'::text[]) name;
		EXECUTE format('SELECT count(*)::numeric AS n, sum(x.id)::numeric AS s1, sum(y.id)::numeric AS s2, sum(length(y.w)) AS l
			FROM %I x JOIN %I y ON x.a = y.a', tab, tab) INTO seen;
		PERFORM scan_sequentially();
		EXECUTE format('SELECT sum(n * n) AS n, sum(n * s) AS s1, sum(n * s) AS s2, sum(n * l)::bigint AS l
			FROM (SELECT count(*) AS n, sum(id) AS s, sum(length(w)) AS l FROM %I GROUP BY a) s', tab) INTO expected;
		IF seen <> expected THEN
			RAISE 'merge join: % instead of %', seen, expected;
		END IF;
	END $$;

	-- a chain of nested loops
	CREATE FUNCTION verify_nested_loop(tab text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		seen record;
		expected record;
	BEGIN
		PERFORM set_config(name, 'off', true) FROM unnest('{enable_hashjoin, enable_mergejoin, enable_material, enable_memoize}'::text[]) name;
		EXECUTE format('SELECT count(*)::numeric AS n, sum(y.amount)::numeric AS s1, sum(z.id)::numeric AS s2, sum(length(z.w)) AS l
			FROM %I x JOIN %I y ON y.id = x.id JOIN %I z ON z.a = y.a', tab, tab, tab) INTO seen;
		PERFORM scan_sequentially();
		EXECUTE format('SELECT sum(n * n) AS n, sum(n * m) AS s1, sum(n * s) AS s2, sum(n * l)::bigint AS l
			FROM (SELECT count(*) AS n, sum(amount) AS m, sum(id) AS s, sum(length(w)) AS l FROM %I GROUP BY a) s', tab) INTO expected;
		IF seen <> expected THEN
			RAISE 'nested loop: % instead of %', seen, expected;
		END IF;
	END $$;

	-- a cursor that moves about, and rests
	CREATE FUNCTION verify_cursor(tab text, query text, rows int) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		c refcursor;
		r record;
		ids int[];
		pos int := 40;
		distance int;
	BEGIN
		OPEN c SCROLL FOR EXECUTE query;
		MOVE FORWARD pos FROM c;
		PERFORM scan_sequentially();
		EXECUTE format('SELECT array_agg(id ORDER BY a, id) FROM %I', tab) INTO ids;
		LOOP
			distance := random() * 400 - 100;
			EXIT WHEN pos + distance + 1 > rows;
			IF distance >= 0 THEN
				MOVE FORWARD distance FROM c;
				FETCH NEXT FROM c INTO r;
				pos := pos + distance + 1;
			ELSIF pos + distance > 1 THEN
				MOVE BACKWARD -distance FROM c;
				FETCH PRIOR FROM c INTO r;
				pos := pos + distance - 1;
			ELSE
				CONTINUE;
			END IF;
			IF r.id IS DISTINCT FROM ids[pos] THEN
				RAISE 'cursor at row %: % instead of %', pos, r.id, ids[pos];
			END IF;
			IF random() < 0.2 THEN
				PERFORM pg_sleep(0.005);
			END IF;
		END LOOP;
		FETCH LAST FROM c INTO r;
		IF r.id IS DISTINCT FROM ids[rows] THEN
			RAISE 'last row of cursor: % instead of %', r.id, ids[rows];
		END IF;
		FETCH NEXT FROM c INTO r;
		IF FOUND THEN
			RAISE 'more rows than there are';
		END IF;
		FETCH RELATIVE -rows FROM c INTO r;
		IF r.id IS DISTINCT FROM ids[1] THEN
			RAISE 'first row of cursor: % instead of %', r.id, ids[1];
		END IF;
		CLOSE c;
	END $$;

	-- piece by piece
	CREATE FUNCTION verify_pieces(query text, rows int, total bigint) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		r record;
		n int := 0;
		sum bigint := 0;
		last_a int := 0;
		last_id int := 0;
	BEGIN
		LOOP
			EXECUTE format('SELECT count(w), sum(amount), max(a) AS a, (array_agg(id ORDER BY a DESC, id DESC))[1] AS id
				FROM (%s AND (a, id) > ($1, $2) ORDER BY a, id LIMIT 277) s', query) INTO r USING last_a, last_id;
			EXIT WHEN r.count = 0;
			n := n + r.count;
			sum := sum + r.sum;
			last_a := r.a;
			last_id := r.id;
		END LOOP;
		IF n <> rows OR sum <> total THEN
			RAISE 'piece by piece: % rows, sum %', n, sum;
		END IF;
	END $$;) =~ s/ROWS/$rows/r =~ s/TOTAL/$total/r);

# what verify() is meant to run, by mode; the planner may choose between indexes for the join
my @uses = (
	'index scan _ai', 'index only scan _ai', 'index scan _ai', 'index only scan _ai', 'index scan _g', 'index scan _g, nested loop _g',
	'.*', '.*index scan _ai?', 'index scan _ai', 'index only scan _ai', 'index scan _ai', '.*nested loop _ai?.*');
my $modes = @uses;

# ---- the scripts ------------------------------------------------------------------

my $dir = PostgreSQL::Test::Utils::tempdir();

sub script
{
	my ($name, $text) = @_;
	my @files;

	for my $table (@tables)
	{
		my $file = "$dir/$name.$table";

		append_to_file($file, $text =~ s/\bTAB\b/$table/gr);
		push @files, '-f', $file;
	}
	return @files;
}

# ranges of rows to another place, to the right end, and back from there
my @move = script('move', qq(
	\\set from random(1, $keys)
	\\set to random(1, $keys)
	WITH r AS (SELECT id FROM TAB WHERE a BETWEEN :from AND :from + 20 ORDER BY a LIMIT 20 FOR UPDATE SKIP LOCKED)
		UPDATE TAB SET a = :to + TAB.id % 50, g = :to % 20 FROM r WHERE TAB.id = r.id;));
my @sweep = script('sweep', qq(
	WITH r AS (SELECT id FROM TAB WHERE a > 0 ORDER BY a LIMIT 40 FOR UPDATE SKIP LOCKED)
		UPDATE TAB SET a = $keys + TAB.id % 500 FROM r WHERE TAB.id = r.id;));
my @back = script('back', qq(
	\\set to random(1, $keys)
	WITH r AS (SELECT id FROM TAB WHERE a > 0 ORDER BY a DESC LIMIT 40 FOR UPDATE SKIP LOCKED)
		UPDATE TAB SET a = :to + TAB.id % 500 FROM r WHERE TAB.id = r.id;));

my @transfer = script('transfer', qq(
	\\set x random(1, $rows)
	\\set y random(1, $rows)
	\\set sum random(1, 100)
	BEGIN;
	SELECT count(*) AS n FROM (SELECT id FROM TAB WHERE id IN (:x, :y) ORDER BY id FOR UPDATE) s \\gset
	\\if :n = 2
	UPDATE TAB SET amount = amount + CASE id WHEN :x THEN - :sum ELSE :sum END, a = CASE WHEN :sum < 50 THEN a + 1 ELSE a END
		WHERE id IN (:x, :y);
	\\endif
	COMMIT;));

# deleted, and inserted under another id and key
my @replace = script('replace', qq(
	\\set x random(1, $rows)
	\\set to random(1, $keys)
	WITH d AS (DELETE FROM TAB WHERE id IN (:x, :x + $rows) RETURNING *)
		INSERT INTO TAB SELECT CASE WHEN id > $rows THEN id - $rows ELSE id + $rows END, :to, g, amount, w FROM d;));

my @vacuum = script('vacuum', q(
	\sleep 20 ms
	VACUUM (INDEX_CLEANUP ON) TAB;));

# forced, or activated on the way, and perhaps stopped again
my $settings = q(
	\set ring random(0, 1) * 62 + 2
	\set distance random(0, 1) * 63 + 1
	\set force random(0, 2)
	\set threshold random(0, 50)
	SET pg_lookahead.max_leaf_pages = :ring;
	SET pg_lookahead.max_distance = :distance;
	\if :force > 0
	SET pg_lookahead.force = on;
	\else
	SET pg_lookahead.force = off;
	SET pg_lookahead.miss_threshold = :threshold;
	SET pg_lookahead.min_read_time = 0;
	SET pg_lookahead.cache_prefetch_threshold = :threshold;
	\endif);
my @snapshots = script('snapshots', qq($settings
	\\set mode random(0, $modes - 1)
	\\set serializable random(1, 4)
	\\if :serializable = 1
	BEGIN ISOLATION LEVEL SERIALIZABLE;
	\\else
	BEGIN ISOLATION LEVEL REPEATABLE READ;
	\\endif
	SELECT verify('TAB', :mode, true);
	COMMIT;));

# a snapshot for each query: rows removed just before it are vacuumed while it runs
my @queries = script('queries', qq($settings
	\\set mode random(0, 6)
	BEGIN;
	SELECT verify('TAB', :mode, false);
	COMMIT;));

# ---- all at once -------------------------------------------------------------------

my $force = '-c pg_lookahead.force=on';

my @running = (
	start_pgbench($node, $seconds, 'writers', '', 3, @move, @sweep, @back, @transfer, @transfer, @replace, @replace),
	start_pgbench($node, $seconds, 'writers that look ahead', $force, 3, @move, @sweep, @back, @transfer, @replace),
	start_pgbench($node, $seconds, 'vacuum', '', 1, @vacuum),
	start_pgbench($node, $seconds, 'readers with a snapshot', $force, 6, @snapshots),
	start_pgbench($node, $seconds, 'readers without', $force, 3, @queries));

check_pgbench($_) for @running;

# ---- in the end ---------------------------------------------------------------------

for my $table (@tables)
{
	for my $mode (0 .. $#uses)
	{
		my ($ret, $out, $err) = $node->psql(
			'postgres', qq(
			SET pg_lookahead.force = on;
			BEGIN ISOLATION LEVEL REPEATABLE READ;
			SELECT verify('$table', $mode, true);
			SELECT string_agg(DISTINCT kind || ' ' || replace(index::text, '$table', ''), ', ')
			FROM pg_lookahead_last_statement() WHERE scans_activated > 0;));

		like("$out$err", qr/^good\n$uses[$mode]$/, "$table, mode $mode, when all is quiet");
	}
}
is(check_indexes($node), '', 'indexes are sound');
is(check_indexes($node, 'bt_index_parent_check(c.oid, true, true)'), '', '... and so are their upper levels');
is($node->safe_psql('postgres', "SELECT count(*) FROM verify_heapam('$_')"), 0, "heap of $_ is sound") for @tables;

cmp_ok(activated($node), '>', 100, 'scans have looked ahead');
cmp_ok($node->safe_psql('postgres', 'SELECT sum(entries_killed) FROM pg_stat_lookahead'),
	'>', 0, 'they marked entries dead');

check_log($node);
my @bad = grep { /WARNING:|ERROR:|FATAL:|leak/ } split /\n/, slurp_file($node->logfile);
is("@bad", '', 'no warning and no error either');
$node->stop;

done_testing();
