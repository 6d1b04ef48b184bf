# 006_kills.pl - dead index entries are marked as by stock.
#
# A scan that finds all versions of a row dead tells the index, and later scans skip the
# entry (LP_DEAD).  Look-ahead has left the page by then, so it keeps these entries and
# reports them when it leaves the batch.  If it did not, scans over dead rows would stay slow;
# if it did so for the wrong page or after the page has changed, live rows would vanish.
#
# Three equal tables go through the same statements: "stock" is scanned with look-ahead off,
# "ahead" with it forced, "tight" with the smallest ring.  After each step the flags of all
# entries of all indexes are compared, item by item.  So is what the scans did to the heap:
# a scan prunes a page when it comes to it, and look-ahead comes there first.
# Once for logged tables and once for unlogged ones, where pages stay pinned.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', extensions => [ 'pageinspect', 'amcheck' ], conf => "shared_buffers = 16MB\n");

my %settings = (
	stock => stock(),
	ahead => forced(ring => 64, distance => 64),
	tight => forced(ring => 2, distance => 1));
my @tables = qw(stock ahead tight);
my @indexes = qw(a bc c);

# The flags of an index's leaf entries: one line for each page that has dead ones.
$node->safe_psql(
	'postgres', q(
	CREATE FUNCTION dead_items(index text) RETURNS TABLE (page int, items text) LANGUAGE sql AS $$
		SELECT p::int, string_agg(itemoffset::text, ' ' ORDER BY itemoffset) FILTER (WHERE dead)
		FROM generate_series(1, pg_relation_size(index::regclass) / current_setting('block_size')::int - 1) p,
			bt_page_stats(index, p::int) s, bt_page_items(index, p::int) i
		WHERE s.type = 'l' GROUP BY p HAVING bool_or(dead) ORDER BY p
	$$;
	CREATE FUNCTION line_pointers(t text) RETURNS text LANGUAGE sql AS $$
		SELECT string_agg(p || ':' || flags, ' ' ORDER BY p)
		FROM (SELECT p, string_agg(lp_flags::text, '' ORDER BY lp) flags
			FROM generate_series(0, pg_relation_size(t::regclass) / current_setting('block_size')::int - 1) p,
				heap_page_items(get_raw_page(t, p::int)) GROUP BY p) s
	$$;));

sub dead_items
{
	my ($index) = @_;

	return $node->safe_psql('postgres', "SELECT page, items FROM dead_items('$index')");
}

# Do the same to each table.
sub everywhere
{
	my ($sql) = @_;

	$node->safe_psql('postgres', join('', map { $sql =~ s/\bT(?=\b|_)/$_/gr } @tables));
	return;
}

# Run a query on each table, in its own way, and compare rows and flags.  What is given
# as more is the least number of dead entries that the scan must have added, or 0.
sub scan
{
	my ($name, $query, $more) = @_;
	my %dead_before = map { $_ => total($_) } @tables;
	my %rows;

	for my $t (@tables)
	{
		$rows{$t} = $node->safe_psql('postgres', $settings{$t} . ($query =~ s/\bT(?=\b|_)/$t/gr));
	}
	my $pointers = $node->safe_psql('postgres', q(SELECT md5(line_pointers('stock'))));
	for my $t (@tables[ 1, 2 ])
	{
		is($rows{$t}, $rows{stock}, "$name: $t: rows as stock");
		is($node->safe_psql('postgres', "SELECT md5(line_pointers('$t'))"),
			$pointers, "$name: $t: heap pages pruned as by stock");
		for my $i (@indexes)
		{
			is(dead_items("${t}_$i"), dead_items("stock_$i"), "$name: $t: dead entries of index $i as stock");
		}
	}
	cmp_ok(total('stock') - $dead_before{stock}, '>=', $more, "$name: stock marked entries");
	return;
}

sub total
{
	my ($t) = @_;

	return $node->safe_psql('postgres',
		'SELECT coalesce(sum(array_length(string_to_array(items, \' \'), 1)), 0) FROM '
		  . join(' UNION ALL ', map { "(SELECT * FROM dead_items('${t}_$_'))" } @indexes)
		  =~ s/^(.*)$/($1) s/r);
}

for my $kind ('', 'UNLOGGED')
{
	my $which = $kind eq '' ? 'logged' : 'unlogged';

	# dedup would merge entries that flags are compared of
	everywhere(
		qq(
		CREATE $kind TABLE T (id int, a int, b int, c int, w text) WITH (fillfactor = 60);
		INSERT INTO T SELECT i, (i::bigint * 7919 % 6007)::int, i % 7, i % 600, repeat('w', 80) FROM generate_series(1, 6006) i;
		CREATE INDEX T_a ON T (a) INCLUDE (id) WITH (fillfactor = 20);
		CREATE INDEX T_bc ON T (b, c) WITH (fillfactor = 20, deduplicate_items = off);
		CREATE INDEX T_c ON T (c) WITH (fillfactor = 20);
		VACUUM ANALYZE T;
	));

	everywhere('DELETE FROM T WHERE id % 5 = 0;');
	scan("$which, forward", 'SELECT count(*), sum(id) FROM (SELECT * FROM T WHERE a BETWEEN 100 AND 3000 ORDER BY a OFFSET 0) s WHERE w IS NOT NULL', 100);
	scan("$which, forward again", 'SELECT count(*), sum(id) FROM (SELECT * FROM T WHERE a BETWEEN 100 AND 4000 ORDER BY a OFFSET 0) s WHERE w IS NOT NULL', 50);
	scan("$which, backward", 'SELECT count(*), sum(id) FROM (SELECT * FROM T WHERE a > 4500 ORDER BY a DESC OFFSET 0) s WHERE w IS NOT NULL', 50);
	scan("$which, posting lists", 'SELECT count(*), sum(id) FROM (SELECT * FROM T WHERE c < 200 ORDER BY c OFFSET 0) s WHERE w IS NOT NULL', 1);
	scan("$which, posting lists backward", 'SELECT count(*), sum(id) FROM (SELECT * FROM T WHERE c > 400 ORDER BY c DESC OFFSET 0) s WHERE w IS NOT NULL', 1);

	everywhere('UPDATE T SET a = a + 1, c = (c + 1) % 600 WHERE id % 5 = 1;');
	scan("$which, index-only", 'SELECT count(*), sum(id) FROM (SELECT a, id FROM T WHERE a > 100 ORDER BY a OFFSET 0) s', 100);
	scan("$which, IN list", 'SELECT count(*), sum(id) FROM (SELECT * FROM T WHERE b IN (1, 2, 5) AND c IN (3, 4, 5, 50, 500, 501, 502) ORDER BY b, c OFFSET 0) s WHERE w IS NOT NULL', 1);
	scan("$which, LIMIT", 'SELECT id FROM T WHERE b = 3 ORDER BY b, c LIMIT 100', 1);
	scan("$which, LIMIT inside a page", 'SELECT id FROM T WHERE b = 6 ORDER BY b DESC, c DESC LIMIT 5', 0);

	# versions on the same page: what pruning is for
	everywhere("UPDATE T SET w = repeat('v', 70) WHERE id % 3 = 0;");
	my $unpruned = $node->safe_psql('postgres', q(SELECT md5(line_pointers('stock'))));
	scan("$which, pruning", 'SELECT count(*), sum(id) FROM (SELECT * FROM T WHERE a > 50 ORDER BY a OFFSET 0) s WHERE w IS NOT NULL', 0);
	isnt($node->safe_psql('postgres', q(SELECT md5(line_pointers('stock')))),
		$unpruned, "$which: stock pruned pages");

	everywhere('UPDATE T SET b = (b + 1) % 7 WHERE id % 5 = 2;');
	scan("$which, cursor", q(
		BEGIN;
		DECLARE x SCROLL CURSOR FOR SELECT id FROM T WHERE b < 4 ORDER BY b, c;
		MOVE 500 FROM x; FETCH 1 FROM x; MOVE BACKWARD 300 FROM x; FETCH 1 FROM x; MOVE 1000 FROM x; FETCH 1 FROM x;
		CLOSE x;
		COMMIT;), 1);
	everywhere('DELETE FROM T WHERE id % 5 = 3 AND id % 2 = 0;');
	scan("$which, nested loop", q(
		SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;
		SELECT count(*), sum(x.id) FROM generate_series(1, 600, 3) g JOIN T x ON x.c = g.g WHERE x.w IS NOT NULL), 1);
	scan("$which, merge join", q(
		SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off; SET enable_sort = off;
		SELECT count(*), sum(y.id) FROM T x JOIN T y ON x.c = y.c AND x.b = 0 WHERE x.w = y.w), 0);
	everywhere('DELETE FROM T WHERE id % 5 = 4 AND id % 3 = 0;');
	scan("$which, an error in mid-scan", q(
		DO $x$ BEGIN
			PERFORM sum(1 / (x.a - 3001)) FROM (SELECT * FROM T WHERE a > 500 ORDER BY a OFFSET 0) x WHERE w IS NOT NULL;
		EXCEPTION WHEN division_by_zero THEN NULL; END $x$), 0);

	# The page has changed since it was read: what the scan knows is worth nothing, unless
	# the page is pinned.  The cursor stops in mid-page, another session adds entries there.
	everywhere('DELETE FROM T WHERE id % 7 = 6 AND a BETWEEN 2000 AND 2600;');
	for my $t (@tables)
	{
		my $s = $node->background_psql('postgres');

		$s->query_safe($settings{$t} . "BEGIN; DECLARE x CURSOR FOR SELECT id, w FROM $t WHERE a >= 2000 ORDER BY a; MOVE 60 FROM x;");
		$node->safe_psql('postgres', "INSERT INTO $t SELECT 10000 + i, 1990 + i, 1, 1, 'new' FROM generate_series(1, 120) i");
		$s->query_safe('MOVE 400 FROM x; CLOSE x; COMMIT;');
		$s->quit;
	}
	scan("$which, pages changed under the cursor", 'SELECT 1', 0);

	is(check_indexes($node), '', "$which: bt_index_check finds all rows");
	for my $t (@tables)
	{
		my $q = "SELECT count(*), sum(id), sum(a), sum(b), sum(c) FROM (SELECT * FROM $t ORDER BY %s OFFSET 0) s WHERE w IS NOT NULL";
		my $all = $node->safe_psql('postgres', sprintf($q, 'w'));

		is( $node->safe_psql('postgres', stock() . 'SET enable_sort = off;' . sprintf($q, $_)),
			$all, "$which: $t by $_: all rows are found")
		  for ('a', 'b, c', 'c');
	}
	everywhere('DROP TABLE T;');
}

cmp_ok($node->safe_psql('postgres', 'SELECT sum(entries_killed) FROM pg_stat_lookahead'),
	'>', 500, 'the statistics know of it');
check_log($node);
$node->stop;

done_testing();
