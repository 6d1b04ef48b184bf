"""1 to 64 sessions that scan an index at the same time, on one disk.

Each look-ahead keeps up to max_distance reads in flight and knows nothing of the others.  Do they hinder each
other?  The figure is transactions of all sessions, each of which scans 1,000 scattered rows by the index of
`mixed`; a run starts cold, and the table is so large that hardly a block is read twice in it.  How the
sessions fared is in categories.csv: transactions of the slowest one, and of the median.

  range     as many sessions as the cell's size says
  look-up   besides them one more, the first, that looks up single rows by the primary key

With many sessions the disk is at its limit, whoever asks: stock must then be reached, and the slowest session must
not have less than half of what the median has.  What one that asks for single reads has depends on how many reads of others
are ahead of each.
"""

from __future__ import annotations

from typing import Iterator, Sequence

from .base import COLD, Cell, Index, Throughput, Workload, scan

SESSIONS = (1, 4, 16, 64)
BESIDE_LOOKUPS = (4, 16)
ROWS = 1_000  # of a scan


class Sessions(Workload):
    name = "sessions"
    source = "our own"
    table = "bench_mixed"
    size_is = "sessions"
    bytes_per_row = 330

    @property
    def table_rows(self) -> int:
        return self.scope.rows // 4 // 1000 * 1000

    def cells(self) -> Iterator[Cell]:
        for sessions in SESSIONS:
            yield Cell(self.name, "random", "range", sessions, COLD)
        for sessions in BESIDE_LOOKUPS:
            yield Cell(self.name, "random", "look-up", sessions, COLD)

    def index(self, cell: Cell) -> Index:
        return Index(self.table, "bench_mixed_a", "a")

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        first = self.random(cell, rep).randrange(self.table_rows - ROWS)
        return [scan("a as key, payload", f"from {self.table} where a between {first} and {first + ROWS - 1}")]

    def has_bitmap(self, cell: Cell) -> bool:
        return False

    def throughput(self, cell: Cell) -> Throughput:
        scanned = (
            f"\\set first random(0, {self.table_rows} - {ROWS})\n"
            f"select count(*), sum(hashtext(payload)) from {self.table} where a between :first and :first + {ROWS - 1};\n"
        )
        if cell.shape == "range":
            return Throughput([(1, scanned)], cell.size, by_client=True)
        looked_up = f"\\set key random(1, {self.table_rows})\nselect payload from {self.table} where pk = :key;\n"
        return Throughput([(1, f"\\if :client_id = 0\n{looked_up}\\else\n{scanned}\\endif\n")], cell.size + 1, by_client=True)
