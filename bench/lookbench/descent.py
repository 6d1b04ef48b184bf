"""How long a search of a btree index takes: the server's own, and ours.

Source of our techniques and of the shapes: van de Meent, "Iterating on IndexTuple attributes and
nbtree page-level dynamic prefix truncation", 2021.  All search the same index for the same
keys (the sums of the places that they find are compared), in one process, in turns of 100.

Columns of the result: nanoseconds for one search, root to leaf, everything in shared buffers.

  core  _bt_search and a binary search of the leaf by _bt_compare
  ours  src/btree/descent.c
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import time
from contextlib import closing
from pathlib import Path
from typing import Mapping, Sequence

import psycopg
from rich.console import Console
from rich.progress import track
from rich.table import Table

from .machine import ROOT, describe
from .server import Server

VARIANTS = ("core", "ours")
SEARCHES = 20_000

# Index columns of the table below: short and long common prefixes, one to four columns.
SHAPES: Mapping[str, str] = {
    "int": "i",
    "bigint": "i8",
    "uuid": "u",
    "timestamp": "ts",
    "text C": 'town collate "C"',
    "text ICU": 'town collate "und-x-icu"',
    "text C, long prefix": 'long collate "C"',
    "2 ints": "few, i",
    "3 ints": "few, few2, i",
    "4 ints": "few, few2, few3, i",
    "3 texts C": 'county collate "C", city collate "C", town collate "C"',
    "3 texts ICU": 'county collate "und-x-icu", city collate "und-x-icu", town collate "und-x-icu"',
    "4 mixed": 'county collate "C", few, ts desc, u',
    "numeric": "n",
}
SORTED = " (sorted keys)"  # searched for in the order of the index
ALSO_SORTED = ("int", "3 texts C", "3 texts ICU")
TABLE = """
create unlogged table places as
select i, i::bigint * 1000003 as i8, md5(i::text)::uuid as u, timestamp '2000-01-01' + i * interval '1 min' as ts,
    'COUNTY OF ' || (h % 110) as county, 'CITY ' || (h % 1100) as city, 'TOWN ' || (h % 22000) as town,
    repeat('a long common prefix ', 4) || i as long, h % 10 as few, h % 100 as few2, h % 1000 as few3,
    (i / 7.0)::numeric(12, 3) as n
from (select i, abs(hashint4(i)) as h from generate_series(1, {rows}) i) g
"""
FUNCTION = """
create function la_test_time(index regclass, ncolumns int, searches int, seed int)
    returns float8[] as '{library}' language c strict
"""


def _searches(
    connection: psycopg.Connection, shape: str, ncolumns: int, seeds: Sequence[int]
) -> list[tuple[str, str, int, float]]:
    out = []
    for rep, seed in enumerate(seeds):
        row = connection.execute(
            "select la_test_time('shape', %s, %s, %s)", (ncolumns, SEARCHES, seed)
        ).fetchone()
        assert row is not None
        if len(set(row[0][1::2])) != 1:
            raise SystemExit(f"{shape}: the searches did not find the same places")
        out += [(shape, name, rep, ns) for name, ns in zip(VARIANTS, row[0][::2])]
    return out


def _samples(connection: psycopg.Connection, reps: int) -> list[tuple[str, str, int, float]]:
    out: list[tuple[str, str, int, float]] = []
    for shape, columns in track(SHAPES.items(), "indexes"):
        connection.execute(f"create index shape on places ({columns})")
        connection.execute("select pg_prewarm('shape')")
        out += _searches(connection, shape, columns.count(",") + 1, range(reps))
        if shape in ALSO_SORTED:
            out += _searches(connection, shape + SORTED, columns.count(",") + 1, range(-1, -1 - reps, -1))
        connection.execute("drop index shape")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description="Time searches of btree indexes.")
    parser.add_argument("--major", type=int, default=18, help="server: 15, 17 or 18 (default 18)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the table (default 1 million)")
    parser.add_argument("--reps", type=int, default=7, help="repetitions (default 7)")
    parser.add_argument("--results", type=Path, help="directory (default bench/results/<date>-<major>-descent)")
    for name in ("library", "bindir", "data", "sockets"):
        parser.add_argument(f"--{name}", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--user", required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()

    results = args.results or ROOT / "bench" / "results" / f"{time.strftime('%Y-%m-%d')}-{args.major}-descent"
    results.mkdir(parents=True, exist_ok=True)
    server = Server(args.bindir, args.data, args.sockets, args.user)
    server.create()
    server.start({"shared_buffers": "2GB", "max_wal_size": "4GB"})
    try:
        with closing(server.connect({})) as connection:
            connection.execute("create extension if not exists pg_prewarm")
            connection.execute(TABLE.format(rows=args.rows))
            connection.execute("vacuum analyze places")
            connection.execute(FUNCTION.format(library=args.library))
            samples = _samples(connection, args.reps)
    finally:
        server.stop()

    with (results / "searches.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["shape", "variant", "rep", "nanoseconds"])
        writer.writerows((s, v, r, f"{ns:.1f}") for s, v, r, ns in samples)
    (results / "machine.json").write_text(json.dumps({"version": server.version, "rows": args.rows} | describe(args.data), indent=1) + "\n")

    table = Table(title="nanoseconds per search, medians; core / ours as a ratio")
    for heading in ("index", *VARIANTS, "core / ours"):
        table.add_column(heading, justify="left" if heading == "index" else "right")
    for shape in dict.fromkeys(sample[0] for sample in samples):
        median = {v: statistics.median(ns for s, w, _, ns in samples if s == shape and w == v) for v in VARIANTS}
        table.add_row(shape, *(f"{median[v]:,.0f}" for v in VARIANTS), f"{median['core'] / median['ours']:.2f}")
    Console(width=140).print(table)
    print(f"results: {results}")


if __name__ == "__main__":
    main()
