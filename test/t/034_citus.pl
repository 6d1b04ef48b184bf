# 034_citus.pl - on every node of a Citus cluster.
#
# Citus distributes tables over servers; each shard is an ordinary table there, which look-ahead may
# read ahead.  Citus demands to be the first of shared_preload_libraries.
#   1. Loaded first, both work; in the other order Citus refuses to start, as with any other library.
#   2. Questions to distributed, reference and local tables, writes, COPY and index builds give the same answers and
#      plans with look-ahead off, on and forced on all nodes.
#   3. A shard that is rebalanced to another node, and a node that crashes, change nothing of that.
#
# Skipped where the server has no Citus: it is not in Debian, and has to be built from its source.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($sharedir) = run_command([ 'pg_config', '--sharedir' ]);
plan skip_all => 'this server has no Citus (see docs/shards.md)' unless -e "$sharedir/extension/citus.control";

# ---- servers ----------------------------------------------------------------------

my $conf = "max_prepared_transactions = 50\nwal_level = logical\ncitus.shard_count = 8\ncitus.node_conninfo = 'sslmode=disable'\n"
  . "citus.enable_statistics_collection = off\ncitus.enable_repartition_joins = on\nmax_connections = 60\nmax_worker_processes = 20\nfsync = off\n";
my @nodes;
for my $name ('coordinator', 'worker1', 'worker2')
{
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(allows_streaming => 'logical');
	$node->append_conf('postgresql.conf',
		"shared_preload_libraries = 'citus, pg_lookahead'\ncitus.local_hostname = '" . $node->host . "'\nautovacuum = off\njit = off\nshared_buffers = 8MB\n$conf");
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION citus; CREATE EXTENSION pg_lookahead');
	push @nodes, $node;
}
my ($coordinator, @workers) = @nodes;

# ---- 1. the order of libraries --------------------------------------------------------

my $odd = PostgreSQL::Test::Cluster->new('odd');
$odd->init;
$odd->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_lookahead, citus'\n$conf");
is($odd->start(fail_ok => 1), 0, 'Citus refuses to be loaded after pg_lookahead');
like(slurp_file($odd->logfile), qr/Citus has to be loaded first/, '... and says so');

# ---- tables -----------------------------------------------------------------------------

$coordinator->safe_psql('postgres', "SELECT citus_set_coordinator_host('" . $coordinator->host . "', " . $coordinator->port . ')');
$coordinator->safe_psql('postgres', "SELECT citus_add_node('" . $_->host . "', " . $_->port . ')') for @workers;
$coordinator->safe_psql(
	'postgres', q(
	CREATE TABLE kv (k bigint PRIMARY KEY, owner int, v text);
	CREATE TABLE orders (o bigint PRIMARY KEY, customer int, price numeric);
	CREATE TABLE lines (o bigint, n int, part int, quantity int, w text, PRIMARY KEY (o, n));
	CREATE TABLE parts (part int PRIMARY KEY, name text);
	CREATE TABLE here (id int PRIMARY KEY, part int);
	CREATE TABLE written (k bigint PRIMARY KEY, owner int, v text);
	SELECT create_distributed_table('kv', 'k');
	SELECT create_distributed_table('orders', 'o');
	SELECT create_distributed_table('lines', 'o', colocate_with => 'orders');
	SELECT create_distributed_table('written', 'k', colocate_with => 'kv');
	SELECT create_reference_table('parts');
	INSERT INTO parts SELECT i, 'part ' || i FROM generate_series(1, 500) i;
	INSERT INTO kv SELECT i, abs(hashint4(i::int)) % 300, repeat(md5(i::text), 4) FROM generate_series(1, 20000) i;
	INSERT INTO orders SELECT i, abs(hashint4(i::int)) % 400, i FROM generate_series(1, 4000) i;
	INSERT INTO lines SELECT i, j, 1 + abs(hashint8(i * 8 + j)) % 500, j, repeat('w', 100) FROM generate_series(1, 4000) i, generate_series(1, 4) j;
	INSERT INTO here SELECT i, i * 3 FROM generate_series(1, 100) i;
	CREATE INDEX ON kv (owner, k);
	CREATE INDEX ON orders (customer);
	CREATE INDEX ON lines (part);));
$coordinator->safe_psql('postgres', "VACUUM ANALYZE $_") for qw(kv orders lines parts here);

# ---- 2. the same answers -------------------------------------------------------------------

my $plans = 'enable_seqscan = off; enable_bitmapscan = off; enable_hashjoin = off; enable_mergejoin = off; max_parallel_workers_per_gather = 0';
my %mode = (
	off => 'pg_lookahead.enable = off; pg_lookahead.force = off',
	on => 'pg_lookahead.enable = on; pg_lookahead.force = off',
	forced => 'pg_lookahead.enable = on; pg_lookahead.force = on; pg_lookahead.enable_subplan = on; pg_lookahead.enable_toast = on; pg_lookahead.enable_index_build = on');
my @questions = (
	'SELECT count(*), sum(hashtext(v)) FROM kv WHERE owner BETWEEN 10 AND 40',
	'SELECT owner, k, left(v, 5) FROM kv WHERE owner >= 100 ORDER BY owner, k LIMIT 300',
	'SELECT * FROM kv WHERE k = 77',
	'SELECT count(*), sum(l.quantity), min(l.w) FROM orders o JOIN lines l USING (o) WHERE o.customer BETWEEN 10 AND 60',
	'SELECT count(*), sum(l.quantity), min(p.name) FROM orders o JOIN lines l USING (o) JOIN parts p USING (part) WHERE o.customer < 50',
	'SELECT count(*), sum(x.k) FROM lines l JOIN kv x ON x.k = l.part WHERE l.part < 100',
	'SELECT h.id, count(*), sum(l.quantity) FROM here h JOIN lines l USING (part) GROUP BY h.id ORDER BY h.id',
	'WITH c AS MATERIALIZED (SELECT customer, count(*) AS n FROM orders GROUP BY customer) SELECT sum(n), count(*) FROM c JOIN kv ON k = customer',
	'SELECT o, (SELECT count(*) FROM lines l WHERE l.o = orders.o AND l.quantity > 1) FROM orders WHERE customer < 20 ORDER BY o',
	'SELECT 1 / (o - 9) FROM orders WHERE customer >= 0 ORDER BY customer, o');
my @writes = (
	'INSERT INTO written SELECT k, owner, v FROM kv WHERE owner < 100',
	"INSERT INTO written SELECT k, owner, 'again' FROM kv WHERE owner BETWEEN 50 AND 120 ON CONFLICT (k) DO UPDATE SET v = excluded.v",
	'UPDATE written SET owner = owner + 1 WHERE owner < 60',
	'DELETE FROM written WHERE owner > 110',
	'CREATE INDEX ON written (owner, k)',
	'SELECT count(*), sum(hashtext(written::text)) FROM written',
	'SELECT owner, k, v FROM written WHERE owner > 90 ORDER BY owner, k LIMIT 200');

# Settings of all nodes
sub set_all
{
	my (@settings) = @_;

	for my $node (@nodes)
	{
		$node->safe_psql('postgres', "ALTER SYSTEM SET $_") for @settings;
		$node->reload;
		my ($name, $value) = $settings[-1] =~ /^(\S+) = (\S+)/;
		$node->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'") or die "$name is not $value";
	}
	return;
}

# What all of it prints, errors included; and, of questions, the plans
sub transcript
{
	my (@statements) = @_;
	my $text = '';

	for my $sql (@statements)
	{
		my ($ret, $out, $err) = $coordinator->psql('postgres', $sql);
		$err =~ s/^psql:<stdin>:\d+: //mg;
		# names of the servers that have run into it
		$err =~ s/^(?:CONTEXT|DETAIL|LOCATION): .*\n?//mg;
		$text .= "$sql\n$out\n$err\n";
		next if $sql !~ /^(?:SELECT|WITH)/;
		($ret, $out, $err) = $coordinator->psql('postgres', "EXPLAIN (COSTS OFF) $sql");
		$text .= "$out\n$err\n";
	}
	return $text;
}

sub check_answers
{
	my ($name) = @_;
	my %said;

	for my $mode (qw(off on forced))
	{
		set_all(split /; /, $mode{$mode});
		$said{$mode} = transcript(@questions);
		$coordinator->safe_psql('postgres', 'TRUNCATE written');
		$said{$mode} .= transcript(@writes);
		$coordinator->safe_psql('postgres', 'DROP INDEX IF EXISTS written_owner_k_idx');
	}
	like($said{off}, qr/division by zero/, "$name: an error, too");
	is($said{on}, $said{off}, "$name: look-ahead on: same answers, errors and plans");
	is($said{forced}, $said{off}, "$name: forced");
	return;
}

set_all(split /; /, $plans);
check_answers('cluster');
cmp_ok(activated($_), '>', 20, 'look-ahead was at work on ' . $_->name) for @workers;

# a shard that is copied by COPY, through the coordinator
$coordinator->safe_psql('postgres', 'TRUNCATE written');
my $file = $coordinator->basedir . '/kv';
$coordinator->safe_psql('postgres', "COPY (SELECT k, owner, v FROM kv ORDER BY k) TO '$file'; COPY written FROM '$file'");
is($coordinator->safe_psql('postgres', 'SELECT count(*), sum(hashtext(written::text)) FROM written'),
	$coordinator->safe_psql('postgres', 'SELECT count(*), sum(hashtext(kv::text)) FROM kv'), 'COPY, forced');

# ---- 3. events -------------------------------------------------------------------------------

my $shard = $coordinator->safe_psql('postgres',
	"SELECT shardid FROM citus_shards WHERE table_name = 'kv'::regclass AND nodeport = " . $workers[0]->port . ' ORDER BY 1 LIMIT 1');
$coordinator->safe_psql('postgres', "SELECT citus_move_shard_placement($shard, '"
	  . $workers[0]->host . "', " . $workers[0]->port . ", '" . $workers[1]->host . "', " . $workers[1]->port . ", 'block_writes')");
check_answers('a shard has moved');
$workers[1]->stop('immediate');
$workers[1]->start;
check_answers('a node has crashed');
check_log($_, $_->name . ': server log is clean') for @nodes;
$_->stop for @nodes;
done_testing();
