# 016_minor.pl - a library that was built for another minor release than the one that runs.
#
# The library is built here, from the sources beside the tests, as if it were built for
# one minor release and another one ran; what is to be expected of such a pair is
# read from src/base/minor_table.h.  Checked here, for pairs that are alike, unlike in some
# rooms, and unknown, as are betas and release candidates:
#   1. Which rooms look ahead, and that the others leave everything to the server.
#   2. One warning, which names both releases and these rooms: in the server's log if
#      preloaded, in the session that loads it otherwise, and none from parallel workers.
#   3. Settings, view and functions are there in any case; pg_lookahead_library() names the rooms.
# Where LA_OTHER_MINOR names a library that really was built for another minor, and which, as in
# 150018:/some/where/pg_lookahead, the same is checked of that one.

use strict;
use warnings;

use File::Copy qw(copy);
use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = "$FindBin::RealBin/../..";
my @rooms = ('index scans', 'nested loops', 'hash joins', 'index builds', 'writes', 'bitmap scans',
	'values out of line');
my $works = PostgreSQL::Test::Utils::tempdir;
my $library = "$works/pg_lookahead";
my $major;						# its first release's number: 180000

# ---- the table ---------------------------------------------------------------

my %numbers;
for (split /\n/, slurp_file("$top/src/base/minor_table.h"))
{
	$numbers{$1} = [ split /, /, $2 ] if /^\t\{(\d+), \{(.*)\}\}/;
}
cmp_ok(scalar(keys %numbers), '>', 20, 'there is a table');

# Are the rooms alike, as in '101101'?  undef if one of the releases is not known.
sub alike
{
	my ($built, $running) = @_;

	return if $built =~ /\D/;
	return '1' x @rooms if $built == $running;
	return unless $numbers{$built} && $numbers{$running};
	return join '', map { $numbers{$built}[$_] eq $numbers{$running}[$_] ? 1 : 0 } 0 .. $#rooms;
}

# Pairs of neighbours: one that is alike, and a few that are in part, which together have each room
# on, and off.
sub pairs
{
	my (@pairs, %seen);
	my @versions = sort { $a <=> $b } keys %numbers;

	for my $i (1 .. $#versions)
	{
		my ($built, $running) = @versions[ $i - 1, $i ];
		next if int($built / 10000) != int($running / 10000);
		my $alike = alike($built, $running);
		my @new = grep { !$seen{ $_ . substr($alike, $_, 1) } } 0 .. $#rooms;
		next if $alike eq '0' x @rooms || (!@new && ($alike ne '1' x @rooms || $seen{$alike}));
		$seen{$alike} = 1;
		$seen{ $_ . substr($alike, $_, 1) } = 1 for $alike eq '1' x @rooms ? () : 0 .. $#rooms;
		push @pairs, [ $built, $running ];
	}
	return @pairs;
}

# ---- the library -------------------------------------------------------------

sub in_words
{
	my ($version) = @_;

	return $version if $version =~ /\D/;
	return int($version / 10000) . '.' . $version % 10000;
}

# Make it say that it was built for this release, and that the other one runs.  Only one file
# knows of that, so all others are compiled once.  A beta has the number of the first release.
sub build
{
	my ($built, $running) = @_;
	my $flags = '-I./src ';

	if ($built =~ /\D/)
	{
		$flags .= qq(-DLA_BUILT_VERSION='"$built"' -DLA_BUILT_VERSION_NUM=$major);
		$running = $major;
	}
	else
	{
		$flags .= "-DLA_BUILT_VERSION_NUM=$built";
	}

	$flags .= " -DLA_RUNNING_VERSION_NUM=$running" if $running;
	unlink "$works/src/base/minor.o", "$works/pg_lookahead.so";
	system_or_bail('make', '-s', '-C', $works, 'with_llvm=no', 'COPT=-O0 -w', "PG_CPPFLAGS=$flags", 'all');
	return;
}

system_or_bail('cp', '-r', map({ "$top/$_" } qw(Makefile pg_lookahead.control src sql)), $works);
system_or_bail('find', $works, '-name', '*.o', '-delete');
delete @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS)};

# ---- the server --------------------------------------------------------------

my $node = new_server(
	'main',
	preload => 0,
	conf => "shared_buffers = 16MB\nfsync = off\nmax_worker_processes = 8\n");
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
my ($release) = split ' ', $node->safe_psql('postgres', 'SHOW server_version');
$major = int($version / 10000) * 10000;
my $parallel = $version >= 160000 ? 'debug_parallel_query' : 'force_parallel_mode';

$node->safe_psql(
	'postgres',
	random_table('t', 5000) . q(
		CREATE TABLE o AS SELECT i AS id, (hashint4(i) & 2147483647) % 50000 AS a FROM generate_series(1, 2000) i;
		CREATE TABLE s (id int, a int);
		CREATE INDEX s_a ON s (a);
		INSERT INTO s SELECT i, i FROM generate_series(1, 50000) i;
		CREATE TABLE b (w text);
		ALTER TABLE b ALTER w SET STORAGE EXTERNAL;
		INSERT INTO b SELECT repeat('w', 3000) FROM generate_series(1, 500) i;
		VACUUM ANALYZE;));
$node->stop;

# The functions and views of the extension, of this library.
my ($script) = map { slurp_file($_) } grep { !/--.*--/ } glob "$top/sql/pg_lookahead--*.sql";
$script =~ s/^\\echo.*$//mg;

# Start the server with this library; returns where its log begins.
sub start_with
{
	my ($path) = @_;
	my $offset = -s $node->logfile;

	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$path'");
	$node->start;
	(my $create = $script) =~ s/MODULE_PATHNAME/$path/g;
	$node->safe_psql('postgres', "DROP SCHEMA IF EXISTS la CASCADE; CREATE SCHEMA la; SET search_path = la; $create");
	return $offset;
}

sub blocks_of_insert
{
	my ($setting) = @_;
	my $plan = $node->safe_psql(
		'postgres', "SET pg_lookahead.force = on; SET pg_lookahead.enable_write = off;
			SET pg_lookahead.enable_btree_insert = $setting; BEGIN;
			EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
				INSERT INTO s SELECT i, (hashint4(i) & 2147483647) % 50000 FROM generate_series(1, 3000) i;
			ROLLBACK");

	return $plan =~ /Buffers: shared hit=(\d+)/ ? $1 : die $plan;
}

# Which rooms are at work?
sub at_work
{
	my $plans = q(SET search_path = public, la; SET max_parallel_workers_per_gather = 0; SET enable_memoize = off;
		SET pg_lookahead.force = on; SET enable_mergejoin = off; SET enable_bitmapscan = off; SET enable_material = off;);
	my %join = (
		'nested loops' => 'SET enable_hashjoin = off; SET enable_seqscan = on; SET enable_indexonlyscan = off;',
		'hash joins' => 'SET enable_nestloop = off;');
	my ($found, %does);

	$node->safe_psql('postgres', "$plans SET enable_seqscan = off; SELECT sum(length(w)) FROM t WHERE a > 5000");
	$node->safe_psql('postgres', "$plans SET enable_bitmapscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off;
		SET enable_seqscan = off; SELECT sum(length(w)) FROM t WHERE a > 5000");
	$node->safe_psql('postgres', "$plans SELECT sum(length(md5(w))) FROM b");
	$node->safe_psql('postgres', "$plans $join{$_} SELECT count(t.w) FROM o JOIN t USING (a)") for sort keys %join;
	$node->safe_psql('postgres', 'SET pg_lookahead.enable_index_build = on; REINDEX INDEX t_a');
	my ($off, $on) = map { blocks_of_insert($_) } qw(off on);

	$does{'index scans'} = $node->safe_psql('postgres',
		"SELECT sum(scans_attached) > 0 FROM la.pg_stat_lookahead WHERE kind IN ('index scan', 'index only scan')");
	$does{'nested loops'} = $node->safe_psql('postgres',
		"SELECT sum(scans_attached) > 0 FROM la.pg_stat_lookahead WHERE kind = 'nested loop'");
	$does{'hash joins'} = $node->safe_psql('postgres',
		"SELECT sum(scans_attached) > 0 FROM la.pg_stat_lookahead WHERE kind = 'hash join'");
	$does{'bitmap scans'} = $node->safe_psql('postgres',
		"SELECT sum(scans_attached) > 0 FROM la.pg_stat_lookahead WHERE kind LIKE 'bitmap%'");
	$does{'values out of line'} = $node->safe_psql('postgres',
		"SELECT sum(scans_attached) > 0 FROM la.pg_stat_lookahead WHERE kind = 'toast'");
	$does{'index builds'} = $node->safe_psql('postgres',
		'SELECT coalesce(sum(builds), 0) > 0 FROM la.pg_stat_lookahead_index_build');
	$does{'writes'} = $on < 0.9 * $off ? 't' : 'f';
	$found .= $does{$_} eq 't' ? 1 : 0 for @rooms;
	return $found;
}

sub disabled
{
	my ($alike) = @_;

	return join ', ', map { $rooms[$_] } grep { !substr($alike, $_, 1) } 0 .. $#rooms;
}

sub warning_text
{
	my ($built, $running) = @_;
	my $alike = alike($built, $running);
	my $off = disabled($alike // '0' x @rooms);
	my $why = defined $alike ? ' where what it relies on differs' : ', since it is not known';

	return qr/WARNING:  pg_lookahead was built for PostgreSQL \Q@{[in_words($built)]}\E, and this is PostgreSQL \Q@{[in_words($running)]}\E
.*DETAIL:  Look-ahead stays off$why.*: \Q$off\E\.
.*HINT:  Build pg_lookahead again/;
}

# ---- a library that is preloaded -----------------------------------------------

sub check_preloaded
{
	my ($path, $built, $running, $name) = @_;
	my $offset = start_with($path);
	my $alike = alike($built, $running) // '0' x @rooms;

	is($node->safe_psql('postgres', 'SHOW pg_lookahead.max_distance; SHOW pg_lookahead.enable_index_build'),
		"64\noff", "$name: settings");
	is($node->safe_psql('postgres', 'SELECT count(*), sum(scans_attached) FROM la.pg_stat_lookahead'),
		'11|0', "$name: view");
	is(at_work(), $alike, "$name: which rooms are at work");
	is($node->safe_psql('postgres', "LOAD '$path'; SELECT count(*) FROM la.pg_lookahead_last_statement()"),
		0, "$name: functions");

	is($node->safe_psql('postgres', "SELECT built_for, server, array_to_string(disabled, ', ') FROM la.pg_lookahead_library()"),
		join('|', in_words($built), in_words($running), disabled($alike)), "$name: what the report is told");

	my $log = substr(slurp_file($node->logfile), $offset);
	my @warnings = $log =~ /^.*WARNING:  pg_lookahead.*(?:\n.*(?:DETAIL|HINT):.*)*/mg;
	is(scalar(@warnings), $alike eq '1' x @rooms ? 0 : 1, "$name: warnings in the log");
	like($warnings[0] // '', warning_text($built, $running), "$name: the warning") if $alike ne '1' x @rooms;
	check_log($node, "$name: server log");
	$node->stop;
	return;
}

my @pairs = pairs();
cmp_ok(scalar(grep { alike(@$_) eq '1' x @rooms } @pairs), '>', 0, 'there are alike releases in the table');
cmp_ok(scalar(grep { alike(@$_) ne '1' x @rooms } @pairs), '>', 0, 'there are unlike releases in the table');
for my $pair (@pairs, [ $major + 98, $version ], [ $version, $major + 98 ], [ $major / 10000 . 'rc9', $release ])
{
	build(@$pair);
	check_preloaded($library, @$pair, 'built for ' . in_words($pair->[0]) . ', running ' . in_words($pair->[1]));
}

# ---- a library that was built with another minor's headers ---------------------

SKIP:
{
	skip 'no library for another minor is at hand', 1 unless $ENV{LA_OTHER_MINOR};
	my ($built, $path) = split /:/, $ENV{LA_OTHER_MINOR}, 2;

	check_preloaded($path, $built, $version, 'built with the headers of ' . in_words($built));
}

# ---- a library that is loaded by a session -----------------------------------

build($major + 98);
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->start;
my ($ret, $out, $err) = $node->psql(
	'postgres',
	"LOAD '$library'; LOAD '$library'; SET $parallel = on; SET max_parallel_workers_per_gather = 2;
		SELECT count(*) FROM t; SELECT count(*) FROM t");
is($out, "5000\n5000", 'LOAD: statements run, in parallel workers, too');
is(scalar(() = $err =~ /WARNING:  /g), 1, 'LOAD: one warning in a session');
like($err, warning_text($major + 98, $version), 'LOAD: the warning');

$node->safe_psql('postgres', "ALTER DATABASE postgres SET session_preload_libraries = '$library'");
my $offset = -s $node->logfile;
for (1 .. 2)
{
	is($node->safe_psql('postgres', 'SELECT count(*) FROM t; SHOW pg_lookahead.enable'),
		"5000\non", 'session_preload_libraries: statements run');
}
my @warnings = substr(slurp_file($node->logfile), $offset) =~ /WARNING:  pg_lookahead was built/g;
is(scalar(@warnings), 2, 'session_preload_libraries: a warning for each session');

$node->stop;
done_testing();
