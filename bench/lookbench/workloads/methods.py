"""Index access methods other than btree: 100 to 10,000 rows.

Source: Tomas Vondra, "index prefetching" (pgsql-hackers, June 2023), whose tests had hash,
GiST and SP-GiST indexes, equality and distance queries, on random, sequential and cyclic
data; correlated data came later.

  hash-eq        key / n = v           n equal keys
  gist-point     points inside a box with n of them
  spgist-point   the same, in a quad-tree
  gist-box       boxes that overlap a box around n of them
  gist-knn       order by distance limit n; no bitmap scan can do that
  spgist-knn     the same

Sequential means: rows lie in the order of the index.  See bench_places in datasets.py.
"""

from __future__ import annotations

import random
from typing import Iterator, Mapping, Sequence

from ..datasets import ORIGIN, side
from .base import CACHED, COLD, Cell, Index, Workload, executions, scan

SIZES = (100, 1_000, 10_000)
QUICK_SIZES = (1_000,)
BOXES = {100: (10, 10), 1_000: (25, 40), 10_000: (100, 100)}  # width and height in squares
COLUMNS = {"random": "rnd", "sequential": "seq", "correlated": "cor", "cyclic": "cyc"}
BOTH = ("random", "sequential")
# shape -> its data when cold, and when cached
SHAPES: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "hash-eq": (tuple(COLUMNS), ("random",)),
    "gist-point": (tuple(COLUMNS), ("random",)),
    "spgist-point": (tuple(COLUMNS), ("random",)),
    "gist-box": (("random",), ("random",)),
    "gist-knn": (BOTH, BOTH),
    "spgist-knn": (BOTH, BOTH),
}
SUFFIXES = {"gist-point": "p", "gist-knn": "p", "gist-box": "b", "spgist-point": "q", "spgist-knn": "q"}


class Methods(Workload):
    name = "methods"
    source = "Vondra, index prefetching: hash, GiST, SP-GiST, 2023"
    table = "bench_places"
    bytes_per_row = 1200

    @property
    def table_rows(self) -> int:
        return self.scope.shape_rows

    def cells(self) -> Iterator[Cell]:
        quick = self.scope.quick
        for shape, by_state in SHAPES.items():
            for state, distributions in zip((COLD, CACHED), by_state):
                for data in distributions:
                    if quick and (data != "random" or state != COLD):
                        continue
                    for size in QUICK_SIZES if quick else SIZES:
                        yield Cell(self.name, data, shape, size, state)

    def index(self, cell: Cell) -> Index:
        method = cell.shape.partition("-")[0]
        if method == "hash":
            column = COLUMNS[cell.data]
            return Index(self.table, f"{self.table}_hash_{column}_{cell.size}", f"({column} / {cell.size})", method)
        return Index(self.table, f"{self.table}_{self._column(cell)}", self._column(cell), method)

    @staticmethod
    def _column(cell: Cell) -> str:
        return f"{COLUMNS[cell.data]}_{SUFFIXES[cell.shape]}"

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        draw = self.random(cell, rep)
        return [scan("seq as key, payload", f"from {self.table} {self._clause(cell, draw)}") for _ in range(executions(cell.size))]

    def _clause(self, cell: Cell, draw: random.Random) -> str:
        if cell.shape == "hash-eq":
            return f"where ({COLUMNS[cell.data]} / {cell.size}) = {draw.randrange(self.table_rows // cell.size)}"
        width, height = BOXES[cell.size]
        # the last row of the grid may be incomplete
        x = ORIGIN + draw.randrange(side(self.table_rows) - width)
        y = ORIGIN + draw.randrange(side(self.table_rows) - height - 1)
        column = self._column(cell)
        if cell.shape.endswith("-knn"):
            return f"order by {column} <-> point '({x}, {y})' limit {cell.size}"
        operator = "&&" if cell.shape == "gist-box" else "<@"
        return f"where {column} {operator} box '({x}, {y}), ({x + width}, {y + height})'"

    def has_bitmap(self, cell: Cell) -> bool:
        return not cell.shape.endswith("-knn")
