"""Ranges of nearly clustered rows, some of which have been displaced.

Source: Peter Geoghegan in "index prefetching" (pgsql-hackers, June 2023): a little
fragmentation of the heap makes a plain index scan visit the same blocks again and again,
where a bitmap scan visits each of them once.

  far      displaced rows lie anywhere in the table
  near     they lie some ten pages away at most
  parity   his bitmap_parity_test: a half of 250 rows on four pages, cached

The data say how many percent are displaced.  Besides the times the buffer hits of table
and index are recorded in categories.csv (of all executions together, see samples.csv).
"""

from __future__ import annotations

from typing import Iterator, Mapping, Sequence

import psycopg

from ..datasets import DISPLACED, ensure_index, ensure_table
from ..server import Server
from .base import CACHED, COLD, Cell, Index, Workload, scan

SIZE = 10_000
SHAPES = ("far", "near")
QUICK_DISPLACED = (10,)
PARITY = "parity"
PARITY_TABLE = "bench_parity"
PARITY_ROWS = 250
SHARE = 4  # of the rows of bench_points


class Fragmented(Workload):
    name = "fragmented"
    source = "Geoghegan, index prefetching, 2023"
    table = "bench_fragments"
    bytes_per_row = 230

    @property
    def table_rows(self) -> int:
        return self.scope.rows // SHARE // 1000 * 1000

    def cells(self) -> Iterator[Cell]:
        for percent in QUICK_DISPLACED if self.scope.quick else DISPLACED:
            for shape in SHAPES:
                for state in (COLD, CACHED):
                    yield Cell(self.name, f"{percent}%", shape, SIZE, state)
        yield Cell(self.name, "random", PARITY, PARITY_ROWS // 2, CACHED)

    def tables(self, cell: Cell) -> Sequence[str]:
        return (self.index(cell).table,)

    def index(self, cell: Cell) -> Index:
        if cell.shape == PARITY:
            return Index(PARITY_TABLE, "bench_parity_randkey", "randkey")
        return Index(self.table, f"{self.table}_{self._column(cell)}", self._column(cell))

    @staticmethod
    def _column(cell: Cell) -> str:
        return f"{cell.shape}_{cell.data.rstrip('%')}"

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        ensure_table(server, connection, self.table, self.table_rows)
        ensure_table(server, connection, PARITY_TABLE, PARITY_ROWS)
        for index in {self.index(cell) for cell in cells}:
            ensure_index(connection, index)

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        if cell.shape == PARITY:
            return [scan("randkey as key, filler as payload", f"from {PARITY_TABLE} where randkey < 500")]
        first = self.random(cell, rep).randrange(self.table_rows - cell.size)
        column = self._column(cell)
        where = f"{column} between {first} and {first + cell.size - 1}"
        return [scan(f"{column} as key, payload", f"from {self.table} where {where}")]

    def counters(self, connection: psycopg.Connection, cell: Cell) -> Mapping[str, int]:
        row = connection.execute(
            "select heap_blks_hit, idx_blks_hit from pg_statio_user_tables where relid = %s::regclass", self.tables(cell)
        ).fetchone()
        return {"table blocks hit": row[0], "index blocks hit": row[1]} if row else {}
