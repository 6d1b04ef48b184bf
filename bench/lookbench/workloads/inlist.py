"""IN lists of 10, 100 and 1000 values.

Source: Tomas Vondra, "index prefetching" (pgsql-hackers), SAOP queries of the tests of
2023 (column IN (values)), which vary the data and the pattern of the list.

  in1      values from anywhere, each of them matches one row
  in10     the same, each matches ten rows
  near10   every value matches ten rows, and the values come from a narrow stretch: every
           third of them, about
"""

from __future__ import annotations

from typing import Iterator, Sequence

from .base import CACHED, COLD, Cell, Index, Workload, scan

SIZES = (10, 100, 1_000)
QUICK_SIZES = (1_000,)
MATCHES = {"in1": 1, "in10": 10, "near10": 10}
COLUMNS = {"random": "rnd", "sequential": "seq", "cyclic": "cyc"}
SHAPES = {"random": ("in1", "in10"), "sequential": ("in10", "near10"), "cyclic": ("in10", "near10")}
QUICK_SHAPES = {"random": ("in1",), "sequential": ("near10",)}
STRETCH = 3


class InList(Workload):
    name = "inlist"
    source = "Vondra, index prefetching, SAOP queries, 2023"
    table = "bench_points"
    bytes_per_row = 600

    @property
    def table_rows(self) -> int:
        return self.scope.rows

    def cells(self) -> Iterator[Cell]:
        quick = self.scope.quick
        for data, shapes in (QUICK_SHAPES if quick else SHAPES).items():
            for shape in shapes:
                for size in QUICK_SIZES if quick else SIZES:
                    for state in (COLD, CACHED) if data == "random" else (COLD,):
                        yield Cell(self.name, data, shape, size, state)

    def index(self, cell: Cell) -> Index:
        column, matches = COLUMNS[cell.data], MATCHES[cell.shape]
        if matches == 1:
            return Index(self.table, f"bench_points_{column}", column)
        return Index(self.table, f"bench_points_{column}_{matches}", f"({column} / {matches})")

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        expression = self.index(cell).expression
        draw = self.random(cell, rep)
        first, width = 0, self.scope.rows // MATCHES[cell.shape]
        if cell.shape == "near10":
            first, width = draw.randrange(width - STRETCH * cell.size), STRETCH * cell.size
        listed = ", ".join(map(str, draw.sample(range(first, first + width), cell.size)))
        return [scan(f"{COLUMNS[cell.data]} as key, payload", f"from {self.table} where {expression} in ({listed})")]
