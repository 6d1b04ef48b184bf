"""Rows written to tables and indexes larger than memory, cold.

Source: our own; the waits are those of PostgreSQL's own insertion, one leaf page after the other.

  data       what is written
  four       a table with four btree indexes of random integers
  uuid       a table with one unique index of random UUIDs (v4)
  child      a table that refers to random rows of another one, with an index on the reference
  parent     the other one: each row has CHILDREN rows that refer to it, anywhere in their table

  shape      how
  insert     INSERT ... SELECT from a table that is cached
  sorted     the same in the order of the first index: what users do about it themselves
  copy       COPY FROM a file
  upsert-N   INSERT ... ON CONFLICT DO UPDATE, where N % of the keys are there already
  update     UPDATE of an indexed column, of rows found in the order of the table
  cascade    DELETE of parents with ON DELETE CASCADE

The size is a number of rows.  Each sample writes other rows, chosen at random, in a transaction
that is rolled back: the entries that it leaves in indexes are dead, and few beside the others.
So there is no sum to compare; test/ compares what writes do.  WAL is written with full_page_writes.
"""

from __future__ import annotations

from typing import Iterator, Mapping, Sequence

import psycopg

from ..datasets import CHILDREN, ensure_table, is_done
from ..server import Server
from .base import COLD, Cell, Scope
from .changing import Changing, Outcome

ROWS = "bench_write_rows"  # what a sample writes
TABLES = {"four": "bench_write_four", "uuid": "bench_write_uuid", "child": "bench_write_child", "parent": "bench_write_parent"}
SIZES = {"four": 50_000, "uuid": 100_000, "child": 20_000, "parent": 3_000}
SHAPES = (
    ("four", "insert"), ("four", "sorted"), ("four", "update"), ("uuid", "insert"), ("uuid", "copy"),
    ("uuid", "upsert-0"), ("uuid", "upsert-50"), ("uuid", "upsert-100"), ("child", "insert"), ("parent", "cascade"),
)
QUICK = (("four", "insert"), ("child", "insert"))
SHARE = 5  # table_rows of bench_points for one row here
BUFFERS = 512  # megabytes
BYTES = 900  # of a row in all tables, with indexes


class Write(Changing):
    name = "write"
    source = "our own: rows written to cold indexes"
    table = TABLES["four"]
    bytes_per_row = BYTES

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self._file = ""

    @property
    def table_rows(self) -> int:
        return self.scope.rows * 2 // SHARE

    def buffers(self) -> int:
        return BUFFERS * 2**20

    def server(self, cell: Cell) -> Mapping[str, str]:
        return {**super().server(cell), "full_page_writes": "on"}

    def cells(self) -> Iterator[Cell]:
        for data, shape in QUICK if self.scope.quick else SHAPES:
            yield Cell(self.name, data, shape, SIZES[data] // (10 if self.scope.quick else 1), COLD)

    def seconds(self, cell: Cell) -> float:
        return 2e-4 * cell.size + 5

    def tables(self, cell: Cell) -> Sequence[str]:
        return (TABLES[cell.data],)

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        for data in dict.fromkeys(cell.data for cell in cells):
            if data in ("child", "parent"):
                if not is_done(connection, TABLES["parent"], self.table_rows // CHILDREN):
                    connection.execute(f"drop table if exists {TABLES['child']}")
                ensure_table(server, connection, TABLES["parent"], self.table_rows // CHILDREN)
                ensure_table(server, connection, TABLES["child"], self.table_rows // CHILDREN)
            else:
                ensure_table(server, connection, TABLES[data], self.table_rows)

    def prepare(self, connection: psycopg.Connection, cell: Cell) -> None:
        rows, n = self.table_rows, cell.size
        connection.execute(f"drop table if exists {ROWS}")
        if cell.data == "four":
            order = "order by a" if cell.shape == "sorted" else ""
            connection.execute(
                f"create table {ROWS} as select {rows} + i as id, {', '.join(f'(random() * 2e9)::int as {c}' for c in 'abcd')}, 'x' as t"
                f" from generate_series(1, {n}) i {order}"
            )
        elif cell.data == "uuid":
            known = int(cell.shape.split("-")[1]) if cell.shape.startswith("upsert") else 0
            connection.execute(
                f"create table {ROWS} as select case when i % 100 < {known} then md5((random() * {rows - 1})::int::text)::uuid"
                f" else gen_random_uuid() end as u, i as v from generate_series(1, {n}) i"
            )
            connection.execute(f"delete from {ROWS} a using {ROWS} b where a.u = b.u and a.v > b.v")
            row = connection.execute("select current_setting('data_directory') || '/bench_write.copy'").fetchone()
            assert row is not None
            self._file = row[0]
            connection.execute(f"copy {ROWS} to '{self._file}'")
        else:
            parents = rows // CHILDREN
            connection.execute(
                f"create table {ROWS} as select i as id, hashint4((random() * {parents - 1})::int + 1) as k from generate_series(1, {n}) i"
            )
        connection.execute(f"vacuum analyze {ROWS}")

    def _statement(self, cell: Cell, rep: int) -> str:
        table = TABLES[cell.data]
        if cell.shape == "copy":
            return f"copy {table} from '{self._file}'"
        if cell.shape == "update":
            first = self.random(cell, rep).randrange(self.table_rows - cell.size)
            return f"update {table} set a = hashint4(a) where id between {first} and {first + cell.size - 1}"
        if cell.shape == "cascade":
            return f"delete from {table} where id in (select k from {ROWS})"
        conflict = " on conflict (u) do update set v = excluded.v" if cell.shape.startswith("upsert") else ""
        return f"insert into {table} select * from {ROWS}{conflict}"

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        # the rows that it writes are read before, and are none of its business
        return [f"begin; select count(*) from {ROWS}; {self._statement(cell, rep)}; rollback"]

    def outcome(self, server: Server, connection: psycopg.Connection, cell: Cell, rep: int) -> Outcome:
        return Outcome(cell.size, "rolled back")
