"""A workload whose statements change something: they build an index, or insert rows.

Such a statement cannot be executed twice alike, and has no plan to compare.  A sample is

    prepare()      what the statement needs, made anew; pg_lookahead is off
    CHECKPOINT     so that all statements begin with the same amount of work in the background
    (a cell that is not cached enters its state now)
    setup()        in each session
    statements()   each in a session of its own, all at once; the time until the last one has ended
    finish()       in each session, which may undo all
    outcome()      what has come out of it, with pg_lookahead off: it must be sound, and the same for
                   all variants

Tables that are read lie in shared_buffers, as in all cached cells: blocks of them that had to be
read are a problem; so do their indexes, where statements use those (`with_indexes`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Mapping, Sequence

import psycopg

from ..server import Server
from .base import Cell, Index, Workload

MEGABYTE = 2**20
SPARE = 512  # megabytes of shared_buffers for catalogs and the like


@dataclass(frozen=True)
class Outcome:
    rows: int
    checksum: str
    facts: Mapping[str, int] = field(default_factory=dict)  # for categories.csv


class Changing(Workload):
    free_plans = True  # there are none that variants could ask for
    exact = False  # variants must have the same checksum, or the cell has failed
    tried = False  # if cached, executed once before the samples that count, in each server that is started
    with_indexes = False  # of tables(), which are made warm and whose reads are counted with them

    def has_bitmap(self, cell: Cell) -> bool:
        return False

    def index(self, cell: Cell) -> Index | None:
        return None

    def warmed(self, cell: Cell) -> Sequence[str]:
        return self.tables(cell)

    def server(self, cell: Cell) -> Mapping[str, str]:
        """Everything is logged, and nothing but us starts a checkpoint."""
        return {
            "shared_buffers": f"{self.buffers() // MEGABYTE + SPARE}MB",
            "wal_level": "replica",
            "min_wal_size": "2GB",  # segments of the log are used again instead of made
            "max_wal_size": "32GB",
            "checkpoint_timeout": "1h",
        }

    @abstractmethod
    def buffers(self) -> int:
        """Bytes that all its tables take, and what grows in shared_buffers."""

    @abstractmethod
    def prepare(self, connection: psycopg.Connection, cell: Cell, rep: int) -> None: ...

    def finish(self, cell: Cell) -> Sequence[str]:
        """Executed in each session when the time has been taken; queries return numbers."""
        return ()

    def definition(self, cell: Cell, rep: int) -> str:
        """For plans.txt."""
        return ";\n".join(self.statements(cell, rep))

    @abstractmethod
    def outcome(self, server: Server, connection: psycopg.Connection, cell: Cell, rep: int, told: Sequence[int]) -> Outcome:
        """told: the rows that the sessions' (first) statements have written, then the sums of what `finish` has returned."""
