"""What reviewers of core's index prefetching found it to be slower at, and its scans backward.

Source: the thread "index prefetching" (pgsql-hackers, 2023 to 2026).  Each shape is one that a
look-ahead which starts too early, or too often, makes slower.  Knizhnik's LIMIT has a workload of
its own.

  backward   a range in descending order
  merge      a merge anti join that ends when its outer side has ended
  anti       the inner side of an anti join, which ends at its first match, for each outer row

And by index-only scans ("reviewed-only"):

  semi       the inner side of a semi join, below LIMIT, for each outer row
  rare       ranges of a table of which one page in ten thousand is not all-visible
"""

from __future__ import annotations

from typing import Iterator, Sequence

import psycopg

from ..datasets import ensure_index, ensure_table
from ..server import Server
from .base import CACHED, COLD, Cell, Index, Workload, executions, scan

SIZES = (10, 100, 1_000)
RARE_SIZES = (100, 1_000, 10_000)
SHARE = 4  # tables for index-only scans have so many rows less than bench_points
DRIVER_SHARE = 20
MATCHES = 100  # of an outer row of "semi"

_RARE = "bench_rare"
_VISIBLE = "bench_visible"


class Reviewed(Workload):
    name = "reviewed"
    source = "reviews of index prefetching, 2023 to 2026"
    table = "bench_points"
    bytes_per_row = 600
    shapes: Sequence[str] = ("backward", "merge", "anti")

    @property
    def table_rows(self) -> int:
        return self.scope.rows

    def cells(self) -> Iterator[Cell]:
        for shape in self.shapes:
            for size in SIZES[-1:] if self.scope.quick else RARE_SIZES if shape == "rare" else SIZES:
                for state in (COLD,) if self.scope.quick else (COLD, CACHED):
                    yield Cell(self.name, "random", shape, size, state)

    def tables(self, cell: Cell) -> Sequence[str]:
        by_shape = {"rare": (_RARE,), "semi": ("bench_driver", _VISIBLE), "anti": ("bench_driver", self.table)}
        return by_shape.get(cell.shape, (self.table,))

    def index(self, cell: Cell) -> Index:
        if cell.shape in ("rare", "semi"):
            table = _RARE if cell.shape == "rare" else _VISIBLE
            return Index(table, f"{table}_rnd", "rnd", options="include (seq)")
        if cell.shape == "anti":
            return Index(self.table, "bench_points_nl_ten", "(rnd / 10)")
        return Index(self.table, "bench_points_rnd", "rnd")

    def warmed(self, cell: Cell) -> Sequence[str]:
        outer = ("bench_driver_pkey",) if cell.shape in ("anti", "semi") else ()
        return (*self.tables(cell), self.index_name(cell), *outer)

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        small = self.table_rows // SHARE // 1000 * 1000
        rows = {self.table: self.table_rows, "bench_driver": self.table_rows // DRIVER_SHARE}
        for table in sorted({table for cell in cells for table in self.tables(cell)}):
            ensure_table(server, connection, table, rows.get(table, small))
        for index in {self.index(cell) for cell in cells}:
            ensure_index(connection, index)

    def setup(self, cell: Cell) -> Sequence[str]:
        forbidden = {"merge": ("enable_hashjoin", "enable_nestloop"), "anti": ("enable_hashjoin", "enable_mergejoin"),
                     "semi": ("enable_hashjoin", "enable_mergejoin")}.get(cell.shape, ())
        settings = (*forbidden, "enable_material", "enable_memoize")
        return [f"set {name} = off" for name in settings]

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        draw = self.random(cell, rep)
        if cell.shape in ("anti", "semi"):
            space = self.table_rows // DRIVER_SHARE
        else:
            space = self.table_rows // (SHARE if cell.shape == "rare" else 1)
        return [self._statement(cell, draw.randrange(space - 2 * cell.size)) for _ in range(executions(cell.size))]

    def _statement(self, cell: Cell, first: int) -> str:
        last = first + cell.size - 1
        if cell.shape == "backward":
            return scan("rnd as key, payload", f"from {self.table} where rnd between {first} and {last} order by rnd desc")
        if cell.shape == "rare":
            return scan("rnd as key, seq::text as payload", f"from {_RARE} where rnd between {first} and {last} order by rnd")
        if cell.shape == "merge":
            outer = f"(select k from generate_series({first}, {last}) k order by k offset 0) d"
            inner = f"(select rnd from {self.table} where rnd >= {first} and payload < '8' order by rnd offset 0) p"
            return scan("d.k as key, '' as payload", f"from {outer} where not exists (select from {inner} where p.rnd = d.k)")
        outer = f"(select * from bench_driver where id between {first} and {last} offset 0) d"
        if cell.shape == "anti":
            inner = f"select from {self.table} p where (p.rnd / 10) = (d.k / 10) and p.payload < '8'"
            return scan("d.k as key, '' as payload", f"from {outer} where not exists ({inner})")
        inner = f"select from {_VISIBLE} p where p.rnd >= d.k / {SHARE} and p.rnd < d.k / {SHARE} + {MATCHES} limit 1 offset 0"
        return scan("d.k as key, '' as payload", f"from {outer} where exists ({inner})")

    def has_bitmap(self, cell: Cell) -> bool:
        return False


class ReviewedOnly(Reviewed):
    name = "reviewed-only"
    index_only = True
    shapes = ("semi", "rare")
