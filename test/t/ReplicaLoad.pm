# ReplicaLoad.pm - the tables and the mixed load of 029_replica.pl.
#
# A group of pgbench scripts runs on a server in a shell loop: runs of a few seconds, one after the
# other, since a run ends when the server crashes under it.  All loops wait while there is a file
# "hold"; each ends when there is a file that is named after it.
#
# What holds in every snapshot of every server, subscriber included: the amounts of acc sum up to 0.
# Scripts that read divide by zero if they do not, and an unexpected error in a server's log
# fails the test.

package ReplicaLoad;

use strict;
use warnings;

use Exporter 'import';
use File::Spec;
use IPC::Run;
use PostgreSQL::Test::Utils;

our @EXPORT = qw(create_published create_subscribed published start_load hold_load stop_load);

# Rows of acc; with its indexes, more than the servers' shared buffers.
my $accounts = 20000;
my $run_seconds = 4;

# ---- tables --------------------------------------------------------------------

# Table -> the columns that are compared, by publication.
my %published = (
	pub_two => {
		acc => 'id, a, amount, w',
		part => 'id, k, v',
		routed => 'id, k, v',
		toasty => 'id, n, doc, doc2',
		types => 'id, e, list, j, at, num, r',
	},
	pub_sync => {
		hist => 'id, acc, d, note',
		uniq => 'id, code, n',
		full_id => 'a, b, t',
		filled => 'id, v',
	});

sub published
{
	return %published;
}

# The publisher's tables, and some that are its own.  part is partitioned otherwise than on the
# subscriber, and routed there only.
sub create_published
{
	my ($node) = @_;

	$node->safe_psql(
		'postgres', qq(
		CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
		CREATE TABLE acc (id int PRIMARY KEY, a int NOT NULL, amount bigint NOT NULL DEFAULT 0, w text) WITH (fillfactor = 70);
		CREATE INDEX acc_a ON acc (a);
		INSERT INTO acc SELECT i, (hashint4(i) & 2147483647) % 100000, 0, repeat('w', 100) FROM generate_series(1, $accounts) i;
		CREATE TABLE part (id bigserial, k int, v text, PRIMARY KEY (id, k)) PARTITION BY RANGE (k);
		CREATE TABLE part_0 PARTITION OF part DEFAULT;
		CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10);
		CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (10) TO (20);
		CREATE INDEX part_v ON part (v);
		CREATE TABLE routed (id bigserial, k int, v text, PRIMARY KEY (id, k));
		CREATE TABLE toasty (id int PRIMARY KEY, n int, doc text, doc2 text);
		ALTER TABLE toasty ALTER doc SET STORAGE EXTERNAL;
		CREATE TABLE types (id int PRIMARY KEY, e mood, list int[], j jsonb, at timestamptz, num numeric, r int4range);
		CREATE TABLE hist (id bigserial PRIMARY KEY, acc int, d int, note text);
		CREATE TABLE uniq (id int, code text NOT NULL, n int);
		CREATE UNIQUE INDEX uniq_code ON uniq (code);
		ALTER TABLE uniq REPLICA IDENTITY USING INDEX uniq_code;
		INSERT INTO uniq SELECT i, md5(i::text), 0 FROM generate_series(1, 3000) i;
		CREATE TABLE full_id (a int, b int, t text);
		ALTER TABLE full_id REPLICA IDENTITY FULL;
		INSERT INTO full_id SELECT i % 100, i, repeat('f', i % 50) FROM generate_series(1, 300) i;
		CREATE TABLE filled (id serial PRIMARY KEY, v text);

		CREATE TABLE own (id int PRIMARY KEY, k int, v text);
		CREATE UNLOGGED TABLE own_unlogged (id int PRIMARY KEY, v text);
		CREATE TABLE own_gin (id serial, list int[]);
		CREATE INDEX own_gin_list ON own_gin USING gin (list);
		CREATE INDEX own_gin_brin ON own_gin USING brin (id);
		CREATE MATERIALIZED VIEW own_view AS SELECT a % 100 AS a, count(*) AS n FROM acc GROUP BY 1;
		CREATE UNIQUE INDEX own_view_a ON own_view (a);));
	for my $pub (sort keys %published)
	{
		$node->safe_psql('postgres',
			"CREATE PUBLICATION $pub FOR TABLE "
			  . join(', ', sort keys %{ $published{$pub} })
			  . ' WITH (publish_via_partition_root = true)');
	}
	return;
}

# The subscriber's: columns in another order, more of them, more indexes, other partitions, other
# storage, a trigger that writes.  Not for partitions: a worker of stock does not close those with
# triggers and warns of it, and warnings that are too many block a parallel worker for ever.
sub create_subscribed
{
	my ($node) = @_;

	$node->safe_psql(
		'postgres', q(
		CREATE TYPE mood AS ENUM ('happy', 'ok', 'sad');
		CREATE TABLE acc (extra int DEFAULT 7, w text, amount bigint, a int NOT NULL, id int PRIMARY KEY);
		CREATE INDEX acc_a ON acc (a);
		CREATE INDEX acc_amount ON acc (amount, a);
		CREATE INDEX acc_w ON acc (md5(w)) WHERE a % 2 = 0;
		CREATE TABLE part (id bigint, k int, v text, PRIMARY KEY (id, k)) PARTITION BY HASH (id);
		CREATE TABLE part_a PARTITION OF part FOR VALUES WITH (MODULUS 3, REMAINDER 0);
		CREATE TABLE part_b PARTITION OF part FOR VALUES WITH (MODULUS 3, REMAINDER 1);
		CREATE TABLE part_c PARTITION OF part FOR VALUES WITH (MODULUS 3, REMAINDER 2) PARTITION BY RANGE (k);
		CREATE TABLE part_c1 PARTITION OF part_c FOR VALUES FROM (MINVALUE) TO (12);
		CREATE TABLE part_c2 PARTITION OF part_c FOR VALUES FROM (12) TO (MAXVALUE);
		CREATE INDEX part_k ON part (k);
		CREATE TABLE routed (id bigint, k int, v text, PRIMARY KEY (id, k)) PARTITION BY LIST (k);
		CREATE TABLE routed_0 PARTITION OF routed DEFAULT;
		CREATE TABLE routed_1 (v text, k int NOT NULL, id bigint NOT NULL, PRIMARY KEY (id, k));
		ALTER TABLE routed ATTACH PARTITION routed_1 FOR VALUES IN (1);
		CREATE TABLE routed_2 PARTITION OF routed FOR VALUES IN (2, 3);
		CREATE INDEX routed_v ON routed (v);
		CREATE TABLE audit (op text, id bigint, k int);
		CREATE INDEX audit_id ON audit (id);
		CREATE TABLE toasty (id int PRIMARY KEY, doc2 text, doc text, n int);
		ALTER TABLE toasty ALTER doc2 SET STORAGE EXTERNAL;
		CREATE INDEX toasty_n ON toasty (n, md5(doc));
		CREATE TABLE types (id int PRIMARY KEY, e mood, list int[], j jsonb, at timestamptz, num numeric, r int4range);
		CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO public.audit SELECT tg_op, coalesce(new.id, old.id), pg_trigger_depth();
			RETURN NULL; END $$;
		CREATE TRIGGER note_change AFTER INSERT OR UPDATE OR DELETE ON types FOR EACH ROW EXECUTE FUNCTION note_change();
		ALTER TABLE types ENABLE ALWAYS TRIGGER note_change;
		CREATE INDEX types_j ON types USING gin (j);
		CREATE INDEX types_list ON types USING gin (list);
		CREATE INDEX types_r ON types USING gist (r);
		CREATE TABLE hist (id bigint PRIMARY KEY, acc int, d int, note text) WITH (fillfactor = 60);
		CREATE INDEX hist_acc ON hist (acc, id);
		CREATE INDEX hist_d ON hist USING hash (d);
		CREATE INDEX hist_brin ON hist USING brin (id);
		CREATE TABLE uniq (id int, code text NOT NULL, n int);
		CREATE UNIQUE INDEX uniq_code ON uniq (code);
		ALTER TABLE uniq REPLICA IDENTITY USING INDEX uniq_code;
		CREATE INDEX uniq_n ON uniq (n);
		CREATE TABLE full_id (a int, b int, t text);
		CREATE INDEX full_id_a ON full_id (a);
		CREATE TABLE filled (id int PRIMARY KEY, v text);
		CREATE INDEX filled_v ON filled (v);
		CREATE TABLE own (id int PRIMARY KEY, v text);));
	return;
}

# ---- scripts -------------------------------------------------------------------

# What a script ends with that must be all or nothing: committed, prepared and committed, or
# prepared and rolled back.
sub two_phase
{
	my ($what, $end) = @_;

	return qq(
\\set gid random(1, 2000000000)
BEGIN;
$what
PREPARE TRANSACTION 'la_:gid';
$end PREPARED 'la_:gid';
);
}

my $transfer = qq(
\\set x random(1, $accounts)
\\set y random(1, $accounts)
\\set lo least(:x, :y)
\\set hi greatest(:x, :y)
\\set d random(1, 100)
\\set i random(1, 300)
);
my $move = q(
UPDATE acc SET amount = amount - :d WHERE id = :lo;
UPDATE acc SET amount = amount + :d WHERE id = :hi;
INSERT INTO hist (acc, d, note) VALUES (:lo, :d, repeat('h', :d));
INSERT INTO routed (k, v) VALUES (:d % 5, md5(:hi::text));
);
my $many = q(
INSERT INTO hist (acc, d, note) SELECT g, g % 100, 'many' FROM generate_series(1, 3000) g;
SAVEPOINT a;
UPDATE acc SET a = (a + :d) % 100000 WHERE id BETWEEN :lo AND :lo + 1000;
SAVEPOINT b;
INSERT INTO part (k, v) SELECT g % 25, md5(g::text) FROM generate_series(1, 1500) g;
UPDATE toasty SET doc2 = repeat(md5(:hi::text), 300) WHERE id BETWEEN :i AND :i + 20;
ROLLBACK TO b;
INSERT INTO routed (k, v) SELECT g % 5, md5(g::text) FROM generate_series(1, 500) g;
DELETE FROM hist WHERE id IN (SELECT id FROM hist ORDER BY id LIMIT 500 FOR UPDATE SKIP LOCKED);
RELEASE a;
);

# Group -> script -> weight and text.
my %groups = (
	dml => {
		transfer => [ 20, "$transfer BEGIN; $move COMMIT;" ],
		abort => [ 2, "$transfer BEGIN; $move ROLLBACK;" ],
		twophase => [ 4, $transfer . two_phase($move, 'COMMIT') ],
		twophase_abort => [ 2, $transfer . two_phase($move, 'ROLLBACK') ],
		key => [ 6, "$transfer UPDATE acc SET a = (a + :d) % 100000, w = repeat('x', :d) WHERE id BETWEEN :lo AND :lo + 20;" ],
		trim => [ 4, q(
			DELETE FROM hist WHERE id < (SELECT max(id) - 40000 FROM hist);
			DELETE FROM part WHERE id < (SELECT max(id) - 20000 FROM part);
			DELETE FROM routed WHERE id < (SELECT max(id) - 20000 FROM routed);) ],
		part => [ 5, qq($transfer
			INSERT INTO part (k, v) SELECT (g * :d) % 25, md5((:lo + g)::text) FROM generate_series(1, 20) g;
			UPDATE part SET k = (k + 7) % 25 WHERE id = (SELECT max(id) - :i FROM part);
			UPDATE part SET v = 'moved' WHERE id = (SELECT max(id) - :d FROM part);) ],
		route => [ 5, qq($transfer
			UPDATE routed SET k = (k + 1) % 5 WHERE id = (SELECT max(id) - :i FROM routed);
			UPDATE routed SET v = 'new' WHERE id = (SELECT max(id) - :d FROM routed);
			DELETE FROM routed WHERE id = (SELECT max(id) - 2 * :i FROM routed);) ],
		toast => [ 6, qq($transfer
			INSERT INTO toasty VALUES (:i, 0, (SELECT string_agg(md5((g * :x)::text), '') FROM generate_series(1, 4 * :d) g), repeat('z', :y))
				ON CONFLICT (id) DO UPDATE SET n = toasty.n + 1, doc = excluded.doc;
			UPDATE toasty SET n = n + 1 WHERE id = :d;
			DELETE FROM toasty WHERE id = :i + 1 AND :d < 10;) ],
		types => [ 3, qq($transfer
			INSERT INTO types VALUES (:i, 'sad', ARRAY[:x, NULL, :y], jsonb_build_object('k', :x, 'l', :d), now(), :x / 7.0, int4range(:lo, :hi))
				ON CONFLICT (id) DO UPDATE SET e = 'happy', list = types.list || :d, j = excluded.j, at = NULL, r = excluded.r
				WHERE cardinality(types.list) < 50;
			DELETE FROM types WHERE id = :d;) ],
		uniq => [ 4, qq($transfer
			UPDATE uniq SET code = md5(id::text || :x || '/' || :y), n = n + 1 WHERE id = :i;
			UPDATE uniq SET n = n + 1 WHERE id = :i + 1;) ],
		full => [ 3, qq($transfer
			UPDATE full_id SET b = b + 1 WHERE a = :d % 100;
			INSERT INTO full_id SELECT :d, :x, NULL WHERE (SELECT count(*) FROM full_id) < 400;
			DELETE FROM full_id WHERE a = :i AND b % 2 = 0;) ],
		filled => [ 3, qq($transfer
			INSERT INTO filled (v) SELECT md5(g::text) FROM generate_series(1, :i) g;
			BEGIN; TRUNCATE filled; INSERT INTO filled (v) SELECT 'first' FROM generate_series(1, :d) g; COMMIT;
			DELETE FROM filled WHERE id % 3 = 0;) ],
		copy => [ 2, "COPY hist (acc, d, note) FROM 'COPYFILE';" ],
		subtransactions => [ 2, qq($transfer
			DO \$\$ BEGIN
				FOR i IN 1 .. 80 LOOP
					BEGIN
						INSERT INTO hist (acc, d, note) VALUES (:lo, i, 'sub');
						UPDATE types SET num = i WHERE id = :i;
						IF i % 3 = 0 THEN RAISE division_by_zero; END IF;
					EXCEPTION WHEN division_by_zero THEN NULL; END;
				END LOOP;
			END \$\$;) ],
		synced => [ 3, qq($transfer
			DO \$\$ DECLARE t text; BEGIN
				FOR t IN SELECT relname FROM pg_class WHERE relname ~ '^sync_\\d+\$' LOOP
					BEGIN
						EXECUTE format('UPDATE %I SET v = v + 1 WHERE id = %s', t, :i);
						EXECUTE format('INSERT INTO %I (v) VALUES (%s)', t, :x);
						EXECUTE format('DELETE FROM %I WHERE id = %s', t, :i + 300);
					EXCEPTION WHEN undefined_table THEN NULL; END;
				END LOOP;
			END \$\$;) ],
	},
	large => {
		commit => [ 4, "$transfer BEGIN; $many COMMIT; \\sleep 200 ms" ],
		abort => [ 1, "$transfer BEGIN; $many ROLLBACK; \\sleep 200 ms" ],
		twophase => [ 2, $transfer . two_phase($many, 'COMMIT') . '\sleep 200 ms' ],
		twophase_abort => [ 1, $transfer . two_phase($many, 'ROLLBACK') . '\sleep 200 ms' ],
		pages => [ 1, "$transfer UPDATE toasty SET doc = repeat(md5(:x::text), 200) WHERE id BETWEEN :i AND :i + 60; \\sleep 200 ms" ],
	},
	# After ROLLBACK TO, a transaction changes no catalog again: logical decoding of stock fails an
	# assertion when VACUUM has freed the place of a row meanwhile.
	ddl => {
		tables => [ 4, qq($transfer
			DROP TABLE IF EXISTS own_new;
			CREATE TABLE own_new AS SELECT g AS id, g * :x AS k, md5(g::text) AS v FROM generate_series(1, 3000) g;
			CREATE INDEX ON own_new (k); CREATE INDEX ON own_new USING hash (v); CREATE INDEX ON own_new USING brin (id);
			CREATE INDEX ON own_new USING spgist (v); CREATE INDEX ON own_new USING gist (int8range(id, NULL));
			ALTER TABLE own_new ADD PRIMARY KEY (id);
			UPDATE own_new SET k = k + 1 WHERE id % 3 = 0;
			BEGIN; SAVEPOINT a; ALTER TABLE own_new ALTER k TYPE numeric; ROLLBACK TO a; COMMIT; ALTER TABLE own_new ADD x int DEFAULT 5;
			VACUUM own_new;) ],
		concurrently => [ 2, q(
			DO $$ DECLARE i regclass; BEGIN
				FOR i IN SELECT indexrelid FROM pg_index WHERE NOT indisvalid AND indrelid >= 16384 LOOP
					EXECUTE 'DROP INDEX ' || i; END LOOP; END $$;
			DROP INDEX IF EXISTS acc_new;
			CREATE INDEX CONCURRENTLY acc_new ON acc (amount, id);
			REINDEX INDEX CONCURRENTLY acc_a;
			DROP INDEX CONCURRENTLY acc_new;) ],
		reindex => [ 2, 'REINDEX INDEX part_2_v_idx; REINDEX TABLE uniq; REINDEX INDEX own_gin_list;' ],
		vacuum => [ 5, 'VACUUM acc; VACUUM (FREEZE, ANALYZE) hist; VACUUM (INDEX_CLEANUP on) toasty; VACUUM part_1; VACUUM full_id; VACUUM uniq;' ],
		# (not where rows are toasted: when a standby's feedback takes the horizon back, stock misses what
		# an earlier VACUUM has removed)
		rewrite => [ 2, 'VACUUM FULL hist; CLUSTER part_2 USING part_2_v_idx; VACUUM FULL routed;' ],
		own => [ 4, qq($transfer
			INSERT INTO own SELECT g, :d, repeat('o', 200) FROM generate_series(:lo, :lo + 1000) g ON CONFLICT (id) DO UPDATE SET k = excluded.k;
			DELETE FROM own WHERE id > :hi; VACUUM own;
			INSERT INTO own_unlogged VALUES (:x, 'u') ON CONFLICT DO NOTHING;
			INSERT INTO own_gin (list) SELECT ARRAY[g, :x, :y] FROM generate_series(1, 100) g;
			DELETE FROM own_gin WHERE id % 2 = 0; VACUUM own_gin;
			REFRESH MATERIALIZED VIEW CONCURRENTLY own_view;
			CREATE TEMP TABLE IF NOT EXISTS tmp AS SELECT * FROM acc LIMIT 3000;) ],
		database => [ 1, q(
			DROP DATABASE IF EXISTS own_db;
			CREATE DATABASE own_db TEMPLATE template0 STRATEGY wal_log;
			DROP DATABASE own_db;
			CREATE DATABASE own_db TEMPLATE template0 STRATEGY file_copy;) ],
	},
	# a standby's, too
	reader => {
		sum => [ 3, 'SELECT 1 / (sum(amount) = 0)::int FROM acc;' ],
		index => [ 6, qq($transfer SELECT count(w), sum(amount) FROM acc WHERE a BETWEEN :lo AND :lo + 3000;) ],
		detoast => [ 2, 'SELECT sum(length(doc)), sum(length(doc2)) FROM toasty;' ],
		idle => [ 1, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM hist; \\sleep 500 ms\nSELECT count(*) FROM hist; COMMIT;" ],
	},
	# who looks after the subscriber's tables
	keeper => {
		vacuum => [ 5, 'VACUUM acc; VACUUM (ANALYZE) hist; VACUUM toasty; VACUUM routed_1; VACUUM part;' ],
		reindex => [ 2, 'REINDEX INDEX CONCURRENTLY acc_amount; REINDEX INDEX hist_acc; REINDEX TABLE toasty;' ],
		index => [ 3, 'CREATE INDEX IF NOT EXISTS hist_new ON hist (note, d); CREATE INDEX IF NOT EXISTS acc_new ON acc (w);
			\sleep 300 ms
			DROP INDEX IF EXISTS hist_new, acc_new;' ],
		columns => [ 2, 'ALTER TABLE acc ADD IF NOT EXISTS more int DEFAULT 3; ALTER TABLE hist ADD IF NOT EXISTS more text;
			\sleep 300 ms
			ALTER TABLE acc DROP IF EXISTS more; ALTER TABLE hist DROP IF EXISTS more;' ],
		identity => [ 1, 'ALTER TABLE acc DROP CONSTRAINT acc_pkey, ADD CONSTRAINT acc_pkey PRIMARY KEY (id) INCLUDE (amount);
			ALTER TABLE acc DROP CONSTRAINT acc_pkey, ADD CONSTRAINT acc_pkey PRIMARY KEY (id);' ],
		rewrite => [ 1, 'VACUUM FULL toasty; CLUSTER part_a USING part_a_pkey;' ],
		own => [ 3, "$transfer INSERT INTO own SELECT g, 'o' FROM generate_series(:lo, :lo + 500) g ON CONFLICT DO NOTHING;
			DELETE FROM own WHERE id > :hi; TRUNCATE audit;" ],
	});

# ---- running -------------------------------------------------------------------

# (for servers, too)
my $dir = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);
my @loops;

sub file_of
{
	my ($group, $script, $text) = @_;
	my $path = "$dir/$group.$script.sql";

	$text =~ s/COPYFILE/$dir\/rows/;
	# a command to itself has a line to itself
	$text =~ s/ *\\sleep (\d+ ms)/\n\\sleep $1/g;
	open my $file, '>', $path or die "$path: $!";
	print $file $text;
	close $file or die "$path: $!";
	return $path;
}

# Run a group's scripts on a server until stop_load().  What a lock timeout or a crash ends is begun
# anew; deadlocks and conflicts with replay are retried by pgbench.
sub start_load
{
	my ($node, $group, $clients) = @_;
	my $path = "$dir/" . $node->name . ".$group";
	my $loop = { node => $node, name => $node->name . ", $group", out => "$path.out", stop => "$path.stop" };
	my @files = map { ('-f', file_of($group, $_, $groups{$group}{$_}[1]) . "\@$groups{$group}{$_}[0]") }
	  sort keys %{ $groups{$group} };

	if (!-e "$dir/rows")
	{
		open my $rows, '>', "$dir/rows" or die $!;
		print $rows "$_\t" . $_ % 100 . "\tcopied\n" for 1 .. 1000;
		close $rows;
	}
	unlink $loop->{stop};
	local $ENV{PGHOST} = $node->host;
	local $ENV{PGPORT} = $node->port;
	local $ENV{PGOPTIONS} = '-c lock_timeout=2s';
	# without its parent it ends, too
	$loop->{handle} = IPC::Run::start(
		[
			'sh', '-c',
			'hold=$1 stop=$2 parent=$3; shift 3; while kill -0 $parent 2>/dev/null && [ ! -e $stop ]; do
				if [ -e $hold ]; then sleep 0.2; else "$@" || sleep 0.3; fi; done',
			'load', "$dir/hold", $loop->{stop}, $$,
			'pgbench', '-n', '-c', $clients, '-T', $run_seconds, '--max-tries=50', @files, 'postgres'
		],
		'<' => \undef, '>' => $loop->{out}, '2>' => "$loop->{out}.err");
	push @loops, $loop;
	return;
}

# Have the load wait (true) or go on.
sub hold_load
{
	my ($hold) = @_;

	return if -e "$dir/hold" xor !$hold;
	if ($hold)
	{
		append_to_file("$dir/hold", '');
	}
	else
	{
		unlink "$dir/hold";
	}
	return;
}

# Ends the loops of these servers, or all; returns pairs, the name of each and how many transactions
# it has done.
sub stop_load
{
	my (@nodes) = @_;
	my (@done, @others);

	for my $loop (@loops)
	{
		if (@nodes && !grep { $_ == $loop->{node} } @nodes)
		{
			push @others, $loop;
			next;
		}
		append_to_file($loop->{stop}, '');
		push @done, $loop;
	}
	for my $loop (@done)
	{
		my $count = 0;

		$loop->{handle}->finish;
		$count += $_ for slurp_file($loop->{out}) =~ /transactions actually processed: (\d+)/g;
		$loop = [ $loop->{name}, $count ];
	}
	@loops = @others;
	return @done;
}

# If the test dies
END
{
	append_to_file($_->{stop}, '') for @loops;
}

1;
