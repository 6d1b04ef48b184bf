"""Ask every query in every way, cold and cached, and compare what came back.

Variants take turns inside each repetition, so that a slow moment of the machine hits all
of them.  The time is the client's: from sending the query until the last row is here.

Compared: stock and look-ahead must return the same rows in the same order and have the
same EXPLAIN text; the bitmap scan must return the same rows in any order.

Cached, stock is asked in a second session as well: by so much as it differs from itself, any
two may differ by chance.
"""

from __future__ import annotations

import statistics
import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Callable, Sequence

import psycopg

from lookbench.relations import blocks_read
from lookbench.server import Server
from lookbench.variants import Variant

from .queries import Query

COLD_BUFFERS = "128MB"
CACHED_BUFFERS = "512MB"  # for all that the bitmap scan of the range has to read
COLD_REPETITIONS = 3
CACHED_REPETITIONS = 9
CACHED_ATTEMPTS = 3
AGAIN = "again"  # stock, in a second session
TABLES = ("files",)

Tick = Callable[[str], None]


@dataclass
class Outcome:
    """One variant of one query."""

    times: list[float] = field(default_factory=list)  # milliseconds
    rows: int = 0
    blocks: int = 0  # that were not in shared_buffers
    plan: str = ""
    ordered: str = ""  # digest of the rows as they came
    sorted: str = ""  # digest of the sorted rows

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def blocks_per_second(self) -> float:
        return self.blocks / self.median * 1000


def _digest(rows: Sequence[tuple[str, ...]]) -> str:
    return sha256("\n".join("\t".join(row) for row in rows).encode()).hexdigest()


class Contest:
    def __init__(self, server: Server, variants: Sequence[Variant]) -> None:
        self.server = server
        self.variants = list(variants)
        self.complaints: list[str] = []

    def _ask(self, connection: psycopg.Connection, query: Query, outcome: Outcome) -> None:
        """Once: time, rows, digests, blocks read."""
        results = []
        before = blocks_read(connection, TABLES)
        began = time.perf_counter()
        for statement in query.statements:
            results.append(connection.execute(statement))
        outcome.times.append((time.perf_counter() - began) * 1000)
        outcome.blocks = blocks_read(connection, TABLES) - before
        rows = [row for result in results for row in result.fetchall()]
        outcome.rows = len(rows)
        outcome.ordered = _digest(rows)
        outcome.sorted = _digest(sorted(rows))

    @staticmethod
    def explain(connection: psycopg.Connection, query: Query, options: str = "") -> str:
        # it also brings the catalog entries into memory that every connection needs
        rows = connection.execute(f"explain {options} {query.statements[0]}")
        return "\n".join(row[0] for row in rows)

    def restart_cold(self, variant: Variant) -> None:
        self.server.restart_cold(dict(variant.server) | {"shared_buffers": COLD_BUFFERS})

    @staticmethod
    def _turns(variants: list[Variant], repetition: int) -> list[Variant]:
        first = repetition % len(variants)
        return variants[first:] + variants[:first]

    def cold(self, query: Query, tick: Tick) -> dict[str, Outcome]:
        outcomes = {variant.name: Outcome() for variant in self.variants}
        for repetition in range(COLD_REPETITIONS):
            for variant in self._turns(self.variants, repetition):
                tick(variant.name)
                self.restart_cold(variant)
                with closing(self.server.connect(variant.session)) as connection:
                    outcomes[variant.name].plan = self.explain(connection, query)
                    self._ask(connection, query, outcomes[variant.name])
        self._compare(query, "cold", outcomes)
        return outcomes

    def cached(self, query: Query, tick: Tick) -> dict[str, Outcome]:
        """Everything that the query touches is in shared_buffers, which the counters confirm."""
        self.server.stop()
        self.server.start(dict(self.variants[0].server) | {"shared_buffers": CACHED_BUFFERS})
        variants = [*self.variants, replace(self.variants[0], name=AGAIN)]
        outcomes = {variant.name: Outcome() for variant in variants}
        connections = {variant.name: self.server.connect(variant.session) for variant in variants}
        try:
            for variant in variants:
                connection, outcome = connections[variant.name], outcomes[variant.name]
                outcome.plan = self.explain(connection, query)
                for _ in range(CACHED_ATTEMPTS):
                    self._ask(connection, query, outcome)
                    if outcome.blocks == 0:
                        break
                else:
                    self.complaints.append(f"{_flat(query)}: the query does not fit into shared_buffers")
                outcome.times.clear()
            for repetition in range(CACHED_REPETITIONS):
                for variant in self._turns(variants, repetition):
                    tick(variant.name)
                    self._ask(connections[variant.name], query, outcomes[variant.name])
        finally:
            for connection in connections.values():
                connection.close()
        self._compare(query, "cached", outcomes)
        return outcomes

    def _compare(self, query: Query, state: str, outcomes: dict[str, Outcome]) -> None:
        stock = outcomes[self.variants[0].name]
        for variant in self.variants:
            outcome = outcomes[variant.name]
            where = f"{_flat(query)}, {state}, {variant.name}"
            if variant.node not in outcome.plan:
                self.complaints.append(f"{where}: the plan has no {variant.node}")
            if outcome.sorted != stock.sorted:
                self.complaints.append(f"{where}: other rows than stock")
            if not variant.is_bitmap and outcome.ordered != stock.ordered:
                self.complaints.append(f"{where}: another order than stock")
            if not variant.is_bitmap and outcome.plan != stock.plan:
                self.complaints.append(f"{where}: another plan than stock")


def _flat(query: Query) -> str:
    return query.title.replace("\n", " ")
