# 019_upgrade.pl - the extension in dumps, and in a database that moves to a newer server.
#
#	1. The script of a version that was released does not change any more.
#	2. pg_dump and restore: views of users over those of the extension, and what users have changed
#	   of its privileges, are there again, also when the dump is of an older version of the
#	   extension.  A second dump is like the first.
#	   What was measured of this machine's storage is not dumped.
#	3. pg_upgrade from an older server, with databases at each version of the extension and views
#	   over it: it succeeds with the library loaded and forced in both servers, everything works,
#	   and ALTER EXTENSION UPDATE leads to the newest version.
#
# The older server's prefix is in LA_OLD_SERVER, which dev/test sets; without, 3 is skipped.
# The scripts of older versions, in test/data, have to be installed in both servers (dev/test does).

use strict;
use warnings;

use Digest::SHA;
use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = "$FindBin::RealBin/../..";
my $preload = "shared_preload_libraries = 'pg_lookahead'\npg_lookahead.force = on\n"
  . "pg_lookahead.enable_index_build = on\nfsync = off\nautovacuum = off\njit = off\n";

# ---- scripts that were released -----------------------------------------------

# The release of a version adds its scripts here.  Databases exist that were made by them, and get
# what is new by an update script only.  In test/data is what makes a database of an older version.
my %released = ('pg_lookahead--1.0.0.sql' => '88fed5c141dde1b89357ff00566d886a55a32a3d33d21f85263f02998856fb6e');

my ($newest) = slurp_file("$top/pg_lookahead.control") =~ /^default_version = '(.*)'/m;
for my $path (glob "$top/sql/*.sql $top/test/data/*.sql")
{
	my $script = $path =~ s/.*\///r;
	if (my $sum = $released{$script})
	{
		is(Digest::SHA->new(256)->addfile($path)->hexdigest, $sum, "$script is as it was released");
	}
	else
	{
		like($script, qr/^pg_lookahead--([0-9.]+--)?\Q$newest\E\.sql$/,
			"$script: what is not released yet leads to the newest version");
	}
}

# ---- what users make of it ------------------------------------------------------

my @versions = ('1.0.0', $newest);

# The objects of users in a database with that version.
sub user_objects
{
	my ($version) = @_;

	return random_table('t', 3000) . qq(
		CREATE SCHEMA ext;
		CREATE EXTENSION pg_lookahead SCHEMA ext VERSION '$version';
		INSERT INTO ext.pg_lookahead_calibration
			SELECT oid, spcname, now(), 'random', 1, 1, 10000, 10000, 0.1, 0.1, 0.1, false FROM pg_tablespace WHERE spcname = 'pg_default';
		CREATE VIEW mine AS SELECT * FROM ext.pg_stat_lookahead;
		CREATE VIEW builds AS SELECT * FROM ext.pg_stat_lookahead_index_build WHERE builds >= 0;
		CREATE VIEW last AS SELECT * FROM ext.pg_lookahead_last_statement();
		CREATE VIEW above AS SELECT m.kind, l.index FROM mine m JOIN last l USING (kind);
		CREATE FUNCTION newest() RETURNS bigint BEGIN ATOMIC SELECT sum(scans_activated) FROM ext.pg_stat_lookahead; END;
		COMMENT ON VIEW mine IS 'a view of the user';
		GRANT EXECUTE ON FUNCTION ext.pg_stat_lookahead_reset() TO watcher;
		REVOKE SELECT ON ext.pg_stat_lookahead_index_build FROM PUBLIC;
		GRANT SELECT ON ext.pg_stat_lookahead_index_build TO watcher;
		GRANT USAGE ON SCHEMA ext TO PUBLIC;
		DO 'BEGIN EXECUTE format(''ALTER DATABASE %I SET pg_lookahead.max_distance = 7'', current_database()); END';);
}

# They work, and say what they said.
sub check_user_objects
{
	my ($node, $database, $name) = @_;
	my $as_watcher = $node->connstr($database) . ' user=watcher';

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is( $node->safe_psql(
			$database, forced() . q(
			SELECT count(w) FROM (SELECT w FROM t WHERE a > 5000 ORDER BY a OFFSET 0) s \g /dev/null
			SELECT relation, index, scans_attached FROM last;
			SELECT * FROM above;
			SELECT count(*) FROM mine;
			SELECT count(*) FROM builds;
			SELECT newest() > 0;
			SELECT obj_description('mine'::regclass, 'pg_class'))),
		"t|t_a|1\nindex scan|t_a\n11\n6\nt\na view of the user",
		"$name: views of users work");
	is( $node->safe_psql(
			$database, 'SELECT ext.pg_stat_lookahead_reset(); SELECT count(*) FROM ext.pg_stat_lookahead_index_build',
			connstr => $as_watcher),
		"\n6",
		"$name: privileges that were granted");
	my ($ret, $out, $err) = $node->psql($database, 'SELECT count(*) FROM ext.pg_stat_lookahead_index_build',
		connstr => $node->connstr($database) . ' user=other');
	like($err, qr/permission denied for view pg_stat_lookahead_index_build/, "$name: privileges that were revoked");
	return;
}

# Of one tablespace, by user_objects().
sub measured
{
	my ($node, $database) = @_;

	return $node->safe_psql($database, 'SELECT count(*), sum(single_iops) FROM ext.pg_lookahead_storage');
}

sub database_at
{
	my ($version) = @_;

	return 'at_' . $version =~ s/\./_/gr;
}

sub version_in
{
	my ($node, $database) = @_;

	return $node->safe_psql($database, q(SELECT extversion FROM pg_extension WHERE extname = 'pg_lookahead'));
}

# The definitions of the extension's objects, and of the users'.
sub definitions
{
	my ($node, $database) = @_;

	return $node->safe_psql(
		$database, q(
		SELECT 'view', relname, relacl, obj_description(oid, 'pg_class'), pg_get_viewdef(oid)
			FROM pg_class WHERE relkind = 'v' AND relnamespace IN ('public'::regnamespace, 'ext'::regnamespace) ORDER BY relname;
		SELECT 'function', proname, proacl, obj_description(oid, 'pg_proc'), prosrc, pg_get_function_result(oid)
			FROM pg_proc WHERE pronamespace IN ('public'::regnamespace, 'ext'::regnamespace) ORDER BY proname));
}

# Bring it up to date.
sub check_update
{
	my ($node, $database, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->safe_psql($database, 'ALTER EXTENSION pg_lookahead UPDATE');
	is(version_in($node, $database), $newest, "$name: updated");
	check_user_objects($node, $database, "$name: updated");
	return;
}

# ---- dump and restore ---------------------------------------------------------

my $dumps = PostgreSQL::Test::Utils::tempdir;
my $node = PostgreSQL::Test::Cluster->new('dumped');
$node->init;
$node->append_conf('postgresql.conf', $preload);
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE watcher LOGIN; CREATE ROLE other LOGIN');

# A dump as text, but for what differs in each.
sub dump_of
{
	my ($database) = @_;
	my $file = "$dumps/$database.text";

	$node->command_ok([ 'pg_dump', '-f', $file, $node->connstr($database) ], "$database: dumped as text");
	return slurp_file($file) =~ s/^\\(un)?restrict .*$//mgr;
}

for my $version (@versions)
{
	my $database = database_at($version);
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, user_objects($version));
	is(version_in($node, $database), $version, "$version: created");
	check_user_objects($node, $database, $version);
	my $text = dump_of($database);
	unlike($text, qr/CREATE (VIEW|FUNCTION) ext\./, "$version: the dump has the extension, not its objects");

	# as an archive that creates the database, over what is there
	$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dumps/archive", $node->connstr($database) ], "$version: dumped as archive");
	my $before = definitions($node, $database);
	$node->command_ok(
		[ 'pg_restore', '--clean', '--create', '--exit-on-error', '-d', $node->connstr('postgres'), "$dumps/archive" ],
		"$version: restored");
	is(version_in($node, $database), $newest, "$version: restored at the newest version");
	is($node->safe_psql($database, 'SHOW pg_lookahead.max_distance'), 7, "$version: settings of the database");
	check_user_objects($node, $database, "$version: restored");
	is(dump_of($database), $text, "$version: a second dump is like the first");
	is(definitions($node, $database), $before, "$version: definitions and privileges")
	  if $version eq $newest;
	is(measured($node, $database), '0|', "$version: restored without what was measured elsewhere");

	# as text, into a server without the library loaded
	$node->safe_psql('postgres', "CREATE DATABASE text_$database");
	$node->command_ok(
		[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$dumps/$database.text", $node->connstr("text_$database") ],
		"$version: restored from text");
	check_user_objects($node, "text_$database", "$version: restored from text");
}
check_log($node, 'dump and restore: server log');
$node->stop;

# ---- pg_upgrade -----------------------------------------------------------------

# From 15.20 on, the server notes in an option of each column when it was defined.  18.6 refuses that
# option: without help, no table can move from the one to the other.
sub forget_options
{
	my ($old, $new) = @_;

	return if $old->safe_psql('template1', q(SELECT count(*) FROM pg_attribute WHERE attoptions::text LIKE '%pg_attver%')) == 0;
	$new->start;
	my $known = $new->psql('template1', 'BEGIN; CREATE TABLE x (a int); ALTER TABLE x ALTER a SET (pg_attver = 1); ROLLBACK',
		on_error_stop => 1) == 0;
	$new->stop;
	return if $known;
	note("the new server does not know the old one's column option pg_attver: it is taken away");
	for my $database (split /\n/, $old->safe_psql('postgres', 'SELECT datname FROM pg_database WHERE datallowconn'))
	{
		$old->safe_psql($database,
			q(SET allow_system_table_mods = on; UPDATE pg_attribute SET attoptions = NULL WHERE attoptions::text LIKE '{pg_attver=%}'));
	}
	return;
}

sub upgrade
{
	my ($prefix) = @_;
	my $old = PostgreSQL::Test::Cluster->new('old', install_path => $prefix);
	my $new = PostgreSQL::Test::Cluster->new('new');

	# 18 has checksums by default, and pg_upgrade wants them in both or in none
	$_->init(extra => ['--data-checksums']) for $old, $new;
	$_->append_conf('postgresql.conf', $preload) for $old, $new;
	$old->start;
	$old->safe_psql('postgres', 'CREATE ROLE watcher LOGIN; CREATE ROLE other LOGIN');
	my $from = 'from ' . $old->safe_psql('postgres', 'SHOW server_version') =~ s/ .*//r;
	for my $version (@versions)
	{
		my $database = database_at($version);
		$old->safe_psql('postgres', "CREATE DATABASE $database");
		$old->safe_psql($database, user_objects($version));
		check_user_objects($old, $database, "$from, $version: before");
	}
	forget_options($old, $new);
	my $rows = $old->safe_psql(database_at($newest), 'SELECT sum(hashtext(t::text)) FROM t');
	check_log($old, "$from: log of the old server");
	$old->stop;

	# it makes files where it stands
	chdir $dumps or die "$dumps: $!";
	is( system_log('pg_upgrade', '-d', $old->data_dir, '-D', $new->data_dir,
			'-b', "$prefix/bin", '-B', $new->config_data('--bindir'),
			'-s', $new->host, '-p', $old->port, '-P', $new->port),
		0, "$from: pg_upgrade") or return;
	$new->start;
	for my $version (@versions)
	{
		my $database = database_at($version);
		is(version_in($new, $database), $version, "$from, $version: the same version after");
		check_user_objects($new, $database, "$from, $version: after");
		is($new->safe_psql($database, 'SELECT sum(hashtext(t::text)) FROM t'), $rows, "$from, $version: rows");
		is(measured($new, $database), '1|10000', "$from, $version: what was measured");
		check_update($new, $database, "$from, $version");
		is($new->safe_psql($database, 'SHOW pg_lookahead.max_distance'), 7, "$from, $version: settings of the database");
	}
	check_log($new, "$from: log of the new server");
	$new->stop;
	return;
}

SKIP:
{
	skip 'LA_OLD_SERVER names no server to upgrade from', 1 unless $ENV{LA_OLD_SERVER};
	upgrade($ENV{LA_OLD_SERVER});
}

done_testing();
