"""pgbench's own scripts with everything in shared_buffers: what look-ahead costs.

Source: pgbench -S and pgbench -b tpcb-like, with 1, 8 and 32 clients (the size).

  select-only   single-row look-ups by primary key, which are not even observed
  tpcb-like     three updates, a look-up and an insert

Nothing can be gained here.  Compare stock, again and lookahead, and use the variant
"bare" for a server that has not loaded the library.  Before each tpcb-like run the tables are
vacuumed and the history is emptied; balances change, so no answer depends on them.
"""

from __future__ import annotations

from typing import Iterator, Sequence

from ..datasets import PGBENCH_ROWS_PER_SCALE
from .base import CACHED, Cell, Throughput, Workload

CLIENTS = (1, 8, 32)
QUICK_CLIENTS = (1, 8)
TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history")
KEYED = TABLES[:3]

SELECT_ONLY = """\\set aid random(1, {rows})
select abalance from pgbench_accounts where aid = :aid;
"""

TPCB_LIKE = """\\set aid random(1, {rows})
\\set bid random(1, {scale})
\\set tid random(1, 10 * {scale})
\\set delta random(-5000, 5000)
begin;
update pgbench_accounts set abalance = abalance + :delta where aid = :aid;
select abalance from pgbench_accounts where aid = :aid;
update pgbench_tellers set tbalance = tbalance + :delta where tid = :tid;
update pgbench_branches set bbalance = bbalance + :delta where bid = :bid;
insert into pgbench_history (tid, bid, aid, delta, mtime) values (:tid, :bid, :aid, :delta, current_timestamp);
end;
"""
SCRIPTS = {"select-only": SELECT_ONLY, "tpcb-like": TPCB_LIKE}


class Lookup(Workload):
    name = "lookup"
    source = "pgbench -S, tpcb-like"
    table = "pgbench_accounts"
    bytes_per_row = 150

    @property
    def table_rows(self) -> int:
        return self.scope.pgbench_rows

    def cells(self) -> Iterator[Cell]:
        for shape in SCRIPTS:
            for clients in QUICK_CLIENTS if self.scope.quick else CLIENTS:
                yield Cell(self.name, "random", shape, clients, CACHED)

    def tables(self, cell: Cell) -> Sequence[str]:
        return TABLES if cell.shape == "tpcb-like" else (self.table,)

    def index(self, cell: Cell) -> None:
        return None

    def warmed(self, cell: Cell) -> Sequence[str]:
        keyed = KEYED if cell.shape == "tpcb-like" else (self.table,)
        return (*self.tables(cell), *(f"{table}_pkey" for table in keyed))

    def setup(self, cell: Cell) -> Sequence[str]:
        if cell.shape != "tpcb-like":
            return ()
        return ("truncate pgbench_history", f"vacuum {', '.join(KEYED)}")

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        key = self.random(cell, rep).randrange(1, self.table_rows)
        return [f"select 1, aid, bid from {self.table} where aid = {key}"]

    def has_bitmap(self, cell: Cell) -> bool:
        return False

    def throughput(self, cell: Cell) -> Throughput:
        scale = self.table_rows // PGBENCH_ROWS_PER_SCALE
        return Throughput([(1, SCRIPTS[cell.shape].format(rows=self.table_rows, scale=scale))], cell.size)
