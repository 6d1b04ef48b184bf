# 017_limits.pl - look-ahead pins no more buffers than its backend's share of them.
#
# With 16 shared buffers, or with many connections for the buffers that there are, a
# backend's share is nothing: joins and scans of every kind must run as they do with
# look-ahead off, without "no unpinned buffers available", and an open cursor must keep no
# pin that stock does not keep.  Where there is room, cursors keep pins up to the share;
# and the share is whole again after errors that were caught, and after aborts.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', extensions => ['pg_buffercache'], conf => "shared_buffers = 16MB\n");
my $have_vector = $node->safe_psql('postgres', q(SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'));

# Rows of 2 kB, four on a page, in an order unrelated to their keys.  All but a few pages of
# table o are all-visible, so that an index-only scan has to read several leaf pages ahead to
# find a block that it is going to visit.
sub make_tables
{
	my ($kind, @names) = @_;

	return join '', map { qq(
		CREATE $kind TABLE $_ (a int, b int, w text, p point);
		ALTER TABLE $_ ALTER w SET STORAGE plain;
		INSERT INTO $_ SELECT i * 7919 % 3001, i, repeat('w', 1900), point(i * 7919 % 1009, i * 4447 % 1013)
			FROM generate_series(1, 3000) i;
		CREATE INDEX ${_}_a ON $_ (a, b) WITH (fillfactor = 10);
		CREATE INDEX ${_}_b ON $_ (b) WITH (fillfactor = 10);
		CREATE INDEX ${_}_h ON $_ USING hash (a);
		CREATE INDEX ${_}_p ON $_ USING gist (p);
		ANALYZE $_;) } @names;
}

$node->safe_psql('postgres', make_tables('', 't', 'o') . make_tables('UNLOGGED', 'u'));
$node->safe_psql('postgres', $_) for 'VACUUM o', 'DELETE FROM o WHERE b % 100 = 50';
$node->safe_psql(
	'postgres', q(
	CREATE EXTENSION vector;
	CREATE TABLE v (id int, w text, e vector(8));
	ALTER TABLE v ALTER w SET STORAGE plain;
	INSERT INTO v SELECT i, repeat('w', 1900), (SELECT array_agg((hashint8(i::bigint * 8 + j) & 65535) / 65536.0)
			FROM generate_series(1, 8) j)::vector(8)
		FROM generate_series(1, 1000) i;
	CREATE INDEX v_e ON v USING hnsw (e vector_l2_ops);
	ANALYZE v;)) if $have_vector;
create_fail($node);

# ---- statements ------------------------------------------------------------------

my $seq = 'SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off;';
my $hash = $seq . 'SET enable_mergejoin = off; SET enable_nestloop = off;';
my $loop = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off; SET enable_material = off;'
  . 'SET join_collapse_limit = 1; SET enable_sort = off;';
my $merge = 'SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_sort = off; SET enable_material = off;';

# Cursors that stand in the middle of their scans, all open at once.
sub cursors
{
	my ($number, $query) = @_;

	return 'BEGIN;'
	  . join('', map { "DECLARE c$_ CURSOR FOR $query; MOVE 20 IN c$_;" } 1 .. $number)
	  . join('', map { "FETCH 2 FROM c$_;" } 1 .. $number) . 'COMMIT;';
}

my $a_of_o = 'SELECT a, b FROM o WHERE a > 100 ORDER BY a';
my @statements = (
	[ 'hash join', $hash, 'SELECT count(*), sum(length(x.w) + length(y.w)) FROM t x JOIN t y ON x.a = y.b' ],
	[ 'hash joins', $hash, 'SELECT count(*), sum(length(x.w) + length(y.w) + length(z.w)) FROM t x JOIN t y ON x.a = y.b JOIN t z ON z.a = x.b' ],
	[ 'hash join, the row itself', $hash, 'SELECT count(*), sum(length(x::text)) FROM t x JOIN o y ON x.a = y.b' ],
	[ 'hash join of temporary tables', $hash, 'SELECT count(*), sum(length(x.w) + length(y.w)) FROM m x JOIN m y ON x.a = y.b' ],
	[ 'parallel hash join', $hash . q(SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0;
		SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;),
		'SELECT count(*), sum(length(x.w) + length(y.w)) FROM t x JOIN t y ON x.a = y.b' ],
	[ 'index scan', '', 'SELECT count(*), sum(length(w)) FROM (SELECT w FROM t WHERE a > 10 ORDER BY a OFFSET 0) s' ],
	[ 'index scan, unlogged', '', 'SELECT count(*), sum(length(w)) FROM (SELECT w FROM u WHERE a > 10 ORDER BY a OFFSET 0) s' ],
	[ 'index scan, temporary', '', 'SELECT count(*), sum(length(w)) FROM (SELECT w FROM m WHERE a > 10 ORDER BY a OFFSET 0) s' ],
	(map { [ "index-only scan of $_", '', "SELECT count(*), sum(a + b) FROM (SELECT a, b FROM $_ WHERE a > 10 ORDER BY a OFFSET 0) s" ] }
		qw(o t u m)),
	(map { [ "cursors over $_", '', cursors(3, "SELECT a, b FROM $_ WHERE a > 100 ORDER BY a") ] } qw(o t u m)),
	[ 'merge join', $merge, 'SELECT count(*), sum(x.a + y.b) FROM t x JOIN o y ON x.a = y.b' ],
	[ 'nested loop', $loop, 'SELECT count(*), sum(length(y.w)) FROM o x JOIN t y ON y.b = x.a' ],
	[ 'nested loops', $loop, 'SELECT count(*), sum(length(y.w) + length(z.w) + length(q.w)) FROM o x JOIN t y ON y.b = x.a JOIN t z ON z.b = y.a JOIN t q ON q.b = z.a' ],
	[ 'nested loops over index-only scans', $loop, 'SELECT count(*), sum(y.b + z.b + q.a) FROM o x JOIN o y ON y.a = x.b JOIN t z ON z.a = y.b JOIN u q ON q.a = z.b' ],
	[ 'nested loop, temporary', $loop, 'SELECT count(*), sum(length(y.w)) FROM m x JOIN m y ON y.b = x.a' ],
	[ 'hash index', 'SET enable_hashjoin = off; SET enable_mergejoin = off;',
		'SELECT count(*), sum(length(y.w)) FROM generate_series(1, 500) i, LATERAL (SELECT w FROM t WHERE a = i OFFSET 0) y' ],
	[ 'GiST, in order of distance', '', q(SELECT count(*), sum(b) FROM (SELECT b FROM t ORDER BY p <-> '(500,500)' LIMIT 1000) s) ],
	$have_vector ? [ 'HNSW', '', q(SELECT count(*), sum(id) FROM (SELECT id FROM v ORDER BY e <-> '[.5,.5,.5,.5,.5,.5,.5,.5]' LIMIT 40) s) ] : ());

# One session, as the share is a backend's: each statement off and forced.
sub compare
{
	my ($name) = @_;
	my $session = open_session($node, 'SET client_min_messages = error;' . stock() . make_tables('TEMPORARY', 'm'));

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	for my $s (@statements)
	{
		my ($what, $settings, $query) = @$s;
		my $expected = ask($session, "RESET ALL; SET client_min_messages = error; @{[stock()]} $settings $query");

		unlike($expected, qr/ERROR/, "$name: $what: stock can do it");
		is(ask($session, "RESET ALL; SET client_min_messages = error; @{[forced()]} $settings $query"),
			$expected, "$name: $what");
		nothing_pinned($node, "$name: $what");
	}
	$session->quit;
	return;
}

# Pins of a backend with that many cursors.
sub pins_of_cursors
{
	my ($number, $settings) = @_;
	my $session = open_session($node, $settings);

	ask($session, cursors($number, $a_of_o) =~ s/COMMIT;$//r);
	my $pins = pinned($node);
	ask($session, 'COMMIT');
	nothing_pinned($node, 'cursors that were closed');
	$session->quit;
	return $pins;
}

sub restart_with
{
	my ($conf) = @_;

	$node->append_conf('postgresql.conf', $conf);
	$node->restart;
	return;
}

# ---- nothing to be had -------------------------------------------------------------

restart_with("shared_buffers = 128kB\ntemp_buffers = 800kB\nmax_connections = 20\n");
compare('16 buffers');

restart_with("shared_buffers = 16MB\nmax_connections = 1000\n");
compare('1000 connections');
my $stock = pins_of_cursors(5, stock());
is(pins_of_cursors(5, forced()), $stock, 'no share: cursors keep the pins of stock, and no other');

# ---- a share -----------------------------------------------------------------------

restart_with("shared_buffers = 16MB\nmax_connections = 20\nmax_wal_senders = 0\nwal_level = minimal\nmax_worker_processes = 4\n");
my $share = 2048 / (20 + 4);	# at most: there are some processes more
compare('a share');
my $some = pins_of_cursors(2, forced());
my $many = pins_of_cursors(30, forced());
cmp_ok($some, '>', pins_of_cursors(2, stock()), 'a share: cursors keep leaf pages pinned');
cmp_ok($many, '<=', pins_of_cursors(30, stock()) + $share, '... and all together no more than it allows');

# what a session took is given back whatever becomes of the query
my $session = open_session($node, forced() . $hash);
my $failing = 'SELECT sum(1 / (x.a - 1500)) FROM t x JOIN t y ON x.a = y.b WHERE length(x.w) + length(y.w) > 0';
is(ask($session, "SELECT fail('$failing', 50)"), 50, 'errors in hash joins, caught');
ask($session, forced() . 'SET enable_indexscan = on; SET enable_indexonlyscan = on');
is(ask($session, "SELECT fail('SELECT sum(1 / (a - 1500)) FROM ($a_of_o OFFSET 0) s', 50)"), 50, 'errors in index-only scans, caught');
for (1 .. 20)
{
	ask($session, "BEGIN; DECLARE c CURSOR FOR $a_of_o; MOVE 20 IN c; SAVEPOINT a; DECLARE d CURSOR FOR $a_of_o; MOVE 20 IN d; "
		  . 'FETCH 2 FROM c; SELECT 1 / 0; ROLLBACK TO a; FETCH 1 FROM c; SELECT 1 / 0; ROLLBACK');
}
nothing_pinned($node, 'errors');
ask($session, cursors(2, $a_of_o) =~ s/COMMIT;$//r);
is(pinned($node), $some, 'after all of them, cursors keep as many pins as at first');
$session->quit;

check_log($node);
$node->stop;

done_testing();
