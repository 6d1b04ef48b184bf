"""A range of scattered rows with debug_io_direct = data: no page cache, no advice.

Source: our own, the query of "matching" on random data.  All variants run with direct
I/O and io_method = io_uring, so asynchronous reads are the only way to look ahead.  It
needs PostgreSQL 18 and a kernel that allows io_uring, and is left out elsewhere.

  small   shared_buffers of 128 MB: what falls out of them is read again from the disk
  large   1 GB, as there is no other cache
"""

from __future__ import annotations

from typing import Iterator, Mapping, Sequence

from ..server import Server
from .base import COLD, Cell, Index, Workload, scan

SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (1_000, 10_000)
SETTINGS = {"debug_io_direct": "data", "io_method": "io_uring"}
BUFFERS = {"small": "128MB", "large": "1GB"}


class Direct(Workload):
    name = "direct"
    source = "our own: direct I/O"
    table = "bench_points"
    bytes_per_row = 600

    @property
    def table_rows(self) -> int:
        return self.scope.rows

    def obstacle(self, server: Server, uring: bool) -> str | None:
        return None if uring else "it needs PostgreSQL 18 with io_method = io_uring"

    def server(self, cell: Cell) -> Mapping[str, str]:
        return SETTINGS | {"shared_buffers": BUFFERS[cell.shape]}

    def cells(self) -> Iterator[Cell]:
        for shape in BUFFERS:
            for size in QUICK_SIZES if self.scope.quick else SIZES:
                yield Cell(self.name, "random", shape, size, COLD)

    def index(self, cell: Cell) -> Index:
        return Index(self.table, "bench_points_rnd", "rnd")

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        first = self.random(cell, rep).randrange(self.scope.rows - cell.size)
        where = f"rnd between {first} and {first + cell.size - 1} order by rnd"
        return [scan("rnd as key, payload", f"from {self.table} where {where}")]
