"""The schedule: every cell, its repetitions, and inside a repetition every variant.

Variants are interleaved: repetition 1 of stock, bitmap, lookahead, then repetition 2, the
first one of them changing each time, so that a slow minute of the machine falls on all.
The parameters of a query differ between repetitions and are the same for all variants.

Checked on the way: the plan has the scan that the variant is about; index-scan variants
have the same EXPLAIN text; all variants return the same number of rows and sums.  What
differs is printed, kept in problems.txt, and makes the exit code 1.  A sample that ends in
an error, or makes another index than stock, is noted in failed.csv and tried again by the
next run; the report shows its cell as failed, whatever its other samples say.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any, Mapping, Sequence

import psycopg
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .check import PATTERNS
from .claims import NAMES, patterns_of
from .command import ceiling_text, first_line, run_command, run_facts
from .machine import ROOT, ceiling, memory_megabytes
from .measure import Bench, Result
from .records import Records, Sample, samples_file
from .server import BASE_SETTINGS, Server, ServerError, digest_of
from .storages import LOCAL, STORAGES, Speed
from .summary import Results, print_check
from .variants import LIBRARY, Variant, beside_variant, forced_variant, make_variants
from .workloads import CACHED, COLD, OS_CACHED, WORKLOADS, Cell, Changing, Scope, Workload

DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128)
MEMORY_SHARE = 0.7  # that shared_buffers may take
SPACE_LEFT = 2 << 30  # bytes of the disk that are left alone
STATES = (COLD, CACHED, OS_CACHED)
# seconds, only for the forecast: of a sample's surroundings, and per row that is waited for
OVERHEAD = {COLD: 0.5, CACHED: 0.2, OS_CACHED: 0.6}
PER_ROW = {COLD: 1e-4, CACHED: 2e-6, OS_CACHED: 5e-6}


@dataclass
class Step:
    workload: Workload
    cell: Cell
    variants: list[Variant]


@dataclass
class Seen:
    """What the variants of one cell have shown so far."""

    plans: dict[str, str] = field(default_factory=dict)  # index-scan variant -> EXPLAIN
    answers: dict[int, tuple[str, str]] = field(default_factory=dict)  # rep -> variant, answer


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run", description="Measure stock, bitmap and look-ahead side by side.")
    parser.add_argument("--major", default="18", help="server: 15, 17, 18 or 19 (default 18)")
    parser.add_argument("--quick", action="store_true", help="a selection, less than 10 minutes")
    parser.add_argument("--machine-check", action="store_true",
                        help="each ratio beside what this machine allows, some 20 minutes (lookbench/check.py)")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[],
                        help="cells whose name workload/data/shape/size/state matches, e.g. 'limit/*/cold'; repeatable")
    parser.add_argument("--select", metavar="CLAIM", action="append", default=[], choices=sorted(NAMES),
                        help=f"the cells of a claim, repeatable: {', '.join(NAMES)} (lookbench/claims.py)")
    parser.add_argument("--reps", type=int, help="repetitions (default 5, quick 3)")
    parser.add_argument("--rows", type=int, help="rows of the points table (default 20 million, quick 2 million)")
    parser.add_argument("--limit-rows", type=int, help="rows, and pages, of the LIMIT table (default 200,000, quick 50,000)")
    parser.add_argument("--paid-rows", type=int,
                        help="rows of the table of index builds; inserts have a fifth (default 5 million, quick 200,000)")
    parser.add_argument("--full", action="store_true",
                        help="index builds in every combination of index, statement, workers and memory; more cells of write")
    parser.add_argument("--tpch", type=int, action="append", metavar="SCALE",
                        help="scale factor of TPC-H; repeatable (default 1, quick none; 5 takes hours)")
    parser.add_argument("--seconds", type=int, help="length of one pgbench run (default 3, quick 1)")
    parser.add_argument("--variants",
                        help="of stock, again, bare, bitmap, lookahead"
                             " (default stock,again,bitmap,lookahead, quick without again)")
    parser.add_argument("--storage", choices=STORAGES, default=LOCAL,
                        help="the machine's own disk, or a simulated cloud volume: latency in ms and reads/s"
                             f" (default {LOCAL})")
    parser.add_argument("--checksums", choices=("on", "off"),
                        help="checksums of the server's pages, which stay so (default: as they are; a new server of 18 has them)")
    parser.add_argument("--variant", metavar="NAME:SETTING=VALUE,...", action="append", default=[],
                        help="one more look-ahead variant with other settings, e.g. d16:max_distance=16; repeatable")
    parser.add_argument("--beside", metavar="NAME=PREFIX[,SETTING=VALUE...]", action="append", default=[],
                        help="one more variant: plain index scans of another server, with tables of its own and these settings;"
                             " PREFIX is 15, 17, 18, 19 or where it was installed, and \"library\" among the settings"
                             " preloads the library there; repeatable")
    parser.add_argument("--fresh", action="store_true", help="forget what this results directory has")
    parser.add_argument("--results", type=Path, help="directory (default bench/results/<date>-<major>)")
    parser.add_argument("--list", action="store_true", help="list the cells and stop")
    parser.add_argument("--bindir", type=Path, help=argparse.SUPPRESS)  # these come from bench/run
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--sockets", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--user", default="", help=argparse.SUPPRESS)
    parser.add_argument("--control", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.machine_check:
        options.quick = True
        options.only = options.only or list(PATTERNS)
        options.variants = options.variants or "stock,again,lookahead"
        options.results = options.results or ROOT / ".cache/bench" / f"machine-check-{options.major}"
        options.reps = options.reps or 5
    quick = options.quick
    options.small = small = quick or options.storage != LOCAL
    options.reps = options.reps or (3 if quick else 5)
    options.variants = options.variants or ("stock,bitmap,lookahead" if quick else "stock,again,bitmap,lookahead")
    options.rows = (options.rows or (2_000_000 if quick else 5_000_000 if small else 20_000_000)) // 1000 * 1000
    options.seconds = options.seconds or (1 if quick else 3)
    options.limit_rows = options.limit_rows or (50_000 if quick else 200_000)
    options.paid_rows = options.paid_rows or (200_000 if quick else 5_000_000)
    if options.paid_rows < 50_000:
        parser.error("at least 50,000 rows for index builds")
    if options.rows < 200_000 or options.limit_rows < 10_000:
        parser.error("at least 200,000 rows, and 10,000 for the LIMIT table")
    return options


def make_workloads(options: argparse.Namespace) -> list[Workload]:
    small = options.small
    scope = Scope(
        rows=options.rows,
        limit_rows=options.limit_rows,
        pgbench_rows=500_000 if small else 5_000_000,
        shape_rows=200_000 if options.quick else 500_000 if small else 3_000_000,
        vector_rows=20_000 if options.quick else 50_000 if small else 300_000,
        part_rows=200_000 if options.quick else 500_000 if small else 2_000_000,
        wide_rows=20_000 if small else 100_000,
        tpch_scales=options.tpch or (() if options.quick else (1,)),
        quick=options.quick,
        seconds=options.seconds,
        paid_rows=options.paid_rows,
        full=options.full,
        star_rows=200_000 if options.quick else 2_000_000 if small else 10_000_000,
        grown_rows=200_000 if options.quick else 2_000_000 if small else 4_000_000,
        document_rows=20_000 if options.quick else 300_000,
    )
    return [kind(scope) for kind in WORKLOADS]


def plan_steps(options: argparse.Namespace, workloads: list[Workload], variants: list[Variant]) -> list[Step]:
    """All cells that are wanted, state by state and table by table."""
    patterns = [*options.only, *(pattern for name in options.select for pattern in patterns_of(name))]
    steps = []
    for state in STATES if options.storage == LOCAL else (COLD,):
        for workload in workloads:
            for cell in workload.cells():
                wanted = not patterns or any(fnmatch.fnmatch(cell.key, p) for p in patterns)
                if cell.state == state and wanted:
                    chosen = suitable(variants, workload, cell)
                    if chosen:
                        steps.append(Step(workload, cell, chosen))
    return steps


def suitable(variants: list[Variant], workload: Workload, cell: Cell) -> list[Variant]:
    variants = [v for v in variants if v.beside not in workload.not_beside]
    if workload.lacking:
        variants = [v for v in variants if not v.looks_ahead]
    elif workload.switches:
        variants = [replace(v, session=dict(v.session) | dict(workload.switches)) if v.looks_ahead else v for v in variants]
    if workload.free_plans:
        free = [v.free() for v in variants if not v.is_bitmap]
        # they are what the planner's choice is judged by
        judged = any(v.adjusts_costs for v in free)
        return free + [forced_variant(name, settings) for name, settings in workload.forced(cell).items() if judged]
    bitmaps = [v for v in variants if v.is_bitmap] if workload.has_bitmap(cell) else []
    if cell.state != COLD or workload.scope.quick or not workload.all_bitmaps:
        # they differ in how blocks are read, and nothing (much) is read, or it is known by then
        bitmaps = bitmaps[:1]
    settings = workload.server(cell)
    variants = [v for v in variants if all(settings.get(k, value) == value for k, value in v.server.items())]
    variants = [v for v in variants if not v.is_bitmap or v in bitmaps]
    if workload.bitmap_scans:
        return [v.bitmap() for v in variants]
    return [v.index_only() for v in variants] if workload.index_only else variants


def forecast(step: Step, variant: Variant) -> float:
    """Roughly the seconds of one sample."""
    throughput = step.workload.throughput(step.cell)
    if throughput:
        return OVERHEAD[step.cell.state] + step.workload.scope.seconds * throughput.times
    waits = 1.0 if variant.is_stock else 0.2
    guess = step.workload.seconds(step.cell)
    if guess is None:
        rows = step.cell.size * len(step.workload.statements(step.cell, 0))
        guess = rows * PER_ROW[step.cell.state] * waits
    return OVERHEAD[step.cell.state] + guess


class Runner:
    def __init__(self, options: argparse.Namespace, console: Console) -> None:
        self.options = options
        self.console = console
        self.server = Server(options.bindir, options.data, options.sockets, options.user)
        self.bench = Bench(self.server)
        self.beside: dict[Path, Bench] = {}  # by their programs
        self.speed = Speed(options.storage, options.control)
        self.problems = 0
        place = "" if options.storage == LOCAL else f"-{options.storage}"
        directory = options.results or ROOT / "bench/results" / f"{date.today()}-{options.major}{place}"
        self.records = Records(directory, options.fresh)
        self.run = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        self.seen: dict[str, Seen] = {}
        self.settings: dict[str, dict[str, str]] = {}
        self.touched: tuple[str, tuple[str, ...]] | None = None
        self.facts: dict[str, Any] = {}

    # ---- preparation ------------------------------------------------------

    def steps(self) -> list[Step]:
        """Everything that is wanted of this server."""
        if not self.server.exists():
            self.console.print(f"creating a server of PostgreSQL {self.server.version}")
            self.server.create(BASE_SETTINGS)
        if self.options.checksums and not self.options.list:
            self.server.set_checksums(self.options.checksums == "on")
        uring = self.server.major >= 18 and self.server.starts_with({"io_method": "io_uring"})
        names = self.options.variants.split(",")
        library = "lookahead" in names or bool(self.options.variant)
        variants = make_variants(names, self.options.variant, self.server, library, uring)
        for text in self.options.beside:
            variants.append(beside_variant(text, {variant.name for variant in variants}))
        self._prepare_beside(variants)
        workloads = []
        for workload in make_workloads(self.options):
            obstacle = workload.obstacle(self.server, uring)
            if obstacle:
                self.console.print(f"{workload.name} is left out: {obstacle}")
                continue
            workload.lacking = self._lacking(workload.switches) if library else ()
            if workload.lacking:
                self.console.print(f"{workload.name} is measured without look-ahead: there is no {', '.join(workload.lacking)}")
            workloads.append(workload)
            workload.not_beside = [programs for programs, bench in self.beside.items() if workload.obstacle(bench.server, uring)]
        return plan_steps(self.options, workloads, variants)

    def _prepare_beside(self, variants: Sequence[Variant]) -> None:
        """A data directory for each other server, whichever variants share it."""
        for programs in dict.fromkeys(variant.beside for variant in variants if variant.beside):
            data = self.options.data.with_name(f"{self.options.data.name}-beside-{digest_of(programs)}")
            sockets = self.options.sockets / digest_of(programs)
            server = Server(programs, data, sockets, self.options.user)
            for directory in (data, sockets):
                directory.mkdir(mode=0o700, exist_ok=True)
                if os.geteuid() == 0:
                    shutil.chown(directory, self.options.user)
            if not server.exists():
                self.console.print(f"creating a server of PostgreSQL {server.version} beside")
                server.create(BASE_SETTINGS)
            self.beside[programs] = Bench(server)

    @property
    def benches(self) -> list[Bench]:
        return [self.bench, *self.beside.values()]

    def bench_of(self, variant: Variant) -> Bench:
        """Where a variant is measured; no other server runs meanwhile, or keeps its files in memory."""
        chosen = self.beside[variant.beside] if variant.beside else self.bench
        for bench in self.benches:
            if bench is not chosen:
                bench.release()
                bench.server.stop()
        return chosen

    def end(self) -> None:
        for bench in self.benches:
            bench.release()
            bench.server.stop()

    def _lacking(self, settings: Mapping[str, str]) -> Sequence[str]:
        """Those of the library's settings that the installed one does not know."""
        if not settings or not self.server.starts_with({"shared_preload_libraries": LIBRARY}):
            return tuple(settings)
        with closing(self.server.connect()) as connection:
            known = {row[0] for row in connection.execute("select name from pg_settings where name = any (%s)", (list(settings),))}
        return tuple(name for name in settings if name not in known)

    def check_space(self, steps: list[Step]) -> None:
        """Before anything is made: does it fit?  What is there already is not needed again."""
        by_table: dict[str, int] = {}
        for workload in {id(step.workload): step.workload for step in steps}.values():
            by_table[workload.table] = max(by_table.get(workload.table, 0), workload.table_rows * workload.bytes_per_row)
        needed = sum(by_table.values()) * len(self.benches)
        have = sum(f.stat().st_size for bench in self.benches for f in (bench.server.data / "base").rglob("*") if f.is_file())
        free = shutil.disk_usage(self.server.data).free - SPACE_LEFT
        if needed - have <= free:
            return
        share = max(free + have, 0) / needed
        raise ServerError(
            f"the tables need about {needed / 1e9:.0f} GB, {have / 1e9:.0f} of them are there, and"
            f" {max(free, 0) / 1e9:.0f} GB of the disk may be used; --rows {int(self.options.rows * share) // 1000 * 1000}"
            " --tpch 1 would fit, or choose cells with --only"
        )

    def make_tables(self, steps: list[Step]) -> None:
        for workload in {id(step.workload): step.workload for step in steps}.values():
            for bench in (bench for programs, bench in [(None, self.bench), *self.beside.items()] if programs not in workload.not_beside):
                self.console.print(f"tables and indexes for {workload.name}, PostgreSQL {bench.server.version}")
                bench.ensure(workload, [step.cell for step in steps if step.workload is workload])

    def calibrate(self, steps: list[Step]) -> None:
        """Costs can be adjusted once the server knows its storage; it keeps that."""
        if not any(variant.adjusts_costs for step in steps for variant in step.variants):
            return
        self.server.stop()
        self.speed.own()
        self.server.start({"shared_preload_libraries": LIBRARY})
        with closing(self.server.connect()) as connection:
            connection.execute(f"create extension if not exists {LIBRARY}")
            connection.execute(f"alter extension {LIBRARY} update")
            connection.execute("select pg_lookahead_calibrate()")
        self.server.stop()

    def missing(self, step: Step) -> list[tuple[int, Variant]]:
        """Repetitions and variants that are still to be measured, interleaved."""
        order = []
        for rep in range(self.options.reps):
            turn = rep % len(step.variants)
            for variant in step.variants[turn:] + step.variants[:turn]:
                if not self.records.has(step.cell, variant.name, rep):
                    order.append((rep, variant))
        return order

    def describe(self, steps: list[Step]) -> None:
        """Machine, server and ceiling into machine.json, before the first sample."""
        largest = max(steps, key=lambda step: step.workload.table_rows)
        heap = self.bench.heap_file(largest.workload.tables(largest.cell)[0])
        self.server.stop()
        self.speed.own()
        reads = ceiling(heap, DEPTHS)
        self.facts = run_facts(
            self.run, self.server.version, self.options.data, self.options,
            ("quick", "reps", "rows", "limit_rows", "seconds", "paid_rows", "full"), reads,
            checksums=self.server.has_checksums(), settings=self.settings,
            beside={variant.name: self.beside[variant.beside].server.version
                    for step in steps for variant in step.variants if variant.beside},
        )
        self.console.print(ceiling_text(reads))
        self.records.write_run(self.run, self.facts)

    # ---- measuring --------------------------------------------------------

    def measure(self, steps: list[Step]) -> None:
        todo = [(step, rep, variant) for step in steps for rep, variant in self.missing(step)]
        buffers: dict[tuple[str, ...], int] = {}
        for tables in {tuple(step.workload.tables(step.cell)) for step, _, _ in todo if step.cell.state == CACHED}:
            buffers[tables] = self.bench.cached_buffers(tables)
            memory = memory_megabytes()
            if buffers[tables] > memory * MEMORY_SHARE:
                fitting = int(self.options.rows * memory * MEMORY_SHARE / buffers[tables]) // 1000 * 1000
                raise ServerError(
                    f"{', '.join(tables)} would need shared_buffers of {buffers[tables]} MB, and this machine has"
                    f" {memory} MB of memory: leave the cached cells out, or try --rows {fitting} --tpch 1"
                )
        with Progress(
            TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
            console=self.console, disable=not self.console.is_terminal, speed_estimate_period=300,
        ) as progress:
            task = progress.add_task("", total=sum(forecast(step, variant) for step, _, variant in todo))
            last = ""
            for step, rep, variant in todo:
                if step.cell.key != last:
                    last = step.cell.key
                    if not self.console.is_terminal:
                        self.console.print(f"{time.strftime('%H:%M:%S')} {last}")
                progress.update(task, description=f"{last} {variant.name} {rep + 1}/{self.options.reps}")
                try:
                    self._touch(step, rep)
                    result = self.bench_of(variant).sample(
                        step.workload, step.cell, variant, rep, buffers.get(tuple(step.workload.tables(step.cell)), 0)
                    )
                except (psycopg.Error, ServerError) as error:
                    self._failed(step.cell, rep, variant, error)
                else:
                    wrong = self._check(step, rep, variant, result)
                    if wrong:
                        self._failed(step.cell, rep, variant, ServerError(wrong))
                    else:
                        self._record(step.cell, rep, variant, result)
                progress.advance(task, forecast(step, variant))

    def _touch(self, step: Step, rep: int) -> None:
        """Execute a cold cell's statements once before anything is measured with them.

        Below a virtual machine there may be a cache that nobody here can empty: then who reads
        blocks first pays for it, and with an odd number of repetitions that is one variant
        more often than the other.  Plans that differ read different blocks, so that all of them are
        executed once.
        """
        cell = step.cell
        if cell.state != COLD or step.workload.throughput(cell) is not None:
            return
        statements = tuple(step.workload.statements(cell, rep))
        if self.touched != (cell.key, statements):
            self.touched = (cell.key, statements)
            differ = step.workload.plans_differ or any(variant.adjusts_costs for variant in step.variants)
            own = [variant for variant in step.variants if not variant.beside]
            others = {variant.beside: variant for variant in step.variants if variant.beside}
            for variant in [*(own if differ else own[-1:]), *others.values()]:
                self.bench_of(variant).sample(step.workload, cell, variant, rep, 0)

    def _record(self, cell: Cell, rep: int, variant: Variant, result: Result) -> None:
        self.records.add(
            Sample.of(
                self.run, cell, variant.name, rep, result.ms, result.executions, result.rows, result.checksum, result.reads
            )
        )
        if result.categories:
            self.records.add_categories(self.run, cell, variant.name, rep, result.categories)
        self.records.add_plan(cell, variant.name, result.plan)
        place = f"{cell.state} {variant.name}"
        if place not in self.settings:
            self.settings[place] = result.settings
            self.records.write_run(self.run, self.facts)

    def _check(self, step: Step, rep: int, variant: Variant, result: Result) -> str:
        """Print and note what is not as it should be; the text of what makes the sample fail."""
        exact = isinstance(step.workload, Changing) and step.workload.exact
        name = f"{step.cell.key} {variant.name}"
        seen = self.seen.setdefault(step.cell.key, self._seen_before(step.cell))
        for wanted in (variant.node, *step.workload.in_plan(step.cell)):
            if wanted and wanted not in result.plan:
                self._problem(f"{name}: the plan has no {wanted}")
        if not (variant.beside or variant.is_bitmap or variant.adjusts_costs or variant.is_forced or step.workload.plans_differ) and rep == 0:
            seen.plans[variant.name] = result.plan
            other = next(iter(seen.plans))
            if seen.plans[other] != result.plan:
                self._problem(f"{name}: its plan is not that of {other}")
        answer = f"{result.rows} rows, {result.checksum}"
        # what is exact is so in all repetitions
        other, expected = seen.answers.setdefault(0 if exact else rep, (variant.name, answer))
        if answer != expected:
            text = f"{answer}, but {other} has {expected}"
            if exact:
                return text
            self._problem(f"{name}, repetition {rep}: {text}")
        if step.cell.state == CACHED and result.reads:
            self._problem(f"{name}, repetition {rep}: {result.reads} blocks were read, nothing should have been")
        return ""

    def _seen_before(self, cell: Cell) -> Seen:
        """The answers that earlier runs have recorded."""
        seen = Seen()
        for sample in self.records.samples:
            if sample.cell == cell:
                seen.answers.setdefault(sample.rep, (sample.variant, f"{sample.rows} rows, {sample.checksum}"))
        return seen

    def _failed(self, cell: Cell, rep: int, variant: Variant, error: Exception) -> None:
        text = first_line(error)
        self.problems += 1
        self.console.print(f"[red]failed:[/red] {cell.key} {variant.name}, repetition {rep}: {text}", highlight=False)
        self.records.add_failure(self.run, cell, variant.name, rep, text)
        self.bench_of(variant).server.stop()

    def _problem(self, text: str) -> None:
        self.problems += 1
        self.console.print(f"[red]problem:[/red] {text}", highlight=False)
        self.records.add_problem(f"{self.run} {text}")


def main() -> int:
    options = parse(sys.argv[1:])
    console = Console(highlight=False, soft_wrap=True)

    def work(ends: ExitStack) -> int:
        runner = Runner(options, console)
        ends.callback(runner.end)
        steps = runner.steps()
        if options.list:
            for step in steps:
                console.print(f"{step.cell.key}  {', '.join(v.name for v in step.variants)}")
            left = sum(forecast(step, variant) for step in steps for _, variant in runner.missing(step))
            console.print(f"{len(steps)} cells, about {left / 60:.0f} minutes are left to measure")
            return 0
        todo = [step for step in steps if runner.missing(step)]
        if not todo:
            console.print("nothing left to measure; --fresh starts anew")
        else:
            runner.speed.full()
            runner.check_space(todo)
            runner.make_tables(todo)
            runner.describe(todo)
            runner.calibrate(todo)
            runner.measure(todo)
            for name, value in runner.speed.counters().items():
                console.print(f"volume: {name} {value}")
        console.print(f"results: {runner.records.directory}")
        if options.machine_check:
            print_check(Results(samples_file(runner.records.directory), "lookahead"), console)
        return 1 if runner.problems else 0

    return run_command(console, work)


if __name__ == "__main__":
    sys.exit(main())
