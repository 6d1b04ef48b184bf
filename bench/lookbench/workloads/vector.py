"""Nearest neighbours among clustered vectors of 128 dimensions, with pgvector.

Source: our own, after the usual approximate-search benchmarks (clustered data, queries
near to a centre, ef_search 100, 10 probes).  Rows and sums are compared between the
variants like everywhere, so the recall of all of them is the same.

  hnsw      order by v <-> q limit 10 and 100, hnsw.ef_search = 100
  ivfflat   order by v <=> q limit 100, ivfflat.probes = 10; another distance, so that
            the planner has one index to choose from

The workload is left out where pgvector is not installed.
"""

from __future__ import annotations

import random
from typing import Iterator, Sequence

from ..datasets import CLUSTERS, SPREAD, centre
from .base import CACHED, COLD, Cell, Index, Workload, scan

SIZES = (("hnsw", 10), ("hnsw", 100), ("ivfflat", 100))
EXECUTIONS = 10
ROWS_PER_LIST = 1_000


class Vector(Workload):
    name = "vector"
    source = "our own: pgvector"
    table = "bench_vectors"
    bytes_per_row = 2700
    extensions = ("vector",)

    @property
    def table_rows(self) -> int:
        return self.scope.vector_rows

    def cells(self) -> Iterator[Cell]:
        for shape, size in SIZES[1:] if self.scope.quick else SIZES:
            for state in (COLD, CACHED):
                yield Cell(self.name, "clustered", shape, size, state)

    def index(self, cell: Cell) -> Index:
        if cell.shape == "hnsw":
            return Index(self.table, "bench_vectors_hnsw", "v vector_l2_ops", "hnsw")
        lists = self.table_rows // ROWS_PER_LIST
        return Index(self.table, "bench_vectors_ivfflat", "v vector_cosine_ops", "ivfflat", f"with (lists = {lists})")

    def setup(self, cell: Cell) -> Sequence[str]:
        return ["set hnsw.ef_search = 100" if cell.shape == "hnsw" else "set ivfflat.probes = 10"]

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        draw = self.random(cell, rep)
        return [self._statement(cell, draw) for _ in range(EXECUTIONS)]

    def _statement(self, cell: Cell, draw: random.Random) -> str:
        near = centre(draw.randrange(CLUSTERS))
        listed = ",".join(f"{value + (draw.random() - 0.5) * SPREAD:.5f}" for value in near)
        operator = "<->" if cell.shape == "hnsw" else "<=>"
        return scan(
            "id as key, payload", f"from {self.table} order by v {operator} '[{listed}]' limit {cell.size}"
        )

    def has_bitmap(self, cell: Cell) -> bool:
        return False
