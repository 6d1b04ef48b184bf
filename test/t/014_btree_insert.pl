# 014_btree_insert.pl - inserts in btree indexes that do not go through nbtree.
#
# pg_lookahead.enable_btree_insert, with pg_lookahead.force, so that it begins with the
# first row, on a primary with a standby.  Checked here:
#   1. For indexes of all shapes the same statements, with the setting off on one table and
#      on on another, leave the same rows and, byte by byte, the same index pages.
#   2. Statements of all kinds reach it: fewer pages are looked at than by nbtree.
#   3. Duplicate keys: the same errors and answers.
#   4. The setting may change at any time.
#   5. Serializable transactions conflict where they did without it.
#   6. Concurrent inserts, of the same keys as well, beside DELETE, VACUUM, and errors: no
#      duplicates, and amcheck finds nothing.
#   7. After a crash in the middle of that, and on the standby: the same.
# From 5 on wal_consistency_checking compares each page that is replayed with the primary's.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $have_icu = check_pg_config('#define USE_ICU 1');
my $node = new_server(
	'primary',
	streaming => 1,
	init => [
		$have_icu ? ('--locale-provider=icu', '--icu-locale=en') : ('--locale=C.UTF-8'),
		'--encoding=UTF8'
	],
	conf => "shared_buffers = 64MB\nmax_connections = 40\nlog_statement = none\nmax_wal_size = 2GB\n"
	  . "deadlock_timeout = 100ms\n",
	extensions => [ 'amcheck', 'pageinspect' ]);
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_slot_name = 'standby'\n");
$node->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('standby', true)");
$standby->start;

my $other = $have_icu ? "provider = icu, locale = 'und'" : "provider = libc, locale = 'C.UTF-8'";
$node->safe_psql('postgres', "CREATE COLLATION other ($other)");

my $off = 'SET pg_lookahead.enable_btree_insert = off; SET pg_lookahead.force = off;';
my $on = 'SET pg_lookahead.enable_btree_insert = on; SET pg_lookahead.force = on;';
my $check = 'bt_index_parent_check(c.oid, heapallindexed => true, rootdescend => true)';

$node->safe_psql(
	'postgres', q(
	CREATE TABLE src AS SELECT id, r % 100000 AS i, (r % 300)::smallint AS s, r::bigint * 1000003 AS l, r % 20 AS dup,
			CASE WHEN r % 3 > 0 THEN r % 50 END AS n, 'county of ' || md5((r % 40)::text) AS c1,
			'city ' || substr(md5((r % 400)::text), 1, 8) AS c2, CASE WHEN r % 7 > 0 THEN md5(r::text) END AS c3,
			(chr(97 + r % 5) || CASE WHEN r % 2 = 0 THEN 'A' ELSE 'a' END || r % 700) AS w,
			md5(r::text)::uuid AS u, timestamptz '2000-01-01' + r * interval '1 second' AS ts,
			(r / 7.0)::float8 AS f, (r % 5000) / 3.0 AS num, decode(md5((r % 1000)::text), 'hex') AS b,
			('n' || r % 600)::name AS nm, ARRAY[r % 10, r % 300] AS arr,
			(SELECT string_agg(md5((r % 800 + k)::text), '') FROM generate_series(1, 6) k) AS wide,
			(SELECT string_agg(md5((r + k)::text), '') FROM generate_series(1, 70) k) AS huge
		FROM (SELECT id, hashint4(id) & 2147483647 AS r FROM generate_series(1, 3000) id) x ORDER BY id;
	CREATE FUNCTION pages(index regclass) RETURNS text LANGUAGE sql AS $$
		SELECT md5(string_agg(CASE WHEN b > 0 AND (bt_page_stats(index::text, b)).type IN ('d', 'D') THEN 'deleted'
				ELSE md5(substr(get_raw_page(index::text, b), 11)) END, ',' ORDER BY b))
		FROM generate_series(0, pg_relation_size(index) / 8192 - 1) b $$;));

# ---- 1. the same pages -----------------------------------------------------------

my $data = $node->basedir . '/src.data';
$node->safe_psql('postgres', "COPY (SELECT * FROM src ORDER BY hashint4(id + 1)) TO '$data'");

# What each table goes through.
sub statements
{
	my ($t, $unique) = @_;
	my $again = $unique ? 'WHERE false' : '';

	return split /;\s*/, qq(
		INSERT INTO $t SELECT * FROM src WHERE id <= 2000 ON CONFLICT DO NOTHING;
		INSERT INTO $t SELECT * FROM src WHERE id <= 1000 ON CONFLICT DO NOTHING;
		DELETE FROM $t WHERE id % 3 = 0;
		VACUUM $t;
		INSERT INTO $t SELECT * FROM src $again;
		UPDATE $t SET id = id + 10000 WHERE id % 4 = 0;
		UPDATE $t SET i = i + 1, l = l + 1, c1 = c1 || 'x', w = w || 'y', u = md5(u::text)::uuid, f = f + 1, nm = nm || 'z', huge = md5(huge) || huge WHERE id % 5 = 1;
		DELETE FROM $t WHERE id BETWEEN 300 AND 900;
		VACUUM $t;
		MERGE INTO $t USING (SELECT * FROM src WHERE id % 2 = 0) s ON $t.id = s.id
			WHEN MATCHED THEN UPDATE SET n = s.n + 1, s = 3
			WHEN NOT MATCHED AND NOT EXISTS (SELECT FROM $t z WHERE z.l = s.l) THEN INSERT VALUES (s.*);
		MERGE INTO $t USING (SELECT * FROM src WHERE id % 3 = 1) s ON $t.id = s.id + 6
			WHEN MATCHED AND s.dup < 10 THEN UPDATE SET i = s.i + 7, c1 = s.c1 || 'm', n = s.dup WHEN MATCHED THEN DELETE;
		DELETE FROM $t;
		VACUUM $t;
		COPY $t FROM '$data';
		TRUNCATE $t;
		INSERT INTO $t SELECT * FROM src ORDER BY l;
		TRUNCATE $t;
		INSERT INTO $t SELECT * FROM src ORDER BY l DESC;
		DELETE FROM $t WHERE id % 2 = 0;
		INSERT INTO $t SELECT * FROM src WHERE id % 2 = 0 ORDER BY c1, c2);
}

my @shapes = (
	[ 'int4', '(i)' ],
	[ 'int2 desc', '(s DESC)' ],
	[ 'int8 unique', '(l)', 'UNIQUE' ],
	[ 'three integers', '(dup, s, i)' ],
	[ 'few keys', '(dup)' ],
	[ 'few keys, no deduplication', '(dup) WITH (deduplicate_items = off)' ],
	[ 'fillfactor', '(i, dup) WITH (fillfactor = 50)' ],
	[ 'nulls', '(n, c3 COLLATE "C", dup)' ],
	[ 'nulls first', '(n NULLS FIRST, c3 COLLATE "C" DESC NULLS LAST)' ],
	[ 'desc', '(n DESC, c1 COLLATE "C" DESC, i)' ],
	[ 'three texts', '(c1 COLLATE "C", c2 COLLATE "C", c3 COLLATE "C")' ],
	[ 'texts of the default collation', '(c1, c2, w)' ],
	[ 'text of another collation', '(w COLLATE "other", i)' ],
	[ 'texts of two collations', '(c2 COLLATE "C", w)' ],
	[ 'uuid unique', '(u)', 'UNIQUE' ],
	[ 'unique nulls', '(n, l)', 'UNIQUE' ],
	[ 'unique nulls not distinct', '(c3 COLLATE "C", l) NULLS NOT DISTINCT', 'UNIQUE' ],
	[ 'unique include', '(l) INCLUDE (c1, n)', 'UNIQUE' ],
	[ 'include', '(dup, c2 COLLATE "C") INCLUDE (wide, s)' ],
	[ 'partial', '(i) WHERE dup < 10' ],
	[ 'partial unique', '(u, c1 COLLATE "C") WHERE dup < 10', 'UNIQUE' ],
	[ 'expression', '(lower(w COLLATE "C"), (i % 10))' ],
	[ 'time stamps', '(ts, dup)' ],
	[ 'floats and numerics', '(num, f)' ],
	[ 'bytea and name', '(b, nm)' ],
	[ 'arrays', '(arr)' ],
	[ 'wide', '(wide COLLATE "C")' ],
	[ 'wide, default collation', '(wide, i)' ],
	[ 'a third of a page', '(huge COLLATE "C")' ],
	[ 'a fifth of a page', '(wide COLLATE "C", c1, (wide || dup), (md5(wide) || wide), c2, (wide || c2))' ],
	[ 'pattern ops', '(w text_pattern_ops)' ]);

for my $shape (@shapes)
{
	my ($name, $index, $unique) = @$shape;
	my @result;

	for my $setting ($off, $on)
	{
		my $t = $setting eq $on ? 't_on' : 't_off';
		my ($ret, $out, $err) = (0, '', '');

		$node->safe_psql('postgres', "DROP TABLE IF EXISTS $t; CREATE TABLE $t (LIKE src);
			CREATE " . ($unique // '') . " INDEX ${t}_x ON $t $index;");
		my $sql = join(";\n", map { s/^\s+//r } statements($t, $unique)) . ';';
		($ret, $out, $err) = $node->psql('postgres', "$setting\n$sql\n", on_error_stop => 0);
		$err =~ s/psql:<stdin>:\d+: //g;
		$err =~ s/t_o(n|ff)/t/g;
		push @result,
		  $node->safe_psql('postgres',
			"SELECT md5(string_agg(x::text || x.ctid, ',' ORDER BY ctid)), count(*), pages('${t}_x') FROM $t x")
		  . "|$err";
	}
	is($result[1], $result[0], "$name: same rows and pages");
	my ($ret, $out, $err) = $node->psql('postgres', "SELECT bt_index_parent_check('t_on_x', true, true)");
	is($err, '', "$name: amcheck");
}

# ---- 2. it is reached ----------------------------------------------------------

$node->safe_psql(
	'postgres', q(
	CREATE TABLE r_off (LIKE src); CREATE INDEX ON r_off (wide COLLATE "C", i);
	CREATE TABLE r_on (LIKE src); CREATE INDEX ON r_on (wide COLLATE "C", i);
	CREATE TABLE p_off (LIKE src) PARTITION BY LIST (dup); CREATE INDEX ON p_off (wide COLLATE "C", i);
	CREATE TABLE p_off_1 PARTITION OF p_off FOR VALUES IN (0,1,2,3,4,5,6,7,8,9); CREATE TABLE p_off_2 PARTITION OF p_off DEFAULT;
	CREATE TABLE p_on (LIKE src) PARTITION BY LIST (dup); CREATE INDEX ON p_on (wide COLLATE "C", i);
	CREATE TABLE p_on_1 PARTITION OF p_on FOR VALUES IN (0,1,2,3,4,5,6,7,8,9); CREATE TABLE p_on_2 PARTITION OF p_on DEFAULT;));

sub visits
{
	my ($t) = @_;

	return $node->safe_psql('postgres',
		"SELECT sum(idx_blks_hit + idx_blks_read) FROM pg_statio_user_indexes WHERE relname LIKE '$t%'");
}

# what a session has counted may come later than its end, and table by table
my $flush = 'SELECT pg_stat_force_next_flush();';
for my $t (qw(r p))
{
	for my $kind (
		[ 'INSERT', 'INSERT INTO $t SELECT * FROM src' ],
		[ 'INSERT ... ON CONFLICT', 'INSERT INTO $t SELECT * FROM src ON CONFLICT DO NOTHING' ],
		[ 'INSERT, in WITH', 'WITH w AS (INSERT INTO $t SELECT * FROM src RETURNING id) SELECT count(*) FROM w' ],
		[ 'UPDATE', 'UPDATE $t SET i = i + 1' ],
		[ 'MERGE', 'MERGE INTO $t USING src s ON $t.id = s.id + 1000000 WHEN NOT MATCHED THEN INSERT VALUES (s.*)' ],
		[ 'COPY', "COPY \$t FROM '$data'" ])
	{
		my ($name, $sql) = @$kind;
		my %visits;

		for my $setting ($off, $on)
		{
			my $table = "${t}_" . ($setting eq $on ? 'on' : 'off');
			my $s = $sql =~ s/\$t/$table/gr;

			# room on the pages: a new table each time
			$node->safe_psql('postgres', "$off TRUNCATE $table; INSERT INTO $table SELECT * FROM src; $flush");
			my $before = visits($table);
			$node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; SET pg_lookahead.enable_write = off;
				$setting $s; $flush");
			$visits{$setting} = visits($table) - $before;
		}
		cmp_ok($visits{$on}, '<', 0.8 * $visits{$off}, "$name, " . ($t eq 'p' ? 'partitions' : 'table') . ": reached");
	}
}
is(check_indexes($node, $check), '', 'amcheck after all kinds of statements');

# ---- 3. duplicate keys -----------------------------------------------------------

for my $setting ($off, $on)
{
	my $t = $setting eq $on ? 'u_on' : 'u_off';

	$node->safe_psql('postgres', "
		CREATE TABLE $t (a int, b text COLLATE \"C\", c int);
		CREATE UNIQUE INDEX ON $t (b, a);
		ALTER TABLE $t ADD CONSTRAINT ${t}_d UNIQUE (c) DEFERRABLE INITIALLY DEFERRED;
		CREATE UNIQUE INDEX ${t}_n ON $t ((nullif(a, 5))) NULLS NOT DISTINCT;");
}
my @duplicates = (
	'INSERT INTO u SELECT i, i % 7, i FROM generate_series(10, 1000) i',
	'INSERT INTO u SELECT i, i % 7, i FROM generate_series(1002, 990, -1) i',
	'INSERT INTO u SELECT i, i % 7, i - 1100 FROM generate_series(1100, 1200) i',
	'INSERT INTO u VALUES (5, NULL, NULL), (5, NULL, NULL)',
	'INSERT INTO u VALUES (NULL, NULL, NULL), (6, NULL, NULL), (7, NULL, NULL)',
	'INSERT INTO u VALUES (5, NULL, NULL)',
	'UPDATE u SET a = a + 1, c = c + 1',
	'UPDATE u SET c = c + 1',
	'BEGIN; UPDATE u SET c = 1 WHERE c BETWEEN 20 AND 30; UPDATE u SET c = -a WHERE c = 1; COMMIT',
	'INSERT INTO u SELECT i, i % 7, i FROM generate_series(900, 1300) i ON CONFLICT DO NOTHING',
	'INSERT INTO u SELECT i, i % 7, 5000 + i FROM generate_series(1200, 1400) i ON CONFLICT (b, a) DO UPDATE SET c = 20000 + u.c',
	'BEGIN; DELETE FROM u WHERE a < 500; INSERT INTO u SELECT i, i % 7, -i FROM generate_series(499, 10, -1) i; COMMIT',
	'BEGIN; INSERT INTO u SELECT i, NULL, NULL FROM generate_series(3000, 4000) i; ROLLBACK',
	'INSERT INTO u SELECT i, NULL, NULL FROM generate_series(3000, 4000) i',
	'SELECT md5(string_agg(u::text, \',\' ORDER BY a, b, c)) FROM u');
for my $sql (@duplicates)
{
	my @answer;

	for my $setting ($off, $on)
	{
		my $t = $setting eq $on ? 'u_on' : 'u_off';
		my $s = $sql =~ s/\bu\b(?!:)/$t/gr;
		$s =~ s/\(u::/($t\::/;
		my ($ret, $out, $err) = $node->psql('postgres', "$setting $s;");
		$err =~ s/psql:<stdin>:\d+: //g;
		push @answer, "$out\n$err" =~ s/u_o(n|ff)/u/gr;
	}
	is($answer[1], $answer[0], $sql);
}

# ---- 4. the setting changes ------------------------------------------------------

$node->safe_psql(
	'postgres', q(
	CREATE TABLE sw (a int, b text);
	CREATE INDEX ON sw (a, b COLLATE "C");
	INSERT INTO sw SELECT (r * 7919) % 100000, set_config('pg_lookahead.' ||
			CASE WHEN r % 3 = 0 THEN 'enable' ELSE 'enable_btree_insert' END, (r % 2 = 0)::text, false)
		FROM generate_series(1, 5000) r;
	SET pg_lookahead.enable = on;
	SET pg_lookahead.enable_btree_insert = on;
	INSERT INTO sw SELECT (r * 7919) % 100000, set_config('pg_lookahead.' ||
			CASE WHEN r % 3 = 0 THEN 'enable' ELSE 'enable_btree_insert' END, (r % 2 = 0)::text, false)
		FROM generate_series(1, 5000) r;
	RESET ALL;
	INSERT INTO sw SELECT r, r FROM generate_series(1, 5000) r;));
is(check_indexes($node, $check), '', 'amcheck after changes of the setting');

is( $node->safe_psql(
		'postgres', qq($on
		CREATE TEMP TABLE tmp (LIKE src);
		CREATE UNIQUE INDEX tmp_l ON tmp (l);
		CREATE INDEX tmp_w ON tmp (c1 COLLATE "C", w);
		INSERT INTO tmp SELECT * FROM src;
		UPDATE tmp SET l = l + 1, w = w || 'x';
		SELECT bt_index_parent_check('tmp_l', true, true), bt_index_parent_check('tmp_w', true, true);)),
	'|', 'temporary table');

$node->safe_psql('postgres', 'ALTER SYSTEM SET wal_consistency_checking = btree');
$node->reload;

# ---- 4a. what a statement's triggers do with the indexes -----------------------------------

# the same for both settings: no index is opened before the first row, nor locked
my @answers;
for my $setting ($off, $on)
{
	$node->safe_psql('postgres', q(
		DROP TABLE IF EXISTS tr, tp;
		CREATE TABLE tr (a int, b int);
		CREATE INDEX tr_a ON tr (a);
		CREATE INDEX tr_b ON tr (b);
		INSERT INTO tr SELECT i, i FROM generate_series(1, 100) i;
		CREATE TABLE tp (a int, b int) PARTITION BY RANGE (a);
		CREATE TABLE tp1 PARTITION OF tp FOR VALUES FROM (0) TO (1000);
		CREATE TABLE tp2 PARTITION OF tp FOR VALUES FROM (1000) TO (2000);
		CREATE INDEX ON tp (b);
		CREATE OR REPLACE FUNCTION before_statement() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			EXECUTE current_setting('la.does');
			RETURN NULL;
		END $$;
		CREATE TRIGGER before_all BEFORE INSERT OR UPDATE ON tr FOR EACH STATEMENT EXECUTE FUNCTION before_statement();));
	my $answer = '';

	for my $does ('DROP INDEX tr_b', 'ALTER INDEX tr_a SET (fillfactor = 50)', 'REINDEX TABLE tr', 'CREATE INDEX tr_c ON tr (b, a)',
		'ALTER TABLE tr ALTER b TYPE bigint', 'DROP INDEX tr_a; DROP INDEX tr_b')
	{
		for my $statement ('INSERT INTO tr SELECT i, i FROM generate_series(1, 500) i', 'UPDATE tr SET a = a + 1, b = b + 1',
			'INSERT INTO tr SELECT i, i FROM generate_series(1, 500) i WHERE i < 0', 'MERGE INTO tr USING generate_series(50, 500) i ON a = i WHEN MATCHED THEN UPDATE SET b = 0 WHEN NOT MATCHED THEN INSERT VALUES (i, i)')
		{
			my ($ret, $out, $err) = $node->psql('postgres', "$setting SET la.does = '$does'; BEGIN; $statement; SELECT count(*), sum(a), sum(b) FROM tr; ROLLBACK;");
			$answer .= "$does, $statement: $out, $err\n";
		}
	}
	for my $statement ('INSERT INTO tp SELECT i, i FROM generate_series(1, 500) i WHERE i < 0', 'INSERT INTO tp SELECT i, i FROM generate_series(1, 500) i',
		'UPDATE tp SET b = 1 WHERE a < 0', 'INSERT INTO tr SELECT i, i FROM generate_series(1, 500) i WHERE i < 0')
	{
		$answer .= "$statement: " . $node->safe_psql('postgres', "$setting SET la.does = 'SELECT'; BEGIN; $statement;
			SELECT relation::regclass, mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation >= 16384 ORDER BY 1, 2; ROLLBACK") . "\n";
	}
	push @answers, $answer;
}
is($answers[1], $answers[0], 'triggers that change indexes, and locks: as without');
unlike($answers[1], qr/^(DROP|ALTER) INDEX [^,]*, (INSERT|UPDATE) [^:]*: , .*being used by active queries/m, 'triggers that change indexes do so');
is(check_indexes($node, $check), '', 'amcheck after triggers');

# ---- 5. serializable -------------------------------------------------------------

$node->safe_psql('postgres', "CREATE TABLE ser (a int); CREATE INDEX ser_a ON ser (a);
	INSERT INTO ser SELECT 10 * i FROM generate_series(1, 5000) i; VACUUM ANALYZE ser");
for my $setting ($off, $on)
{
	my $plan = plans_index();
	my @s = map { open_session($node, "$setting $plan SET default_transaction_isolation = serializable;") } 1 .. 2;
	my $key = $setting eq $on ? 1000 : 30000;
	my $result = '';

	for my $i (0, 1)
	{
		ask($s[$i], 'BEGIN');
		ask($s[$i], "SELECT count(*) FROM ser WHERE a BETWEEN $key AND $key + 100");
	}
	$result .= ask($s[$_], "INSERT INTO ser SELECT $key + $_ + i FROM generate_series(11, 13) i") for (0, 1);
	$result .= ask($s[$_], 'COMMIT') for (0, 1);
	like($result, qr/could not serialize access/, 'write skew is found' . ($setting eq $on ? '' : ' by nbtree'));
	$_->quit for @s;
}

sub plans_index
{
	return 'SET enable_seqscan = off; SET enable_bitmapscan = off;';
}

# ---- 6. concurrent ---------------------------------------------------------------

$node->safe_psql(
	'postgres', q(
	CREATE TABLE c1 (k int, w text COLLATE "C", x int);
	CREATE UNIQUE INDEX ON c1 (k);
	CREATE INDEX ON c1 (w, x);
	CREATE INDEX ON c1 (x);
	CREATE UNLOGGED TABLE c2 (k uuid PRIMARY KEY, x int);
	CREATE INDEX ON c2 (x DESC NULLS FIRST) INCLUDE (k);
	INSERT INTO c1 SELECT i, 'w' || i, i % 100 FROM generate_series(1, 20000, 2) i;
	INSERT INTO c2 SELECT md5(i::text)::uuid, i % 100 FROM generate_series(1, 20000, 2) i;));
my %files = (
	insert => 'INSERT INTO c1 SELECT k, \'w\' || k % 500, k % 50 FROM (SELECT (random() * 20000)::int k FROM generate_series(1, 60)) s ON CONFLICT DO NOTHING;',
	insert2 => 'INSERT INTO c2 SELECT DISTINCT md5(k::text)::uuid, nullif(k % 50, 1) FROM (SELECT (random() * 20000)::int k FROM generate_series(1, 60)) s ON CONFLICT (k) DO UPDATE SET x = c2.x + 1;',
	# plain inserts of the same keys by several: who is second waits, and has an error
	plain => q(DO $$ BEGIN INSERT INTO c1 SELECT k, 'p' || k, NULL FROM (SELECT DISTINCT 20000 + (random() * 4000)::int k FROM generate_series(1, 12)) s ORDER BY k; PERFORM pg_sleep(0.001); EXCEPTION WHEN unique_violation THEN NULL; END $$;),
	abort => "BEGIN; INSERT INTO c1 SELECT 30000 + (random() * 1e8)::int, 'a' || i, i FROM generate_series(1, 40) i ON CONFLICT DO NOTHING; ROLLBACK;",
	delete => "\\set a random(1, 24000)\nDELETE FROM c1 WHERE k BETWEEN :a AND :a + 200;\nDELETE FROM c2 WHERE x = :a % 60;",
	update => "\\set a random(1, 20000)\nUPDATE c1 SET x = x + 1, w = 'u' || w WHERE k IN (SELECT k FROM c1 WHERE k BETWEEN :a AND :a + 40 FOR UPDATE SKIP LOCKED);",
	serializable => "BEGIN ISOLATION LEVEL SERIALIZABLE;\nINSERT INTO c1 SELECT 40000 + count(*)::int * 10 + i, 's', i FROM c1, generate_series(1, 3) i WHERE w = 's' GROUP BY i ON CONFLICT DO NOTHING;\nCOMMIT;",
	vacuum => "VACUUM (TRUNCATE off) c1;\nVACUUM (TRUNCATE off) c2;\n\\sleep 100 ms\n");

sub start_stress
{
	my ($seconds) = @_;
	my $options = '-c pg_lookahead.enable_btree_insert=on -c pg_lookahead.force=on';
	my @runs;

	for my $name (sort keys %files)
	{
		my $file = $node->basedir . "/$name.sql";

		unlink $file;
		append_to_file($file, $files{$name});
		push @runs,
		  start_pgbench($node, $seconds, $name, $options, $name =~ /^(insert2?|plain)$/ ? 3 : 1, '--max-tries=1000', '-f', $file);
	}
	return @runs;
}

check_pgbench($_) for start_stress(10);

sub check_whole
{
	my ($name) = @_;

	is(check_indexes($node, $check), '', "$name: amcheck");
	is( $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;
			SELECT (SELECT count(*) FROM (SELECT k FROM c1 GROUP BY k HAVING count(*) > 1) d),
				(SELECT count(*) FROM (SELECT k FROM c2 GROUP BY k HAVING count(*) > 1) d)"),
		'0|0', "$name: no duplicates");
	return;
}

check_whole('concurrent');

# ---- 7. standby and crash ----------------------------------------------------------

# a commit: VACUUM and ROLLBACK leave their WAL to be flushed some time
$node->safe_psql('postgres', q(SELECT pg_logical_emit_message(true, 'the', 'end')));
$node->wait_for_catchup($standby);
my $same = 0;
for my $index (split /\n/, $node->safe_psql('postgres', "SELECT oid::regclass FROM pg_class WHERE relkind = 'i'
		AND relpersistence = 'p' AND relnamespace = 'public'::regnamespace AND relam = (SELECT oid FROM pg_am WHERE amname = 'btree')"))
{
	my $items = "SELECT md5(string_agg(CASE WHEN s.type IN ('d', 'D') THEN '' ELSE (SELECT string_agg(i::text, ',' ORDER BY itemoffset)
			FROM (SELECT itemoffset, ctid, itemlen, nulls, vars, data, htid, tids FROM bt_page_items('$index', b)) i) END, ';' ORDER BY b))
		FROM generate_series(1, pg_relation_size('$index') / 8192 - 1) b, bt_page_stats('$index', b) s";

	$same += $node->safe_psql('postgres', $items) eq $standby->safe_psql('postgres', $items) ? 0 : 1;
}
is($same, 0, 'entries on the standby are those of the primary');

my @runs = start_stress(60);
sleep 3;
$node->stop('immediate');
$_->{handle}->finish for @runs;
$node->start;
check_whole('after a crash');
check_log($node);
check_log($standby);
unlike(slurp_file($standby->logfile), qr/inconsistent page/, 'replay: pages are consistent');
unlike(slurp_file($node->logfile), qr/inconsistent page/, 'recovery: pages are consistent');

$standby->stop;
$node->stop;
done_testing();
