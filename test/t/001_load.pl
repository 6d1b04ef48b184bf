# 001_load.pl - the three ways to load the library, its settings, view and privileges.
#
# Without shared_preload_libraries look-ahead works and only the server-wide counters are
# missing: the view says so.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $need_preload = qr/pg_lookahead must be loaded via "shared_preload_libraries"/;
my ($ret, $out, $err);

# ---- LOAD ------------------------------------------------------------------

my $node = new_server('main', preload => 0);
$node->safe_psql('postgres', random_table('t', 5000) . 'CREATE ROLE plain LOGIN');
my $scan = q(SELECT count(*), sum(a::bigint * id), sum(length(w)) FROM (SELECT a, id, w FROM t WHERE a > 5000 ORDER BY a OFFSET 0) s);
my $expected = $node->safe_psql('postgres', $scan);

is( $node->safe_psql('postgres', "LOAD 'pg_lookahead'; SHOW pg_lookahead.enable"),
	'on', 'LOAD: settings are there');
is( $node->safe_psql('postgres', "LOAD 'pg_lookahead'; " . forced() . $scan),
	$expected, 'LOAD: forced look-ahead gives the same answer');
($ret, $out, $err) = $node->psql('postgres', "LOAD 'pg_lookahead'; LOAD 'pg_lookahead'; $scan");
is("$out$err", $expected, 'LOAD twice');

# CREATE EXTENSION loads nothing; the functions load the library when they are called
$node->safe_psql('postgres', 'CREATE EXTENSION pg_lookahead');
for my $sql ('SELECT * FROM pg_stat_lookahead', 'SELECT pg_stat_lookahead_reset()')
{
	($ret, $out, $err) = $node->psql('postgres', $sql);
	like($err, qr/ERROR:  $need_preload/, "not preloaded: $sql");
	($ret, $out, $err) = $node->psql('postgres', "LOAD 'pg_lookahead'; $sql");
	like($err, qr/ERROR:  $need_preload/, "loaded by LOAD: $sql");
}
is( $node->safe_psql('postgres', 'SELECT count(*) FROM pg_lookahead_last_statement()'),
	0, 'no last statement in a fresh session');
is( $node->safe_psql(
		'postgres', "LOAD 'pg_lookahead'; " . forced() . qq($scan \\g /dev/null
		SELECT relation, scans_activated, blocks_foreseen > 1000 FROM pg_lookahead_last_statement())),
	't|1|t',
	'LOAD: figures of the last statement');

# what was set before the library came is judged when it comes
($ret, $out, $err) = $node->psql('postgres',
	"SET pg_lookahead.max_distance = 7; LOAD 'pg_lookahead'; SHOW pg_lookahead.max_distance");
is("$out$err", 7, 'a placeholder gets its meaning at LOAD');
($ret, $out, $err) = $node->psql('postgres',
	"SET pg_lookahead.max_distance = 0; LOAD 'pg_lookahead'; SHOW pg_lookahead.max_distance");
is($out, 64, 'an impossible placeholder is dropped at LOAD');
like(
	$err,
	qr/WARNING:  0 is outside the valid range for parameter "pg_lookahead.max_distance" \(1 .. 1024\)/,
	'... with a warning');
($ret, $out, $err) = $node->psql('postgres',
	"SET pg_lookahead.xyz = 1; LOAD 'pg_lookahead'; SHOW pg_lookahead.xyz");
like($err, qr/WARNING:  invalid configuration parameter name "pg_lookahead.xyz", removing it/,
	'an unknown placeholder is removed at LOAD');
like($err, qr/ERROR:  unrecognized configuration parameter "pg_lookahead.xyz"/, '... for good');

($ret, $out, $err) = $node->psql('postgres', "LOAD 'pg_lookahead'", connstr => $node->connstr('postgres') . ' user=plain');
like($err, qr/access to (file|library) "pg_lookahead" is not allowed/, 'LOAD by an ordinary user: as with any library');

# ---- session_preload_libraries ---------------------------------------------

$node->safe_psql('postgres', "ALTER DATABASE postgres SET session_preload_libraries = 'pg_lookahead'");
is( $node->safe_psql(
		'postgres', forced() . qq($scan;
		SELECT kind, relation, index, scans_activated FROM pg_lookahead_last_statement())),
	"$expected\nindex scan|t|t_a|1",
	'session_preload_libraries: look-ahead works');
($ret, $out, $err) = $node->psql('postgres', 'SELECT * FROM pg_stat_lookahead');
like($err, qr/ERROR:  $need_preload/, 'session_preload_libraries: the view is not available');
$node->safe_psql('postgres', 'GRANT SELECT ON t TO plain');
is( $node->safe_psql(
		'postgres',
		forced() . "$scan; SELECT scans_activated FROM pg_lookahead_last_statement()",
		connstr => $node->connstr('postgres') . ' user=plain'),
	"$expected\n1",
	'session_preload_libraries: for an ordinary user');
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET session_preload_libraries');

# ---- shared_preload_libraries, with nonsense in the configuration -----------

$node->append_conf('postgresql.conf', qq(
	shared_preload_libraries = 'pg_lookahead'
	pg_lookahead.max_distance = 5000
	pg_lookahead.miss_threshold = 5
	pg_lookahead.no_such_thing = on
	max_worker_processes = 8
));
$node->restart;
my $log = slurp_file($node->logfile);
like($log, qr/5000 is outside the valid range for parameter "pg_lookahead.max_distance"/,
	'an impossible value in postgresql.conf is reported');
like($log, qr/invalid configuration parameter name "pg_lookahead.no_such_thing"/,
	'an unknown name in postgresql.conf is reported');
is($node->safe_psql('postgres', 'SHOW pg_lookahead.max_distance'), 64, '... and the default stays');
is($node->safe_psql('postgres', 'SHOW pg_lookahead.miss_threshold'), 5, 'a possible value counts');
($ret, $out, $err) = $node->psql('postgres', 'SET pg_lookahead.xyz = 1');
like($err, qr/ERROR:  invalid configuration parameter name "pg_lookahead.xyz"/, 'unknown names are rejected');
($ret, $out, $err) = $node->psql('postgres', 'ALTER SYSTEM SET pg_lookahead.max_distance = 0');
like($err, qr/ERROR:  0 is outside the valid range/, 'ALTER SYSTEM checks');

# the view, its reset, and who may do what
is( $node->safe_psql('postgres', 'SELECT kind FROM pg_stat_lookahead ORDER BY 1'),
	"bitmap heap scan\nbitmap index scan\nforeign key\nhash join\nindex insert\nindex only scan\nindex scan\nnested loop\nsubplan\ntid scan\ntoast", 'view: a row for each kind');
$node->safe_psql('postgres', 'SELECT pg_stat_lookahead_reset()');
is(activated($node), 0, 'reset: counters are zero');
is($node->safe_psql('postgres', forced() . $scan), $expected, 'preloaded: the same answer');
is(activated($node), 1, 'a forced scan counts');
is($node->safe_psql('postgres', stock() . $scan), $expected, 'off: the same answer');
is(activated($node), 1, 'off: nothing counts');
is( $node->safe_psql(
		'postgres',
		'SELECT sum(scans_activated) FROM pg_stat_lookahead',
		connstr => $node->connstr('postgres') . ' user=plain'),
	1,
	'everybody may read the view');
($ret, $out, $err) = $node->psql('postgres', 'SELECT pg_stat_lookahead_reset()',
	connstr => $node->connstr('postgres') . ' user=plain');
like($err, qr/permission denied for function pg_stat_lookahead_reset/, 'nobody else may reset');
is( $node->safe_psql(
		'postgres',
		forced(ring => 2) . "SET pg_lookahead.explain = off; $scan",
		connstr => $node->connstr('postgres') . ' user=plain'),
	$expected,
	'an ordinary user may set everything');

# counters of scans that never looked ahead arrive with the end of the session at the latest
# (a look-up by a whole unique key would not even be attached)
$node->safe_psql('postgres', 'SELECT pg_stat_lookahead_reset()');
$node->safe_psql('postgres', "SET pg_lookahead.attach_threshold = 0; SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT w FROM t WHERE id <= 1;" x 3);
$node->poll_query_until('postgres', 'SELECT sum(scans_attached) >= 3 FROM pg_stat_lookahead')
  or diag('scans that did not look ahead are not counted');
is($node->safe_psql('postgres', 'SELECT sum(scans_attached), sum(scans_activated) FROM pg_stat_lookahead'),
	'3|0', 'short scans are counted when the session ends');

# ---- parallel workers --------------------------------------------------------

$node->safe_psql('postgres', 'SELECT pg_stat_lookahead_reset()');
my $parallel = q(
	SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
	SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0;
	SET parallel_leader_participation = off;);
my $sum = 'SELECT count(*), sum(id), sum(length(w)) FROM t WHERE a > 5000';
my $plan = $node->safe_psql('postgres', forced() . $parallel . "EXPLAIN (ANALYZE) $sum");
like($plan, qr/Parallel Index Scan using t_a/, 'a parallel index scan');
SKIP:
{
	my ($launched) = $plan =~ /Workers Launched: (\d)/;

	skip 'no worker could be launched', 1 unless $launched;
	my $workers = $node->safe_psql('postgres', "SELECT scans_activated FROM pg_stat_lookahead WHERE kind = 'index scan'");

	# a worker that is late finds nothing left
	ok($workers >= 1 && $workers <= $launched, "workers look ahead, and count: $workers of $launched");
}
is( $node->safe_psql('postgres', forced() . $parallel . $sum),
	$node->safe_psql('postgres', stock() . $parallel . $sum),
	'parallel: the same answer');
$node->safe_psql('postgres', forced() . $parallel . $sum) for 1 .. 20;
is( $node->safe_psql('postgres', forced() . $parallel . ("$sum;" x 20)),
	join("\n", ($node->safe_psql('postgres', $sum)) x 20),
	'many short parallel scans');

# lists of access methods: who sets one is warned of unknown names, nobody else is
($ret, $out, $err) = $node->psql('postgres', "ALTER ROLE plain SET pg_lookahead.excluded_access_methods = 'hash, missing'");
like($err, qr/WARNING:  access method "missing" does not exist/, 'ALTER ROLE: an unknown access method');
($ret, $out, $err) = $node->psql('postgres', 'SHOW pg_lookahead.excluded_access_methods',
	connstr => $node->connstr('postgres') . ' user=plain');
is("$out$err", 'hash, missing', '... is accepted, and no matter of those who log in');
($ret, $out, $err) = $node->psql('postgres', forced() . $parallel
	  . "SET pg_lookahead.excluded_access_methods = 'missing'; SET pg_lookahead.additional_access_methods = 'hash'; EXPLAIN (ANALYZE) $sum");
like($out, qr/Workers Launched: [12]/, 'workers that take over the lists');
is(scalar(() = $err =~ /WARNING/g), 1, '... say nothing of them');
$node->append_conf('postgresql.conf', "pg_lookahead.excluded_access_methods = 'missing'\n");
$node->reload;
$node->poll_query_until('postgres', q(SELECT current_setting('pg_lookahead.excluded_access_methods') = 'missing'))
  or die 'the configuration is not reloaded';
$node->safe_psql('postgres', 'ALTER SYSTEM RESET pg_lookahead.excluded_access_methods');
is($node->safe_psql('postgres', forced() . $scan), $expected, 'a list in the configuration');

# ---- the extension's objects --------------------------------------------------

$node->safe_psql('postgres', 'DROP EXTENSION pg_lookahead');
is($node->safe_psql('postgres', forced() . $scan), $expected, 'look-ahead needs no CREATE EXTENSION');
$node->safe_psql('postgres', 'CREATE SCHEMA elsewhere; CREATE EXTENSION pg_lookahead SCHEMA elsewhere');
is($node->safe_psql('postgres', 'SELECT count(*) FROM elsewhere.pg_stat_lookahead'), 11, 'in another schema');
$node->safe_psql('postgres', 'ALTER EXTENSION pg_lookahead SET SCHEMA public');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_lookahead'), 11, 'relocated');

check_log($node);
$node->stop;

done_testing();
