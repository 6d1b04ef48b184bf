"""What the commands that measure have in common: arguments, their ends, and the facts that go into machine.json."""

from __future__ import annotations

import argparse
import csv
import json
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Sequence

import psycopg
from rich.console import Console

from .machine import describe, source_state
from .server import Server, ServerError


def first_line(error: Exception) -> str:
    """Of its text, or its kind if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def run_command(console: Console, work: Callable[[ExitStack], int]) -> int:
    """The exit code; what is to be released, however it ends, work() adds to its argument."""
    # whoever ends us, servers are stopped, so that a simulated volume can be unmounted
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as ends:
        try:
            return work(ends)
        except KeyboardInterrupt:
            console.print("interrupted; the same command goes on where this one stopped")
            return 130
        except (ServerError, ValueError, OSError, psycopg.Error, subprocess.SubprocessError) as error:
            console.print(f"error: {str(error).strip()}")
            return 1


def run_facts(
    run: str, version: str, data: Path, options: argparse.Namespace, names: Sequence[str], reads: Mapping[str, int], **more: Any
) -> dict[str, Any]:
    """Machine, server, source, the options of these names, the disk's ceiling, and more."""
    return {
        "started": run,
        "server": version,
        "machine": describe(data.resolve()),
        "source": source_state(),
        "storage": options.storage,
        "options": {name: getattr(options, name) for name in names},
        "ceiling_reads_per_second": reads,
        **more,
    }


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    """Which server a script like bench/overhead measures: the major for the user, the rest from the script."""
    parser.add_argument("--major", type=int, default=18, help="server: 15, 17, 18 or 19 (default 18)")
    for name in ("bindir", "data", "sockets"):
        parser.add_argument(f"--{name}", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--user", required=True, help=argparse.SUPPRESS)


def write_results(results: Path, name: str, columns: Sequence[str], lines: Iterable[Sequence[Any]], server: Server, **more: Any) -> None:
    """What such a script has measured, and its machine.json, into a directory."""
    results.mkdir(parents=True, exist_ok=True)
    with (results / name).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(lines)
    write_facts(results, server, **more)
    print(f"results: {results}")


def write_facts(results: Path, server: Server, **more: Any) -> None:
    """The machine.json of such a script."""
    facts = {"version": server.version, "source": source_state(), **more, "started": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())}
    (results / "machine.json").write_text(json.dumps(facts | {"machine": describe(server.data)}, indent=1) + "\n")


def ceiling_text(reads: Mapping[str, int]) -> str:
    rates = ", ".join(f"{rate:,} at depth {depth}" for depth, rate in reads.items())
    return f"the disk's random 8 kB reads per second: {rates or 'unknown, fio is missing'}"
