"""pgbench -S: single-row lookups by primary key, everything in shared_buffers.

Source: pgbench's own select-only script.  Each scan fetches one row, so look-ahead is
attached and never arms: the cell shows what attaching costs.  Use the variant "bare"
to compare with a server that has not loaded the library.
"""

from __future__ import annotations

from typing import Iterator, Sequence

from .base import CACHED, Cell, Workload


class Lookup(Workload):
    name = "lookup"
    source = "pgbench -S"
    table = "pgbench_accounts"

    @property
    def table_rows(self) -> int:
        return self.scope.pgbench_rows

    def cells(self) -> Iterator[Cell]:
        yield Cell(self.name, "random", "select-only", 1, CACHED)

    def index(self, cell: Cell) -> None:
        return None

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        key = self.random(cell, rep).randrange(1, self.table_rows)
        return [f"select 1, aid, abalance from {self.table} where aid = {key}"]

    def has_bitmap(self, cell: Cell) -> bool:
        return False

    def pgbench_script(self, cell: Cell) -> str:
        return f"\\set aid random(1, {self.table_rows})\nselect abalance from {self.table} where aid = :aid;\n"
