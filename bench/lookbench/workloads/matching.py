"""Queries that match 1 to 100,000 rows, on four distributions.

Source: Tomas Vondra, "index prefetching" (pgsql-hackers, June 2023), and his
index-prefetch-tests: point queries and ORDER BY queries with a given number of matching
rows on random, sequential and cyclic data; correlated data came later in the thread.
His cyclic data are i % d: a value recurs after d rows.  Here "cycles" are those, with a cycle
for each number of matching rows; "cyclic" has neighbours in index order that lie 1000 rows
apart, however many match.

A LIMIT of which nothing is left out takes the same rows as a range, but the scan cannot
know where it will end.

  eq      key / n = v              n equal keys, their rows in heap order
  range   key between v and v+n-1  order by key; a bitmap scan has to sort
  limit   key >= v                 order by key limit n; a bitmap scan would have to
                                   read the rest of the table, so there is none
"""

from __future__ import annotations

from typing import Iterator, Sequence

from .base import CACHED, COLD, OS_CACHED, Cell, Index, Workload, executions, scan

SIZES = (1, 10, 100, 1_000, 10_000, 100_000)
QUICK_SIZES = (1, 100, 10_000)
COLUMNS = {"random": "rnd", "sequential": "seq", "correlated": "cor", "cyclic": "cyc"}
CYCLES = "cycles"


class Matching(Workload):
    name = "matching"
    source = "Vondra, index prefetching, 2023"
    table = "bench_points"
    bytes_per_row = 660
    all_bitmaps = True

    @property
    def table_rows(self) -> int:
        return self.scope.rows

    def cells(self) -> Iterator[Cell]:
        quick = self.scope.quick
        for data in COLUMNS:
            for shape in ("eq", "range", "limit"):
                # equality on data in key order is the same scan as a range
                if shape == "eq" and data in ("sequential", "correlated"):
                    continue
                if quick and (data == "cyclic" or shape != "range"):
                    continue
                for size in QUICK_SIZES if quick else SIZES:
                    yield Cell(self.name, data, shape, size, COLD)
                    if shape == "range":
                        yield Cell(self.name, data, shape, size, CACHED)
                    if shape == "range" and data in ("random", "correlated") and not quick:
                        yield Cell(self.name, data, shape, size, OS_CACHED)
        if quick:
            yield Cell(self.name, "random", "range", SIZES[-1], CACHED)
            return
        for size in SIZES[1:]:
            yield Cell(self.name, CYCLES, "eq", size, COLD)
        yield Cell(self.name, CYCLES, "eq", SIZES[-1], CACHED)

    def index(self, cell: Cell) -> Index:
        if cell.data == CYCLES:
            return Index(self.table, f"bench_points_cycle_{cell.size}", f"({self._cycle(cell)})")
        column = COLUMNS[cell.data]
        if cell.shape != "eq" or cell.size == 1:
            return Index(self.table, f"bench_points_{column}", column)
        return Index(self.table, f"bench_points_{column}_{cell.size}", f"({column} / {cell.size})")

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        draw = self.random(cell, rep)
        return [self._statement(cell, draw.randrange(self.scope.rows // cell.size - 1)) for _ in range(executions(cell.size))]

    def _cycle(self, cell: Cell) -> str:
        return f"seq % {self.scope.rows // cell.size}"

    def _statement(self, cell: Cell, value: int) -> str:
        if cell.data == CYCLES:
            return scan("seq as key, payload", f"from {self.table} where ({self._cycle(cell)}) = {value}")
        column, n = COLUMNS[cell.data], cell.size
        first = value * n
        where = {
            "eq": f"({column} / {n}) = {value}" if n > 1 else f"{column} = {value}",
            "range": f"{column} between {first} and {first + n - 1} order by {column}",
            "limit": f"{column} >= {first} order by {column} limit {n}",
        }[cell.shape]
        return scan(f"{column} as key, payload", f"from {self.table} where {where}")

    def has_bitmap(self, cell: Cell) -> bool:
        return cell.shape != "limit"
