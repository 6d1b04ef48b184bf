# 007_standby.pl - look-ahead on a streaming standby.
#
# On a standby rows are removed by replay, not by VACUUM in the same server, and dead entries
# must never be marked.  Checked here:
#   1. While the primary updates, deletes and vacuums, forced scans on the standby return what
#      a sequential scan of the same snapshot returns.
#   2. Replay is not held up by an idle cursor longer than by stock: a cursor that has read
#      ahead keeps no page pinned that stock would not, so replay of VACUUM gets its cleanup locks.
#   3. Scans that replay cancels leave nothing behind; promotion works, and the indexes of
#      both servers are whole.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_server(
	'primary',
	streaming => 1,
	conf => "fsync = off\nshared_buffers = 8MB\n",
	extensions => [ 'amcheck', 'pageinspect', 'pg_buffercache' ]);
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
# forever: who waits for whom shall not be decided by a timeout
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\nhot_standby_feedback = off\n");
$standby->start;

$primary->safe_psql('postgres', random_table('t', 6000) . q(
	CREATE TABLE idle (id int, a int, w text) WITH (autovacuum_enabled = off);
	INSERT INTO idle SELECT i, i, repeat('w', 500) FROM generate_series(1, 3000) i;
	CREATE INDEX idle_a ON idle (a) WITH (fillfactor = 20);
	VACUUM ANALYZE idle;));
$primary->wait_for_catchup($standby);

# ---- 1. correct results while replay goes on -----------------------------------

my $file = $primary->basedir . '/writer.sql';
append_to_file($file, q(
\set a random(1, 5900)
UPDATE t SET a = (a * 31 + 7) % 60000, b = (b + 1) % 10 WHERE id BETWEEN :a AND :a + 15;
DELETE FROM t WHERE id = :a AND id % 10 = 0;
INSERT INTO t SELECT 1 + (SELECT max(id) FROM t), :a * 7, :a % 10, 'new' WHERE :a % 5 = 0;
));
append_to_file("$file.vacuum", "VACUUM (TRUNCATE off) t;\n\\sleep 100 ms\n");
my @writers;
for my $f ($file, "$file.vacuum")
{
	my $pid = fork() // die 'cannot fork';

	if ($pid == 0)
	{
		open(STDOUT, '>', "$f.out") && open(STDERR, '>&', \*STDOUT) || die $!;
		exec 'pgbench', '-n', '-c', 1, '-T', 600, '-f', $f, '-d', $primary->connstr('postgres');
	}
	push @writers, $pid;
}

my $digest = 'count(*), sum(id), sum(a::bigint), sum(b), sum(length(w))';
my ($same, $cancelled, $wrong) = (0, 0, '');
for my $round (1 .. 25)
{
	my $what = read_in_several_ways($standby, $round, "SELECT $digest FROM t",
		"SELECT $digest FROM (SELECT * FROM t ORDER BY a, id OFFSET 0) s",
		"SELECT $digest FROM (SELECT * FROM t ORDER BY a DESC, id DESC OFFSET 0) s",
		"SELECT $digest FROM (SELECT * FROM t WHERE b IN (0,1,2,3,4,5,6,7,8,9) ORDER BY b, id OFFSET 0) s");

	if ($what eq 'canceled') { $cancelled++; }
	elsif ($what eq 'same') { $same++; }
	else { $wrong .= "round $round: $what\n"; }
}
is($wrong, '', 'scans on the standby agree with a sequential scan');
cmp_ok($same, '>=', 10, "... $same times, cancelled $cancelled times");
kill 'INT', @writers;
waitpid($_, 0) for @writers;
# their last statements end without them
$primary->poll_query_until('postgres', q(SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'))
  or die 'writers do not end';
$primary->wait_for_catchup($standby);
cmp_ok(activated($standby), '>', 20, 'look-ahead was at work on the standby');
is( $standby->safe_psql('postgres', forced() . "SELECT $digest FROM (SELECT * FROM t ORDER BY a, id OFFSET 0) s"),
	$primary->safe_psql('postgres', stock() . "SELECT $digest FROM t"),
	'the standby has what the primary has');

# dead entries are marked by neither: a standby's scan must not touch the index
my $dead = q(SELECT coalesce(sum(dead::int), 0) FROM generate_series(1, pg_relation_size('t_a') / 8192 - 1) p,
	bt_page_items('t_a', p::int) WHERE (SELECT type FROM bt_page_stats('t_a', p::int)) = 'l');
$primary->safe_psql('postgres', 'VACUUM t; DELETE FROM t WHERE id % 3 = 0');
$primary->wait_for_catchup($standby);
my $before = $standby->safe_psql('postgres', $dead);
$standby->safe_psql('postgres', forced() . "SELECT $digest FROM (SELECT * FROM t ORDER BY a, id OFFSET 0) s") for 1 .. 2;
is($standby->safe_psql('postgres', $dead), $before, 'no entry is marked dead on the standby');

# ---- 2. replay and an idle cursor ------------------------------------------------

# Rows that die before the cursor's snapshot exist on every heap page but the cursor's.
for my $mode ('stock', 'forced')
{
	my $settings = $mode eq 'stock' ? stock() : forced();

	# the table's first pages stay as they are: the cursor will stand there
	$primary->safe_psql('postgres', "DELETE FROM idle WHERE id > 200 AND id % 10 = " . ($mode eq 'stock' ? 1 : 2));
	$primary->wait_for_catchup($standby);
	my $s = $standby->background_psql('postgres');
	$s->query_safe($settings . "BEGIN; DECLARE c CURSOR FOR SELECT id, w FROM idle WHERE a >= 5 ORDER BY a; MOVE 20 FROM c;");
	cmp_ok(pinned($standby), '<=', 2, "$mode: buffers pinned by the idle cursor");
	$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on, TRUNCATE off) idle');
	my $lsn = $primary->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	$primary->safe_psql('postgres', 'SELECT txid_current()');
	ok($standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$lsn'"),
		"$mode: replay goes on beside an idle cursor");
	is($s->query_safe('MOVE ALL FROM c'), '', "$mode: the cursor goes on");
	$s->query_safe('FETCH BACKWARD 1 FROM c; FETCH ABSOLUTE 1 FROM c; COMMIT;');
	$s->quit;
}

# no kind of cursor has a buffer pinned that stock would not have: it would hold up VACUUM's records
$primary->safe_psql('postgres', 'CREATE INDEX ON idle USING hash (a); CREATE INDEX idle_w ON idle (w, a) WITH (fillfactor = 20)');
# (rows of a page that is not all-visible are visited)
$primary->safe_psql('postgres', 'VACUUM idle; BEGIN; UPDATE idle SET id = -id; ROLLBACK; SELECT txid_current()');
$primary->wait_for_catchup($standby);

# what an idle cursor keeps pinned
sub pinned_by
{
	my ($node, $settings, $query) = @_;
	my $s = $node->background_psql('postgres');

	$s->query_safe($settings . "SET enable_nestloop = off; SET enable_mergejoin = off; BEGIN; DECLARE c CURSOR FOR $query; MOVE 20 FROM c;");
	my $pinned = pinned_relations($node);
	$s->query_safe('COMMIT');
	$s->quit;
	return $pinned;
}
my @queries = (
	'SELECT a FROM idle WHERE a >= 5 ORDER BY a',
	'SELECT a FROM idle WHERE a >= 5 ORDER BY a DESC',
	"SELECT a FROM idle WHERE w > '' ORDER BY w, a",
	'SELECT a FROM idle WHERE a = ANY (ARRAY(SELECT generate_series(5, 3000, 7))) ORDER BY a',
	'SELECT id, w FROM idle WHERE a >= 5 ORDER BY a',
	'SELECT i.w, t.id FROM idle i JOIN t ON t.id = i.id WHERE i.a >= 5');
for my $query (@queries)
{
	is(pinned_by($standby, forced(), $query), pinned_by($standby, stock(), $query), "pins on the standby: $query");
}
my $more = grep { pinned_by($primary, forced(), $_) ne pinned_by($primary, stock(), $_) } @queries;
cmp_ok($more, '>', 0, 'on the primary buffers are pinned ahead');
nothing_pinned($standby, 'afterwards');

# ---- 3. cancelled by replay, promotion ---------------------------------------------

# (it would not be read while replay waits for the cursor)
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = 0');
$standby->restart;
my $s = $standby->background_psql('postgres');
$s->query_safe(forced() . 'BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR SELECT * FROM t ORDER BY a, id; MOVE 100 FROM c;');
my $logged = -s $standby->logfile;
# (the checkpoint flushes what VACUUM has logged, so that the standby is sure to get it)
$primary->safe_psql('postgres', 'DELETE FROM t WHERE id % 3 = 1; VACUUM t; CHECKPOINT');
$primary->wait_for_catchup($standby);
# an idle transaction is not cancelled but terminated
like(substr(slurp_file($standby->logfile), $logged), qr/due to conflict with recovery/, 'a cursor in the way of replay goes');
{
	local $SIG{PIPE} = 'IGNORE';		# psql may be gone by now
	eval { $s->quit };
}
nothing_pinned($standby, 'after the conflict');
is(check_indexes($standby), '', 'indexes of the standby');

$standby->promote;
is( $standby->safe_psql('postgres', forced() . "SELECT $digest FROM (SELECT * FROM t ORDER BY a, id OFFSET 0) s"),
	$standby->safe_psql('postgres', stock() . "SELECT $digest FROM t"),
	'after promotion');
$standby->safe_psql('postgres', forced() . 'DELETE FROM t WHERE id % 3 = 2 AND a > 30000; SELECT count(w) FROM (SELECT w FROM t ORDER BY a, id OFFSET 0) s');
is(check_indexes($standby), '', 'indexes after promotion');
is(check_indexes($primary), '', 'indexes of the primary');
check_log($_) for ($primary, $standby);
$standby->stop;
$primary->stop;

done_testing();
