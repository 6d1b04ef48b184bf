"""A few cold rows in a session that has executed nothing before.

Source: our own; the short queries of an application whose connections come and go.  What a
session has learnt of an index is lost with it, so look-ahead can only know what it was told by
other sessions.  The rows are those of `matching/random/range`, whose cells execute 40 such
queries in one session.

  known     another session, which is gone, has scanned this index and another one, 1,000 rows
            at a time; after that each query has a session of its own
  unknown   each query is the first one of a server that was started cold

Only the queries are timed, neither connections nor the EXPLAIN that loads the catalogs.  Of
`known` the upper pages of the index are in memory, and with fewer than five million rows many of
the table as well: a run with so few says nothing.
"""

from __future__ import annotations

from typing import Iterator, Sequence

import psycopg

from ..datasets import ensure_index
from ..server import Server
from .base import COLD, Cell, Fresh, Index, Workload, scan

SIZES = (10, 30)
QUERIES = {"known": 20, "unknown": 6}
QUICK_SHAPES = ("known",)
EARLIER_ROWS = 1_000
EARLIER_QUERIES = 4  # of each index
SECONDS_TO_START = 1.0


class Short(Workload):
    name = "short"
    source = "our own: fresh sessions"
    table = "bench_points"
    bytes_per_row = 110

    @property
    def table_rows(self) -> int:
        return self.scope.rows

    def cells(self) -> Iterator[Cell]:
        for shape in QUICK_SHAPES if self.scope.quick else QUERIES:
            for size in SIZES:
                yield Cell(self.name, "random", shape, size, COLD)

    def index(self, cell: Cell) -> Index:
        return self._index("rnd")

    def _index(self, column: str) -> Index:
        return Index(self.table, f"{self.table}_{column}", column)

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        super().make(server, connection, cells)
        ensure_index(connection, self._index("seq"))

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        draw = self.random(cell, rep)
        return [self._range("rnd", draw.randrange(self.table_rows - cell.size), cell.size) for _ in range(QUERIES[cell.shape])]

    def _range(self, column: str, first: int, rows: int) -> str:
        where = f"{column} between {first} and {first + rows - 1} order by {column}"
        return scan(f"{column} as key, payload", f"from {self.table} where {where}")

    def fresh(self, cell: Cell) -> Fresh:
        if cell.shape == "unknown":
            return Fresh(restart=True)
        step = self.table_rows // (EARLIER_QUERIES + 1)
        firsts = range(step, step * EARLIER_QUERIES + 1, step)
        return Fresh([self._range(column, first, EARLIER_ROWS) for first in firsts for column in ("rnd", "seq")])

    def has_bitmap(self, cell: Cell) -> bool:
        return False

    def seconds(self, cell: Cell) -> float:
        return SECONDS_TO_START * (QUERIES[cell.shape] if cell.shape == "unknown" else 1)
