"""Bitmap scans with look-ahead and without, at the server's own settings.

Source: our own.  A bitmap heap scan reads ahead as far as effective_io_concurrency allows, by
default 1 before PostgreSQL 18 and 16 since; the bitmap index scans below it read page after
page in all versions.  So stock and look-ahead are the same bitmap scan here, neither of them
with other settings of the server than the default ones; the variants bitmap-* show what
effective_io_concurrency alone can do.

  bitmap      btree.  Its shapes are
    heap        scattered rows of bench_points: the table's pages are what is waited for
    range       of bench_grown, whose table lies in shared_buffers: only the leaf pages of
                its index are read, which lie in random order
    and, or     two such ranges by two indexes; the size is that of each
  bitmap-gin  three keys or more of bench_documents, ten queries.  The size is the number of
              keys that are searched for; its shapes are
    words       documents that contain all of these words (full text)
    facts       documents with these attributes (jsonb @>)
    like        titles that contain a text with so many trigrams
    similar     titles that are similar to a text with so many trigrams
"""

from __future__ import annotations

import random
from typing import Callable, Iterator, Mapping, Sequence

import psycopg

from ..datasets import ensure_index, ensure_table
from ..documents import ATTRIBUTES, word
from ..server import Server
from .base import CACHED, COLD, Cell, Index, Workload, scan

HEAP = "heap"
HEAP_SIZES = (1_000, 10_000, 100_000)
RANGE_SIZES = (100_000, 1_000_000)
BOTH_SIZES = (100_000,)
QUICK_SIZES = (10_000,)
CACHED_SIZES = (10_000, 100_000)
NODES = {"and": "BitmapAnd", "or": "BitmapOr"}
GROWN = "bench_grown"
GROWN_COLUMNS = ("a", "b")
GROWN_BUFFERS = "256MB"  # hold the whole table and what is read of an index

QUERIES = 10
CACHED_QUESTIONS = (("words", 3), ("facts", 3), ("like", 11))
QUICK_QUESTIONS = (("words", 3), ("like", 11))
# ranks of words: the r-th one is drawn with a probability of about 0.1 / r
FREQUENT = (5, 60)
COMMON = (50, 400)
MIDDLING = (100, 2_000)
RARE = (5_000, 15_000)


class Bitmap(Workload):
    name = "bitmap"
    source = "our own: bitmap scans"
    table = "bench_points"
    bitmap_scans = True
    all_bitmaps = True
    bytes_per_row = 130  # with those of bench_grown

    @property
    def table_rows(self) -> int:
        return self.scope.rows

    def cells(self) -> Iterator[Cell]:
        quick = self.scope.quick
        sizes: Mapping[str, Sequence[int]] = {
            HEAP: QUICK_SIZES if quick else HEAP_SIZES,
            "range": QUICK_SIZES if quick else RANGE_SIZES,
        } | {shape: QUICK_SIZES if quick else BOTH_SIZES for shape in NODES}
        for shape in sizes:
            for size in sizes[shape]:
                data = "scattered" if shape == HEAP else "grown"
                yield Cell(self.name, data, shape, size, COLD)
                if size in CACHED_SIZES and not quick:
                    yield Cell(self.name, data, shape, size, CACHED)

    def tables(self, cell: Cell) -> Sequence[str]:
        return (self.table,) if cell.shape == HEAP else (GROWN,)

    def index(self, cell: Cell) -> Index:
        if cell.shape == HEAP:
            return Index(self.table, f"{self.table}_rnd", "rnd")
        return Index(GROWN, f"{GROWN}_{GROWN_COLUMNS[0]}", GROWN_COLUMNS[0])

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        rows = {self.table: self.table_rows, GROWN: self.scope.grown_rows}
        for table in sorted({table for cell in cells for table in self.tables(cell)}):
            ensure_table(server, connection, table, rows[table])
        # those of bench_grown were made with it
        for index in {self.index(cell) for cell in cells if cell.shape == HEAP}:
            ensure_index(connection, index)

    def warmed(self, cell: Cell) -> Sequence[str]:
        if cell.shape == HEAP:
            return super().warmed(cell)
        return (GROWN, *(f"{GROWN}_{column}" for column in GROWN_COLUMNS))

    def in_memory(self, cell: Cell) -> Sequence[str]:
        return () if cell.shape == HEAP else (GROWN,)

    def server(self, cell: Cell) -> Mapping[str, str]:
        return {"shared_buffers": GROWN_BUFFERS} if cell.state == COLD and cell.shape != HEAP else {}

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        draw = self.random(cell, rep)
        if cell.shape == HEAP:
            first = draw.randrange(self.table_rows - cell.size)
            return [scan("rnd as key, payload", f"from {self.table} where rnd between {first} and {first + cell.size - 1}")]
        columns = GROWN_COLUMNS if cell.shape in NODES else GROWN_COLUMNS[:1]
        firsts = [draw.randrange(self.scope.grown_rows - cell.size) for _ in columns]
        ranges = (f"{column} between {first} and {first + cell.size - 1}" for column, first in zip(columns, firsts))
        return [f"select count(*), sum(a), sum(b) from {GROWN} where " + f" {cell.shape} ".join(ranges)]

    def in_plan(self, cell: Cell) -> Sequence[str]:
        return (NODES[cell.shape],) if cell.shape in NODES else ()


class BitmapGin(Workload):
    name = "bitmap-gin"
    source = "our own: bitmap scans of GIN indexes"
    table = "bench_documents"
    extensions = ("pg_trgm",)
    bitmap_scans = True
    all_bitmaps = True
    size_is = "keys"
    bytes_per_row = 1000

    @property
    def table_rows(self) -> int:
        return self.scope.document_rows

    def cells(self) -> Iterator[Cell]:
        for shape, keys in QUICK_QUESTIONS if self.scope.quick else _QUESTIONS:
            yield Cell(self.name, "documents", shape, keys, COLD)
            if (shape, keys) in CACHED_QUESTIONS and not self.scope.quick:
                yield Cell(self.name, "documents", shape, keys, CACHED)

    def index(self, cell: Cell) -> None:
        """They are all made with the table."""
        return None

    def index_name(self, cell: Cell) -> str:
        return f"{self.table}_{_INDEXES[cell.shape]}"

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        draw = self.random(cell, rep)
        question = _QUESTIONS[cell.shape, cell.size]
        return [scan("id as key, title as payload", f"from {self.table} where {question(draw)}") for _ in range(QUERIES)]

    def in_plan(self, cell: Cell) -> Sequence[str]:
        return (self.index_name(cell),)

    def seconds(self, cell: Cell) -> float:
        return 0.1


def _words(draw: random.Random, ranks: tuple[int, int], count: int) -> list[str]:
    return [word(rank) for rank in draw.sample(range(*ranks), count)]


def _text(draw: random.Random) -> str:
    return f"to_tsvector('simple', body) @@ '{' & '.join(_words(draw, COMMON, 3))}'::tsquery"


def _facts(draw: random.Random, count: int) -> str:
    facts = ", ".join(f'"{name}": {draw.randrange(values)}' for name, values in list(ATTRIBUTES.items())[:count])
    return f"facts @> '{{{facts}}}'"


def _part(draw: random.Random) -> str:
    """Five letters: three trigrams."""
    return f"title like '%{_words(draw, RARE, 1)[0][:5]}%'"


def _pair(draw: random.Random) -> str:
    """Two words side by side: of the first one four trigrams and its end, of the second its two beginnings and four."""
    return f"title like '%{' '.join(_words(draw, FREQUENT, 2))}%'"


def _similar(draw: random.Random) -> str:
    """Three words: of each four trigrams, two beginnings and its end."""
    return f"title % '{' '.join(_words(draw, MIDDLING, 3))}'"


# shape and number of keys -> the condition
_QUESTIONS: Mapping[tuple[str, int], Callable[[random.Random], str]] = {
    ("words", 3): _text,
    ("facts", 3): lambda draw: _facts(draw, 3),
    ("facts", 5): lambda draw: _facts(draw, 5),
    ("like", 3): _part,
    ("like", 11): _pair,
    ("similar", 21): _similar,
}
_INDEXES = {"words": "words", "facts": "facts", "like": "title", "similar": "title"}
