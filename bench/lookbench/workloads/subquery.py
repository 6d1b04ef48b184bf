"""Subqueries that are executed once for each row, and inner sides of more than one scan.

Source: our own; the statements are those that object-relational mappers write.  The rows are a
range of bench_driver, as in nestloop.py, whose plans are forced here as well.

  count     a correlated count of ten rows, in the target list
  exists    EXISTS with a filter that most of the ten rows do not pass
  filter    the count as a condition
  top3      LATERAL ... ORDER BY ... DESC LIMIT 3 of the ten rows
  parts     one inner row each, in one of the partitions of a table: the key does not tell which
  spread    the same, of a table whose indexes have more pages than are visited
  scalar    one row each, by a scalar subquery
  grouped   count, rewritten by hand as LEFT JOIN and GROUP BY; the planner chooses the join
"""

from __future__ import annotations

from typing import Iterator, Mapping, Sequence

from .base import CACHED, COLD, OS_CACHED, Cell, Index
from .nestloop import QUICK_SIZE, NestLoop

SIZES: Mapping[str, Sequence[int]] = {
    "count": (1, 10, 100, 1_000, 5_000, 100_000),
    "exists": (100, 5_000, 100_000),
    "filter": (5_000,),
    "top3": (100, 1_000, 5_000, 100_000),
    "parts": (100, 1_000, 10_000),
    "spread": (100, 1_000, 5_000),
    "scalar": (1_000, 10_000),
    "grouped": (5_000, 100_000),
}
QUICK_SHAPES = ("count", "top3")
SLOW = 100_000  # not from the operating system's cache

_PARTITIONED: Mapping[str, str] = {"parts": "bench_divided", "spread": "bench_scattered"}
_TEN = "from bench_points p where (p.rnd / 10) = (d.k / 10)"
_COLUMNS: Mapping[str, str] = {
    "count": f"d.k as key, (select count(p.payload) {_TEN})::text as payload from {{driver}}",
    "exists": f"d.k as key, exists (select {_TEN} and p.payload < '1')::text as payload from {{driver}}",
    "filter": f"d.k as key, '' as payload from {{driver}} where (select count(p.payload) {_TEN}) > 5",
    "top3": f"p.rnd as key, p.payload from {{driver}}, lateral (select * {_TEN} order by p.seq desc limit 3) p",
    "parts": "p.rnd as key, p.payload from {driver} join bench_divided p on p.seq = d.k / 4",
    "spread": "p.seq as key, p.payload from {driver} join bench_scattered p on p.seq = d.k",
    "scalar": "d.k as key, (select p.payload from bench_points p where p.rnd = d.k) as payload from {driver}",
    "grouped": "d.k as key, count(p.payload)::text as payload from {driver}"
               " left join bench_points p on (p.rnd / 10) = (d.k / 10) group by d.id, d.k",
}


class Subquery(NestLoop):
    name = "subquery"
    source = "our own: correlated subqueries"

    def cells(self) -> Iterator[Cell]:
        quick = self.scope.quick
        for shape in QUICK_SHAPES if quick else SIZES:
            for size in (QUICK_SIZE,) if quick else SIZES[shape]:
                for state in (COLD, CACHED) if size < 5_000 or size >= SLOW else (COLD, OS_CACHED, CACHED):
                    yield Cell(self.name, "random", shape, size, state)

    def tables(self, cell: Cell) -> Sequence[str]:
        return ("bench_driver", _PARTITIONED.get(cell.shape, self.table))

    def index(self, cell: Cell) -> Index:
        if cell.shape in _PARTITIONED:
            table = _PARTITIONED[cell.shape]
            return Index(table, f"{table}_seq", "seq")
        if cell.shape == "scalar":
            return Index(self.table, "bench_points_rnd", "rnd")
        if cell.shape == "top3":
            return Index(self.table, "bench_points_sq_top3", "(rnd / 10), seq")
        return Index(self.table, "bench_points_nl_ten", "(rnd / 10)")

    def setup(self, cell: Cell) -> Sequence[str]:
        if cell.shape == "grouped":
            return ()
        return super().setup(cell)

    def _statement(self, cell: Cell, first: int) -> str:
        driver = f"(select * from bench_driver where id between {first} and {first + cell.size - 1} offset 0) d"
        query = _COLUMNS[cell.shape].replace("{driver}", driver)
        return f"select count(*), sum(key), sum(hashtext(payload)) from (select {query}) scan"
