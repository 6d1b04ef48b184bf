# 025_adjust_costs.pl - plans by what reads cost on this storage.
#
# What the server knows of its storage is written into the file that it reads at its start: a volume
# whose reads take 1 ms, 16,000 a second at most, and 50 us in order.  A tuple takes 0.75 us, and with its
# condition and its count it costs 0.015, so the planner's unit is 50 us: 20 for a read alone, 1.25 at
# depth, and 1 in order.  With pg_lookahead.force nothing is taken to be in memory, so costs do not depend
# on what is.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $default_tablespace = 1663;
my @reads = (1000, 500, 250, 125, (62.5) x 5, 50, 50);
my @volume = (@reads, 0.75);

# ---- the file ----------------------------------------------------------------------

sub crc32c
{
	my ($bytes) = @_;
	my $crc = 0xffffffff;
	my @table = map {
		my $c = $_;
		$c = $c & 1 ? ($c >> 1) ^ 0x82f63b78 : $c >> 1 for 1 .. 8;
		$c;
	} 0 .. 255;

	$crc = $table[($crc ^ $_) & 0xff] ^ ($crc >> 8) for unpack('C*', $bytes);
	return $crc ^ 0xffffffff;
}

# Have the server know these tablespaces: pairs of OID and times.
sub calibrate
{
	my ($node, %storage) = @_;
	my $file = $node->data_dir . '/pg_stat/pg_lookahead_storage.stat';
	my $entries = join '', map { pack('LLd12', $_, 0, @{ $storage{$_} }) } sort keys %storage;
	my ($contents, $fh);

	$node->stop;
	open $fh, '+>:raw', $file or die "$file: $!";
	$contents = pack('LLQ', 0x6c615374, 2, (stat $fh)[1]) . $entries;
	$contents .= "\0" x (16 + 64 * 104 - length $contents);
	print $fh $contents, pack('LL', crc32c($contents), 0);
	close $fh or die "$file: $!";
	$node->start;
	unlike(slurp_file($node->logfile), qr/removing file .*pg_lookahead_storage/, 'the file is right');
	return;
}

# ---- plans -------------------------------------------------------------------------

# Shared buffers have all of a table, so that nothing is read again, until that is looked at.  ANALYZE
# looks at all rows, and not at a sample, so that estimates are the same each time.
my $node = new_server('adjust', conf => "shared_buffers = 64MB\ndefault_statistics_target = 400\nallow_in_place_tablespaces = on\ncompute_query_id = off\n");
my $says = $node->pg_version >= 18;

# else the depth of a bitmap scan is the number of the server's workers
$node->append_conf('postgresql.conf', 'io_method = sync') if $says;
my $line = qr/\n?Look-Ahead Costs: adjusted/;

my $off = 'SET pg_lookahead.adjust_costs = off; ';
my $on = 'SET pg_lookahead.adjust_costs = on; ';
my $forced = "$on SET pg_lookahead.force = on; ";

sub plan_of
{
	my ($settings, $query) = @_;

	return $node->safe_psql('postgres', "$settings; EXPLAIN $query");
}

# Total costs of the plan's first node.
sub cost
{
	my ($settings, $query) = @_;

	return plan_of($settings, $query) =~ /cost=\d+\.\d+\.\.(\d+\.\d+)/ ? $1 : undef;
}

# What a sequential scan is to cost, by its cost in stock: reads and work go on at the same time.
sub sequential
{
	my ($stock, $blocks, $price) = @_;
	my $work = $stock - $blocks;
	my $reads = $blocks * $price;

	return $reads + $work - 0.75 * ($work < $reads ? $work : $reads);
}

sub is_about
{
	my ($is, $expected, $tolerance, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(abs($is - $expected) <= $tolerance, "$name: $is, expected $expected");
	return;
}

sub stays
{
	my ($settings, $query, $name) = @_;

	is(plan_of("$forced $settings", $query), plan_of("$off $settings", $query), $name);
	return;
}

sub has_changed
{
	my ($settings, $query, $name) = @_;
	my $plan = plan_of("$forced $settings", $query);

	if ($says)
	{
		like($plan, $line, "$name: EXPLAIN says so");
	}
	isnt($plan =~ s/$line//r, plan_of("$off $settings", $query), $name);
	return;
}

$node->safe_psql(
	'postgres', q(
	CREATE TABLE t (id int PRIMARY KEY, a int, b int, w text);
	INSERT INTO t SELECT i, (hashint4(i) & 2147483647) % 100000, i / 100, repeat('w', 200)
		FROM generate_series(1, 100000) i;
	CREATE INDEX t_a ON t (a);
	CREATE INDEX t_b ON t USING hash (b);
	CREATE INDEX t_brin ON t USING brin (id);
	CREATE TABLE small (id int PRIMARY KEY, w text);
	INSERT INTO small SELECT i, repeat('w', 100) FROM generate_series(1, 1000) i;
	CREATE TABLE o (k int, w text);
	INSERT INTO o SELECT (hashint4(i + 7) & 2147483647) % 100000, 'o' FROM generate_series(1, 900) i;
	CREATE TABLE part (id int, k int) PARTITION BY RANGE (id);
	CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (20000);
	CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (20000) TO (40000);
	INSERT INTO part SELECT i, (hashint4(i) & 2147483647) % 40000 FROM generate_series(1, 39999) i;
	CREATE INDEX part_k ON part (k);
	CREATE FUNCTION slow(int) RETURNS bool LANGUAGE plpgsql STABLE PARALLEL SAFE COST 1000 AS 'BEGIN RETURN true; END';
	CREATE TABLESPACE own LOCATION '';
	CREATE TABLE priced (id int, a int, w text) TABLESPACE own;
	INSERT INTO priced SELECT id, a, w FROM t WHERE id <= 20000;
	CREATE INDEX priced_a ON priced (a) TABLESPACE own;
	VACUUM ANALYZE t, small, o, part, priced;
	CREATE TABLE fresh (id int PRIMARY KEY, w text) WITH (autovacuum_enabled = off);
	INSERT INTO fresh VALUES (1, 'one'), (2, 'two');
	CREATE TABLE empty (id int PRIMARY KEY, w text) WITH (autovacuum_enabled = off);));
my $own_tablespace = $node->safe_psql('postgres', "SELECT oid FROM pg_tablespace WHERE spcname = 'own'");

my %query = (
	one => 'SELECT * FROM t WHERE id = 7',
	thousand => 'SELECT * FROM t WHERE a BETWEEN 5000 AND 5999',
	small => 'SELECT * FROM small WHERE id BETWEEN 5 AND 7',
	sorted => 'SELECT * FROM t WHERE a < 1000 ORDER BY a',
	limit => 'SELECT * FROM t ORDER BY a LIMIT 10',
	ios => 'SELECT a FROM t WHERE a BETWEEN 5000 AND 5999',
	or => 'SELECT * FROM t WHERE a BETWEEN 5000 AND 5100 OR id BETWEEN 5000 AND 5100',
	hash => 'SELECT * FROM t WHERE b = 7',
	join => 'SELECT * FROM o JOIN t ON t.a = o.k',
	partitions => 'SELECT * FROM part WHERE k BETWEEN 10 AND 200',
	sequential => 'SELECT * FROM o WHERE k > 5',
	tid => q(SELECT * FROM t WHERE ctid = '(1,1)' OR ctid = '(2,1)'),
	tids => q(SELECT * FROM t WHERE ctid > '(1500,0)'),
	priced => 'SELECT * FROM priced WHERE a BETWEEN 10 AND 2000');
my $serial = 'SET max_parallel_workers_per_gather = 0;';

stays('', $query{$_}, "not calibrated: $_") for sort keys %query;

# Storage whose reads cost what stock takes them for: nothing changes but that EXPLAIN says so, and what
# passes at the same time in sequential scans.  So what is taken from a path's cost is what the server has
# put into it.
my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0;
	SET min_parallel_table_scan_size = 0;';
my @stock = ((200) x 9, 50, 50, 0.75);
calibrate($node, $default_tablespace => \@stock, $own_tablespace => \@stock);
my $compared = 0;
for my $name (sort keys %query)
{
	# (where there may be workers, inner scans cost these more than stock supposes, since they share the storage)
	my $alone = $name eq 'join' ? $serial : '';

	for my $settings ('', $parallel, 'SET enable_seqscan = off;', 'SET enable_hashjoin = off; SET enable_mergejoin = off;',
		'SET effective_cache_size = 100;')
	{
		my $plan = plan_of("$off $settings $alone", $query{$name});

		next if $plan =~ /Seq Scan/;
		is(plan_of("$forced $settings $alone", $query{$name}) =~ s/$line//r, $plan, "stock's prices: $name, $settings");
		$compared++;
	}
}

cmp_ok($compared, '>', 40, 'these are many plans');

calibrate($node, $default_tablespace => \@volume, $own_tablespace => \@volume);

my $blocks = $node->safe_psql('postgres', q(SELECT pg_relation_size('t') / 8192));
has_changed($serial, $query{$_}, $_) for sort keys %query;
stays('SET pg_lookahead.enable = off;', $query{$_}, "look-ahead off: $_") for sort keys %query;

# ---- what changes, and how ------------------------------------------------------------

my $only_index = "$serial SET enable_seqscan = off; SET enable_bitmapscan = off;";
my $only_bitmap = "$serial SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off;";

# a leaf page and a row's block, 20 each instead of 4
my $more = cost("$forced $only_index", $query{one}) - cost("$off $only_index", $query{one});
ok(abs($more - 32) < 1, "a look-up waits twice: $more");

cmp_ok(cost("$forced $only_index", $query{thousand}), '<', 0.6 * cost("$off $only_index", $query{thousand}),
	'a thousand rows cost less');
cmp_ok(cost("$forced $only_bitmap", $query{thousand}), '<', cost("$off $only_bitmap", $query{thousand}),
	'by a bitmap, too');
cmp_ok(cost("$forced SET effective_io_concurrency = 1; $only_bitmap", $query{thousand}), '>',
	2 * cost("$off $only_bitmap", $query{thousand}), 'but not where it keeps one read in flight')
  if $says;
is(cost("$forced SET effective_io_concurrency = 1; $only_index", $query{thousand}), cost("$forced $only_index", $query{thousand}),
	'which is nothing to an index scan')
  if $says;
cmp_ok(cost("$forced SET pg_lookahead.enable_index_scan = off; $only_index", $query{thousand}), '>',
	2 * cost("$off $only_index", $query{thousand}), 'without look-ahead each row is a wait');
cmp_ok(cost("$forced SET pg_lookahead.max_distance = 2; $only_index", $query{thousand}), '>',
	2 * cost("$forced $only_index", $query{thousand}), 'at a distance of two, so is every other one');
cmp_ok(cost("$forced $serial", $query{limit}), '<', 20 * 14, 'ten rows do not cost more than ten waits and a few');
cmp_ok(cost("$forced $serial", $query{limit}), '>', cost("$off $serial", $query{limit}),
	'but more than ten reads at depth');

my $nestloop = "$serial SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off;";
cmp_ok(cost("$forced $nestloop", $query{join}), '<', 0.6 * cost("$off $nestloop", $query{join}),
	'the rows of an inner scan are read at depth');
cmp_ok(cost("$forced SET pg_lookahead.enable_nestloop = off; $nestloop", $query{join}), '>',
	2 * cost("$off $nestloop", $query{join}), 'but not without look-ahead of nested loops');

like(plan_of("$off $serial", $query{small}), qr/Index Scan/, 'three rows by index');
like(plan_of("$forced $serial", $query{small}), qr/Seq Scan/, 'four waits cost more than a small table');
like(plan_of("$off $serial", $query{join}), qr/Hash Join/, 'a join reads all');
like(plan_of("$forced $serial", $query{join}), qr/Nested Loop/, 'or what it needs at depth');
my $only_sequential = "$serial SET enable_indexscan = off; SET enable_bitmapscan = off;";
is_about(cost("$forced $only_sequential", $query{thousand}), sequential(cost("$off $only_sequential", $query{thousand}), $blocks, 1),
	0.02, 'a sequential scan reads while it works');

# Workers share the storage, which is at its limit with one process: an inner scan costs each of them as if
# its share of the rows took as long as all of them.  A serial join next to it costs what it did.
my $in_workers = "$parallel $nestloop SET max_parallel_workers_per_gather = 2;";
like(plan_of("$off $in_workers", $query{join}), qr/Gather.*Nested Loop.*Parallel Seq Scan on o/s, 'a nested loop in workers');
my $alone = cost("$forced $nestloop", $query{join}) - cost("$forced $nestloop", 'SELECT * FROM o');
my $shared = cost("$forced $in_workers", $query{join});
cmp_ok($shared, '>', 0.9 * $alone, 'inner scans in workers cost what the storage takes for all of them')
  if $shared;
is(cost("$forced $parallel $nestloop", $query{join}), cost("$forced $nestloop", $query{join}), 'a serial join costs what it did');

# ---- the unit --------------------------------------------------------------------------

# A tuple that takes twice as long makes reads half as expensive, those of all paths.
my $all = 'SELECT * FROM t WHERE w IS NULL';
my $two_workers = "$parallel SET max_parallel_workers_per_gather = 2; SET enable_indexscan = off; SET enable_bitmapscan = off;";
my %before = map { $_ => cost("$forced $serial", $query{$_}) } qw(tid tids);
my $waits = cost("$forced $only_index", $query{one});
calibrate($node, $default_tablespace => [ @reads, 1.5 ], $own_tablespace => \@volume);
is_about(cost("$forced $serial", $all), sequential(cost("$off $serial", $all), $blocks, 0.5), 0.02, 'a sequential scan');
like(plan_of("$forced $two_workers", $all), qr/Gather.*Parallel Seq Scan/s, 'one in workers');
is_about(cost("$forced $two_workers", $all), sequential(cost("$off $two_workers", $all), $blocks, 0.5), 0.02, '... whose work is less');
is_about(cost("$forced $serial", 'SELECT * FROM o'),
	sequential(cost("$off $serial", 'SELECT * FROM o'), $node->safe_psql('postgres', q(SELECT pg_relation_size('o') / 8192)), 0.5),
	0.02, 'a table without indexes');
is_about($before{tid} - cost("$forced $serial", $query{tid}), 20, 0.02, 'blocks by TID, two waits of 20');
cmp_ok($before{tids} - cost("$forced $serial", $query{tids}), '>', $blocks / 8, 'a range of TIDs');
is_about($waits - cost("$forced $only_index", $query{one}), 20, 0.5, 'a look-up, two waits of 20');
is(cost("$forced $serial SET seq_page_cost = 3; SET random_page_cost = 9;", $query{$_}), cost("$forced $serial", $query{$_}),
	"prices of blocks are not the user's: $_")
  for sort keys %query;
my $twice = 'SET cpu_operator_cost = 0.01; SET cpu_tuple_cost = 0.01;';
is_about(cost("$forced $serial $twice", $all), sequential(cost("$off $serial $twice", $all), $blocks, 1), 0.02,
	'those of tuples are, and make the unit: twice the price, half the unit');

# ---- the order of an index ---------------------------------------------------------------

# Values that follow the order of the table by and large: each row of a small range has a block of its own.
calibrate($node, $default_tablespace => \@volume, $own_tablespace => \@volume);
$node->safe_psql(
	'postgres', q(
	CREATE TABLE near (id int, k int, w text) WITH (autovacuum_enabled = off);
	INSERT INTO near SELECT i, (i + (hashint4(i) & 2147483647) % 5000) / 100, repeat('w', 200) FROM generate_series(1, 100000) i;
	CREATE INDEX near_k ON near (k);
	CREATE INDEX near_id ON near (id);
	VACUUM ANALYZE near;));
my %range = (k => 'SELECT * FROM near WHERE k = 500', id => 'SELECT * FROM near WHERE id BETWEEN 50000 AND 50099');
cmp_ok($node->safe_psql('postgres', q(SELECT correlation FROM pg_stats WHERE tablename = 'near' AND attname = 'k')), '>', 0.95,
	'the correlation is high');
cmp_ok(cost("$off $only_index", $range{k}), '<', 20, 'a hundred rows in order, supposes the planner');
cmp_ok(cost("$forced $only_index", $range{k}), '>', 100, '... which are not');
cmp_ok(cost("$forced $only_index", $range{id}), '<', 60, 'these are');
is_about(cost("$forced $only_bitmap", $range{k}), cost("$forced $only_bitmap", $range{id}), 60, 'it is nothing to a bitmap scan');
cmp_ok(cost("$forced $only_index", 'SELECT * FROM near WHERE k BETWEEN 100 AND 900'), '<', 2 * cost("$forced $only_sequential", 'SELECT * FROM near'),
	'many rows read each block about once');

# Pages that are damaged are not the planner's to report.
my $index = $node->data_dir . '/' . $node->safe_psql('postgres', q(CHECKPOINT; SELECT pg_relation_filepath('near_k')));
my $expected = plan_of("$forced $only_index", $range{id});
$node->stop;
my $pages = slurp_file($index);
open my $damaged, '+<:raw', $index or die "$index: $!";
seek $damaged, 8192, 0;
print $damaged 'x' x (length($pages) - 8192);
close $damaged or die "$index: $!";
$node->start;
my ($status, $stdout, $stderr) = $node->psql('postgres', "$forced $only_index EXPLAIN $range{k}");
is("$status $stderr", '0 ', 'no error and no warning of a damaged page');
cmp_ok(($stdout =~ /cost=\d+\.\d+\.\.(\d+\.\d+)/)[0], '<', 100, '... and the planner\'s own idea of the order');
is(plan_of("$forced $only_index", $range{id}), $expected, 'another index is as before');
$node->safe_psql('postgres', 'DROP TABLE near');

# a plan with workers is made and compared as before
calibrate($node, $default_tablespace => \@volume, $own_tablespace => \@volume);
$parallel .= 'SET enable_seqscan = off; SET enable_bitmapscan = off;';
my $slow = "$query{thousand} AND slow(b)";
like(plan_of("$forced $parallel", $slow), qr/Gather.*Parallel Index Scan/s, 'parallel index scans');
cmp_ok(cost("$forced $parallel", $slow), '<', cost("$off $parallel", $slow), 'and they cost less');

# ---- what is read again ----------------------------------------------------------------

# A correlated subquery is executed for each row around it, and its executions share blocks.  What it costs
# more than the rows around it, for each of them:
sub per_execution
{
	my ($settings, $query, $outer, $rows) = @_;

	return (cost($settings, $query) - cost($settings, $outer)) / $rows;
}

my $lookup = '(SELECT count(w) FROM t WHERE t.a = o.k)';
my $ahead = $forced;
$forced .= 'SET pg_lookahead.enable_subplan = off;';
my $all_rows = per_execution("$forced $only_index", "SELECT $lookup FROM o", 'SELECT * FROM o', 900);
cmp_ok(per_execution("$ahead $only_index", "SELECT $lookup FROM o", 'SELECT * FROM o', 900), '<', $all_rows / 3,
	'look-ahead over executions hides their waits');
my $few = 'FROM o WHERE k < 1000';
my $few_rows = $node->safe_psql('postgres', "EXPLAIN SELECT * $few") =~ /rows=(\d+)/ ? $1 : 1;
my $few_each = per_execution("$forced $only_index", "SELECT $lookup $few", "SELECT * $few", $few_rows);
cmp_ok($few_rows, '<', 30, 'few rows around a subquery');
is_about($few_each, 60, 3, 'in few executions of a subquery, a leaf page and the blocks of two rows are waits');

# 1,800 rows are in 1,385 blocks
is_about($all_rows, 1385 / 900 * 20 + 5, 3, 'in many, most blocks of rows still are, but leaf pages have been read before');
is_about(per_execution("$forced $only_index", "SELECT $lookup, (SELECT max(k) FROM o) FROM o", 'SELECT (SELECT max(k) FROM o) FROM o', 900),
	$all_rows, 0.1, 'beside a subquery that depends on nothing');
is_about(per_execution("$forced $only_index", "SELECT * FROM o WHERE $lookup = 7", 'SELECT * FROM o', 900), $all_rows, 0.1,
	'so in a condition, which does not count for itself');
is_about(per_execution("$forced $only_index", "SELECT * FROM (SELECT * FROM o) o, LATERAL $lookup s", 'SELECT * FROM o', 900),
	$all_rows, 0.1, 'so below LATERAL');
cmp_ok(per_execution("$forced $only_bitmap", "SELECT $lookup FROM o", 'SELECT * FROM o', 900), '>', 20, 'a bitmap scan reads as much');
for my $query (
	'SELECT k, (SELECT count(*) FROM t WHERE t.id = max(o.k)) FROM o GROUP BY k',
	'SELECT (SELECT count(*) FROM t WHERE t.id = p.k) FROM part p',
	'SELECT (SELECT (SELECT count(w) FROM t u WHERE u.id = t.b) FROM t WHERE t.id = o.k) FROM o',
	'SELECT (SELECT (SELECT count(w) FROM t u WHERE u.id = o.k) FROM t WHERE t.id = 3) FROM o',
	'SELECT * FROM o LEFT JOIN small s ON s.id = o.k WHERE EXISTS (SELECT FROM t WHERE t.a = o.k AND t.b > s.id)',
	'SELECT (SELECT count(w) FROM t WHERE t.a = o.k) FROM o JOIN small s ON s.id = o.k AND o.k < 500',
	'SELECT * FROM (VALUES (1), (2)) v(k) WHERE k = (SELECT count(w) FROM t WHERE t.a = v.k)',
	'UPDATE o SET w = (SELECT max(w) FROM t WHERE t.a = o.k) WHERE k < 10')
{
	my $plan = plan_of("$forced $serial", $query);

	unlike($plan, qr/cost=[^)]*(?:-\d|nan)/i, "costs are numbers: $query");
	like($plan, $line, '... and adjusted') if $says;
}

$forced = $ahead;

# A block in order takes 2 ms here, and in memory what the server says: 40 and 1.
calibrate($node, $default_tablespace => [ @reads[0 .. 8], 2000, 50, 0.75 ]);
my $small = '(SELECT count(w) FROM small WHERE small.id > o.k)';
my $small_blocks = $node->safe_psql('postgres', q(SELECT pg_relation_size('small') / 8192));
is_about(per_execution("$off $only_sequential", "SELECT $small FROM o", 'SELECT * FROM o', 900) + $small_blocks * 39 / 900,
	per_execution("$forced $only_sequential", "SELECT $small FROM o", 'SELECT * FROM o', 900), 1, 'a small table is read once');
calibrate($node, $default_tablespace => \@volume, $own_tablespace => \@volume);

# What has left shared buffers is copied once more.  (The table has 3,000 blocks; in 2 MB there are 256.)
my @again = map { [ $_, cost("$forced $only_index", $_) ] } 'SELECT * FROM t WHERE a < 50000 ORDER BY a', $query{one}, "SELECT $lookup FROM o";
my $join_kept = cost("$forced $nestloop", $query{join});
my ($estimated) = plan_of("$forced $only_index", $again[0][0]) =~ /rows=(\d+)/;
$node->append_conf('postgresql.conf', 'shared_buffers = 2MB');
$node->restart;
is_about(cost("$forced $only_index", $again[0][0]) - $again[0][1], $estimated * (1 - 256 / $blocks) - $blocks, 0.15 * $blocks,
	'of some 50,000 rows, all whose block is not one of 256 that are kept');
is(cost("$forced $only_index", $again[1][0]), $again[1][1], 'a row is read once');
cmp_ok(cost("$forced $nestloop", $query{join}), '>', $join_kept, 'inner scans read again');
cmp_ok(cost("$forced $only_index", $again[2][0]), '>', $again[2][1], 'subqueries, too');

# ---- EXPLAIN -------------------------------------------------------------------------

SKIP:
{
	skip 'EXPLAIN cannot be extended', 6 unless $says;
	like(plan_of($forced, "SELECT 1"), qr/^Result.*\)$/, 'no line without a table');
	like(plan_of($forced, 'SELECT * FROM o'), $line, 'but without an index');
	like($node->safe_psql('postgres', "$forced EXPLAIN (FORMAT json) $query{one}"),
		qr/"Look-Ahead Costs": "adjusted"/, 'JSON');
	unlike($node->safe_psql('postgres', "$forced EXPLAIN (COSTS off) $query{one}"), $line, 'not without costs');
	unlike(plan_of("$forced SET pg_lookahead.explain = off;", $query{one}), $line, 'not without explain');
	like($node->safe_psql('postgres', "$forced SET plan_cache_mode = force_generic_plan;
			PREPARE p(int) AS SELECT * FROM t WHERE a = \$1; EXECUTE p(3); $off EXPLAIN EXECUTE p(3)"),
		$line, 'a cached plan keeps its costs, and says so');
}
my ($out, $err);
$node->psql('postgres', "$forced SET client_min_messages = debug1; $query{one}; $off $query{one}",
	stdout => \$out, stderr => \$err);
is(scalar(() = $err =~ /costs of reads were adjusted/g), 1, 'a message of level DEBUG1');

# ---- bad input ------------------------------------------------------------------------

for my $settings ('cpu_tuple_cost = 0; SET cpu_operator_cost = 0', 'cpu_tuple_cost = 1e305', 'cpu_tuple_cost = 1e-305; SET cpu_operator_cost = 0')
{
	stays("$serial SET $settings;", $query{$_}, "$settings: $_") for qw(one join);
}
for my $settings (
	'random_page_cost = 0', 'random_page_cost = 1e300', 'seq_page_cost = 0', 'seq_page_cost = 1e300',
	'cpu_tuple_cost = 1e100', 'effective_cache_size = 1', 'effective_io_concurrency = 0',
	'pg_lookahead.miss_threshold = 0', 'pg_lookahead.miss_threshold = 1000')
{
	for my $name (sort keys %query)
	{
		my $plan = plan_of("$forced SET $settings;", $query{$name});

		unlike($plan, qr/cost=[^)]*(?:-\d|nan)/i, "$settings: costs of $name are numbers");
	}
}

# the administrator has priced this tablespace
$node->safe_psql('postgres', 'ALTER TABLESPACE own SET (random_page_cost = 3)');
stays($serial, $query{priced}, "a tablespace's random_page_cost");
$node->safe_psql('postgres', 'ALTER TABLESPACE own SET (random_page_cost = 4)');
stays($serial, $query{priced}, "... that is the session's, too");
$node->safe_psql('postgres', 'ALTER TABLESPACE own RESET (random_page_cost); ALTER TABLESPACE own SET (seq_page_cost = 0.5)');
stays($serial, $query{priced}, "... and seq_page_cost");
$node->safe_psql('postgres', 'ALTER TABLESPACE own RESET (seq_page_cost)');
has_changed($serial, $query{priced}, 'not any more');
my $both = plan_of("$forced $serial", $query{priced}) . "\n" . plan_of("$off $serial", $query{priced});
is($node->safe_psql('postgres', "$forced $serial EXPLAIN $query{priced};
		ALTER TABLESPACE own SET (random_page_cost = 4); EXPLAIN $query{priced}"), $both, 'a session notices');
$node->safe_psql('postgres', 'ALTER TABLESPACE own RESET (random_page_cost)');
has_changed($serial, $query{one}, 'others are as before');

# ---- what it must not do ---------------------------------------------------------------

# Estimates call this function while paths are made, of the index's predicate.  It plans another
# statement, or fails.  Reads in order have another price than stock's, too.
calibrate($node, $default_tablespace => [ @reads, 1.5 ], $own_tablespace => [ @reads, 1.5 ]);
$node->safe_psql(
	'postgres', q(
	CREATE FUNCTION plan_now() RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		line text;
	BEGIN
		FOR line IN EXPLAIN SELECT * FROM t WHERE id = 7 LOOP
			RETURN line;
		END LOOP;
	END $$;
	CREATE FUNCTION fail_with_own_price() RETURNS void LANGUAGE plpgsql STABLE SET random_page_cost = 5 AS $$
	BEGIN
		RAISE 'it fails with its own price %', current_setting('random_page_cost');
	END $$;
	CREATE FUNCTION plan_with_own_price() RETURNS text LANGUAGE plpgsql STABLE SET random_page_cost = 5 AS $$
	BEGIN
		RETURN 'at ' || current_setting('random_page_cost') || ' it is ' || plan_now();
	END $$;
	CREATE FUNCTION probe(x int, y int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF current_setting('random_page_cost') <> '4' THEN
			CASE current_setting('probe.what', true)
				WHEN 'fail with own price' THEN
					PERFORM fail_with_own_price();
				WHEN 'catch' THEN
					BEGIN
						PERFORM fail_with_own_price();
					EXCEPTION WHEN raise_exception THEN
						RAISE NOTICE '%', SQLERRM;
					END;
				WHEN 'plan with own price' THEN
					RAISE NOTICE '%', plan_with_own_price();
				WHEN 'set' THEN
					PERFORM set_config('random_page_cost', '6', false);
				WHEN 'set the other' THEN
					PERFORM set_config('seq_page_cost', '7', false);
				ELSE NULL;
			END CASE;
		END IF;
		IF current_setting('probe.what', true) = 'fail' AND current_setting('random_page_cost') <> '4' THEN
			RAISE 'it fails';
		ELSIF current_setting('probe.what', true) = 'plan' THEN
			RAISE NOTICE 'at % it is %', current_setting('random_page_cost'), plan_now();
		END IF;
		RETURN x > y;
	END $$;
	CREATE OPERATOR <!> (LEFTARG = int, RIGHTARG = int, FUNCTION = probe, RESTRICT = scalargtsel);
	CREATE TABLE probed AS SELECT id, a, b FROM t WHERE id <= 1000;
	CREATE INDEX ON probed (a) WHERE b <!> 3;
	ANALYZE probed;));
my $probed = 'SELECT a FROM probed WHERE b <!> 3 AND a = 5;';

my $show = q(SELECT concat_ws(' ', current_setting('random_page_cost'), current_setting('seq_page_cost')));

$node->psql('postgres', "$forced SET probe.what = 'plan'; $probed $show", stdout => \$out, stderr => \$err);
my %nested = map { $_ => 1 } $err =~ /at \S+ it is (.*)/g;
like($err, qr/at (?!4 )\S+ it is/, 'a statement is planned while prices are others');
is(join('; ', keys %nested), (split /\n/, plan_of($forced, $query{one}))[0], 'its costs are its own');
like($out, qr/^4 1$/m, 'both settings are what they were');
$node->psql(
	'postgres', "$forced SET probe.what = 'fail'; $probed $show; RESET probe.what; EXPLAIN $query{one}",
	stdout => \$out, stderr => \$err, on_error_stop => 0);
like($err, qr/it fails/, 'an estimate fails while prices are others');
is($out, "4 1\n" . plan_of($forced, $query{one}), 'after that, nothing has changed');

# functions with a SET clause, which saves what it finds
my $own_price = (split /\n/, plan_of("$forced SET random_page_cost = 5", $query{one}))[0];
my $probed_plan = plan_of($forced, $probed);
for my $case (
	[ 'fail with own price', qr/it fails with its own price 5/, '4 1' ],
	[ 'catch', qr/it fails with its own price 5/, '4 1' ],
	[ 'plan with own price', qr/at 5 it is \Q$own_price\E\n/, '4 1' ],
	[ 'set', qr/^$/, '6 1' ],
	[ 'set the other', qr/^$/, '4 7' ])
{
	my ($what, $message, $then) = @$case;

	my $silent = "\n\\o /dev/null\nEXPLAIN $probed\n\\o\n";

	$node->psql(
		'postgres', "$forced SET probe.what = '$what'; BEGIN; SAVEPOINT s; $silent ROLLBACK TO s; $show; COMMIT;
			$silent $show; RESET probe.what; RESET random_page_cost; RESET seq_page_cost; EXPLAIN $probed",
		stdout => \$out, stderr => \$err, on_error_stop => 0);
	like($err, $message, "$what: so it does");
	is($out, "4 1\n$then\n$probed_plan", '... and both settings are what they are to be');
}

for my $name (sort keys %query)
{
	my $rows = "SELECT md5(string_agg(s::text, ',' ORDER BY s::text)) FROM ($query{$name}) s";

	next if $name eq 'limit';
	is($node->safe_psql('postgres', "$forced $rows"), $node->safe_psql('postgres', "$off $rows"), "same rows: $name");
}
is( $node->safe_psql(
		'postgres', "$forced BEGIN; DECLARE c CURSOR FOR SELECT * FROM t WHERE id = 5 FOR UPDATE; MOVE c;
		UPDATE t SET w = 'x' WHERE CURRENT OF c; SELECT w FROM t WHERE id = 5; ROLLBACK"),
	'x', 'WHERE CURRENT OF');

calibrate($node, $default_tablespace => \@volume, $own_tablespace => \@volume);

# ---- memory ------------------------------------------------------------------------

my @files = map { $node->data_dir . "/$_" } split /\n/,
  $node->safe_psql('postgres', "SELECT pg_relation_filepath(oid) FROM pg_class WHERE relname ~ '^(t|o)(_|\$)' AND relkind IN ('r', 'i')");

# With all of this in memory, are plans stock's?  Whoever else uses the machine may have it dropped at once.
sub is_stock_in_memory
{
	my ($name) = @_;
	my $same;

	for my $try (1 .. 10)
	{
		slurp_file($_) for @files;
		$same = !grep { plan_of("$on $serial", $query{$_}) ne plan_of("$off $serial", $query{$_}) } qw(one thousand join);
		last if $same;
	}
	ok($same, $name);
	return;
}

is_stock_in_memory('in memory, costs are stock\'s');

# the planner supposes 10 blocks of a table that has never been vacuumed
for my $table (qw(fresh empty))
{
	is($node->safe_psql('postgres', "SELECT count(*) FROM $table WHERE id > 0; $on EXPLAIN SELECT * FROM $table WHERE id = 1"),
		($table eq 'fresh' ? 2 : 0) . "\n" . plan_of($off, "SELECT * FROM $table WHERE id = 1"),
		"... of a table that is smaller than the planner supposes: $table");
}

SKIP:
{
	$node->safe_psql('postgres', 'CHECKPOINT');
	$node->restart;
	# (whoever has the files open keeps them there for a while)
	my $drop = sub {
		for my $file (@files)
		{
			system_log('dd', "of=$file", 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0', 'status=none') == 0 or return 0;
		}
		return plan_of("$on $serial", $query{thousand}) ne plan_of("$off $serial", $query{thousand});
	};
	skip 'the cache cannot be dropped', 1 unless wait_until($drop, 60);
	is_stock_in_memory('what is not in memory has other prices, until it is');
}

# ---- other extensions ------------------------------------------------------------------

# test/modules/company leaves only a sequential scan, or adds a custom scan at half the cost of the cheapest
SKIP:
{
	my $library = $ENV{LA_TEST_COMPANY};

	skip 'LA_TEST_COMPANY is not set', 1 unless defined $library;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_lookahead, $library'");
	$node->restart;
	stays("$serial SET la_company.paths = halve;", $query{$_}, "a library that was loaded later has changed paths: $_")
	  for sort keys %query;
	stays("$serial SET la_company.paths = custom;", $query{$_}, "... has added one: $_")
	  for grep { $_ ne 'join' } sort keys %query;
	like(plan_of("$forced $serial SET la_company.paths = custom;", $query{one}), qr/Custom Scan \(company\)/, 'and it is used');
	has_changed($serial, $query{$_}, "... has changed nothing: $_") for sort keys %query;
	is($node->safe_psql('postgres', "$forced SET la_company.paths = custom; SELECT sum(a) FROM t WHERE id < 100"),
		$node->safe_psql('postgres', 'SELECT sum(a) FROM t WHERE id < 100'), 'and it works');

	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$library, pg_lookahead'");
	$node->restart;
	is(plan_of("$forced $serial SET la_company.paths = halve;", $query{one}) =~ s/$line//r,
		plan_of("$off $serial SET la_company.paths = halve;", $query{one}), 'one that was loaded before decides');
	my ($custom, $child) = plan_of("$forced $serial SET la_company.paths = custom;", $query{one}) =~ /cost=\S+?\.\.(\S+)/g;
	ok(abs($custom - $child / 2) <= 0.01, 'and sees adjusted paths');
	cmp_ok($child, '>', 40, 'that is, adjusted');
}

check_log($node);
done_testing();
