"""A range of wide rows whose out-of-line column is read.

Source: our own.  Look-ahead knows the rows' blocks and not those of their TOAST table,
which are read when the column is: the cell shows what is left of the gain.
"""

from __future__ import annotations

from typing import Iterator, Sequence

from .base import CACHED, COLD, Cell, Index, Workload, executions, scan

SIZES = (100, 1_000, 10_000)
QUICK_SIZES = (1_000,)


class Toast(Workload):
    name = "toast"
    source = "our own: out-of-line columns"
    table = "bench_wide"
    bytes_per_row = 8500

    @property
    def table_rows(self) -> int:
        return self.scope.wide_rows

    def cells(self) -> Iterator[Cell]:
        for size in QUICK_SIZES if self.scope.quick else SIZES:
            for state in (COLD, CACHED):
                yield Cell(self.name, "random", "range", size, state)

    def index(self, cell: Cell) -> Index:
        return Index(self.table, "bench_wide_key", "key")

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        draw = self.random(cell, rep)
        return [self._statement(cell, draw.randrange(self.table_rows - cell.size)) for _ in range(executions(cell.size))]

    def _statement(self, cell: Cell, first: int) -> str:
        where = f"key between {first} and {first + cell.size - 1} order by key"
        return scan("key, payload", f"from {self.table} where {where}")
