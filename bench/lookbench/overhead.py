"""What look-ahead costs short statements whose tables are in shared_buffers: instructions of one backend.

Each statement is prepared and executed some thousands of times by one connection, with other
parameters each time, the same ones for all variants.  The processor counts the
instructions of that backend in user mode, or valgrind does where there are no counters, as in most
virtual machines: other programs do not change them.

  bare  the library is not loaded
  off   it is preloaded, pg_lookahead.enable = off
  on    with the defaults

One after another, each in a server just started, in which the statement has been executed before the count
begins: what is learnt of a table and of a plan has been learnt.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import random
import re
import signal
import statistics
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Callable, Mapping, Sequence

import psycopg
from psycopg.types.numeric import Int4
from rich.console import Console
from rich.table import Table

from .command import add_server_arguments, write_results
from .server import BASE_SETTINGS, Server, ServerError
from .variants import ENABLE, LIBRARY

VARIANTS = ("bare", "off", "on")
BOUND = 1.01  # of what a variant with the library may cost
ENDS_SECONDS = 60  # for a backend to end and to write what was counted

ROWS = 400_000
TABLES = f"""
create table points (id int primary key, rnd int, seq int, payload text);
insert into points
    select i, (i * 7919::bigint) % {ROWS}, i, repeat('x', 80) from generate_series(0, {ROWS - 1}) i;
create index points_rnd on points (rnd);
create index points_seq on points (seq);
create table orders (id int primary key, customer int, day int, amount numeric);
insert into orders select i, i / 10, i % 365, i from generate_series(0, {ROWS - 1}) i;
create index orders_customer on orders (customer, day);
create table child (id int primary key, point int references points);
"""

# name -> statement; n is a number below the number of rows
STATEMENTS: Mapping[str, str] = {
    "point": "select * from points where id = %(n)s",
    "range-1": "select * from points where rnd between %(n)s and %(n)s order by rnd",
    "range-4": "select * from points where rnd between %(n)s and %(n)s + 3 order by rnd",
    "range-16": "select * from points where rnd between %(n)s and %(n)s + 15 order by rnd",
    "range-20-count": "select count(payload) from points where rnd between %(n)s and %(n)s + 19",
    "limit-1": "select * from points where rnd >= %(n)s order by rnd limit 1",
    "limit-10": "select * from points where rnd >= %(n)s order by rnd limit 10",
    "limit-16": "select * from points where rnd >= %(n)s order by rnd limit 16",
    "desc-limit-1": "select * from points where rnd <= %(n)s order by rnd desc limit 1",
    "sequential-16": "select * from points where seq between %(n)s and %(n)s + 15 order by seq",
    "in-4": "select * from points where id = any (array[%(n)s, %(n)s / 2, %(n)s / 3, %(n)s / 4])",
    "index-only-1": "select rnd from points where rnd = %(n)s",
    "index-only-16": "select rnd from points where rnd between %(n)s and %(n)s + 15 order by rnd",
    "index-only-count-100": "select count(*) from points where rnd between %(n)s and %(n)s + 99",
    "max": "select max(rnd) from points where rnd <= %(n)s",
    "join-1": "select * from orders o join points p on p.id = o.customer where o.id = %(n)s",
    "join-10": "select * from orders o join points p on p.rnd = o.id where o.customer = %(n)s / 10",
    "lateral-limit-1": "select * from points p, lateral (select * from orders o where o.customer = p.id / 10"
                       " order by day limit 1) l where p.rnd between %(n)s and %(n)s + 3",
    "lateral-aggregate": "select * from points p, lateral (select sum(amount) from orders o where o.customer = p.id / 10) l"
                         " where p.id = %(n)s",
    "correlated-max": "select p.id, (select max(day) from orders o where o.customer = p.id / 10) from points p where p.id = %(n)s",
    "exists": "select * from points p where p.rnd between %(n)s and %(n)s + 3 and exists (select 1 from orders o where o.customer = p.id / 10)",
    "update": "update points set payload = payload where id = %(n)s",
    "insert": "insert into child values ((select coalesce(max(id), 0) + 1 from child), %(n)s)",
    "delete": "delete from child where id = (select min(id) from child) and point >= %(n)s - %(n)s",
}
SETTINGS = {"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
            "plan_cache_mode": "force_generic_plan"}


Connect = Callable[[], psycopg.Connection]
Run = Callable[[psycopg.Connection, int], None]  # executes the statement so many times


class Perf:
    """Counts by the processor, while the statements are executed."""

    name = "the processor's counter (perf stat -e instructions:u)"
    warm, times = 300, 2_000
    prefix: Sequence[str] = ()

    @staticmethod
    def works() -> bool:
        done = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", "true"], capture_output=True, text=True)
        return done.returncode == 0 and re.match(r"\d", done.stderr.strip()) is not None

    def per_execution(self, connect: Connect, run: Run) -> float:
        with closing(connect()) as connection:
            run(connection, self.warm)
            return self._counted(connection.info.backend_pid, lambda: run(connection, self.times)) / self.times

    @staticmethod
    def _counted(process: int, work: Callable[[], None]) -> int:
        control_read, control = os.pipe()
        answer, answer_write = os.pipe()
        command = ["perf", "stat", "-x,", "-e", "instructions:u", "-p", str(process), "--delay=-1",
                   "--control", f"fd:{control_read},{answer_write}"]
        with subprocess.Popen(command, pass_fds=(control_read, answer_write), stderr=subprocess.PIPE, text=True) as perf:
            for step in (b"enable\n", b"disable\n"):
                os.write(control, step)
                os.read(answer, 16)
                if step.startswith(b"enable"):
                    work()
            perf.send_signal(signal.SIGINT)
            text = perf.communicate()[1]
        for end in (control_read, control, answer, answer_write):
            os.close(end)
        found = re.search(r"^(\d+),[^,]*,instructions", text, re.M)
        if not found:
            raise ServerError("perf has counted nothing")
        return int(found[1])


class Callgrind:
    """Counts by valgrind, in which the whole server runs; a backend's file is there when it has ended.

    Of two connections that differ in the number of executions the difference counts.
    """

    name = "callgrind"
    warm, times = 100, 300

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.prefix: Sequence[str] = ("valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={directory}/callgrind.%p")

    def per_execution(self, connect: Connect, run: Run) -> float:
        return (self._total(connect, run, self.warm + self.times) - self._total(connect, run, self.warm)) / self.times

    def _total(self, connect: Connect, run: Run, times: int) -> int:
        with closing(connect()) as connection:
            process = connection.info.backend_pid
            run(connection, times)
        path = self._directory / f"callgrind.{process}"
        until = time.monotonic() + ENDS_SECONDS
        while not (path.exists() and (found := re.search(r"^totals: (\d+)", path.read_text(), re.M))):
            if time.monotonic() > until:
                raise ServerError("a backend does not end")
            time.sleep(0.02)
        path.unlink()
        return int(found[1])


def per_execution(server: Server, tool: Perf | Callgrind, variant: str, statement: str) -> float:
    session = SETTINGS | ({} if variant == "bare" else {ENABLE: variant})

    def connect() -> psycopg.Connection:
        connection = server.connect(session)
        connection.prepare_threshold = 0
        return connection

    def run(connection: psycopg.Connection, times: int) -> None:
        draw = random.Random(statement)
        with connection.transaction(force_rollback=True):
            for _ in range(times):
                cursor = connection.execute(statement, {"n": Int4(draw.randrange(100, ROWS - 200))}, binary=True)
                if cursor.description is not None:
                    cursor.fetchall()

    return tool.per_execution(connect, run)


def measure(server: Server, tool: Perf | Callgrind, names: Sequence[str], reps: int, library: str) -> list[tuple[str, str, int, float]]:
    samples = []
    for rep in range(reps):
        for variant in VARIANTS:
            server.prefix = tool.prefix
            server.start(
                {"shared_preload_libraries": "" if variant == "bare" else library, "shared_buffers": "512MB"}
                | ({"io_method": "sync"} if server.major >= 18 else {})
            )
            with closing(server.connect()) as connection:
                connection.execute("vacuum")  # what was rolled back would be in the way of the next variant
                connection.execute("select pg_prewarm(oid) from pg_class where relkind in ('r', 'i') and relnamespace = 'public'::regnamespace")
            samples += [(name, variant, rep, per_execution(server, tool, variant, STATEMENTS[name])) for name in names]
            server.stop()
    return samples


def make(server: Server) -> None:
    server.create(BASE_SETTINGS)
    server.start({"shared_preload_libraries": "", "shared_buffers": "1GB"})
    with closing(server.connect()) as connection:
        connection.execute("create extension pg_prewarm")
        for statement in TABLES.strip().split(";\n"):
            connection.execute(statement)
        connection.execute("insert into child select i, i from generate_series(1, 100000) i")
        connection.execute("vacuum analyze")
        connection.execute("checkpoint")
    server.stop()


def print_table(samples: Sequence[tuple[str, str, int, float]]) -> None:
    table = Table(title="user-mode instructions for one execution, medians")
    for heading in ("statement", *VARIANTS, "off / bare", "on / off", "on / bare"):
        table.add_column(heading, justify="left" if heading == "statement" else "right")
    for name in dict.fromkeys(sample[0] for sample in samples):
        bare, off, on = (statistics.median(n for s, v, _, n in samples if s == name and v == variant) for variant in VARIANTS)
        ratios = (off / bare, on / off, on / bare)
        table.add_row(name, *(f"{n:,.0f}" for n in (bare, off, on)), *(f"{ratio:.3f}" for ratio in ratios),
                      style="red" if ratios[2] > BOUND else None)
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench/overhead", description="Count instructions of short cached statements.")
    add_server_arguments(parser)
    parser.add_argument("--library", default=LIBRARY, help="another build of the library to preload (default: this one)")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[], help="statements by name; repeatable")
    parser.add_argument("--reps", type=int, default=1, help="repetitions (default 1)")
    parser.add_argument("--results", type=Path, help="directory (default: nothing is written)")
    options = parser.parse_args()
    names = [name for name in STATEMENTS if not options.only or any(fnmatch.fnmatch(name, p) for p in options.only)]
    server = Server(options.bindir, options.data, options.sockets, options.user)
    try:
        make(server)
        tool: Perf | Callgrind = Perf() if Perf.works() else Callgrind(options.data)
        print(f"counted by {tool.name}")
        samples = measure(server, tool, names, options.reps, options.library)
    finally:
        server.stop()
    print_table(samples)
    if options.results:
        write_results(
            options.results, "instructions.csv", ["statement", "variant", "rep", "instructions"],
            ((s, v, r, f"{n:.0f}") for s, v, r, n in samples), server,
        )


if __name__ == "__main__":
    main()
