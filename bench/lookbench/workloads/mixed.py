"""Eight clients with plain index scans, bitmap scans and look-ups at the same time.

Source: John Lumby, "Extended Prefetching using Asynchronous IO" (pgsql-hackers,
2014-05-27): eight clients, two bitmap scans to 17 plain index scans, nothing cached at the
beginning, and counters of what became of each prefetch.

  plain    100 to 1000 scattered rows by one column, weight 8
  bitmap   the same by another column, always as a bitmap scan, weight 1
  lookup   one row by primary key, weight 8

The table is larger than shared_buffers.  A run starts cold and lasts three times as long
as others; the figure is transactions of all clients.  For the bitmap variants the plain
scans are bitmap scans as well.  What pg_stat_lookahead counted is in categories.csv.
"""

from __future__ import annotations

from typing import Iterator, Mapping, Sequence

import psycopg

from ..datasets import ensure_index
from ..server import Server
from ..variants import LIBRARY
from .base import COLD, Cell, Index, Throughput, Workload, scan

CLIENTS = 8
TIMES = 3
MOST_ROWS = 1_000
SHARE = 4  # of the rows of bench_points
QUERY = "select count(*), sum(hashtext(payload)) from {table} where {column} between :first and :last;\n"
RANGE = "\\set rows random(100, {most})\n\\set first random(0, {rows} - {most})\n\\set last :first + :rows - 1\n"
FORCE_BITMAP = "set local enable_bitmapscan = on;\nset local enable_indexscan = off;\n"


class Mixed(Workload):
    name = "mixed"
    source = "Lumby, extended prefetching, 2014"
    table = "bench_mixed"
    extensions = (LIBRARY,)
    bytes_per_row = 330

    @property
    def table_rows(self) -> int:
        return self.scope.rows // SHARE // 1000 * 1000

    def cells(self) -> Iterator[Cell]:
        yield Cell(self.name, "random", "clients", CLIENTS, COLD)

    def index(self, cell: Cell) -> Index:
        return Index(self.table, "bench_mixed_a", "a")

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        super().make(server, connection, cells)
        ensure_index(connection, Index(self.table, "bench_mixed_b", "b"))
        # its functions must be those of the library that is installed now
        connection.execute(f"drop extension {LIBRARY}")
        connection.execute(f"create extension {LIBRARY}")

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        first = self.random(cell, rep).randrange(self.table_rows - MOST_ROWS)
        return [scan("a as key, payload", f"from {self.table} where a between {first} and {first + MOST_ROWS - 1}")]

    def throughput(self, cell: Cell) -> Throughput:
        limits = RANGE.format(most=MOST_ROWS, rows=self.table_rows)
        plain = limits + QUERY.format(table=self.table, column="a")
        bitmap = f"{limits}begin;\n{FORCE_BITMAP}{QUERY.format(table=self.table, column='b')}commit;\n"
        lookup = f"\\set key random(1, {self.table_rows})\nselect payload from {self.table} where pk = :key;\n"
        return Throughput([(8, plain), (1, bitmap), (8, lookup)], CLIENTS, TIMES)

    def counters(self, connection: psycopg.Connection, cell: Cell) -> Mapping[str, int]:
        """Those of all scans of the server, where it has loaded the library that is installed.

        The functions of the extension belong to that library, not to another build (--variant NAME:library=...).
        """
        loaded = connection.execute("show shared_preload_libraries").fetchone()
        if loaded is None or loaded[0] != LIBRARY:
            return {}
        found = connection.execute("select * from pg_stat_lookahead")
        names = [column.name for column in found.description or ()]
        rows = [dict(zip(names, row)) for row in found]
        return {
            f"{row['kind']}: {name}": value
            for row in rows for name, value in row.items() if isinstance(value, int)
        }
