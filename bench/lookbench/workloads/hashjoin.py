"""Hash joins whose table is larger than the processor's caches, and smaller ones.

Source: Munro, "Hash joins: hiding memory latency" (2019): a table of 10 million integers joined
with itself, with work_mem of 1 GB and of 4 MB.  The others are our own:

  int       integers joined with themselves; 10 million of them is the talk's query
  jit       the same, compiled
  spill     the same with work_mem = 4MB: many batches
  bigint, text, pair
            keys of another type, text in the "C" collation, or of two columns
  wide      rows of 100 bytes, which the query reads
  hit1, hit50, hit100
            10 million rows looked up among 1 million; so many percent find a row
  left, right, full, semi, anti
            like hit1, as such a join (right: the rows of the smaller table are kept)
  resident  10 million rows looked up in a table of the cell's size, where all find a row
  skew      a tenth of the inner rows have one key, which nobody looks for
  floor     no join: both sides of `int` are read, and hashed

All state is "cached": what is waited for is memory.
"""

from __future__ import annotations

from typing import Iterator, Mapping, Sequence

import psycopg

from ..datasets import ensure_table
from ..server import Server
from .base import CACHED, Cell, Index, Workload

ROWS = 10_000_000
SIZES: Mapping[str, Sequence[int]] = {
    "int": (1_000_000, ROWS, 30_000_000),
    "jit": (ROWS,),
    "spill": (ROWS,),
    "bigint": (ROWS,),
    "text": (ROWS,),
    "pair": (ROWS,),
    "wide": (ROWS,),
    "hit1": (ROWS,),
    "hit50": (ROWS,),
    "hit100": (ROWS,),
    "left": (ROWS,),
    "right": (ROWS,),
    "full": (ROWS,),
    "semi": (ROWS,),
    "anti": (ROWS,),
    "resident": (1_000, 10_000, 100_000, 1_000_000),
    "skew": (ROWS,),
    "floor": (ROWS,),
}
QUICK_SHAPES = ("int", "hit1", "resident")
QUICK_SIZE = 1_000_000
KEYS = "bench_hash_keys"
WIDE = "bench_hash_wide"
MEMORY: Mapping[str, str] = {"spill": "4MB"}

# how the 10 million rows a find those of the smaller table b
_INTO: Mapping[str, str] = {
    "hit1": "from {keys} a join {b} b on b.i = a.m1",
    "hit50": "from {keys} a join {b} b on b.i = a.m50",
    "hit100": "from {keys} a join {b} b on b.i = a.m{rows}",
    "left": "from {keys} a left join {b} b on b.i = a.m1",
    "right": "from {b} b left join {keys} a on b.i = a.m1",
    "full": "from {keys} a full join {b} b on b.i = a.m1",
    "semi": "from {keys} a where exists (select from {b} b where b.i = a.m1)",
    "anti": "from {keys} a where not exists (select from {b} b where b.i = a.m1)",
}
_ITSELF: Mapping[str, str] = {
    "bigint": "using (b)",
    "text": "using (t)",
    "pair": "using (k1, k2)",
}


def ints(rows: int) -> str:
    return f"bench_ints_{rows}"


class HashJoin(Workload):
    name = "hashjoin"
    source = "Munro, 2019"
    table = ints(ROWS)
    free_plans = True
    bytes_per_row = 500

    @property
    def table_rows(self) -> int:
        return QUICK_SIZE if self.scope.quick else ROWS

    def cells(self) -> Iterator[Cell]:
        for shape in QUICK_SHAPES if self.scope.quick else SIZES:
            for size in (QUICK_SIZE,) if self.scope.quick else SIZES[shape]:
                yield Cell(self.name, "random" if shape in _INTO or shape == "resident" else "itself", shape, size, CACHED)

    def index(self, cell: Cell) -> Index | None:
        return None

    def seconds(self, cell: Cell) -> float:
        return 1e-6 * max(cell.size, self.table_rows)

    def _smaller(self, cell: Cell) -> str:
        return ints(cell.size if cell.shape == "resident" else self.table_rows // 10)

    def tables(self, cell: Cell) -> Sequence[str]:
        if cell.shape in _INTO or cell.shape == "resident":
            return (KEYS, self._smaller(cell))
        if cell.shape in _ITSELF:
            return (KEYS,)
        if cell.shape == "skew":
            return (KEYS, ints(self.table_rows))
        if cell.shape == "wide":
            return (WIDE,)
        return (ints(cell.size),)

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        for table in dict.fromkeys(table for cell in cells for table in self.tables(cell)):
            rows = self.table_rows if table in (KEYS, WIDE) else int(table.rpartition("_")[2])
            ensure_table(server, connection, table, rows)

    def setup(self, cell: Cell) -> Sequence[str]:
        settings = {
            "enable_nestloop": "off",
            "enable_mergejoin": "off",
            "work_mem": f"'{MEMORY.get(cell.shape, '4GB')}'",
            "hash_mem_multiplier": "1",
            "jit": "on" if cell.shape == "jit" else "off",
        }
        return [f"set {name} = {value}" for name, value in settings.items()]

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        a, b = ints(self.table_rows), self._smaller(cell)
        if cell.shape == "floor":
            return [f"select count(hashint4(i)), 0, 0 from {a}"] * 2
        if cell.shape in _INTO:
            source = _INTO[cell.shape].format(keys=KEYS, b=b, rows=self.table_rows // 10)
        elif cell.shape == "resident":
            source = f"from {KEYS} a join {b} b on b.i = a.m{cell.size}"
        elif cell.shape in _ITSELF:
            source = f"from {KEYS} a join {KEYS} b {_ITSELF[cell.shape]}"
        elif cell.shape == "skew":
            source = f"from {a} a where exists (select from {KEYS} b where b.skewed = a.i)"
        elif cell.shape == "wide":
            return [f"select count(*), sum(length(a.w) + length(b.w)), 0 from {WIDE} a join {WIDE} b using (i)"]
        else:
            source = f"from {ints(cell.size)} a join {ints(cell.size)} b using (i)"
        return [f"select count(*), 0, 0 {source}"]

    def has_bitmap(self, cell: Cell) -> bool:
        return False
