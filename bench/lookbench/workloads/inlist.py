"""IN lists of 10, 100 and 1000 values.

Source: Tomas Vondra, "index prefetching" (pgsql-hackers), SAOP queries of the tests of
2023 (column IN (values)), on the random key.

  in1    each value matches one row
  in10   each value matches ten rows
"""

from __future__ import annotations

from typing import Iterator, Sequence

from .base import CACHED, COLD, Cell, Index, Workload, scan

SIZES = (10, 100, 1_000)
MATCHES = {"in1": 1, "in10": 10}


class InList(Workload):
    name = "inlist"
    source = "Vondra, index prefetching, SAOP queries, 2023"
    table = "bench_points"

    @property
    def table_rows(self) -> int:
        return self.scope.rows

    def cells(self) -> Iterator[Cell]:
        for shape in ("in1",) if self.scope.quick else MATCHES:
            for size in (SIZES[-1],) if self.scope.quick else SIZES:
                for state in (COLD, CACHED):
                    yield Cell(self.name, "random", shape, size, state)

    def index(self, cell: Cell) -> Index:
        if cell.shape == "in1":
            return Index(self.table, "bench_points_rnd", "rnd")
        return Index(self.table, "bench_points_rnd_10", "(rnd / 10)")

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        expression = self.index(cell).expression
        values = self.random(cell, rep).sample(range(self.scope.rows // MATCHES[cell.shape]), cell.size)
        listed = ", ".join(map(str, values))
        return [scan("rnd as key, payload", f"from {self.table} where {expression} in ({listed})")]
