# pg_cron.pl - its jobs run, in background workers that look ahead, and do what they do by hand.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

use LookAhead;
use PostgreSQL::Test::Cluster;

my $work = 'SELECT o.id, t.id AS t, t.j FROM o JOIN t ON t.k = o.k';
my @nodes;

# Loaded before it, and after it; both at once, since versions before 1.5 begin a job once a minute.
for my $order ('before', 'after')
{
	my $node = PostgreSQL::Test::Cluster->new("pg_cron_$order");
	my $libraries = $order eq 'before' ? 'pg_lookahead,pg_cron' : 'pg_cron,pg_lookahead';

	$node->init(extra => [ '--no-locale', '--encoding=UTF8' ]);
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'\ncron.database_name = 'beside'\n"
		  . "cron.use_background_workers = on\nmax_worker_processes = 24\nautovacuum = off\nfsync = off\njit = off\n"
		  . "log_line_prefix = '%d: '\nshared_buffers = 2MB\n");
	$node->start;
	$node->safe_psql('postgres', 'CREATE DATABASE beside; ALTER DATABASE beside SET pg_lookahead.force = on;
		ALTER DATABASE beside SET enable_hashjoin = off; ALTER DATABASE beside SET enable_mergejoin = off;
		CREATE EXTENSION pg_lookahead');
	$node->safe_psql('beside', tables() . "CREATE EXTENSION pg_cron; CREATE TABLE done AS $work LIMIT 0;");
	Beside::report($node, 'pg_cron');
	my $version = $node->safe_psql('beside', q(SELECT extversion FROM pg_extension WHERE extname = 'pg_cron'));
	my $often = $version =~ /^1\.[0-4](\D|$)/ ? '* * * * *' : '2 seconds';
	$node->safe_psql('postgres', 'SELECT pg_stat_lookahead_reset()');
	$node->safe_psql('beside', "SELECT cron.schedule('$often', 'TRUNCATE done; INSERT INTO done $work')");
	push @nodes, [ $order, $node ];
}
for (@nodes)
{
	my ($order, $node) = @$_;
	my $name = "pg_cron, loaded $order it";

	ok( $node->poll_query_until('beside', q(SELECT count(*) > 0 FROM cron.job_run_details WHERE status <> 'running' AND end_time IS NOT NULL)),
		"$name: a job has ended");
	$node->safe_psql('beside', 'SELECT cron.unschedule(jobid) FROM cron.job');
	is($node->safe_psql('beside', 'SELECT DISTINCT status FROM cron.job_run_details WHERE end_time IS NOT NULL'),
		'succeeded', "$name: ... without an error");
	is( $node->safe_psql('beside', 'SELECT count(*), sum(hashtext(d::text)) FROM done d'),
		$node->safe_psql('beside', "SET pg_lookahead.enable = off; SELECT count(*), sum(hashtext(d::text)) FROM ($work) d"),
		"$name: the same rows");
	cmp_ok(activated($node), '>', 0, "$name: it looked ahead");
	check_log($node, "$name: server log");
	$node->stop;
}

done_testing();
