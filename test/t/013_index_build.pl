# 013_index_build.pl - index builds by the library end as the server's own do.
#
# Each case runs twice, on the same rows, with pg_lookahead.enable_index_build off and on:
# what the statement prints, its errors, the indexes' pages (without LSN and checksum), and
# what the catalog says of table and indexes must be the same.  What the library has built is seen
# from DEBUG1 messages.  Shapes of indexes are the matter of sql/index_build.sql; here are
#   1. statements that build indexes, partitions, what is left to the server,
#   2. errors, 3. rows that are not plainly alive, 4. settings, messages, progress,
#   5. builds by parallel workers, 6. builds that are interrupted,
#   7. concurrent builds beside writers, 8. crashes, standby, wal_level = minimal.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LookAhead;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my @extensions = qw(pageinspect amcheck pg_buffercache);
my $node = new_server(
	'main',
	extensions => \@extensions,
	conf => "fsync = off\nshared_buffers = 32MB\nmax_worker_processes = 16\nmax_parallel_workers = 8\n");
my %mode = map { $_ => "SET pg_lookahead.enable_index_build = $_;\n" } qw(off on);

# ---- helpers ---------------------------------------------------------------

# pages of an index without LSN and checksum, and on demand without the unused space,
# which WAL does not carry; everything there is to know about tables and indexes
sub create_functions
{
	my ($on) = @_;

	$on->safe_psql(
		'postgres', q(
		CREATE FUNCTION page(index text, block int, hole bool) RETURNS bytea LANGUAGE sql AS $$
			SELECT CASE WHEN hole THEN substring(p from 11)
				ELSE substring(p from 11 for h.lower - 10) || substring(p from h.upper + 1) END
			FROM get_raw_page(index, block) p, page_header(p) h
		$$;
		CREATE FUNCTION fingerprint(index text, hole bool) RETURNS text LANGUAGE sql AS $$
			SELECT count(*) || ' pages ' || md5(string_agg(md5(page(index, b::int, hole)), ' ' ORDER BY b))
			FROM generate_series(0, pg_relation_size(index) / current_setting('block_size')::int - 1) b
		$$;
		CREATE FUNCTION pages(hole bool) RETURNS SETOF text LANGUAGE sql AS $$
			SELECT concat_ws(' ', c.relname, fingerprint(c.oid::regclass::text, hole))
			FROM pg_class c JOIN pg_am m ON m.oid = c.relam JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE m.amname = 'btree' AND c.relkind = 'i' AND nspname !~ '^pg_(catalog|toast)' AND c.relpersistence <> 'u'
			ORDER BY c.relname
		$$;
		CREATE FUNCTION state(schema text) RETURNS SETOF text LANGUAGE sql AS $$
			SELECT concat_ws(' ', c.relname, c.relkind, c.relhasindex, c.reltuples, c.relpages,
				'unique', indisunique, indisprimary, indisexclusion, indimmediate, 'clustered', indisclustered,
				'valid', indisvalid, indcheckxmin, indisready, indislive,
				CASE WHEN c.relkind = 'i' AND m.amname = 'btree' THEN fingerprint(c.oid::regclass::text, true) END)
			FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_am m ON m.oid = c.relam
				JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind <> 't' AND (nspname = schema OR nspname ~ '^pg_temp_' AND n.oid = pg_my_temp_schema())
			ORDER BY c.relname
		$$;));
	return;
}

# what psql wrote to stderr: messages about builds, and the rest but for debug messages
sub read_messages
{
	my ($err) = @_;
	my %m = (took => [], left => [], server => [], rest => '');

	my $noise = 0;

	for my $line (split /\n/, $err)
	{
		$line =~ s/^psql:<stdin>:\d+: //;
		# VERBOSITY verbose: the SQLSTATE of messages, and lines that belong to them
		$line =~ s/^(DEBUG|LOG):  \w{5}: /$1:  /;
		next if $noise && $line =~ /^LOCATION:/;
		$noise = $line =~ /^(DEBUG|LOG):/;
		next if $line =~ /"pg_toast_\d+_index(_ccnew\d*)?"/;
		if ($line =~ /^DEBUG:  pg_lookahead builds index "(.*)"$/) { push @{ $m{took} }, $1; }
		elsif ($line =~ /^DEBUG:  pg_lookahead leaves building index "(.*)" to the server: ./) { push @{ $m{left} }, $1; }
		elsif ($line =~ /^DEBUG:  building index (.*)$/) { push @{ $m{server} }, $1; }
		elsif ($line =~ /pg_lookahead/) { push @{ $m{left} }, "not understood: $line"; }
		elsif ($line !~ /^(DEBUG:  |LOG:  |LINE \d|\s*\^)/) { $m{rest} .= "$line\n"; }
	}
	for (qw(took left server))
	{
		my @names = map { s/_ccnew\d*|(?<=pg_toast_)\d+//gr } @{ $m{$_} };

		$m{$_} = join("\n", sort @names);
	}
	return \%m;
}

# Run setup in a fresh schema, and the statement with builds off or on.  changes: SQL that
# runs while another session has a snapshot of what was before it.
sub run_case
{
	my ($mode, $setup, $statement, %p) = @_;
	my $path = "SET client_min_messages = warning; SET log_statement = none; SET search_path = la, public;\n";
	my $holder;

	$node->safe_psql('postgres', "SET client_min_messages = warning; DROP SCHEMA IF EXISTS la CASCADE; CREATE SCHEMA la; $path$setup");
	if ($p{changes})
	{
		$holder = open_session($node, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
		$node->safe_psql('postgres', "$path$p{changes}");
	}
	my $out = '';
	my $err = '';
	$node->psql(
		'postgres',
		$path . $mode{$mode} . ($p{settings} // '') . "SET client_min_messages = debug1;\n$statement;\n"
		  . "SET client_min_messages = error; SELECT * FROM state('la');\n",
		on_error_stop => 0, stdout => \$out, stderr => \$err);
	if ($holder)
	{
		ask($holder, 'COMMIT');
		$holder->quit;
	}
	my $messages = read_messages($err);
	$messages->{out} = $out;
	return $messages;
}

# Both, compared.  took, left: names of indexes; left is not looked at when it is not given.
# like: what the outcome of stock must look like, so that the case tests what it means to.
# normal: a function that takes out of errors what may differ.
sub same
{
	my ($name, $setup, $statement, %p) = @_;
	my ($stock, $ours) = map { run_case($_, $setup, $statement, %p) } qw(off on);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	if ($p{normal})
	{
		$_->{rest} = $p{normal}->($_->{rest}) for $stock, $ours;
	}
	is($ours->{out}, $stock->{out}, "$name: same result, pages and catalog");
	is($ours->{rest}, $stock->{rest}, "$name: same messages");
	is($ours->{server}, $stock->{server}, "$name: the server announces the same builds");
	is($stock->{took} . $stock->{left}, '', "$name: off, no word");
	is($ours->{took}, join("\n", sort @{ $p{took} }), "$name: built by the library") if defined $p{took};
	is($ours->{left}, join("\n", sort @{ $p{left} }), "$name: left to the server") if defined $p{left};
	like($stock->{out} . "\n" . $stock->{rest}, $p{like}, "$name: as it is meant") if defined $p{like};
	return $ours;
}

# rows in an order that has nothing to do with the columns
my $table = q(
	CREATE TABLE t (id int NOT NULL, a int, s text COLLATE "C", u text COLLATE "C", v int NOT NULL DEFAULT 0)
		WITH (fillfactor = 70, parallel_workers = 2);
	INSERT INTO t SELECT i, (hashint4(i) & 65535) % 9000, 'county ' || i % 120, CASE WHEN i % 10 > 0 THEN md5(i::text) END
		FROM generate_series(1, 20000) i ORDER BY hashint4(i);
);
my $indexes = 'CREATE UNIQUE INDEX i ON t (id); CREATE INDEX j ON t (s, u DESC, a); CREATE INDEX k ON t (a) WHERE a > 50;';

# files of temporary data, and files with content that no relation has
sub leftovers
{
	my ($on) = @_;
	my $data = $on->data_dir;
	my @found = map { s/^\Q$data\E\///r } glob("$data/base/pgsql_tmp/*");
	my $db = $on->safe_psql('postgres', "SELECT oid FROM pg_database WHERE datname = 'postgres'");
	my %known = map { $_ => 1 } split /\n/, $on->safe_psql('postgres',
		'SELECT pg_relation_filenode(oid) FROM pg_class WHERE pg_relation_filenode(oid) IS NOT NULL');

	for my $path (glob "$data/base/$db/*")
	{
		my ($file) = $path =~ m{/(\d+)[^/]*$} or next;
		push @found, $path =~ s/^\Q$data\E\///r if !$known{$file} && -s $path;
	}
	return join(' ', @found);
}

# Processes that were asked to end may not have done so yet.
sub what_is_left
{
	my ($on) = @_;
	my $left;

	wait_until(sub { ($left = pinned_relations($on) . leftovers($on)) eq '' }, 60);
	return $left;
}

sub nothing_left
{
	my ($on, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(what_is_left($on), '', "$name: no file is left, no buffer pinned");
}

sub log_since
{
	my ($on, $position) = @_;

	return substr(slurp_file($on->logfile), $position);
}

create_functions($node);

my $have_icu = $node->safe_psql('postgres', q(SELECT count(*) FROM pg_collation WHERE collname = 'und-x-icu')) > 0;

# ---- 1. statements -----------------------------------------------------------

my @ways = (
	[ 'serial', "SET maintenance_work_mem = '64MB'; SET max_parallel_maintenance_workers = 0;\n" ],
	[ 'spilling, parallel', "SET maintenance_work_mem = '1MB'; SET max_parallel_maintenance_workers = 2;\n" ]);

# concurrent builds with max_parallel_maintenance_workers = 0 are the server's; so without
# workers means for them: they are wanted, but cannot be had
my $alone = "SET max_parallel_maintenance_workers = 2; SET max_parallel_workers = 0;\n";
for my $way (@ways)
{
	my ($how, $settings) = @$way;
	my $case = sub {
		my ($name, $setup, $statement, @took) = @_;
		my %p = (settings => $settings, left => []);

		if ($statement =~ /CONCURRENTLY/ && $settings =~ /workers = 0/)
		{
			same("$name, without workers", $setup, $statement, %p, took => []);
			$p{settings} .= $alone;
		}
		same("$name, $how", $setup, $statement, %p, took => \@took);
	};

	$case->('CREATE INDEX', $table, 'CREATE INDEX i ON t (s, u DESC, a)', 'i');
	$case->('CREATE UNIQUE INDEX', $table, 'CREATE UNIQUE INDEX i ON t (u NULLS FIRST, a)', 'i');
	$case->('CREATE INDEX CONCURRENTLY', $table, 'CREATE INDEX CONCURRENTLY i ON t (s, a)', 'i');
	$case->('CREATE UNIQUE INDEX CONCURRENTLY', $table, 'CREATE UNIQUE INDEX CONCURRENTLY i ON t (s, id)', 'i');
	$case->('ADD PRIMARY KEY', $table, 'ALTER TABLE t ADD CONSTRAINT i PRIMARY KEY (id)', 'i');
	$case->('ADD UNIQUE', $table, 'ALTER TABLE t ADD CONSTRAINT i UNIQUE (s, id) INCLUDE (a)', 'i');
	$case->('two constraints', $table, 'ALTER TABLE t ADD CONSTRAINT i UNIQUE (id), ADD CONSTRAINT j UNIQUE (u)', 'i', 'j');
	$case->('ADD UNIQUE DEFERRABLE', $table, 'ALTER TABLE t ADD CONSTRAINT i UNIQUE (id) DEFERRABLE INITIALLY DEFERRED', 'i');
	$case->('UNIQUE NULLS NOT DISTINCT', $table, 'CREATE UNIQUE INDEX i ON t (u, (nullif(id, 10))) NULLS NOT DISTINCT', 'i');
	$case->('REINDEX INDEX', $table . $indexes, 'REINDEX INDEX j', 'j');
	$case->('REINDEX TABLE', $table . $indexes, 'REINDEX TABLE t', 'i', 'j', 'k');
	$case->('REINDEX SCHEMA', $table . $indexes, 'REINDEX SCHEMA la', 'i', 'j', 'k');
	$case->('REINDEX INDEX CONCURRENTLY', $table . $indexes, 'REINDEX INDEX CONCURRENTLY j', 'j');
	$case->('REINDEX TABLE CONCURRENTLY', $table . $indexes, 'REINDEX TABLE CONCURRENTLY t', 'i', 'j', 'k');
	$case->('CLUSTER', $table . $indexes, 'CLUSTER t USING j', 'i', 'j', 'k');
	$case->('VACUUM FULL', "$table DELETE FROM t WHERE id % 3 = 0; $indexes", 'VACUUM FULL t', 'i', 'j', 'k');
	$case->('TRUNCATE', $table . $indexes, 'TRUNCATE t');
	$case->('TRUNCATE where it was created', '', qq(BEGIN; $table $indexes TRUNCATE t; INSERT INTO t VALUES (1); COMMIT),
		'i', 'j', 'k');
	$case->('ranks', $table, 'CREATE INDEX i ON t ((ARRAY[a % 5, a % 7]), (s COLLATE "und-x-icu") DESC, id)', 'i') if $have_icu;
	$case->('ranks of arrays', $table, 'CREATE INDEX i ON t ((ARRAY[a % 5, NULL, a % 7]) DESC NULLS LAST, a)', 'i');
	$case->('ALTER TYPE', $table . $indexes, 'ALTER TABLE t ALTER a TYPE bigint', 'i', 'j', 'k');
	$case->('ALTER TYPE of a key', $table . $indexes, 'ALTER TABLE t ALTER id TYPE text COLLATE "C" USING id::text', 'i', 'j', 'k');
	$case->('ADD COLUMN that rewrites', $table . $indexes, 'ALTER TABLE t ADD COLUMN w float DEFAULT random()', 'i', 'j', 'k');
	$case->('SET UNLOGGED', $table . $indexes, 'ALTER TABLE t SET UNLOGGED', 'i', 'j', 'k');
	$case->('REFRESH MATERIALIZED VIEW', "$table CREATE MATERIALIZED VIEW m AS SELECT id, s FROM t; CREATE INDEX i ON m (s, id);",
		'REFRESH MATERIALIZED VIEW m', 'i');
	$case->('temporary table', '', 'CREATE TEMP TABLE x AS SELECT i, i % 7 AS j FROM generate_series(1, 3000) i; CREATE INDEX i ON x (j, i); REINDEX TABLE x',
		'i', 'i');
	$case->('in a function', $table, q(DO $$ BEGIN EXECUTE 'CREATE INDEX i ON t (a)'; PERFORM count(*) FROM t WHERE a < 5; END $$), 'i');
	$case->('partitions', q(
		CREATE TABLE p (a int, s text COLLATE "C") PARTITION BY RANGE (a);
		CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
		CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (2000) PARTITION BY LIST (a);
		CREATE TABLE p21 PARTITION OF p2 DEFAULT;
		CREATE TABLE p3 (s text COLLATE "C", dropped int, a int);
		ALTER TABLE p3 DROP COLUMN dropped;
		ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (2000) TO (3000);
		INSERT INTO p SELECT i % 3000, i % 77 FROM generate_series(1, 20000) i;),
		'CREATE INDEX i ON p (s, a)',
		'p1_s_a_idx', 'p21_s_a_idx', 'p3_s_a_idx');
	$case->('ATTACH PARTITION', q(
		CREATE TABLE p (a int, s text COLLATE "C") PARTITION BY RANGE (a);
		CREATE INDEX i ON p (s, a);
		CREATE TABLE p1 AS SELECT i % 1000 AS a, (i % 77)::text COLLATE "C" AS s FROM generate_series(1, 20000) i;),
		'ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (1000)', 'p1_s_a_idx');
}

# by ranks or by the server: it may depend on how many values there are
same('array', $table, 'CREATE INDEX i ON t ((ARRAY[a, id]))');
same('array, second', $table, 'CREATE INDEX i ON t (a, (ARRAY[id]))');
same('array, many values', $table, 'CREATE INDEX i ON t ((ARRAY[id, a]), s)', settings => "SET maintenance_work_mem = '1MB'; SET max_parallel_maintenance_workers = 0;");

# what has no comparison: stock finds out where it compares
$node->safe_psql('postgres', 'CREATE TYPE public.place AS (p point)');
my $points = 'CREATE DOMAIN points AS point[]; CREATE TABLE t AS SELECT i AS id, %s AS v, ROW(point(i, 0))::place AS r FROM generate_series(1, 10) i;';
for my $type ('point[]', 'points')
{
	my $alike = sprintf $points, "'{\"(1,1)\"}'::$type";

	same("$type, alike", $alike, 'CREATE INDEX i ON t (v)', took => [], left => ['i'], like => qr/could not identify a comparison function/);
	same("$type, not compared", $alike, 'CREATE INDEX i ON t (id, v)', took => [], left => ['i'], like => qr/^i i f 10 /m);
}
same('rows, not compared', sprintf($points, 1), 'CREATE INDEX i ON t (id, r)', took => [], left => ['i'], like => qr/^i i f 10 /m);
same('rows', sprintf($points, 1), 'CREATE INDEX i ON t (r)', took => [], left => ['i'], like => qr/could not identify a comparison function/);

# rows that came in eight batches, each in order: no sort may take the square of their number
same('eight batches', 'CREATE TABLE t AS SELECT id::bigint FROM generate_series(1, 8) batch, generate_series(1, 100000) id ORDER BY batch, id;',
	"SET statement_timeout = '20s'; CREATE INDEX i ON t (id DESC); CREATE INDEX j ON t (id)", took => [ 'i', 'j' ],
	settings => "SET maintenance_work_mem = '256MB'; SET max_parallel_maintenance_workers = 0;");

# left to the server, with or without a word
same('ranks, used up', 'CREATE TABLE t AS SELECT ARRAY[v] AS v FROM (VALUES (0::float8), (1)) x (v); INSERT INTO t SELECT ARRAY[2::float8 ^ -i] FROM generate_series(1, 200) i;',
	'CREATE INDEX i ON t (v)', took => [], left => ['i']);
same("ranks, a sample of half the table, $_ rows", "CREATE TABLE t AS SELECT ARRAY[i % 2] AS v, repeat('x', 100) AS filler FROM generate_series(1, $_) i; ANALYZE t;",
	'CREATE INDEX i ON t (v)', took => ['i'], left => []) for 32000, 58000;

# values are ranked only by comparisons that nobody can tell from others, or from none
for my $class ([ 'fails', 'EXCEPTION' ], [ 'tells', 'NOTICE' ])
{
	my ($name, $how) = @$class;

	$node->safe_psql('postgres', qq(CREATE FUNCTION $name(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS \$\$ BEGIN RAISE $how 'compared'; RETURN btint4cmp(\$1, \$2); END \$\$;
		CREATE OPERATOR CLASS ${name}_ops FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 $name(int, int);));
}
$node->safe_psql('postgres', q(
	CREATE TYPE span AS RANGE (subtype = int, subtype_opclass = tells_ops);
	CREATE TYPE thing AS (x int);
	CREATE FUNCTION thing_cmp(thing, thing) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$ BEGIN RAISE NOTICE 'compared'; RETURN btint4cmp($1.x, $2.x); END $$;)
	. join('', map { my ($name, $operator) = @$_; "CREATE FUNCTION thing_$name(thing, thing) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT \$1.x $operator \$2.x';
		CREATE OPERATOR $operator (LEFTARG = thing, RIGHTARG = thing, FUNCTION = thing_$name);" } ([ 'lt', '<' ], [ 'le', '<=' ], [ 'eq', '=' ], [ 'ge', '>=' ], [ 'gt', '>' ]))
	. q(CREATE OPERATOR CLASS thing_ops DEFAULT FOR TYPE thing USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 thing_cmp(thing, thing);
	CREATE TYPE box_of AS (t thing);
	CREATE DOMAIN things AS thing[];
	CREATE DOMAIN few AS int CHECK (VALUE < 100);
	CREATE TYPE three_moods AS ENUM ('bad', 'good');
	ALTER TYPE three_moods ADD VALUE 'so so' BEFORE 'good';
	CREATE TYPE pair_of AS (a few, m three_moods, t text[]);
	CREATE TYPE mood AS ENUM ('bad', 'good');
	CREATE FUNCTION noted(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
	BEGIN
		IF x % 50 = 0 THEN
			RAISE NOTICE 'row %', x;
		END IF;
		RETURN x;
	END $$;
	CREATE FUNCTION noted_in_sql(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT public.noted(x) + public.noted(-x)';
	CREATE DOMAIN noted_value AS int CHECK (public.noted(VALUE) IS NOT NULL);));
my $few = 'CREATE TABLE t AS SELECT i AS id, i % 5 AS few, span(i % 3, NULL) AS span FROM generate_series(1, 300) i;';
same('comparisons that fail', $few, 'CREATE INDEX i ON t (few fails_ops)', took => [], left => ['i'], like => qr/ERROR:  compared/);
same('comparisons that fail, not made', $few, 'CREATE INDEX i ON t (id, few fails_ops)', took => [], left => ['i'], like => qr/^i i f 300 /m);
same('comparisons that tell', $few, 'CREATE INDEX i ON t (few tells_ops)', took => [], left => ['i'], like => qr/compared/);
same('comparisons that tell, of a range', $few, 'CREATE INDEX i ON t (span)', took => [], left => ['i'], like => qr/compared/);
same("comparisons that tell, of a type, $_", q(CREATE TABLE t AS SELECT i AS id, ROW(i % 5)::thing AS v, ARRAY[ROW(i % 5)::thing] AS a,
		ARRAY[ROW(i % 5)::thing]::things AS d, ROW(ROW(i % 5)::thing)::box_of AS b FROM generate_series(1, 300) i;),
	"CREATE INDEX i ON t ($_)", took => [], left => ['i'], like => qr/compared/)
  for qw(v a d b);
same('comparisons of the core', q(
	CREATE TABLE t AS SELECT ROW(i % 5, (ARRAY['so so', 'bad', 'good'])[i % 3 + 1]::three_moods, ARRAY[i % 4, NULL])::pair_of AS b, ARRAY[int4range(i % 3, i % 5 + 4)] AS r,
		jsonb_build_object('a', i % 5) AS j, int4multirange(int4range(i % 3, 9)) AS m FROM generate_series(1, 3000) i ORDER BY hashint4(i);),
	'CREATE INDEX i ON t (b); CREATE INDEX j ON t (r, j, m)', took => [ 'i', 'j' ], left => []);

# A build that the library abandons begins again in the server: where somebody could notice that,
# it is left to the server from the beginning, or not abandoned.
my $noted = q(CREATE TABLE t (id, v, m) AS SELECT i, ARRAY[CASE WHEN i = 0 THEN 0 ELSE 2::float8 ^ -i END], (ARRAY['bad', 'good'])[i % 2 + 1]::mood FROM generate_series(0, 200) i;);
same("functions are called once: $_", $noted, "CREATE INDEX i ON t $_", took => [], left => ['i'], like => qr/NOTICE:  row 150\n/)
  for '(v, noted(id))', '(v) WHERE noted(id) > 0', '(v, noted_in_sql(id))', '(v, (id::noted_value))', '(v, (CASE WHEN id > 3 THEN noted(id) END))', '(m, noted(id))';
same('functions are called once: no ranks, unique', 'CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 20) i; INSERT INTO t SELECT i FROM generate_series(20, 60000) i;',
	'CREATE UNIQUE INDEX i ON t (noted(id))', settings => "SET maintenance_work_mem = '1MB'; SET max_parallel_maintenance_workers = 0;",
	took => [], left => ['i'], like => qr/NOTICE:  row 50\n(.*\n)*ERROR/);
same('functions that tell nothing may be called again', $noted, "CREATE INDEX i ON t (v, (id + 1), (CASE WHEN m = 'bad' THEN upper(id::text) END)) WHERE id >= 0", took => [], left => ['i']);
same('functions are called once: no ranks', $noted, 'CREATE INDEX i ON t (id, noted(id))', took => ['i'], left => []);

same('EXCLUDE', $table, 'ALTER TABLE t ADD CONSTRAINT i EXCLUDE USING btree (id WITH =)', took => []);
same('EXCLUDE, violated', $table, 'ALTER TABLE t ADD CONSTRAINT i EXCLUDE USING btree (s WITH =)', took => [], like => qr/could not create exclusion/);
same("$_", $table, "CREATE INDEX i ON t USING $_ (a)", settings => 'SET max_parallel_maintenance_workers = 0;', took => [], left => [])
  for qw(hash brin);
same('pg_lookahead.enable = off', $table, 'SET pg_lookahead.enable = off; CREATE INDEX i ON t (a)', took => [], left => []);
same('no build', $table . $indexes, 'ALTER TABLE t ADD CONSTRAINT p PRIMARY KEY USING INDEX i; ALTER INDEX j RENAME TO l; ALTER TABLE t ALTER s TYPE varchar COLLATE "C"',
	took => [], left => []);
for my $statement (
	'REINDEX TABLE pg_class', 'REINDEX INDEX pg_attribute_relid_attnum_index',
	'VACUUM FULL pg_description', 'VACUUM FULL pg_class', 'REINDEX TABLE pg_database')
{
	my ($out, $err) = ('', '');

	$node->psql('postgres', "$mode{on} SET client_min_messages = debug1; $statement", stdout => \$out, stderr => \$err);
	unlike($err, qr/pg_lookahead|ERROR/, "$statement: catalogs are not touched");
}

# off and on, again and again in one session
{
	my $session = open_session($node, 'SET search_path = la, public; SET client_min_messages = debug1');
	my $prints = '';

	$node->safe_psql('postgres', "DROP SCHEMA la CASCADE; CREATE SCHEMA la; SET search_path = la, public; $table CREATE INDEX i ON t (s, a);");
	for my $mode ('off', 'on', 'off', 'on')
	{
		my $out = ask($session, "$mode{$mode} REINDEX INDEX i");

		is(($out =~ /^DEBUG:  pg_lookahead builds index "i"$/m) ? 'on' : 'off', $mode, "REINDEX, $mode");
		$prints .= $node->safe_psql('postgres', q(SELECT fingerprint('la.i', true))) . "\n";
	}
	like($prints, qr/^(.*\n)\1{3}$/, 'REINDEX off and on: same pages');
	ask($session, 'SET pg_lookahead.enable = off');
	unlike(ask($session, 'REINDEX TABLE t'), qr/pg_lookahead/, 'REINDEX, pg_lookahead.enable = off');
	$session->quit;
}

# ---- 2. errors ----------------------------------------------------------------

# all there is to know of an error, and the transaction goes on
sub diagnosed
{
	my ($statement) = @_;

	return qq(DO \$do\$
		DECLARE a text; b text; c text; d text; e text; f text; g text; h text; i text;
		BEGIN
			EXECUTE \$\$$statement\$\$;
			RAISE NOTICE 'no error';
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS a = RETURNED_SQLSTATE, b = MESSAGE_TEXT, c = PG_EXCEPTION_DETAIL, d = PG_EXCEPTION_HINT,
				e = PG_EXCEPTION_CONTEXT, f = SCHEMA_NAME, g = TABLE_NAME, h = CONSTRAINT_NAME, i = COLUMN_NAME;
			RAISE NOTICE '%', array[a, b, c, d, e, f, g, h, i];
		END \$do\$);
}

my $duplicate = "$table INSERT INTO t SELECT * FROM t WHERE id = 777;";
my $duplicates = "$table INSERT INTO t SELECT * FROM t WHERE id % 50 = 7;";
my $serial = 'SET max_parallel_maintenance_workers = 0;';
my %memory = ('in memory' => "SET maintenance_work_mem = '64MB';", 'spilling' => "SET maintenance_work_mem = '1MB';");
for my $memory (sort keys %memory)
{
	my %p = (settings => $serial . $memory{$memory}, took => ['i']);
	# any of several duplicates may be named
	my $any = sub { $_[0] =~ s/(Key \(.*\)=\().*?(\) is duplicated)/$1...$2/r };
	my $violated = qr/could not create unique index "i"\nDETAIL:  Key .* is duplicated/;

	same("duplicate, $memory", $duplicate, 'CREATE UNIQUE INDEX i ON t (id)', %p, like => $violated);
	same("duplicates, $memory", $duplicates, 'CREATE UNIQUE INDEX i ON t (id)', %p, like => $violated, normal => $any);
	same("duplicate of three columns, $memory", $duplicate, 'CREATE UNIQUE INDEX i ON t (s, id DESC, u) INCLUDE (a)', %p, like => $violated);
	same("duplicate of an expression, $memory", $duplicate, 'CREATE UNIQUE INDEX i ON t ((id + 1), (u || s)) WHERE id > 5', %p, like => $violated);
	same("duplicate, diagnosed, $memory", $duplicate, diagnosed('CREATE UNIQUE INDEX i ON t (id)'), %p, like => qr/23505,.*,la,t,i,/s);
	same("duplicate, constraint, $memory", $duplicate, 'ALTER TABLE t ADD CONSTRAINT i PRIMARY KEY (id)', %p, like => $violated);
	same("duplicate, deferrable, $memory", $duplicate, 'ALTER TABLE t ADD CONSTRAINT i UNIQUE (id) DEFERRABLE', %p, like => $violated);
	same("duplicate, concurrently, $memory", $duplicate, "$alone CREATE UNIQUE INDEX CONCURRENTLY i ON t (id)", %p, left => ['i'], like => $violated);
	same("many nulls, $memory", $table, 'CREATE UNIQUE INDEX i ON t (u, (nullif(a, a)))', %p, like => qr/^i i /m);
	same("nulls not distinct, $memory", $table, 'CREATE UNIQUE INDEX i ON t (u) NULLS NOT DISTINCT', %p, like => qr/Key \(u\)=\(null\) is duplicated/);
	same("nulls not distinct, two columns, $memory", "$table INSERT INTO t VALUES (-1, null, 'x', null), (-2, null, 'x', null);",
		'CREATE UNIQUE INDEX i ON t (s, a, u) NULLS NOT DISTINCT WHERE id < 10', %p, like => qr/Key \(s, a, u\)=\(x, null, null\) is duplicated/);
	same("duplicates after a rewrite, $memory", "$table CREATE UNIQUE INDEX i ON t (id, v);",
		'ALTER TABLE t ALTER id TYPE int USING CASE WHEN id IN (55, 56) THEN 55 ELSE id END', %p, like => $violated);

	my $wide = "$table INSERT INTO t (id, s) SELECT 0, string_agg(md5(i::text), '') FROM generate_series(1, %d) i;";
	same("too wide for btree, $memory", sprintf($wide, 130), 'CREATE INDEX i ON t (s, id)', %p, like => qr/index row size \d+ exceeds btree/);
	same("too wide for a tuple, $memory", sprintf($wide, 400), 'CREATE INDEX i ON t (s, id)', %p, like => qr/index row (requires|size)/);
	# if it spills, what stock finds first is a matter of how rows came to its files
	same('too wide, and a duplicate behind it', sprintf($wide, 130) . "INSERT INTO t (id, s) VALUES (777, 'x');",
		'CREATE UNIQUE INDEX i ON t (id) INCLUDE (s)', %p, like => $violated) if $memory eq 'in memory';
	same("failing expression, $memory", $table, 'CREATE INDEX i ON t ((1 / (id - 777)))', %p, like => qr/division by zero/);
	same("failing predicate, $memory", $table, 'CREATE INDEX i ON t (id) WHERE 1 / (id - 777) < 5', %p, like => qr/division by zero/);
	same("failing function, $memory", $table . q(
		CREATE FUNCTION f(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
		BEGIN
			IF x = 777 THEN
				RAISE EXCEPTION 'no %', x USING HINT = 'none', DETAIL = 'of it';
			END IF;
			RETURN x;
		END $$;), '\set VERBOSITY verbose' . "\nCREATE INDEX i ON t (s, f(id))", %p, like => qr/PL\/pgSQL function/);
	same("error, then again, $memory", $duplicate, 'BEGIN; SAVEPOINT a; CREATE UNIQUE INDEX i ON t (id); ROLLBACK TO a; CREATE INDEX i ON t (id); COMMIT',
		%p, took => [ 'i', 'i' ], like => $violated);
	nothing_left($node, "errors, $memory");
}
same('duplicate, parallel', $duplicate, 'CREATE UNIQUE INDEX i ON t (id, u)',
	settings => "SET maintenance_work_mem = '64MB'; SET max_parallel_maintenance_workers = 2;",
	took => ['i'],
	like => qr/Key \(id, u\)=\(777, /,
	normal => sub { $_[0] =~ s/^CONTEXT:  parallel worker\n//mr });
same('failing expression, parallel', $table, 'CREATE INDEX i ON t ((1 / (id - 777)))',
	settings => 'SET max_parallel_maintenance_workers = 2;', took => ['i'], like => qr/division by zero/,
	normal => sub { $_[0] =~ s/^CONTEXT:  parallel worker\n//mr });
for my $workers (0, 2)
{
	same("temp_file_limit, $workers workers", $table, 'CREATE INDEX i ON t (u, s, a)',
		settings => "SET temp_file_limit = '300kB'; SET maintenance_work_mem = '1MB'; SET max_parallel_maintenance_workers = $workers;",
		took => ['i'], like => qr/temporary file size exceeds "?temp_file_limit"? \(300kB\)/,
		normal => sub { $_[0] =~ s/^CONTEXT:  parallel worker\n//mr });
	nothing_left($node, "temp_file_limit, $workers workers");
}

# what remains of concurrent builds is empty: the duplicates are neighbours, so the server, too,
# finds them when it sorts, and they are the last of their keys
my $last = 'CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 60000) i ORDER BY hashint4(i); INSERT INTO t VALUES (60001), (60001);';
for my $workers (0, 2)
{
	my $set = "SET maintenance_work_mem = '1MB'; SET max_parallel_maintenance_workers = 2; SET max_parallel_workers = $workers;";

	same("duplicate, what remains, $workers workers", $last, 'CREATE UNIQUE INDEX CONCURRENTLY i ON t (id)', settings => $set, took => ['i'],
		like => qr/^i i f 0 0 unique t .* valid f f f t$/m, normal => sub { $_[0] =~ s/^CONTEXT:  parallel worker\n//mr });
	same("duplicate, what remains of REINDEX, $workers workers", "$last DELETE FROM t WHERE ctid = (SELECT max(ctid) FROM t); CREATE UNIQUE INDEX i ON t (id);"
		  . "UPDATE pg_index SET indisvalid = false, indisready = false, indislive = false WHERE indexrelid = 'i'::regclass; INSERT INTO t VALUES (60001), (60001);"
		  . "UPDATE pg_index SET indisvalid = true, indisready = true, indislive = true WHERE indexrelid = 'i'::regclass;",
		'REINDEX INDEX CONCURRENTLY i', settings => $set, took => ['i'], like => qr/^i_ccnew i f 0 0 unique t .* valid f f f t$/m,
		normal => sub { $_[0] =~ s/^CONTEXT:  parallel worker\n//mr });
}

# ---- 3. rows that are not plainly alive -----------------------------------------

for my $way (@ways)
{
	my ($how, $settings) = @$way;
	my %p = (settings => $settings, took => ['i']);

	same("recently dead rows, $how", $table, 'CREATE INDEX i ON t (s, a, id)', %p,
		changes => 'DELETE FROM t WHERE id % 3 = 0; INSERT INTO t SELECT id, a, s FROM t WHERE id % 5 = 0');
	same("recently dead duplicates, $how", $table, 'CREATE UNIQUE INDEX i ON t (id)', %p,
		changes => 'CREATE TABLE x AS SELECT * FROM t; DELETE FROM t; INSERT INTO t SELECT * FROM x; DELETE FROM t WHERE id < 9000; INSERT INTO t SELECT * FROM x WHERE id < 9000');
	same("recently dead duplicates, nulls not distinct, $how", $table, 'CREATE UNIQUE INDEX i ON t (u, (CASE WHEN u IS NOT NULL THEN id END)) NULLS NOT DISTINCT', %p,
		changes => 'DELETE FROM t WHERE u IS NULL; INSERT INTO t (id) VALUES (5)');
	same("recently dead duplicates and others, $how", $table, 'CREATE UNIQUE INDEX i ON t (id)', %p, like => qr/Key \(id\)=\(4\) is duplicated/,
		changes => 'DELETE FROM t WHERE id = 5; INSERT INTO t (id) VALUES (5); INSERT INTO t (id) VALUES (4)',
		normal => sub { $_[0] =~ s/^CONTEXT:  parallel worker\n//mr });
	same("broken HOT chains, $how", $table, 'CREATE INDEX i ON t (v, id)', %p, like => qr/^i i .* valid t t t t /m,
		changes => 'UPDATE t SET v = v + 1 WHERE id % 4 = 0; UPDATE t SET v = v + 1 WHERE id % 8 = 0');
	same("HOT chains that are not broken, $how", "$table CREATE INDEX j ON t (v);", 'CREATE INDEX i ON t (id)', %p, like => qr/^i i .* valid t f t t /m,
		changes => 'DELETE FROM t WHERE id % 4 = 0');
	same("broken HOT chains, REINDEX, $how", "$table CREATE INDEX i ON t (v) WHERE false; ", 'REINDEX INDEX i', %p,
		changes => 'UPDATE t SET a = a + 1 WHERE id % 4 = 0');
	same("broken HOT chains, concurrently, $how", $table, ($settings =~ /workers = 0/ ? $alone : '')
		  . 'UPDATE t SET v = v + 1 WHERE id % 4 = 1; CREATE INDEX CONCURRENTLY i ON t (v, id)', %p);
	same("changed by the transaction, $how", $table, q(BEGIN;
		UPDATE t SET v = v + 1 WHERE id % 4 = 0;
		DELETE FROM t WHERE id % 9 = 0;
		SAVEPOINT a;
		DELETE FROM t WHERE id % 7 = 0;
		INSERT INTO t VALUES (-1, -1, 's', 'u');
		ROLLBACK TO a;
		INSERT INTO t SELECT -id, a, s, u, v FROM t WHERE id % 11 = 0;
		CREATE INDEX i ON t (v, s, id);
		UPDATE t SET a = 0 WHERE id = 12;
		COMMIT), %p);
	same("unique, changed by the transaction, $how", $table,
		'BEGIN; DELETE FROM t WHERE id = 3; INSERT INTO t (id) VALUES (3); CREATE UNIQUE INDEX i ON t (id); COMMIT', %p);
}

# ---- 4. settings, messages, progress -----------------------------------------------

my $shown = q(SELECT name, setting, source, reset_val FROM pg_settings WHERE name IN
	('max_parallel_maintenance_workers', 'maintenance_work_mem', 'min_parallel_table_scan_size') ORDER BY 1;);
my $spy = q(
	CREATE FUNCTION spy(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF x IN (1, 20000) THEN
			RAISE NOTICE 'workers %', current_setting('max_parallel_maintenance_workers');
		END IF;
		RETURN x;
	END $$;);
for my $workers (0, 2)
{
	my $set = "SET max_parallel_maintenance_workers = $workers;";

	same("$workers workers, shown", $table, "$set CREATE INDEX i ON t (s, a); $shown REINDEX TABLE t; $shown", took => [ 'i', 'i' ]);
	same("$workers workers, of all indexes", $table . $indexes . 'CREATE INDEX h ON t USING hash (a);', "$set REINDEX TABLE CONCURRENTLY t; $shown VACUUM FULL t; $shown",
		took => [ map { ($_) x ($workers > 0 ? 2 : 1) } qw(i j k) ]);
	same("$workers workers, shown while building", $table . $spy, "$set CREATE INDEX i ON t (spy(id)); $shown",
		took => ['i'], like => qr/NOTICE:  workers $workers\n/);
	same("$workers workers, SET LOCAL", $table, "BEGIN; SET LOCAL max_parallel_maintenance_workers = $workers; CREATE INDEX i ON t (s, a); $shown COMMIT; $shown",
		took => ['i']);
	same("$workers workers, after an error", $duplicate, "$set CREATE UNIQUE INDEX i ON t (id); $shown BEGIN; SET LOCAL max_parallel_maintenance_workers = 1;"
		  . "SAVEPOINT a; CREATE UNIQUE INDEX i ON t (id); ROLLBACK TO a; $shown COMMIT; $shown",
		took => [ 'i', 'i' ], normal => sub { $_[0] =~ s/^CONTEXT:  parallel worker\n//mgr });
	same("$workers workers, in DO", $duplicate, qq($set DO \$\$ BEGIN
			RAISE NOTICE 'before %', current_setting('max_parallel_maintenance_workers');
			CREATE INDEX i ON t (s);
			RAISE NOTICE 'after %', current_setting('max_parallel_maintenance_workers');
			BEGIN
				CREATE UNIQUE INDEX j ON t (id);
			EXCEPTION WHEN unique_violation THEN
				RAISE NOTICE 'failed %', current_setting('max_parallel_maintenance_workers');
			END;
			PERFORM set_config('max_parallel_maintenance_workers', '3', false);
		END \$\$; $shown),
		took => [ 'i', 'j' ]);
	same("$workers workers, set by a function", $table, qq(CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql SET max_parallel_maintenance_workers = $workers AS \$\$
		BEGIN
			CREATE INDEX i ON t (s);
			RETURN current_setting('max_parallel_maintenance_workers');
		END \$\$; SELECT f(); $shown), took => ['i']);
	# the user's code may run in the statement that builds the index, but not in the build
	same("$workers workers, in a statement's functions", $table . q(
		CREATE FUNCTION f(x int) RETURNS int LANGUAGE plpgsql AS $$
		BEGIN
			IF x = 1 THEN
				RAISE NOTICE 'workers %', set_config('max_parallel_maintenance_workers', '4', true);
			END IF;
			RETURN x;
		END $$;
		CREATE INDEX i ON t (s);
		CREATE MATERIALIZED VIEW m AS SELECT current_setting('max_parallel_maintenance_workers') AS n, id FROM t;
		CREATE UNIQUE INDEX k ON m (id);), "$set ALTER TABLE t ALTER s TYPE varchar, ADD CHECK (f(id) > 0), ADD CONSTRAINT j UNIQUE (id); $shown"
		  . "REFRESH MATERIALIZED VIEW m; SELECT DISTINCT n FROM m; DROP MATERIALIZED VIEW m; ALTER TABLE t ALTER id TYPE bigint USING f(id); $shown",
		like => qr/^\Q$workers\E$/m);
	same("$workers workers, in a trigger", $table . q(
		CREATE FUNCTION f() RETURNS event_trigger LANGUAGE plpgsql AS $$
		BEGIN
			RAISE NOTICE 'workers %', current_setting('max_parallel_maintenance_workers');
			PERFORM set_config('max_parallel_maintenance_workers', '1', false);
		END $$;), "CREATE EVENT TRIGGER la_trigger ON ddl_command_end EXECUTE FUNCTION f();"
		  . join('', map { "$set $_; $shown" } 'CREATE INDEX i ON t (s)', 'REINDEX TABLE CONCURRENTLY t', 'CREATE INDEX CONCURRENTLY j ON t (a)', 'ALTER TABLE t ALTER id TYPE bigint')
		  . 'DROP EVENT TRIGGER la_trigger', like => qr/workers $workers\n/);
	# the user's code in what is built beside btree indexes, before, and concurrently
	my $tells = q(
		CREATE FUNCTION tells(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
		BEGIN
			IF x = 1 THEN
				RAISE NOTICE 'workers %', current_setting('max_parallel_maintenance_workers');
			END IF;
			RETURN x;
		END $$;
		CREATE FUNCTION tells_all() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM tells(1); END $$;
		CREATE FUNCTION keeps(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE SET max_parallel_maintenance_workers = 3 AS $$ BEGIN RETURN x; END $$;);
	my @left = $workers > 0 ? () : (took => [ ]);
	for my $statement (
		'REINDEX INDEX h', 'REINDEX TABLE t', 'VACUUM FULL t', 'CLUSTER t USING b', 'REINDEX TABLE CONCURRENTLY t',
		'ALTER TABLE t ALTER a TYPE bigint, ADD UNIQUE (id, v)', 'CREATE INDEX i ON t USING gist (point(tells(id), 1))')
	{
		same("$workers workers, seen by others, $statement", "$table $tells CREATE INDEX b ON t (s, tells(id)); CREATE INDEX h ON t USING hash (tells(id));",
			"$set CREATE EVENT TRIGGER la_trigger ON ddl_command_end EXECUTE FUNCTION tells_all(); $statement; $shown DROP EVENT TRIGGER la_trigger",
			like => qr/NOTICE:  workers $workers\n/);
	}
	for my $how ('', 'CONCURRENTLY')
	{
		same("$workers workers, seen by a constant's function $how", $table . $tells, "$set CREATE INDEX $how i ON t ((id + tells(1))); $shown",
			$how ? @left : (took => ['i']), like => qr/NOTICE:  workers $workers\n/);
		same("$workers workers, seen by a predicate's function $how", $table . $tells, "$set CREATE INDEX $how i ON t (s, a) WHERE id > tells(1); $shown",
			$how ? @left : (took => ['i']), like => qr/NOTICE:  workers $workers\n/);
		same("$workers workers, a function with a setting of its own $how", $table . $tells, "$set CREATE INDEX $how i ON t (keeps(id), (id + keeps(1))); $shown REINDEX INDEX $how i; $shown",
			$how ? @left : (took => [ 'i', 'i' ]));
	}
	same("$workers workers, set in the table's favour", "$table ALTER TABLE t SET (parallel_workers = 0);", "$set CREATE INDEX i ON t (s)", took => ['i']);
}

# Memory.  Few keys of 30 to 190 kB, each longer than the one before, come after many rows that
# are wider than their keys, so keys are not long on the whole.  What a process has taken at most is its system's matter.
SKIP:
{
	my $session = open_session($node, 'SET search_path = la, public; SET max_parallel_maintenance_workers = 0; SET synchronize_seqscans = off;');
	my $proc = '/proc/' . pid_of($session);
	my %peak;

	skip 'the system does not tell what memory a process has taken', 4 unless -w "$proc/clear_refs" && -r "$proc/status";
	$node->safe_psql('postgres', q(DROP SCHEMA la CASCADE; CREATE SCHEMA la; SET search_path = la, public;
		CREATE FUNCTION kept(x text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN x; END $$;
		CREATE TABLE t AS
			SELECT i, i::text COLLATE "C" AS s, (SELECT string_agg(md5((i + k)::text), '') FROM generate_series(1, 30) k) AS w FROM generate_series(1, 27000) i
			UNION ALL SELECT i, repeat(md5(i::text), 1000 + i * 9), 'w' FROM generate_series(1, 550) i;));
	ask($session, "SET maintenance_work_mem = '" . ($node->pg_version >= 17 ? 64 : 1024) . "kB'");
	for my $key ('s', 'kept(s) COLLATE "C"')
	{
		for my $mode ('off', 'on')
		{
			ask($session, $mode{$mode} . 'SELECT sum(length(s)) FROM t');
			append_to_file("$proc/clear_refs", '5');
			is(ask($session, "CREATE INDEX i ON t ($key) INCLUDE (w)"), '', "memory, $key, $mode: built");
			($peak{$mode}) = slurp_file("$proc/status") =~ /^VmHWM:\s+(\d+) kB/m;
			ask($session, 'DROP INDEX i');
		}
		note("memory, $key: $peak{off} kB, $peak{on} kB");
		cmp_ok($peak{on}, '<', $peak{off} + 4096, "memory, $key: as much as the server takes");
	}
	$session->quit;
}

# temporary files are logged
for my $mode (qw(off on))
{
	my $position = -s $node->logfile;
	my $case = run_case($mode, $table, 'SET log_temp_files = 0; CREATE INDEX i ON t (s, u, a)',
		settings => "SET maintenance_work_mem = '1MB'; SET max_parallel_maintenance_workers = 0;");
	my @sizes = log_since($node, $position) =~ /LOG:  temporary file: path "base\/pgsql_tmp\/pgsql_tmp[^"]*", size (\d+)/g;
	my $sum = 0;

	$sum += $_ for @sizes;
	cmp_ok($sum, '>', 500_000, "spilling, $mode: temporary files are logged");
	nothing_left($node, "spilling, $mode");
}

# collations of another version
SKIP:
{
	my $collation = $node->safe_psql('postgres',
		"SELECT quote_ident(collname) FROM pg_collation WHERE collversion IS NOT NULL AND collname IN ('en-x-icu', 'en_US.utf8', 'en_US.UTF-8') AND collencoding IN (-1, 6) ORDER BY 1 LIMIT 1");

	skip 'no collation that has a version', 1 if $collation eq '';
	$node->safe_psql('postgres', "UPDATE pg_collation SET collversion = '0.0' WHERE quote_ident(collname) = '$collation'");
	same('collation of another version', $table, "CREATE INDEX i ON t (s COLLATE $collation, a); REINDEX TABLE t",
		# each process warns once
		settings => 'SET max_parallel_maintenance_workers = 0;',
		like => qr/WARNING:  collation $collation has version mismatch/);
}

# Progress.  The table's size is that of section 6, too.
my $big_rows = 300_000;
$node->safe_psql(
	'postgres', qq(
	CREATE SCHEMA big;
	CREATE TABLE big.b (id int, a int, s text COLLATE "C") WITH (parallel_workers = 2);
	INSERT INTO big.b SELECT i, hashint4(i), 'county ' || i % 120 || md5((i % 40000)::text) FROM generate_series(1, $big_rows) i;
	VACUUM ANALYZE big.b;));
my $build = 'CREATE INDEX i ON big.b (s, a)';
my $big_blocks = $node->safe_psql('postgres', q(SELECT pg_relation_size('big.b') / 8192));
my $progress = 'SELECT phase, blocks_total, blocks_done, tuples_total, tuples_done FROM pg_stat_progress_create_index WHERE pid = ';

# a scan that stands in the middle of the table
$node->safe_psql(
	'postgres', q(
	CREATE FUNCTION public.hold(x int, at int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF x = at THEN
			PERFORM pg_advisory_lock_shared(4), pg_advisory_unlock_shared(4);
		END IF;
		RETURN x;
	END $$));
for my $mode (qw(off on))
{
	my $holder = open_session($node, 'SELECT pg_advisory_lock(4)');
	my $builder = open_session($node, "$mode{$mode} SET max_parallel_maintenance_workers = 0; SET maintenance_work_mem = '4MB'");
	my $pid = pid_of($builder);

	start_waiting($node, $builder, $pid, 'CREATE INDEX i ON big.b (s, hold(id, ' . $big_rows / 2 . '))');
	my ($phase, $blocks, $done) = split /\|/, $node->safe_psql('postgres', "$progress $pid");
	is($phase, 'building index: scanning table', "progress, $mode: the phase of a scan");
	is($blocks, $big_blocks, "progress, $mode: blocks of the table");
	cmp_ok(abs($done - $big_blocks / 2), '<=', 2, "progress, $mode: half of them are done");
	$holder->quit;
	is(ask($builder, 'DROP INDEX big.i'), '', "progress, $mode: built");
	$builder->quit;
}

# All phases, sampled by another session.  Whether it sees them is a matter of luck, so what has to
# have been seen is for dev/test --deep.
my $known = 'initializing|building index: (initializing|scanning table|sorting live tuples|loading tuples in tree)';
for my $mode (qw(off on))
{
	my $builder = open_session($node, "$mode{$mode} SET max_parallel_maintenance_workers = 0; SET maintenance_work_mem = '4MB'");
	my $pid = pid_of($builder);
	my $sampler = open_session($node, 'CREATE TEMP TABLE seen (n serial, phase text, bt bigint, bd bigint, tt bigint, td bigint)');

	$sampler->query_until(qr/started/, "\\echo started\n" . qq(DO \$\$
		DECLARE
			until timestamptz := clock_timestamp() + '60 s';
			found_it bool := false;
		BEGIN
			WHILE clock_timestamp() < until LOOP
				PERFORM pg_stat_clear_snapshot();
				INSERT INTO seen (phase, bt, bd, tt, td) $progress $pid;
				IF FOUND THEN
					found_it := true;
				ELSIF found_it THEN
					EXIT;
				END IF;
				PERFORM pg_sleep(0.002);
			END LOOP;
		END \$\$;\n));
	usleep(200_000);
	is(ask($builder, $build), '', "progress, $mode: built, and watched");
	my @seen = map { [ split /\|/ ] } split /\n/, ask($sampler, 'SELECT phase, max(bt), max(bd), max(tt), max(td), max(bd - bt), max(td - tt), count(*) FROM seen GROUP BY 1 ORDER BY min(n)');
	my %seen = map { $_->[0] => $_ } @seen;

	note(join("\n", "progress, $mode:", map { join(' ', @$_) } @seen));
	is(join(', ', grep { !/^($known)$/ } keys %seen), '', "progress, $mode: phases are those of the server");
	is(join(', ', grep { $_->[5] > 0 || $_->[3] > 0 && $_->[6] > 0 } @seen), '', "progress, $mode: not more is done than there is to do");
  SKIP:
	{
		my $load = $seen{'building index: loading tuples in tree'};

		skip 'dev/test --deep looks', 2 unless $ENV{LA_DEEP} && $load && $load->[7] >= 10;
		is($load->[3], $big_rows, "progress, $mode: tuples_total");
		cmp_ok($load->[4], '>', 0, "progress, $mode: tuples_done");
	}
	ask($builder, 'DROP INDEX big.i');
	$_->quit for $builder, $sampler;
}

# ---- 5. parallel workers ------------------------------------------------------------

# a function that tells of itself from each process, and takes its time
$node->safe_psql(
	'postgres', q(
	CREATE FUNCTION public.slow(x int, every int, ms int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
	BEGIN
		IF x % every = 0 THEN
			RAISE LOG 'slow(%)', x;
			PERFORM pg_sleep(ms / 1000.0);
		END IF;
		RETURN x;
	END $$));
for my $leader ('on', 'off')
{
	my %processes;

	# a worker that starts late finds nothing left
	subtest "parallel, leader $leader" => sub {
		for my $ms (2, 20, 100, 500)
		{
			my $position = -s $node->logfile;

			same("$ms ms", $table, "CREATE INDEX i ON t (s, slow(id, 100, $ms))",
				settings => "SET max_parallel_maintenance_workers = 2; SET maintenance_work_mem = '1MB'; SET parallel_leader_participation = $leader;",
				took => ['i']);
			my $log = log_since($node, $position);
			%processes = map { $_ => 1 } $log =~ /\[(\d+)\].* LOG:  slow\(/g;
			last if keys %processes >= 4;
		}
		# stock's processes and ours
		cmp_ok(scalar keys %processes, '>=', 4, 'several processes took part');
	};
}

# long values that are compressed: abandoned in the middle, by one process or all of them
my $long = q(CREATE TABLE t (id int, s text COLLATE "C") WITH (parallel_workers = 2);
	INSERT INTO t SELECT i, md5(i::text) || repeat(md5((i % 100)::text), CASE WHEN i < %d THEN 0 ELSE 300 END) FROM generate_series(1, 4000) i;);
for my $from (0, 2000)
{
	same("long values from $from on, $_ workers", sprintf($long, $from), 'CREATE INDEX i ON t (s, id)',
		settings => "SET max_parallel_maintenance_workers = $_; SET maintenance_work_mem = '1MB'; SET min_parallel_table_scan_size = 0;",
		took => ['i'], left => ['i']) for 0, 2;
}
same("long values, functions are called once, $_ workers", sprintf($long, 2000), 'CREATE INDEX i ON t (s, noted(id))', took => ['i'], left => [],
	settings => "SET max_parallel_maintenance_workers = $_; SET maintenance_work_mem = '1MB'; SET min_parallel_table_scan_size = 0;",
	normal => sub { join "\n", sort grep { !/^CONTEXT/ } split /\n/, $_[0] }) for 0, 2;
same('few long values', sprintf($long, 3990), 'CREATE INDEX i ON t (s, id)', took => ['i'], left => []);

# no worker can be had
same('parallel, no worker to be had', $table, 'SET max_parallel_workers = 0; CREATE UNIQUE INDEX i ON t (s, id)',
	settings => 'SET max_parallel_maintenance_workers = 2;', took => ['i']);
same('parallel, no worker and no leader', $table, 'SET max_parallel_workers = 0; CREATE UNIQUE INDEX i ON t (s, id)',
	settings => 'SET max_parallel_maintenance_workers = 2; SET parallel_leader_participation = off;', took => ['i']);

# An enum gets a label before workers start, which others than the leader's would have to
# encode in another way: the leader waits for the postmaster, which waits for us.
{
	my ($builder, $other) = map { open_session($node, "$mode{on} SET search_path = la, public; SET log_statement = none; SET client_min_messages = debug1;") } 1 .. 2;
	my $pid = pid_of($builder);
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my $waits = '';

	$node->safe_psql('postgres', "DROP SCHEMA la CASCADE; CREATE SCHEMA la; SET search_path = la, public;
		CREATE TABLE t (m, id) WITH (parallel_workers = 2) AS SELECT (ARRAY['good', 'bad'])[i % 2 + 1]::mood, i FROM generate_series(1, 20000) i;");
	kill 'STOP', $postmaster;
	$builder->query_until(qr/started/, "\\echo started\nSET max_parallel_maintenance_workers = 2;\nCREATE INDEX i ON t (m, id);\n");
	wait_until(sub { ($waits = ask($other, "SELECT wait_event FROM pg_stat_activity WHERE pid = $pid")) =~ /^Bg[wW]orkerStartup$/ });
	my $added = ask($other, "ALTER TYPE mood ADD VALUE 'so so' BEFORE 'good'");
	kill 'CONT', $postmaster;
	like($waits, qr/^Bg[wW]orkerStartup$/, 'a label that workers see: the leader waits for them');
	is($added, '', 'a label that workers see: added');
	my $out = ask($builder, 'SELECT count(*) FROM t');
	unlike($out, qr/ERROR|left/, 'a label that workers see: no error');
	like($out, qr/pg_lookahead builds index "i"/, 'a label that workers see: built');
	$_->quit for $builder, $other;
	is(check_indexes($node, 'bt_index_check(c.oid, heapallindexed => true)'), '', 'a label that workers see: the index');
}

# a worker is canceled, or terminated
for my $function ('pg_cancel_backend', 'pg_terminate_backend')
{
	my %error;

	for my $mode (qw(off on))
	{
		run_case($mode, $table, 'SELECT 1');
		my $session = open_session($node, "$mode{$mode} SET search_path = la, public; SET max_parallel_maintenance_workers = 2");
		my $pid = pid_of($session);

		$session->query_until(qr/started/, "\\echo started\nCREATE INDEX i ON t (s, slow(id, 20, 20));\n");
		$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE leader_pid = $pid AND wait_event = 'PgSleep'")
		  or die 'no parallel worker';
		$node->safe_psql('postgres', "SELECT $function(pid) FROM pg_stat_activity WHERE leader_pid = $pid LIMIT 1");
		# where the worker was is another matter
		$error{$mode} = ask($session, 'SELECT 1') =~ s/^CONTEXT:  .*?(?=parallel worker$)//msr;
		is(ask($session, 'SELECT count(*) FROM t; SELECT count(*) FROM pg_class WHERE relname = \'i\' AND relnamespace = \'la\'::regnamespace'),
			"20000\n0", "$function of a worker, $mode: the session goes on");
		$session->quit;
		nothing_left($node, "$function of a worker, $mode");
	}
	like($error{off}, qr/ERROR/, "$function of a worker: an error");
	is($error{on}, $error{off}, "$function of a worker: same error");
}

# ---- 6. interrupted -------------------------------------------------------------------

my %conduct = (
	'in memory' => "SET maintenance_work_mem = '256MB'; SET max_parallel_maintenance_workers = 0;",
	'spilling' => "SET maintenance_work_mem = '2MB'; SET max_parallel_maintenance_workers = 0;",
	'parallel, in memory' => "SET maintenance_work_mem = '256MB'; SET max_parallel_maintenance_workers = 2;",
	'parallel, spilling' => "SET maintenance_work_mem = '2MB'; SET max_parallel_maintenance_workers = 2;");
my %built;
my $killer = open_session($node, '');
my $drop = 'SET client_min_messages = error; DROP INDEX IF EXISTS big.i; RESET client_min_messages';
for my $how (sort keys %conduct)
{
	my $settings = $mode{on} . $conduct{$how};
	my $session = open_session($node, $settings);
	my $pid = pid_of($session);
	my $start = time;
	my ($timeouts, $cancels, $ends) = (0, 0, 0);

	is(ask($session, $build), '', "$how: built");
	my $ms = (time() - $start) * 1000;
	$built{$how} = $node->safe_psql('postgres', q(SELECT fingerprint('big.i', true)));
	ask($session, 'DROP INDEX big.i');
	note("$how: " . int($ms) . ' ms');
	nothing_left($node, "$how: built");

	# Other builds may be faster than the first, which a busy machine has slowed down: so often, or until enough of
	# them were caught, each time earlier after one that was not.
	my %strange = map { $_ => '' } qw(timeouts cancels ends);
	my $note = sub {
		my ($kind, $is, $expected, $name) = @_;

		$strange{$kind} .= "$name: $is\n" if $is !~ $expected;
		return;
	};
	for (my $part = 0; $part < 8 || $part < 40 && $timeouts < 3; $part++)
	{
		my $limit = int($ms * ($part % 8 + 1) / 9) + 1;
		my $begin = time;
		my $out = ask($session, "SET statement_timeout = $limit;\n$build");
		my $took = (time() - $begin) * 1000;

		$ms = $took if $out eq '' && $took < $ms;
		$timeouts++ if is_timeout($out);
		$note->('timeouts', $out, qr/^$/, "$limit ms") if !is_timeout($out);
		$note->('timeouts', what_is_left($node), qr/^$/, "$limit ms, files left or buffers pinned");
		reset_timeout($session);
		$note->('timeouts', ask($session, $drop), qr/^$/, "$limit ms, DROP INDEX");
	}
	cmp_ok($timeouts, '>=', 3, "$how: timeouts");
	is($strange{timeouts}, '', "$how: timeouts leave nothing");

	for (my $part = 1; $part <= 6 || $part <= 30 && $cancels < 2; $part++)
	{
		$session->query_until(qr/started/, "\\echo started\n$build;\n");
		usleep($ms * 1000 * (($part - 1) % 6 + 1) / 7);
		ask($killer, "SELECT pg_cancel_backend($pid)");
		my $out = ask($session, 'SELECT 1');
		if ($out =~ /canceling/) { $cancels++; }
		else { $ms *= 0.8; }
		$note->('cancels', $out, qr/^1(\nERROR:  canceling statement due to user request)?$/, "$part");
		$note->('cancels', what_is_left($node), qr/^$/, "$part, files left or buffers pinned");
		$note->('cancels', ask($session, $drop), qr/^$/, "$part, DROP INDEX");
	}
	cmp_ok($cancels, '>=', 2, "$how: cancels");
	is($strange{cancels}, '', "$how: cancels leave nothing");
	is(ask($session, $build), '', "$how: built again");
	is($node->safe_psql('postgres', q(SELECT fingerprint('big.i', true))), $built{$how}, "$how: same pages again");
	ask($session, 'DROP INDEX big.i');
	$session->quit;

	for (my $part = 1; $part <= 4 || $part <= 20 && $ends < 1; $part++)
	{
		$session = open_session($node, $settings);
		$pid = pid_of($session);
		$session->query_until(qr/started/, "\\echo started\n$build;\n");
		usleep($ms * 1000 * (($part - 1) % 4 + 1) / 5);
		ask($killer, "SELECT pg_terminate_backend($pid)");
		$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid OR leader_pid = $pid");
		{
			local $SIG{PIPE} = 'IGNORE';
			eval { $session->quit };
		}
		if ($node->safe_psql('postgres', "SELECT to_regclass('big.i') IS NULL") eq 't') { $ends++; }
		else { $ms *= 0.8; }
		$note->('ends', what_is_left($node), qr/^$/, "$part, files left or buffers pinned");
		$node->safe_psql('postgres', 'SET client_min_messages = error; DROP INDEX IF EXISTS big.i');
	}
	cmp_ok($ends, '>=', 1, "$how: terminated in the middle");
	is($strange{ends}, '', "$how: sessions that were terminated leave nothing");
}
$killer->quit;
$node->safe_psql('postgres', $mode{off} . $build);
my $stock_pages = $node->safe_psql('postgres', q(SELECT fingerprint('big.i', true)));
is($built{$_}, $stock_pages, "$_: pages of stock") for sort keys %built;
$node->safe_psql('postgres', 'DROP INDEX big.i');

# ---- 7. beside writers --------------------------------------------------------------------

$node->safe_psql('postgres', "DROP SCHEMA la CASCADE; CREATE SCHEMA la; SET search_path = la, public; $table CREATE UNIQUE INDEX i ON t (id);");
{
	my $file = $node->basedir . '/writer.sql';

	append_to_file($file, q(
\set a random(1, 20000)
\set b random(20001, 1000000000)
UPDATE la.t SET a = a + 1 WHERE id = :a;
UPDATE la.t SET v = v + 1, s = 'county ' || :a % 120 WHERE id BETWEEN :a AND :a + 5;
DELETE FROM la.t WHERE id = :a AND id % 10 = 0;
INSERT INTO la.t VALUES (:b, :a, 'county ' || :a % 120, md5(:a::text)) ON CONFLICT DO NOTHING;
));
	my $run = start_pgbench($node, 10, 'concurrent builds', '', 3, '-f', $file);
	my ($end, $rounds, $took, $wrong) = (time + 9, 0, 0, '');

	while (time < $end)
	{
		my ($out, $err) = ('', '');

		$node->psql('postgres', "$mode{on} SET search_path = la, public; SET maintenance_work_mem = '1MB'; SET client_min_messages = debug1;\n"
			  . 'SET max_parallel_maintenance_workers = 2; SET max_parallel_workers = ' . ($rounds % 2 ? 2 : 0) . ";\n"
			  . "CREATE INDEX CONCURRENTLY c1 ON t (s, a);\nCREATE UNIQUE INDEX CONCURRENTLY c2 ON t (u, id) INCLUDE (v);\n"
			  . "REINDEX INDEX CONCURRENTLY i;\nREINDEX TABLE CONCURRENTLY t;\n",
			on_error_stop => 0, stdout => \$out, stderr => \$err);
		my $messages = read_messages($err);
		$took += () = $messages->{took} =~ /^/mg;
		$wrong .= $messages->{rest} . check_indexes($node);
		$node->safe_psql('postgres', 'DROP INDEX la.c1, la.c2') if ++$rounds && time < $end;
	}
	check_pgbench($run);
	is($wrong, '', "concurrent builds, $rounds rounds: no error");
	cmp_ok($took, '>=', 6 * $rounds, "concurrent builds: $took by the library");
	is(check_indexes($node), '', 'concurrent builds: indexes');
	is(check_indexes($node, 'bt_index_parent_check(c.oid, heapallindexed => true, rootdescend => true)'), '', 'concurrent builds: indexes, thoroughly');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_index WHERE NOT (indisvalid AND indisready)'), 0, 'concurrent builds: all are valid');
	nothing_left($node, 'concurrent builds');
}

# ---- 8. crashes, standby, wal_level = minimal ------------------------------------------------

# right after builds; one is under way
for my $how ('in memory', 'spilling', 'parallel, spilling')
{
	$node->safe_psql('postgres', "DROP SCHEMA la CASCADE; CREATE SCHEMA la; SET search_path = la, public; $table CHECKPOINT;");
	$node->safe_psql('postgres', "$mode{on} $conduct{$how} SET search_path = la, public; $indexes ALTER TABLE t ADD PRIMARY KEY (id);");
	my $before = $node->safe_psql('postgres', 'SELECT * FROM pages(false)');
	my $session = open_session($node, $mode{on} . $conduct{$how});
	$session->query_until(qr/started/, "\\echo started\nCREATE INDEX i ON big.b (s, a, slow(id, 1000, 200));\n");
	usleep(500_000);
	$node->stop('immediate');
	{
		local $SIG{PIPE} = 'IGNORE';
		eval { $session->quit };
	}
	$node->start;
	is($node->safe_psql('postgres', 'SELECT * FROM pages(false)'), $before, "crash, $how: same pages");
	is(check_indexes($node, 'bt_index_parent_check(c.oid, heapallindexed => true, rootdescend => true)'), '', "crash, $how: indexes");
	is(join(' ', glob($node->data_dir . '/base/pgsql_tmp/*')), '', "crash, $how: no temporary files");
	is($node->safe_psql('postgres', "SELECT to_regclass('big.i') IS NULL"), 't', "crash, $how: the build did not end");
}
check_log($node);
$node->stop;

# a standby has the primary's pages
my $primary = new_server('primary', streaming => 1, extensions => \@extensions, conf => "fsync = off\nshared_buffers = 16MB\n");
create_functions($primary);
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
for my $settings ($conduct{'in memory'}, $conduct{'spilling'}, $conduct{'parallel, spilling'})
{
	my $position = -s $primary->logfile;

	$primary->safe_psql('postgres', "SET client_min_messages = error; DROP SCHEMA IF EXISTS la CASCADE; CREATE SCHEMA la; SET search_path = la, public; $table");
	$primary->safe_psql('postgres', "$mode{on} $settings SET search_path = la, public; SET log_min_messages = debug1; $indexes"
		  . 'ALTER TABLE t ADD PRIMARY KEY (id); CREATE INDEX e ON t (a) WHERE false; CREATE INDEX d ON t (s) WITH (fillfactor = 10);');
	$primary->safe_psql('postgres', "$mode{on} $settings CREATE INDEX CONCURRENTLY c ON la.t (u, s)");
	$primary->safe_psql('postgres', "$mode{on} $settings REINDEX TABLE CONCURRENTLY la.t; VACUUM FULL la.t;");
	$primary->wait_for_catchup($standby);
	cmp_ok(scalar(() = log_since($primary, $position) =~ /pg_lookahead builds index/g), '>=', 6, 'standby: the library has built indexes');
	is($standby->safe_psql('postgres', 'SELECT * FROM pages(false)'), $primary->safe_psql('postgres', 'SELECT * FROM pages(false)'),
		'the standby has the same pages');
	is(check_indexes($standby), '', 'the standby has good indexes');
}
$standby->promote;
is(check_indexes($standby, 'bt_index_parent_check(c.oid, heapallindexed => true, rootdescend => true)'), '', 'after promotion, indexes');
$standby->safe_psql('postgres', "$mode{on} REINDEX TABLE la.t; INSERT INTO la.t SELECT id + 100000, a, s, u FROM la.t;");
is(check_indexes($standby), '', 'after promotion, index builds');
check_log($_) for ($primary, $standby);
$_->stop for $standby, $primary;

# nothing but the end of the transaction is logged
for my $threshold ('0', '1GB')
{
	my $minimal = new_server("minimal_$threshold", extensions => \@extensions,
		conf => "wal_level = minimal\nmax_wal_senders = 0\nwal_skip_threshold = $threshold\nshared_buffers = 16MB\n");

	create_functions($minimal);
	$minimal->safe_psql('postgres', "$mode{on} CREATE SCHEMA la; SET search_path = la, public; CREATE TABLE old AS SELECT i FROM generate_series(1, 5000) i;");
	$minimal->safe_psql('postgres', "$mode{on} SET search_path = la, public; $conduct{spilling} BEGIN; $table $indexes"
		  . 'CREATE INDEX o ON old (i); SAVEPOINT a; CREATE INDEX gone ON t (v); ROLLBACK TO a; REINDEX INDEX j; COMMIT; CREATE INDEX e ON t (a DESC);');
	my $before = $minimal->safe_psql('postgres', 'SELECT * FROM pages(false)');
	$minimal->stop('immediate');
	$minimal->start;
	is($minimal->safe_psql('postgres', 'SELECT * FROM pages(false)'), $before, "wal_level = minimal, $threshold: same pages after a crash");
	is(check_indexes($minimal, 'bt_index_parent_check(c.oid, heapallindexed => true, rootdescend => true)'), '', "wal_level = minimal, $threshold: indexes");
	$minimal->safe_psql('postgres', "$mode{off} REINDEX SCHEMA la");
	is($minimal->safe_psql('postgres', 'SELECT * FROM pages(false)'), $before, "wal_level = minimal, $threshold: pages of stock");
	check_log($minimal);
	$minimal->stop;
}

done_testing();
