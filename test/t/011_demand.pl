# 011_demand.pl - what a scan knows beforehand: whether it will be read to its end, and whether
# reads of this index were waits before.
#
# Each query visits ten rows on ten blocks that nobody has read since the server started, and
# every read counts as a wait.  The first three rows are evidence.  A scan that may be left early
# then begins with few blocks in flight (2, 4); one that is read to its end issues all the rest
# at once, which shows in max_distance.

use strict;
use warnings;
use feature 'state';

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# one row or two on a block, in an order that has nothing to do with the key
# without shared memory: each session begins knowing nothing (with it: 020_history)
my $node = new_server('main', preload => 0, extensions => ['pg_lookahead'],
	conf => "shared_buffers = 256MB\nsession_preload_libraries = 'pg_lookahead'\n");
$node->safe_psql(
	'postgres', q(
	CREATE TABLE t (k int, v int, w text) WITH (fillfactor = 10);
	INSERT INTO t SELECT k, i % 7, repeat('w', 700)
		FROM (SELECT i, row_number() OVER (ORDER BY hashint4(i)) - 1 AS k
			FROM generate_series(0, 5999) i) s ORDER BY i;
	CREATE INDEX t_k ON t (k);
	CREATE TABLE few (id int);
	INSERT INTO few VALUES (1);
	CREATE TABLE g AS SELECT i AS id, array[1, 10 + i % 7, 100 + i % 20000] AS tags FROM generate_series(1, 60000) i;
	CREATE INDEX g_tags ON g USING gin (tags) WITH (fastupdate = off);
	CREATE TABLE g2 AS TABLE g;
	CREATE INDEX g2_tags ON g2 USING gin (tags) WITH (fastupdate = off);
	CREATE TABLE grown (k int);
	CREATE INDEX grown_k ON grown (k);
	INSERT INTO grown SELECT i FROM generate_series(1, 20000) i ORDER BY hashint4(i);
	VACUUM (FREEZE, ANALYZE) t, few, g, g2, grown;
	CHECKPOINT;));
$node->restart;

my $settings = LookAhead::plans() . q(
	SET pg_lookahead.min_read_time = 0;
	SET enable_hashjoin = off;
	SET enable_material = off;);
my $next = 0;

# The most reads in flight of the scan of t, and how many were issued.
sub figures
{
	my ($query, $before) = @_;
	my $range = sprintf('k BETWEEN %d AND %d', $next, $next + 9);
	my $sql;

	$next += 40;
	$query =~ s/RANGE/$range/g;
	$sql = $node->safe_psql('postgres',
		$settings . ($before // '') . "\\o /dev/null\n$query;\n\\o\n"
		  . q(SELECT max_distance, blocks_issued FROM pg_lookahead_last_statement()
			WHERE relation = 't'::regclass ORDER BY blocks_issued DESC LIMIT 1));
	return split /\|/, $sql;
}

sub to_end
{
	my ($what, $query, $before) = @_;
	my ($distance, $issued) = figures($query, $before);

	cmp_ok($distance, '>=', 5, "$what: read to its end");
	return;
}

sub feels
{
	my ($what, $query, $before) = @_;
	my ($distance, $issued) = figures($query, $before);

	cmp_ok($distance, '<=', 4, "$what: may be left early");
	cmp_ok($issued, '>=', 2, "$what: but looks ahead");
	return;
}

# What the first row has read was pages of an index, and no block of the table.
sub only_pages
{
	my ($query) = @_;

	return $node->safe_psql('postgres', $settings . "SET enable_indexonlyscan = on;\\o /dev/null\n$query;\n\\o\n"
		  . q(SELECT scans_activated > 0, blocks_foreseen, leaf_pages_issued >= 2 FROM pg_lookahead_last_statement()
			WHERE kind = 'index only scan'));
}
is(only_pages('SELECT count(k) FROM t WHERE k BETWEEN 5000 AND 5040'), 'f|0|f',
	'an all-visible table is not looked ahead in, whatever has been read of its index');
is(only_pages('SELECT count(k) FROM grown WHERE k BETWEEN 9000 AND 9700'), 't|0|t',
	'... and leaf pages that lie scattered are, from the first row on');
# ... and one row was all that is wanted
is($node->safe_psql('postgres', $settings . q(\o /dev/null
		SELECT w FROM t WHERE k >= 4500 ORDER BY k LIMIT 1;
		\o
		SELECT count(*) FROM pg_lookahead_last_statement())), 0, 'LIMIT 1: no scan is attached behind its only row');

# The first row has waited for a leaf page (one that the planner has not looked at): what follows
# needs no evidence.
$next = 3000;
my $issued_cold = (figures('SELECT w FROM t WHERE RANGE'))[1];
$next = 0;
cmp_ok($issued_cold, '>=', 7, 'a first row that has waited for index pages');
# From here on, index pages are cached, and all that a first row waits for is its block.
$node->safe_psql('postgres',
	LookAhead::plans() . 'SET pg_lookahead.enable = off; SELECT count(k) FROM t WHERE k >= 0');
cmp_ok((figures('SELECT w FROM t WHERE RANGE'))[1], '<', $issued_cold, '... and one that has not');

to_end('whole statement', 'SELECT w FROM t WHERE RANGE');
to_end('aggregate', 'SELECT count(w) FROM t WHERE RANGE');
to_end('hashed aggregate', 'SELECT w, count(*) FROM t WHERE RANGE GROUP BY w', 'SET enable_sort = off;');
to_end('sort', 'SELECT w FROM t WHERE RANGE ORDER BY v LIMIT 1');
to_end('limit', 'SELECT w FROM t WHERE RANGE ORDER BY k LIMIT 10');
to_end('subquery', 'SELECT * FROM (SELECT w, v FROM t WHERE RANGE OFFSET 0) s WHERE v < 9');
to_end('union', 'SELECT w FROM t WHERE RANGE UNION ALL SELECT id::text FROM few');
to_end('hash', 'SELECT t.w FROM few LEFT JOIN t ON few.id = t.v AND RANGE',
	'SET enable_hashjoin = on; SET enable_nestloop = off; SET enable_mergejoin = off;');
to_end('inner side of a nested loop', 'SELECT t.w FROM few, t WHERE RANGE',
	'SET enable_mergejoin = off;');
to_end('outer side of a nested loop', 'SELECT t.w FROM t LEFT JOIN few ON few.id = t.v + 100 WHERE RANGE',
	'SET enable_mergejoin = off;');
to_end('FETCH ALL', "BEGIN; DECLARE c CURSOR FOR SELECT w FROM t WHERE RANGE; FETCH ALL FROM c; CLOSE c");
to_end('a changed table', 'UPDATE few SET id = (SELECT count(w) FROM t WHERE RANGE)');
to_end('CREATE TABLE AS', 'CREATE TABLE new AS SELECT w FROM t WHERE RANGE');

feels('FETCH', "BEGIN; DECLARE c CURSOR FOR SELECT w FROM t WHERE RANGE; FETCH 10 FROM c; CLOSE c");
feels('semi join', 'SELECT 1 FROM few WHERE EXISTS (SELECT 1 FROM t WHERE RANGE AND t.v = few.id + 100)',
	'SET enable_mergejoin = off;');
feels('EXISTS', "SELECT EXISTS (SELECT 1 FROM t WHERE RANGE AND w = 'never')");
feels('FOR loop',
	q(DO $$ DECLARE r record; BEGIN FOR r IN SELECT w FROM t WHERE RANGE LOOP END LOOP; END $$));

# what the session has learnt of the index: the second query needs no evidence
my ($unknown, $known) = map {
	(figures('SELECT w FROM t WHERE RANGE AND k % 10 < 5', $_))[1];
} '', sprintf('SELECT count(w) FROM t WHERE k BETWEEN 5900 AND 5920;');
cmp_ok($known, '>', $unknown, 'reads known to be slow: looks ahead from the first miss');
cmp_ok($known, '>=', 3, '... at most of five rows');
# ... which a scan that finds them fast forgets
my $fast = (figures('SELECT w FROM t WHERE RANGE AND k % 10 < 5',
	'SELECT count(w) FROM t WHERE k BETWEEN 5921 AND 5930; SET pg_lookahead.min_read_time = 1000;'
	  . 'SELECT count(w) FROM t WHERE k BETWEEN 5931 AND 5999; SET pg_lookahead.min_read_time = 0;'))[1];
cmp_ok($fast, '<=', $unknown, 'and forgotten when they are not');
# ... and with DISCARD ALL, or RESET ALL, for the next client
for my $reset ('DISCARD ALL', 'RESET ALL')
{
	state $first = 5700;
	my $learn = sprintf('SELECT count(w) FROM t WHERE k BETWEEN %d AND %d;', $first, $first + 20);
	my $issued = (figures('SELECT w FROM t WHERE RANGE AND k % 10 < 5', "$learn $reset; $settings"))[1];

	$first += 40;
	cmp_ok($issued, '<=', $unknown, "forgotten with $reset");
}

# pages of a GIN index: the first ones are read, and found to be waits
{
	my $query = 'SELECT count(*) FROM g WHERE tags @> array[1, 12]';

	is($node->safe_psql('postgres', "$settings SET enable_bitmapscan = on; SET pg_lookahead.miss_threshold = 2; $query;
			SELECT leaf_pages_issued > 0 FROM pg_lookahead_last_statement() WHERE kind = 'bitmap index scan'"),
		$node->safe_psql('postgres', "SET pg_lookahead.enable = off; SET enable_indexscan = off; SET enable_bitmapscan = off; $query") . "\nt",
		'GIN: pages that are read show that reads are waits');
	is($node->safe_psql('postgres', "$settings SET enable_bitmapscan = on; SET pg_lookahead.miss_threshold = 1000;
			SELECT count(*) FROM g2 WHERE tags @> array[1, 12];
			SELECT leaf_pages_issued FROM pg_lookahead_last_statement() WHERE kind = 'bitmap index scan'"),
		"8572\n0", 'GIN: none is started before they have shown it');
}

# a nested statement that fails leaves nothing behind
is( $node->psql('postgres',
		$settings . q(DO $$ BEGIN PERFORM 1 / v FROM t WHERE k < 100; EXCEPTION WHEN division_by_zero THEN NULL; END $$)),
	0, 'an error inside a nested run');
to_end('after an error', 'SELECT w FROM t WHERE RANGE',
	q(DO $$ BEGIN PERFORM 1 / v FROM t WHERE k < 100; EXCEPTION WHEN division_by_zero THEN NULL; END $$;));

# where old snapshots expire, a page that is read for rows that are not wanted could be an error
SKIP:
{
	skip 'old snapshots do not expire', 2 unless $node->pg_version < 17;

	$node->append_conf('postgresql.conf', "old_snapshot_threshold = '1h'\n");
	$node->restart;
	for my $rows ([ '', '' ], [ 'LIMIT 5', 'not all rows may be read, and old snapshots expire' ])
	{
		is($node->safe_psql('postgres', qq(SET enable_nestloop = off; SET enable_mergejoin = off; SET pg_lookahead.force = on;
				\\o /dev/null
				SELECT a.k FROM t a JOIN t b USING (k) $rows->[0];
				\\o
				SELECT DISTINCT reason FROM pg_lookahead_last_statement() WHERE kind = 'hash join')),
			$rows->[1], "old snapshots expire: $rows->[0]");
	}
}
check_log($node);
done_testing();
