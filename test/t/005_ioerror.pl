# 005_ioerror.pl - damaged and missing blocks: the same error at the same row.
#
# Look-ahead advises heap blocks and does not read them, so a bad one may only be noticed
# when its row is asked for.  The tables here have one row on each heap block, and a row's
# rank in the index is its key: "the error came after k rows" says which block was read.
#
# The files are changed while the server is down.  Each query then runs with look-ahead off
# and forced with several settings, once as it is and once through walk(), which fetches
# rows one by one from a cursor and tells how many there were and how it ended.  What psql
# prints must be the same, errors and warnings included.
#
# Damaged leaf pages are the known exception.  A leaf page is read ahead for real, so the
# same error may come some rows earlier; but not where a LIMIT bounds the scan to pages
# before it, and not under SERIALIZABLE, where no leaf page is read ahead.

use strict;
use warnings;

use File::Copy;
use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rows = 1000;
my $block_size = 8192;
my $node = new_server(
	'main',
	init => ['--data-checksums'],
	conf => "max_prepared_transactions = 1\n",
	extensions => [ 'pg_buffercache', 'pageinspect' ]);

my %modes = (
	off => stock(),
	'ring 64, distance 64' => forced(),
	'ring 2, distance 64' => forced(ring => 2),
	'ring 64, distance 1' => forced(distance => 1));
my @forced = grep { $_ ne 'off' } sort keys %modes;

# ---- helpers ---------------------------------------------------------------

# One row on each heap block, keys 0 .. $rows - 1 in an order unrelated to that of the
# blocks, about 40 rows on each leaf page.
sub make_table
{
	my ($name) = @_;

	$node->safe_psql(
		'postgres', qq(
		CREATE TABLE $name (a int, id int, w text) WITH (fillfactor = 10);
		INSERT INTO $name SELECT (i * 7919 + 123) % $rows, i, repeat('w', 820) FROM generate_series(1, $rows) i;
		CREATE INDEX ${name}_a ON $name (a, id) WITH (fillfactor = 10);
		ANALYZE $name;));
	return;
}

sub heap_block
{
	my ($table, $a) = @_;

	return $node->safe_psql('postgres', "SELECT (ctid::text::point)[0] FROM $table WHERE a = $a");
}

# [block, number of rows on it] of the leaf pages, from left to right
sub leaf_pages
{
	my ($index) = @_;

	return map { [ split /\|/ ] } split /\n/,
	  $node->safe_psql(
		'postgres', qq(
		WITH RECURSIVE leaf AS (
			SELECT 1 AS n, s.* FROM generate_series(1, pg_relation_size('$index') / $block_size - 1) b,
				bt_page_stats('$index', b) s WHERE s.type = 'l' AND s.btpo_prev = 0
			UNION ALL
			SELECT n + 1, s.* FROM leaf, bt_page_stats('$index', leaf.btpo_next) s
			WHERE leaf.btpo_next <> 0)
		SELECT blkno, live_items - (btpo_next <> 0)::int FROM leaf ORDER BY n));
}

# The same with look-ahead off and forced; $expected is a pattern for both.
sub same
{
	my ($sql, $expected, $name) = @_;

	return same_transcripts($node, \%modes, $sql, $expected, $name);
}

# A damaged leaf page: with look-ahead, the same error after at most as many rows.  Until
# 17, a warning about the checksum comes with it.
sub same_or_earlier
{
	my ($sql, $after, $error, $name) = @_;

	my %text = transcripts_of($node, \%modes, $sql);
	my %serializable = transcripts_of($node, \%modes, $sql, 'BEGIN ISOLATION LEVEL SERIALIZABLE');

	like($text{off}, qr/^$after rows, \Q$error\E\n/, "$name: off");
	for my $mode (@forced)
	{
		no_later($text{$mode}, $text{off}, $after, "$name: $mode");
		is($serializable{$mode}, $text{off}, "$name: $mode, SERIALIZABLE: after exactly as many rows");
	}
	return;
}

sub nothing_left
{
	my ($name) = @_;

	is(pinned_relations($node), '', "$name: nothing is pinned");
	return;
}

create_walk($node);

# ---- the damage -------------------------------------------------------------

my $bad = 436;					# key of the row on the bad block: as many come before it
my $bad_from_end = $rows - $bad - 1;
my $cut = 990;					# blocks that the short heap file keeps

make_table('visible');
$node->safe_psql('postgres', 'VACUUM visible');
# PostgreSQL 19 marks pages as all-visible when they are read, but not while there is somebody who
# may not see their rows
$node->safe_psql('postgres', "BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'before'");
make_table($_) for qw(damaged short leaf second cut_index);
is( $node->safe_psql('postgres', 'SELECT count(DISTINCT (ctid::text::point)[0]), max((ctid::text::point)[0]) FROM damaged'),
	"$rows|" . ($rows - 1),
	'one row on each heap block');

my $bad_block = heap_block('damaged', $bad);
my $visible_block = heap_block('visible', $bad);
my $first_missing = $node->safe_psql('postgres', "SELECT min(a) FROM short WHERE (ctid::text::point)[0] >= $cut");
my $missing_block = heap_block('short', $first_missing);

my @leaves = leaf_pages('leaf_a');
my @second = leaf_pages('second_a');
my @cut_index = leaf_pages('cut_index_a');
cmp_ok(scalar(@leaves), '>', 20, 'many leaf pages');

# the tenth leaf page; in cut_index_a, all from the tenth on
my $before = 0;
$before += $_->[1] for @leaves[ 0 .. 8 ];
my $behind = $rows - $before - $leaves[9][1];
my $keep = $cut_index[9][0];

my %path = map { $_ => path_of($node, $_) } qw(damaged damaged_a visible short leaf_a second_a cut_index_a);
my %file = map { $_ => $path{$_} =~ m{(base/.*)$} } keys %path;

$node->stop;
damage($path{damaged}, $bad_block);
damage($path{visible}, $visible_block);
truncate $path{short}, $cut * $block_size or die $!;
damage($path{leaf_a}, $leaves[9][0]);
damage($path{second_a}, $second[1][0]);
truncate $path{cut_index_a}, $keep * $block_size or die $!;
$node->start;

# ---- a damaged heap block ------------------------------------------------------

my $scan = 'SELECT a, id, w FROM damaged WHERE a >= 0 ORDER BY a';
my $only = 'SELECT a, id FROM damaged WHERE a >= 0 ORDER BY a';
my $error = qr/invalid page in block $bad_block of relation "?\Q$file{damaged}\E"?/;

my %plans = (
	"$scan" => qr/Index Scan using damaged_a/,
	"$only" => qr/Index Only Scan using damaged_a/,
	"$scan DESC" => qr/Index Scan Backward using damaged_a/);
for my $query (sort keys %plans)
{
	like($node->safe_psql('postgres', forced() . "EXPLAIN $query"), $plans{$query}, "plan of $query");
}

for my $query ($scan, $only)
{
	my $kind = $query eq $scan ? 'index scan' : 'index-only scan';

	same(walk($query), qr/^$bad rows, XX001: $error\n/, "$kind");
	same(walk($query, $bad), qr/^$bad rows\n/, "$kind, closed before the bad block");
	same(walk("$query LIMIT $bad"), qr/^$bad rows\n/, "$kind, LIMIT before the bad block");
	same(walk("$query LIMIT " . ($bad + 1)), qr/^$bad rows, XX001: $error/, "$kind, LIMIT at the bad block");
	same(walk("$query DESC"), qr/^$bad_from_end rows, XX001: $error/, "$kind backward");
	same("SELECT count(*) FROM ($query OFFSET 0) s", qr/ERROR:  $error/, "$kind, no cursor");
	same("SELECT count(*), sum(id) FROM ($query LIMIT $bad) s", qr/^$bad\|/, "$kind, no cursor, LIMIT before");
	my $one = $query =~ s/a >= 0/a = g/r;

	same(walk("SELECT s.* FROM generate_series(0, $rows) g, LATERAL ($one OFFSET 0) s"),
		qr/^$bad rows, XX001: $error/, "$kind, rescanned");
	nothing_left($kind);
}

# ---- the same below joins, which take rows before their turn ---------------------

my $message = "XX001: invalid page in block $bad_block of relation ";
$message .= ($node->pg_version >= 18 ? "\"$file{damaged}\"" : $file{damaged});
my $join = "SELECT s.a, n.i FROM ($scan) s LEFT JOIN numbers n ON n.i = s.a";

$node->safe_psql('postgres', qq(
	CREATE TABLE numbers AS SELECT i FROM generate_series(0, $rows) i;
	CREATE UNIQUE INDEX ON numbers (i);
	ANALYZE numbers));
for my $case ([ 'hash join', 'hashjoin', qr/Hash Left Join/ ], [ 'nested loop', 'nestloop', qr/Nested Loop Left Join/ ])
{
	my ($kind, $name, $plan) = @$case;
	my $only = join(' ', map { "SET LOCAL enable_$_ = off;" } grep { $_ ne $name } qw(hashjoin mergejoin nestloop));

	like($node->safe_psql('postgres', forced() . "BEGIN; $only EXPLAIN $join"), $plan, "plan of a $kind");
	same_or_earlier("$only " . walk($join), $bad, $message, "$kind, outer side");
	same("$only " . walk("$join LIMIT 8"), qr/^8 rows\n/, "$kind, LIMIT long before the bad block");
	same("$only SELECT count(*) FROM ($join OFFSET 0) s", qr/ERROR:  $error/, "$kind, no cursor");
	nothing_left($kind);
}
my $half = $bad / 2;
same(walk("SELECT a, w FROM damaged WHERE a = ANY (ARRAY(SELECT generate_series(0, $rows, 2))) ORDER BY a"),
	qr/^$half rows, XX001: $error/, 'array of keys');

# up to the block before, back, and forward again over the bad one
my $motions = join(
	"\n",
	"DECLARE c SCROLL CURSOR FOR $scan;",
	'MOVE 386 FROM c;',
	map({ 'FETCH 1 FROM c;' } 1 .. 50),
	'MOVE BACKWARD 100 FROM c;',
	map({ 'FETCH 1 FROM c;' } 1 .. 110),
	'SELECT 1;', 'ROLLBACK;', 'SELECT 2;');
my %text = transcripts_of($node, \%modes, $motions);
my @lines = grep { /^\d+\|\d+\|w+$/ } split /\n/, $text{off};

like($text{off}, qr/ERROR:  $error\nERROR:  current transaction is aborted/, 'scroll cursor: off');
is(scalar(@lines), 50 + 100, '... after so many rows');
is($text{$_}, $text{off}, "scroll cursor: $_") for @forced;

# in a session that goes on in the same transaction
for my $mode (@forced)
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query($modes{$mode});
	$session->query('BEGIN; DECLARE other CURSOR FOR ' . $only);
	$session->query('MOVE 20 FROM other');
	like($session->query(walk($scan)), qr/^$bad rows, XX001: $error/, "in a transaction, $mode") for 1 .. 3;
	cmp_ok(pinned($node), '<=', 12, "$mode: pinned is what the open cursor needs");
	is($session->query('FETCH other'), '20|' . $node->safe_psql('postgres', 'SELECT id FROM damaged WHERE a = 20'),
		"$mode: the other cursor goes on");
	$session->query('COMMIT');
	nothing_left("$mode: after the transaction");
	is($session->query("SELECT count(*) FROM damaged WHERE a < $bad AND w <> ''"), $bad, "$mode: the session goes on");
	$session->quit;
}

# read failures are counted once
my $failures = q(SELECT checksum_failures FROM pg_stat_database WHERE datname = 'postgres');
my $then = $node->safe_psql('postgres', $failures);
transcripts_of($node, \%modes, walk($scan));
is($node->safe_psql('postgres', $failures) - $then, scalar(keys %modes), 'each scan counts one checksum failure');

# zero_damaged_pages: with a warning, the row is missing.  The entry of a missing row is
# marked dead, and the zeroed block stays in its buffer: each mode begins afresh.
my $others = $rows - 1;
copy($path{damaged_a}, "$path{damaged_a}.saved") or die $!;
for my $mode ('off', @forced)
{
	$node->stop;
	copy("$path{damaged_a}.saved", $path{damaged_a}) or die $!;
	$node->start;
	my ($ret, $out, $err) =
	  $node->psql('postgres', "$modes{$mode} SET zero_damaged_pages = on; " . walk($scan));

	is($out, "$others rows", "zero_damaged_pages: $mode");
	is(scalar(() = $err =~ /WARNING:  $error; zeroing out page$/mg), 1, '... with one warning');
	unlike($err, qr/ERROR/, '... and no error');
}
$node->restart;

# ---- a damaged heap block that is all-visible ------------------------------------

same(walk('SELECT a, id FROM visible WHERE a >= 0 ORDER BY a'),
	qr/^$rows rows\n/, 'index-only scan of all-visible blocks reads none of them');
same(walk('SELECT a, id, w FROM visible WHERE a >= 0 ORDER BY a'),
	qr/^$bad rows, XX001: invalid page in block $visible_block /, 'index scan of the same');

# ---- a heap file that is too short --------------------------------------------------

$scan = 'SELECT a, id, w FROM short WHERE a >= 0 ORDER BY a';
$only = 'SELECT a, id FROM short WHERE a >= 0 ORDER BY a';
for my $query ($scan, $only)
{
	my $kind = 'heap too short, ' . ($query eq $scan ? 'index scan' : 'index-only scan');
	my $missing = qr/could not read blocks? $missing_block(?:\.\.$missing_block)? in file "\Q$file{short}\E": /;

	same(walk($query), qr/^$first_missing rows, XX001: $missing/, $kind);
	same(walk("$query LIMIT $first_missing"), qr/^$first_missing rows\n/, "$kind, LIMIT before it");
	same(walk("$query DESC"), qr/^\d+ rows, XX001: could not read block/, "$kind, backward");
	same("SELECT count(*) FROM ($query OFFSET 0) s", qr/ERROR:  $missing/, "$kind, no cursor");
	nothing_left($kind);
}

# ---- a damaged leaf page ----------------------------------------------------------------

$scan = 'SELECT a, id, w FROM leaf WHERE a >= 0 ORDER BY a';
$only = 'SELECT a, id FROM leaf WHERE a >= 0 ORDER BY a';
$error = "XX001: invalid page in block $leaves[9][0] of relation ";
$error .= ($node->pg_version >= 18 ? "\"$file{leaf_a}\"" : $file{leaf_a});

for my $query ($scan, $only)
{
	my $kind = 'damaged leaf page, ' . ($query eq $scan ? 'index scan' : 'index-only scan');

	same_or_earlier(walk($query), $before, $error, $kind);
	same_or_earlier(walk("$query DESC"), $behind, $error, "$kind backward");
	same(walk("$query LIMIT $leaves[0][1]"), qr/^$leaves[0][1] rows\n/, "$kind, LIMIT on the first leaf page");
	nothing_left($kind);
}

# right behind the first leaf page
$error = "XX001: invalid page in block $second[1][0] of relation ";
$error .= ($node->pg_version >= 18 ? "\"$file{second_a}\"" : $file{second_a});
for my $columns ('a, id', 'a, id, w')
{
	my $query = "SELECT $columns FROM second WHERE a >= 0 ORDER BY a";
	my $first = $second[0][1];
	my $rest = $first - 5;

	for my $limit (1, 2, $first - 1, $first)
	{
		same(walk("$query LIMIT $limit"), qr/^$limit rows\n/, "damaged second leaf page, $columns, LIMIT $limit");
	}
	same(walk("$query OFFSET 5 LIMIT $rest"), qr/^$rest rows\n/,
		"damaged second leaf page, $columns, OFFSET and LIMIT");
	same_or_earlier(walk("$query LIMIT " . ($first + 1)), $first, $error,
		"damaged second leaf page, $columns, LIMIT behind the first");
}
nothing_left('damaged second leaf page');

# ---- an index file that is too short ---------------------------------------------------------

$scan = 'SELECT a, id, w FROM cut_index WHERE a >= 0 ORDER BY a';
%text = transcripts_of($node, \%modes, walk($scan));
my ($after, $missing_leaf) = $text{off} =~ /^(\d+) rows, (XX001: could not read block.*)$/m;
ok(defined $after, 'index file too short: an error') or diag($text{off});
same_or_earlier(walk($scan), $after, $missing_leaf, 'index file too short');
same(walk("$scan LIMIT $cut_index[0][1]"), qr/^$cut_index[0][1] rows\n/, 'index file too short, LIMIT on the first leaf page');
nothing_left('index file too short');

# ---- a segment of the heap that is missing ------------------------------------------------------

# A heap of more than a gigabyte, most of it a hole, has a second segment file, which goes
# missing.  Advice for a block in it must not raise the error before its row is due.
my $segment = 1024 * 1024 * 1024;

make_table('far');
my $far = path_of($node, 'far');
$node->stop;
truncate $far, $segment or die $!;
my $sparse = (stat $far)[12] * 512 < $segment / 2;
SKIP:
{
	skip 'no sparse files here', 2 + 2 * keys %modes unless $sparse;

	$node->start;
	$node->safe_psql('postgres', "INSERT INTO far SELECT $rows + i, i, repeat('w', 820) FROM generate_series(1, 10) i");
	my $near = $node->safe_psql('postgres',
		"SELECT count(*) FROM far WHERE (ctid::text::point)[0] < $segment / $block_size");
	cmp_ok($near, '<', $rows + 10, 'rows in the second segment');
	$node->stop;
	unlink "$far.1" or die $!;
	$node->start;

	$scan = 'SELECT a, id, w FROM far WHERE a >= 0 ORDER BY a';
	same(walk($scan, $near), qr/^$near rows\n/, 'missing segment, closed before it');
	same(walk($scan), qr/^$near rows, 58P01: could not open file/, 'missing segment');
	nothing_left('missing segment');
}
$node->start unless $sparse;

cmp_ok(activated($node), '>', 0, 'scans have looked ahead');
check_log($node);
$node->stop;

done_testing();
