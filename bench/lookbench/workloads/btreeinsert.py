"""INSERT INTO target SELECT ... FROM source, where target is empty and has one btree index.

Source: van de Meent, "Iterating on IndexTuple attributes and nbtree page-level dynamic prefix
truncation" (pgsql-hackers, 2021-04-15), which copies the UK land registry's prices from one table
into another; here rows of the same shape (../paid.py), logged, a fifth as many as index builds have.

  uuid       unique (uid)
  text3      (county, city, locality)
  text4      (county, city, locality, postcode), near-unique
  int3, int  (a, b, c) and (c)

The data says in which order the rows come: random, or that of the index (sorted).  The size is
the number of sessions that insert at the same time, each of them its own stretch of the source.
Look-ahead is measured with pg_lookahead.enable_btree_insert = on.

Each sample ends with bt_index_check, which also looks for every row of the table in the index.
The pages of the index may differ from stock's, so only the rows are compared; sizes of table and
index are in categories.csv.
"""

from __future__ import annotations

from typing import Iterator, Sequence

import psycopg

from ..datasets import ensure_table
from ..paid import ORDERS, PLACES_ROWS
from ..server import Server
from .base import CACHED, Cell, Scope
from .changing import Changing, Outcome

TARGET = "bench_paid_target"
INDEX = "bench_paid_target_index"
SOURCE = "bench_paid_source"
SHARE = 5  # of the rows of bench_paid
SESSIONS = (1, 4)
HEAP_BYTES = 210  # of a row
INDEX_BYTES = 120
QUICK = (("random", "text3", 1),)


class Insert(Changing):
    name = "insert"
    source = "van de Meent, 2021"
    table = SOURCE
    extensions = ("amcheck", "pg_prewarm")
    # the source in random and in sorted orders, the target, and bench_paid
    bytes_per_row = HEAP_BYTES * (len(ORDERS) + 2) + INDEX_BYTES + SHARE * 500
    size_is = "sessions"
    switches = {"pg_lookahead.enable_btree_insert": "on"}
    tried = True

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self._blocks: dict[str, int] = {}

    @property
    def table_rows(self) -> int:
        return self.scope.paid_rows // SHARE

    def buffers(self) -> int:
        # an old target's buffers are free when the next one grows
        return self.table_rows * (HEAP_BYTES * (len(ORDERS) + 2) + INDEX_BYTES)

    def cells(self) -> Iterator[Cell]:
        if self.scope.quick:
            wanted: Sequence[tuple[str, str, int]] = QUICK
        else:
            wanted = [(data, shape, sessions) for shape in ORDERS for data in ("random", "sorted") for sessions in SESSIONS]
        for data, shape, sessions in wanted:
            yield Cell(self.name, data, shape, sessions, CACHED)

    def seconds(self, cell: Cell) -> float:
        return 8e-6 * self.table_rows + 1

    def _source(self, cell: Cell) -> str:
        return SOURCE if cell.data == "random" else f"bench_paid_by_{cell.shape}"

    def tables(self, cell: Cell) -> Sequence[str]:
        return (self._source(cell),)

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        ensure_table(server, connection, "bench_paid_places", PLACES_ROWS)
        ensure_table(server, connection, "bench_paid", self.scope.paid_rows)
        for source in dict.fromkeys((SOURCE, *map(self._source, cells))):
            ensure_table(server, connection, source, self.table_rows)
            row = connection.execute("select pg_relation_size(%s::regclass) / current_setting('block_size')::integer", (source,)).fetchone()
            assert row is not None
            self._blocks[source] = int(row[0])

    def prepare(self, connection: psycopg.Connection, cell: Cell, rep: int) -> None:
        connection.execute(f"drop table if exists {TARGET}")
        connection.execute(f"create table {TARGET} (like {SOURCE})")
        connection.execute(f"create {'unique ' if cell.shape == 'uuid' else ''}index {INDEX} on {TARGET} ({ORDERS[cell.shape]})")

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        source = self._source(cell)
        insert = f"insert into {TARGET} select * from {source}"
        if cell.size == 1:
            return [insert]
        limits = [self._blocks[source] * n // cell.size for n in range(cell.size)]
        # the last one has no limit
        stretches = [f"ctid >= '({first},0)'" for first in limits]
        for n, end in enumerate(limits[1:]):
            stretches[n] += f" and ctid < '({end},0)'"
        return [f"{insert} where {stretch}" for stretch in stretches]

    def outcome(self, server: Server, connection: psycopg.Connection, cell: Cell, rep: int, told: Sequence[int]) -> Outcome:
        connection.execute("select bt_index_check(%s::regclass, true)", (INDEX,))
        row = connection.execute(
            f"select count(*), sum(id), sum(hashint4(c)::bigint + hashtext(postcode)), pg_relation_size('{TARGET}'), pg_relation_size('{INDEX}')"
            f" from {TARGET}"
        ).fetchone()
        assert row is not None
        rows, ids, others, table, index = row
        return Outcome(rows, f"{ids}:{others}", {"table bytes": table, "index bytes": index})
