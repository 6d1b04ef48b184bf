# 031_subplan.pl - plans that are repeated for each row, with reads from disk.
#
# test/sql/subplan.sql compares what statements return.  Shared buffers are so small here that
# everything is read.  Checked are
#   1. the blocks: what is issued becomes of use, each wait of each level of a plan;
#   2. what is not: rows behind a LIMIT, rows that CASE leaves out, which end look-ahead;
#   3. errors and cancels: no pins, no memory;
#   4. sessions that write the same tables meanwhile.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', conf => "pg_lookahead.enable_subplan = on\nmax_connections = 20\n", extensions => [ 'pg_buffercache', 'amcheck' ]);

# c: scattered rows, five on a block, five or six for each p
$node->safe_psql(
	'postgres', q(
	CREATE TABLE p (id int PRIMARY KEY, k int, f int, w text);
	INSERT INTO p SELECT i, (i::bigint * 2801) % 3000, i % 10, repeat('w', 100) FROM generate_series(0, 2999) i;
	CREATE TABLE c (cid int, pid int, val int, w text);
	INSERT INTO c SELECT i, (i::bigint * 4447) % 3000, (i * 31) % 1000, repeat('w', 1500) FROM generate_series(0, 14999) i;
	INSERT INTO c SELECT 20000 + cid, pid, val, w FROM c WHERE cid < 3000;
	CREATE INDEX c_pid ON c (pid) WITH (fillfactor = 10);
	CREATE INDEX c_pid_val ON c (pid, val) WITH (fillfactor = 10);
	CREATE TABLE q AS SELECT 1 x;
	CREATE TABLE h (cid int, pid int, w text) PARTITION BY HASH (cid);
	SELECT format('CREATE TABLE h%s PARTITION OF h FOR VALUES WITH (MODULUS 16, REMAINDER %s)', i, i) FROM generate_series(0, 15) i \gexec
	INSERT INTO h SELECT cid, pid, repeat('w', 500) FROM c;
	CREATE INDEX h_pid ON h (pid);
	VACUUM (FREEZE, ANALYZE) p, c;
	VACUUM (FREEZE, ANALYZE) h;
	CHECKPOINT;));

my $plans = 'SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;'
  . ' SET enable_material = off; SET max_parallel_workers_per_gather = 0;';
my $forced = $plans . 'SET pg_lookahead.force = on;';
# reads from the operating system's cache count as waits
my $low = $plans . 'SET pg_lookahead.miss_threshold = 0; SET pg_lookahead.min_read_time = 0;';

# Rows, and the figures of this kind: issued, of use, wasted, leaf pages, activated.
sub run
{
	my ($settings, $kind, $sql) = @_;
	my $figures = qq(SELECT sum(blocks_issued), sum(blocks_on_time + blocks_late), sum(blocks_wasted),
		sum(leaf_pages_issued), sum(scans_activated)
		FROM pg_lookahead_last_statement() WHERE kind = '$kind');
	my ($rows, $line) = split /=\n?/, $node->safe_psql('postgres', "$settings\n$sql;\n\\echo =\n$figures");

	chomp $rows;
	return ($rows, map { $_ eq '' ? 0 : $_ } split(/\|/, $line // '', -1));
}

# The same rows?  Returns the figures.
sub compare
{
	my ($name, $settings, $kind, $sql) = @_;
	my $stock = $node->safe_psql('postgres', "$plans SET pg_lookahead.enable = off; $sql");
	my ($ours, @figures) = run($settings, $kind, $sql);

	is($ours, $stock, "$name: same rows");
	return @figures;
}

# ---- what is read ahead ---------------------------------------------------------------------

my $each = 'SELECT count(*), sum(hashtext(x::text)) FROM (%s) x';
my @cases = (
	[ 'count', 'subplan', 'SELECT id, (SELECT count(w) FROM c WHERE pid = p.k) FROM p OFFSET 0', 9000 ],
	[ 'EXISTS with a filter', 'subplan', q(SELECT id FROM p WHERE EXISTS (SELECT FROM c WHERE pid = p.k AND w LIKE 'x%' OFFSET 0)), 9000 ],
	[ 'index scan above', 'subplan', 'SELECT id, (SELECT count(w) FROM c WHERE pid = p.k) FROM p WHERE id BETWEEN 100 AND 2100 AND f >= 0 OFFSET 0', 6000 ],
	[ 'index-only scan above', 'subplan', 'SELECT id, (SELECT count(w) FROM c WHERE pid = p.id) FROM p WHERE id BETWEEN 100 AND 2100 OFFSET 0', 6000 ],
	[ 'sort above', 'subplan', 'SELECT id, (SELECT count(w) FROM c WHERE pid = x.k) FROM (SELECT * FROM p ORDER BY f, id OFFSET 0) x OFFSET 0', 9000 ],
	[ 'inner side of a nested loop', 'subplan', 'SELECT id, (SELECT count(w) FROM q LEFT JOIN c ON pid = p.k) FROM p OFFSET 0', 9000 ],
	[ 'function above', 'subplan', 'SELECT g, (SELECT count(w) FROM c WHERE pid = g) FROM unnest(ARRAY(SELECT k FROM p)) g OFFSET 0', 9000 ],
	[ 'functions above', 'subplan', 'SELECT o, (SELECT count(w) FROM c WHERE pid = v) FROM ROWS FROM (generate_series(1, 9), unnest(ARRAY(SELECT k FROM p))) WITH ORDINALITY t(g, v, o) WHERE o % 2 = 0 OFFSET 0', 4500 ],
	[ 'function above, in a file', 'subplan', q(SELECT g, (SELECT count(w) FROM c WHERE pid = g) FROM unnest(ARRAY(SELECT k FROM p), array_fill(repeat('x', 3000), ARRAY[3000])) t(g, pad) OFFSET 0), 9000 ],
	[ 'CTE above, its query run ahead', 'subplan', 'WITH x AS MATERIALIZED (SELECT * FROM p) SELECT id, (SELECT count(w) FROM c WHERE pid = x.k) FROM x OFFSET 0', 9000 ],
	[ 'CTE above, stored rows', 'subplan', 'WITH x AS MATERIALIZED (SELECT * FROM p) SELECT id, (SELECT count(w) FROM c WHERE pid = x.k) FROM x WHERE id <= (SELECT max(id) FROM x) OFFSET 0', 9000 ],
	[ 'the last three', 'nested loop', 'SELECT p.id, l.cid FROM p, LATERAL (SELECT * FROM c WHERE pid = p.k ORDER BY val DESC LIMIT 3) l', 6000 ],
	[ 'aggregate', 'nested loop', 'SELECT p.id, l.* FROM p, LATERAL (SELECT count(w) FROM c WHERE pid = p.k) l', 9000 ],
	[ '16 partitions', 'nested loop', 'SELECT p.id, h.cid, length(h.w) FROM p JOIN h ON pid = p.k', 5000 ]);
for my $case (@cases)
{
	my ($name, $kind, $sql, $issued) = @$case;
	my @f = compare($name, $forced, $kind, sprintf($each, $sql));

	cmp_ok($f[0], '>', $issued, "$name: blocks issued");
	is($f[1], $f[0], "$name: all of them of use");
	is($f[2], 0, "$name: none wasted");
	cmp_ok($f[3], '>', 0, "$name: leaf pages issued");
	cmp_ok(compare("$name, by evidence", $low, $kind, sprintf($each, $sql)), '>', 0, "$name: by evidence");
}

# ---- and what is not --------------------------------------------------------------------------

my $limited = 'SELECT id, (SELECT count(w) FROM c WHERE pid = p.k) FROM p WHERE id >= 0 ORDER BY id LIMIT %s';
for my $n (1, 10, 300)
{
	my @f = compare("LIMIT $n", $low, 'subplan', sprintf($limited, $n));

	cmp_ok($f[2], '<=', 12, "LIMIT $n: blocks behind it");
}

# rows that are left out: one of fifty is processed
my $left_out = 'SELECT sum(CASE WHEN f = 0 AND id % 5 = 0 THEN (SELECT count(w) FROM c WHERE pid = p.k) END) FROM p';
my @f = compare('CASE', $low, 'subplan', $left_out);
cmp_ok($f[2], '>', 0, 'CASE: reads for rows that are left out are counted');
cmp_ok($f[2], '<', 3000, 'CASE: they end look-ahead');
# half of them: it is worth while
@f = compare('CASE, half', $low, 'subplan', 'SELECT sum(CASE WHEN f < 5 THEN (SELECT count(w) FROM c WHERE pid = p.k) END) FROM p');
cmp_ok($f[1], '>', 4000, 'CASE, half: goes on');

# a filter that can be evaluated ahead: nothing is read for rows that do not pass
@f = compare('filter', $forced, 'subplan', 'SELECT sum((SELECT count(w) FROM c WHERE pid = p.k)) FROM p WHERE f = 3');
is($f[2], 0, 'filter: nothing wasted');

# ---- errors and cancels ------------------------------------------------------------------------

my $session = open_session($node, $forced);
my $memory;
for my $n (1 .. 20)
{
	my $answer = ask($session, 'SELECT sum(1 / (k - ' . (1000 + 97 * $n) . ') + (SELECT count(w) FROM c WHERE pid = p.k)) FROM p');

	is($answer, 'ERROR:  division by zero', "an error behind rows that are known ($n)") if $n % 10 == 1;
	ask($session, 'SELECT sum(l.val / (p.k - ' . (500 + $n) . ')) FROM p, LATERAL (SELECT * FROM c WHERE pid = p.k ORDER BY val DESC LIMIT 3) l');
	$memory //= memory($session) if $n == 5;
}
nothing_pinned($node, 'after errors');
cmp_ok(memory($session) - $memory, '<', 100_000, 'no memory was lost by errors');
my $pid = ask($session, 'SELECT pg_backend_pid()');
my $waiting = 'SELECT sum((SELECT count(w) FROM c WHERE pid = p.k)), max(CASE WHEN id = 1500 THEN pg_advisory_lock(7)::text END) FROM p';
my $locker = open_session($node, 'SELECT pg_advisory_lock(7)');
check_cancel($node, $session, $pid, 'subplan', $waiting, timeout => '2s', cursor => 'NO SCROLL CURSOR');
ask($session, 'ROLLBACK');
$locker->quit;
$session->quit;

# ---- other sessions ------------------------------------------------------------------------------

my $dir = $node->basedir;
append_to_file("$dir/read.sql", q(
	SELECT sum((SELECT count(w) FROM c WHERE pid = p.k)), count(*) FROM p WHERE id > 2000;
	SELECT count(*) FROM p, LATERAL (SELECT * FROM c WHERE pid = p.k ORDER BY val DESC LIMIT 3) l WHERE p.id < 500;
));
append_to_file("$dir/write.sql", q(
	\set i random(0, 2999)
	UPDATE c SET val = val + 1, pid = (pid + 1) % 3000 WHERE pid = :i;
	UPDATE p SET k = (k + 7) % 3000 WHERE id = :i;
	DELETE FROM c WHERE pid = :i AND val % 7 = 0;
	INSERT INTO c SELECT 40000 + :i, :i, g, repeat('w', 2000) FROM generate_series(1, 2) g;
));
append_to_file("$dir/vacuum.sql", "VACUUM c;\nVACUUM p;\n");
my $options = join ' ', map { "-c pg_lookahead.$_" } 'force=on';
my @runs = (
	start_pgbench($node, 8, 'readers', "$options -c enable_bitmapscan=off", 2, '-f', "$dir/read.sql"),
	start_pgbench($node, 8, 'writers', '', 2, '-f', "$dir/write.sql"),
	start_pgbench($node, 8, 'vacuum', '', 1, '-f', "$dir/vacuum.sql"));
check_pgbench($_) for @runs;
compare('after that', $forced, 'subplan', 'SELECT sum((SELECT count(w) FROM c WHERE pid = p.k)), count(*) FROM p');

nothing_pinned($node, 'at the end');
check_log($node);
done_testing();
