"""The schedule: every cell, its repetitions, and inside a repetition every variant.

As in runner.py variants are interleaved, the first one of them changing each time, every sample is written as soon as
it is taken, and what has been taken is not taken again.  The candidates for the server's best settings
are all measured by the first repetition, of which the best go on.

Checked on the way: all variants recover to the same end of the log, and in the first repetition to the same rows and
sums; subscribers of all variants have the same rows and sums.  A sample that differs, or ends in an
error, is noted in failed.csv.
"""

from __future__ import annotations

import argparse
import fnmatch
import shutil
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any, Iterator, Sequence

import psycopg
from rich.console import Console

from ..claims import NAMES, patterns_of
from ..command import ceiling_text, first_line, run_command, run_facts
from ..machine import ROOT, ceiling
from ..records import Records, Sample
from ..server import ServerError
from ..storages import LOCAL, STORAGES, Speed
from .cells import (
    APPLY, BEST, DEFAULT_VARIANTS, PROMOTION, REPLAY, Chosen, Crash, Promotion, Scope, Stream, Variant, apply_variants, crashes,
    extra_variant, promotion_variants, promotions, replay_variants, streams, tables,
)
from .crashes import Crashes, Result
from .promotions import Promotions
from .servers import CopiedServer, Originals, own
from .streams import Streams

DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128)
QUICK_DEPTHS = (1, 16, 64)
NEEDED = {True: 1 << 30, False: 6 << 30}  # bytes of the disk, quick and not
SPACE_LEFT = 1 << 30
OVERHEAD = {True: 3.0, False: 9.0}  # seconds of a sample's surroundings, for the forecast
LIKE_OFF = ("off", "stock", "again")  # what waits for blocks, for the forecast


@dataclass
class Step:
    what: Crash | Stream | Promotion
    variants: list[Variant]

    @property
    def key(self) -> str:
        return self.what.cell.key


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/replay", description="Measure crash recovery and logical apply, stock and with look-ahead.")
    parser.add_argument("--major", default="18", help="server: 15, 17 or 18 (default 18)")
    parser.add_argument("--quick", action="store_true", help="small tables: to see that it works, not to judge by")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[],
                        help="cells whose name workload/data/shape/size/state matches, e.g. 'apply/update/*'; repeatable")
    parser.add_argument("--select", metavar="CLAIM", action="append", default=[], choices=sorted(NAMES),
                        help="the cells of a claim, repeatable: replay, replay-volume, replay-munro, apply, apply-volume, promotion (lookbench/claims.py)")
    parser.add_argument("--reps", type=int, help="repetitions (default 3, quick 1)")
    parser.add_argument("--seconds", type=int, help="for which writers of live cells write (default 15, on volumes 5, quick 2)")
    parser.add_argument("--rate", type=int, default=0, help="transactions/s of live writers together (default as many as they can)")
    parser.add_argument("--variants", help="of stock, again, off, tuned, lookahead, lookahead-off, cached"
                                           " (default all but again; of apply stock, lookahead, cached; of promotion stock, lookahead)")
    parser.add_argument("--variant", metavar="NAME:SETTING=VALUE,...", action="append", default=[],
                        help="one more look-ahead variant with other settings; those of the server have a leading dot; repeatable")
    parser.add_argument("--storage", choices=STORAGES, default=LOCAL,
                        help=f"the machine's own disk, or a simulated cloud volume (default {LOCAL})")
    parser.add_argument("--fresh", action="store_true", help="forget what this results directory has")
    parser.add_argument("--discard", action="store_true", help="do not keep the data directories that samples are copied from")
    parser.add_argument("--results", type=Path, help="directory (default bench/results/<date>-<major>-replay)")
    parser.add_argument("--list", action="store_true", help="list the cells and stop")
    for name in ("--bindir", "--data", "--keep", "--sockets"):  # these come from bench/replay
        parser.add_argument(name, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--user", default="", help=argparse.SUPPRESS)
    parser.add_argument("--control", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.reps = options.reps or (1 if options.quick else 3)
    options.seconds = options.seconds or (2 if options.quick else 15 if options.storage == LOCAL else 5)
    return options


def plan_steps(options: argparse.Namespace) -> list[Step]:
    scope = Scope(options.storage, options.quick, options.seconds)
    patterns = [*options.only, *(pattern for name in options.select for pattern in patterns_of(name))]
    extra = [extra_variant(text) for text in options.variant]

    def chosen(family: str) -> Chosen:
        return Chosen(options.variants.split(",") if options.variants else DEFAULT_VARIANTS[family], extra)

    steps = [Step(crash, chosen(REPLAY).of(replay_variants(crash, scope))) for crash in crashes(scope)]
    steps += [Step(stream, chosen(APPLY).of(apply_variants())) for stream in streams(scope)]
    steps += [Step(promotion, chosen(PROMOTION).of(promotion_variants())) for promotion in promotions(scope)]
    return [step for step in steps if step.variants and (not patterns or any(fnmatch.fnmatch(step.key, p) for p in patterns))]


class Runner:
    def __init__(self, options: argparse.Namespace, console: Console) -> None:
        self.options = options
        self.console = console
        self.speed = Speed(options.storage, options.control)
        place = "" if options.storage == LOCAL else f"-{options.storage}"
        directory = options.results or ROOT / "bench/results" / f"{date.today()}-{options.major}-replay{place}"
        self.records = Records(directory, options.fresh)
        self.run = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        self.problems = 0
        self.facts: dict[str, Any] = {}
        self.settings: dict[str, dict[str, str]] = {}
        self.version = ""
        self.ends: list[Any] = []

    # ---- what is to be measured ---------------------------------------------------

    def todo(self, step: Step) -> Iterator[tuple[int, Variant]]:
        """Repetitions and variants that are still to be measured, interleaved; asked for one by one."""
        for rep in range(self.options.reps):
            variants = [v for v in step.variants if self.wanted(step, v, rep)]
            turn = rep % len(variants) if variants else 0
            for variant in variants[turn:] + variants[:turn]:
                if not self.records.has(step.what.cell, variant.name, rep):
                    yield rep, variant

    def wanted(self, step: Step, variant: Variant, rep: int) -> bool:
        if rep == 0:
            return True
        if variant.once:
            return False
        return not variant.is_tuned or variant.name in self.best(step)

    def best(self, step: Step) -> list[str]:
        """The candidates that came out first, by what the first repetition says of them."""
        times = {s.variant: s.ms for s in self.records.samples if s.cell == step.what.cell and s.rep == 0}
        there = [v.name for v in step.variants if v.is_tuned and v.name in times]
        return sorted(there, key=lambda name: times[name])[:BEST]

    def forecast(self, step: Step) -> float:
        """Roughly the seconds that are left of a cell."""
        total = 0.0
        for rep in range(self.options.reps):
            tuned = 0
            for variant in step.variants:
                tuned += variant.is_tuned
                if rep and (variant.once or (variant.is_tuned and tuned > BEST)) or self.records.has(step.what.cell, variant.name, rep):
                    continue
                total += OVERHEAD[self.options.quick] + step.what.seconds * (1.0 if variant.name in LIKE_OFF else 0.4)
        return total

    # ---- measuring -----------------------------------------------------------------

    def prepare(self, steps: Sequence[Step]) -> None:
        options = self.options
        for name in ("subscriber", "publisher", "primary"):
            own(options.sockets / name, options.user)
        free = shutil.disk_usage(options.keep).free
        held = sum(f.stat().st_size for f in options.keep.rglob("*") if f.is_file())
        if free + held < NEEDED[options.quick] + SPACE_LEFT:
            raise ServerError(f"{options.keep} has {free / 1e9:.0f} GB free, which is not enough: --quick, or LA_BENCH_DATA")
        server = CopiedServer(options.bindir, options.data / "work", options.sockets / "subscriber", options.user)
        publisher = CopiedServer(options.bindir, options.keep / "publisher", options.sockets / "publisher", options.user)
        self.version = server.version
        originals = Originals(server, options.keep, options.sockets / "publisher")
        self.originals = originals
        self.crashes = Crashes(server, originals, self.speed)
        self.streams = Streams(
            publisher, server, Originals(server, options.keep, options.sockets / "subscriber"), self.speed,
            tables(Scope(options.storage, options.quick, options.seconds)), options.rate,
        )
        primary = CopiedServer(options.bindir, options.keep / "primary", options.sockets / "primary", options.user)
        self.promotions = Promotions(primary, server, Originals(server, options.keep, options.sockets / "subscriber"), self.speed)
        self.ends = [self.crashes, self.streams, self.promotions]
        self.server = server

    def describe(self) -> None:
        """Machine, server and ceiling into machine.json, before the first sample; the ceiling by a file of our own."""
        file = self.options.data / "ceiling"
        self.speed.full()
        with file.open("wb") as output:
            for _ in range(64 if self.options.quick else 512):
                output.write(bytes(range(256)) * 4096)
        subprocess.run(["sync", "-f", str(file)], check=False)
        self.speed.own()
        reads = ceiling(file, QUICK_DEPTHS if self.options.quick else DEPTHS, 1 if self.options.quick else 2)
        self.speed.full()
        file.unlink()
        self.facts = run_facts(
            self.run, self.version, self.options.data, self.options, ("quick", "reps", "seconds", "rate"), reads, settings=self.settings
        )
        self.console.print(ceiling_text(reads))
        self.records.write_run(self.run, self.facts)

    def measure(self, steps: Sequence[Step]) -> None:
        left = sum(self.forecast(step) for step in steps)
        for step in steps:
            self.console.print(f"{time.strftime('%H:%M:%S')} {step.key}, about {left / 60:.0f} minutes are left")
            left -= self.forecast(step)
            for rep, variant in self.todo(step):
                try:
                    result = self.sample(step, variant, rep)
                    wrong = self.differs(step, rep, result)
                except (psycopg.Error, ServerError, OSError, subprocess.SubprocessError) as error:
                    wrong = first_line(error)
                if wrong:
                    self.failed(step, rep, variant, wrong)
                else:
                    self.record(step, rep, variant, result)

    def sample(self, step: Step, variant: Variant, rep: int) -> Result:
        if isinstance(step.what, Crash):
            return self.crashes.sample(step.what, variant, rep)
        if isinstance(step.what, Promotion):
            return self.promotions.sample(step.what, variant, rep)
        return self.streams.sample(step.what, variant, rep)

    def differs(self, step: Step, rep: int, result: Result) -> str:
        """What is not as other variants have it in this repetition."""
        answer = f"{result.rows} rows, {result.checksum}"
        for sample in self.records.samples:
            if sample.cell == step.what.cell and sample.rep == rep:
                other = f"{sample.rows} rows, {sample.checksum}"
                # a run that made its original anew has another log
                if sample.run == self.run and other != answer:
                    return f"{answer}, but {sample.variant} has {other}"
        return ""

    def record(self, step: Step, rep: int, variant: Variant, result: Result) -> None:
        cell = step.what.cell
        self.records.add(
            Sample.of(self.run, cell, variant.name, rep, result.ms, 1, result.rows, result.checksum, result.reads)
        )
        self.records.add_categories(self.run, cell, variant.name, rep, result.categories)
        place = f"{cell.workload}/{cell.data}/{cell.shape} {variant.name}"
        if place not in self.settings:
            self.settings[place] = result.settings
            self.records.write_run(self.run, self.facts)
        rate = f", {result.reads / result.ms * 1000:,.0f} reads/s" if result.reads and result.ms else ""
        told = {name: f"{result.categories[name]:,}" for name in ("transactions", "lag_bytes", "catch_up_ms") if name in result.categories}
        more = "".join(f", {name} {value}" for name, value in told.items())
        self.console.print(f"  {variant.name} {rep + 1}/{self.options.reps}: {result.ms:,.0f} ms{rate}{more}")

    def failed(self, step: Step, rep: int, variant: Variant, text: str) -> None:
        self.problems += 1
        self.console.print(f"[red]failed:[/red] {step.key} {variant.name}, repetition {rep}: {text}", highlight=False)
        self.keep_log(step, variant, rep)
        self.records.add_failure(self.run, step.what.cell, variant.name, rep, text)
        self.server.stop("immediate")

    def keep_log(self, step: Step, variant: Variant, rep: int) -> None:
        """Of the server that failed, whose directory goes with the next sample."""
        log = self.options.data / "work" / "server.log"
        if log.exists():
            name = f"failed-{step.key.replace('/', '-')}-{variant.name}-{rep}.log"
            shutil.copy(log, self.options.keep / name)
            self.console.print(f"  its log: {self.options.keep / name}")

    def release(self) -> None:
        self.speed.full()
        for end in self.ends:
            end.release()
        if self.ends and self.options.discard:
            for path in list(self.options.keep.iterdir()):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def summary_lines(runner: Runner, steps: Sequence[Step]) -> Iterator[str]:
    """Medians and reads per second of each variant: Munro's table."""
    for step in steps:
        yield step.key
        for variant in step.variants:
            samples = [s for s in runner.records.samples if s.cell == step.what.cell and s.variant == variant.name]
            if samples:
                rates = [s.reads / s.ms * 1000 for s in samples if s.reads]
                rate = f"{statistics.median(rates):10,.0f} reads/s" if rates else ""
                yield f"  {variant.name:20} {statistics.median(s.ms for s in samples):10,.0f} ms{rate}  ({len(samples)})"


def main() -> int:
    options = parse(sys.argv[1:])
    console = Console(highlight=False, soft_wrap=True)

    def work(ends: ExitStack) -> int:
        steps = plan_steps(options)
        runner = Runner(options, console)
        ends.callback(runner.release)
        if options.list:
            for step in steps:
                console.print(f"{step.key}  {', '.join(v.name for v in step.variants)}")
            left = sum(runner.forecast(step) for step in steps)
            console.print(f"{len(steps)} cells, about {left / 60:.0f} minutes are left to measure")
            return 0
        todo = [step for step in steps if next(runner.todo(step), None)]
        if not steps:
            console.print("no cell has such a name on this storage; --list shows them")
        elif not todo:
            console.print("nothing left to measure; --fresh starts anew")
        else:
            runner.prepare(todo)
            runner.describe()
            runner.measure(todo)
        for line in summary_lines(runner, steps):
            console.print(line)
        console.print(f"results: {runner.records.directory}")
        return 1 if runner.problems else 0

    return run_command(console, work)


if __name__ == "__main__":
    sys.exit(main())
