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
pgbench_*      pgbench's own, made by pgbench -i.

A finished table is noted in bench_done with the number of its rows; without that
note, or with another number, it is made anew.
"""

from __future__ import annotations

import subprocess
from typing import Mapping

import psycopg

from .server import Server, ServerError

CYCLES = 1000
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

SCRIPTS: Mapping[str, str] = {"bench_points": POINTS, "bench_limit": LIMIT}


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
        for statement in SCRIPTS[table].format(rows=rows, cycles=CYCLES).split(";\n"):
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


def ensure_index(connection: psycopg.Connection, table: str, name: str, expression: str) -> None:
    """Make the index, unless it is there; the table's statistics must know expressions."""
    found = connection.execute(
        "select 1 from pg_index where indexrelid = to_regclass(%s) and indisvalid", (name,)
    )
    if found.fetchone() is None:
        connection.execute(f"create index {name} on {table} ({expression})")
        connection.execute(f"analyze {table}")
        connection.execute("checkpoint")
