"""ORDER BY ... LIMIT 1, 2, 4, ... 1024 with prepared statements.

Source: Konstantin Knizhnik, "Re: index prefetching" (pgsql-hackers, 2025-12-25): the
table where read-ahead that starts too early costs three quarters of the throughput at
LIMIT 1 and one that starts too late gains nothing at LIMIT 128.  His table had 10 million
pages, more than memory holds; ours is smaller, so a run on disk starts with nothing cached.

  cached      everything in shared_buffers, tps of pgbench -M prepared
  os-cached   128 MB shared_buffers, the table locked in the page cache, tps likewise
  cold        20 executions of one prepared statement with different keys; and as a workload of
              its own, limit-pgbench, tps of pgbench as above, which is what he measured
"""

from __future__ import annotations

from typing import Iterator, Sequence

from .base import CACHED, COLD, OS_CACHED, Cell, Index, Throughput, Workload, scan

LIMITS = tuple(2**i for i in range(11))
QUICK_LIMITS = (1, 16, 256)
QUICK_PGBENCH_LIMITS = (1, 128)
EXECUTIONS = 20


class Limit(Workload):
    name = "limit"
    source = "Knizhnik, index prefetching, 2025-12-25"
    table = "bench_limit"
    bytes_per_row = 8500

    @property
    def table_rows(self) -> int:
        return self.scope.limit_rows

    def cells(self) -> Iterator[Cell]:
        for size in QUICK_LIMITS if self.scope.quick else LIMITS:
            for state in (COLD, CACHED, OS_CACHED):
                yield Cell(self.name, "random", "limit", size, state)

    def index(self, cell: Cell) -> Index:
        return Index(self.table, "bench_limit_sk", "sk")

    def setup(self, cell: Cell) -> Sequence[str]:
        query = f"from {self.table} where sk >= $1 order by sk limit {cell.size}"
        return [f"prepare page(integer) as {scan('sk as key, payload', query)}"]

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        keys = self.random(cell, rep).sample(range(1, self.table_rows - max(LIMITS)), EXECUTIONS)
        return [f"execute page({key})" for key in keys]

    def has_bitmap(self, cell: Cell) -> bool:
        return False

    def throughput(self, cell: Cell) -> Throughput | None:
        return None if cell.state == COLD else self._pgbench(cell)

    def _pgbench(self, cell: Cell) -> Throughput:
        script = (
            f"\\set sk random(1, {self.table_rows})\n"
            f"select * from {self.table} where sk >= :sk order by sk limit {cell.size};\n"
        )
        return Throughput([(1, script)])


class LimitPgbench(Limit):
    name = "limit-pgbench"

    def cells(self) -> Iterator[Cell]:
        for size in QUICK_PGBENCH_LIMITS if self.scope.quick else LIMITS:
            yield Cell(self.name, "random", "limit", size, COLD)

    def throughput(self, cell: Cell) -> Throughput | None:
        return self._pgbench(cell)
