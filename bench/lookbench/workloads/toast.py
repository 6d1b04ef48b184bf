"""Values that are stored out of line.

Source: our own.

  toast      a range of wide rows whose out-of-line column is read
  documents  narrow rows with a document each, by an index, sequentially and by COPY TO; and
             scans of the same tables that do not read the documents
  sized      documents of 4 to 100 kB, not compressed ("external") and compressed ("extended")
"""

from __future__ import annotations

from typing import Iterator, Sequence

import psycopg

from ..datasets import DOCUMENT_ROWS, ensure_table
from ..server import Server
from .base import CACHED, COLD, Cell, Index, Workload, executions, scan

SIZES = (100, 1_000, 10_000)
QUICK_SIZES = (1_000,)


class Toast(Workload):
    name = "toast"
    source = "our own: out-of-line columns"
    table = "bench_wide"
    bytes_per_row = 8500

    @property
    def table_rows(self) -> int:
        return self.scope.wide_rows

    def cells(self) -> Iterator[Cell]:
        for size in QUICK_SIZES if self.scope.quick else SIZES:
            for state in (COLD, CACHED):
                yield Cell(self.name, "random", "range", size, state)

    def index(self, cell: Cell) -> Index:
        return Index(self.table, "bench_wide_key", "key")

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        draw = self.random(cell, rep)
        return [self._statement(cell, draw.randrange(self.table_rows - cell.size)) for _ in range(executions(cell.size))]

    def _statement(self, cell: Cell, first: int) -> str:
        where = f"key between {first} and {first + cell.size - 1} order by key"
        return scan("key, payload", f"from {self.table} where {where}")


FEW = {"scattered": "bench_values_few", "loaded": "bench_values_loaded"}
FEW_ROWS = 10_000
# COPY TO as a query
COPIED = """
create or replace function bench_copied(t text) returns bigint language plpgsql as $$
declare n bigint;
begin
    execute format('copy %I to ''/dev/null''', t);
    get diagnostics n = row_count;
    return n;
end $$
"""
PLANS = {
    "index": "set enable_seqscan = off; set enable_bitmapscan = off",
    "sequential": "set enable_indexscan = off; set enable_bitmapscan = off",
}


class Documents(Workload):
    """Documents of 4 kB that are stored out of line.

    index       so many in the order of a random key
    sequential  the whole table of 10,000
    copy        the same by COPY TO
    untouched   the same, without the documents
    """

    name = "documents"
    source = "our own: documents out of line"
    table = "bench_values"
    free_plans = True
    bytes_per_row = 4900

    @property
    def table_rows(self) -> int:
        return self.scope.wide_rows

    def cells(self) -> Iterator[Cell]:
        data = ("scattered",) if self.scope.quick else tuple(FEW)
        for state in (COLD, CACHED):
            yield Cell(self.name, "scattered", "index", 2_000, state)
            for shape in ("sequential", "copy", "untouched"):
                for order in data:
                    yield Cell(self.name, order, shape, FEW_ROWS, state)

    def table_of(self, cell: Cell) -> str:
        if cell.shape == "index":
            return self.table
        return FEW[cell.data]

    def tables(self, cell: Cell) -> Sequence[str]:
        return (self.table_of(cell),)

    def index(self, cell: Cell) -> Index | None:
        return None

    def warmed(self, cell: Cell) -> Sequence[str]:
        return self.tables(cell)

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        for table in {self.table_of(cell) for cell in cells}:
            ensure_table(server, connection, table, self.table_rows if table == self.table else FEW_ROWS)
        connection.execute(COPIED)

    def setup(self, cell: Cell) -> Sequence[str]:
        return PLANS["index" if cell.shape == "index" else "sequential"].split("; ")

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        table = self.table_of(cell)
        if cell.shape == "copy":
            return [f"select bench_copied('{table}'), 0, 0"]
        if cell.shape == "untouched":
            return [scan("key, note as payload", f"from {table} offset 0")]
        if cell.shape == "sequential":
            return [scan("key, payload", f"from {table} offset 0")]
        first = self.random(cell, rep).randrange(self.table_rows - cell.size)
        return [scan("key, payload", f"from {table} where key between {first} and {first + cell.size - 1} order by key offset 0")]


class Sized(Documents):
    """jsonb documents, of which one value is wanted; the shape has their size in kB.

    index       a tenth of the rows, in the order of a random key
    sequential  the whole table
    copy        the same by COPY TO, all of each document
    """

    name = "sized"
    source = "our own: jsonb out of line"

    def cells(self) -> Iterator[Cell]:
        for storage in ("external", "extended"):
            for kilobytes, rows in DOCUMENT_ROWS.items():
                for access in ("index", "sequential", "copy"):
                    size = rows // 10 if access == "index" else rows
                    for state in (COLD,) if access == "copy" or self.scope.quick else (COLD, CACHED):
                        yield Cell(self.name, storage, f"{access}{kilobytes}", size, state)

    def table_of(self, cell: Cell) -> str:
        return f"bench_{cell.data}_{kilobytes_of(cell)}"

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        for cell in cells:
            ensure_table(server, connection, self.table_of(cell), DOCUMENT_ROWS[kilobytes_of(cell)])
        connection.execute(COPIED)

    def setup(self, cell: Cell) -> Sequence[str]:
        return PLANS["index" if cell.shape.startswith("index") else "sequential"].split("; ")

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        table = self.table_of(cell)
        if cell.shape.startswith("copy"):
            return [f"select bench_copied('{table}'), 0, 0"]
        where = ""
        if cell.shape.startswith("index"):
            first = self.random(cell, rep).randrange(DOCUMENT_ROWS[kilobytes_of(cell)] - cell.size)
            where = f"where key between {first} and {first + cell.size - 1} order by key"
        return [scan("key, payload->>'number' as payload", f"from {table} {where} offset 0")]


def kilobytes_of(cell: Cell) -> int:
    """The size of a document of Sized."""
    return int(cell.shape.lstrip("abcdefghijklmnopqrstuvwxyz"))
