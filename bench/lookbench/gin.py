"""Inserts into GIN indexes that are not in memory, and flushes of their pending lists.

  words     tsvector: twelve words of 500,000, the n-th one as frequent as 1/n
  paths     jsonb_path_ops: documents with four keys, among them such words
  arrays    arrays of eight integers of two million

  row       INSERT of one row, fastupdate = off
  rows      INSERT ... SELECT of 500 rows, likewise
  flush     INSERT of the row that makes the pending list longer than its limit, 4 MB
  clean     gin_clean_pending_list() of such a list

  cold      nothing of the index in memory, but for the list
  cached    all of it in shared_buffers

Variants take turns within each repetition, the first one changes: off is pg_lookahead.enable = off, on has the
defaults.  Each sample inserts rows that no other one has.  What is cached says how long the processor takes, and so
which share of a cold sample is waits.
"""

from __future__ import annotations

import argparse
import fnmatch
import statistics
import time
from contextlib import closing
from pathlib import Path
from typing import Mapping, Sequence

import psycopg
from rich.console import Console
from rich.table import Table

from .command import add_server_arguments, write_results
from .server import BASE_SETTINGS, Server
from .variants import ENABLE, LIBRARY

VARIANTS = ("off", "on")
STATES = ("cold", "cached")
SHAPES = ("row", "rows", "flush", "clean")
MANY = 500
LIMIT = 4096  # kilobytes of a pending list

WORD = "'w' || floor(exp(random() * ln(500000)))::int"
COLUMNS: Mapping[str, tuple[str, str]] = {  # value by the row's number, operator class
    "words": (f"array_to_tsvector(array(select {WORD} from generate_series(1, 12) where i > 0))", "tsvector_ops"),
    "paths": (
        f"jsonb_build_object('k', (random() * 2000000)::int, 's', md5((random() * 1000000)::int::text), 't', {WORD}, 'p', jsonb_build_array({WORD}, i))",
        "jsonb_path_ops",
    ),
    "arrays": ("array(select (random() * 2000000)::int from generate_series(1, 8) where i > 0)", "array_ops"),
}
BYTES = {"words": 480, "paths": 160, "arrays": 240}  # that a row takes in a pending list, at most


def name_of(kind: str, shape: str) -> str:
    return f"{kind}_{'listed' if shape in ('flush', 'clean') else 'direct'}"


def make(server: Server, kinds: Sequence[str], rows: int) -> None:
    server.create(BASE_SETTINGS)
    server.start({"shared_preload_libraries": "", "shared_buffers": "2GB"})
    with closing(server.connect()) as connection:
        connection.execute("create extension pg_prewarm")
        connection.execute("set maintenance_work_mem = '4GB'")
        for kind in kinds:
            value, operators = COLUMNS[kind]
            for table, options in ((f"{kind}_direct", "fastupdate = off"), (f"{kind}_listed", "gin_pending_list_limit = 2000000")):
                source = f"select i as id, {value} as v from generate_series(1, {rows}) i" if table.endswith("direct") else f"select * from {kind}_direct"
                connection.execute(f"create table {table} as {source}")
                connection.execute(f"create index {table}_v on {table} using gin (v {operators}) with ({options})")
        connection.execute("vacuum analyze")
        connection.execute("checkpoint")
    server.stop()


def fill_list(connection: psycopg.Connection, kind: str) -> None:
    """Append rows to the list until the next one makes it longer than LIMIT."""
    table = f"{kind}_listed"
    value, _ = COLUMNS[kind]
    connection.execute(f"alter index {table}_v set (gin_pending_list_limit = 2000000)")
    connection.execute("select gin_clean_pending_list(%s::regclass)", (f"{table}_v",))
    connection.execute(f"insert into {table} select -i, {value} from generate_series(1, {LIMIT * 1024 // BYTES[kind]}) i")
    pages = f"select n_pending_pages from gin_metapage_info(get_raw_page('{table}_v', 0))"
    while connection.execute(pages).fetchone()[0] * 8160 < LIMIT * 1024:  # type: ignore[index]
        connection.execute(f"insert into {table} select -i, {value} from generate_series(1, 100) i")
    connection.execute(f"alter index {table}_v set (gin_pending_list_limit = {LIMIT})")


def sample(server: Server, kind: str, shape: str, state: str, variant: str) -> float:
    """Seconds of the statement."""
    table = name_of(kind, shape)
    settings = {"shared_preload_libraries": LIBRARY, "shared_buffers": "256MB" if state == "cold" else "6GB"}
    value, _ = COLUMNS[kind]
    server.stop()
    server.start(settings)
    with closing(server.connect({ENABLE: "off"})) as connection:
        connection.execute("create extension if not exists pageinspect")
        connection.execute("drop table if exists new_rows")
        connection.execute(f"create table new_rows as select -i as id, {value} as v from generate_series(1, {MANY if shape == 'rows' else 1}) i")
        if shape in ("flush", "clean"):
            fill_list(connection, kind)
        connection.execute("checkpoint")
    if state == "cold":
        server.restart_cold(settings)
    with closing(server.connect({ENABLE: variant})) as connection:
        connection.execute("create extension if not exists pg_lookahead")
        if state == "cached":
            connection.execute("select pg_prewarm(%s::regclass), pg_prewarm(%s::regclass)", (table, f"{table}_v"))
        connection.execute("select count(*) from new_rows, pg_class, pg_index")
        if shape in ("flush", "clean"):  # the list itself has just been written, on a server that is used
            last = f"pg_relation_size('{table}_v') / 8192 - 1"
            connection.execute(f"select count(*) from (select get_raw_page('{table}_v', b::int) from generate_series({last} - 700, {last}) b) pages")
        statement = f"select gin_clean_pending_list('{table}_v')" if shape == "clean" else f"insert into {table} select * from new_rows"
        before = time.perf_counter()
        connection.execute(statement)
        return time.perf_counter() - before


def summarize(samples: Sequence[tuple[str, str, str, str, int, float]]) -> None:
    table = Table(title="milliseconds, medians")
    for heading in ("index", "statement", "cached, off", "cached, on", "off / on", "cold, off", "cold, on", "off / on", "share of waits"):
        table.add_column(heading, justify="left" if heading in ("index", "statement") else "right")
    for kind, shape in dict.fromkeys((s[0], s[1]) for s in samples):
        taken = {
            (state, variant): statistics.median([s[5] for s in samples if s[:4] == (kind, shape, state, variant)] or [float("nan")])
            for state in STATES for variant in VARIANTS
        }
        cells = []
        for state in reversed(STATES):
            off, on = taken[state, "off"], taken[state, "on"]
            cells += [f"{off * 1000:.1f}", f"{on * 1000:.1f}", f"{off / on:.2f}"]
        table.add_row(kind, shape, *cells, f"{1 - taken['cached', 'off'] / taken['cold', 'off']:.2f}")
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench/gin", description="Measure inserts into GIN indexes.")
    add_server_arguments(parser)
    parser.add_argument("--rows", type=int, default=5_000_000, help="of each table (default 5,000,000)")
    parser.add_argument("--reps", type=int, default=3, help="repetitions (default 3)")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[], help="index/statement, such as 'words/*'; repeatable")
    parser.add_argument("--results", type=Path, help="directory (default: nothing is written)")
    options = parser.parse_args()
    cells = [(k, s) for k in COLUMNS for s in SHAPES if not options.only or any(fnmatch.fnmatch(f"{k}/{s}", p) for p in options.only)]
    server = Server(options.bindir, options.data, options.sockets, options.user)
    samples: list[tuple[str, str, str, str, int, float]] = []
    try:
        if not server.exists():
            make(server, list(dict.fromkeys(k for k, _ in cells)), options.rows)
        for rep in range(options.reps):
            for kind, shape in cells:
                for state in STATES:
                    for variant in VARIANTS[:: 1 if rep % 2 == 0 else -1]:
                        samples.append((kind, shape, state, variant, rep, sample(server, kind, shape, state, variant)))
    finally:
        server.stop()
    summarize(samples)
    if options.results:
        write_results(
            options.results, "gin.csv", ["index", "statement", "state", "variant", "rep", "seconds"],
            ((*s[:5], f"{s[5]:.6f}") for s in samples), server, rows=options.rows,
        )


if __name__ == "__main__":
    main()
