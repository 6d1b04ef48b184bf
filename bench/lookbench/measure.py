"""One sample: bring the server into the cell's state, run, look at the counters.

States
  cold        restart, page cache dropped; then EXPLAIN, so that catalogs and the
              connection's caches are there and only table and index are cold (or what
              the workload does not want in memory)
  cached      table and index loaded by pg_prewarm into shared_buffers that hold both;
              several connections one after another, in each of them one execution before
              the timed ones; a sample with reads is taken again.  What changes something
              is executed once (workloads/changing.py)
  os-cached   files locked in the page cache, 128 MB shared_buffers; restart
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from contextlib import AbstractContextManager, ExitStack, closing
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping, Sequence

import psycopg

from .machine import ROOT
from .relations import blocks_read, prewarm, storage, total_size
from .residency import Resident
from .server import Server, ServerError
from .variants import ENABLE, LIBRARY, Variant
from .workloads import CACHED, COLD, OS_CACHED, Cell, Changing, Fresh, Throughput, Workload

SMALL_BUFFERS = "128MB"
COLD_BUFFERS = "128MB"
CACHED_ATTEMPTS = 3
BLOCK = 8192
# a cached sample repeats its statements until about so many rows or executions, in each of
# so many connections: two backends that do the same differ by up to a tenth, by where
# their memory happens to lie
CACHED_ROWS = 20_000
CACHED_EXECUTIONS = 200
CACHED_CONNECTIONS = 4
ENDS_SECONDS = 10  # for a session to end
RESIDENT = 0.999  # of the pages of os-cached tables must be in the page cache

# settings that name this machine's paths, and what says nothing about speed
_UNTOLD = (
    "config_file", "data_directory", "hba_file", "ident_file", "unix_socket_directories",
    "application_name", "client_encoding", "external_pid_file", "transaction_%", "log_%",
)


@dataclass
class Result:
    ms: float
    executions: int
    rows: int | None
    checksum: str
    reads: int | None
    plan: str
    settings: dict[str, str]
    categories: dict[str, int] = field(default_factory=dict)  # growth of the workload's counters


@dataclass(frozen=True)
class Done:
    """What sessions that have changed something at the same time say of it."""

    ms: float  # until the last one has ended
    settings: dict[str, str]
    workers: int  # that they wanted
    told: Sequence[int]  # see Changing.outcome()


def changed_settings(connection: psycopg.Connection) -> dict[str, str]:
    """All settings that are not at their default, in the measured session."""
    rows = connection.execute(
        "select name, current_setting(name) from pg_settings"
        " where (source not in ('default', 'override') or name like 'pg_lookahead.%%')"
        " and not name like any (%s) order by name",
        (list(_UNTOLD),),
    )
    return {name: value for name, value in rows}


_WORKERS_WANTED = re.compile(r"^building index .* with request for (\d+) parallel worker")


def _growth(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    return {name: value - before.get(name, 0) for name, value in after.items()}


def _fared(directory: Path, clients: int) -> dict[str, int]:
    """Transactions of the first client of pgbench, of the slowest, of the median and of the fastest, by its logs."""
    counts = [0] * clients
    for path in directory.glob("log.*"):
        for line in path.read_text().splitlines():
            counts[int(line.split()[0])] += 1
    ranked = sorted(counts)
    return {
        "transactions of the first client": counts[0], "of the slowest": ranked[0],
        "of the median": ranked[clients // 2], "of the fastest": ranked[-1],
    }


class Bench:
    """A server with its tables, and the state of its caches."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._warm: set[str] = set()
        self._resident: Resident | None = None
        self._resident_for: tuple[str, ...] | None = None

    # ---- tables -----------------------------------------------------------

    def ensure(self, workload: Workload, cells: Sequence[Cell]) -> None:
        """Tables and indexes that these cells need; afterwards the server is stopped."""
        self.server.start({"shared_preload_libraries": "", "shared_buffers": COLD_BUFFERS})
        with closing(self.server.connect()) as connection:
            for extension in ("pg_prewarm", *workload.extensions):
                connection.execute(f"create extension if not exists {extension}")
            workload.make(self.server, connection, cells)
        self.server.stop()

    def heap_file(self, table: str) -> Path:
        """The largest piece of the table; what fio may read."""
        self.server.start({"shared_preload_libraries": "", "shared_buffers": COLD_BUFFERS})
        with closing(self.server.connect()) as connection:
            return self.server.relation_files(connection, storage(connection, [table])[:1])[0]

    def cached_buffers(self, tables: Sequence[str]) -> int:
        """Megabytes of shared_buffers that hold these tables and all their indexes."""
        self.server.start({"shared_preload_libraries": "", "shared_buffers": COLD_BUFFERS})
        with closing(self.server.connect()) as connection:
            return int(total_size(connection, tables) * 1.03 / 2**20) + 256

    # ---- states -----------------------------------------------------------

    def _server_settings(
        self, workload: Workload, cell: Cell, variant: Variant, cached_buffers: int
    ) -> dict[str, str]:
        buffers = {COLD: COLD_BUFFERS, CACHED: f"{cached_buffers}MB", OS_CACHED: SMALL_BUFFERS}[cell.state]
        chosen = dict(variant.server)
        if cell.state == CACHED and not variant.beside:
            # nothing is read: how it would be read must not force a restart
            chosen = {k: v for k, v in chosen.items() if k == "shared_preload_libraries"}
        return chosen | {"shared_buffers": buffers} | dict(workload.server(cell))

    def _enter(self, workload: Workload, cell: Cell, variant: Variant, cached_buffers: int) -> None:
        settings = self._server_settings(workload, cell, variant, cached_buffers)
        if cell.state != OS_CACHED:
            self.release()
        if cell.state == COLD:
            self._warm.clear()
            self.server.restart_cold(settings)
            if kept := workload.in_memory(cell):
                with closing(self.server.connect()) as connection:
                    prewarm(connection, kept)
        elif cell.state == CACHED:
            if self.server.running_with != settings:
                self._warm.clear()
            self.server.start(settings)
            self._prewarm(workload, cell)
        else:
            self._warm.clear()
            self.server.stop()
            self.server.start(settings)
            self._hold(workload, cell)

    def _prewarm(self, workload: Workload, cell: Cell) -> None:
        if workload.free_plans:
            names = list(workload.tables(cell))
        else:
            names = list(workload.warmed(cell))
        wanted = [name for name in names if name not in self._warm]
        if not wanted:
            return
        with closing(self.server.connect()) as connection:
            indexes = workload.with_indexes if isinstance(workload, Changing) else workload.free_plans
            prewarm(connection, wanted, with_indexes=indexes)
        self._warm.update(wanted)

    def _hold(self, workload: Workload, cell: Cell) -> None:
        """Lock table and index in the page cache, if it is not these already."""
        names = tuple(workload.warmed(cell))
        if self._resident_for != names or self._kept() < RESIDENT:
            # what a table has grown by since then is not locked
            self.release()
            with closing(self.server.connect()) as connection:
                self._resident = Resident(self.server.relation_files(connection, storage(connection, names)))
            self._resident.__enter__()
            self._resident_for = names
        if self._kept() < RESIDENT:
            raise ServerError(f"the page cache does not keep {', '.join(workload.tables(cell))}")

    def _kept(self) -> float:
        """The share of what should be in the page cache that is there."""
        return self._resident.share() if self._resident is not None else 0.0

    def release(self) -> None:
        if self._resident is not None:
            resident: AbstractContextManager[Resident] = self._resident
            self._resident = self._resident_for = None
            resident.__exit__(None, None, None)

    # ---- one sample -------------------------------------------------------

    def sample(
        self, workload: Workload, cell: Cell, variant: Variant, rep: int, cached_buffers: int
    ) -> Result:
        for _ in range(CACHED_ATTEMPTS):
            changing = isinstance(workload, Changing) and workload.throughput(cell) is None
            if changing and cell.state != CACHED:
                # it enters its state when everything is prepared
                self.server.start(self._server_settings(workload, cell, variant, cached_buffers))
            else:
                self._enter(workload, cell, variant, cached_buffers)
            if isinstance(workload, Changing) and changing:
                result = self._change(workload, cell, variant, rep)
            elif fresh := workload.fresh(cell):
                result = self._run_fresh(workload, cell, variant, rep, fresh)
            else:
                result = self._run(workload, cell, variant, rep)
            if cell.state != CACHED or not result.reads:
                break
            self._warm.clear()
        return result

    def _connect(self, workload: Workload, cell: Cell, variant: Variant) -> psycopg.Connection:
        connection = self.server.connect(variant.session)
        for statement in workload.setup(cell):
            connection.execute(statement)
        return connection

    def _run(self, workload: Workload, cell: Cell, variant: Variant, rep: int) -> Result:
        statements = workload.statements(cell, rep)
        tables = workload.tables(cell)
        throughput = workload.throughput(cell)
        with closing(self._connect(workload, cell, variant)) as connection:
            plan = "\n".join(row[0] for row in connection.execute(f"explain {statements[0]}"))
            settings = changed_settings(connection)
            if throughput is not None:
                rows, checksum = workload.execute(connection, statements)
                before, size = blocks_read(connection, tables), total_size(connection, tables)
                counted = workload.counters(connection, cell)
                ms, executions, fared = self._pgbench(variant.session, throughput, workload.scope.seconds * throughput.times)
                reads = blocks_read(connection, tables) - before
                if self.server.major < 16:
                    # a block that a table has grown by is counted as read
                    reads = max(0, reads - (total_size(connection, tables) - size) // BLOCK)
                grown = _growth(counted, workload.counters(connection, cell)) | fared
                return Result(ms, executions, None, f"{rows}:{checksum}", reads, plan, settings, grown)
            if cell.state == CACHED:
                workload.execute(connection, statements)
            before = blocks_read(connection, tables)
            counted = workload.counters(connection, cell)
            connections, repeat = self._repetitions(workload, cell, len(statements))
            ms, (rows, checksum) = self._timed(workload, connection, statements, repeat)
            for _ in range(connections - 1):
                ms += self._elsewhere(workload, cell, variant, statements, repeat)
            executions = connections * repeat * len(statements)
            reads = blocks_read(connection, tables) - before
            grown = _growth(counted, workload.counters(connection, cell))
            return Result(ms, executions, rows, checksum, reads, plan, settings, grown)

    def _run_fresh(self, workload: Workload, cell: Cell, variant: Variant, rep: int, fresh: Fresh) -> Result:
        """A sample of which each statement has a session of its own; only the statements are timed."""
        ms, rows, reads = 0.0, 0, 0
        checksums: list[list[int]] = []
        plan = ""
        settings: dict[str, str] = {}
        for number, statement in enumerate(workload.statements(cell, rep)):
            if number and fresh.restart:
                self._enter(workload, cell, variant, 0)
            if fresh.earlier and (fresh.restart or not number):
                self._earlier(workload, cell, variant, fresh.earlier)
            # the session that is measured looks at no counters before its statement
            with closing(self.server.connect(self._off(variant))) as other:
                before = blocks_read(other, workload.tables(cell))
                with closing(self._connect(workload, cell, variant)) as connection:
                    explained = "\n".join(row[0] for row in connection.execute(f"explain {statement}"))
                    spent, (found, checksum) = self._timed(workload, connection, [statement], 1)
                    connection.execute("select pg_stat_force_next_flush()")
                    reads += blocks_read(other, workload.tables(cell)) - before
                    if not number:
                        plan, settings = explained, changed_settings(connection)
            ms += spent
            rows += found
            checksums.append([int(part) for part in checksum.split(":")])
        # as one session would have added them up
        sums = ":".join(str(sum(parts)) for parts in zip(*checksums))
        return Result(ms, len(checksums), rows, sums, reads, plan, settings)

    def _earlier(self, workload: Workload, cell: Cell, variant: Variant, statements: Sequence[str]) -> None:
        """Execute something in a session, and wait until the session has ended."""
        with closing(self._connect(workload, cell, variant)) as connection:
            process = connection.info.backend_pid
            workload.execute(connection, statements)
        with closing(self.server.connect(self._off(variant))) as connection:
            until = time.monotonic() + ENDS_SECONDS
            while connection.execute("select 1 from pg_stat_activity where pid = %s", (process,)).fetchone():
                if time.monotonic() > until:
                    raise ServerError("a session does not end")
                time.sleep(0.01)

    def _change(self, workload: Changing, cell: Cell, variant: Variant, rep: int) -> Result:
        """A sample of what changes something."""
        off = self._off(variant)
        tables, indexes = workload.tables(cell), workload.with_indexes
        with closing(self.server.connect(off)) as connection:
            if workload.tried and cell.state == CACHED and cell.key not in self._warm:
                workload.prepare(connection, cell, rep)
                self._at_once(workload, cell, off, workload.statements(cell, rep))
                self._warm.add(cell.key)
            workload.prepare(connection, cell, rep)
            connection.execute("checkpoint")
            statements = workload.statements(cell, rep)
        if cell.state != CACHED:
            # what it needs has been made; now nothing of it is in memory, or nothing but the page cache
            self._enter(workload, cell, variant, 0)
        with closing(self.server.connect(off)) as connection:
            before, size = blocks_read(connection, tables, indexes), total_size(connection, tables)
            done = self._at_once(workload, cell, variant.session, statements)
            reads = blocks_read(connection, tables, indexes) - before
            if indexes and self.server.major < 16:
                # a block that a table has grown by is counted as read
                reads = max(0, reads - (total_size(connection, tables) - size) // BLOCK)
            outcome = workload.outcome(self.server, connection, cell, rep, done.told)
            facts = dict(outcome.facts) | {"workers": done.workers}
            return Result(done.ms, 1, outcome.rows, outcome.checksum, reads, workload.definition(cell, rep), done.settings, facts)

    @staticmethod
    def _preloaded(variant: Variant) -> bool:
        return LIBRARY in variant.server.get("shared_preload_libraries", "")

    def _off(self, variant: Variant) -> dict[str, str]:
        """Session settings without look-ahead; where the library is not loaded there is no such setting."""
        return {ENABLE: "off"} if self._preloaded(variant) else {}

    def _at_once(
        self, workload: Changing, cell: Cell, session: Mapping[str, str], statements: Sequence[str]
    ) -> Done:
        """Execute the statements, each in its own session, and wait until all have ended."""
        workers: list[int] = []

        def notice(message: psycopg.errors.Diagnostic) -> None:
            found = _WORKERS_WANTED.search(message.message_primary or "")
            if found:
                workers.append(int(found[1]))

        with ExitStack() as stack:
            connections = []
            for _ in statements:
                connection = stack.enter_context(closing(self.server.connect(session)))
                for statement in workload.setup(cell):
                    connection.execute(statement)
                # catalogs of what it works on
                for table in workload.tables(cell):
                    connection.execute(f"explain select * from {table}")
                connection.add_notice_handler(notice)
                connections.append(connection)
            settings = changed_settings(connections[0])
            with ThreadPoolExecutor(len(statements)) as pool:
                began = time.perf_counter()
                running = [pool.submit(connection.execute, text) for connection, text in zip(connections, statements)]
                cursors = [one.result() for one in running]
                ms = (time.perf_counter() - began) * 1000
            told: list[tuple[int, ...]] = [(max(0, cursor.rowcount),) for cursor in cursors]
            for number, connection in enumerate(connections):
                for statement in workload.finish(cell):
                    cursor = connection.execute(statement)
                    if cursor.description is not None:
                        told[number] += cursor.fetchone() or ()
                connection.execute("select pg_stat_force_next_flush()")
        return Done(ms, settings, sum(workers), [sum(column) for column in zip(*told)])

    @staticmethod
    def _repetitions(workload: Workload, cell: Cell, statements: int) -> tuple[int, int]:
        """Connections, and how often each of them executes all statements."""
        if cell.state != CACHED or workload.free_plans:
            return 1, 1
        return CACHED_CONNECTIONS, max(1, min(CACHED_ROWS // max(1, cell.size * statements), CACHED_EXECUTIONS // statements))

    @staticmethod
    def _timed(
        workload: Workload, connection: psycopg.Connection, statements: Sequence[str], repeat: int
    ) -> tuple[float, tuple[int, str]]:
        """Milliseconds, and the answer."""
        began = time.perf_counter()
        for _ in range(repeat):
            answer = workload.execute(connection, statements)
        return (time.perf_counter() - began) * 1000, answer

    def _elsewhere(
        self, workload: Workload, cell: Cell, variant: Variant, statements: Sequence[str], repeat: int
    ) -> float:
        """The same in a connection of its own, after one execution that is not timed."""
        with closing(self._connect(workload, cell, variant)) as connection:
            workload.execute(connection, statements)
            return self._timed(workload, connection, statements, repeat)[0]

    def _pgbench(self, session: Mapping[str, str], what: Throughput, seconds: int) -> tuple[float, int, dict[str, int]]:
        """Milliseconds and executions, over all clients, with prepared statements; how the clients fared."""
        with tempfile.TemporaryDirectory() as directory:
            scripts = []
            for number, (weight, text) in enumerate(what.scripts):
                path = Path(directory) / f"{number}.sql"
                path.write_text(text)
                scripts += ["-f", f"{path}@{weight}"]
            done = subprocess.run(
                [str(self.server.bindir / "pgbench"), "-n", "-M", "prepared", "-T", str(seconds),
                 "-c", str(what.clients), "-j", str(min(what.clients, 2)), *scripts,
                 *(["--log", f"--log-prefix={directory}/log"] if what.by_client else [])],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                env=self.server.client_environment(session), cwd=ROOT,
            )
            fared = _fared(Path(directory), what.clients) if what.by_client else {}
        # with several scripts each has lines of its own after these
        tps = re.search(r"^tps = ([0-9.]+)", done.stdout, re.M)
        count = re.search(r"actually processed: (\d+)", done.stdout)
        if done.returncode != 0 or not tps or not count:
            raise ServerError(f"pgbench failed: {(done.stdout.strip().splitlines() or [''])[-1]}")
        executions = int(count[1])
        return executions / float(tps[1]) * 1000, executions, fared
