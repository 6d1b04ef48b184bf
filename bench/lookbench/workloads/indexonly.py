"""Index-only scans, with and without visibility bits.

Source: Tomas Vondra, "index prefetching" (pgsql-hackers), the tests "indexonlyscan" (no page
all-visible: he deleted the visibility map) and "indexonlyscan-clean" of 2023, on random,
sequential and cyclic data.  There is one table for each state of the map; pages lost their
bits by an update of one row of each.

  visible   all pages are all-visible: the table is not read
  tenth     every tenth page is not
  hidden    no page is all-visible: as many visits as by an index scan

Cyclic and correlated keys are made of the row's number, as in bench_points (datasets.py), by an
index on an expression, which has that number as included column.  They are left out where all
pages are all-visible: that is the same scan whatever the key.

A bitmap scan always reads the table, so it is left out where nothing else does.
"""

from __future__ import annotations

from typing import Iterator, Mapping, Sequence

import psycopg

from ..datasets import CYCLES, ensure_index, ensure_table
from ..server import Server
from .base import CACHED, COLD, Cell, Index, Workload, executions, scan

SIZES = (100, 1_000, 10_000, 100_000)
SEQUENTIAL_SIZES = (10_000,)
QUICK_SIZES = (1_000,)
SHAPES = ("visible", "tenth", "hidden")
COLUMNS = {"random": ("rnd", "seq"), "sequential": ("seq", "rnd")}  # key and included column
EXPRESSION_SHAPES = SHAPES[1:]
EXPRESSION_SIZES = SIZES[1:]
SHARE = 4  # of the rows of bench_points


class IndexOnly(Workload):
    name = "indexonly"
    source = "Vondra, index-only scans, 2023"
    table = "bench_visible"
    index_only = True
    all_bitmaps = True
    bytes_per_row = 480  # of the three tables

    @property
    def table_rows(self) -> int:
        return self.scope.rows // SHARE // 1000 * 1000

    def cells(self) -> Iterator[Cell]:
        quick = self.scope.quick
        sizes = {"random": QUICK_SIZES} if quick else {"random": SIZES, "sequential": SEQUENTIAL_SIZES}
        for data in sizes:
            for shape in SHAPES:
                for size in sizes[data]:
                    for state in (COLD, CACHED):
                        yield Cell(self.name, data, shape, size, state)
        for data in () if quick else self._expressions():
            for shape in EXPRESSION_SHAPES:
                for size in EXPRESSION_SIZES:
                    yield Cell(self.name, data, shape, size, COLD)
                    if size == EXPRESSION_SIZES[-1]:
                        yield Cell(self.name, data, shape, size, CACHED)

    def tables(self, cell: Cell) -> Sequence[str]:
        return (f"bench_{cell.shape}",)

    def _expressions(self) -> Mapping[str, str]:
        """Keys that are no columns."""
        return {
            "cyclic": f"((seq % {CYCLES}) * {self.table_rows // CYCLES} + seq / {CYCLES})",
            "correlated": "((seq / 1000) * 1000 + ((seq % 1000) * 617 + 7) % 1000)",
        }

    def _key(self, cell: Cell) -> tuple[str, str]:
        """Key and included column."""
        return COLUMNS[cell.data] if cell.data in COLUMNS else (self._expressions()[cell.data], "seq")

    def index(self, cell: Cell) -> Index:
        key, other = self._key(cell)
        name = key if cell.data in COLUMNS else cell.data
        return Index(f"bench_{cell.shape}", f"bench_{cell.shape}_{name}", key, options=f"include ({other})")

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        for shape in SHAPES:
            ensure_table(server, connection, f"bench_{shape}", self.table_rows)
        for index in {self.index(cell) for cell in cells}:
            ensure_index(connection, index)

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        draw = self.random(cell, rep)
        return [self._statement(cell, draw.randrange(self.table_rows - cell.size + 1)) for _ in range(executions(cell.size))]

    def _statement(self, cell: Cell, first: int) -> str:
        key, other = self._key(cell)
        where = f"{key} between {first} and {first + cell.size - 1} order by {key}"
        return scan(f"{key} as key, {other}::text as payload", f"from bench_{cell.shape} where {where}")

    def has_bitmap(self, cell: Cell) -> bool:
        return cell.shape != "visible"
