"""Everything that README.md and docs/performance.md show, measured again on one commit.

What is measured follows from lookbench/pages.py: a directory for each of its tables, the cells of
its rows. How follows from the machine.json of that directory: server, storage, numbers of rows,
repetitions, variants; stock against itself (again) always goes along. A directory is measured by
bench/run, which writes each sample at once and goes on where it was stopped; so all of it, some four
hours, can be done in slices.

Figures of two sources are never mixed: what was measured with another src/ is forgotten.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Sequence

from .machine import source_state
from .pages import TABLES, PageTable

MOST_REPETITIONS = 5
STOP_SECONDS = 120  # for a server that has to be stopped
OWN = ("bitmap", "lookahead", "bare")
# variants of a build of core's branch, and what each sets
CORE = {"core": "io_method=io_uring", "coreoff": "enable_indexscan_prefetch=off", "coreworker": "io_method=worker"}
DONE = "measured"  # a file in a directory: the digest of src/ that all of it was measured with


@dataclass(frozen=True)
class Job:
    directory: str
    cells: tuple[str, ...]
    options: tuple[str, ...]
    lacks: str = ""  # what it needs besides


def _last_run(top: Path, directory: str) -> tuple[dict[str, Any], int]:
    """Options and server of the run that began last, and the most repetitions of any."""
    runs = json.loads((top / "bench" / "results" / directory / "machine.json").read_text())
    most = max(run["options"]["reps"] for run in runs.values())
    return runs[max(runs)], min(most, MOST_REPETITIONS)


def _beside(run: dict[str, Any], core: Path | None) -> tuple[list[str], str]:
    others = run.get("beside") or {}
    options: list[str] = []
    for name in others:
        if name in CORE:
            if core is None:
                return [], "a build of core's branch: --core PREFIX"
            options += ["--beside", f"{name}={core},{CORE[name]},effective_io_concurrency=64"]
        else:
            major = name.removeprefix("stock").removeprefix("look")
            options += ["--beside", f"{name}={major}" + (",library" if name.startswith("look") else "")]
    return options, ""


def _job(top: Path, directory: str, tables: Sequence[PageTable], core: Path | None) -> Job:
    run, repetitions = _last_run(top, directory)
    options = run["options"]
    used = {session.split()[1] for session in run["settings"]}
    variants = ["stock", "again", *(name for name in OWN if any(u == name or u.startswith(name + "-") for u in used))]
    cells = tuple(dict.fromkeys(key for table in tables for _, key in table.rows))
    arguments = ["--major", run["server"].split(".")[0], "--storage", run["storage"], "--reps", str(repetitions),
                 "--variants", ",".join(variants)]
    for name in ("rows", "limit_rows", "paid_rows", "seconds"):
        if name in options:
            arguments += [f"--{name.replace('_', '-')}", str(options[name])]
    for scale in sorted({key.split("/")[3] for key in cells if key.startswith("tpch/")}):
        arguments += ["--tpch", scale]
    if any(key.startswith(("write/", "indexbuild/")) for key in cells):
        arguments.append("--full")
    others, lacks = _beside(run, core)
    return Job(directory, cells, tuple([*arguments, *others]), lacks)


def jobs(top: Path, core: Path | None) -> Iterator[Job]:
    by_directory: dict[str, list[PageTable]] = {}
    for table in TABLES:
        by_directory.setdefault(table.directory, []).append(table)
    for directory, tables in by_directory.items():
        yield _job(top, directory, tables, core)


def is_measured(path: Path, digest: str) -> bool:
    done = path / DONE
    return done.exists() and done.read_text().strip() == digest


def forget_others(path: Path, digest: str) -> None:
    """Results with another src/."""
    machine = path / "machine.json"
    if machine.exists():
        found = {run["source"]["src_digest"] for run in json.loads(machine.read_text()).values()}
        if found - {digest}:
            print(f"{path.name}: measured with another src/, forgotten", flush=True)
            shutil.rmtree(path)


def measure(top: Path, job: Job, path: Path, digest: str, until: float | None) -> bool | None:
    """True: all of it is measured; None: the time is over; False: it has failed."""
    forget_others(path, digest)
    command = [str(top / "bench" / "run"), *job.options, "--results", str(path)]
    for cell in job.cells:
        command += ["--only", cell]
    print(f"---- {job.directory}: {len(job.cells)} cells", flush=True)
    process = subprocess.Popen(command, start_new_session=True)
    try:
        code = process.wait(None if until is None else max(until - time.monotonic(), 0))
    except (subprocess.TimeoutExpired, KeyboardInterrupt) as stopped:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(STOP_SECONDS)
        if isinstance(stopped, KeyboardInterrupt):
            raise
        return None
    if code == 0:
        (path / DONE).write_text(digest + "\n")
    return code == 0


def adopt(top: Path, path: Path) -> None:
    """Take the place of the committed directory."""
    target = top / "bench" / "results" / path.name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(path, target, ignore=shutil.ignore_patterns(DONE))
    print(f"{path.name}: in bench/results")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/release", description=__doc__.split("\n\n")[0])
    parser.add_argument("--top", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="what would be measured, and what has been")
    parser.add_argument("--minutes", type=float, help="a slice: stop then; the same command goes on")
    parser.add_argument("--only", action="append", metavar="DIRECTORY", help="of bench/results; repeatable")
    parser.add_argument("--core", type=Path, metavar="PREFIX", help="where core's branch is installed, for race-core-18")
    parser.add_argument("--adopt", action="store_true", help="put what is measured in bench/results; then: bench/pages")
    return parser.parse_args()


def main() -> int:
    options = parse()
    state = source_state()
    digest = state["src_digest"]
    until = None if options.minutes is None else time.monotonic() + 60 * options.minutes
    failed = left = 0
    for job in jobs(options.top, options.core):
        path = options.work / job.directory
        measured = is_measured(path, digest)
        if options.only and job.directory not in options.only:
            continue
        if options.list:
            what = "measured" if measured else f"needs {job.lacks}" if job.lacks else "begun" if path.exists() else "to do"
            print(f"{job.directory:32} {len(job.cells):4} cells  {what:10}  bench/run {' '.join(job.options)}")
        elif options.adopt:
            if measured:
                adopt(options.top, path)
        elif job.lacks:
            print(f"{job.directory}: left out, it needs {job.lacks}", flush=True)
        elif not measured and (until is None or time.monotonic() < until):
            found = measure(options.top, job, path, digest, until)
            failed += found is False
            left += found is None
        else:
            left += not measured
    if not options.list and not options.adopt:
        print(f"commit {state['commit'][:12]}, src {digest}: {failed} failed, {left} to go on with")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
