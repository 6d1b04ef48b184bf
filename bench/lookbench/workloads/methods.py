"""Index access methods other than btree: 100 to 10,000 rows at random places of a heap.

Source: our own.  The table has one row for each square of a grid, in random order.

  hash/eq        key / n = v           n equal keys
  gist/box       boxes that overlap a box around n of them
  gist/point     points inside a box with n of them
  gist/knn       order by distance limit n; no bitmap scan can do that
  spgist/point   as gist/point, in a quad-tree
"""

from __future__ import annotations

import random
from typing import Iterator, Sequence

from ..datasets import side
from .base import CACHED, COLD, Cell, Index, Workload, scan

SIZES = (100, 1_000, 10_000)
QUICK_SIZES = (1_000,)
BOXES = {100: (10, 10), 1_000: (25, 40), 10_000: (100, 100)}  # width and height in squares
SHORT = 100
SHORT_EXECUTIONS = 10
SHAPES = (("hash", "eq"), ("gist", "box"), ("gist", "point"), ("gist", "knn"), ("spgist", "point"))
COLUMNS = {("gist", "box"): "b", ("gist", "point"): "p", ("gist", "knn"): "p", ("spgist", "point"): "q"}


class Methods(Workload):
    name = "methods"
    source = "our own: hash, GiST, SP-GiST"
    table = "bench_shapes"

    @property
    def table_rows(self) -> int:
        return self.scope.shape_rows

    def cells(self) -> Iterator[Cell]:
        for data, shape in SHAPES:
            for size in QUICK_SIZES if self.scope.quick else SIZES:
                for state in (COLD, CACHED):
                    yield Cell(self.name, data, shape, size, state)

    def index(self, cell: Cell) -> Index:
        if cell.data == "hash":
            return Index(self.table, f"bench_shapes_hash_{cell.size}", f"(k / {cell.size})", "hash")
        column = COLUMNS[cell.data, cell.shape]
        return Index(self.table, f"bench_shapes_{column}", column, cell.data)

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        draw = self.random(cell, rep)
        count = SHORT_EXECUTIONS if cell.size <= SHORT else 1
        return [scan("k as key, payload", f"from {self.table} {self._clause(cell, draw)}") for _ in range(count)]

    def _clause(self, cell: Cell, draw: random.Random) -> str:
        if cell.data == "hash":
            return f"where (k / {cell.size}) = {draw.randrange(self.table_rows // cell.size)}"
        width, height = BOXES[cell.size]
        # the last row of the grid may be incomplete
        x = draw.randrange(side(self.table_rows) - width)
        y = draw.randrange(side(self.table_rows) - height - 1)
        column = COLUMNS[cell.data, cell.shape]
        if cell.shape == "knn":
            return f"order by {column} <-> point '({x}, {y})' limit {cell.size}"
        operator = "&&" if cell.shape == "box" else "<@"
        return f"where {column} {operator} box '({x}, {y}), ({x + width}, {y + height})'"

    def has_bitmap(self, cell: Cell) -> bool:
        return cell.shape != "knn"
