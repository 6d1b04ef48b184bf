"""Many sessions: throughput, 99th percentile, memory, and the start of a session, with the library and without.

  select    pgbench -S: look-ups by primary key
  mixed     pgbench's TPC-B
  scan      100 accounts by a range of keys
  connect   a session for each `SELECT 1`, one after the other
  crash     so many idle sessions, and one is killed: until the server answers again

Tables are cached.  Variants take turns within each repetition, the first one changes:

  stock     without the library
  again     the same: what noise there is
  library   preloaded, with the defaults
  limited   with tablespace_max_in_flight, which makes sessions share what they have in flight

Memory is the proportional set size (Pss) of all of the server's processes, in the middle of a run.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Iterable, Mapping, Sequence

import psycopg
from rich.console import Console
from rich.table import Table

from .command import add_server_arguments, write_results
from .server import BASE_SETTINGS, Server, ServerError
from .variants import LIBRARY

SHAPES = ("select", "mixed", "scan", "connect", "crash")
VARIANTS: Mapping[str, Mapping[str, str]] = {
    "stock": {},
    "again": {},
    "library": {"shared_preload_libraries": LIBRARY},
    "limited": {"shared_preload_libraries": LIBRARY, f"{LIBRARY}.tablespace_max_in_flight": "256"},
}
SCALE = 20  # of pgbench: 2 million accounts
SCAN = "\\set first random(1, 100000 * :scale - 99)\nSELECT sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN :first AND :first + 99;\n"
SPARE = 20  # connections beyond the sessions
WAIT_SECONDS = 120  # for an answer after a crash

Sample = tuple[str, int, str, int, float, float, float]  # shape, sessions, variant, repetition, and three figures


def pgbench(server: Server, arguments: Sequence[str], directory: str) -> str:
    done = subprocess.run(
        [str(server.bindir / "pgbench"), *arguments], cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, env=server.client_environment({}),
    )
    if done.returncode != 0:
        raise ServerError(f"pgbench failed: {(done.stdout.strip().splitlines() or [''])[-1]}")
    return done.stdout


def processes(server: Server) -> Iterable[Path]:
    """The server's, by their program."""
    program = (server.bindir / "postgres").resolve()
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if (directory / "exe").resolve() == program:
                yield directory
        except OSError:
            continue


def memory(server: Server) -> float:
    """Megabytes of all processes, shared pages divided among those that have them."""
    total = 0
    for directory in processes(server):
        try:
            total += sum(int(line.split()[1]) for line in (directory / "smaps_rollup").read_text().splitlines() if line.startswith("Pss:"))
        except OSError:
            continue
    return total / 1024


def percentile(directory: str) -> float:
    """The 99th of all latencies in pgbench's logs, in ms."""
    latencies = [int(line.split()[2]) for log in Path(directory).glob("pgbench_log*") for line in log.open()]
    latencies.sort()
    return latencies[len(latencies) * 99 // 100] / 1000 if latencies else 0.0


def load(server: Server, shape: str, sessions: int, seconds: int) -> tuple[float, float, float]:
    """Transactions per second, 99th percentile in ms, megabytes."""
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "scan.sql"
        script.write_text(SCAN)
        os.chmod(directory, 0o755)
        what = {"select": ["-S"], "mixed": [], "scan": ["-f", str(script), "-D", f"scale={SCALE}"]}[shape]
        seen: list[float] = []
        timer = threading.Timer(seconds / 2, lambda: seen.append(memory(server)))
        timer.start()
        out = pgbench(server, [*what, "-n", "-M", "prepared", "-c", str(sessions), "-j", "2", "-T", str(seconds), "-l", "postgres"], directory)
        timer.join()
        tps = next(float(line.split()[2]) for line in out.splitlines() if line.startswith("tps = "))
        return tps, percentile(directory), seen[0] if seen else 0.0


def connects(server: Server, seconds: int) -> tuple[float, float, float]:
    """Sessions per second, the 99th percentile of one in ms, and the median in ms."""
    latencies = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.perf_counter()
        with closing(server.connect()) as connection:
            connection.execute("SELECT 1")
        latencies.append((time.perf_counter() - began) * 1000)
    latencies.sort()
    return len(latencies) / seconds, latencies[len(latencies) * 99 // 100], statistics.median(latencies)


def crash(server: Server, sessions: int) -> tuple[float, float, float]:
    """Seconds until the server answers again, when one of so many sessions was killed."""
    with ExitStack() as ends:
        connections = [ends.enter_context(closing(server.connect())) for _ in range(sessions)]
        for connection in connections:
            connection.execute("SELECT count(*) FROM pgbench_branches")
        began = time.monotonic()
        os.kill(connections[0].info.backend_pid, signal.SIGKILL)
        while time.monotonic() < began + WAIT_SECONDS:
            try:
                # the postmaster may take some more before it has noticed
                connections[-1].execute("SELECT 1")
            except psycopg.OperationalError:
                break
            time.sleep(0.005)
        while time.monotonic() < began + WAIT_SECONDS:
            try:
                with closing(server.connect()) as connection:
                    connection.execute("SELECT count(*) FROM pgbench_branches")
                return time.monotonic() - began, 0.0, 0.0
            except psycopg.OperationalError:
                time.sleep(0.005)
    raise ServerError(f"no answer for {WAIT_SECONDS} s after a crash of {sessions} sessions")


def sample(server: Server, shape: str, sessions: int, seconds: int) -> tuple[float, float, float]:
    if shape == "connect":
        return connects(server, seconds)
    if shape == "crash":
        return crash(server, sessions)
    return load(server, shape, sessions, seconds)


def make(server: Server) -> None:
    server.create(BASE_SETTINGS)
    server.start({})
    pgbench(server, ["-i", "-q", "-s", str(SCALE), "postgres"], "/")
    with closing(server.connect()) as connection:
        connection.execute("CREATE EXTENSION pg_prewarm")


def warm(server: Server) -> None:
    with closing(server.connect()) as connection:
        connection.execute("SELECT pg_prewarm(oid) FROM pg_class WHERE relname LIKE 'pgbench%' AND relkind IN ('r', 'i')")


def summarize(samples: Sequence[Sample]) -> None:
    table = Table(title="medians: transactions/s (sessions/s; seconds after a crash), 99th percentile in ms, memory in MB (connect: median in ms)")
    for column in ("cell", "sessions", *VARIANTS, "library / stock", "99th: stock, library", "memory: stock, library"):
        table.add_column(column)
    for shape, sessions in dict.fromkeys(s[:2] for s in samples):
        by = {v: [s for s in samples if s[:3] == (shape, sessions, v)] for v in VARIANTS}

        def median(variant: str, figure: int) -> float:
            return statistics.median(s[4 + figure] for s in by[variant])

        table.add_row(
            shape, str(sessions), *(f"{median(v, 0):,.2f}" for v in VARIANTS), f"{median('library', 0) / median('stock', 0):.3f}",
            f"{median('stock', 1):.2f}, {median('library', 1):.2f}", f"{median('stock', 2):.2f}, {median('library', 2):.2f}",
        )
    Console(width=160).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench/many", description="Measure many sessions.")
    add_server_arguments(parser)
    parser.add_argument("--sessions", default="8,64,256,500", help="how many (default 8,64,256,500)")
    parser.add_argument("--seconds", type=int, default=10, help="of a run (default 10)")
    parser.add_argument("--reps", type=int, default=3, help="repetitions (default 3)")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[], help="load/sessions, such as 'select/*'; repeatable")
    parser.add_argument("--io-method", help="of the server, from 18 on (default: its own)")
    parser.add_argument("--results", type=Path, help="directory (default: nothing is written)")
    options = parser.parse_args()
    counts = [int(n) for n in options.sessions.split(",")]
    cells = [(s, n) for s in SHAPES for n in ([1] if s == "connect" else counts)]
    cells = [(s, n) for s, n in cells if not options.only or any(fnmatch.fnmatch(f"{s}/{n}", p) for p in options.only)]
    server = Server(options.bindir, options.data, options.sockets, options.user)
    common = {"max_connections": str(max(counts) + SPARE), "shared_buffers": "1GB"} | ({"io_method": options.io_method} if options.io_method else {})
    samples: list[Sample] = []
    try:
        if not server.exists():
            make(server)
        for rep in range(options.reps):
            for variant in list(VARIANTS)[rep % len(VARIANTS):] + list(VARIANTS)[: rep % len(VARIANTS)]:
                server.start(common | dict(VARIANTS[variant]))
                warm(server)
                for shape, sessions in cells:
                    samples.append((shape, sessions, variant, rep, *sample(server, shape, sessions, options.seconds)))
    finally:
        server.stop()
    summarize(samples)
    if options.results:
        write_results(
            options.results, "many.csv", ["load", "sessions", "variant", "rep", "per_second", "percentile_99_ms", "memory_mb"],
            ((*s[:4], *(f"{x:.3f}" for x in s[4:])) for s in samples), server,
            sessions=counts, seconds=options.seconds, io_method=options.io_method,
        )


if __name__ == "__main__":
    main()
