# 036_memory.pl - a backend that gets no more memory: the right answer, or stock's error, and it goes on.
#
# The address space of a session is limited to what it has and a little more, then less little, by prlimit.
# A statement with look-ahead then has its answer, or fails for want of memory, as it might in stock; the session
# goes on when the limit is gone, and has kept no pin, and no memory.
#
# Skipped where there is no prlimit or /proc.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'there is no prlimit, or no /proc' unless -r "/proc/$$/statm" && system('prlimit --version >/dev/null 2>&1') == 0;

my $node = new_server(
	'main',
	extensions => [ 'pg_buffercache', 'amcheck' ],
	conf => "pg_lookahead.enable_subplan = on\npg_lookahead.enable_toast = on\npg_lookahead.enable_btree_insert = on\nwork_mem = 16MB\n");

$node->safe_psql('postgres', random_table('t', 6000) . q(
	CREATE TABLE u (k int REFERENCES t, n int);
	CREATE TABLE long (id int PRIMARY KEY, doc text);
	ALTER TABLE long ALTER doc SET STORAGE EXTERNAL;
	INSERT INTO long SELECT i, repeat(md5(i::text), 200) FROM generate_series(1, 300) i;
	CREATE TABLE lists (id int, list int[]);
	INSERT INTO lists SELECT i, ARRAY[i % 50, 100 + i % 7, 1000 + i] FROM generate_series(1, 5000) i;
	CREATE INDEX lists_list ON lists USING gin (list);
	ANALYZE u, long, lists;));

my $nested = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;';
my %query = (
	'index scan' => ['', 'SELECT count(*), sum(id + length(w)) FROM (SELECT * FROM t WHERE a >= 0 ORDER BY a OFFSET 0) s'],
	'index-only scan' => ['', 'SELECT count(*), sum(id) FROM (SELECT a, id FROM t WHERE a >= 0 ORDER BY a OFFSET 0) s'],
	'nested loop' => [ $nested, 'SELECT count(*), sum(length(y.w)) FROM t x JOIN t y ON y.id = x.b + x.id / 2 WHERE x.a > 0' ],
	'subquery' => ['', 'SELECT sum((SELECT length(y.w) FROM t y WHERE y.id = x.id / 2)) FROM t x WHERE x.a > 0'],
	'hash join' => ['SET enable_nestloop = off; SET enable_mergejoin = off;', 'SELECT count(*), sum(y.id) FROM t x JOIN t y ON y.a = x.a'],
	'bitmap scan' => ['SET enable_bitmapscan = on; SET enable_indexscan = off;', 'SELECT count(*), sum(id) FROM lists WHERE list && ARRAY[3, 4, 101]'],
	'values out of line' => ['', 'SELECT count(*), sum(length(md5(doc))) FROM (SELECT doc FROM long ORDER BY id OFFSET 0) s'],
	# of 60 MB, which no session has left over from statements before
	'large value' => ['', 'SELECT max(id), max(length(repeat(\'x\', 60000000 + a * 0))) FROM (SELECT * FROM t WHERE a >= 0 ORDER BY a OFFSET 0) s WHERE id < 4'],
	'insert' => ['', 'WITH n AS (INSERT INTO t SELECT 10000 + i, i * 7 % 1000, i % 10, \'new\' FROM generate_series(1, 2000) i RETURNING id)
		SELECT count(*), sum(id) FROM n'],
	'foreign key' => ['', 'WITH n AS (INSERT INTO u SELECT 1 + i * 7919 % 6000, i FROM generate_series(1, 2000) i RETURNING n)
		SELECT count(*), sum(n) FROM n'],
	'index build' => ['', 'CREATE INDEX later ON t (b, a, w)']);
my %seen;

for my $name (sort keys %query)
{
	my ($settings, $sql) = @{ $query{$name} };
	my $session = open_session($node, forced() . $settings);
	my $pid = pid_of($session);
	my $answer = ask($session, "BEGIN;\n$sql;\nROLLBACK");
	my $before;

	# its stack must not have to grow under the limit, as that ends the process
	ask($session, 'SELECT ' . '1 + (' x 1000 . '1' . ')' x 1000);

	for my $round (1, 2)
	{
		for my $more (8192, 2048, 512, 128, 32, 8, 0)
		{
			my ($pages) = split / /, slurp_file("/proc/$pid/statm");

			ask($session, 'BEGIN');
			system_or_bail('prlimit', "--pid=$pid", '--as=' . ($pages * 4096 + $more * 1024) . ':');
			my $got = ask($session, $sql);
			system_or_bail('prlimit', "--pid=$pid", '--as=unlimited:');
			ask($session, 'ROLLBACK');
			my $failed = $got =~ /^ERROR:  (?:out of memory|could not .*: Cannot allocate memory)/m;
			$seen{ $failed ? 'errors' : 'answers' }++;
			ok($failed || $got eq $answer, "$name, $more kB more") or diag($got);
		}
		is(ask($session, "BEGIN;\n$sql;\nROLLBACK"), $answer, "$name: with memory again");
		$before //= memory($session);
	}
	cmp_ok(memory($session), '<=', $before + 64 * 1024, "$name: nothing is kept");
	$session->quit;
	nothing_pinned($node, $name);
}
note(join(', ', map { "$_: $seen{$_}" } sort keys %seen));
cmp_ok($seen{errors} // 0, '>', 0, 'memory was short');
cmp_ok(activated($node), '>', 20, 'scans have looked ahead');
is(check_indexes($node), '', 'indexes are sound');
check_log($node);
$node->stop;

done_testing();
