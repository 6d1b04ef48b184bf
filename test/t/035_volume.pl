# 035_volume.pl - a volume whose reads fail, end early or stall, and that fills up.
#
# What has been advised has not been read, so a bad block may only be noticed when its row is asked for,
# and a query that never asks for it must not fail.  test/volume starts this script, and does what it
# needs root for (ask_volume); without it, the script is skipped.
#
# As in 005_ioerror.pl, tables have one row on each heap block, each query runs with look-ahead off and forced
# with several settings, and what psql prints must be the same; index pages are read ahead for real, so where
# one is bad the same error may come some rows earlier.  Unlike there, files are whole: the error is the device's, and
# is gone when the volume is mended.  Tables lie in a tablespace on the volume; catalogs and WAL do not.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $volume = $ENV{LA_TEST_VOLUME} or plan skip_all => 'test/volume has not started it';
my $pipes = $ENV{LA_TEST_VOLUME_PIPES};
my $rows = 1000;
my $block_size = 8192;

mkdir "$volume/space" or die $!;
my $node = new_server(
	'main',
	extensions => [ 'pg_buffercache', 'pageinspect', 'pg_visibility', 'amcheck' ],
	conf => "pg_lookahead.enable_subplan = on\npg_lookahead.enable_toast = on\n");
my $major = int($node->safe_psql('postgres', 'SHOW server_version_num') / 10000);
$node->safe_psql('postgres', "CREATE TABLESPACE volume LOCATION '$volume/space'");

my %modes = (
	off => stock(),
	'ring 64, distance 64' => forced(),
	'ring 2, distance 64' => forced(ring => 2),
	'ring 64, distance 1' => forced(distance => 1));
my @forced = grep { $_ ne 'off' } sort keys %modes;
my $error = 'could not read blocks? B(?:\.\.B)? in file "pg_tblspc/[^"]+": (?:Input/output error|read only \d+ of \d+ bytes)';

# ---- helpers ---------------------------------------------------------------

# Have test/volume do something.
sub ask_volume
{
	my ($what) = @_;

	append_to_file("$pipes/request", "$what\n");
	my $answer = slurp_file("$pipes/answer");
	chomp($answer);
	die "$what: $answer" unless $answer eq 'done';
	return;
}

# The server starts with these bytes of files unreadable, and nothing cached.  Each is a path, the
# block, and which part of it.
sub break_blocks
{
	my (@blocks) = @_;

	$node->stop;
	ask_volume('drop');
	for my $block (@blocks)
	{
		my ($path, $number, $from) = @$block;

		ask_volume(sprintf('break %s %d-%d', $path, $number * $block_size + ($from // 0), ($number + 1) * $block_size));
	}
	$node->start;
	return;
}

sub real_path
{
	my ($relation) = @_;
	my $path = path_of($node, $relation);
	my ($link, $rest) = $path =~ m{^(.*/pg_tblspc/\d+)/(.*)$};

	return readlink($link) . "/$rest";
}

sub bad
{
	my ($block) = @_;

	return qr/@{[ $error =~ s{B}{$block}gr ]}/;
}

sub same
{
	my ($sql, $expected, $name) = @_;

	return same_transcripts($node, \%modes, $sql, $expected, $name);
}

# With look-ahead, the same error after at most as many rows.
sub same_or_earlier
{
	my ($sql, $expected, $name) = @_;
	my %text = transcripts_of($node, \%modes, $sql);
	my ($after) = $text{off} =~ /^(\d+) rows, /;

	like($text{off}, $expected, "$name: off");
	no_later($text{$_}, $text{off}, $after, "$name: $_") for @forced;
	return;
}

sub nothing_left
{
	my ($name) = @_;

	return nothing_pinned($node, $name);
}

# ---- tables ------------------------------------------------------------------

create_walk($node);
for my $table (qw(whole half leaf))
{
	$node->safe_psql(
		'postgres', qq(
		CREATE TABLE $table (a int, id int, w text) WITH (fillfactor = 10) TABLESPACE volume;
		INSERT INTO $table SELECT (i * 7919 + 123) % $rows, i, repeat('w', 820) FROM generate_series(1, $rows) i;
		CREATE UNIQUE INDEX ${table}_a ON $table (a) INCLUDE (id) WITH (fillfactor = 10) TABLESPACE volume;
		ANALYZE $table;));
}
$node->safe_psql(
	'postgres', qq(
	CREATE TABLE long (a int PRIMARY KEY, doc text) TABLESPACE volume;
	ALTER TABLE long ALTER doc SET STORAGE EXTERNAL;
	INSERT INTO long SELECT i, repeat(md5(i::text), 200) FROM generate_series(0, 299) i;
	CREATE TABLE dups (k int, n int, w text) WITH (fillfactor = 10) TABLESPACE volume;
	INSERT INTO dups SELECT i / 4, i, repeat('w', 820) FROM generate_series(0, 1199) i ORDER BY hashint4(i);
	CREATE INDEX dups_k ON dups (k, n) TABLESPACE volume;
	CREATE TABLE numbers (i int PRIMARY KEY);
	INSERT INTO numbers SELECT generate_series(0, $rows - 1);
	CREATE TABLE child (k int REFERENCES whole (a));
	CREATE TABLE words (id int, list int[]) TABLESPACE volume;
	INSERT INTO words SELECT i, ARRAY[i % 300, 1000 + i % 7, 5000 + i] FROM generate_series(1, 8000) i;
	CREATE INDEX words_gin ON words USING gin (list) WITH (fastupdate = off) TABLESPACE volume;
	CREATE INDEX words_hash ON words USING hash (id) TABLESPACE volume;
	ANALYZE long, dups, numbers, words;));

my $bad = 436;					# key of the row on the bad block
my %block = map { $_ => $node->safe_psql('postgres', "SELECT (ctid::text::point)[0] FROM $_ WHERE a = $bad") } qw(whole half);

# the leaf page that the key is on
my $leaf = $node->safe_psql(
	'postgres', qq(
	SELECT b FROM generate_series(1, pg_relation_size('leaf_a') / $block_size - 1) b, bt_page_stats('leaf_a', b) s,
		bt_page_items('leaf_a', b) i
	WHERE s.type = 'l' AND i.ctid = (SELECT ctid FROM leaf WHERE a = $bad)));
my $toast = $node->safe_psql('postgres', "SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'long'");
my $toast_block = $node->safe_psql('postgres',
	"SELECT (ctid::text::point)[0] FROM $toast WHERE chunk_seq = 1 ORDER BY chunk_id OFFSET 200 LIMIT 1");
# the third of four rows with one key
my $third = $node->safe_psql('postgres', 'SELECT (ctid::text::point)[0] FROM dups WHERE k = 200 AND n = 802');
my %path = map { $_ => real_path($_) } qw(whole half dups leaf_a words_gin words_hash);
$path{toast} = real_path($toast);

# ---- blocks that cannot be read ----------------------------------------------------

my @methods = $major >= 18 ? ('worker', 'sync') : ('');
for my $method (@methods)
{
	my $what = $method ? ", io_method $method" : '';

	# from 19 on, a query that reads a page may set it all-visible, and index-only scans pass it over
	$node->safe_psql('postgres', "SELECT pg_truncate_visibility_map('$_')") for qw(whole half);
	$node->append_conf('postgresql.conf', "io_method = $method") if $method;
	break_blocks([ $path{whole}, $block{whole} ], [ $path{half}, $block{half}, $block_size / 2 ],
		[ $path{dups}, $third ], [ $path{leaf_a}, $leaf ], [ $path{toast}, $toast_block ]);

	for my $table (qw(whole half))
	{
		my $name = "$table block bad$what";
		my $message = bad($block{$table});
		my $scan = "SELECT a, id, w FROM $table WHERE a >= 0 ORDER BY a";
		my $only = "SELECT a, id FROM $table WHERE a >= 0 ORDER BY a";

		for my $query ($scan, $only)
		{
			my $kind = "$name, " . ($query eq $scan ? 'index scan' : 'index-only scan');

			same(walk($query), qr/^$bad rows, (?:58030|XX001): $message/, $kind);
			same(walk($query, $bad), qr/^$bad rows\n/, "$kind, closed before it");
			same(walk("$query LIMIT $bad"), qr/^$bad rows\n/, "$kind, LIMIT before it");
			same(walk("$query DESC"), qr/^@{[ $rows - $bad - 1 ]} rows, (?:58030|XX001): $message/, "$kind, backward");
			same("SELECT count(*), sum(id) FROM ($query LIMIT $bad) s", qr/^$bad\|/, "$kind, no cursor, LIMIT");
			same("SELECT count(*) FROM ($query OFFSET 0) s", qr/ERROR:  $message/, "$kind, no cursor");
		}
		same("SELECT count(*), sum(length(w)) FROM $table WHERE a < $bad", qr/^$bad\|/, "$name, not asked for");
		same("SELECT count(*) FROM $table WHERE a = ANY (ARRAY[1, 5, $bad, 7]) AND w <> ''", qr/ERROR:  $message/, "$name, array");
		same(
			"SET LOCAL enable_bitmapscan = on; SET LOCAL enable_indexscan = off; SELECT count(*), sum(length(w)) FROM $table WHERE a BETWEEN 430 AND 440",
			qr/ERROR:  $message/, "$name, bitmap scan");

		# as the inner side, and below a correlated subquery: the error is the row's
		my $nested = 'SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; ';
		same($nested . walk("SELECT i, w FROM numbers JOIN $table ON a = i ORDER BY i"),
			qr/^$bad rows, (?:58030|XX001): $message/, "$name, nested loop");
		same($nested . walk("SELECT i, w FROM numbers JOIN $table ON a = i ORDER BY i LIMIT $bad"),
			qr/^$bad rows\n/, "$name, nested loop, LIMIT before it");
		same(walk("SELECT i, (SELECT length(w) FROM $table WHERE a = i) FROM numbers ORDER BY i"),
			qr/^$bad rows, (?:58030|XX001): $message/, "$name, subquery");
		same(walk("SELECT i, (SELECT length(w) FROM $table WHERE a = i) FROM numbers ORDER BY i LIMIT $bad"),
			qr/^$bad rows\n/, "$name, subquery, LIMIT before it");
		same("UPDATE $table SET w = 'new' WHERE a BETWEEN 430 AND 440", qr/ERROR:  $message/, "$name, UPDATE");
		same("DELETE FROM $table WHERE a < $bad", qr/^$/, "$name, DELETE of others");
		same("MERGE INTO $table USING numbers ON a = i AND i > 400 WHEN MATCHED THEN UPDATE SET id = 0",
			qr/ERROR:  $message/, "$name, MERGE");
		nothing_left($name);
	}
	same("INSERT INTO child SELECT i FROM numbers WHERE i < $bad", qr/^$/, "foreign key, row not asked for$what");
	same('INSERT INTO child SELECT i FROM numbers WHERE i % 4 = 0', qr/ERROR:  @{[ bad($block{whole}) ]}/, "foreign key$what");
	same("COPY child FROM PROGRAM 'seq 0 4 800'", qr/ERROR:  @{[ bad($block{whole}) ]}/, "foreign key, COPY$what");

	# a row has matches that are not needed, or not before something else fails
	my $inner = 'SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL join_collapse_limit = 1; ';
	my $left = 'FROM numbers LEFT JOIN dups ON k = i AND w <> \'\'';
	my $third_bad = bad($third);
	same("$inner SELECT count(*) FROM numbers WHERE i < 300 AND EXISTS (SELECT FROM dups WHERE k = i AND w <> '' OFFSET 0)",
		qr/^300\n/, "EXISTS$what");
	same("$inner SELECT count(*) FROM numbers WHERE EXISTS (SELECT FROM dups WHERE k = i AND w <> '')", qr/^300\n/, "semi join$what");
	same("$inner SELECT count(*) FROM numbers WHERE NOT EXISTS (SELECT FROM dups WHERE k = i AND w <> '')", qr/^700\n/, "anti join$what");
	same("$inner SELECT sum((SELECT length(w) FROM dups WHERE k = i AND n > 0 ORDER BY n LIMIT 1)) FROM numbers",
		qr/^@{[ 300 * 820 ]}\n/, "subquery with LIMIT$what");
	same("$inner SELECT sum((SELECT length(w) FROM dups WHERE k = i AND n > 0 ORDER BY n DESC LIMIT 1 OFFSET 1)) FROM numbers",
		qr/ERROR:  $third_bad/, "subquery with OFFSET$what");
	same("$inner SELECT count(*) FROM (SELECT w $left ORDER BY i LIMIT 802) s", qr/^802\n/, "join left between the matches of a row$what");
	same($inner . walk("SELECT i, n, w $left ORDER BY i", 802), qr/^802 rows\n/, "closed there$what");
	same($inner . walk("SELECT i, n, w $left ORDER BY i"), qr/^802 rows, (?:58030|XX001): $third_bad/, "not left there$what");
	same($inner . walk("SELECT i, n, 1 / (n - 801) $left ORDER BY i"), qr/^801 rows, 22012: /, "another error comes first$what");
	nothing_left("matches that are not needed$what");

	# values out of line
	my $values = 'SELECT a, md5(doc) FROM long ORDER BY a';
	same(walk($values), qr/^200 rows, (?:58030|XX001): @{[ bad($toast_block) ]}/, "value out of line$what");
	same(walk("$values LIMIT 199"), qr/^199 rows\n/, "value out of line, LIMIT before it$what");
	same('SELECT count(*), sum(octet_length(doc)) FROM long', qr/^300\|/, "value out of line, not fetched$what");

	# leaf pages
	my $leaves = 'SELECT a, id, w FROM leaf WHERE a >= 0 ORDER BY a';
	same_or_earlier(walk($leaves), qr/^\d+ rows, (?:58030|XX001): @{[ bad($leaf) ]}/, "leaf page$what");
	same(walk("$leaves LIMIT 3"), qr/^3 rows\n/, "leaf page, LIMIT long before it$what");
	same("SELECT count(*) FROM leaf WHERE a = $bad", qr/ERROR:  @{[ bad($leaf) ]}/, "leaf page, one row$what");
	same("INSERT INTO leaf VALUES ($bad, 0, '')", qr/ERROR:  @{[ bad($leaf) ]}/, "leaf page, INSERT$what");
	nothing_left("bad blocks$what");

	# the session goes on when the volume is whole again
	my $session = open_session($node, forced());
	my $query = "SELECT count(*), sum(length(w)) FROM (SELECT w FROM whole WHERE a >= 0 ORDER BY a OFFSET 0) s";
	like(ask($session, $query), qr/^ERROR:  @{[ bad($block{whole}) ]}/, "before it is mended$what");
	ask_volume('mend');
	is(ask($session, $query), "$rows|" . 820 * $rows, "a session goes on after it$what");
	$session->quit;
	same(walk($leaves), qr/^$rows rows\n/, "all leaf pages are there again$what");
}

# pages of other access methods: an error where stock has one, and no wrong answer
for my $index (qw(words_gin words_hash))
{
	my $pages = (-s $path{$index}) / $block_size;
	my $query =
	  $index eq 'words_gin'
	  ? 'SET LOCAL enable_bitmapscan = on; SELECT count(*), sum(id) FROM words WHERE list && ARRAY[17, 1003]'
	  : 'SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_indexscan = on; '
	  . 'SELECT count(*), sum(id) FROM numbers JOIN words ON id = i';
	my %failed;

	# one of the first pages; or all behind them
	for my $page (2, 5, 9, -3)
	{
		break_blocks($page > 0 ? [ $path{$index}, $page ] : map { [ $path{$index}, $_ ] } -$page .. $pages - 1);
		my %text = transcripts_of($node, \%modes, $query);

		is($text{$_}, $text{off}, "$index, page $page: $_") for @forced;
		$failed{ $text{off} =~ /ERROR/ ? 'with' : 'without' }++;
		ask_volume('mend');
	}
	cmp_ok($failed{with} // 0, '>', 0, "$index: stock met bad pages");
}

# ---- reads that fail now and then, and that stall --------------------------------------

my @queries = (
	'SELECT count(*), sum(length(w)) FROM (SELECT w FROM whole WHERE a >= 0 ORDER BY a OFFSET 0) s',
	'SELECT count(*), sum(id) FROM (SELECT id, w FROM half WHERE a >= 0 ORDER BY a DESC OFFSET 0) s WHERE w IS NOT NULL',
	'SELECT count(*), md5(string_agg(md5(doc), NULL ORDER BY a)) FROM long',
	'SELECT count(*), sum((SELECT length(w) FROM whole WHERE a = i)) FROM numbers');
my @answers = map { $node->safe_psql('postgres', stock() . $_) } @queries;

$node->restart;
{
	my $session = open_session($node, forced());
	my (%seen, @strange);

	for my $round (1 .. 6)
	{
		ask_volume('drop');
		# advice fails as often, and hides it
		ask_volume('set eio_ppm=60000');
		for my $i (0 .. $#queries)
		{
			my $got = ask($session, $queries[$i]);

			$seen{ $got eq $answers[$i] ? 'answers' : 'errors' }++;
			push @strange, $got unless $got eq $answers[$i] || $got =~ /^ERROR:  could not .* file "pg_tblspc.*: (?:Input\/output error|read only \d+ of 8192 bytes)$/;
		}
		ask_volume('mend');
	}
	note(join(', ', map { "$_: $seen{$_}" } sort keys %seen));
	is("@strange", '', 'reads that fail now and then: the right answer, or an error');
	cmp_ok($seen{errors} // 0, '>', 0, '... and there were errors');
	nothing_left('reads that fail now and then');

	ask_volume('drop');
	ask_volume('set stall_ppm=2000 stall_us=1500000 short_ppm=300000');
	is(ask($session, $queries[$_]), $answers[$_], "stalled and cut short: query $_") for 0 .. $#queries;

	# a cancel while many reads are under way
	ask_volume('drop');
	ask_volume('set stall_ppm=1000000 stall_us=2000000 short_ppm=0');
	like(ask($session, "SET statement_timeout = '300ms';\n$queries[0]"), qr/statement timeout/, 'a stalled query is canceled');
	ask_volume('mend');
	reset_timeout($session);
	nothing_left('canceled while reads were under way');
	is(ask($session, $queries[$_]), $answers[$_], "after that: query $_") for 0 .. $#queries;
	$session->quit;
}

# ---- no space left ------------------------------------------------------------------------

my $build = "SET LOCAL pg_lookahead.enable_index_build = %s; CREATE INDEX big ON many (k, v) TABLESPACE volume";

$node->safe_psql(
	'postgres', q(
	CREATE TABLE many AS SELECT hashint4(i) AS k, md5(i::text) AS v FROM generate_series(1, 60000) i;
	CREATE TABLE rest (k int, v text) TABLESPACE volume;
	INSERT INTO rest SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
	CREATE UNIQUE INDEX rest_k ON rest (k) TABLESPACE volume;
	CHECKPOINT;));
for my $mode ('off', 'on')
{
	my $full = qr/ERROR:  could not (?:extend|write to|write blocks?) .*No space left on device/;

	ask_volume('fill 2');
	my ($ret, $out, $err) = $node->psql('postgres', 'BEGIN; ' . sprintf($build, $mode));
	like($err, $full, "full volume, index build $mode");
	($ret, $out, $err) = $node->psql('postgres',
		'BEGIN; SET LOCAL temp_tablespaces = volume; SET LOCAL maintenance_work_mem = \'1MB\'; ' . (sprintf($build, $mode) =~ s/TABLESPACE volume//r));
	like($err, $full, "full volume, temporary files of an index build $mode");
	for my $sql (
		'INSERT INTO rest SELECT 1000 + i, md5(i::text) FROM generate_series(1, 200000) i',
		"COPY rest (k) FROM PROGRAM 'seq 1001 300000'",
		'UPDATE rest SET v = repeat(v, 200)')
	{
		($ret, $out, $err) = $node->psql('postgres', ($mode eq 'on' ? forced() . 'SET pg_lookahead.enable_btree_insert = on; ' : stock()) . $sql);
		like($err, $full, "full volume, look-ahead $mode: " . substr($sql, 0, 6));
	}
	ask_volume('mend');
	$node->safe_psql('postgres', 'VACUUM rest; CHECKPOINT');
	is($node->safe_psql('postgres', 'SELECT count(*), sum(k), max(v) = max(md5(k::text)) FROM rest'), '1000|500500|t', "look-ahead $mode: no row lost, none left");
	is($node->safe_psql('postgres', sprintf("BEGIN; $build; SET LOCAL enable_seqscan = off; SELECT count(*) FROM many WHERE k > -2147483648; ROLLBACK", $mode)),
		60000, "index build $mode works when there is room");
}
$node->safe_psql('postgres', 'TRUNCATE rest; CHECKPOINT');
unlike(join(' ', map { -s } grep { /pgsql_tmp/ } glob "$volume/space/*/*/*"), qr/[1-9]/, 'no temporary file is left');

is(check_indexes($node), '', 'indexes are sound');
cmp_ok($node->safe_psql('postgres', 'SELECT sum(blocks_issued) FROM pg_stat_lookahead'), '>', 1000, 'blocks were read ahead');
check_log($node);
$node->stop;

done_testing();
