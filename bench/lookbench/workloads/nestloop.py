"""Nested loops with a few inner rows for each outer row.

Source: our own; the shapes are those that batched key access (MySQL), nested-loop prefetch
(SQL Server) and batched joins (YugabyteDB) are about.  The outer side is a range of bench_driver,
whose keys are a random permutation of those of bench_points; hash and merge joins are
forbidden, so that all variants have the same order of joins.

  one       one inner row for each outer row
  computed  like one, by a key that could fail: one more than that of the outer row
  three     three of them, on three pages; ten: ten
  pair      one, by an index of two columns
  only      one, by an index-only scan; all pages all-visible
  chain2    the inner row's number is the key of a second join, chain3: and of a third
  star      one row each of three tables, with filters that half of the rows pass
  semi      outer rows that have a match
  limit     ten, below a LIMIT of as many rows as the cell's size says
  sorted    like one, but outer rows in the order of the inner index
  divided   like one, of a table in partitions by ranges of the inner key

The bitmap variants are nested loops over bitmap scans.  "rivals" has other ways to the
rows of `one`, which a user may write or the planner may choose; with look-ahead and without:

  hash      a hash join
  any       key = any (array (select ...)), as the planner will
"""

from __future__ import annotations

from dataclasses import replace
from typing import Iterator, Mapping, Sequence

import psycopg

from ..datasets import ensure_index, ensure_table
from ..server import Server
from .base import CACHED, COLD, OS_CACHED, Cell, Index, Workload, executions, scan

SIZES: Mapping[str, Sequence[int]] = {
    "one": (1, 10, 100, 1_000, 10_000, 100_000),
    "computed": (100, 1_000, 10_000),
    "three": (10_000,),
    "ten": (100, 1_000, 10_000),
    "pair": (10_000,),
    "only": (1_000, 10_000),
    "chain2": (100, 1_000, 10_000),
    "chain3": (1_000, 10_000),
    "star": (10_000,),
    "semi": (10_000,),
    "limit": (1, 10, 100, 1_000),
    "sorted": (10_000,),
    "divided": (1_000, 10_000),
}
RIVALS: Mapping[str, Sequence[int]] = {"hash": (10_000, 100_000), "any": (100, 10_000, 100_000)}
QUICK_SHAPES = ("one", "ten", "chain2")
OS_CACHED_SHAPES = ("one", "ten")
QUICK_SIZE = 1_000
DRIVER_SHARE = 20  # one row for so many of bench_points

_JOINS = {
    "one": "join bench_points p on p.rnd = d.k",
    "computed": "join bench_points p on p.rnd = d.k + 1",
    "three": "join bench_points p on (p.rnd / 3) = (d.k / 3)",
    "ten": "join bench_points p on (p.rnd / 10) = (d.k / 10)",
    "pair": "join bench_points p on (p.rnd / 1000) = (d.k / 1000) and (p.rnd % 1000) = (d.k % 1000)",
    "chain2": "join bench_points o on o.rnd = d.k join bench_points p on p.rnd = o.seq",
    "chain3": "join bench_points n on n.rnd = d.k join bench_points o on o.rnd = n.seq"
              " join bench_points p on p.rnd = o.seq",
    "star": "join bench_points n on n.rnd = d.k and n.payload < '8' join bench_points o on o.rnd = d.k2"
            " and o.payload < '8' join bench_points p on p.rnd = d.k3",
}
_TABLES = {"only": "bench_visible", "divided": "bench_divided"}
_WHOLE = ("bench_scattered",)  # as many rows as bench_points; the others have a quarter of them
_INDEXES = {"three": "(rnd / 3)", "ten": "(rnd / 10)", "pair": "(rnd / 1000), (rnd % 1000)"}


class NestLoop(Workload):
    name = "nestloop"
    source = "our own: nested loops"
    table = "bench_points"
    bytes_per_row = 600

    @property
    def table_rows(self) -> int:
        return self.scope.rows

    def cells(self) -> Iterator[Cell]:
        quick = self.scope.quick
        for shape in QUICK_SHAPES if quick else SIZES:
            for size in (QUICK_SIZE,) if quick else SIZES[shape]:
                for state in (COLD, OS_CACHED, CACHED) if shape in OS_CACHED_SHAPES and size >= 10_000 else (COLD, CACHED):
                    yield Cell(self.name, "random", shape, size, state)

    def tables(self, cell: Cell) -> Sequence[str]:
        return ("bench_driver", _TABLES.get(cell.shape, self.table))

    def index(self, cell: Cell) -> Index:
        if cell.shape == "only":
            return Index("bench_visible", "bench_visible_rnd", "rnd", options="include (seq)")
        if cell.shape == "divided":
            return Index("bench_divided", "bench_divided_rnd", "rnd")
        shape = "ten" if cell.shape in ("ten", "limit") else cell.shape
        if shape in _INDEXES:
            return Index(self.table, f"bench_points_nl_{shape}", _INDEXES[shape])
        return Index(self.table, "bench_points_rnd", "rnd")

    def warmed(self, cell: Cell) -> Sequence[str]:
        return (*self.tables(cell), self.index_name(cell), "bench_driver_pkey")

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        ensure_table(server, connection, self.table, self.table_rows)
        ensure_table(server, connection, "bench_driver", self.table_rows // DRIVER_SHARE)
        for table in {table for cell in cells for table in self.tables(cell)} - {self.table, "bench_driver"}:
            rows = self.table_rows if table in _WHOLE else self.table_rows // 4 // 1000 * 1000
            ensure_table(server, connection, table, rows)
        for index in {self.index(cell) for cell in cells}:
            ensure_index(connection, index)

    def setup(self, cell: Cell) -> Sequence[str]:
        settings = ["enable_hashjoin", "enable_mergejoin", "enable_material", "enable_memoize"]
        return [*(f"set {name} = off" for name in settings), "set enable_indexonlyscan = on",
                "set join_collapse_limit = 1", "set from_collapse_limit = 1"]

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        draw = self.random(cell, rep)
        rows = self.table_rows // DRIVER_SHARE
        return [self._statement(cell, draw.randrange(rows - cell.size + 1)) for _ in range(executions(cell.size))]

    def _statement(self, cell: Cell, first: int) -> str:
        order = " order by k" if cell.shape == "sorted" else ""
        driver = f"(select * from bench_driver where id between {first} and {first + cell.size - 1}{order} offset 0) d"
        columns = "p.rnd as key, p.payload"
        shape = "one" if cell.shape == "sorted" else cell.shape
        if shape == "only":
            columns, join = "p.rnd as key, p.seq::text as payload", "join bench_visible p on p.rnd = d.k / 4"
        elif shape == "divided":
            join = "join bench_divided p on p.rnd = d.k / 4"
        elif shape == "semi":
            columns, join = "d.k as key, '' as payload", "where exists (select from bench_points p where p.rnd = d.k and p.payload < 'c')"
        elif shape == "limit":
            columns, join = "p.rnd as key, p.payload", _JOINS["ten"] + f" limit {cell.size}"
        else:
            join = _JOINS[shape]
        return f"select count(*), sum(key), sum(hashtext(payload)) from (select {columns} from {driver} {join}) scan"

    def has_bitmap(self, cell: Cell) -> bool:
        return cell.shape != "only"


class Rivals(NestLoop):
    name = "rivals"
    free_plans = True

    def cells(self) -> Iterator[Cell]:
        for shape in RIVALS:
            for size in (QUICK_SIZE,) if self.scope.quick else RIVALS[shape]:
                for state in (COLD, CACHED):
                    yield Cell(self.name, "random", shape, size, state)

    def setup(self, cell: Cell) -> Sequence[str]:
        forbidden = ("enable_nestloop", "enable_mergejoin") if cell.shape == "hash" else ()
        return [f"set {name} = off" for name in forbidden]

    def _statement(self, cell: Cell, first: int) -> str:
        if cell.shape == "hash":
            return super()._statement(replace(cell, shape="one"), first)
        keys = f"select k from bench_driver where id between {first} and {first + cell.size - 1}"
        return scan("rnd as key, payload", f"from {self.table} where rnd = any (array ({keys}))")
