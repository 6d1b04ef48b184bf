# 004_ddl.pl - DDL, maintenance and cache invalidation under an open cursor.
#
# A cursor on an index scan has fetched some rows, with look-ahead forced; then something
# happens to the table or the index, and the cursor goes on to its end.
#
#	1. In the same session: a long list of statements.  Whatever stock says to them, refusal
#	   or success, must be said with look-ahead as well, and the rows after it must be the
#	   same: whole transcripts are compared.
#	2. In another session: what runs at once and what has to wait for the cursor.  The
#	   cursor returns the rows of its snapshot.
#	3. Buffers that an idle cursor keeps pinned are few, so that VACUUM is not held up
#	   more than by stock (index scans) or by a bounded amount (index-only scans).
#	4. With debug_discard_caches, every access to a cache rebuilds it (assert builds only).
#	5. The statistics of a scan that was interrupted are those of stock.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', extensions => [ 'pg_buffercache', 'amcheck' ]);
my %modes = (off => stock(), 'ring 2' => forced(ring => 2), 'ring 64' => forced());
my @forced = ('ring 2', 'ring 64');
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

# dead entries, and blocks that are not all-visible
my $table = random_table('d', 1500) . q(UPDATE d SET w = w || 'x', b = b WHERE id % 7 = 0;);
my %scan = (
	'index scan' => 'SELECT a, id, left(w, 3) FROM d WHERE a >= 0 ORDER BY a, id',
	'index-only scan' => 'SELECT a, id FROM d WHERE a >= 0 ORDER BY a, id');

# ---- helpers ---------------------------------------------------------------

# Start statements; come back when they are done or wait for somebody.
sub start_statement
{
	my ($session, $pid, $sql) = @_;
	my $done = 'SELECT WHERE false';

	$session->query_until(qr/started/, "\\echo started\n$sql;\n$done;\n");
	$node->poll_query_until(
		'postgres', qq(
		SELECT state = 'idle' AND query = '$done;' OR wait_event_type = 'Lock' OR wait_event IN ('BufferPin', 'BufferCleanup')
		FROM pg_stat_activity WHERE pid = $pid))
	  or die "neither done nor waiting: $sql";
	return;
}

# ---- 1. in the same session --------------------------------------------------

my @statements = (
	'DROP INDEX d_a',
	'DROP INDEX d_b',
	'DROP TABLE d',
	'DROP SCHEMA public CASCADE',
	'TRUNCATE d',
	'ALTER TABLE d ADD COLUMN x int',
	'ALTER TABLE d ADD COLUMN x int DEFAULT 5',
	'ALTER TABLE d ADD COLUMN x float DEFAULT random()',
	'ALTER TABLE d DROP COLUMN b',
	'ALTER TABLE d DROP COLUMN a',
	'ALTER TABLE d ALTER COLUMN a TYPE bigint',
	'ALTER TABLE d ADD CHECK (a >= 0)',
	'ALTER TABLE d RENAME COLUMN a TO aa',
	'ALTER TABLE d RENAME TO dd',
	'ALTER TABLE d SET (fillfactor = 50)',
	'ALTER TABLE d SET SCHEMA other',
	'ALTER TABLE d SET UNLOGGED',
	'ALTER TABLE d ALTER COLUMN a SET STATISTICS 7',
	'ALTER INDEX d_a RENAME TO d_aa',
	'ALTER INDEX d_a SET (fillfactor = 50)',
	'REINDEX INDEX d_a',
	'REINDEX TABLE d',
	'REINDEX INDEX CONCURRENTLY d_a',
	'CLUSTER d USING d_a',
	'VACUUM d',
	'ANALYZE d',
	'CREATE INDEX d_x ON d (b, a)',
	'CREATE UNIQUE INDEX d_x ON d (a, id)',
	'CREATE INDEX CONCURRENTLY d_x ON d (b, a)',
	'CREATE STATISTICS d_s ON a, b FROM d',
	q(CREATE RULE d_r AS ON DELETE TO d DO ALSO NOTIFY d),
	q(COMMENT ON INDEX d_a IS 'd'),
	'GRANT SELECT ON d TO PUBLIC',
	'LOCK TABLE d',
	'DELETE FROM d',
	'DELETE FROM d WHERE a > 5000',
	'DELETE FROM d WHERE CURRENT OF c',
	q(UPDATE d SET w = 'changed' WHERE CURRENT OF c),
	'UPDATE d SET a = -a',
	'INSERT INTO d SELECT 10000 + i, i, 1, NULL FROM generate_series(1, 15000, 11) i',
	'DISCARD PLANS',
	'DISCARD ALL',
	'RESET ALL',
	'SET pg_lookahead.enable = off',
	'SET pg_lookahead.max_leaf_pages = 3',
	'PREPARE TRANSACTION \'d\'',
	'SAVEPOINT a; DELETE FROM d; ROLLBACK TO a',
	'SAVEPOINT a; CREATE INDEX d_x ON d (b, a); ROLLBACK TO a',
	'DECLARE e CURSOR FOR SELECT a, id FROM d WHERE a >= 0 ORDER BY a DESC; FETCH 5 FROM e');

$node->safe_psql('postgres', 'CREATE SCHEMA other');

# Transcripts of a script that runs in each mode: mode => name => text.
sub transcripts
{
	my (%script) = @_;
	my $all = '';
	my %text;

	for my $name (sort keys %script)
	{
		for my $mode (sort keys %modes)
		{
			my $mark = "=$mode=$name";

			$mark =~ s/'/''/g;
			$all .= "\\echo '$mark'\n\\warn '$mark'\n\\set ON_ERROR_ROLLBACK off\n$table\n$modes{$mode}\n"
			  . "\\set ON_ERROR_ROLLBACK on\n$script{$name}\nROLLBACK;\nRESET ALL;\nDROP TABLE d;\n";
		}
	}
	my ($ret, $out, $err) = $node->psql('postgres', $all, on_error_stop => 0);

	is($ret, 0, 'the session has survived');
	$err =~ s/^psql:<stdin>:\d+: //mg;
	for my $stream ($out, $err)
	{
		my (undef, @parts) = split /^=(.*?)=(.*)\n?/m, $stream;

		while (my ($mode, $name, $text) = splice @parts, 0, 3)
		{
			$text{$mode}{$name} .= $text =~ s/\n*\z/\n/r;
		}
	}
	return %text;
}

for my $kind (sort keys %scan)
{
	my %script;

	for my $statement (@statements)
	{
		$script{$statement} = qq(
			BEGIN;
			DECLARE c CURSOR FOR $scan{$kind};
			FETCH 3 FROM c;
			MOVE 150 FROM c;
			FETCH 1 FROM c;
			$statement;
			FETCH 3 FROM c;
			MOVE 300 FROM c;
			FETCH BACKWARD 3 FROM c;
			FETCH ALL FROM c;
			CLOSE c;
			$statement;
			SELECT count(*), sum(a) FROM d;
			SELECT count(*), sum(a) FROM (SELECT a, id, w FROM d WHERE a >= 0 ORDER BY a, id) s;);
	}
	# a table that is new in the transaction: with wal_level minimal, it is not WAL-logged
	$script{'new'} = qq(
		DROP TABLE d;
		BEGIN;
		@{[ $table =~ s/VACUUM ANALYZE/ANALYZE/r ]}
		DECLARE c CURSOR FOR $scan{$kind};
		FETCH 3 FROM c;
		SAVEPOINT b;
		DELETE FROM d WHERE id % 2 = 0;
		FETCH 3 FROM c;
		SELECT count(*), sum(a) FROM (SELECT a, id, w FROM d WHERE a >= 0 ORDER BY a, id) s;
		ROLLBACK TO b;
		SELECT count(*), sum(a) FROM (SELECT a, id, w FROM d WHERE a >= 0 ORDER BY a, id) s;
		TRUNCATE d;
		FETCH ALL FROM c;
		TRUNCATE d;
		SELECT count(*), sum(a) FROM (SELECT a, id, w FROM d WHERE a >= 0 ORDER BY a, id) s;
		COMMIT;);
	$script{'temporary'} = qq(
		BEGIN;
		CREATE TEMP TABLE d ON COMMIT DROP AS SELECT * FROM public.d;
		CREATE INDEX d_t ON d (a, id);
		DECLARE c CURSOR FOR $scan{$kind};
		FETCH 3 FROM c;
		DROP TABLE d;
		REINDEX INDEX d_t;
		CREATE INDEX d_u ON d (b);
		FETCH ALL FROM c;
		COMMIT;);

	my %text = transcripts(%script);
	for my $name (sort keys %script)
	{
		my $stock = $text{off}{$name};

		like($stock, qr/^\d+\|\d+/, "$kind, $name: off");
		is($text{$_}{$name}, $stock, "$kind, $name: $_") for @forced;
	}
	# what the list is meant to contain
	like($text{off}{'DROP INDEX d_a'},
		qr/ERROR:  cannot DROP INDEX "d_a" because it is being used by active queries in this session/,
		"$kind: stock refuses some");
	unlike($text{off}{'ALTER INDEX d_a RENAME TO d_aa'}, qr/ERROR.*used by/, "$kind: and allows some");
}

# ---- 2. in another session -----------------------------------------------------

# as they come, or after changes to the rows
my @others = (
	'ANALYZE d',
	'VACUUM d',
	'VACUUM (FREEZE, INDEX_CLEANUP ON, TRUNCATE OFF) d',
	'ALTER INDEX d_a SET (fillfactor = 50)',
	'ALTER TABLE d SET (fillfactor = 50)',
	'ALTER TABLE d ALTER COLUMN a SET STATISTICS 7',
	'GRANT SELECT ON d TO PUBLIC',
	'CREATE STATISTICS d_s ON a, b FROM d',
	'CREATE INDEX d_x ON d (b, a)',
	'CREATE INDEX CONCURRENTLY d_x ON d (b, a)',
	'REINDEX INDEX CONCURRENTLY d_a',
	'REINDEX TABLE CONCURRENTLY d',
	'DROP INDEX CONCURRENTLY d_b',
	'DROP INDEX d_a',
	'DROP TABLE d',
	'TRUNCATE d',
	'CLUSTER d USING d_b',
	'ALTER INDEX d_a RENAME TO d_aa',
	'ALTER TABLE d DROP COLUMN a',
	"DELETE FROM d WHERE a > 3000;\nVACUUM (INDEX_CLEANUP ON) d",
	"UPDATE d SET a = 15000 - a;\nVACUUM (INDEX_CLEANUP ON) d",
	"INSERT INTO d SELECT 10000 + i, i, 1, NULL FROM generate_series(1, 15000, 5) i;\nANALYZE d");

my $other = open_session($node, '');
my $other_pid = ask($other, 'SELECT pg_backend_pid()');

for my $kind (sort keys %scan)
{
	for my $statement (@others)
	{
		my $name = "$kind, elsewhere " . ($statement =~ s/\n/ /r);

		$node->safe_psql('postgres', "DROP TABLE IF EXISTS d; $_") for $table;
		my @expected = split /\n/, $node->safe_psql('postgres', stock() . $scan{$kind});
		my $reader = open_session($node, $modes{'ring 64'});

		ask($reader, 'BEGIN');
		ask($reader, "DECLARE c CURSOR FOR $scan{$kind}");
		my @got = split /\n/, ask($reader, 'FETCH 200 FROM c');
		start_statement($other, $other_pid, $statement);
		push @got, split /\n/, ask($reader, 'FETCH 300 FROM c');
		my @back = split /\n/, ask($reader, 'FETCH BACKWARD 250 FROM c');
		is("@back", join(' ', reverse @expected[ 249 .. 498 ]), "$name: backward");
		ask($reader, 'MOVE 250 FROM c');
		push @got, split /\n/, ask($reader, 'FETCH ALL FROM c');
		is("@got", "@expected", "$name: all rows of the snapshot");
		ask($reader, 'COMMIT');
		is(ask($other, 'SELECT 1'), 1, "$name: is done in the end");
		is(check_indexes($node), '', "$name: indexes are sound");
		$reader->quit;
	}
}
$other->quit;

# ---- 3. pins of an idle cursor -----------------------------------------------------

# A distance of many leaf pages.  Few heap blocks of v are not all-visible, so the next one
# that an index-only scan visits is many leaf pages away.
$node->safe_psql('postgres',
		'DROP TABLE IF EXISTS d;'
	  . random_table('d', 5000)
	  . random_table('u', 5000, kind => 'UNLOGGED')
	  . random_table('v', 5000)
	  . 'UPDATE v SET b = b WHERE id % 1000 = 500;');
for my $case (
	[ 'index scan', 'a, id, w', 'd', 2 ],
	[ 'index-only scan', 'a, id', 'd', 12 ],
	[ 'index-only scan, mostly visible', 'a, id', 'v', 12 ],
	[ 'unlogged, index scan', 'a, id, w', 'u', 12 ],
	[ 'unlogged, index-only scan', 'a, id', 'u', 12 ])
{
	my ($kind, $columns, $from, $most) = @$case;
	my $reader = open_session($node, forced(ring => 256, distance => 1024));
	my $begin = "BEGIN; DECLARE c SCROLL CURSOR FOR SELECT $columns FROM $from WHERE a >= 0 ORDER BY a, id";

	ask($reader, $begin);
	for my $motion ('FETCH 1', 'FETCH 10', 'MOVE 100', 'MOVE 1000', 'FETCH BACKWARD 1', 'MOVE BACKWARD 500', 'MOVE 700',
		'MOVE 3600')
	{
		ask($reader, "$motion FROM c");
		my $pins = pinned($node);

		cmp_ok($pins, '>=', 1, "$kind, $motion: is under way");
		cmp_ok($pins, '<=', $most, "$kind, $motion: at most $most buffers pinned")
		  or diag(pinned_relations($node));
	}
	ask($reader, 'MOVE ALL FROM c');
	cmp_ok(pinned($node), '<=', 3, "$kind, at its end");
	ask($reader, 'CLOSE c');
	is(pinned_relations($node), '', "$kind, closed: nothing is pinned");
	ask($reader, 'COMMIT');
	$reader->quit;
}

# A hash join that may end early keeps none of its outer side's pages pinned.
my %pins;
for my $look ([ 'stock', stock() ], [ 'forced', forced() ])
{
	my $reader = open_session($node, $look->[1]
		  . 'SET enable_mergejoin = off; SET enable_nestloop = off; SET enable_seqscan = off; SET enable_bitmapscan = off;');

	ask($reader, 'BEGIN; DECLARE c CURSOR FOR SELECT x.id, x.w FROM d x JOIN (SELECT id FROM v OFFSET 0) y ON y.id = x.id WHERE x.a >= 0');
	is(ask($reader, 'MOVE 700 IN c; SELECT count(*) FROM pg_cursors'), 1, "hash join, $look->[0]: is under way");
	($pins{ $look->[0] }) = grep { /^d\|/ } split /\n/, pinned_relations($node);
	ask($reader, 'COMMIT');
	$reader->quit;
}
is($pins{forced}, $pins{stock}, 'hash join: a cursor pins as many pages of the outer table');

# ---- 4. caches that are discarded at every chance ------------------------------------

SKIP:
{
	# scans that begin again while the caches change under them
	my %cursor = (
		%scan,
		'rescans' => 'SELECT g, s.id, left(s.w, 3) FROM generate_series(9, 0, -1) g,
			LATERAL (SELECT id, w FROM d WHERE b = g ORDER BY id OFFSET 0) s',
		'array keys' => q(SELECT b, id, left(w, 3) FROM d WHERE b = ANY ('{0, 2, 3, 5, 7, 9}')));

	skip 'not an assert build', 2 * keys %cursor
	  if $node->safe_psql('postgres', 'SHOW debug_assertions') ne 'on';

	for my $kind (sort keys %cursor)
	{
		my @expected = split /\n/, $node->safe_psql('postgres', stock() . $cursor{$kind});
		my $reader = open_session($node, $modes{'ring 64'});

		ask($reader, "BEGIN; DECLARE c SCROLL CURSOR FOR $cursor{$kind}");
		my @got = split /\n/, ask($reader, 'FETCH 10 FROM c');
		ask($reader, 'SET debug_discard_caches = 1');
		push @got, split /\n/, ask($reader, 'FETCH 1000 FROM c');
		push @got, reverse split /\n/, ask($reader, 'FETCH BACKWARD 10 FROM c');
		push @got, split /\n/, ask($reader, 'FETCH 600 FROM c');
		ask($reader, 'SET debug_discard_caches = 0');
		push @got, split /\n/, ask($reader, 'FETCH ALL FROM c');
		is("@got", "@expected[ 0 .. 1009, 999 .. 1008, 1000 .. $#expected ]", "$kind: caches discarded");
		ask($reader, 'COMMIT; SET debug_discard_caches = 1');
		is( ask($reader, "SELECT count(*) FROM ($cursor{$kind} LIMIT 700) s"),
			700, "$kind: caches discarded from the beginning");
		$reader->quit;
	}
}

# ---- 5. statistics ---------------------------------------------------------------------

# From 19 on, scans set the visibility map when they prune, as far as the server happens to know
# which transactions have ended; an index-only scan then fetches a row more or less.
for my $kind (sort keys %scan)
{
	my %figures;
	my $fetched = $kind eq 'index-only scan' && $version >= 190000 ? 'idx_tup_fetch > 0' : 'idx_tup_fetch';

	for my $mode (sort keys %modes)
	{
		$node->safe_psql('postgres', "SET pg_lookahead.enable = off; DROP TABLE d; $table");
		my $reader = open_session($node, $modes{$mode});

		ask($reader, "BEGIN; DECLARE c CURSOR FOR $scan{$kind}");
		ask($reader, 'MOVE 300 FROM c');
		$node->safe_psql('postgres', 'ALTER INDEX d_a SET (fillfactor = 50); ALTER TABLE d SET (fillfactor = 50)');
		ask($reader, 'MOVE 300 FROM c');
		ask($reader, 'ANALYZE d');
		ask($reader, 'MOVE 300 FROM c');
		ask($reader, 'SAVEPOINT a; COMMENT ON INDEX d_a IS $$d$$; ROLLBACK TO a');
		ask($reader, 'MOVE ALL FROM c');
		ask($reader, 'COMMIT');
		ask($reader, 'SELECT pg_stat_force_next_flush()');
		$reader->quit;
		$figures{$mode} = $node->safe_psql(
			'postgres', q(
			SELECT idx_scan, idx_tup_read, ) . $fetched . q(, idx_blks_read + idx_blks_hit
			FROM pg_stat_user_indexes i JOIN pg_statio_user_indexes USING (indexrelid) WHERE i.indexrelname = 'd_a'));
		is($figures{$mode}, $figures{off}, "$kind, figures of the index: $mode");
	}
	cmp_ok((split /\|/, $figures{off})[1], '>=', 1500, "$kind: they were counted");
}

cmp_ok(activated($node), '>', 50, 'scans have looked ahead');
check_log($node);
$node->stop;

done_testing();
