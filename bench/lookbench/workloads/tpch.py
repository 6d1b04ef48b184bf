"""The 22 queries of TPC-H: what is left of look-ahead in whole queries.

Source: TPC-H with the specification's validation parameters; Vondra measured index
prefetching with it in 2023, and these are his indexes.

  q01 .. q22            serial plans of the planner's choice
  q01-parallel ..       the same with two workers
  q06-index ..          without sequential and bitmap scans, for 6, 8, 14 and 19, which gained
                        in his measurements of 100 GB, for 5 and 15, which then scan orders
                        and lineitem by index, and for 17 and 20, whose subqueries do
  q05-nestloop ..       without hash and merge joins, for 5, 8, 10, 12 and 19: nested loops over
                        btree indexes

Where costs are adjusted, cold cells of whole queries also have those variants of FORCED that may be
as good as the planner's choice (FORCED_QUERIES): other plans which would take at most half as long
again, by adjusted costs or by what was measured of the shapes above.

The size is the scale factor.  Stock and look-ahead must give the same rows, in the same
order where the query determines it.
"""

from __future__ import annotations

import hashlib
from typing import Iterator, Mapping, Sequence

import psycopg

from ..server import Server
from ..tpch import ANY_ORDER, QUERIES, query
from ..tpch.load import GENERATOR, LINEITEM_ROWS, ensure_scale, schema, tables
from .base import CACHED, COLD, FORCED, Cell, Index, Scope, Workload

PARALLEL = "-parallel"
INDEX = "-index"
INDEX_QUERIES = (5, 6, 8, 14, 15, 17, 19, 20)
NESTLOOP = "-nestloop"
NESTLOOP_QUERIES = (5, 8, 10, 12, 19)
FORCED_QUERIES = {
    "forced-sequential": (5, 6, 8, 10, 14, 15),
    "forced-bitmap": (15,),
    "forced-index": (2, 6, 8, 11, 14, 20),
    "forced-nestloop": (4, 11, 12, 14, 15, 20),
    "forced-hash": (8, 10),
}
QUICK_SHAPES = ("q02", "q08", "q19", "q20", "q06-index", "q14-index")
TIMEOUT = "10min"  # of one statement


class TpcH(Workload):
    name = "tpch"
    source = "TPC-H; Vondra, 2023"
    free_plans = True
    bytes_per_row = 350

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.table = tables(max(scope.tpch_scales, default=1))[0]

    @property
    def table_rows(self) -> int:
        """Of all scale factors together."""
        return LINEITEM_ROWS * sum(self.scope.tpch_scales)

    def cells(self) -> Iterator[Cell]:
        serial = [f"q{number:02}" for number in QUERIES]
        shapes = [*serial, *(shape + PARALLEL for shape in serial), *(f"q{number:02}{INDEX}" for number in INDEX_QUERIES),
                  *(f"q{number:02}{NESTLOOP}" for number in NESTLOOP_QUERIES)]
        for scale in self.scope.tpch_scales:
            for shape in QUICK_SHAPES if self.scope.quick else shapes:
                for state in (COLD,) if self.scope.quick else (COLD, CACHED):
                    yield Cell(self.name, f"sf{scale}", shape, scale, state)

    def tables(self, cell: Cell) -> Sequence[str]:
        """All of them, whatever the query reads, so that all cells share one shared_buffers."""
        return tables(cell.size)

    def index(self, cell: Cell) -> Index | None:
        return None

    def forced(self, cell: Cell) -> Mapping[str, Mapping[str, str]]:
        whole = cell.shape.removesuffix(PARALLEL)
        if cell.state != COLD or "-" in whole:
            return {}
        return {name: FORCED[name] for name, queries in FORCED_QUERIES.items() if int(whole[1:]) in queries}

    def seconds(self, cell: Cell) -> float:
        return 3.0 * cell.size

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        for scale in sorted({cell.size for cell in cells}):
            ensure_scale(connection, scale)

    def obstacle(self, server: Server, uring: bool) -> str | None:
        if not GENERATOR.exists():
            return f"{GENERATOR.name} is not installed"
        return super().obstacle(server, uring)

    def setup(self, cell: Cell) -> Sequence[str]:
        settings = {
            "search_path": schema(cell.size),
            "work_mem": "'256MB'",
            "max_parallel_workers_per_gather": "2" if cell.shape.endswith(PARALLEL) else "0",
            "statement_timeout": f"'{TIMEOUT}'",
        }
        if cell.shape.endswith(INDEX):
            settings |= {"enable_seqscan": "off", "enable_bitmapscan": "off"}
        if cell.shape.endswith(NESTLOOP):
            settings |= {"enable_hashjoin": "off", "enable_mergejoin": "off"}
        return [f"set {name} = {value}" for name, value in settings.items()]

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        return [query(int(cell.shape[1:3]), cell.size)]

    def execute(self, connection: psycopg.Connection, statements: Sequence[str]) -> tuple[int, str]:
        """All values are exact: sums do not depend on the order in which they were made."""
        count = 0
        digest = hashlib.md5(usedforsecurity=False)
        for statement in statements:
            rows = ["|".join(map(str, row)) for row in connection.execute(statement)]
            if statement.startswith(ANY_ORDER):
                rows.sort()
            count += len(rows)
            digest.update("\n".join(rows).encode())
        return count, digest.hexdigest()
