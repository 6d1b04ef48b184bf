# 038_apply_waits.pl - logical replication: look-ahead neither fails, nor waits, nor has anybody wait.
#
# Subscribers have the same tables and receive the same changes: one looks ahead, forced; one has the
# default settings; and one is as in stock.  Where stock gets through, so do the others:
#   1. Slow triggers: the publisher hears of the subscriber in time.  Unix sockets and TCP, one
#      transaction and many, small and large rows, wal_sender_timeout of 6 s and of 60 s.
#   2. A table of locks that is almost full, with disable_on_error.
#   3. Catalogs that somebody else has locked: changes are applied, and the worker can be terminated.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $conf = "wal_level = logical\nmax_wal_senders = 10\nmax_replication_slots = 10\nmax_logical_replication_workers = 4\n"
  . "max_worker_processes = 8\nfsync = off\nwal_retrieve_retry_interval = 100ms\n";
my %settings = (
	forced => "pg_lookahead.force = on\n",
	default => '',
	stock => "pg_lookahead.enable_apply = off\n");
my @names = sort keys %settings;
my $publisher = new_server('publisher', streaming => 1, conf => "${conf}listen_addresses = '127.0.0.1'\nwal_sender_timeout = 6s\n");
my %subscriber = map { $_ => new_server($_, streaming => 1, conf => $conf . $settings{$_}) } @names;
my $port = $publisher->port;
my %address = (
	'a Unix socket' => $publisher->connstr('postgres'),
	TCP => "host=127.0.0.1 port=$port dbname=postgres");

sub sql
{
	my ($node, $statements) = @_;

	return $node->safe_psql('postgres', $statements);
}

sub everywhere
{
	sql($_, $_[0]) for ($publisher, values %subscriber);
	return;
}

sub on_subscribers
{
	sql($_, $_[0]) for values %subscriber;
	return;
}

sub subscribe
{
	my ($connection, $options) = @_;

	for my $name (@names)
	{
		sql($subscriber{$name}, "CREATE SUBSCRIPTION s_$name CONNECTION \$\$$connection application_name=s_$name\$\$
			PUBLICATION pub WITH (streaming = off, $options)");
		$subscriber{$name}->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_subscription_rel WHERE srsubstate <> 'r'")
		  or die 'a table is not synchronized';
	}
	return;
}

sub unsubscribe
{
	sql($subscriber{$_}, "DROP SUBSCRIPTION s_$_") for @names;
	return;
}

# The stream has all changes before a worker applies any.  Meanwhile a setting of the publisher may change.
sub with_backlog
{
	my ($changes, $setting) = @_;

	sql($subscriber{$_}, "ALTER SUBSCRIPTION s_$_ DISABLE") for @names;
	$_->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_subscription WHERE pid IS NOT NULL') || die 'a worker stays'
	  for values %subscriber;
	set_on_publisher($setting) if defined $setting;
	sql($publisher, $changes);
	sql($subscriber{$_}, "ALTER SUBSCRIPTION s_$_ ENABLE") for @names;
	return;
}

# How often the publisher has given up a subscriber.
sub timeouts
{
	my ($name, $position) = @_;

	return scalar(() = substr(slurp_file($publisher->logfile), $position) =~ / s_$name LOG:  terminating walsender process due to replication timeout/g);
}

sub caught_up
{
	$publisher->wait_for_catchup("s_$_") for @_;
	return;
}

sub set_on_publisher
{
	my ($setting) = @_;

	sql($publisher, "ALTER SYSTEM SET $setting");
	sql($publisher, 'SELECT pg_reload_conf()');
	return;
}

sub digest
{
	my ($node, $table) = @_;

	return sql($node, "SELECT count(*), md5(string_agg(md5(r::text), '' ORDER BY md5(r::text))) FROM $table r");
}

sub same
{
	my ($what, @tables) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	for my $table (@tables)
	{
		is(digest($subscriber{$_}, $table), digest($publisher, $table), "$what: $table of $_") for @names;
	}
	return;
}

# ---- 1. slow triggers ------------------------------------------------------------------

everywhere(q(
	CREATE TABLE t (id int PRIMARY KEY, a int, ms int, w text);
	CREATE TABLE batch (id int PRIMARY KEY, n int);));
sql($publisher, 'CREATE PUBLICATION pub FOR TABLE t, batch');
on_subscribers(q(
	CREATE INDEX ON t (a);
	CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF NEW.ms > 0 THEN PERFORM pg_sleep(NEW.ms / 1000.0); END IF;
		RETURN NEW;
	END $$;
	CREATE TRIGGER be_slow BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION be_slow();
	ALTER TABLE t ENABLE ALWAYS TRIGGER be_slow;));

my $id = 0;

# An INSERT of so many rows, each of which takes so long.
sub rows
{
	my ($n, $ms, $width) = @_;
	my $first = $id + 1;

	$id += $n;
	return "INSERT INTO t SELECT i, hashint4(i), $ms, repeat('w', $width) FROM generate_series($first, $id) i;";
}

sub one_by_one
{
	my ($n, $ms) = @_;

	return join "\n", map { rows(1, $ms, 50) } 1 .. $n;
}

sub slow_triggers
{
	my ($what, $timeout, $changes) = @_;
	my $position = -s $publisher->logfile;

	# a connection that was quiet for as long would end at once
	with_backlog($changes, "wal_sender_timeout = '$timeout'");
	caught_up('default', 'forced');
	# stock may never get through
	set_on_publisher('wal_sender_timeout = 0');
	caught_up('stock');
	my %times = map { $_ => timeouts($_, $position) } @names;
	note("$what, $timeout: given up: " . join ', ', map { "$_ $times{$_} times" } @names);
	is($times{$_}, 0, "$what, $timeout: the publisher hears of $_ in time") for ('default', 'forced');
	same("$what, $timeout", 't');
	return;
}

for my $connection (sort keys %address)
{
	subscribe($address{$connection}, 'copy_data = false');
	slow_triggers("$connection, one transaction", '6s', 'BEGIN;' . rows(15000, 0, 50) . rows(5000, 2, 50) . 'COMMIT;');
	slow_triggers("$connection, the reverse", '6s', 'BEGIN;' . rows(30, 300, 50) . rows(15000, 0, 50) . rows(30, 300, 50) . 'COMMIT;');
	slow_triggers("$connection, many transactions", '6s', rows(5000, 0, 50) . one_by_one(4000, 2));
	slow_triggers("$connection, large rows", '6s',
		'BEGIN;' . rows(2000, 0, 50) . join('', map { rows(60, 20, 50) . rows(2, 0, 2_000_000) } 1 .. 10) . 'COMMIT;');
	slow_triggers("$connection, one transaction", '60s', 'BEGIN;' . rows(15000, 0, 50) . rows(3500, 30, 50) . 'COMMIT;')
	  if $connection ne 'TCP';
	unsubscribe();
	everywhere('TRUNCATE t');
}

# ---- 2. locks are scarce -----------------------------------------------------------------

my $ntables = 300;
my $wide = join ' ', map { "CREATE TABLE w$_ (id int PRIMARY KEY, a int, b int, c int);" } 1 .. $ntables;

everywhere($wide);
on_subscribers(join ' ', map { "CREATE INDEX ON w$_ (a); CREATE INDEX ON w$_ (b); CREATE INDEX ON w$_ (c);" } 1 .. $ntables);
sql($publisher, 'ALTER PUBLICATION pub ADD TABLE ' . join(', ', map { "w$_" } 1 .. $ntables));
for my $node (values %subscriber)
{
	$node->append_conf('postgresql.conf', "max_locks_per_transaction = 10\nmax_connections = 30\n");
	$node->restart;
}
subscribe($address{'a Unix socket'}, 'copy_data = false, disable_on_error = true');

# A session that has taken all there are, and given so many back.
sub take_locks
{
	my ($node, $left) = @_;
	my $session = open_session($node, 'SET client_min_messages = error');

	ask($session, q(DO $$
		BEGIN
			FOR i IN 1 .. 1000000 LOOP PERFORM pg_advisory_lock(i); END LOOP;
		EXCEPTION WHEN out_of_memory THEN NULL;
		END $$));
	my $taken = ask($session, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()");
	ask($session, "SELECT count(pg_advisory_unlock(i)) FROM generate_series($taken - $left + 1, $taken) i");
	note($node->name . ": $taken locks");
	return $session;
}

for my $left (60, 30, 15)
{
	my %session = map { $_ => take_locks($subscriber{$_}, $left) } @names;
	my @tables = 1 .. $ntables;
	my $changes = '';

	# tables are described in the first round; in the others, changes of many are known at a time
	for my $round (1 .. 4)
	{
		my $n = 10 * $left + $round;

		$changes .= "INSERT INTO w$_ VALUES ($n, $n, $n, $n); UPDATE w$_ SET a = a + 1 WHERE id = $n;\n" for @tables;
	}
	with_backlog($changes);
	caught_up(@names);
	note("$left locks are left: " . sql($subscriber{forced}, 'SELECT to_jsonb(s) FROM pg_stat_lookahead_apply s'));
	is(sql($subscriber{$_}, 'SELECT subenabled FROM pg_subscription'), 't', "$left locks are left: $_ is not disabled") for @names;
	is(sql($subscriber{$_}, 'SELECT apply_error_count FROM pg_stat_subscription_stats'), 0, "$left locks are left: $_ has no error") for @names;
	$session{$_}->quit for @names;
}
same('locks are scarce', 'w1', 'w150', "w$ntables");
unsubscribe();

# ---- 3. catalogs are locked ----------------------------------------------------------------

everywhere(q(
	CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
	CREATE TABLE c (id int PRIMARY KEY, n numeric, m mood, w text);));
on_subscribers(q(CREATE INDEX ON c (m, n); CREATE INDEX ON c (lower(w)); CREATE INDEX ON c (w);));
sql($publisher, 'ALTER PUBLICATION pub ADD TABLE c');
subscribe($address{'a Unix socket'}, 'copy_data = false');
# Does a process end?  (A transaction keeps what it has seen in pg_stat_activity.)
sub ends
{
	my ($pid) = @_;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if !kill 0, $pid;
		usleep(100_000);
	}
	return 0;
}

my $rows_of_c = 0;

sub change_c
{
	my $first = $rows_of_c + 1;

	$rows_of_c += 120;
	sql($publisher, "INSERT INTO c SELECT i, i, 'ok', 'W' || i FROM generate_series($first, $rows_of_c) i; UPDATE c SET n = n + 1, m = 'happy' WHERE id % 10 = 3;");
	return;
}

sub look_ahead
{
	my ($name, $on) = @_;

	$subscriber{$name}->append_conf('postgresql.conf', "pg_lookahead.enable_apply = $on\n");
	$subscriber{$name}->reload;
	return;
}

# Ask a session until it says yes; no other one may be able to.
sub becomes
{
	my ($session, $question) = @_;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if ask($session, $question) eq 't';
		usleep(100_000);
	}
	return 0;
}

for my $catalog (qw(pg_subscription_rel pg_class pg_attribute pg_index pg_type pg_enum pg_opclass pg_amproc pg_namespace pg_proc pg_constraint))
{
	# what the server needs is in its caches, and nothing of what look-ahead needs
	look_ahead($_, 'off') for ('forced', 'default');
	change_c();
	caught_up(@names);
	my %session = map { $_ => open_session($subscriber{$_}, 'SET max_parallel_workers_per_gather = 0') } @names;
	ask($session{$_}, "BEGIN; LOCK TABLE $catalog IN ACCESS EXCLUSIVE MODE") for @names;
	look_ahead($_, 'on') for ('forced', 'default');
	change_c();
	ok(becomes($session{stock}, "SELECT count(*) = $rows_of_c FROM c"), "$catalog is locked: stock applies");
	ok(becomes($session{$_}, "SELECT count(*) = $rows_of_c FROM c"), "$catalog is locked: so does $_") for ('forced', 'default');
	for my $name ('forced', 'stock')
	{
		my $pid = ask($session{$name}, 'SELECT pid FROM pg_stat_subscription WHERE pid IS NOT NULL');

		ask($session{$name}, "SELECT pg_terminate_backend($pid)");
		ok(ends($pid), "$catalog is locked: $name can be terminated");
	}
	for my $name (@names)
	{
		ask($session{$name}, 'COMMIT');
		$session{$name}->quit;
	}
	change_c();
	caught_up(@names);
}
same('catalogs are locked', 'c');
unsubscribe();

$_->stop for (values %subscriber, $publisher);
check_log($_) for (values %subscriber, $publisher);
done_testing();
