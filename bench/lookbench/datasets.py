"""The tables that the workloads read; made once and kept with the server.

bench_points   one heap, four keys, so that every distribution is measured on the same
               pages.  Rows are numbered in heap order:
                 seq   the row's number: index order is heap order
                 rnd   a random permutation: every next row is on another page
                 cor   correlated: random inside each window of 1000 rows (some ten pages)
                 cyc   cyclic: neighbours in index order lie CYCLES rows apart
               Every key is a permutation of 0..rows-1, so a range of n values matches n
               rows.  An index on (key / n) has n rows for each value, in heap order: this
               is what equality on a column with many duplicates looks like.
bench_limit    Knizhnik's table: 1 kB rows, fillfactor 10, hence one row on a page.
bench_places   one heap again, whose rows have a place in four orders, as above: integers rnd, seq,
               cor and cyc (hash indexes on key / n), and points.  The points lie in the squares
               of a grid, each at a random place inside its square of size 1; a box of w x h
               squares holds w * h points.  In seq_p neighbours in the heap are neighbours in a
               Z-order curve, which is the order of a GiST index and nearly that of a quad-tree;
               rnd_p, cor_p and cyc_p are placed likewise.  The columns ..._p and ..._q are the
               same points, for indexes of two methods, rnd_b is the box that is rnd_p.
bench_visible  keys as in bench_points; all pages are marked all-visible.
bench_tenth    the same, but a row of every tenth page was updated afterwards.
bench_hidden   the same with a row of every page updated: no page is all-visible.
bench_rare     the same with a row of every 10,000th page updated.
bench_fragments
               nearly clustered: far_N and near_N are the row's number, but N % of the rows have
               changed places, in far_N with any other such row, in near_N with one of the same
               1000 rows (some ten pages).
bench_fuzz     nearly clustered as in the tests of core's index prefetching: one fifth of a page is
               used, every value occurs FUZZ_EACH times, and fuzz_N is the row's place after it
               has been moved by N / 2 rows at most, divided by FUZZ_EACH.
bench_parity   Geoghegan's example: 250 rows on four pages.
bench_grown    two random permutations a and b, each with an index that was there before the
               rows were: neighbouring leaf pages lie anywhere in the index.
bench_documents
               documents with GIN indexes, see documents.py.
bench_mixed    a primary key in heap order, and two random permutations a and b.
bench_driver   the outer side of nested loops: id, and three random permutations k, k2, k3 of every
               20th key of bench_points.
bench_vectors  vectors of 128 dimensions around CLUSTERS centres, in an order unrelated to
               them, with payloads of 768 bytes.
bench_parts    PARTITIONS partitions; in each of them key is a permutation of
               0..rows/PARTITIONS-1.
bench_divided  the columns seq, rnd and payload of bench_points, in DIVISIONS partitions by ranges
               of rnd.
bench_scattered  seq in order, in DIVISIONS partitions by a hash, with a short payload.
bench_wide     rows of 1 kB whose payload, 6 kB more, is stored out of line and not
               compressed; key is a random permutation.
bench_values   rows with a document of 4 kB, which is stored out of line and not compressed; key is a
               random permutation, with an index.  Rows are in the order of id, and documents
               in another one.  bench_values_few likewise; in bench_values_loaded documents are
               in the order of their rows.
bench_external_N, bench_extended_N
               DOCUMENT_ROWS rows with a jsonb document of N kB out of line, as it is or compressed,
               otherwise like bench_values.
bench_scale_N  N rows with a random number of 40 bits as key, and their number seq; bench_scale_N_keys has
               keys of SCALE_KEYS of them, at random.  bench_scale_N_partitions likewise, in N partitions.
bench_ints_N   the integers 1..N.
bench_hash_keys
               what hash joins are joined by: b and t are the row's number as bigint and text, k1
               and k2 its halves; m1000 etc. are random numbers up to that, so is m1 up to a
               hundred times of a tenth of the rows and m50 up to twice of it; skewed is 0 in a
               tenth of the rows and the row's number in the others.
bench_hash_wide
               the row's number i, and 92 bytes.
bench_write_*  what rows are written to, see written.py.
bench_paid*    prices paid for houses, see paid.py.
pgbench_*      pgbench's own, made by pgbench -i.
tpch*          schemas of TPC-H, one for each scale factor; see tpch/.

A finished table is noted in bench_done with the number of its rows; without that
note, or with another number, it is made anew.
"""

from __future__ import annotations

import math
import subprocess
from typing import TYPE_CHECKING, Mapping, Sequence

import psycopg

from .documents import SCRIPTS as DOCUMENT_SCRIPTS
from .paid import SCRIPTS as PAID_SCRIPTS
from .server import Server, ServerError
from .written import SCRIPTS as WRITE_SCRIPTS

if TYPE_CHECKING:  # workloads import this module
    from .workloads.base import Index

CYCLES = 1000
PARTITIONS = 1000
CLUSTERS = 1000
DIVISIONS = 16
DIMENSIONS = 128
PGBENCH_ROWS_PER_SCALE = 100_000

POINTS = """
create table bench_points as
select seq, rnd,
       (seq / 1000) * 1000 + ((seq % 1000) * 617 + 7) % 1000 as cor,
       (seq % {cycles}) * ({rows} / {cycles}) + seq / {cycles} as cyc,
       md5(seq::text) as payload
from (select (row_number() over (order by hashint4extended(i, 42)) - 1)::int as seq, i as rnd
      from generate_series(0, {rows} - 1) i) numbered
"""

LIMIT = """
create table bench_limit (pk integer, sk integer, payload text default repeat('x', 1000))
    with (fillfactor = 10);
select setseed(0.42);
insert into bench_limit select i, random() * {rows} from generate_series(1, {rows}) i
"""


def _spread(value: str) -> str:
    """SQL for the bits of a small integer on the even places of another."""
    for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        value = f"(({value} | ({value} << {shift})) & {mask})"
    return value


PLACES = """
create table bench_places as
with squares as materialized (
    select (row_number() over (order by {spread_x} | ({spread_y} << 1)) - 1)::int as place,
           point({origin} + x + (hashint4extended(k, 1) & 1048575) / 1048576.0,
                 {origin} + y + (hashint4extended(k, 2) & 1048575) / 1048576.0) as p
    from (select k, k % {side} as x, k / {side} as y from generate_series(0, {rows} - 1) k) grid
), numbered as (
    select seq, rnd,
           (seq / 1000) * 1000 + ((seq % 1000) * 617 + 7) % 1000 as cor,
           (seq % {cycles}) * ({rows} / {cycles}) + seq / {cycles} as cyc
    from (select (row_number() over (order by hashint4extended(i, 42)) - 1)::int as seq, i as rnd
          from generate_series(0, {rows} - 1) i) numbered
)
select seq, rnd, cor, cyc, r.p as rnd_p, r.p as rnd_q, box(r.p, r.p) as rnd_b, s.p as seq_p, s.p as seq_q,
       c.p as cor_p, c.p as cor_q, y.p as cyc_p, y.p as cyc_q, md5(seq::text) as payload
from numbered
    join squares r on r.place = rnd join squares s on s.place = seq
    join squares c on c.place = cor join squares y on y.place = cyc
order by seq
"""
# coordinates up to twice that have the same exponent, so the order of GiST's sorted build is
# that of the squares
ORIGIN = 4096  # more than side()

# centre() is the same function
VECTORS = """
create table bench_vectors (id integer, payload text, v vector({dimensions}));
insert into bench_vectors
select id, repeat(md5(id::text), 24),
       (select array_agg((c * 7919 + j * 104729 + c * j * 31) % 1009 / 1009.0::float8
                         + ((hashint8extended(id::bigint * {dimensions} + j, 7) & 65535) / 65536.0::float8 - 0.5) * {spread}
                         order by j)
        from generate_series(0, {dimensions} - 1) j)::vector({dimensions})
from (select id, ((hashint4extended(id, 5) & 1048575) % {clusters})::integer as c
      from generate_series(1, {rows}) id) numbered
"""
SPREAD = 0.2

PARTS = """
create table bench_parts (part integer, key integer, payload text) partition by list (part);
do $$ begin for i in 0 .. {partitions} - 1 loop execute format('create table bench_parts_%s partition of bench_parts for values in (%s)', i, i); end loop; end $$;
insert into bench_parts
select i % {partitions}, i / {partitions}, repeat(md5(i::text), 12)
from generate_series(0, {rows} - 1) i order by hashint4extended(i, 42)
"""

WIDE = """
create table bench_wide (key integer, pad text, payload text);
alter table bench_wide alter pad set storage plain, alter payload set storage external;
insert into bench_wide
select i, repeat('x', 1000), repeat(md5(i::text), 192)
from generate_series(0, {rows} - 1) i order by hashint4extended(i, 42)
"""

# documents are written in the order of a hash, into rows that stay on their pages
VALUES = """
create table {table} (id integer, key integer, note text, payload text) with (fillfactor = 40);
alter table {table} alter payload set storage external;
insert into {table}
select (row_number() over (order by hashint4extended(i, 42)) - 1)::int, i, 'note ' || i, null
from generate_series(0, {rows} - 1) i order by 1;
create index {table}_id on {table} (id);
create index {table}_key on {table} (key);
do $$ declare i int; begin set local enable_seqscan = off; for i in select g from generate_series(0, {rows} - 1) g order by hashint4extended(g, 7) loop update {table} set payload = repeat(md5(i::text), 128) where id = i; end loop; end $$
"""

VALUES_LOADED = """
create table {table} (id integer, key integer, note text, payload text);
alter table {table} alter payload set storage external;
insert into {table}
select (row_number() over (order by hashint4extended(i, 42)) - 1)::int, i, 'note ' || i, repeat(md5(i::text), 128)
from generate_series(0, {rows} - 1) i order by 1
"""

# documents of so many kB, of which a compressed one takes about half; rows of each
DOCUMENT_ROWS: Mapping[int, int] = {4: 20_000, 16: 10_000, 100: 2_000}


def _documents(kilobytes: int, storage: str) -> str:
    times = 1 if storage == "external" else 2
    body = f"(select string_agg(repeat(md5(i || ' ' || j), {times}), '') from generate_series(1, {kilobytes * 32 // times}) j)"
    return f"""
create table {{table}} (id integer, key integer, payload jsonb) with (fillfactor = 40);
alter table {{table}} alter payload set storage {storage};
insert into {{table}}
select (row_number() over (order by hashint4extended(i, 42)) - 1)::int, i, null from generate_series(0, {{rows}} - 1) i order by 1;
create index {{table}}_id on {{table}} (id);
create index {{table}}_key on {{table}} (key);
do $$ declare i int; begin set local enable_seqscan = off; for i in select g from generate_series(0, {{rows}} - 1) g order by hashint4extended(g, 7) loop update {{table}} set payload = jsonb_build_object('number', i, 'body', {body}) where id = i; end loop; end $$
"""


VISIBLE = """
create table {table} with (fillfactor = 95) as
select seq, rnd, md5(seq::text) as payload
from (select (row_number() over (order by hashint4extended(i, 42)) - 1)::int as seq, i as rnd
      from generate_series(0, {rows} - 1) i) numbered
"""

# one row for each page: it stays on the page, and reading it twice leaves nothing to tidy up
HIDE = """
update {table} set payload = payload
where (ctid::text::point)[1] = 1 and (ctid::text::point)[0]::integer % {every} = 0;
select count(*) from {table};
select count(*) from {table};
checkpoint
"""
HIDDEN: Mapping[str, int] = {"bench_tenth": 10, "bench_hidden": 1, "bench_rare": 10_000}  # table -> every which page

DISPLACED = (1, 10, 50)  # percent of the rows of bench_fragments
_AREAS = {"far": "0", "near": "seq / 1000"}


def _fragments() -> str:
    """The script of bench_fragments."""
    columns, joins = [], []
    for area, window in _AREAS.items():
        for percent in DISPLACED:
            moved = f"base where ((hashint4extended(seq, 3) & 1048575) % 100) < {percent}"
            columns.append(f"coalesce({area}_{percent}.key, seq) as {area}_{percent}")
            joins.append(
                f"left join (select old.seq, new.seq as key"
                f" from (select seq, {window} as area, row_number() over (partition by {window} order by seq) as nth from {moved}) old"
                f" join (select seq, {window} as area, row_number() over (partition by {window} order by hashint4extended(seq, 4)) as nth from {moved}) new"
                f" using (area, nth)) {area}_{percent} using (seq)"
            )
    return (
        "create table bench_fragments as\n"
        "with base as materialized (select generate_series(0, {rows} - 1) as seq)\n"
        f"select {', '.join(columns)}, md5(seq::text) as payload from base\n" + "\n".join(joins) + "\norder by seq\n"
    )


FUZZ = (32, 2048)  # rows
FUZZ_EACH = 4


def _fuzz() -> str:
    """The script of bench_fuzz."""
    columns = (
        f"(row_number() over (order by seq + {rows} * ((hashint4extended(seq, {rows}) & 1048575) / 1048576.0 - 0.5)) - 1)::int"
        f" / {FUZZ_EACH} as fuzz_{rows}"
        for rows in FUZZ
    )
    return (
        "create table bench_fuzz with (fillfactor = 20) as\n"
        f"select {', '.join(columns)}, md5(seq::text) as payload from generate_series(0, {{rows}} - 1) seq order by seq\n"
    )


GROWN = """
create table bench_grown (a integer, b integer);
create index bench_grown_a on bench_grown (a);
create index bench_grown_b on bench_grown (b);
insert into bench_grown
select i, (row_number() over (order by hashint4extended(i, 63)) - 1)::int
from generate_series(0, {rows} - 1) i order by hashint4extended(i, 62)
"""

PARITY = """
create table bench_parity (randkey integer, filler text);
select setseed(0.42);
insert into bench_parity select random() * 1000, repeat('filler', 10) from generate_series(1, {rows}) i
"""

MIXED = """
create table bench_mixed as
select pk, a, (row_number() over (order by hashint4extended(a, 43)) - 1)::int as b, repeat(md5(pk::text), 6) as payload
from (select row_number() over (order by hashint4extended(i, 42))::int as pk, i as a
      from generate_series(0, {rows} - 1) i) numbered
order by pk;
alter table bench_mixed add primary key (pk)
"""

DRIVER = """
create table bench_driver as
select (row_number() over (order by hashint4extended(i, 50)) - 1)::int as id, i * 20 as k,
       (row_number() over (order by hashint4extended(i, 51)) - 1)::int * 20 as k2,
       (row_number() over (order by hashint4extended(i, 52)) - 1)::int * 20 as k3
from generate_series(0, {rows} - 1) i order by id;
alter table bench_driver add primary key (id)
"""

# ranges of the join key of "nestloop"; the payloads of bench_points
DIVIDED = """
create table bench_divided (seq integer, rnd integer, payload text) partition by range (rnd);
do $$ begin for i in 0 .. {divisions} - 1 loop execute format('create table bench_divided_%s partition of bench_divided for values from (%s) to (%s)', i, i * ({rows} / {divisions}), (i + 1) * ({rows} / {divisions})); end loop; end $$;
insert into bench_divided
select seq, rnd, md5(seq::text)
from (select (row_number() over (order by hashint4extended(i, 42)) - 1)::int as seq, i as rnd
      from generate_series(0, {rows} - 1) i) numbered
"""

# the partition of a row does not follow from seq, and its place there does
SCATTERED = """
create table bench_scattered (seq integer, part integer, payload text) partition by range (part);
do $$ begin for i in 0 .. {divisions} - 1 loop execute format('create table bench_scattered_%s partition of bench_scattered for values from (%s) to (%s)', i, i, i + 1); end loop; end $$;
insert into bench_scattered
select i, (hashint4extended(i, 42) & ({divisions} - 1))::int, md5(i::text) from generate_series(0, {rows} - 1) i
"""

SCALE_SPACE = 1 << 40  # keys are below
SCALE_KEYS = 100_000
SCALE_PARTS = (1, 10, 100, 1_000)
_SCALE_KEY = f"hashint8extended({{}}, 42) & {SCALE_SPACE - 1}"
SCALE = f"""
drop table if exists {{table}}_keys;
create table {{table}} as select {_SCALE_KEY.format("i")} as key, i as seq from generate_series(0, {{rows}} - 1::bigint) i;
create table {{table}}_keys as
select j::integer as id, {_SCALE_KEY.format(f"(hashint8extended(j, 1) & {SCALE_SPACE - 1}) % {{rows}}")} as k
from generate_series(0, {SCALE_KEYS - 1}::bigint) j
"""


def _scale_parts(count: int) -> str:
    """The script of bench_scale_N_partitions."""
    return (
        "create table {table} (part integer, key bigint, seq bigint) partition by list (part);\n"
        f"do $$ begin for i in 0 .. {count - 1} loop execute format('create table {{table}}_%s partition of {{table}} for values in (%s)', i, i); end loop; end $$;\n"
        f"insert into {{table}} select i % {count}, {_SCALE_KEY.format('i')}, i from generate_series(0, {{rows}} - 1::bigint) i"
    )


def scale_table(data: str) -> str:
    """That of the data of a cell of the workload "scale"."""
    return f"bench_scale_{data.lower().replace('-', '_')}"


INTS = "create table {table} as select i::int as i from generate_series(1, {rows}) i"
HASH_SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 30_000_000)

HASH_KEYS = """
create table {table} as
select i::bigint as b, i::text collate "C" as t, i / 1000 as k1, i % 1000 as k2,
       1 + (h & 1073741823) % ({rows} * 10) as m1, 1 + (h & 1073741823) % ({rows} / 5) as m50,
       1 + (h & 1073741823) % 1000 as m1000, 1 + (h & 1073741823) % 10000 as m10000,
       1 + (h & 1073741823) % 100000 as m100000, 1 + (h & 1073741823) % 1000000 as m1000000,
       case when i % 10 = 0 then 0 else i end as skewed
from (select i, hashint4(i) as h from generate_series(1, {rows}) i) numbered
"""

HASH_WIDE = "create table {table} as select i, rpad(md5(i::text), 91, 'x') as w from generate_series(1, {rows}) i"

SCRIPTS: Mapping[str, str] = {
    "bench_divided": DIVIDED,
    "bench_scattered": SCATTERED,
    "bench_driver": DRIVER,
    "bench_points": POINTS,
    "bench_limit": LIMIT,
    "bench_places": PLACES,
    "bench_vectors": VECTORS,
    "bench_parts": PARTS,
    "bench_wide": WIDE,
    "bench_values": VALUES,
    "bench_values_few": VALUES,
    "bench_values_loaded": VALUES_LOADED,
    "bench_visible": VISIBLE,
    "bench_tenth": VISIBLE,
    "bench_hidden": VISIBLE,
    "bench_rare": VISIBLE,
    "bench_fragments": _fragments(),
    "bench_fuzz": _fuzz(),
    "bench_grown": GROWN,
    "bench_parity": PARITY,
    "bench_mixed": MIXED,
    "bench_hash_keys": HASH_KEYS,
    "bench_hash_wide": HASH_WIDE,
    "bench_scale_10m": SCALE,
    "bench_scale_100m": SCALE,
    "bench_scale_300m": SCALE,
} | {
    f"bench_{storage}_{size}": _documents(size, storage) for storage in ("external", "extended") for size in DOCUMENT_ROWS
} | {f"bench_scale_{count}_partitions": _scale_parts(count) for count in SCALE_PARTS} | {f"bench_ints_{size}": INTS for size in HASH_SIZES} | PAID_SCRIPTS | DOCUMENT_SCRIPTS | WRITE_SCRIPTS


def side(rows: int) -> int:
    """Squares in a row of the grid of bench_places."""
    return math.isqrt(rows)


def centre(cluster: int) -> list[float]:
    """The centre of a cluster of bench_vectors."""
    return [(cluster * 7919 + j * 104729 + cluster * j * 31) % 1009 / 1009.0 for j in range(DIMENSIONS)]


def is_done(connection: psycopg.Connection, name: str, rows: int) -> bool:
    connection.execute("create table if not exists bench_done (name text primary key, rows bigint)")
    found = connection.execute("select 1 from bench_done where name = %s and rows = %s", (name, rows))
    return found.fetchone() is not None


def note_done(
    connection: psycopg.Connection, name: str, rows: int, tables: Sequence[str] = (), afterwards: str = ""
) -> None:
    """The table, or the tables that are noted under one name, are complete."""
    connection.execute("vacuum (freeze, analyze) " + ", ".join(tables or [name]))
    _run_script(connection, afterwards)
    connection.execute("delete from bench_done where name = %s", (name,))
    connection.execute("insert into bench_done values (%s, %s)", (name, rows))
    connection.execute("checkpoint")


def _run_script(connection: psycopg.Connection, script: str) -> None:
    for statement in filter(None, script.split(";\n")):
        connection.execute(statement)


def ensure_table(server: Server, connection: psycopg.Connection, table: str, rows: int) -> None:
    """Make the table with that many rows, unless it is there."""
    if is_done(connection, table, rows):
        return
    if table == "pgbench_accounts":
        _make_pgbench(server, rows // PGBENCH_ROWS_PER_SCALE)
    else:
        connection.execute(f"drop table if exists {table}")
        connection.execute("set work_mem = '2GB'")
        # the planner cannot guess how many rows these joins of numbers have
        connection.execute("set enable_nestloop = off")
        connection.execute("set enable_mergejoin = off")
        script = SCRIPTS[table].format(
            table=table, rows=rows, cycles=CYCLES, side=side(rows), origin=ORIGIN, partitions=PARTITIONS, divisions=DIVISIONS,
            clusters=CLUSTERS, dimensions=DIMENSIONS, spread=SPREAD, spread_x=_spread("x"), spread_y=_spread("y"),
        )
        _run_script(connection, script)
        for name in ("work_mem", "enable_nestloop", "enable_mergejoin"):
            connection.execute(f"reset {name}")
    hide = HIDE.format(table=table, every=HIDDEN[table]) if table in HIDDEN else ""
    note_done(connection, table, rows, afterwards=hide)


def _make_pgbench(server: Server, scale: int) -> None:
    done = subprocess.run(
        [str(server.bindir / "pgbench"), "-i", "-q", "-s", str(scale)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=server.client_environment({}), cwd="/",
    )
    if done.returncode != 0:
        raise ServerError(f"pgbench -i failed: {(done.stdout.strip().splitlines() or [''])[-1]}")


def ensure_index(connection: psycopg.Connection, index: Index) -> None:
    """Make the index, unless it is there; the table's statistics must know expressions."""
    found = connection.execute(
        "select 1 from pg_index where indexrelid = to_regclass(%s) and indisvalid", (index.name,)
    )
    if found.fetchone() is None:
        connection.execute("set maintenance_work_mem = '1GB'")
        connection.execute(
            f"create index {index.name} on {index.table} using {index.method} ({index.expression}) {index.options}"
        )
        connection.execute("reset maintenance_work_mem")
        connection.execute(f"analyze {index.table}")
        connection.execute("checkpoint")
