"""What a workload is: its cells, and the statements that measure one.

A cell is one line of the result: data, shape of query, size and state of the caches.
Most workloads only say which statements belong to a cell; the runner executes them
once per repetition and takes the time at the client.  A statement is an aggregate over
the scan, so that every row is fetched and hardly anything is sent:

    select count(*), sum(key), sum(hashtext(payload)) from (...) scan

A workload that measures throughput overrides `throughput` instead.  One whose plans are the
planner's own choice (whole queries) sets `free_plans`: then there are no bitmap variants, and
stock and look-ahead must have the same plan, whichever it is.  One whose plans are index-only
scans sets `index_only`, one that compares bitmap scans with themselves `bitmap_scans`.  One whose
statements each need a new session overrides `fresh`.  What else a sample should tell goes through
`counters`.  Workloads whose statements change something are in `changing.py`.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Mapping, Sequence

import psycopg

from ..datasets import ensure_index, ensure_table
from ..server import Server

COLD = "cold"
CACHED = "cached"
OS_CACHED = "os-cached"

# Kinds of plans that may be better than the planner's choice, by what they forbid.
_NO_BITMAP = {"enable_bitmapscan": "off"}
FORCED: Mapping[str, Mapping[str, str]] = {
    "forced-sequential": {"enable_indexscan": "off", "enable_indexonlyscan": "off", "enable_bitmapscan": "off"},
    "forced-bitmap": {"enable_indexscan": "off", "enable_indexonlyscan": "off", "enable_seqscan": "off"},
    "forced-index": {"enable_seqscan": "off"} | _NO_BITMAP,
    "forced-nestloop": {"enable_hashjoin": "off", "enable_mergejoin": "off"} | _NO_BITMAP,
    "forced-hash": {"enable_nestloop": "off", "enable_mergejoin": "off"},
}


@dataclass(frozen=True)
class Scope:
    """How much is to be measured."""

    rows: int  # of bench_points
    limit_rows: int  # of bench_limit
    pgbench_rows: int  # of pgbench_accounts
    shape_rows: int  # of bench_shapes
    vector_rows: int  # of bench_vectors
    part_rows: int  # of bench_parts
    wide_rows: int  # of bench_wide
    tpch_scales: Sequence[int]  # scale factors
    quick: bool
    seconds: int  # of one pgbench run
    paid_rows: int  # of bench_paid
    full: bool  # every combination, where a workload has a selection otherwise
    grown_rows: int  # of bench_grown
    star_rows: int  # of star.facts
    document_rows: int  # of bench_documents


@dataclass(frozen=True)
class Cell:
    workload: str
    data: str
    shape: str
    size: int
    state: str

    @property
    def key(self) -> str:
        return f"{self.workload}/{self.data}/{self.shape}/{self.size}/{self.state}"


@dataclass(frozen=True)
class Index:
    table: str
    name: str
    expression: str
    method: str = "btree"
    options: str = ""  # as in WITH (...)


@dataclass(frozen=True)
class Throughput:
    """What pgbench runs, with prepared statements, for a fixed time."""

    scripts: Sequence[tuple[int, str]]  # weight and text of each
    clients: int = 1
    times: int = 1  # as long as other pgbench runs
    by_client: bool = False  # how the clients fared is recorded among the counters


@dataclass(frozen=True)
class Fresh:
    """Each statement of a sample is executed in a session that has executed nothing before."""

    earlier: Sequence[str] = ()  # what another session, which is gone by then, has executed in this server
    restart: bool = False  # the server is started cold for each of them


class Workload(ABC):
    name: str
    source: str  # where the workload comes from
    table: str
    extensions: Sequence[str] = ()  # that its table or indexes need
    free_plans = False  # the planner chooses
    plans_differ = False  # its variants are about plans: look-ahead need not have that of stock
    all_bitmaps = False  # all candidates for the best bitmap scan take part, not only the first
    index_only = False  # plans are index-only scans where others have index scans
    bitmap_scans = False  # plans are bitmap scans at the server's own settings where others have index scans
    size_is = "rows"  # what the size of its cells counts
    switches: Mapping[str, str] = {}  # what look-ahead variants set besides pg_lookahead.enable
    not_beside: Sequence[Path] = ()  # servers beside that cannot do it, by their programs
    lacking: Sequence[str] = ()  # which of them the library does not know; then there is no look-ahead
    bytes_per_row = 0  # of the table with its indexes, roughly; for the forecast of space

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    @property
    @abstractmethod
    def table_rows(self) -> int:
        """Rows of its table."""

    @abstractmethod
    def cells(self) -> Iterator[Cell]: ...

    @abstractmethod
    def index(self, cell: Cell) -> Index | None:
        """The index that the cell's plan uses; None: made with the table."""

    def tables(self, cell: Cell) -> Sequence[str]:
        """The tables that a cell reads; they bring all their indexes along when warmed or counted."""
        return (self.table,)

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        """Make tables and indexes that these cells need, unless they are there."""
        ensure_table(server, connection, self.table, self.table_rows)
        for index in {index for cell in cells if (index := self.index(cell))}:
            ensure_index(connection, index)

    def index_name(self, cell: Cell) -> str:
        index = self.index(cell)
        return index.name if index else f"{self.table}_pkey"

    def warmed(self, cell: Cell) -> Sequence[str]:
        """What cached and os-cached cells have in memory."""
        return (*self.tables(cell), self.index_name(cell))

    def in_memory(self, cell: Cell) -> Sequence[str]:
        """What lies in shared_buffers even if the cell is cold."""
        return ()

    def obstacle(self, server: Server, uring: bool) -> str | None:
        """Why it cannot be measured on that server; uring: whether io_uring works."""
        missing = [name for name in self.extensions if not server.has_extension(name)]
        return f"{', '.join(missing)} is not installed" if missing else None

    def server(self, cell: Cell) -> Mapping[str, str]:
        """Server settings of all variants; a variant that contradicts them is left out."""
        return {}

    def setup(self, cell: Cell) -> Sequence[str]:
        """Executed in the session before anything is measured."""
        return ()

    @abstractmethod
    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        """Executed and timed one after another; also used to compare plans and rows."""

    def has_bitmap(self, cell: Cell) -> bool:
        """Whether a bitmap scan is a sensible competitor."""
        return True

    def forced(self, cell: Cell) -> Mapping[str, Mapping[str, str]]:
        """More variants, which look ahead, with these settings of the planner."""
        return {}

    def in_plan(self, cell: Cell) -> Sequence[str]:
        """What the plans of all variants must name, besides the scan that the variant is about."""
        return ()

    def fresh(self, cell: Cell) -> Fresh | None:
        """For cells whose statements are each executed in a session of its own."""
        return None

    def execute(self, connection: psycopg.Connection, statements: Sequence[str]) -> tuple[int, str]:
        """Run them all; the number of rows, and a checksum that tells whether they are the same."""
        count = keys = payloads = 0
        for statement in statements:
            row = connection.execute(statement).fetchone()
            if row is not None:
                count += row[0]
                keys += row[1] or 0
                payloads += row[2] or 0
        return count, f"{keys}:{payloads}"

    def seconds(self, cell: Cell) -> float | None:
        """A guess at how long stock takes for one sample, where its size is not a number of rows."""
        return None

    def throughput(self, cell: Cell) -> Throughput | None:
        """For cells that are measured as throughput: what pgbench runs."""
        return None

    def counters(self, connection: psycopg.Connection, cell: Cell) -> Mapping[str, int]:
        """Counters whose growth during a sample is recorded in categories.csv."""
        return {}

    def random(self, cell: Cell, rep: int) -> random.Random:
        """Parameters differ between repetitions and not between variants."""
        return random.Random(f"{cell.data}/{cell.shape}/{cell.size}/{rep}")


# a sample of short queries executes them more than once, each time with other values, or it
# would measure noise: up to this size so often
EXECUTIONS = {10: 40, 100: 20, 1_000: 4}


def executions(size: int) -> int:
    return next((times for most, times in EXECUTIONS.items() if size <= most), 1)


def scan(columns: str, source: str) -> str:
    """The aggregate over rows of `source`, which yields (key, payload)."""
    return f"select count(*), sum(key), sum(hashtext(payload)) from (select {columns} {source}) scan"
