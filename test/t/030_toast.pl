# 030_toast.pl - values stored out of line that are read ahead: reads, damage, and early ends.
#
# test/sql/toast.sql compares what statements return.  Checked here:
#   1. Blocks of values that are not cached are issued, hardly any of them in vain, without being
#      forced; and none for a column that is not read, or by EXPLAIN.  Where reads are no waits,
#      few rows are looked at.
#   2. On a standby.
#   3. A damaged or missing page of a toast table or its index gives the same error after the same
#      rows as in stock, with the same warnings; and none where the value is not fetched.
#   4. A statement that is canceled, runs into a timeout, or ends early leaves nothing pinned.
#   5. Tables that are rewritten: the same, and that their files are sound afterwards.
#   6. Concurrent updates, VACUUM, VACUUM FULL, REPACK and REINDEX: the values are those of their rows.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $block_size = 8192;
my $rows = 600;
my $bad = 300;
my $node = new_server(
	'main',
	init => ['--data-checksums'],
	streaming => 1,
	conf => "pg_lookahead.enable_toast = on\nmax_connections = 30\nlog_statement = none\ndeadlock_timeout = 100ms\n",
	extensions => [ 'pg_buffercache', 'pageinspect', 'amcheck' ]);

my %modes = (
	off => stock(),
	'distance 64' => forced(),
	'distance 1' => forced(distance => 1),
	'low thresholds' => plans_only() . 'SET pg_lookahead.miss_threshold = 0; SET pg_lookahead.min_read_time = 0;');
my @ahead = grep { $_ ne 'off' } sort keys %modes;
my $seq = 'SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off;';
my $bitmap = 'SET enable_bitmapscan = on; SET enable_indexscan = off;';

sub plans_only
{
	return stock() . 'SET pg_lookahead.enable = on;';
}

# Rows by id, in the order of the table; values in no order; three chunks each.
sub make_table
{
	my ($name, $n) = @_;

	$node->safe_psql(
		'postgres', qq(
		CREATE TABLE $name (id int, v text, w text) WITH (fillfactor = 30);
		ALTER TABLE $name ALTER v SET STORAGE EXTERNAL;
		INSERT INTO $name SELECT i, NULL, 'row ' || i FROM generate_series(0, $n - 1) i;
		CREATE UNIQUE INDEX ${name}_id ON $name (id);
		DO \$\$
		DECLARE i int;
		BEGIN
			FOR i IN SELECT g FROM generate_series(0, $n - 1) g ORDER BY hashint4(g) LOOP
				UPDATE $name SET v = repeat(md5(i::text), 150) WHERE id = i;
			END LOOP;
		END \$\$;
		VACUUM (FREEZE, ANALYZE) $name;));
	return;
}

# What was done for values by the last statement: issued, on time or late, wasted, foreseen.
my $figures = q(SELECT coalesce(sum(blocks_issued), 0), coalesce(sum(blocks_on_time + blocks_late), 0),
	coalesce(sum(blocks_wasted), 0), coalesce(sum(blocks_foreseen), 0), coalesce(sum(leaf_pages_issued), 0)
	FROM pg_lookahead_last_statement() WHERE kind = 'toast');

sub figures_of
{
	my ($settings, $sql) = @_;
	my ($out, $line) = split /=\n/, $node->safe_psql('postgres', "$settings\n$sql;\n\\echo =\n$figures");

	return split /\|/, $line;
}

# ---- 1. reads -------------------------------------------------------------------------

make_table('t', 4000);
$node->safe_psql('postgres', 'CREATE TABLE s AS SELECT id, id * 2 AS x FROM t; CREATE UNIQUE INDEX ON s (id); ANALYZE s');
my $file = $node->basedir . '/t.copy';
my $low = 'SET pg_lookahead.min_read_time = 0;';
my %reads = (
	'index scan' => plans_only() . "$low SELECT md5(v) FROM t WHERE id > 50 ORDER BY id",
	'sequential scan' => "$low SELECT id, v FROM t",
	'bitmap heap scan' => plans_only() . "$low $bitmap SELECT id, v FROM t WHERE id > 50",
	'filter of a bitmap heap scan' => plans_only() . "$low $bitmap SELECT count(*) FROM t WHERE id > 50 AND v LIKE '%x%'",
	'filter' => "$low SELECT count(*) FROM t WHERE v LIKE '%x%'",
	'TID range scan' => "$low SELECT id, v FROM t WHERE ctid > '(0,5)'",
	'TID scan' => "$low SELECT id, v FROM t WHERE ctid = ANY (ARRAY(SELECT ctid FROM t WHERE id > 50))",
	'probe side of a hash join' => "$low SET enable_nestloop = off; SET enable_mergejoin = off; SELECT t.id, v, x FROM t JOIN s USING (id)",
	'outer side of a nested loop' => "$low SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; SELECT t.id, v, x FROM t JOIN s USING (id)",
	'outer side of a merge join' => "$low SET enable_hashjoin = off; SET enable_nestloop = off; SELECT t.id, v, x FROM t JOIN s USING (id)",
	'sort' => "$low SELECT id, v FROM t ORDER BY w",
	'sort with a limit' => "$low SELECT id, v FROM t ORDER BY w DESC LIMIT 2000",
	'COPY' => "$low COPY t TO '$file'");

for my $name (sort keys %reads)
{
	my ($issued, $used, $wasted) = figures_of('', $reads{$name});

	cmp_ok($issued, '>', 1000, "$name: blocks are issued");
	cmp_ok($wasted, '<=', 1, "$name: and none in vain");
	is($issued, $used + $wasted, "$name: what was issued is accounted for");
}
my $explained = $node->safe_psql('postgres', "$low " . ($node->pg_version >= 18 ? 'EXPLAIN (ANALYZE) SELECT md5(v) FROM t' :
	q(SELECT pg_lookahead_explain('SELECT md5(v) FROM t'))));
like($explained, $node->pg_version >= 18 ? qr/^ +Toast Prefetch: avg=.*\n +Toast Look-Ahead Blocks: foreseen=\d+ issued=/m :
	qr/^Look-Ahead of toast on t\n  Prefetch: avg=.*\n  Look-Ahead Blocks: foreseen=\d+ issued=/m, 'EXPLAIN (ANALYZE)');

my %none = (
	'other columns' => "$low SELECT id, w FROM t",
	'other columns, by a bitmap' => plans_only() . "$low $bitmap SELECT id, w FROM t WHERE id > 50",
	'other columns, by their addresses' => "$low SELECT id, w FROM t WHERE ctid = ANY (ARRAY(SELECT ctid FROM t))",
	'other columns, by a range of addresses' => "$low SELECT id, w FROM t WHERE ctid > '(0,5)'",
	'other columns of a join' => "$low SELECT t.id, w, x FROM t JOIN s USING (id)",
	'other columns, by an index' => plans_only() . "$low SELECT id, w FROM t WHERE id > 50",
	'COPY of other columns' => "$low COPY t (id, w) TO '$file'",
	'lengths' => "$low SELECT octet_length(v) FROM t",
	'sort, other columns' => "$low SELECT id, w FROM t ORDER BY v IS NULL, w",
	'EXPLAIN' => "$low EXPLAIN (ANALYZE) SELECT v FROM t",
	'settings' => "$low SET pg_lookahead.enable_toast = off; SELECT v FROM t");
for my $name (sort keys %none)
{
	is(join('|', figures_of('', $none{$name})), '0|0|0|0|0', "$name: nothing is read ahead");
	is(join('|', figures_of('SET pg_lookahead.force = on;', $none{$name})), '0|0|0|0|0', "$name: nor if it is forced");
}

# few of the values are fetched
my @f = figures_of('', "$low SELECT CASE WHEN id < 500 OR id % 20 = 0 THEN md5(v) END FROM t");
cmp_ok($f[3], '<', 2500, 'values that are not fetched end it');
@f = figures_of('', "$low SELECT v FROM t WHERE ctid = ANY (ARRAY(SELECT ctid FROM t)) AND id % 10 = 0");
cmp_ok($f[3], '<', 2500, 'a filter of a TID scan ends it');

# Reads that are no waits, as of values in the order of their rows, which the kernel reads ahead.  To
# look at a row is to visit half a dozen blocks once more.
sub hits
{
	my ($settings) = @_;
	my $plan = $node->safe_psql('postgres', "$settings SET pg_lookahead.min_read_time = '1s'; EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT md5(v) FROM t WHERE id >= 0");

	return $plan =~ /"Shared Hit Blocks": (\d+)/ ? $1 : die $plan;
}

for ([ 'sequential scan', 'SET enable_indexscan = off; SET enable_bitmapscan = off;' ], [ 'index scan', plans_only() ], [ 'bitmap heap scan', plans_only() . $bitmap ])
{
	my ($name, $settings) = @$_;
	my $more = hits($settings) - hits("$settings SET pg_lookahead.enable_toast = off;");

	cmp_ok($more, '<', 500, "$name: few rows are looked at where nothing is waited for");
}

# not all rows are taken: at most as many are known ahead as were taken, of two blocks each
for my $n (20, 300)
{
	@f = figures_of('', "$low SELECT count(*) FROM (SELECT md5(v) FROM t LIMIT $n) x");
	cmp_ok($f[0], '<=', 4 * $n + 16, "LIMIT $n: blocks behind it");
}

# ---- 2. standby -----------------------------------------------------------------------------

$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
my $sum = 'SELECT count(*), md5(string_agg(md5(v), NULL ORDER BY id)) FROM t';
my $expected = $node->safe_psql('postgres', stock() . $sum);
is($standby->safe_psql('postgres', "$_ $sum"), $expected, 'standby') for stock(), forced(), "$low";
cmp_ok($standby->safe_psql('postgres', q(SELECT scans_activated FROM pg_stat_lookahead WHERE kind = 'toast')), '>', 0, 'standby: looked ahead');
$standby->stop;

# ---- 3. damage ---------------------------------------------------------------------------

# The same with look-ahead off and on; $expected is a pattern for both.
sub same
{
	my ($sql, $expected, $name, $begin) = @_;
	my %text = transcripts_of($node, \%modes, $sql, $begin);

	like($text{off}, $expected, "$name: off");
	is($text{$_}, $text{off}, "$name: $_") for @ahead;
	return;
}

# The block of a row's first chunk, and the leaf page of its entry in the toast index.
sub places_of
{
	my ($table, $id) = @_;
	my ($toast, $index) = split /\|/, $node->safe_psql('postgres',
		"SELECT c.reltoastrelid::regclass, i.indexrelid::regclass FROM pg_class c JOIN pg_index i ON i.indrelid = c.reltoastrelid WHERE c.oid = '$table'::regclass");
	# the value's number is in the last but eight bytes of its pointer
	my $block = $node->safe_psql('postgres', "SELECT (ctid::text::point)[0] FROM $toast WHERE chunk_seq = 0 AND chunk_data = convert_to(left(repeat(md5('$id'), 150), 1996), 'UTF8')");
	my $leaf = $node->safe_psql(
		'postgres', qq(
		SELECT b FROM generate_series(1, pg_relation_size('$index') / $block_size - 1) b,
			LATERAL (SELECT type FROM bt_page_stats('$index', b::int)) s,
			LATERAL (SELECT * FROM bt_page_items('$index', b::int)) p
		WHERE type = 'l' AND (p.ctid::text::point)[0] = $block LIMIT 1));
	my $root = $node->safe_psql('postgres', "SELECT root FROM bt_metap('$index')");

	return ($toast, $index, $block, $leaf, $root);
}

create_walk($node);
my %damage = (
	heap => sub { my ($toast, $index, $block) = @_; damage($toast, $block) },
	heap_cut => sub { my ($toast, $index, $block) = @_; truncate $toast, $block * $block_size or die $! },
	heap_zero => sub { my ($toast, $index, $block) = @_; overwrite($toast, $block * $block_size, "\0" x $block_size) },
	leaf => sub { my ($toast, $index, $block, $leaf) = @_; damage($index, $leaf) },
	leaf_zero => sub { my ($toast, $index, $block, $leaf) = @_; overwrite($index, $leaf * $block_size, "\0" x $block_size) },
	root => sub { my ($toast, $index, $block, $leaf, $root) = @_; damage($index, $root) },
	root_zero => sub { my ($toast, $index, $block, $leaf, $root) = @_; overwrite($index, $root * $block_size, "\0" x $block_size) },
	meta => sub { my ($toast, $index) = @_; damage($index, 0); overwrite($index, 0, "\0" x $block_size) });
my %places;
for my $name (sort keys %damage)
{
	make_table("d_$name", $rows);
	my ($toast, $index, @blocks) = places_of("d_$name", $bad);
	$places{$name} = [ path_of($node, $toast), path_of($node, $index), @blocks ];
}
$node->stop;
$damage{$_}->(@{ $places{$_} }) for sort keys %damage;
$node->start;

for my $name (sort keys %damage)
{
	my $error = qr/(?:invalid page|could not read|unexpected zero page|missing chunk|is not a btree|unexpected chunk)/;
	my $scan = "SELECT id, md5(v) FROM d_$name ORDER BY id";
	my $table = "SELECT id, md5(v) FROM d_$name";

	same(walk($scan), qr/^\d+ rows, \w+: .*$error/, "$name, index scan");
	same('SET LOCAL enable_bitmapscan = on; SET LOCAL enable_indexscan = off; ' . walk("$table WHERE id >= 0"),
		qr/^\d+ rows, \w+: .*$error/, "$name, bitmap heap scan");
	same("$seq " . walk($table), qr/^\d+ rows, \w+: .*$error/, "$name, sequential scan");
	same("$seq SELECT id, left(v, 20) FROM d_$name", qr/ERROR: .*$error/, "$name, rows that are sent");
	same("$seq SELECT id, left(w, 20), v FROM d_$name ORDER BY w DESC LIMIT 500", qr/ERROR: .*$error/, "$name, rows of a sort");
	same("$seq SELECT id, left(w, 20), v FROM d_$name WHERE ctid >= '(0,1)'", qr/ERROR: .*$error/, "$name, TID range scan");
	same("SELECT id, left(v, 20) FROM d_$name WHERE ctid = ANY (ARRAY(SELECT ctid FROM d_$name))", qr/ERROR: .*$error/, "$name, TID scan");
	same("COPY d_$name TO STDOUT", qr/ERROR: .*$error/, "$name, COPY");
	same("$seq SELECT count(*) FROM d_$name WHERE v LIKE '%xyz%'", qr/ERROR: .*$error/, "$name, filter");
	same("ALTER TABLE d_$name ALTER w TYPE varchar(100)", qr/ERROR: .*$error/, "$name, ALTER TABLE");
	same("ALTER TABLE d_$name ALTER v TYPE int USING 1", qr/^$/, "$name, ALTER TABLE that fetches no values");
	same("VACUUM FULL d_$name", qr/ERROR: .*$error/, "$name, VACUUM FULL", 'SELECT');
	next if $name =~ m{root|meta};

	# values on bad pages are not asked for: they are of rows around the bad one
	my ($first) = $node->safe_psql('postgres', stock() . walk($scan)) =~ /^(\d+) rows/;
	my ($last) = $node->safe_psql('postgres', stock() . walk("$scan DESC")) =~ /^(\d+) rows/;
	$last = $rows - 1 - $last;
	same(walk("SELECT id, CASE WHEN id < $first OR id > $last THEN md5(v) END FROM d_$name ORDER BY id"),
		qr/^$rows rows\n/, "$name, bad values are not fetched ($first to $last)");
	same(walk("$scan LIMIT $first"), qr/^$first rows\n/, "$name, LIMIT before the first one");
	nothing_pinned($node, "$name");
}

# in a session that goes on in the same transaction
my $session = open_session($node, forced());
my $pid = pid_of($session);
ask($session, 'BEGIN; DECLARE other CURSOR FOR SELECT id, length(v) FROM t ORDER BY id; MOVE 100 FROM other');
like(ask($session, walk('SELECT id, md5(v) FROM d_leaf ORDER BY id')), qr/^\d+ rows, XX/, 'in a transaction') for 1 .. 3;
is(ask($session, 'FETCH 2 FROM other'), "100|4800\n101|4800", 'the other cursor goes on');
ask($session, 'COMMIT');
nothing_pinned($node, 'after the transaction');

# ---- 4. early ends -------------------------------------------------------------------------

my $locker = open_session($node, '');
ask($locker, 'SELECT pg_advisory_lock(1)');
my $waiting = 'SELECT max(md5(v)), max(CASE WHEN id = 1500 THEN pg_advisory_xact_lock(1)::text END) FROM t';
for my $kind ('index scan', 'bitmap heap scan', 'sequential scan')
{
	ask($session, $bitmap) if $kind eq 'bitmap heap scan';
	ask($session, 'SET enable_bitmapscan = off; SET enable_seqscan = on; SET enable_indexscan = off') if $kind eq 'sequential scan';
	check_cancel($node, $session, $pid, $kind, "$waiting WHERE id >= 0", timeout => '300ms', cursor => 'CURSOR');
	ask($session, 'ROLLBACK');
	nothing_pinned($node, "$kind: rolled back");
}
start_waiting($node, $session, $pid, "COPY ($waiting) TO '$file'");
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
like(ask($session, 'SELECT 1'), qr/canceling statement/, 'COPY: canceled');
nothing_pinned($node, 'COPY: canceled');
ask($session, 'SELECT md5(v) FROM t LIMIT 300');
ask($session, 'BEGIN; DECLARE c CURSOR FOR SELECT md5(v) FROM t; MOVE 700 FROM c; CLOSE c; COMMIT');
ask($session, 'SELECT v FROM t ORDER BY w LIMIT 300');
ask($session, 'BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT v FROM t ORDER BY w');
ask($session, 'FETCH 20 FROM c') for 1 .. 10;
ask($session, 'CLOSE c; COMMIT');
ask($session, 'BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT md5(v) FROM t; MOVE 700 FROM c; COMMIT; FETCH c; CLOSE c');
nothing_pinned($node, 'closed cursors');

# ---- 5. tables that are rewritten ---------------------------------------------------------------

# As made, no value lies beside that of the next row; afterwards all do, and are not waited for.
my %rewrites = (
	'VACUUM FULL' => 'VACUUM FULL r',
	'ALTER TABLE' => 'ALTER TABLE r ALTER id TYPE bigint, ADD COLUMN x float8 DEFAULT random()',
	'ALTER TABLE, persistence' => 'ALTER TABLE r SET UNLOGGED');
if ($node->pg_version >= 19)
{
	$rewrites{'REPACK'} = 'REPACK r';
	$rewrites{'REPACK, concurrently'} = 'REPACK (CONCURRENTLY) r';
}

for my $name (sort keys %rewrites)
{
	make_table('r', 2000);
	$node->safe_psql('postgres', 'ALTER TABLE r ALTER id SET NOT NULL, REPLICA IDENTITY USING INDEX r_id') if $name =~ /concurrently/;
	my $before = $node->safe_psql('postgres', 'SELECT md5(string_agg(md5(v), NULL ORDER BY id)) FROM r');
	my ($issued, $used, $wasted, $foreseen) = figures_of('', "$low $rewrites{$name}");

	cmp_ok($issued, '>', 1000, "$name: blocks are issued");
	cmp_ok($foreseen, '>', 1900, "$name: for most of the rows");
	cmp_ok($wasted, '<=', 1, "$name: and none in vain");
	is($node->safe_psql('postgres', 'SELECT md5(string_agg(md5(v), NULL ORDER BY id)) FROM r'), $before, "$name: the values are the same");
	is_sound('r', $name);
	$node->safe_psql('postgres', 'DROP TABLE r');
}

sub is_sound
{
	my ($table, $name) = @_;
	my $bad = $node->safe_psql(
		'postgres', qq(
		SELECT * FROM verify_heapam('$table', check_toast => true);
		SELECT bt_index_parent_check(indexrelid, true) FROM pg_index
			WHERE indrelid = '$table'::regclass OR indrelid = (SELECT reltoastrelid FROM pg_class WHERE oid = '$table'::regclass)));

	$bad =~ s/\n//g;
	return is($bad, '', "$name: the table is sound");
}

# dead rows, and rows that only an older snapshot sees
make_table('r', 2000);
$expected = $node->safe_psql('postgres', 'SELECT count(*), md5(string_agg(md5(v), NULL ORDER BY id)) FROM r');
ask($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$node->safe_psql('postgres', $_)
  for 'UPDATE r SET v = v || id WHERE id % 3 = 0', 'DELETE FROM r WHERE id % 7 = 0',
  'BEGIN; UPDATE r SET v = id; ROLLBACK';
my $now = $node->safe_psql('postgres', 'SELECT count(*), md5(string_agg(md5(v), NULL ORDER BY id)) FROM r');
for my $settings (forced(), $low)
{
	$node->safe_psql('postgres', "$settings VACUUM FULL r");
	is(ask($session, 'SELECT count(*), md5(string_agg(md5(v), NULL ORDER BY id)) FROM r; SELECT'), $expected, 'an older snapshot');
	ask($session, 'COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	is($node->safe_psql('postgres', 'SELECT count(*), md5(string_agg(md5(v), NULL ORDER BY id)) FROM r'), $now, 'a newer one');
	$expected = $now;
	is_sound('r', 'dead rows');
}
ask($session, 'COMMIT');

# canceled in the middle
my $altering = 'ALTER TABLE r ALTER w TYPE varchar USING concat(w, CASE WHEN id = 1000 THEN pg_advisory_xact_lock(1)::text END)';
ask($session, forced());
start_waiting($node, $session, $pid, $altering);
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
like(ask($session, 'SELECT 1'), qr/canceling statement/, 'ALTER TABLE: canceled');
nothing_pinned($node, 'ALTER TABLE: canceled');
ask($session, 'BEGIN; SAVEPOINT a');
start_waiting($node, $session, $pid, $altering);
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
like(ask($session, 'ROLLBACK TO a'), qr/canceling statement/, 'ALTER TABLE: canceled behind a savepoint');
is(ask($session, 'SELECT count(*), md5(string_agg(md5(v), NULL ORDER BY id)) FROM r'), $now, 'the transaction goes on');
ask($session, 'CREATE INDEX ON r (w); COMMIT');
for my $ms (1 .. 30)
{
	ask($session, "SET statement_timeout = $ms; VACUUM FULL r");
	reset_timeout($session);
}
nothing_pinned($node, 'VACUUM FULL: timeouts');
is(ask($session, 'SELECT count(*), md5(string_agg(md5(v), NULL ORDER BY id)) FROM r'), $now, 'VACUUM FULL: timeouts');
is_sound('r', 'VACUUM FULL: timeouts');
$_->quit for $session, $locker;

# ---- 6. concurrent changes ----------------------------------------------------------------------

$node->safe_psql('postgres', q(
	CREATE TABLE c (id int PRIMARY KEY, n int, v text);
	ALTER TABLE c ALTER v SET STORAGE EXTERNAL;
	INSERT INTO c SELECT i, 0, repeat(md5(i || '.0'), 100) FROM generate_series(1, 1000) i;
	CREATE FUNCTION agrees() RETURNS void LANGUAGE plpgsql AS $$
	DECLARE wrong int; total int;
	BEGIN
		SELECT count(*), count(*) FILTER (WHERE v <> repeat(md5(id || '.' || n), 100)) INTO total, wrong FROM c WHERE id > 0;
		IF total <> 1000 OR wrong > 0 THEN
			RAISE EXCEPTION '% rows, % wrong', total, wrong;
		END IF;
	END $$));
my %files = (
	read_seq => "SELECT agrees();",
	read_bitmap => "SET enable_seqscan = off;\nSET enable_indexscan = off;\nSELECT agrees();",
	read_index => "SET enable_seqscan = off;\nSET enable_bitmapscan = off;\nSELECT agrees();",
	copy => "COPY c TO '$file';",
	update => "\\set a random(1, 1000)\nUPDATE c SET n = n + 1, v = repeat(md5(id || '.' || n + 1), 100) WHERE id IN (SELECT id FROM c WHERE id BETWEEN :a AND :a + 30 FOR UPDATE SKIP LOCKED);",
	vacuum => "VACUUM c;\n\\sleep 50 ms\n",
	# (REINDEX CONCURRENTLY of a toast table can make stock fail: "no valid index found")
	full => "VACUUM FULL c;\n\\sleep 300 ms\nREINDEX TABLE c;\n\\sleep 200 ms\n");
$files{full} = "REPACK (CONCURRENTLY) c;\n\\sleep 300 ms\n$files{full}" if $node->pg_version >= 19;
my @runs;
my $i = 0;
for my $name (sort keys %files)
{
	my $script = $node->basedir . "/$name.sql";
	my $options = $i++ % 2 ? '-c pg_lookahead.force=on' : '-c pg_lookahead.miss_threshold=0 -c pg_lookahead.min_read_time=0';

	append_to_file($script, $files{$name});
	push @runs, start_pgbench($node, 15, $name, $options, 1, '-f', $script);
}
check_pgbench($_) for @runs;
$node->safe_psql('postgres', 'SELECT agrees()');
nothing_pinned($node, 'concurrent changes');
check_log($node);
$node->stop;

done_testing();
