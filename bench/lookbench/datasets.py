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
bench_shapes   points on a grid, each at a random place inside its square of size 1, in an
               order unrelated to their places: a box of w x h squares holds w * h rows, all on
               different pages.  p and q are the same point, for indexes of two methods, b the
               box that is this point; k / n has n rows for each value, as above.
bench_vectors  vectors of 128 dimensions around CLUSTERS centres, in an order unrelated to
               them, with payloads of 768 bytes.
bench_parts    PARTITIONS partitions; in each of them key is a permutation of
               0..rows/PARTITIONS-1.
bench_wide     rows of 1 kB whose payload, 6 kB more, is stored out of line and not
               compressed; key is a random permutation.
pgbench_*      pgbench's own, made by pgbench -i.

A finished table is noted in bench_done with the number of its rows; without that
note, or with another number, it is made anew.
"""

from __future__ import annotations

import math
import subprocess
from typing import TYPE_CHECKING, Mapping

import psycopg

from .server import Server, ServerError

if TYPE_CHECKING:  # workloads import this module
    from .workloads.base import Index

CYCLES = 1000
PARTITIONS = 1000
CLUSTERS = 1000
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

SHAPES = """
create table bench_shapes as
select k, point(x, y) as p, point(x, y) as q, box(point(x, y), point(x, y)) as b, repeat(md5(k::text), 4) as payload
from (select k, k % {side} + (hashint4extended(k, 1) & 1048575) / 1048576.0 as x,
             k / {side} + (hashint4extended(k, 2) & 1048575) / 1048576.0 as y
      from generate_series(0, {rows} - 1) k
      order by hashint4extended(k, 42)) placed
"""

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

SCRIPTS: Mapping[str, str] = {
    "bench_points": POINTS,
    "bench_limit": LIMIT,
    "bench_shapes": SHAPES,
    "bench_vectors": VECTORS,
    "bench_parts": PARTS,
    "bench_wide": WIDE,
}


def side(rows: int) -> int:
    """Squares in a row of the grid of bench_shapes."""
    return math.isqrt(rows)


def centre(cluster: int) -> list[float]:
    """The centre of a cluster of bench_vectors."""
    return [(cluster * 7919 + j * 104729 + cluster * j * 31) % 1009 / 1009.0 for j in range(DIMENSIONS)]


def _is_done(connection: psycopg.Connection, table: str, rows: int) -> bool:
    connection.execute("create table if not exists bench_done (name text primary key, rows bigint)")
    found = connection.execute("select 1 from bench_done where name = %s and rows = %s", (table, rows))
    return found.fetchone() is not None


def _note_done(connection: psycopg.Connection, table: str, rows: int) -> None:
    connection.execute("vacuum (freeze, analyze) " + table)
    connection.execute("delete from bench_done where name = %s", (table,))
    connection.execute("insert into bench_done values (%s, %s)", (table, rows))
    connection.execute("checkpoint")


def ensure_table(server: Server, connection: psycopg.Connection, table: str, rows: int) -> None:
    """Make the table with that many rows, unless it is there."""
    if _is_done(connection, table, rows):
        return
    if table == "pgbench_accounts":
        _make_pgbench(server, rows // PGBENCH_ROWS_PER_SCALE)
    else:
        connection.execute(f"drop table if exists {table}")
        connection.execute("set work_mem = '2GB'")
        script = SCRIPTS[table].format(
            rows=rows, cycles=CYCLES, side=side(rows), partitions=PARTITIONS,
            clusters=CLUSTERS, dimensions=DIMENSIONS, spread=SPREAD,
        )
        for statement in script.split(";\n"):
            connection.execute(statement)
        connection.execute("reset work_mem")
    _note_done(connection, table, rows)


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
