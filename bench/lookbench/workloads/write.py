"""Rows written to tables and indexes larger than memory, and to cached ones.

Source: our own; the waits are those of PostgreSQL's own insertion, one leaf page after the other.

  data       what is written (../written.py says more)
  four       a table with four btree indexes of random integers; three, two, one: with fewer of them
  uuid       a table with one unique index of random UUIDs (v4)
  int, uuid4, uuid7, text, composite, partial, hash
             a wide table with one index of that kind; UUIDs are unique, and uuid7 are ordered by time
  five       the same table with all of these but uuid7 and hash
  parts      a table of 16 hash partitions with three indexes each
  child      a table that refers to random rows of another one, with an index on the reference
  refs-N     a table without indexes that refers to random rows of one, two or three others
  parent     a table to whose rows others refer: CHILDREN for each, anywhere in their table
  parent-N   the same with N children each
  single     an empty table with four indexes

  shape      how
  insert     INSERT ... SELECT from a table that is cached; single: one row each, by pgbench
  sorted     the same in the order of the first index: what users do about it themselves
  copy       COPY FROM a file
  upsert-N   INSERT ... ON CONFLICT DO UPDATE, where N % of the keys are there already
  merge-N    MERGE that does the same, by a nested loop
  update     UPDATE of an indexed column, of rows found in the order of the table
  cascade    DELETE of parents with ON DELETE CASCADE
  ...-x4     by four sessions at the same time, each a quarter of the rows
  ...-fpwoff full_page_writes = off; it is on otherwise
  ...-fsync  fsync = on, and the time includes making the log durable

The size is a number of rows (of single: clients).  Each sample writes other rows in a transaction
that is rolled back when the time has been taken: the entries that it leaves in indexes are dead,
and few beside the others; a VACUUM comes before there are too many.  Indexes that a cell does
without are dropped at the beginning of that transaction, and back again after it.  A sample
must have written as many rows as its size says; how many rows of each table were inserted, updated
and deleted must be the same for all variants.  test/ compares what writes do.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Iterator, Mapping, Sequence

import psycopg

from ..datasets import ensure_table, is_done
from ..relations import total_size
from ..server import Server, ServerError
from ..written import CHILDREN, FOUR, KINDS, PARENTS, REFERRED, random_integers, referring, time_uuid
from .base import CACHED, COLD, OS_CACHED, Cell, Scope, Throughput
from .changing import MEGABYTE, Changing, Outcome

ROWS = "bench_write_rows"  # what a sample writes
FILE = "bench_write_%s.copy"  # the same for COPY, in the data directory, for each session
FLUSH = "bench_write_flush"
SINGLE = "bench_write_single"
SHARE = 5  # table_rows of bench_points for two rows here
BUFFERS = 512  # megabytes
GROWTH = 1024  # megabytes that cached tables may grow by, and what else is in shared_buffers
BYTES = 750  # of a row in all tables, with indexes
DEAD_SHARE = 20  # a table is vacuumed when one of so many rows is dead, which leaves room on leaf pages 90 % full
DEAD_LEAST = 100_000
STEP = 1_000_003  # prime, and no divisor of a number of rows: its multiples visit all of them
PGBENCH_TIMES = 2

# of a row, for the forecast of time
READS = {"four": 2, "five": 2, "parts": 2, "child": 3, "refs-2": 2, "refs-3": 3, "parent": 7, "parent-1": 3, "parent-10": 10, "parent-1000": 500}
MOST_READS = 120_000

SESSIONS = {"x4": 4}
FPW_OFF = "fpwoff"
FSYNC = "fsync"


@dataclass(frozen=True)
class Data:
    tables: Sequence[str]  # the first one is written to by the statement
    without: Sequence[str] = ()  # indexes of it


def _four(count: int) -> Data:
    return Data(("bench_write_four",), [f"bench_write_four_{column}_idx" for column in FOUR[count:]])


def _kinds(*names: str) -> Data:
    return Data(("bench_write_kinds",), [f"bench_write_kinds_{name}" for name in KINDS if name not in names])


DATA: Mapping[str, Data] = {
    "four": _four(4), "three": _four(3), "two": _four(2), "one": _four(1),
    "uuid": Data(("bench_write_uuid",)),
    **{name: _kinds(name) for name in KINDS},
    "five": _kinds("int", "uuid4", "text", "composite", "partial"),
    "parts": Data(("bench_write_parts",)),
    "child": Data(("bench_write_child", "bench_write_parent")),
    **{f"refs-{n}": Data((f"bench_write_refs_{n}", *REFERRED[:n])) for n in range(1, len(REFERRED) + 1)},
    "parent": Data(("bench_write_parent", "bench_write_child")),
    **{f"parent-{n}": Data((f"bench_write_parent_{n}", f"bench_write_child_{n}")) for n in PARENTS},
    "single": Data((SINGLE,)),
}

# data/shape/size: of cells that are measured by default ...
CORE: Mapping[str, Sequence[str]] = {
    COLD: (
        "four/insert/50000", "four/sorted/50000", "four/update/50000", "four/insert-x4/50000",
        "four/insert-fpwoff/50000", "four/insert-fsync/50000", "five/insert/50000",
        "uuid/insert/100000", "uuid/copy/100000", "uuid/upsert-0/100000", "uuid/upsert-50/100000",
        "uuid/upsert-100/100000", "uuid/merge-50/100000", "hash/insert/50000", "parts/insert/50000",
        "child/insert/20000", "refs-3/insert/20000",
        "parent/cascade/3000", "parent-1/cascade/10000", "parent-1000/cascade/20",
    ),
    CACHED: (
        "four/insert/100000", "four/update/100000", "five/insert/100000", "uuid/copy/200000", "uuid/upsert-50/200000",
        "child/insert/60000", "parent/cascade/9000", "single/insert/1",
    ),
    OS_CACHED: ("four/insert/50000", "uuid/copy/100000"),
}
# ... and with --full
FULL: Mapping[str, Sequence[str]] = {
    COLD: (
        "one/insert/50000", "two/insert/50000", "three/insert/50000", "four/copy/50000", "four/copy-x4/50000",
        "four/update-fpwoff/50000", "four/insert/1000000", "four/sorted/1000000", "four/copy/1000000",
        *(f"{kind}/{shape}/50000" for kind in KINDS for shape in ("insert", "copy") if f"{kind}/{shape}" != "hash/insert"),
        "five/sorted/50000", "five/copy/50000", "five/update/50000",
        "uuid/sorted/100000", "uuid/copy/50000", "uuid/copy-x4/100000", "uuid/copy-fpwoff/100000", "uuid/copy-fsync/100000",
        "uuid/upsert-50-x4/100000", "uuid/merge-0/100000", "uuid/merge-100/100000",
        "uuid/insert/1000000", "uuid/copy/1000000", "uuid/upsert-50/1000000",
        "parts/copy/50000", "parts/insert-x4/50000", "parts/insert/1000000",
        "child/insert-x4/20000", "child/insert-fpwoff/20000", "child/insert/1000000",
        "refs-1/insert/20000", "refs-2/insert/20000", "refs-1/insert/1000000",
        "parent-10/cascade/2000", "parent/cascade-fpwoff/3000",
    ),
    CACHED: (
        "one/insert/100000", "two/insert/100000", "three/insert/100000", "four/sorted/100000", "four/copy/100000",
        "four/insert-x4/100000", "four/insert-fpwoff/100000", "four/insert/1000000",
        *(f"{kind}/insert/100000" for kind in KINDS), "five/update/100000",
        "uuid/insert/200000", "uuid/upsert-0/200000", "uuid/upsert-100/200000", "uuid/merge-50/200000",
        "uuid/copy-x4/200000", "uuid/copy/1000000", "parts/insert/100000", "parts/copy/100000",
        "refs-1/insert/60000", "refs-2/insert/60000", "refs-3/insert/60000", "child/insert-x4/60000",
        "parent-1/cascade/30000", "parent-10/cascade/6000", "parent-1000/cascade/60", "single/insert/4",
    ),
    OS_CACHED: ("five/insert/50000", "four/update/50000", "uuid/upsert-50/100000", "child/insert/20000", "parent/cascade/3000"),
}
QUICK: Mapping[str, Sequence[str]] = {COLD: ("four/insert/5000", "child/insert/2000")}

SINGLE_ROW = "\n".join(
    ["\\set id random(1, 1000000000)", *(f"\\set {column} random(-2147483648, 2147483647)" for column in FOUR)]
    + [f"insert into {SINGLE} values (:id, {', '.join(f':{column}' for column in FOUR)}, 'x');\n"]
)


class Write(Changing):
    name = "write"
    source = "our own: rows written to tables with many indexes, foreign keys and cascades"
    table = "bench_write_four"
    bytes_per_row = BYTES
    with_indexes = True
    tried = True

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self._megabytes: dict[str, int] = {}  # of tables with their indexes
        self._indexes: dict[str, list[str]] = {}

    @property
    def table_rows(self) -> int:
        return self.scope.rows * 2 // SHARE

    def _rows_of(self, table: str) -> int:
        """What a table's script calls its rows."""
        kind, _, number = table.removeprefix("bench_write_").partition("_")
        if kind in ("parent", "child"):
            return int(self.table_rows // 1000 * PARENTS[int(number)]) if number else self.table_rows // CHILDREN
        shares = {"four": 1, "uuid": 1, "kinds": 2, "parts": 2, "referred": 10}
        return self.table_rows // shares[kind] if kind in shares else 0

    def buffers(self) -> int:
        return BUFFERS * MEGABYTE

    def server(self, cell: Cell) -> Mapping[str, str]:
        options = cell.shape.split("-")
        settings = {
            **super().server(cell),
            "full_page_writes": "off" if FPW_OFF in options else "on",
            "fsync": "on" if FSYNC in options else "off",
        }
        if cell.state == CACHED:
            settings["shared_buffers"] = f"{sum(self._megabytes.get(table, 0) for table in self.tables(cell)) + GROWTH}MB"
        return settings

    def cells(self) -> Iterator[Cell]:
        if self.scope.quick:
            selections = [QUICK]
        else:
            selections = [CORE, FULL] if self.scope.full else [CORE]
        for selection in selections:
            for state, names in selection.items():
                for name in names:
                    data, shape, size = name.split("/")
                    cell = Cell(self.name, data, shape, int(size), state)
                    if self._has_rows(cell):
                        yield cell

    def _has_rows(self, cell: Cell) -> bool:
        """Whether the table has the rows that a cell changes; a small one may not."""
        return _verb(cell) not in ("update", "upsert", "merge", "cascade") or cell.size <= self._rows_of(self.tables(cell)[0])

    def seconds(self, cell: Cell) -> float:
        # a row reads so many blocks, until all of them are there; with OVERHEAD, 3 seconds go by around a cold sample
        reads = min(cell.size * READS.get(cell.data, 1), MOST_READS) if cell.state == COLD else 0
        return {COLD: 2.5, CACHED: 1.5, OS_CACHED: 2}[cell.state] + 4e-5 * reads + 6e-6 * cell.size

    def tables(self, cell: Cell) -> Sequence[str]:
        return DATA[cell.data].tables

    def warmed(self, cell: Cell) -> Sequence[str]:
        return [name for table in self.tables(cell) for name in (table, *self._indexes[table])]

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        wanted = dict.fromkeys([*(table for cell in cells for table in self.tables(cell)), FLUSH])
        # who refers to others comes after them, and goes before them
        for table in sorted(wanted, key=lambda table: not referring(table)):
            rows = self._rows_of(table)
            if not is_done(connection, table, rows):
                for other in referring(table):
                    connection.execute(f"drop table if exists {other}")
                    connection.execute("delete from bench_done where name = %s", (other,))
            ensure_table(server, connection, table, rows)
            self._megabytes[table] = total_size(connection, [table]) // MEGABYTE + 1
            found = connection.execute("select indexrelid::regclass::text from pg_index where indrelid = %s::regclass", (table,))
            self._indexes[table] = [row[0] for row in found]

    # ---- a sample ---------------------------------------------------------

    def prepare(self, connection: psycopg.Connection, cell: Cell, rep: int) -> None:
        self._tidy(connection, cell)
        connection.execute(f"drop table if exists {ROWS}")
        connection.execute(f"create table {ROWS} as {self._new_rows(cell, rep)}")
        connection.execute(f"vacuum analyze {ROWS}")
        if _verb(cell) == "copy":
            row = connection.execute("show data_directory").fetchone()
            assert row is not None
            for number in range(_sessions(cell)):
                connection.execute(f"copy (select * from {ROWS}{_part(cell, number)}) to '{row[0]}/{FILE % number}'")

    def _tidy(self, connection: psycopg.Connection, cell: Cell) -> None:
        """What earlier samples have left is removed before it is much."""
        for table in self.tables(cell):
            row = connection.execute(
                "select coalesce(sum(pg_stat_get_dead_tuples(oid)), 0)"
                " from (select %(name)s::regclass::oid union select relid from pg_partition_tree(%(name)s)) tree(oid)", {"name": table}
            ).fetchone()
            if row is not None and row[0] > max(DEAD_LEAST, self._rows_of(table) // DEAD_SHARE):
                connection.execute(f"vacuum {table}")

    def _new_rows(self, cell: Cell, rep: int) -> str:
        """The query whose rows a sample writes."""
        rows, n = self._rows_of(self.tables(cell)[0]), cell.size
        # other rows in each sample, so that none meets the dead entries of another one's
        once = random.SystemRandom().getrandbits(40)
        series = f"from generate_series(1, {n}) i"
        if cell.data.startswith("parent"):
            # the same ones for all variants, since not all have the same number of children;
            # some more than needed, for two may have the same hash
            start = self.random(cell, rep).randrange(rows)
            key = f"hashint4((({start} + i::bigint * {STEP}) % {rows})::integer + 1)"
            return f"select k from (select {key} as k, min(i) as first from generate_series(1, {n + 100}) i group by 1) keys order by first limit {n}"
        if cell.data == "uuid":
            known = int(cell.shape.split("-")[1]) if _verb(cell) in ("upsert", "merge") else 0
            old = f"md5((({once % rows} + i::bigint * {STEP}) % {rows})::text)"
            order = "order by u" if _verb(cell) == "sorted" else ""
            return f"select case when i % 100 < {known} then {old} else md5('{once}/' || i) end::uuid as u, i as v {series} {order}"
        if cell.data.startswith(("child", "refs")):
            keys = (
                f"hashint4((hashint8extended(i, {once + seed}) & 2147483647)::integer % {self._rows_of(parent)} + 1) as k{seed}"
                for seed, parent in enumerate(self.tables(cell)[1:])
            )
            return f"select i::bigint as id, {', '.join(keys)} {series}"
        number = f"({once} + i)"
        if cell.data == "parts":
            return f"select {number} as id, {random_integers(number, 'ab')}, md5({number}::text)::uuid as u {series}"
        if self.tables(cell)[0] == "bench_write_kinds":
            # now, in hundredths of milliseconds
            moment = "(extract(epoch from clock_timestamp()) * 100000)::bigint + i"
            uuids = f"md5('{once}/' || i)::uuid as u, {time_uuid(moment, f'{number}::text')} as s"
            order = "order by i" if _verb(cell) == "sorted" else ""
            return (
                f"select * from (select {rows} + i as id, {random_integers(number, 'i', 3)}, hashint8({number}) & 1023 as g, {random_integers(number, 'kp')},"
                f" {uuids}, md5('t{once}/' || i) as t {series}) made {order}"
            )
        order = "order by a" if _verb(cell) == "sorted" else ""
        return f"select {rows} + i as id, {random_integers(number, FOUR)}, 'x' as t {series} {order}"

    def setup(self, cell: Cell) -> Sequence[str]:
        if cell.data == "single":
            return (f"truncate {SINGLE}", "checkpoint")
        # the rows that it writes are read before, and are none of its business
        found = ["begin", f"select count(*) from {ROWS}"]
        if _verb(cell) == "copy":
            found += [f"select length(pg_read_binary_file('{FILE % number}'))" for number in range(_sessions(cell))]
        if _verb(cell) == "merge":
            found += ["set local enable_hashjoin = off", "set local enable_mergejoin = off"]
        return [*found, *(f"drop index {name}" for name in DATA[cell.data].without)]

    def _statement(self, cell: Cell, rep: int, session: int) -> str:
        table, verb = self.tables(cell)[0], _verb(cell)
        if verb == "copy":
            return f"copy {table} from '{FILE % session}'"
        if verb == "update":
            first = self.random(cell, rep).randrange(max(1, self._rows_of(table) - cell.size))
            column = "a" if table == "bench_write_four" else "i"
            return f"update {table} set {column} = hashint4({column}) where id between {first} and {first + cell.size - 1}"
        if verb == "cascade":
            return f"delete from {table} where id in (select k from {ROWS})"
        if verb == "merge":
            return (
                f"merge into {table} t using {ROWS} r on t.u = r.u"
                " when matched then update set v = r.v when not matched then insert values (r.u, r.v)"
            )
        conflict = " on conflict (u) do update set v = excluded.v" if verb == "upsert" else ""
        return f"insert into {table} select * from {ROWS}{_part(cell, session)}{conflict}"

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        if cell.data == "single":
            return [f"select count(*), 0, 0 from {SINGLE} where id = 0"]
        # nothing makes a log durable that ends with a rollback, so that another transaction does
        durable = f"; rollback; update {FLUSH} set n = n + 1" if FSYNC in cell.shape.split("-") else ""
        return [self._statement(cell, rep, session) + durable for session in range(_sessions(cell))]

    def finish(self, cell: Cell) -> Sequence[str]:
        if FSYNC in cell.shape.split("-"):
            return ()
        kinds = ("inserted", "updated", "deleted")
        counts = (
            f"(select coalesce(sum(pg_stat_get_xact_tuples_{kind}(oid)), 0)::bigint"
            f" from (select '{table}'::regclass::oid union select relid from pg_partition_tree('{table}')) tree(oid))"
            for table in self.tables(cell) for kind in kinds
        )
        return (f"select {', '.join(counts)}", "rollback")

    def outcome(self, server: Server, connection: psycopg.Connection, cell: Cell, rep: int, told: Sequence[int]) -> Outcome:
        written, *counts = told
        if written != cell.size:
            raise ServerError(f"{written} rows were written instead of {cell.size}")
        return Outcome(written, ":".join(map(str, counts)) or "rolled back")

    def throughput(self, cell: Cell) -> Throughput | None:
        return Throughput([(1, SINGLE_ROW)], cell.size, PGBENCH_TIMES) if cell.data == "single" else None


def _verb(cell: Cell) -> str:
    return cell.shape.split("-")[0]


def _sessions(cell: Cell) -> int:
    return SESSIONS.get(cell.shape.split("-")[-1], 1)


def _part(cell: Cell, session: int) -> str:
    """Of the rows, those of one session."""
    if _sessions(cell) == 1:
        return ""
    return f" where {'v' if cell.data == 'uuid' else 'id'} % {_sessions(cell)} = {session}"
