# 028_apply.pl - logical replication: look-ahead over the changes that are applied.
#
# Two subscribers have the same tables and receive the same changes: one looks ahead, forced, and the
# other is as in stock.  Checked here is that nobody can tell them apart, whatever comes:
#   1. Tables of all kinds; text and binary, and streamed transactions.
#   2. A stream of small transactions; TRUNCATE; tables that change on either side.
#   3. A tiny queue, messages that are larger, settings that change meanwhile.
#   4. Triggers with effects, origins, two-phase commits.
#   5. Conflicts: statistics, errors, restarts, transactions that are skipped.
#   6. Subscriptions that are disabled, altered or dropped with a full queue; locks; a dead publisher.
#   7. Damaged blocks: the error is raised in its turn.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $conf = "wal_level = logical\nmax_wal_senders = 20\nmax_replication_slots = 20\nmax_logical_replication_workers = 10\n"
  . "max_prepared_transactions = 10\nfsync = off\nlogical_decoding_work_mem = 64kB\nlog_min_messages = debug1\n"
  . "wal_retrieve_retry_interval = 100ms\n";
my $publisher = new_server('publisher', streaming => 1, conf => $conf . "track_commit_timestamp = on\n");
my $ahead = new_server('ahead', streaming => 1, conf => $conf . "pg_lookahead.force = on\n", extensions => ['amcheck']);
my $stock = new_server('stock', streaming => 1, conf => $conf . "pg_lookahead.enable_apply = off\n");
my @subscribers = ($ahead, $stock);
my $version = $publisher->pg_version->major;
my $address = $publisher->connstr('postgres');

sub sql
{
	my ($node, $statements) = @_;

	return $node->safe_psql('postgres', $statements);
}

# on both subscribers
sub both
{
	sql($_, $_[0]) for @subscribers;
	return;
}

sub figures
{
	my ($columns) = @_;

	return sql($ahead, "SELECT $columns FROM pg_stat_lookahead_apply");
}

sub caught_up
{
	my ($name) = @_;

	$publisher->wait_for_catchup("${name}_" . $_->name) for @subscribers;
	return;
}

sub subscribe
{
	my ($name, $publications, $options) = @_;

	for my $node (@subscribers)
	{
		my $subscription = "${name}_" . $node->name;

		sql($node, "CREATE SUBSCRIPTION $subscription CONNECTION \$\$$address application_name=$subscription\$\$
			PUBLICATION $publications WITH ($options)");
	}
	synchronized();
	return;
}

sub synchronized
{
	$_->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_subscription_rel WHERE srsubstate <> 'r'")
	  or die 'a table is not synchronized'
	  for @subscribers;
	return;
}

sub unsubscribe
{
	my ($name) = @_;

	sql($_, "DROP SUBSCRIPTION ${name}_" . $_->name) for @subscribers;
	return;
}

my %order = (effects => 'n');

sub digest
{
	my ($node, $table, $columns) = @_;

	$columns //= 'r::text';
	my $order = $order{$table} // "md5($columns)";

	return sql($node, "SELECT count(*), md5(string_agg(md5($columns), '' ORDER BY $order)) FROM $table r");
}

# Tables are equal on both subscribers, and those of %$published on the publisher.
sub same
{
	my ($name, $tables, $published) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	for my $table (@$tables)
	{
		is(digest($ahead, $table), digest($stock, $table), "$name: $table as in stock");
	}
	for my $table (sort keys %{ $published // {} })
	{
		is(digest($ahead, $table, $published->{$table}), digest($publisher, $table, $published->{$table}),
			"$name: $table as on the publisher");
	}
	return;
}

# ---- tables ----------------------------------------------------------------------

my $rows = 3000;

sql($publisher, qq(
	CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
	CREATE DOMAIN positive AS int CHECK (VALUE > 0);
	CREATE TABLE pk (id int PRIMARY KEY, a int, b text, w text);
	CREATE TABLE other_key (id int, k text NOT NULL, a int, w text);
	CREATE UNIQUE INDEX other_key_k ON other_key (k);
	ALTER TABLE other_key REPLICA IDENTITY USING INDEX other_key_k;
	CREATE TABLE all_columns (a int, b int, w text);
	ALTER TABLE all_columns REPLICA IDENTITY FULL;
	CREATE TABLE no_index (a int, b text);
	ALTER TABLE no_index REPLICA IDENTITY FULL;
	CREATE TABLE types (u uuid PRIMARY KEY, n numeric(20,5), tz timestamptz, d date, m mood, p positive, by bytea, i inet,
		bo bool, f float8, c char(10), v varchar(20), iv interval, arr int[], j jsonb, f4 float4, ti time, o oid, s smallint, l bigint);
	CREATE TABLE parted (id int, a int, w text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
	CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (1500);
	CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (1500) TO (MAXVALUE);
	CREATE TABLE leaves (id int, a int, w text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
	CREATE TABLE leaves_1 PARTITION OF leaves FOR VALUES FROM (MINVALUE) TO (1500);
	CREATE TABLE leaves_2 PARTITION OF leaves FOR VALUES FROM (1500) TO (MAXVALUE);
	CREATE TABLE shape (id int PRIMARY KEY, a int, gone int, b int, w text);
	CREATE TABLE toasted (id int PRIMARY KEY, a int, big text);
	ALTER TABLE toasted ALTER big SET STORAGE EXTERNAL;
	CREATE TABLE effects_of (id int PRIMARY KEY, a int);
	CREATE TABLE two_phase (id int PRIMARY KEY, a int);
	CREATE PUBLICATION pub FOR TABLE pk, other_key, all_columns, no_index, types, leaves, shape, toasted;
	CREATE PUBLICATION pub_root FOR TABLE parted WITH (publish_via_partition_root);
	CREATE PUBLICATION pub_more FOR TABLE effects_of, two_phase;));
both(qq(
	CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
	CREATE DOMAIN positive AS int CHECK (VALUE > 0);
	CREATE TABLE pk (id int PRIMARY KEY, a int, b text, w text);
	CREATE INDEX pk_a ON pk (a) WITH (fillfactor = 30);
	CREATE INDEX pk_lower ON pk (lower(b)) WITH (fillfactor = 30);
	CREATE INDEX pk_part ON pk (a, id) WHERE a % 2 = 0;
	CREATE INDEX pk_hash ON pk USING hash (b);
	CREATE TABLE other_key (w text, a int, k text NOT NULL, id int);
	CREATE UNIQUE INDEX other_key_k ON other_key (k);
	CREATE INDEX other_key_a ON other_key (a);
	ALTER TABLE other_key REPLICA IDENTITY USING INDEX other_key_k;
	CREATE TABLE all_columns (a int, b int, w text);
	CREATE INDEX all_columns_b ON all_columns (b, a);
	CREATE TABLE no_index (a int, b text);
	CREATE TABLE types (u uuid PRIMARY KEY, n numeric(20,5), tz timestamptz, d date, m mood, p positive, by bytea, i inet,
		bo bool, f float8, c char(10), v varchar(20), iv interval, arr int[], j jsonb, f4 float4, ti time, o oid, s smallint, l bigint);
	CREATE INDEX ON types (n); CREATE INDEX ON types (tz); CREATE INDEX ON types (d); CREATE INDEX ON types (m);
	CREATE INDEX ON types (p); CREATE INDEX ON types (by); CREATE INDEX ON types (i); CREATE INDEX ON types (bo, f);
	CREATE INDEX ON types (c); CREATE INDEX ON types (v); CREATE INDEX ON types (iv); CREATE INDEX ON types (arr);
	CREATE INDEX ON types USING gin (j); CREATE INDEX ON types (f4, ti, o); CREATE INDEX ON types (s, l);
	CREATE TABLE parted (w text, id int, a int, PRIMARY KEY (id)) PARTITION BY HASH (id);
	CREATE TABLE parted_h0 PARTITION OF parted FOR VALUES WITH (MODULUS 3, REMAINDER 0);
	CREATE TABLE parted_h1 (gone int, id int NOT NULL, w text, a int);
	ALTER TABLE parted_h1 DROP COLUMN gone;
	ALTER TABLE parted ATTACH PARTITION parted_h1 FOR VALUES WITH (MODULUS 3, REMAINDER 1);
	CREATE TABLE parted_h2 PARTITION OF parted FOR VALUES WITH (MODULUS 3, REMAINDER 2) PARTITION BY RANGE (id);
	CREATE TABLE parted_h2_low PARTITION OF parted_h2 FOR VALUES FROM (MINVALUE) TO (1000);
	CREATE TABLE parted_h2_high PARTITION OF parted_h2 FOR VALUES FROM (1000) TO (MAXVALUE);
	CREATE INDEX parted_a ON parted (a);
	CREATE TABLE leaves_1 (id int PRIMARY KEY, a int, w text);
	CREATE TABLE leaves_2 (a int, id int PRIMARY KEY, w text);
	CREATE INDEX leaves_1_a ON leaves_1 (a);
	CREATE TABLE shape (b int, extra text DEFAULT 'x' || random()::text, dropped int, id int PRIMARY KEY, w text, gone int, a int,
		double_a int GENERATED ALWAYS AS (a * 2) STORED, fixed int DEFAULT 7);
	ALTER TABLE shape DROP COLUMN dropped;
	CREATE INDEX shape_a ON shape (a);
	CREATE INDEX shape_fixed ON shape (fixed, id);
	CREATE INDEX shape_double ON shape (double_a);
	ALTER TABLE shape ALTER extra SET DEFAULT 'x';
	CREATE TABLE toasted (id int PRIMARY KEY, a int, big text);
	CREATE INDEX toasted_big ON toasted (md5(big));
	CREATE INDEX toasted_a ON toasted (a);
	CREATE TABLE effects_of (id int PRIMARY KEY, a int);
	CREATE INDEX effects_of_a ON effects_of (a);
	CREATE TABLE two_phase (id int PRIMARY KEY, a int);
	CREATE TABLE effects (n bigserial PRIMARY KEY, what text);
	CREATE FUNCTION effect() RETURNS trigger LANGUAGE plpgsql AS \$\$
	BEGIN
		INSERT INTO public.effects (what) SELECT TG_OP || coalesce(NEW.id, OLD.id) || ' ' || coalesce(NEW.a, OLD.a) ||
			' after ' || (SELECT count(*) FROM public.effects_of);
		IF TG_OP = 'UPDATE' AND NEW.a % 7 = 0 THEN NEW.a := NEW.a + 1; END IF;
		RETURN coalesce(NEW, OLD);
	END \$\$;
	CREATE TRIGGER effect BEFORE INSERT OR UPDATE OR DELETE ON effects_of FOR EACH ROW EXECUTE FUNCTION effect();
	ALTER TABLE effects_of ENABLE ALWAYS TRIGGER effect;));

my @main = qw(pk other_key all_columns no_index types parted leaves_1 leaves_2 shape toasted);
my %published = (pk => 'r::text', other_key => "concat_ws(' ', k, a, w)", all_columns => 'r::text', no_index => 'r::text',
	types => 'r::text', parted => "concat_ws(' ', id, a, w)", leaves_1 => "concat_ws(' ', id, a, w)",
	leaves_2 => "concat_ws(' ', id, a, w)", shape => "concat_ws(' ', id, a, b, w)", toasted => 'r::text');

# All kinds of changes, in an order that is unrelated to that of rows and keys.
my $round = 0;

sub change_everything
{
	my ($n) = @_;

	$round++;
	my $some = "SELECT i FROM (SELECT (hashint4(g + $round) & 2147483647) % (3 * $rows) AS i FROM generate_series(1, $n) g) h GROUP BY i ORDER BY md5(i::text)";
	my $statements = "
		INSERT INTO pk SELECT i, i * 7 % 1000, 'B' || i, repeat('w', 200) FROM ($some) s ON CONFLICT (id) DO UPDATE SET a = pk.a + 1, b = 'C' || pk.a;
		DELETE FROM pk WHERE id % 17 = $round % 17;
		UPDATE pk SET id = -id WHERE id % 97 = $round % 97 AND NOT EXISTS (SELECT FROM pk q WHERE q.id = -pk.id);
		UPDATE pk SET w = repeat('v', 150) WHERE id % 13 = $round % 13;
		INSERT INTO other_key (id, k, a, w) SELECT i, 'key ' || i, i, repeat('w', 100) FROM ($some) s ON CONFLICT (k) DO UPDATE SET a = other_key.a + 1;
		UPDATE other_key SET k = k || '!' || $round WHERE id % 31 = $round % 31;
		DELETE FROM other_key WHERE id % 19 = $round % 19;
		INSERT INTO all_columns SELECT i, i % 50, repeat('w', 50) FROM ($some LIMIT 100) s;
		UPDATE all_columns SET w = w || 'x' WHERE a % 11 = $round % 11;
		DELETE FROM all_columns WHERE a % 23 = $round % 23;
		INSERT INTO no_index SELECT i, 'b' FROM ($some LIMIT 20) s;
		DELETE FROM no_index WHERE a % 5 = $round % 5;
		INSERT INTO types SELECT md5(i || ' at $round')::uuid, i / 7.0, '2026-01-01 00:00:00+01'::timestamptz + i * interval '1 min',
			'2026-01-01'::date + i % 1000, (ARRAY['sad', 'ok', 'happy'])[1 + i % 3]::mood, i + 1, decode(md5(i::text), 'hex'),
			('10.0.' || i % 256 || '.' || i % 7)::inet, i % 2 = 0, i * 1.5, 'c' || i, 'v' || i, i * interval '1 hour', ARRAY[i, i + 1],
			jsonb_build_object('i', i), i / 3.0, '00:00'::time + i * interval '1 s', i, i % 30000, i::bigint * 1000000
			FROM ($some LIMIT 300) s;
		INSERT INTO types (u) SELECT md5('null' || i || ' $round')::uuid FROM generate_series(1, 20) i;
		UPDATE types SET n = n + 1, m = 'ok', v = NULL WHERE s % 7 = $round % 7;
		DELETE FROM types WHERE s % 29 = $round % 29;
		INSERT INTO parted SELECT i, i, repeat('w', 100) FROM ($some) s ON CONFLICT (id) DO UPDATE SET a = parted.a + 1;
		UPDATE parted SET id = id + 100000 WHERE id % 37 = $round % 37 AND id < 100000 AND NOT EXISTS (SELECT FROM parted q WHERE q.id = parted.id + 100000);
		DELETE FROM parted WHERE id % 19 = $round % 19;
		INSERT INTO leaves SELECT i, i, repeat('w', 100) FROM ($some) s ON CONFLICT (id) DO UPDATE SET a = leaves.a + 1;
		DELETE FROM leaves WHERE id % 19 = $round % 19;
		INSERT INTO shape SELECT i, i, 1, i % 10, 'w' FROM ($some) s ON CONFLICT (id) DO UPDATE SET a = shape.a + 1;
		DELETE FROM shape WHERE id % 19 = $round % 19;
		INSERT INTO toasted SELECT i, i, repeat(md5(i::text), 100) FROM ($some LIMIT 50) s ON CONFLICT (id) DO UPDATE SET a = toasted.a + 1;
		UPDATE toasted SET big = big || 'x' WHERE id % 5 = $round % 5;";

	# one transaction each, or one for all
	sql($publisher, $round % 2 ? $statements : "BEGIN; $statements COMMIT");
	return;
}

# ---- 1. tables of all kinds ----------------------------------------------------------

change_everything($rows);
my @modes = ('binary = false, streaming = off', 'binary = true, streaming = off', 'binary = true, streaming = on');
push @modes, 'streaming = parallel' if $version >= 16;
for my $mode (@modes)
{
	subscribe('main', 'pub, pub_root', $mode);
	same("$mode: copied", \@main, \%published);
	change_everything(1000) for 1 .. 2;
	# the changes of two rounds are there before the worker begins: so there is something ahead of it
	hold();
	change_everything(1000) for 1 .. 2;
	release();
	caught_up('main');
	same($mode, \@main, \%published);
	is(figures("changes_ahead > 500 AND blocks_foreseen > 500"), 't', "$mode: looked ahead");
	is(figures('errors'), 0, "$mode: without an error");
	note(figures("to_jsonb(pg_stat_lookahead_apply)"));
	unsubscribe('main');
	both('TRUNCATE ' . join(', ', @main));
}


# ---- 2. small transactions; tables that change ---------------------------------------

sub small_transactions
{
	my ($n) = @_;

	# single-change transactions, in one session
	sql($publisher, join "\n",
		map { "UPDATE pk SET a = a + 1, b = b || 'x' WHERE id % 50 = $_ % 50 AND id > 0 AND id % 500 < 50; INSERT INTO pk VALUES (200000 + $_ * 7919 % 5000 + 5000 * $round, $_, 'n', 'w');" }
		  1 .. $n);
	$round++;
	return;
}

sub reload
{
	my ($node, $settings) = @_;

	sql($node, "ALTER SYSTEM SET $_") for @$settings;
	sql($node, 'SELECT pg_reload_conf()');
	return;
}

subscribe('main', 'pub, pub_root, pub_more', 'streaming = off');
small_transactions(200);
caught_up('main');
same('small transactions', ['pk'], { pk => 'r::text' });

# the stream has all of it before the worker has applied any
sub hold
{
	sql($_, 'ALTER SUBSCRIPTION main_' . $_->name . ' DISABLE') for @subscribers;
	for my $node (@subscribers)
	{
		$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_subscription WHERE pid IS NOT NULL");
	}
	return;
}

sub release
{
	sql($_, 'ALTER SUBSCRIPTION main_' . $_->name . ' ENABLE') for @subscribers;
	return;
}

hold();
change_everything(300);
sql($publisher, q(TRUNCATE shape; INSERT INTO shape SELECT i, i, 1, 1, 'again' FROM generate_series(1, 500) i; TRUNCATE shape, toasted;
	INSERT INTO shape SELECT i, i, 1, 1, 'and again' FROM generate_series(1, 500) i;));
# columns of other types and names from here on, and a table that is replaced
sql($publisher, q(ALTER TABLE pk RENAME COLUMN a TO a_renamed; UPDATE pk SET w = 'renamed' WHERE id % 9 = 1;
	ALTER TABLE pk RENAME COLUMN a_renamed TO a; UPDATE pk SET a = a + 1 WHERE id % 9 = 2;
	ALTER TABLE pk ALTER a TYPE bigint; UPDATE pk SET a = a + 1 WHERE id % 9 = 3;
	ALTER TABLE other_key DROP COLUMN id; INSERT INTO other_key (k, a, w) SELECT 'more ' || i, i, 'w' FROM generate_series(1, 300) i;
	ALTER TABLE other_key ADD COLUMN id int;));
both('ALTER TABLE pk ADD COLUMN a_renamed int');
release();
small_transactions(20);
# tables of the subscribers change while there is something to apply
both($_)
  for (
	'ALTER TABLE pk ALTER a TYPE bigint',
	'CREATE INDEX pk_w ON pk (w)',
	'DROP INDEX pk_hash',
	'REINDEX TABLE pk',
	'ALTER TABLE leaves_1 ADD COLUMN extra int DEFAULT 3',
	'CLUSTER all_columns USING all_columns_b',
	'VACUUM FULL pk',
	'ALTER TABLE parted DETACH PARTITION parted_h1',
	'ALTER TABLE parted ATTACH PARTITION parted_h1 FOR VALUES WITH (MODULUS 3, REMAINDER 1)');
change_everything(300);
small_transactions(50);
caught_up('main');
my %without = %published;
delete @without{qw(pk leaves_1)};
same('changed tables', \@main, { %without, pk => "concat_ws(' ', id, a, b, w)" });

# ---- 3. settings ---------------------------------------------------------------------

reload($ahead, ["pg_lookahead.apply_queue_size = '64kB'"]);
hold();
change_everything(300);
sql($publisher, "INSERT INTO pk SELECT 900000 + i, i, 'large', repeat(md5(i::text), 4000) FROM generate_series(1, 20) i;
	UPDATE pk SET w = w || 'x' WHERE b = 'large'");
release();
caught_up('main');
same('a tiny queue', \@main, {});
is(figures('queue_size'), 65536, 'the queue is tiny');
hold();
change_everything(500);
release();
for ([ 'off', 90 ], [ 'on', 700 ], [ 'off', 64 ], [ 'on', 300 ])
{
	my ($setting, $size) = @$_;

	reload($ahead, ["pg_lookahead.enable_apply = $setting", "pg_lookahead.apply_queue_size = '${size}kB'"]);
	small_transactions(5);
	usleep(200_000);
}
reload($ahead, ['pg_lookahead.enable_apply = off']);
sql($publisher, 'INSERT INTO no_index VALUES (-1, NULL)');
caught_up('main');
same('switched off and on', \@main, {});
$ahead->poll_query_until('postgres', "SELECT state = 'off' AND queue_size = 0 FROM pg_stat_lookahead_apply") || fail('it is off');
my $before = figures('changes_ahead');
change_everything(100);
caught_up('main');
is(figures('changes_ahead'), $before, 'nothing is looked at when it is off');
reload($ahead, ['pg_lookahead.enable_apply = on', 'pg_lookahead.apply_queue_size = 4096']);
# (the worker may come to some changes before it has read the setting)
ok(wait_until(sub {
		change_everything(100);
		caught_up('main');
		return figures('changes_ahead') > $before;
	}), 'and again when it is on');
same('on again', \@main, {});
is(sql($stock, 'SELECT sum(changes_ahead) FROM pg_stat_lookahead_apply'), 0, 'stock has not looked ahead');

# ---- 4. effects, origins, two-phase --------------------------------------------------

for my $i (1 .. 5)
{
	sql($publisher, "INSERT INTO effects_of SELECT i, i FROM generate_series($i * 100, $i * 100 + 80) i;
		UPDATE effects_of SET a = a + 3 WHERE id % 3 = $i % 3; DELETE FROM effects_of WHERE id % 11 = $i;");
}
caught_up('main');
same('triggers', [ 'effects', 'effects_of' ], {});
my @origins = map { sql($_, "SELECT count(*) FROM pg_replication_origin_status WHERE remote_lsn IS NOT NULL AND external_id LIKE 'pg_%'") } @subscribers;
is($origins[0], $origins[1], 'origins advance');

sql($publisher, q(BEGIN; INSERT INTO two_phase SELECT i, i FROM generate_series(1, 500) i; PREPARE TRANSACTION 'p1';));
sql($publisher, q(INSERT INTO two_phase VALUES (1000, 1)));
caught_up('main');
same('prepared, without two_phase', ['two_phase'], {});
sql($publisher, q(COMMIT PREPARED 'p1'));
caught_up('main');
same('committed', ['two_phase'], { two_phase => 'r::text' });
unsubscribe('main');
both('TRUNCATE two_phase, effects_of, effects');
subscribe('two', 'pub_more', 'two_phase = on, streaming = off');
$_->poll_query_until('postgres', "SELECT subtwophasestate = 'e' FROM pg_subscription") for @subscribers;
sql($publisher, q(BEGIN; UPDATE two_phase SET a = a + 1; PREPARE TRANSACTION 'p2';));
sql($publisher, q(INSERT INTO two_phase VALUES (2000, 1); INSERT INTO effects_of SELECT i, i FROM generate_series(5000, 5100) i;));
caught_up('two');
is(sql($_, 'SELECT count(*) FROM pg_prepared_xacts'), 1, $_->name . ' has prepared it') for @subscribers;
sql($publisher, q(COMMIT PREPARED 'p2'));
sql($publisher, q(BEGIN; DELETE FROM two_phase; PREPARE TRANSACTION 'p3';));
sql($publisher, q(ROLLBACK PREPARED 'p3'));
caught_up('two');
same('two-phase', [ 'two_phase', 'effects_of' ], { two_phase => 'r::text' });
unsubscribe('two');

# ---- 5. conflicts ----------------------------------------------------------------------

both('TRUNCATE two_phase, effects_of, ' . join(', ', @main));
subscribe('main', 'pub, pub_root, pub_more', 'streaming = off, disable_on_error = true');

sub conflict
{
	my ($name, $local, $remote, $errors) = @_;

	hold();
	both($local);
	sql($publisher, $remote);
	release();
	if ($errors)
	{
		for my $node (@subscribers)
		{
			$node->poll_query_until('postgres', 'SELECT NOT subenabled FROM pg_subscription') or die 'no error';
		}
		my @lsn = map {
			my ($lsn) = slurp_file($_->logfile) =~ /.*finished at ([0-9A-F]+\/[0-9A-F]+)/s or die;
			$lsn } @subscribers;
		is($lsn[0], $lsn[1], "$name: the same transaction fails");
		sql($_, 'ALTER SUBSCRIPTION main_' . $_->name . " SKIP (lsn = '$lsn[0]')") for @subscribers;
		release();
	}
	caught_up('main');
	same($name, [ 'two_phase', 'effects_of', @main ], {});
	return;
}

my $max = sql($publisher, 'SELECT 1000000');
conflict('missing rows', 'DELETE FROM pk WHERE id % 3 = 0; DELETE FROM other_key WHERE a % 3 = 0',
	'UPDATE pk SET a = a + 1; DELETE FROM other_key WHERE a % 5 = 0; UPDATE other_key SET a = a + 1', 0);
conflict('a duplicate key', "INSERT INTO pk (id, a) VALUES ($max, 1)",
	"UPDATE pk SET a = a + 1 WHERE id % 3 = 1; BEGIN; INSERT INTO pk VALUES ($max - 1, 1, 'lost', 'w'), ($max, 2, 'lost', 'w'); COMMIT; UPDATE pk SET a = a + 1 WHERE id % 3 = 2; INSERT INTO two_phase VALUES (3000, 1)", 1);
conflict('a value that is refused', 'ALTER TABLE pk ADD CHECK (a <> 424242)',
	"BEGIN; UPDATE pk SET a = 424242 WHERE id = (SELECT min(id) FROM pk WHERE id > 0 AND id % 3 = 1); COMMIT; UPDATE pk SET a = a + 1 WHERE id % 3 = 1 AND a < 400000", 1);
conflict('a type that is another one', 'ALTER TABLE two_phase ALTER a TYPE date USING NULL',
	'BEGIN; INSERT INTO two_phase VALUES (4000, 1); COMMIT; UPDATE pk SET a = a + 1 WHERE id % 3 = 2', 1);
both('ALTER TABLE two_phase ALTER a TYPE int USING 1');
my @stats = map { sql($_, q(SELECT (to_jsonb(s) - 'subid' - 'subname' - 'stats_reset')::text FROM pg_stat_subscription_stats s)) } @subscribers;
is($stats[0], $stats[1], 'statistics as in stock');
is(figures('errors'), 0, 'looking ahead has not failed');

# ---- 6. subscriptions with a full queue; locks ------------------------------------------

# a connection that breaks is an error, too
sql($_, 'ALTER SUBSCRIPTION main_' . $_->name . ' SET (disable_on_error = false)') for @subscribers;
hold();
change_everything(1000);
release();
usleep(300_000);
sql($_, 'ALTER SUBSCRIPTION main_' . $_->name . ' DISABLE') for @subscribers;
usleep(300_000);
sql($_, 'ALTER SUBSCRIPTION main_' . $_->name . ' SET (binary = true)') for @subscribers;
release();
change_everything(200);
sql($_, 'ALTER SUBSCRIPTION main_' . $_->name . ' SET (synchronous_commit = local)') for @subscribers;
$publisher->stop('immediate');
$publisher->start;
change_everything(200);
$ahead->stop('immediate');
$ahead->start;
change_everything(200);
caught_up('main');
same('restarts', \@main, {});

# a table ahead that is locked: nothing is waited for before its turn
my $session = $ahead->background_psql('postgres', on_error_stop => 1);
$session->query_safe('BEGIN; LOCK TABLE other_key IN ACCESS EXCLUSIVE MODE');
my $in_pk = sql($ahead, 'SELECT sum(a) FROM pk');
sql($publisher, join ' ', map { "UPDATE pk SET a = a + 1 WHERE id % 300 = $_;" } 1 .. 20);
sql($publisher, "UPDATE other_key SET a = a + 1");
$ahead->poll_query_until('postgres', "SELECT sum(a) <> $in_pk FROM pk") || fail('changes before the lock are applied');
ok($ahead->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND mode = 'RowExclusiveLock'"), 'the server itself waits in its turn');
is(sql($ahead, "SELECT count(*) FROM pg_locks l JOIN pg_stat_subscription s USING (pid) WHERE NOT l.granted AND l.mode = 'AccessShareLock'"), 0, 'look-ahead does not');
$session->query_safe('COMMIT');
$session->quit;
caught_up('main');
same('a locked table', \@main, {});

# memory of the worker in the middle of a transaction: how many changes are ahead depends on how fast
# they are applied, but what they take is within the settings, which a transaction of this size is not
my $bytes = 0;
{
	my $n = 320;
	my $position = -s $ahead->logfile;
	my $holder = $ahead->background_psql('postgres', on_error_stop => 1);

	$holder->query_safe('BEGIN; LOCK TABLE two_phase IN ACCESS EXCLUSIVE MODE');
	sql($publisher, 'BEGIN; ' . ('UPDATE pk SET a = a + 1 WHERE id % 3 = 1; ' x $n) . 'INSERT INTO two_phase VALUES (90000 + ' . $n . ', 1); COMMIT');
	$ahead->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND mode = 'RowExclusiveLock'") || fail('it waits');
	sql($ahead, 'SELECT pg_log_backend_memory_contexts(pid) FROM pg_stat_subscription WHERE pid IS NOT NULL');
	$ahead->wait_for_log(qr/Grand total: \d+ bytes/, $position);
	# the server's own grows: it keeps a number for each row that is changed twice
	$bytes += $_ for substr(slurp_file($ahead->logfile), $position) =~ /pg_lookahead [^;\n]*: (\d+) total in/g;
	$holder->query_safe('COMMIT');
	$holder->quit;
	caught_up('main');
}
my $most = sql($ahead, "SELECT pg_size_bytes(current_setting('pg_lookahead.apply_queue_size')) + 4 * pg_size_bytes(current_setting('pg_lookahead.scan_memory'))");
note("memory: $bytes of $most");
cmp_ok($bytes, '<', $most, 'memory does not grow with a transaction');
same('large transactions', \@main, {});

# ---- 7. a damaged block -------------------------------------------------------------------

sql($_, 'ALTER SUBSCRIPTION main_' . $_->name . ' SET (disable_on_error = true)') for @subscribers;
hold();
my $victim = sql($ahead, 'SELECT id FROM pk WHERE id > 0 ORDER BY ctid DESC LIMIT 1');
my ($damaged) = sql($ahead, "SELECT ctid FROM pk WHERE id = $victim") =~ /\((\d+),/;
sql($ahead, 'CHECKPOINT');
my $path = path_of($ahead, 'pk');
$ahead->stop;
overwrite($path, $damaged * 8192, 'x' x 8192);
$ahead->start;
sql($publisher, "UPDATE effects_of SET a = 1; INSERT INTO effects_of VALUES (77777, 1); UPDATE pk SET a = a + 1 WHERE id = $victim");
release();
$ahead->poll_query_until('postgres', 'SELECT NOT subenabled FROM pg_subscription') or die 'no error';
is(sql($ahead, 'SELECT count(*) FROM effects_of WHERE id = 77777'), 1, 'transactions before the damaged block are applied');

$_->stop for ($ahead, $stock, $publisher);
check_log($_) for ($ahead, $stock, $publisher);
done_testing();
