"""How the cost of a scan grows with the table: 10 million to 300 million rows, and 1 to 1,000 partitions.

Source: our own.  Keys are random numbers below 2^40, so that a range matches nearly as many rows as the
cell's size says, each on a page of its own; no sort is needed to make them, however many there are.

  range    key between v and w, ordered by key
  loop     a nested loop: look-ups of keys that are there, in random order

"scale-only" has an index-only scan of a range.

The data is the number of rows (tables larger than --rows are left out), or the number of partitions among
which 10 million rows are divided at random; their ranges are not in order.
"""

from __future__ import annotations

import random
from typing import Iterator, Mapping, Sequence

import psycopg

from ..datasets import SCALE_KEYS, SCALE_PARTS, SCALE_SPACE, ensure_index, ensure_table, scale_table
from ..server import Server
from .base import COLD, Cell, Index, Workload, executions, scan

MILLION = 1_000_000
ROWS = {"10M": 10 * MILLION, "100M": 100 * MILLION, "300M": 300 * MILLION}
PARTS_ROWS = 10 * MILLION
PARTS = {f"{count}-partitions": count for count in SCALE_PARTS}
SIZES: Mapping[str, Sequence[int]] = {"range": (100, 1_000, 10_000, 100_000), "loop": (1_000, 10_000)}


class Scale(Workload):
    name = "scale"
    source = "our own: size of the table"
    table = "bench_scale_10m"
    bytes_per_row = 75

    @property
    def table_rows(self) -> int:
        return max((rows for rows in ROWS.values() if rows <= self.scope.rows), default=0)

    def cells(self) -> Iterator[Cell]:
        if self.scope.quick:
            return
        for data, rows in ROWS.items():
            if rows <= self.scope.rows:
                for shape, sizes in SIZES.items():
                    for size in sizes:
                        yield Cell(self.name, data, shape, size, COLD)
        if PARTS_ROWS <= self.scope.rows:
            for data in PARTS:
                yield Cell(self.name, data, "range", 10_000, COLD)

    def tables(self, cell: Cell) -> Sequence[str]:
        table = scale_table(cell.data)
        return (table, f"{table}_keys") if cell.shape == "loop" else (table,)

    def index(self, cell: Cell) -> Index:
        table = scale_table(cell.data)
        return Index(table, f"{table}_key", "key")

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        for data in dict.fromkeys(cell.data for cell in cells):
            ensure_table(server, connection, scale_table(data), self._rows(data))
        for index in dict.fromkeys(self.index(cell) for cell in cells):
            ensure_index(connection, index)

    @staticmethod
    def _rows(data: str) -> int:
        return ROWS.get(data, PARTS_ROWS)

    def setup(self, cell: Cell) -> Sequence[str]:
        return [f"set {name} = off" for name in ("enable_hashjoin", "enable_mergejoin", "enable_material", "enable_memoize")]

    def in_memory(self, cell: Cell) -> Sequence[str]:
        return self.tables(cell)[1:]

    def has_bitmap(self, cell: Cell) -> bool:
        return cell.shape == "range"

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        draw = self.random(cell, rep)
        return [self._statement(cell, draw) for _ in range(executions(cell.size))]

    def _statement(self, cell: Cell, draw: random.Random) -> str:
        table = scale_table(cell.data)
        if cell.shape == "loop":
            first = draw.randrange(SCALE_KEYS - cell.size)
            keys = f"(select k from {table}_keys where id between {first} and {first + cell.size - 1} offset 0) d"
            return scan("p.key, p.seq::text as payload", f"from {keys} join {table} p on p.key = d.k")
        width = SCALE_SPACE * cell.size // self._rows(cell.data)
        first = draw.randrange(SCALE_SPACE - width)
        within = f"from {table} where key between {first} and {first + width - 1}"
        return self._scan(cell, within)

    def _scan(self, cell: Cell, within: str) -> str:
        order = "" if cell.data in PARTS else " order by key"
        return scan("key, seq::text as payload", within + order)

    def counters(self, connection: psycopg.Connection, cell: Cell) -> Mapping[str, int]:
        """Processor time of the session's process, and the most memory that it has had."""
        process = connection.info.backend_pid
        with open(f"/proc/{process}/schedstat", encoding="ascii") as file:
            spent = int(file.read().split()[0])
        with open(f"/proc/{process}/status", encoding="ascii") as file:
            private = next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))
        return {"processor time, us": spent // 1000, "private memory, kB": private}


class ScaleOnly(Scale):
    name = "scale-only"
    index_only = True

    def cells(self) -> Iterator[Cell]:
        if self.scope.quick:
            return
        for data, rows in ROWS.items():
            if rows <= self.scope.rows:
                yield Cell(self.name, data, "range", 100_000, COLD)

    def _scan(self, cell: Cell, within: str) -> str:
        return scan("key, ''::text as payload", within)
