# 021_lots.pl - blocks issued in the order of the table: same rows, each block issued once.
#
# Tables have one row on a block, and shared buffers are so small that everything is read.  A scan
# that issues lots has more blocks in flight than max_distance.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', conf => "max_connections = 10\n", extensions => ['pg_buffercache']);

# dense: every third block in order, then the others; mixed: one row in four is elsewhere.  Reads
# from the operating system's cache are fast, so the runs of dense are left to the kernel.
$node->safe_psql('postgres', q(
	CREATE TABLE t (id int, dense int, mixed int, scattered int, w text) WITH (fillfactor = 10);
	INSERT INTO t SELECT i, (i % 3) * 2000 + i / 3,
		CASE WHEN i % 4 = 0 THEN (i * 401) % 6000 / 4 * 4 ELSE i END, (i * 2801) % 6000, repeat('w', 800)
		FROM generate_series(0, 5999) i;
	CREATE INDEX t_dense ON t (dense);
	CREATE INDEX t_mixed ON t (mixed);
	CREATE INDEX t_scattered ON t (scattered);
	VACUUM (FREEZE, ANALYZE) t;
	CHECKPOINT;));

my $figures = q(SELECT blocks_issued, blocks_on_time + blocks_late + blocks_wasted, blocks_wasted, max_distance, scans_activated
	FROM pg_lookahead_last_statement() ORDER BY blocks_issued DESC LIMIT 1);

# Rows, and figures: issued, the sum of what became of these, wasted, most in flight, activated.
sub run
{
	my ($settings, $sql) = @_;
	my ($rows, $line) = split /=\n?/, $node->safe_psql('postgres', "$settings\n$sql;\n\\echo =\n$figures");

	return ($rows, split(/\|/, $line // ''));
}

my $rows = 'SELECT count(*), md5(string_agg(id::text, %s ORDER BY n)) FROM (SELECT id, row_number() OVER () n FROM (%s) r) s';

# The same rows in the same order?  Returns the figures.
sub compare
{
	my ($name, $sql, %p) = @_;
	my $statement = $p{bare} ? $sql : sprintf($rows, q(','), $sql);
	my ($stock) = run(stock(), $statement);
	my ($ours, @figures) = run(forced() . ($p{settings} // ''), $statement);

	is($ours, $stock, "$name: same rows");
	is($figures[0], $figures[1], "$name: what was issued is accounted for");
	return @figures;
}

for my $column (qw(dense mixed scattered))
{
	for my $order ('', ' DESC')
	{
		my @f = compare("$column$order", "SELECT * FROM t WHERE $column >= 0 ORDER BY $column$order");

		cmp_ok($f[3], '>', 128, "$column$order: lots were issued") if $column ne 'dense';
		is($f[2], 0, "$column$order: nothing was wasted");
	}
}

my @f = compare('LIMIT', 'SELECT * FROM t WHERE mixed >= 0 ORDER BY mixed LIMIT 2500');
is($f[2], 0, 'LIMIT: nothing beyond it');
cmp_ok($f[3], '>', 64, 'LIMIT: lots were issued');

compare('FOR UPDATE', 'SELECT * FROM t WHERE dense < 2000 ORDER BY dense FOR UPDATE');
compare('rescans', 'SELECT a.id FROM (VALUES (1), (2), (3)) v (x) CROSS JOIN LATERAL (SELECT id FROM t WHERE mixed >= v.x * 700 ORDER BY mixed) a');
compare('merge join, marks', 'SELECT a.id FROM t a JOIN t b ON a.dense = b.mixed ORDER BY a.dense',
	settings => 'SET enable_hashjoin = off; SET enable_nestloop = off;');

# ---- little memory, few reads, other isolation ------------------------------------------

my %settings = (
	'SERIALIZABLE' => 'SET default_transaction_isolation = serializable;',
	'scan_memory 64 kB' => "SET pg_lookahead.scan_memory = '64kB';",
	'backend_memory 0' => 'SET pg_lookahead.backend_memory = 0;',
	'two leaf pages' => 'SET pg_lookahead.max_leaf_pages = 2;',
	'max_distance 1024' => 'SET pg_lookahead.max_distance = 1024;',
	'max_distance 1' => 'SET pg_lookahead.max_distance = 1;');
for my $name (sort keys %settings)
{
	@f = compare($name, 'SELECT * FROM t WHERE mixed >= 0 ORDER BY mixed', settings => $settings{$name});
	is($f[2] // 0, 0, "$name: nothing was wasted") if $name ne 'backend_memory 0';
}
@f = compare('a small distance', 'SELECT * FROM t WHERE mixed >= 0 ORDER BY mixed', settings => 'SET pg_lookahead.max_distance = 8;');
cmp_ok($f[3], '<=', 8, 'a small distance is kept to');

# ---- cursors ----------------------------------------------------------------------------

for my $column (qw(dense mixed))
{
	my $cursor = "BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id FROM t WHERE $column >= 0 ORDER BY $column;"
	  . ' FETCH 3 FROM c; MOVE 1500 IN c; FETCH 3 FROM c; FETCH BACKWARD 700 FROM c; FETCH 3 FROM c; MOVE LAST IN c;'
	  . ' FETCH BACKWARD 3 FROM c; FETCH ABSOLUTE 2222 FROM c; FETCH 900 FROM c; CLOSE c; COMMIT';

	is($node->safe_psql('postgres', forced() . $cursor), $node->safe_psql('postgres', stock() . $cursor), "$column: cursor");
}

# A cursor that is left early, without force: at most half as many reads were wasted as used.
my $early = 'SET pg_lookahead.force = off; SET pg_lookahead.min_read_time = 0; SET pg_lookahead.miss_threshold = 0;';
(undef, @f) = run(forced() . $early, 'BEGIN; DECLARE c CURSOR FOR SELECT id FROM t WHERE mixed >= 0 ORDER BY mixed; MOVE 2000 IN c; CLOSE c; COMMIT');
cmp_ok($f[2], '<=', 1000, "left early: $f[2] reads wasted of $f[0]");

# ---- errors and cancels in the middle of a lot --------------------------------------------

my $session = open_session($node, forced());
my $memory;
for my $n (1 .. 20)
{
	my $answer = ask($session, 'SELECT sum(1 / (mixed - ' . (1000 + 97 * $n) . ')) FROM (SELECT * FROM t WHERE mixed >= 0 ORDER BY mixed) s');

	is($answer, 'ERROR:  division by zero', "an error in a lot ($n)") if $n % 10 == 1;
	$memory //= memory($session) if $n == 5;
}
nothing_pinned($node, 'after errors');
cmp_ok(memory($session) - $memory, '<', 100_000, 'no memory was lost by errors');
ask($session, 'SELECT count(*) FROM (SELECT * FROM t WHERE mixed >= 0 ORDER BY mixed) s') for 1 .. 5;
cmp_ok(memory($session) - $memory, '<', 100_000, 'nor by scans');
$session->quit;

check_log($node);
done_testing();
