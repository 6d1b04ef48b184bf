# 026_report.pl - pg_lookahead_report() on servers that are set up in different ways.
#
#	1. Where the library is not preloaded, it says so, to everybody, and names what is preloaded; to
#	   do what it says makes the finding go away.
#	2. The same for settings, wherever they come from.
#	3. With pg_stat_statements: texts, and a hash join that has spilled.
#	4. Foreign tables of postgres_fdw: requests, and what makes fewer of them.
#	5. On a standby.
#
# What it makes of figures is in test/sql/report.sql.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', preload => 0, streaming => 1, extensions => ['pg_lookahead']);
my $with_statements = $node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_stat_statements'");
$node->safe_psql('postgres', 'CREATE ROLE reader LOGIN; CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor');

# Findings with that code, as "severity|finding|advice"
sub findings
{
	my ($code, %p) = @_;

	return $node->safe_psql($p{database} // 'postgres',
		"SELECT severity, finding, advice FROM pg_lookahead_findings() WHERE code = '$code' ORDER BY finding",
		extra_params => [ '-U', $p{user} // $ENV{PGUSER} // getpwuid($>) ]);
}

# The commands of an advice are followed, up to the first that is none.
sub follow
{
	my ($advice, %p) = @_;

	for my $command (split /;\s*/, $advice)
	{
		last if $command !~ /^(ALTER|CREATE|GRANT|RESET|SELECT|SET) /;
		$node->safe_psql($p{database} // 'postgres', $command);
	}
	$node->restart if $advice =~ /restart/;
	return;
}

# ---- not preloaded ---------------------------------------------------------------------

like(findings('server.not_preloaded'),
	qr/^problem\|The server does not preload pg_lookahead: .* \(this one had not, before this call\)\.\|ALTER SYSTEM SET shared_preload_libraries = pg_lookahead; and restart the server\.$/,
	'not preloaded');
like(findings('server.not_preloaded', user => 'reader'), qr/^problem\|.*\|Add pg_lookahead to shared_preload_libraries, keeping what is there, and restart the server\.$/,
	'... an ordinary user, who does not see what is there, gets no command');
unlike($_, qr/SET shared_preload_libraries/, '... nor for anything else') for findings('settings.pg_stat_statements', user => 'reader');
is($node->safe_psql('postgres', q{LOAD 'pg_lookahead'; SELECT finding LIKE '%(this one has).' FROM pg_lookahead_findings() WHERE code = 'server.not_preloaded'}),
	't', '... and a session that has loaded it');
is($node->safe_psql('postgres', q(SELECT count(*) FROM pg_lookahead_report() WHERE section IN ('statements', 'indexes', 'builds'))),
	0, '... and there are no findings about statements');
is($node->safe_psql('postgres', q(SELECT jsonb_path_exists(pg_lookahead_report_json(), '$.findings[*] ? (@.code == "server.not_preloaded")'))),
	't', '... nor does JSON fail');

# Reads that workers execute may be no waits at all, and the report is about those that are.
$node->append_conf('postgresql.conf', 'io_method = sync')
  if $node->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name = 'io_method'");
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_prewarm,\"auto_explain\"'");
$node->restart;
like(findings('server.not_preloaded', user => 'monitor'), qr/shared_preload_libraries = pg_prewarm, auto_explain, pg_lookahead;/, 'beside others, which are named');
follow((split /\|/, findings('server.not_preloaded'))[2]);
is(findings('server.not_preloaded'), '', 'what is advised helps');
is($node->safe_psql('postgres', 'SHOW shared_preload_libraries'), 'pg_prewarm, auto_explain, pg_lookahead', '... and keeps the others');
is($node->safe_psql('postgres', q(SELECT count(*) FROM pg_lookahead_report() WHERE severity = 'problem')), 0, '... no problem is left');

# ---- settings -----------------------------------------------------------------------------

# Set it in a way, ask, do what is advised, and ask again.
sub check_setting
{
	my ($how, $code, $set, $severity, $advice, %p) = @_;

	$node->safe_psql('postgres', $_) for split /;\s*/, $set;
	my $found = findings($code, %p);
	like($found, qr/^$severity\|.*\|\Q$advice\E/, "$how: advice");
	follow((split /\|/, $found)[2], %p);
	is(findings($code, %p), '', "$how: it helps");
	return;
}

$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION pg_lookahead');
check_setting('ALTER SYSTEM', 'settings.off', 'ALTER SYSTEM SET pg_lookahead.enable = off; SELECT pg_reload_conf()',
	'problem', 'ALTER SYSTEM SET pg_lookahead.enable = on; SELECT pg_reload_conf();');
check_setting('ALTER DATABASE', 'settings.off', 'ALTER DATABASE other SET pg_lookahead.enable_hash_join = off',
	'change', 'ALTER DATABASE other RESET pg_lookahead.enable_hash_join;', database => 'other');
check_setting('ALTER ROLE', 'settings.off', 'ALTER ROLE reader SET pg_lookahead.enable_nestloop = off',
	'change', 'ALTER ROLE reader RESET pg_lookahead.enable_nestloop;', user => 'reader');
check_setting('ALTER ROLE IN DATABASE', 'settings.off', 'ALTER ROLE reader IN DATABASE other SET pg_lookahead.enable_write = off',
	'change', 'ALTER ROLE reader IN DATABASE other RESET pg_lookahead.enable_write;', user => 'reader', database => 'other');
check_setting('somebody else\'s', 'settings.off_for_some', 'ALTER ROLE reader IN DATABASE other SET pg_lookahead.enable = off',
	'change', 'ALTER ROLE reader IN DATABASE other RESET pg_lookahead.enable;');
check_setting('everybody\'s', 'settings.off_for_some', 'ALTER ROLE ALL SET pg_lookahead.enable_index_scan = off',
	'change', 'ALTER ROLE ALL RESET pg_lookahead.enable_index_scan;');
check_setting('compute_query_id', 'settings.compute_query_id', 'ALTER SYSTEM SET compute_query_id = off; SELECT pg_reload_conf()',
	'change', 'ALTER SYSTEM SET compute_query_id = on;');
check_setting('track_io_timing', 'settings.track_io_timing', 'SELECT 1', 'change', 'ALTER SYSTEM SET track_io_timing = on;');

# ---- pg_stat_statements --------------------------------------------------------------------

SKIP:
{
	skip 'there is no pg_stat_statements', 14 unless $with_statements;

	my $found = findings('settings.pg_stat_statements');
	like($found, qr/shared_preload_libraries = pg_prewarm, auto_explain, pg_stat_statements, pg_lookahead; restart the server; CREATE EXTENSION/, 'pg_stat_statements is missed');
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_stat_statements');
	like(findings('settings.pg_stat_statements'), qr/cannot be read: pg_stat_statements must be loaded/, '... it is not loaded');
	like(findings('settings.pg_stat_statements', user => 'reader'),
		qr/\|Add pg_stat_statements to shared_preload_libraries, keeping what is there, and restart the server\.$/,
		'... an ordinary user gets no command');
	follow((split /\|/, findings('settings.pg_stat_statements'))[2]);
	is(findings('settings.pg_stat_statements'), '', '... what is advised helps');
	$node->safe_psql('postgres', 'REVOKE SELECT ON pg_stat_statements FROM PUBLIC');
	$found = findings('settings.pg_stat_statements', user => 'reader');
	like($found, qr/cannot be read: .*\|GRANT SELECT ON public\.pg_stat_statements TO reader;$/, 'somebody may not read it');
	follow((split /\|/, $found)[2]);
	is(findings('settings.pg_stat_statements', user => 'reader'), '', '... what is advised helps');

	$node->safe_psql('postgres', q(
		CREATE TABLE large AS SELECT i AS id, repeat('x', 300) AS w FROM generate_series(1, 60000) i;
		VACUUM ANALYZE large;
		SELECT pg_stat_lookahead_reset();
		SET max_parallel_workers_per_gather = 0; SET enable_mergejoin = off; SET enable_nestloop = off; SET work_mem = '256kB';
		SELECT count(a.w || b.w) FROM large a JOIN large b USING (id);) . 'SELECT count(a.w || b.w) FROM large a JOIN large b USING (id);' x 7);
	like(findings('statement.spilled'),
		qr/^change\|[\d,]+ ms waited for reads \(executions: 8\); \d+ MB written to temporary files by each: .*: SELECT count\(a\.w \|\| b\.w\) FROM large a JOIN large b USING \(id\)\|SET work_mem = '\d+MB';/,
		'a hash join that has spilled');

	# Statements in which others are executed.  What looks ahead in them is theirs as well.
	$node->safe_psql('postgres', q(
		CREATE TABLE far AS SELECT i AS id, (i::bigint * 7919 % 60013)::int AS k, repeat('x', 300) AS w FROM generate_series(1, 60000) i;
		CREATE INDEX ON far (k);
		VACUUM ANALYZE far;
		CREATE PROCEDURE called() LANGUAGE plpgsql AS 'BEGIN PERFORM w FROM far WHERE k BETWEEN 100 AND 30000 ORDER BY k; END';
		CREATE MATERIALIZED VIEW seen AS SELECT k, w FROM far WHERE k BETWEEN 100 AND 30000 ORDER BY k;));
	my $query = 'SELECT k, w FROM far WHERE k BETWEEN 100 AND 30000 ORDER BY k';
	my $settings = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET pg_lookahead.force = on; '
	  . 'SELECT pg_stat_lookahead_reset(); SELECT pg_stat_statements_reset();';
	# what has run is made to have waited long
	my $unseen = q[
		BEGIN;
		CREATE SCHEMA slow;
		ALTER EXTENSION pg_stat_statements SET SCHEMA slow;
		ALTER VIEW slow.pg_stat_statements RENAME TO counted;
		DO $$
		DECLARE time text;
		BEGIN
			SELECT attname INTO time FROM pg_attribute WHERE attrelid = 'slow.counted'::regclass AND attname ~ '^(shared_)?blk_read_time$';
			EXECUTE format('CREATE VIEW slow.pg_stat_statements AS SELECT userid, dbid, toplevel, queryid, query, calls, rows, 1000.0 AS %I, 0 AS temp_blks_written
				FROM slow.counted WHERE query ~* %L', time, '^(COPY|CREATE TABLE|REFRESH|CALL|DO|EXPLAIN|FETCH) ');
		END $$;
		SELECT finding, advice FROM pg_lookahead_findings() WHERE code = 'statement.unseen' ORDER BY finding COLLATE "C";
		ROLLBACK;];
	$found = $node->safe_psql('postgres', qq(
		$settings
		COPY ($query) TO '/dev/null';
		CREATE TABLE made AS $query;
		REFRESH MATERIALIZED VIEW seen;
		CALL called();
		DO 'BEGIN CALL called(); END';
		EXPLAIN (ANALYZE, COSTS off) $query;
		BEGIN;
		DECLARE c CURSOR FOR $query;
		FETCH 5000 FROM c;
		CLOSE c;
		COMMIT;
		DROP TABLE made;
		$unseen));
	is($node->safe_psql('postgres', q(SELECT string_agg(DISTINCT split_part(query, ' ', 1), ' ') FROM pg_stat_statements
		JOIN pg_stat_lookahead_statements USING (userid, dbid, queryid, toplevel) WHERE toplevel AND scans_activated > 0 AND query !~ '^SELECT')),
		'CALL COPY CREATE DO EXPLAIN REFRESH', 'what looked ahead in utility statements is theirs');
	unlike($found, qr/look-ahead: (COPY|CREATE|REFRESH|CALL|DO|EXPLAIN) |no scan or join/, '... and the report denies nothing');
	like($found, qr/look-ahead: FETCH \S+ FROM c\|These are reads of the cursor's query/, '... of FETCH it says whose reads these are');

	# behind pg_lookahead, it hides which statements these are
	$node->safe_psql('postgres', 'ALTER SYSTEM SET shared_preload_libraries = pg_lookahead, pg_stat_statements');
	$node->restart;
	$found = $node->safe_psql('postgres', "$settings COPY ($query) TO '/dev/null'; $unseen");
	like($found, qr/nothing of it is in the statistics of look-ahead: COPY .*\|What look-ahead did for queries in it is counted for them \(toplevel is false\)/,
		'behind pg_lookahead: nothing is denied, and no EXPLAIN of COPY advised');
	$found = findings('settings.pg_stat_statements');
	like($found, qr/^note\|pg_stat_statements stands behind pg_lookahead/, '... and the order is noted');
	follow((split /\|/, $found)[2]);
	is(findings('settings.pg_stat_statements'), '', '... what is advised helps');
	is($node->safe_psql('postgres', 'SHOW shared_preload_libraries'), 'pg_stat_statements, pg_lookahead', '... and changes the order only');
}

# ---- foreign tables ------------------------------------------------------------------------

SKIP:
{
	skip 'there is no postgres_fdw, or no pg_stat_statements', 13
	  unless $with_statements && $node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'");

	# two servers that are this one
	my ($host, $port) = ($node->host, $node->port);
	$node->safe_psql('postgres', qq(
		CREATE EXTENSION postgres_fdw;
		CREATE TABLE part0 (k int, v text); CREATE TABLE part1 (LIKE part0);
		CREATE SERVER s0 FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres');
		CREATE SERVER s1 FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres', fetch_size '50');
		CREATE USER MAPPING FOR CURRENT_USER SERVER s0; CREATE USER MAPPING FOR CURRENT_USER SERVER s1;
		CREATE TABLE parts (k int, v text) PARTITION BY HASH (k);
		CREATE FOREIGN TABLE parts0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0) SERVER s0 OPTIONS (table_name 'part0');
		CREATE FOREIGN TABLE parts1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1) SERVER s1 OPTIONS (table_name 'part1');
		SELECT pg_stat_statements_reset();
		INSERT INTO parts SELECT i, 'row ' || i FROM generate_series(1, 40000) i;
		ANALYZE part0, part1, parts0, parts1;));
	is(findings('foreign.fetched'), '', 'foreign tables: nothing was fetched');
	$node->safe_psql('postgres', "SELECT count(v) FROM (SELECT v FROM parts OFFSET 0) s; " x 4 . ($_ ? 'ANALYZE parts0' : '')) for 0 .. 3;
	like(findings('foreign.fetched'), qr/^note\|Another server's postgres_fdw gets (?:6|7)\d rows with each request from here/, '... rows fetched from here');
	like(findings('foreign.async_capable'), qr/^change\|Scans of public\.parts ask its 2 servers one after the other .*ALTER SERVER s0 .*ALTER SERVER s1 /, '... one server after the other');
	like(findings('foreign.batch_size'),
		qr/^change\|.* server s0 .* one statement has inserted 40,000 rows .*\nchange\|.* server s1 /, '... rows inserted one by one');
	like(findings('foreign.fetch_size'), qr/^change\|.* server s0 get 100 rows .*\(ADD fetch_size '10000'\).*\nchange\|.* server s1 get 50 rows .*\(SET fetch_size '10000'\)/,
		'... 50 and 100 rows with each request');
	for my $code (map { "foreign.$_" } qw(fetch_size async_capable batch_size))
	{
		follow((split /\|/)[2]) for split /\n/, findings($code);
		is(findings($code), '', "... $code: what is advised helps");
	}
	my $plan = $node->safe_psql('postgres', 'EXPLAIN (COSTS OFF) SELECT v FROM parts');
	is(() = $plan =~ /Async Foreign Scan on parts/g, 2, '... both servers are asked at the same time');
	for my $join ([ 'parts', 'an Append is asynchronous' ], [ 'parts0', 'a node is of a kind that is not known' ])
	{
		my $query = "SELECT count(*) FROM (SELECT k FROM $join->[0] OFFSET 0) p JOIN part0 USING (k)";

		is($node->safe_psql('postgres', q(CREATE INDEX IF NOT EXISTS part0_k ON part0 (k);
				SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off;
				SET pg_lookahead.force = on;) . "$query; SELECT reason FROM pg_lookahead_last_statement() WHERE kind = 'nested loop'") =~ s/^\d+\n//r,
			$join->[1], "... $join->[1]: such rows are not taken ahead");
	}
	like($node->safe_psql('postgres', "EXPLAIN (VERBOSE) INSERT INTO parts0 VALUES (1, '')"), qr/Batch Size: 100/, '... rows are inserted many at a time');
	my $counted = q(SELECT sum(calls) FROM pg_stat_statements WHERE query ~ '^FETCH');
	$node->safe_psql('postgres', 'SELECT pg_stat_statements_reset(); SELECT count(v) FROM (SELECT v FROM parts OFFSET 0) s');
	cmp_ok($node->safe_psql('postgres', $counted), '<=', 8, '... with a few requests');
}

# ---- a standby ------------------------------------------------------------------------------

$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
is($standby->safe_psql('postgres', 'SELECT count(*) > 0, jsonb_typeof(pg_lookahead_report_json()->\'findings\') FROM pg_lookahead_report()'),
	't|array', 'on a standby');
$standby->stop;

check_log($node, 'server log');
$node->stop;
done_testing();
