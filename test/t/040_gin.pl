# 040_gin.pl - inserts into GIN indexes that are larger than shared buffers: pages are read ahead, by single
# rows, too; sessions that insert and flush pending lists at the same time; damaged pages.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', init => ['--data-checksums'], conf => "shared_buffers = 16MB\n", extensions => [ 'pageinspect', 'pg_buffercache' ]);

# keys of which some are in every tenth row, and have posting trees, and most are rare
$node->safe_psql('postgres', q(
	CREATE FUNCTION words(n int) RETURNS text[] LANGUAGE sql IMMUTABLE AS
		$$SELECT array_agg(CASE WHEN k < 3 THEN 'f' || abs(hashint4(n * 30 + k) % 20) ELSE md5((hashint4(n * 30 + k) % 300000)::text) END)
			FROM generate_series(1, 12) k$$;
	CREATE TABLE at_once (id int, w text[]);
	INSERT INTO at_once SELECT i, words(i) FROM generate_series(1, 30000) i;
	CREATE INDEX at_once_w ON at_once USING gin (w) WITH (fastupdate = off);
	CREATE TABLE listed (id int, w text[]);
	INSERT INTO listed SELECT * FROM at_once;
	CREATE INDEX listed_w ON listed USING gin (w) WITH (gin_pending_list_limit = 64);));

# ---- pages are read ahead --------------------------------------------------------

sub issued
{
	my ($sql) = @_;
	my $session = open_session($node, forced());
	my $count = q(SELECT leaf_pages_issued FROM pg_stat_lookahead WHERE kind = 'index insert');
	my $before = ask($session, $count);

	ask($session, $sql);
	return ask($session, $count) - $before;
}

cmp_ok(issued('INSERT INTO at_once SELECT i, words(i) FROM generate_series(30001, 30020) i'), '>', 50, 'rows: pages are read ahead');
cmp_ok(issued('INSERT INTO at_once VALUES (30021, words(30021))'), '>', 4, 'a single row: likewise');
is(issued('INSERT INTO listed SELECT i, words(i) FROM generate_series(30001, 30400) i'), 0, 'with a pending list: none');

# What the indexes find must be what is in the tables.
sub check
{
	my ($table, $name) = @_;
	my $sum = "SELECT count(*), sum(n), sum(s)
		FROM (SELECT 'f' || generate_series(0, 25) k UNION ALL SELECT md5((97 * generate_series(0, 3000))::text)) k,
		LATERAL (SELECT count(*) n, sum(id) s FROM $table WHERE w @> ARRAY[k]) l";
	my $by_index = $node->safe_psql('postgres', "SET enable_seqscan = off; SET pg_lookahead.enable = off; $sum");

	my $by_table = $node->safe_psql('postgres', "SET pg_lookahead.enable = off;
		SELECT count(*), sum(coalesce(n, 0)), sum(s)
		FROM (SELECT 'f' || generate_series(0, 25) k UNION ALL SELECT md5((97 * generate_series(0, 3000))::text)) k
		LEFT JOIN (SELECT k, count(*) n, sum(id) s FROM (SELECT DISTINCT id, ctid, unnest(w) k FROM $table) u GROUP BY k) t USING (k)");

	is($by_index, $by_table, $name);
	return;
}

check($_, "$_: all is found") for qw(at_once listed);

# ---- sessions at the same time ------------------------------------------------------

$node->safe_psql('postgres', 'ALTER INDEX listed_w SET (gin_pending_list_limit = 64)');
$node->pgbench(
	'--no-vacuum --client=5 --transactions=150',
	# (of the random seed that dev/test sets)
	0, [qr{processed: 750/750}], [qr{^(pgbench: setting random seed to \d+\s*)?$}],
	'inserts, and flushes by all of them',
	{
		'040_insert@6' => q(
			SET pg_lookahead.force = on;
			\set n random(40000, 1000000)
			BEGIN;
			INSERT INTO at_once VALUES (:n, words(:n)), (-:n, words(:n + 1));
			INSERT INTO listed SELECT i, words(i) FROM generate_series(:n, :n + 20) i;
			END;),
		'040_update@2' => q(
			SET pg_lookahead.force = on;
			\set n random(1, 30000)
			UPDATE listed SET w = words(:n + 7) WHERE id = :n AND id % 5 = 0;
			UPDATE at_once SET w = w || 'f3'::text WHERE id = :n;),
		'040_clean@1' => q(
			SET pg_lookahead.force = on;
			SELECT gin_clean_pending_list('listed_w');),
		'040_vacuum@1' => q(
			VACUUM listed;)
	});
check($_, "$_: all is found after that") for qw(at_once listed);
nothing_pinned($node);

# ---- damage --------------------------------------------------------------------------

# By block: a leaf page of the entry tree, the root of a posting tree, a page of the list.
sub block_of
{
	my ($index, $flags) = @_;

	return $node->safe_psql('postgres', "SELECT min(b) FROM generate_series(2, pg_relation_size('$index') / 8192 - 1) b
		WHERE (SELECT flags FROM gin_page_opaque_info(get_raw_page('$index', b::int)))::text LIKE '$flags'");
}

$node->safe_psql('postgres', q(
	ALTER INDEX listed_w SET (gin_pending_list_limit = 4096);
	INSERT INTO listed SELECT i, words(i) FROM generate_series(1, 500) i;
	CHECKPOINT;));
my %bad = (
	'a leaf page' => [ 'at_once_w', block_of('at_once_w', '{leaf}') ],
	'a page of a posting tree' => [ 'at_once_w', block_of('at_once_w', '{data%') ],
	'a page of the list' => [ 'listed_w', block_of('listed_w', '{list%') ]);

for my $name (sort keys %bad)
{
	my ($index, $block) = @{ $bad{$name} };
	my $path = path_of($node, $index);
	my %answer;

	like($block, qr/^\d+$/, "$name: there is one");
	$node->stop;
	my $good = slurp_file($path);
	damage($path, $block);
	$node->start;
	for my $mode ('off', 'on')
	{
		my ($code, $out, $err) = $node->psql('postgres',
			"SET pg_lookahead.enable = $mode; SET pg_lookahead.force = on; SET client_min_messages = error;
			BEGIN; INSERT INTO at_once SELECT i, words(i) FROM generate_series(1, 3000) i; COMMIT;
			SELECT gin_clean_pending_list('listed_w') > 0");
		$err =~ s/^psql:<stdin>:\d+: //mg;
		$answer{$mode} = "$out/$err";
		last if $mode eq 'on' || $name eq 'a page of the list';
	}
	if ($name eq 'a page of the list')
	{
		my ($code, $out, $err) = $node->psql('postgres',
			"SET pg_lookahead.force = on; SET client_min_messages = error; SELECT gin_clean_pending_list('listed_w')");

		like($err, qr/invalid page in block $block of relation/, "$name: an error");
	}
	else
	{
		like($answer{off}, qr/invalid page in block $block of relation/, "$name: an error");
		is($answer{on}, $answer{off}, "$name: the same one");
	}
	$node->stop;
	overwrite($path, 0, $good);
	$node->start;
}
check_log($node);

done_testing();
