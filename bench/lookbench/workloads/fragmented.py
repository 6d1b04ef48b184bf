"""Ranges of nearly clustered rows, some of which have been displaced.

Source: Peter Geoghegan in "index prefetching" (pgsql-hackers, June 2023): a little
fragmentation of the heap makes a plain index scan visit the same blocks again and again,
where a bitmap scan visits each of them once.  And Tomas Vondra's tests of the same patch
(index-prefetch-validation, December 2025), whose rows are all moved a little.

  far      displaced rows lie anywhere in the table
  near     they lie some ten pages away at most
  parity   Geoghegan's bitmap_parity_test: a half of 250 rows on four pages, cached
  range    Vondra's: fuzz-N rows lie N / 2 rows away at most, twenty of them on a page, and
           every value occurs four times

Otherwise the data say how many percent are displaced.  All kinds of bitmap scans take part:
look-ahead should be as fast as the best of them.  Besides the times the buffer hits of table
and index are recorded in categories.csv (of all executions together, see samples.csv).
"""

from __future__ import annotations

import random
from typing import Iterator, Mapping, Sequence

import psycopg

from ..datasets import DISPLACED, FUZZ, FUZZ_EACH, ensure_index, ensure_table
from ..server import Server
from .base import CACHED, COLD, Cell, Index, Workload, executions, scan

SIZES = (10, 100, 1_000, 10_000, 100_000)
CACHED_SIZES = (10_000, 100_000)
FUZZ_SIZES = SIZES[1:]
QUICK_SIZES = (10_000,)
SHAPES = ("far", "near")
QUICK_DISPLACED = (10,)
PARITY = "parity"
PARITY_TABLE = "bench_parity"
PARITY_ROWS = 250
FUZZ_TABLE = "bench_fuzz"
FUZZ_SHAPE = "range"
SHARE = 4  # of the rows of bench_points
FUZZ_SHARE = 10


class Fragmented(Workload):
    name = "fragmented"
    source = "Geoghegan, index prefetching, 2023; Vondra, 2025"
    table = "bench_fragments"
    bytes_per_row = 400  # with those of bench_fuzz
    all_bitmaps = True

    @property
    def table_rows(self) -> int:
        return self.scope.rows // SHARE // 1000 * 1000

    @property
    def fuzz_rows(self) -> int:
        return self.scope.rows // FUZZ_SHARE // 1000 * 1000

    def cells(self) -> Iterator[Cell]:
        quick = self.scope.quick
        for percent in QUICK_DISPLACED if quick else DISPLACED:
            for shape in SHAPES:
                for size in self._sizes(QUICK_SIZES if quick else SIZES, self.table_rows):
                    yield Cell(self.name, f"{percent}%", shape, size, COLD)
                    if size in CACHED_SIZES:
                        yield Cell(self.name, f"{percent}%", shape, size, CACHED)
        for rows in () if quick else FUZZ:
            for size in self._sizes(FUZZ_SIZES, self.fuzz_rows):
                yield Cell(self.name, f"fuzz-{rows}", FUZZ_SHAPE, size, COLD)
                if size == CACHED_SIZES[-1]:
                    yield Cell(self.name, f"fuzz-{rows}", FUZZ_SHAPE, size, CACHED)
        yield Cell(self.name, "random", PARITY, PARITY_ROWS // 2, CACHED)

    @staticmethod
    def _sizes(sizes: Sequence[int], rows: int) -> Sequence[int]:
        """Those that a table of so many rows is large enough for."""
        return [size for size in sizes if size * 2 <= rows]

    def tables(self, cell: Cell) -> Sequence[str]:
        return (self.index(cell).table,)

    def index(self, cell: Cell) -> Index:
        if cell.shape == PARITY:
            return Index(PARITY_TABLE, "bench_parity_randkey", "randkey")
        if cell.shape == FUZZ_SHAPE:
            return Index(FUZZ_TABLE, f"{FUZZ_TABLE}_{self._column(cell)}", self._column(cell))
        return Index(self.table, f"{self.table}_{self._column(cell)}", self._column(cell))

    @staticmethod
    def _column(cell: Cell) -> str:
        if cell.shape == FUZZ_SHAPE:
            return cell.data.replace("-", "_")
        return f"{cell.shape}_{cell.data.rstrip('%')}"

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        rows = {self.table: self.table_rows, PARITY_TABLE: PARITY_ROWS, FUZZ_TABLE: self.fuzz_rows}
        for table in sorted({self.index(cell).table for cell in cells}):
            ensure_table(server, connection, table, rows[table])
        for index in {self.index(cell) for cell in cells}:
            ensure_index(connection, index)

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        if cell.shape == PARITY:
            return [scan("randkey as key, filler as payload", f"from {PARITY_TABLE} where randkey < 500")]
        draw = self.random(cell, rep)
        return [self._statement(cell, draw) for _ in range(executions(cell.size))]

    def _statement(self, cell: Cell, draw: random.Random) -> str:
        fuzz = cell.shape == FUZZ_SHAPE
        rows, each = (self.fuzz_rows, FUZZ_EACH) if fuzz else (self.table_rows, 1)
        first = draw.randrange((rows - cell.size) // each)
        column = self._column(cell)
        where = f"{column} between {first} and {first + cell.size // each - 1}"
        return scan(f"{column} as key, payload", f"from {self.index(cell).table} where {where}")

    def counters(self, connection: psycopg.Connection, cell: Cell) -> Mapping[str, int]:
        row = connection.execute(
            "select heap_blks_hit, idx_blks_hit from pg_statio_user_tables where relid = %s::regclass", self.tables(cell)
        ).fetchone()
        return {"table blocks hit": row[0], "index blocks hit": row[1]} if row else {}
