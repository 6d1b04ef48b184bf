# 039_locked_catalogs.pl - look-ahead while somebody has a catalog locked.
#
# Stock needs no catalog for a statement whose tables are in the session's caches, so it does not wait
# for one that is locked.  Look-ahead must not either: not in COPY from and to a table, whose
# partitions and toast table it opens on its own, and not in scans.
#
#   1. On a primary, each catalog is locked by another session while the statements run.
#   2. On a standby, replay has a catalog locked, and then needs a table that a statement has: both would
#      wait for ever.
#
# A statement that waits is found by the test's own timeout.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_server('primary', streaming => 1, conf => "fsync = off\n", extensions => ['pg_buffercache']);

$primary->safe_psql(
	'postgres', q(
	CREATE TABLE p (id int, r int) PARTITION BY RANGE (r);
	CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
	CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200);
	CREATE INDEX ON p (id);
	CREATE TABLE t (id int, b text);
	ALTER TABLE t ALTER b SET STORAGE EXTERNAL;
	INSERT INTO t SELECT i, repeat(md5(i::text), 200) FROM generate_series(1, 100) i;
	CREATE TABLE s (id int, b text);
	INSERT INTO s SELECT i, 'short' FROM generate_series(1, 1000) i;
	VACUUM ANALYZE t;
	VACUUM ANALYZE s;));

# Statements, of which the first may still be new to look-ahead, but not to the server.
my %statements = (
	'COPY FROM of partitions' => q(COPY p FROM PROGRAM 'seq -f %g,150 100' (FORMAT csv)),
	'COPY TO of long values' => q(COPY t TO PROGRAM 'cat >/dev/null'),
	'COPY TO of short values' => q(COPY s TO PROGRAM 'cat >/dev/null'),
	'a scan of long values' => 'SELECT count(*), sum(length(b)) FROM t',
	'a scan of short values' => 'SELECT count(*), sum(length(b)) FROM s');

# Those from which tables are opened, and for COPY, those of indexes.  (What look-ahead asks about
# functions and operators is waited for, docs/safety.md.)
sub catalogs_of
{
	my ($name) = @_;

	return (qw(pg_class pg_attribute pg_index), $name =~ /^COPY/ ? qw(pg_inherits pg_am pg_opclass pg_amproc) : ());
}

# The session has run the statement without look-ahead, so that the server has all that it needs.
sub prepared_session
{
	my ($node, @statements) = @_;
	my $session = open_session($node, stock());

	ask($session, $_) for @statements;
	ask($session, 'SET pg_lookahead.enable = on; SET pg_lookahead.force = on;');
	return $session;
}

my $holder = open_session($primary, '');
for my $name (sort keys %statements)
{
	for my $catalog (catalogs_of($name))
	{
		my $session = prepared_session($primary, $statements{$name}, $statements{$name});
		my $expected = ask($session, "BEGIN; SET LOCAL pg_lookahead.enable = off; $statements{$name}; ROLLBACK");

		ask($holder, "BEGIN; LOCK pg_catalog.$catalog IN ACCESS EXCLUSIVE MODE");
		is(ask($session, "BEGIN; $statements{$name}; ROLLBACK"), $expected, "$name, $catalog locked");
		ask($holder, 'ROLLBACK');
		$session->quit;
	}
}
nothing_pinned($primary, 'locked catalogs');

# ---- programs of the session ------------------------------------------------------

# A COPY in a trigger gives up to look ahead, and the program of the COPY around it runs on.
{
	my $rows = $primary->basedir . '/rows';
	append_to_file($rows, "150,150\n");
	$primary->safe_psql(
		'postgres', qq(
		CREATE TABLE outermost (id int);
		CREATE FUNCTION copy_row() RETURNS trigger LANGUAGE plpgsql AS \$\$
		BEGIN
			IF new.id % 1000 = 0 THEN
				COPY p FROM '$rows' (FORMAT csv);
			END IF;
			RETURN new;
		END \$\$;
		CREATE TRIGGER t BEFORE INSERT ON outermost FOR EACH ROW EXECUTE FUNCTION copy_row();));
	my $session = prepared_session($primary, 'INSERT INTO outermost VALUES (1000)', 'INSERT INTO outermost VALUES (2000)');

	ask($holder, 'BEGIN; LOCK pg_catalog.pg_inherits IN ACCESS EXCLUSIVE MODE');
	is(ask($session, q(COPY outermost FROM PROGRAM 'seq 3000; sleep 1; echo 3001'; SELECT count(*) FROM outermost)),
		'3003', 'the program of a COPY is not signaled');
	ask($holder, 'ROLLBACK');
	$session->quit;
}

# ---- a standby -------------------------------------------------------------------

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\n");
$standby->start;
$primary->wait_for_catchup($standby);

# Replay has what the holder did when it has come to a transaction behind that.
my $flusher = prepared_session($primary, "SELECT pg_logical_emit_message(true, 'la', 'first')");

sub has_replayed
{
	my ($watcher) = @_;
	my $lsn = ask($flusher, "SELECT pg_logical_emit_message(true, 'la', 'here')");

	wait_until(sub { ask($watcher, "SELECT pg_last_wal_replay_lsn() >= '$lsn'") eq 't' }) or die "replay has not come to $lsn";
	return;
}

for my $statement ($statements{'COPY TO of short values'}, $statements{'a scan of short values'})
{
	my $session = prepared_session($standby, $statement =~ s/\bs\b/t/r);
	my $watcher = prepared_session($standby, "SELECT pg_last_wal_replay_lsn() >= '0/0'");

	# the table is known, its toast table is not
	ask($session, 'SELECT count(*) FROM s');
	ask($session, $statement =~ /^COPY/ ? "SET pg_lookahead.enable = off; $statement; SET pg_lookahead.enable = on" : $statement);
	ask($holder, 'BEGIN; LOCK pg_catalog.pg_class IN ACCESS EXCLUSIVE MODE');
	has_replayed($watcher);
	unlike(ask($session, $statement), qr/ERROR|FATAL/, 'standby: a statement while replay has pg_class');
	ask($holder, 'LOCK s IN ACCESS EXCLUSIVE MODE');
	has_replayed($watcher);
	ask($holder, 'COMMIT');
	$session->quit;
	$watcher->quit;
}
$primary->wait_for_catchup($standby);
pass('standby: replay goes on');

$holder->quit;
$flusher->quit;
check_log($primary);
check_log($standby);
done_testing();
