"""Btree indexes made by REINDEX INDEX and CREATE INDEX, all logged, table in shared_buffers.

Source: van de Meent, "Iterating on IndexTuple attributes and nbtree page-level dynamic prefix
truncation" (pgsql-hackers, 2021-04-15): REINDEX of four indexes of the UK land registry's prices,
here on rows of the same shape (../paid.py):

  uuid       unique (uid)
  text3      (county, city, locality)
  collated   (county collate "en_US", city, locality); ICU's en-US where the server has no en_US
  nulls      (always_null, county, city, locality)

The others are our own:

  text4      (county, city, locality, postcode), near-unique
  int3, int  (a, b, c) and (c): 100, 1,000 and two billion values
  bigint     primary key (id)
  numeric, timestamp
             (amount), (transfer)
  wide       (note): 200 bytes that begin alike
  include    (c) include (price, transfer)

The shape of a cell is the statement and its number of workers (reindex-0, create-2), the size
maintenance_work_mem in MB.  The server gives each process 32 MB at least, so with 64 MB there is
one worker at most.  How many it has asked for is in categories.csv.  Look-ahead is measured with
pg_lookahead.enable_index_build = on.

The table has no other index meanwhile.  All variants must make the same index: the checksum is
its size and a hash of all of its pages, without LSN and checksum of each; where that differs the
cell has failed.  The first repetition of each variant is also looked at by bt_index_check.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Mapping, Sequence

import psycopg

from ..datasets import ensure_table
from ..paid import PLACES_ROWS
from ..server import Server, ServerError
from .base import CACHED, Cell
from .changing import Changing, Outcome

ENGLISH = ("en_US", "en_US.utf8", "en-US-x-icu")  # what there is of these, best first
PAGE = 8192
LSN_AND_CHECKSUM = 10  # bytes at the beginning of a page
HEAP_BYTES = 430  # of a row
CHUNK = 1024  # pages


@dataclass(frozen=True)
class Key:
    columns: str
    unique: bool = False
    primary: bool = False
    include: str = ""


KEYS: Mapping[str, Key] = {
    "uuid": Key("uid", unique=True),
    "text3": Key("county, city, locality"),
    "collated": Key('county collate "{english}", city, locality'),
    "nulls": Key("always_null, county, city, locality"),
    "text4": Key("county, city, locality, postcode"),
    "int3": Key("a, b, c"),
    "int": Key("c"),
    "bigint": Key("id", primary=True),
    "numeric": Key("amount"),
    "timestamp": Key("transfer"),
    "wide": Key("note"),
    "include": Key("c", include="price, transfer"),
}
STATEMENTS = ("reindex", "create")
WORKERS = (0, 1, 2)
MEMORY = (64, 256, 2048)
LEAST_EACH = 32  # MB that the server wants for each process of a build

# statement and workers -> memory -> indexes
_MAIN = ("uuid", "text3", "collated", "nulls", "text4", "int3")
SELECTION: Mapping[str, Mapping[int, Sequence[str]]] = {
    "reindex-0": {64: tuple(KEYS), 256: _MAIN, 2048: tuple(KEYS)},
    "reindex-1": {64: ("uuid", "text3", "text4", "int3"), 256: ("text3", "text4"), 2048: ("text3", "text4", "int3")},
    "reindex-2": {256: _MAIN, 2048: tuple(KEYS)},
    "create-0": {256: ("text3", "text4", "int3", "bigint"), 2048: ("text3", "text4", "int3", "bigint")},
    "create-2": {256: ("text3", "text4"), 2048: ("text3", "text4")},
}
QUICK: Mapping[str, Mapping[int, Sequence[str]]] = {"reindex-0": {256: ("text3", "int3")}}


def _all() -> Mapping[str, Mapping[int, Sequence[str]]]:
    return {
        f"{statement}-{workers}": {m: tuple(KEYS) for m in MEMORY if m // (workers + 1) >= LEAST_EACH}
        for statement in STATEMENTS for workers in WORKERS
    }


def fingerprint(files: Sequence[Path]) -> str:
    """Of all pages of a relation, whose files must have been written; not of what recovery needs."""
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        with path.open("rb") as file:
            while pages := file.read(PAGE * CHUNK):
                view = memoryview(pages)
                for start in range(0, len(pages), PAGE):
                    digest.update(view[start + LSN_AND_CHECKSUM : start + PAGE])
    return digest.hexdigest()


class IndexBuild(Changing):
    name = "indexbuild"
    source = "van de Meent, 2021"
    table = "bench_paid"
    extensions = ("amcheck", "pg_prewarm")
    bytes_per_row = 900
    size_is = "MB"
    switches = {"pg_lookahead.enable_index_build": "on"}
    exact = True

    _english = ""

    @property
    def table_rows(self) -> int:
        return self.scope.paid_rows

    def buffers(self) -> int:
        return self.table_rows * HEAP_BYTES

    def cells(self) -> Iterator[Cell]:
        """Index by index, since all others go away when one of them is made."""
        wanted = _all() if self.scope.full else QUICK if self.scope.quick else SELECTION
        for key in KEYS:
            for shape, sizes in wanted.items():
                for memory, keys in sizes.items():
                    if key in keys:
                        yield Cell(self.name, key, shape, memory, CACHED)

    def seconds(self, cell: Cell) -> float:
        return 2.5e-6 * self.table_rows + 2

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        ensure_table(server, connection, "bench_paid_places", PLACES_ROWS)
        ensure_table(server, connection, self.table, self.table_rows)
        found = {row[0] for row in connection.execute("select collname from pg_collation where collname = any (%s)", (list(ENGLISH),))}
        self._english = next((name for name in ENGLISH if name in found), "")
        if not self._english and any(cell.data == "collated" for cell in cells):
            raise ServerError(f"{self.name}: the server has no collation for English, neither the system's nor ICU's")

    def _name(self, cell: Cell) -> str:
        return f"{self.table}_{cell.data}"

    def _create(self, cell: Cell) -> str:
        key = KEYS[cell.data]
        if key.primary:
            return f"alter table {self.table} add constraint {self._name(cell)} primary key ({key.columns})"
        unique = "unique " if key.unique else ""
        include = f" include ({key.include})" if key.include else ""
        columns = key.columns.format(english=self._english)
        return f"create {unique}index {self._name(cell)} on {self.table} ({columns}){include}"

    def setup(self, cell: Cell) -> Sequence[str]:
        return (
            f"set maintenance_work_mem = '{cell.size}MB'",
            f"set max_parallel_maintenance_workers = {_workers(cell)}",
            "set client_min_messages = debug1",
        )

    def prepare(self, connection: psycopg.Connection, cell: Cell, rep: int) -> None:
        kept = self._name(cell) if _statement(cell) == "reindex" else ""
        others = connection.execute(
            "select i.indexrelid::regclass::text, c.conname from pg_index i left join pg_constraint c on c.conindid = i.indexrelid"
            " where i.indrelid = %s::regclass", (self.table,)
        ).fetchall()
        for index, constraint in others:
            if index == kept:
                continue
            connection.execute(f"alter table {self.table} drop constraint {constraint}" if constraint else f"drop index {index}")
        if kept and kept not in {index for index, _ in others}:
            connection.execute("set maintenance_work_mem = '1GB'")
            connection.execute(self._create(cell))
            connection.execute("reset maintenance_work_mem")

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        return [f"reindex index {self._name(cell)}" if _statement(cell) == "reindex" else self._create(cell)]

    def definition(self, cell: Cell, rep: int) -> str:
        """With what the index is."""
        return ";\n".join(dict.fromkeys((self._create(cell), *self.statements(cell, rep))))

    def outcome(self, server: Server, connection: psycopg.Connection, cell: Cell, rep: int, told: Sequence[int]) -> Outcome:
        name = self._name(cell)
        connection.execute("checkpoint")
        row = connection.execute("select reltuples::bigint, pg_relation_size(oid) from pg_class where oid = %s::regclass", (name,)).fetchone()
        assert row is not None
        rows, size = row
        if rep == 0:
            connection.execute("select bt_index_check(%s::regclass)", (name,))
        printed = fingerprint(server.relation_files(connection, [name]))
        return Outcome(rows, f"{size}:{printed}", {"index bytes": size})


def _statement(cell: Cell) -> str:
    return cell.shape.partition("-")[0]


def _workers(cell: Cell) -> int:
    return int(cell.shape.partition("-")[2])
