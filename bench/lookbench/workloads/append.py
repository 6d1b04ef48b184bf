"""One statement that scans the index of each of 1,000 partitions for a few rows.

Source: our own; queries by a column that is not the partition key are a known worst case
of partitioning.  The plan is generic and made before anything is measured: planning takes
longer than executing it.  The size is the number of rows of all partitions together.
"""

from __future__ import annotations

from typing import Iterator, Sequence

from ..datasets import PARTITIONS
from .base import CACHED, COLD, Cell, Index, Workload, scan

ROWS_EACH = (1, 5, 20)
QUICK_ROWS_EACH = (5,)
EXECUTIONS = 5


class Append(Workload):
    name = "append"
    source = "our own: 1,000 partitions"
    table = "bench_parts"
    bytes_per_row = 500

    @property
    def table_rows(self) -> int:
        return self.scope.part_rows

    def cells(self) -> Iterator[Cell]:
        for rows in QUICK_ROWS_EACH if self.scope.quick else ROWS_EACH:
            for state in (COLD, CACHED):
                yield Cell(self.name, "random", "partitions", rows * PARTITIONS, state)

    def index(self, cell: Cell) -> Index:
        return Index(self.table, "bench_parts_key", "key")

    def setup(self, cell: Cell) -> Sequence[str]:
        query = f"from {self.table} where key >= $1 and key < $1 + {cell.size // PARTITIONS}"
        return [
            "set plan_cache_mode = force_generic_plan",
            f"prepare page(integer) as {scan('key, payload', query)}",
        ]

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        each = self.table_rows // PARTITIONS
        keys = self.random(cell, rep).sample(range(each - max(ROWS_EACH)), EXECUTIONS)
        return [f"execute page({key})" for key in keys]
