# 022_write.pl - INSERT, UPDATE and COPY FROM that look ahead.
#
# test/sql/write.sql compares what statements do, and 014 the pages of indexes, byte by byte.
# Checked here:
#   1. The WAL of the same statements is that of stock, record by record, but for LSNs and
#      transaction IDs: on two copies of a database, with look-ahead off on one.  What is left
#      out is the pruning of pages, which comes when the plan reads them.
#   2. A statement that is canceled, runs into a timeout, or fails leaves nothing pinned.
#   3. Concurrent writers of all kinds, beside DELETE, VACUUM, aborts and errors: amcheck finds
#      nothing, and no key is there twice.
#   4. The same after a crash in the middle of that.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = 10;
my $node = new_server(
	'main',
	conf => "shared_buffers = 8MB\nmax_connections = 40\nlog_statement = none\nmax_wal_size = 2GB\nfull_page_writes = off\n"
	  . "deadlock_timeout = 100ms\n",
	extensions => [ 'amcheck', 'pg_buffercache', 'pg_walinspect' ]);

my $check = 'bt_index_parent_check(c.oid, heapallindexed => true, rootdescend => true)';
my $off = "SET pg_lookahead.enable = off;\n";
my %ways = (
	forced => "SET pg_lookahead.force = on;\n",
	'low thresholds' => "SET pg_lookahead.miss_threshold = 0; SET pg_lookahead.min_read_time = 0;\n");

# ---- 1. WAL ------------------------------------------------------------------------

my $data = $node->basedir . '/rows.data';
$node->safe_psql('postgres', 'CREATE DATABASE template');
$node->safe_psql(
	'template', qq(
	CREATE TABLE src AS SELECT i, hashint4(i) & 65535 AS k, md5(i::text) AS s FROM generate_series(1, 3000) i;
	CREATE TABLE t (id int PRIMARY KEY, k int, s text, u uuid, n int);
	CREATE INDEX ON t (k);
	CREATE INDEX ON t (s, k);
	CREATE INDEX ON t ((k / 3)) WHERE k % 2 = 0;
	CREATE UNIQUE INDEX ON t (u);
	CREATE INDEX ON t USING hash (n);
	INSERT INTO t SELECT 100000 + i, k, s, md5(s)::uuid, i % 50 FROM src;
	CREATE TABLE p (id int, k int, s text) PARTITION BY HASH (k);
	CREATE TABLE p0 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	CREATE TABLE p1 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	CREATE INDEX ON p (s);
	CREATE INDEX ON p (k, id);
	COPY (SELECT i + 200000, k, s, md5(s || 'c')::uuid, 7 FROM src) TO '$data';
	VACUUM ANALYZE;));

my @statements = (
	'INSERT INTO t SELECT i, k, s FROM src',
	"INSERT INTO t SELECT i + 98500, k, s, md5(s || 'x')::uuid FROM src ON CONFLICT (id) DO NOTHING",
	"INSERT INTO t SELECT i + 101000, k + 1, s FROM src ON CONFLICT (id) DO UPDATE SET k = excluded.k, n = t.n + 1",
	'UPDATE t SET k = k + 1 WHERE id % 3 = 0',
	'UPDATE t SET n = n + 1 WHERE id < 1000',
	"COPY t FROM '$data'",
	'INSERT INTO t SELECT i % 2000 + 500000, k, s FROM src',
	'INSERT INTO p SELECT * FROM src',
	"UPDATE p SET s = s || 'z'",
	'DELETE FROM t WHERE id % 5 = 0',
	'INSERT INTO t SELECT i + 600000, k, s FROM src ORDER BY k');

# The records of a statement that runs alone in a new session.
sub wal_of
{
	my ($database, $settings, $statement) = @_;
	# a commit flushes what a statement has left that failed
	my $now = "SELECT pg_logical_emit_message(true, 'a', 'b') - '0/0'::pg_lsn IS NULL; SELECT pg_current_wal_flush_lsn()";
	my ($from) = $node->safe_psql($database, $now) =~ /([0-9A-F]+\/[0-9A-F]+)$/;

	$node->psql($database, "$settings $statement");
	my ($to) = $node->safe_psql($database, $now) =~ /([0-9A-F]+\/[0-9A-F]+)$/;
	my $records = $node->safe_psql(
		'postgres', qq(
		SELECT resource_manager, record_type, record_length, regexp_replace(description, '[0-9]{4}-.*|[a-zA-Z]*(xid|xmax|onflict[a-zA-Z]*):? [0-9]+', '', 'g'),
			regexp_replace(block_ref, 'rel [0-9]+/[0-9]+/', 'rel ', 'g')
		FROM pg_get_wal_records_info('$from', '$to')
		WHERE resource_manager NOT IN ('Standby', 'LogicalMessage') AND record_type NOT LIKE 'FPI%' AND record_type NOT LIKE 'PRUNE%' ORDER BY start_lsn));
	return split /\n/, $records;
}

for my $way (sort keys %ways)
{
	my $differ = 0;
	my $count = 0;

	for my $database (qw(stock ahead))
	{
		$node->safe_psql('postgres', "DROP DATABASE IF EXISTS $database");
		$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE template");
	}
	for my $statement (@statements)
	{
		my @stock = wal_of('stock', $off, $statement);
		my @ahead = wal_of('ahead', $ways{$way}, $statement);

		$count += @stock;
		next if join("\n", @stock) eq join("\n", @ahead);
		$differ++;
		for my $i (0 .. (@stock > @ahead ? @stock : @ahead) - 1)
		{
			next if ($stock[$i] // '') eq ($ahead[$i] // '');
			diag("$way, $statement: record $i\n  stock " . ($stock[$i] // '-') . "\n  ahead " . ($ahead[$i] // '-'));
			last;
		}
	}
	is($differ, 0, "$way: the WAL is that of stock");
	cmp_ok($count, '>', 10000, "$way: records");
}
cmp_ok($node->safe_psql('postgres', "SELECT scans_activated FROM pg_stat_lookahead WHERE kind = 'index insert'"),
	'>', 0, 'rows were looked ahead over');
$node->safe_psql('postgres', "DROP DATABASE $_") for qw(stock ahead template);

# ---- 2. errors -----------------------------------------------------------------------

my $writers = q(
	CREATE TABLE c1 (k int, w text, x int, u uuid);
	CREATE UNIQUE INDEX ON c1 (k);
	CREATE INDEX ON c1 (w, x);
	CREATE INDEX ON c1 (x);
	CREATE INDEX ON c1 (u) WHERE x % 2 = 0;
	CREATE UNLOGGED TABLE c2 (k uuid PRIMARY KEY, x int);
	CREATE INDEX ON c2 (x DESC NULLS FIRST) INCLUDE (k);
	CREATE TABLE c3 (k int, w text) PARTITION BY RANGE (k);
	CREATE TABLE c3a PARTITION OF c3 FOR VALUES FROM (MINVALUE) TO (10000);
	CREATE TABLE c3b PARTITION OF c3 FOR VALUES FROM (10000) TO (MAXVALUE);
	CREATE UNIQUE INDEX ON c3 (k);
	CREATE INDEX ON c3 (w);
	INSERT INTO c1 SELECT i, 'w' || i, i % 100, md5(i::text)::uuid FROM generate_series(1, 20000, 2) i;
	INSERT INTO c2 SELECT md5(i::text)::uuid, i % 100 FROM generate_series(1, 20000, 2) i;
	INSERT INTO c3 SELECT i, 'w' || i FROM generate_series(1, 20000, 3) i;);
$node->safe_psql('postgres', $writers);
$node->safe_psql('postgres', "COPY (SELECT 100000 + i, 'c', i, md5(i::text)::uuid FROM generate_series(1, 500) i) TO '$data'");

my $session = open_session($node, $ways{forced});
my $pid = pid_of($session);
ask($session, 'CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF new.k = 30300 THEN PERFORM pg_advisory_xact_lock(1); END IF; RETURN new; END $$');
ask($session, 'CREATE TRIGGER w BEFORE INSERT ON c1 FOR EACH ROW EXECUTE FUNCTION waits()');
my $locker = open_session($node, '');
ask($locker, 'SELECT pg_advisory_lock(1)');
my $insert = "INSERT INTO c1 SELECT 30000 + i, 'a', i FROM generate_series(1, 1000) i";
start_waiting($node, $session, $pid, $insert);
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
like(ask($session, 'SELECT 1'), qr/^1\nERROR:  canceling statement due to user request/, 'canceled');
nothing_pinned($node, 'canceled');
like(ask($session, "SET statement_timeout = '200ms';\n$insert"), qr/^ERROR:  canceling statement due to statement timeout/, 'timeout');
nothing_pinned($node, 'timeout');
reset_timeout($session);
ask($session, 'DROP TRIGGER w ON c1');
like(ask($session, 'INSERT INTO c1 SELECT 40000 + i % 700, NULL, 1 FROM generate_series(1, 1000) i'), qr/duplicate key/, 'a row fails');
like(ask($session, 'INSERT INTO c1 SELECT 40000 + i, NULL, 1 / (700 - i) FROM generate_series(1, 1000) i'), qr/division by zero/, 'the plan fails');
is(ask($session, 'SELECT count(*) FROM c1 WHERE k BETWEEN 30000 AND 50000'), '0', 'nothing was inserted');
nothing_pinned($node, 'errors');
$_->quit for $session, $locker;

# ---- 3. concurrent ---------------------------------------------------------------------

my %files = (
	insert => "INSERT INTO c1 SELECT k, 'w' || k % 500, k % 50, md5(k::text)::uuid FROM (SELECT (random() * 20000)::int k FROM generate_series(1, 100)) s ON CONFLICT DO NOTHING;",
	upsert => 'INSERT INTO c2 SELECT DISTINCT md5(k::text)::uuid, nullif(k % 50, 1) FROM (SELECT (random() * 20000)::int k FROM generate_series(1, 100)) s ORDER BY 1 ON CONFLICT (k) DO UPDATE SET x = c2.x + 1;',
	partitions => "INSERT INTO c3 SELECT DISTINCT (random() * 20000)::int, 'p' FROM generate_series(1, 100) i ORDER BY 1 ON CONFLICT (k) DO UPDATE SET w = 'u' || c3.k;",
	plain => q(DO $$ BEGIN INSERT INTO c1 SELECT k, 'p' || k, NULL FROM (SELECT DISTINCT 20000 + (random() * 4000)::int k FROM generate_series(1, 40)) s ORDER BY k; EXCEPTION WHEN unique_violation THEN NULL; END $$;),
	copy => "BEGIN;\nSELECT pg_advisory_xact_lock(2);\nDELETE FROM c1 WHERE k > 100000;\nCOPY c1 FROM '$data';\nCOMMIT;",
	abort => "BEGIN; INSERT INTO c1 SELECT 30000 + (random() * 1e4)::int, 'a' || i, i FROM generate_series(1, 100) i ON CONFLICT DO NOTHING; ROLLBACK;",
	error => q(DO $$ BEGIN INSERT INTO c1 SELECT 50000 + (random() * 1e6)::int, 't' || i, 10 / (900 - i) FROM generate_series(1, 1000) i ON CONFLICT DO NOTHING; EXCEPTION WHEN division_by_zero THEN NULL; END $$;),
	delete => "\\set a random(1, 24000)\nDELETE FROM c1 WHERE k BETWEEN :a AND :a + 200;\nDELETE FROM c2 WHERE x = :a % 60;\nDELETE FROM c3 WHERE k BETWEEN :a AND :a + 200;",
	update => "\\set a random(1, 20000)\nUPDATE c1 SET x = x + 1, w = 'u' || left(w, 10) WHERE k IN (SELECT k FROM c1 WHERE k BETWEEN :a AND :a + 80 FOR UPDATE SKIP LOCKED);",
	vacuum => "VACUUM (TRUNCATE off) c1;\nVACUUM (TRUNCATE off) c2;\nVACUUM (TRUNCATE off) c3;\n\\sleep 100 ms\n");

sub start_stress
{
	my ($time) = @_;
	my @runs;
	my $n = 0;

	for my $name (sort keys %files)
	{
		my $file = $node->basedir . "/$name.sql";
		my $options = $n++ % 2 ? '-c pg_lookahead.force=on' : '-c pg_lookahead.miss_threshold=0 -c pg_lookahead.min_read_time=0';

		unlink $file;
		append_to_file($file, $files{$name});
		push @runs, start_pgbench($node, $time, $name, $options, $name =~ /^(insert|upsert|plain)$/ ? 2 : 1, '--max-tries=1000', '-f', $file);
	}
	return @runs;
}

sub check_whole
{
	my ($name) = @_;

	is(check_indexes($node, $check), '', "$name: amcheck");
	is( $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;
			SELECT (SELECT count(*) FROM (SELECT k FROM c1 GROUP BY k HAVING count(*) > 1) d),
				(SELECT count(*) FROM (SELECT k FROM c2 GROUP BY k HAVING count(*) > 1) d),
				(SELECT count(*) FROM (SELECT k FROM c3 GROUP BY k HAVING count(*) > 1) d)"),
		'0|0|0', "$name: no duplicates");
	return;
}

check_pgbench($_) for start_stress($seconds);
nothing_pinned($node, 'concurrent');
check_whole('concurrent');

# ---- 4. crash ---------------------------------------------------------------------------

my @runs = start_stress(60);
sleep 3;
$node->stop('immediate');
$_->{handle}->finish for @runs;
$node->start;
check_whole('after a crash');
check_log($node);
$node->stop;
done_testing();
