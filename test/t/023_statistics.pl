#
# 023_statistics.pl - statistics of statements and indexes: restarts, crashes, full tables, the log.
#
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use LookAhead;
use Time::HiRes qw(usleep);

my $node = PostgreSQL::Test::Cluster->new('statistics');
$node->init;
$node->append_conf('postgresql.conf', <<'EOT');
shared_preload_libraries = 'pg_lookahead'
compute_query_id = on
restart_after_crash = off
pg_lookahead.force = on
pg_lookahead.max_statements = 40
pg_lookahead.max_indexes = 15
enable_seqscan = off
enable_bitmapscan = off
autovacuum = off
max_parallel_workers_per_gather = 0
EOT
$node->start;
my $file = $node->data_dir . '/pg_stat/pg_lookahead.stat';

$node->safe_psql('postgres', <<'EOT');
create extension pg_lookahead;
create table t (a int, w text);
insert into t select i * 7919 % 10007, repeat('w', 100) from generate_series(1, 10006) i;
create index t_a on t (a);
vacuum analyze t;
EOT

my $scan = 'select count(w) from (select w from t where a between 1000 and 3000 order by a offset 0) s';
my $active = 'select count(*), sum(executions) from pg_stat_lookahead_statements where scans_activated > 0';
my $indexes = "select relname, indexrelname, scans_activated from pg_stat_lookahead_indexes where relname = 't'";
my $workers = <<'EOT';
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set min_parallel_index_scan_size = 0;
EOT
my $reasons = "select reasons from pg_stat_lookahead_statements where reasons <> '{}'";

sub scan_twice
{
	$node->safe_psql('postgres', 'select pg_stat_lookahead_reset()');
	$node->safe_psql('postgres', $scan) for 1 .. 2;
	return;
}

sub kill_backend
{
	my $session = open_session($node, 'select 1');
	my $offset = -s $node->logfile;

	kill 'KILL', pid_of($session);
	eval { ask($session, 'select 1') };
	# the postmaster may learn of it later than we do
	$node->wait_for_log(qr/was terminated by signal 9/, $offset);
	return;
}

# ---- restarts ----------------------------------------------------------------------

scan_twice();
is($node->safe_psql('postgres', $indexes), 't|t_a|2', 'scans of an index are counted');
$node->safe_psql('postgres',
	'set enable_hashjoin = off; set enable_mergejoin = off; set enable_memoize = off; '
	. 'select count(y.w) from (select a from t where a < 20 and random() >= 0) x join t y on y.a = x.a');
is($node->safe_psql('postgres', $active . " and reasons = '{}'"), '1|2', 'executions are counted');
my $before = $node->safe_psql('postgres', $reasons);
like($before, qr/volatile/, 'a reason is kept');

my $scans = $node->safe_psql('postgres', $indexes);
$node->stop;
ok(-e $file, 'a clean shutdown leaves a file');
$node->start;
ok(!-e $file, '... which the next start removes');
is($node->safe_psql('postgres', $active . " and reasons = '{}'"), '1|2', 'executions after a restart');
is($node->safe_psql('postgres', $indexes), $scans, 'indexes after a restart');
is($node->safe_psql('postgres', $reasons), $before, 'reasons after a restart');
$node->safe_psql('postgres', $scan);
is($node->safe_psql('postgres', $active . " and reasons = '{}'"), '1|3', 'they are added to');

# the server ends when a backend has crashed
kill_backend();
usleep(100_000) while kill 0, $node->{_pid};
ok(!-e $file, 'a crash leaves no file');
$node->{_pid} = undef;
$node->append_conf('postgresql.conf', 'restart_after_crash = on');
$node->start;
is($node->safe_psql('postgres', $active), '0|', 'after it, statistics begin anew');

scan_twice();
$node->stop('immediate');
ok(!-e $file, 'nor does an immediate shutdown');
$node->start;

# ---- a backend that crashes: the server starts over by itself ------------------------------

scan_twice();
kill_backend();
usleep(200_000) while ($node->psql('postgres', 'select 1'))[0] != 0;
is($node->safe_psql('postgres', $active), '0|', 'statistics begin anew when a backend has crashed');
scan_twice();
is($node->safe_psql('postgres', $active), '1|2', '... and are kept from then on');

# ---- files that are no good ------------------------------------------------------------------

sub restart_with
{
	my ($name, $change) = @_;
	my $contents;

	scan_twice();
	$node->stop;
	$contents = slurp_file($file);
	open(my $out, '>:raw', $file) or die "$file: $!";
	print $out $change->($contents);
	close($out);
	my $offset = -s $node->logfile;
	$node->start;
	like(slurp_file($node->logfile, $offset), qr/LOG:  ignoring invalid data in file "pg_stat\/pg_lookahead.stat"/, "$name: a line in the log");
	is($node->safe_psql('postgres', $active), '0|', "$name: nothing is taken from it");
	ok(!-e $file, "$name: the file is gone");
	return;
}

restart_with('a file cut short', sub { return substr($_[0], 0, length($_[0]) - 100) });
restart_with('an empty file', sub { return '' });
restart_with('a changed byte', sub { my $c = $_[0]; substr($c, length($c) / 2, 1) = chr(ord(substr($c, length($c) / 2, 1)) ^ 1); return $c });
restart_with('another format', sub { my $c = $_[0]; substr($c, 0, 4) = "none"; return $c });
restart_with('random bytes', sub { return join('', map { chr(($_ * 7919) % 256) } 1 .. 5000) });

$node->append_conf('postgresql.conf', 'pg_lookahead.save_statistics = off');
$node->reload;
scan_twice();
$node->stop;
ok(!-e $file, 'save_statistics = off: no file');
$node->start;
$node->append_conf('postgresql.conf', 'pg_lookahead.save_statistics = on');
$node->reload;

# ---- more statements and indexes than there is room for ---------------------------------------

$node->safe_psql('postgres', 'select pg_stat_lookahead_reset()');
$node->safe_psql('postgres', $scan) for 1 .. 30;
$node->safe_psql('postgres', join(';', map { "select count(w), " . join(', ', 1 .. $_) . " from (select w from t where a between 10 and 20 order by a offset 0) s" } 1 .. 100));
$node->safe_psql('postgres', join(';', map { "create table t$_ as select * from t where a < 50; create index on t$_ (a); select count(w) from (select w from t$_ order by a offset 0) s" } 1 .. 30));
is($node->safe_psql('postgres', 'select statements <= statements_max, statements_max, statements_dealloc > 0, indexes <= indexes_max, indexes_max, indexes_dealloc > 0 from pg_stat_lookahead_info'),
	't|40|t|t|15|t', 'the least used entries give way');
is($node->safe_psql('postgres', 'select count(*) from pg_stat_lookahead_statements where toplevel and executions >= 30'), '1', '... and those that are used most stay');
is($node->safe_psql('postgres', "select count(*) from pg_stat_lookahead_indexes where relname = 't'"), '1', '... also of indexes');
$node->restart;
is($node->safe_psql('postgres', 'select statements between 30 and 40 from pg_stat_lookahead_info'), 't', 'a full table is saved and restored');

# ---- parallel workers ----------------------------------------------------------------------------

$node->safe_psql('postgres', 'select pg_stat_lookahead_reset()');
$node->safe_psql('postgres', <<"EOT");
$workers
select count(w) from t where a > 10;
EOT
is($node->safe_psql('postgres', $active), '1|1', 'workers add to the entry of their leader');
my $reads = 'select max(blocks_read) from pg_stat_lookahead_statements where scans_activated > 0';
cmp_ok($node->safe_psql('postgres', $reads), '<=',
	$node->safe_psql('postgres', "select pg_relation_size('t') / 8192 + pg_relation_size('t_a') / 8192 + 10"),
	'... and what they read is counted once');

$node->safe_psql('postgres', <<"EOT");
create function parallel() returns bigint language plpgsql as \$\$ begin return (select count(w) from t where a > 10); end \$\$;
select pg_stat_lookahead_reset();
$workers
select parallel();
EOT
is( $node->safe_psql(
		'postgres', 'select toplevel, executions from pg_stat_lookahead_statements where scans_activated > 0 order by toplevel'),
	"f|1\nt|1",
	'... also where a function has started them, and to that of the statement around it');

$node->safe_psql('postgres', <<"EOT");
select pg_stat_lookahead_reset();
set parallel_leader_participation = off;
$workers
select count(w) from t where a > 10;
select count(w) from t where a > 10;
EOT
is($node->safe_psql('postgres', $active), '1|2', '... and where their leader has no figures of its own');

$node->safe_psql('postgres', <<'EOT');
create function stable_one() returns int stable language plpgsql as $$
begin return (select count(w) from (select w from t where a between 100 and 300 order by a offset 0) s); end $$;
select pg_stat_lookahead_reset();
explain select * from t where a < stable_one();
EOT
is($node->safe_psql('postgres', $active . ' and not toplevel'), '1|1', 'what is executed while a statement is planned is not toplevel');
is($node->safe_psql('postgres', $active . ' and toplevel'), '1|1', '... but counted for the EXPLAIN around it');

# ---- COPY FROM -----------------------------------------------------------------------------------

my $rows = $node->basedir . '/rows';
$node->safe_psql('postgres', "create table copied (like t including indexes); copy t to '$rows'; select pg_stat_lookahead_reset()");
$node->safe_psql('postgres', "copy copied from '$rows'");
is($node->safe_psql('postgres', "$active and toplevel and queryid <> 0"), '1|1', 'COPY FROM has an entry');
is(($node->psql('postgres', "copy copied from '$rows' where 1 / (a - 9000) < 2"))[0], 3, 'one that fails');
is($node->safe_psql('postgres', 'select count(*), sum(executions) from pg_stat_lookahead_statements where toplevel and scans_activated > 0'),
	'2|2', '... is counted');
$node->safe_psql('postgres', <<"EOT");
truncate copied;
select pg_stat_lookahead_reset();
create function counted() returns trigger language plpgsql as \$\$ begin perform count(w) from (select w from t where a between 100 and 300 order by a offset 0) s; return null; end \$\$;
create trigger counted after insert on copied execute function counted();
copy copied from '$rows';
EOT
is($node->safe_psql('postgres', 'select toplevel, executions from pg_stat_lookahead_statements where scans_activated > 0 order by 1'),
	"f|1\nt|1", 'a query of its trigger has an entry of its own');

# ---- the log -------------------------------------------------------------------------------------

my $offset = -s $node->logfile;
$node->safe_psql('postgres', "set pg_lookahead.log_min_saved = -1; $scan");
unlike(slurp_file($node->logfile, $offset), qr/look-ahead saved/, 'log_min_saved = -1: nothing');
$node->safe_psql('postgres', "set pg_lookahead.log_min_saved = '1h'; $scan");
unlike(slurp_file($node->logfile, $offset), qr/look-ahead saved/, 'log_min_saved = 1h: nothing');
$node->safe_psql('postgres', "set pg_lookahead.log_min_saved = 0; select 1; $scan");
my $log = slurp_file($node->logfile, $offset);
like($log, qr/LOG:  look-ahead saved -?[0-9.]+ ms \(error bound [0-9.]+ ms\), waited [0-9.]+ ms/, 'log_min_saved = 0: a line');
like($log, qr/DETAIL:  Blocks: [0-9]+ foreseen, .* Query text: .*select count\(w\)/, '... with the query');
unlike($log, qr/Query text: .*select 1/, '... and none without look-ahead');

# ---- none, and no shared memory ---------------------------------------------------------------------

$node->append_conf('postgresql.conf', "pg_lookahead.max_statements = 0\npg_lookahead.max_indexes = 0");
$node->restart;
$node->safe_psql('postgres', $scan);
is($node->safe_psql('postgres', 'select (select count(*) from pg_stat_lookahead_statements), (select count(*) from pg_stat_lookahead_indexes), statements_max, indexes_max from pg_stat_lookahead_info'),
	'0|0|0|0', 'with sizes of 0 nothing is kept');

$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\npg_lookahead.max_statements = 40\npg_lookahead.max_indexes = 15");
$node->restart;
for my $view ('pg_stat_lookahead_statements', 'pg_stat_lookahead_indexes', 'pg_stat_lookahead_info')
{
	my ($code, $out, $err) = $node->psql('postgres', "load 'pg_lookahead'; select * from $view");
	like($err, qr/must be loaded via "shared_preload_libraries"/, "$view says what is missing");
}
$node->safe_psql('postgres', "load 'pg_lookahead'; set pg_lookahead.log_min_saved = 0; $scan");
pass('without shared memory a session can log');
$node->stop;

done_testing();
