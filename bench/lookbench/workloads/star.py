"""Generated star queries: is the plan that the planner chooses one of the better ones?

Source: our own.  A table of facts refers to four dimensions: evenly, skewed (a value is the rarer
the larger it is), by a value that is correlated with the place in the table, and by one that
depends on another reference.  Dimensions have a column for each selectivity, and one that tells
nothing new.  Each query joins two to four of them, with conditions that leave one row in ten to one
in ten thousand of a dimension, and sometimes a range of the facts' days.

  q00 .. q23            serial, of seeds 0 to 23
  q00-parallel ..       the same with two workers

Besides the variants that are asked for, each cold cell has those of FORCED, which look ahead as well
and forbid kinds of plans.  The regret of a variant is the time that it takes more than the best of all
variants of the cell (`bench/summarize --plans`).  Cached cells have none of them.
"""

from __future__ import annotations

import random
from typing import Iterator, Mapping, Sequence

import psycopg

from ..datasets import is_done, note_done
from ..server import Server
from .base import CACHED, COLD, FORCED, Cell, Index, Workload

PARALLEL = "-parallel"
QUERIES = 24
QUICK_QUERIES = 6
DIMENSIONS = {"even": 100_000, "skewed": 50_000, "placed": 20_000, "dependent": 10_000}
SELECTIVITIES = (10, 10, 100, 100, 1_000, 10_000)  # one row in so many; rare ones often leave nothing to join

FACTS = "star.facts"
FACTS_SCRIPT = """
create table star.facts (even int, skewed int, placed int, dependent int, day int, amount int, note text);
insert into star.facts
    select (e * 100000)::int, least((s * s * s * 50000)::int, 49999),
        least(greatest((i::float8 / {rows} * 20000 + (p - 0.5) * 400)::int, 0), 19999),
        ((e * 100000)::int % 10000 + (d * 10)::int) % 10000, (i / ({rows} / 1000))::int, (d * 1000)::int,
        repeat('n', 40 + (p * 80)::int)
    from (select i, random() as e, random() as s, random() as p, random() as d from generate_series(0, {rows} - 1) i) r;
create index on star.facts (even);
create index on star.facts (skewed);
create index on star.facts (placed);
create index on star.facts (dependent);
create index on star.facts (day);
"""
DIMENSION_SCRIPT = """
create table star.{name} (id int primary key, in10 int, in100 int, in1000 int, in10000 int, also10 int, label text);
insert into star.{name}
    select i, h % 10, h % 100, h % 1000, h % 10000, h % 10 / 2, repeat('l', 100)
    from (select i, hashint4(i) & 2147483647 as h from generate_series(0, {rows} - 1) i) r;
create index on star.{name} (in1000);
create index on star.{name} (in10000);
"""


class Star(Workload):
    name = "star"
    source = "our own"
    table = FACTS
    free_plans = True
    plans_differ = True
    bytes_per_row = 300

    @property
    def table_rows(self) -> int:
        return self.scope.star_rows

    def cells(self) -> Iterator[Cell]:
        queries = [f"q{number:02}" for number in range(QUICK_QUERIES if self.scope.quick else QUERIES)]
        for state in (COLD, CACHED):
            for shape in (*queries, *(query + PARALLEL for query in queries if not self.scope.quick)):
                yield Cell(self.name, "skewed", shape, self.table_rows, state)

    def tables(self, cell: Cell) -> Sequence[str]:
        return (FACTS, *(f"star.{name}" for name in DIMENSIONS))

    def index(self, cell: Cell) -> Index | None:
        return None

    def forced(self, cell: Cell) -> Mapping[str, Mapping[str, str]]:
        return FORCED if cell.state == COLD else {}

    def seconds(self, cell: Cell) -> float:
        return self.table_rows / 5e6

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        if is_done(connection, "star", self.table_rows):
            return
        connection.execute("drop schema if exists star cascade")
        connection.execute("create schema star")
        connection.execute("select setseed(0.5)")
        connection.execute("set maintenance_work_mem = '1GB'")
        scripts = [FACTS_SCRIPT.format(rows=self.table_rows)]
        scripts += [DIMENSION_SCRIPT.format(name=name, rows=rows) for name, rows in DIMENSIONS.items()]
        for statement in ";".join(scripts).split(";"):
            if statement.strip():
                connection.execute(statement)
        connection.execute("reset maintenance_work_mem")
        note_done(connection, "star", self.table_rows, self.tables(cells[0]))

    def setup(self, cell: Cell) -> Sequence[str]:
        workers = 2 if cell.shape.endswith(PARALLEL) else 0
        return ["set work_mem = '256MB'", f"set max_parallel_workers_per_gather = {workers}", "set statement_timeout = '10min'"]

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        """The same in all repetitions: it is about plans, and those depend on the values."""
        return [star_query(int(cell.shape[1:3]))]


def star_query(seed: int) -> str:
    """A query over some of the dimensions."""
    chance = random.Random(f"star/{seed}")
    names = chance.sample(list(DIMENSIONS), chance.randint(2, 4))
    conditions = []
    for name in names:
        one_in = chance.choice(SELECTIVITIES)
        value = chance.randrange(one_in)
        conditions.append(f"{name}.in{one_in} = {value}")
        if chance.random() < 0.3:
            # says what the last digit has said, if that agrees
            conditions.append(f"{name}.also10 = {value % 10 // 2}")
    if chance.random() < 0.4:
        first = chance.randrange(1000)
        conditions.append(f"f.day between {first} and {first + chance.choice((1, 10, 100))}")
    joins = " ".join(f"join star.{name} on {name}.id = f.{name}" for name in names)
    return (
        "select count(*), sum(f.amount), sum(hashtext(f.note)) "
        f"from star.facts f {joins} where {' and '.join(conditions)}"
    )
