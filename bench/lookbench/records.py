"""Results on disk, in one directory per run: bench/results/<subject>/

samples.csv   one row per cell, variant and repetition, appended as soon as it is
              measured; a row that is there is not measured again.  A finished run may have
              it compressed, as samples.csv.gz
machine.json  machine, server, git commit, disk ceiling and settings, one entry for each
              time the runner was started
categories.csv
              how much a workload's own counters grew during a sample (all its executions);
              what did not grow is left out.  Of an index build or inserts: bytes of what was
              made, workers
plans.txt     the plan of each cell and variant, long lists shortened
failed.csv    samples that ended in an error, with its text; tried again by the next run
problems.txt  rows or plans that differed, caches that were not what they should be
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, Iterator, Mapping

from .workloads.base import Cell


@dataclass(frozen=True)
class Sample:
    run: str  # which entry of machine.json
    workload: str
    data: str
    shape: str
    size: int
    state: str
    variant: str
    rep: int
    ms: float  # for all executions together
    executions: int
    rows: int | None  # returned by all executions together; None for throughput
    checksum: str
    reads: int | None  # blocks of table and index that were not in shared_buffers

    @staticmethod
    def of(
        run: str, cell: Cell, variant: str, rep: int, ms: float, executions: int, rows: int | None, checksum: str, reads: int | None
    ) -> Sample:
        """The sample of a cell; times are kept to a tenth of a microsecond."""
        return Sample(
            run, cell.workload, cell.data, cell.shape, cell.size, cell.state, variant, rep, round(ms, 4), executions, rows, checksum, reads
        )

    @property
    def cell(self) -> Cell:
        return Cell(self.workload, self.data, self.shape, self.size, self.state)

    @property
    def latency(self) -> float:
        """Milliseconds for one execution."""
        return self.ms / self.executions


_PLAN_LINES = 40
_HEADER = [field.name for field in fields(Sample)]


def _number(text: str) -> int | None:
    return int(text) if text else None


def samples_file(directory: Path) -> Path | None:
    """Where a run has its samples, or None if it has none."""
    names = ("samples.csv", "samples.csv.gz")
    return next((directory / name for name in names if (directory / name).exists()), None)


def read_samples(path: Path) -> Iterator[Sample]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", newline="") as file:
        for row in csv.DictReader(file):
            yield Sample(
                row["run"], row["workload"], row["data"], row["shape"], int(row["size"]), row["state"],
                row["variant"], int(row["rep"]), float(row["ms"]), int(row["executions"]),
                _number(row["rows"]), row["checksum"], _number(row["reads"]),
            )


class Records:
    def __init__(self, directory: Path, fresh: bool) -> None:
        self.directory = directory
        self.csv = directory / "samples.csv"
        if fresh:
            for name in ("samples.csv", "categories.csv", "machine.json", "plans.txt", "failed.csv", "problems.txt"):
                (directory / name).unlink(missing_ok=True)
        if samples_file(directory) not in (None, self.csv):
            raise SystemExit(f"{directory} is a finished run: gunzip its samples.csv.gz to go on with it")
        self.samples = list(read_samples(self.csv)) if self.csv.exists() else []
        self._done = {(s.cell.key, s.variant, s.rep) for s in self.samples}
        self._plans = self._plan_heads()

    def has(self, cell: Cell, variant: str, rep: int) -> bool:
        return (cell.key, variant, rep) in self._done

    def add(self, sample: Sample) -> None:
        new = not self.csv.exists()
        with self.csv.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(_HEADER)
            writer.writerow("" if value is None else value for value in astuple(sample))
        self.samples.append(sample)
        self._done.add((sample.cell.key, sample.variant, sample.rep))

    # ---- machine.json -----------------------------------------------------

    def write_run(self, run: str, facts: dict[str, Any]) -> None:
        """Add or replace the facts of a run; the first thing to be written."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / "machine.json"
        runs = json.loads(path.read_text()) if path.exists() else {}
        runs[run] = facts
        path.write_text(json.dumps(runs, indent=1) + "\n")

    # ---- plans.txt, categories.csv, failed.csv and problems.txt -----------------------

    def _plan_heads(self) -> set[str]:
        path = self.directory / "plans.txt"
        return {l for l in path.read_text().splitlines() if l.startswith("## ")} if path.exists() else set()

    def add_plan(self, cell: Cell, variant: str, plan: str) -> None:
        head = f"## {cell.key} {variant}"
        if head in self._plans:
            return
        self._plans.add(head)
        short = re.sub(r"\{[^}]{80,}\}", "{...}", plan)
        lines = short.splitlines()
        if len(lines) > _PLAN_LINES:
            short = "\n".join([*lines[:_PLAN_LINES], f"... {len(lines) - _PLAN_LINES} more lines"])
        with (self.directory / "plans.txt").open("a") as file:
            file.write(f"{head}\n{short}\n")

    def add_categories(self, run: str, cell: Cell, variant: str, rep: int, values: Mapping[str, int]) -> None:
        path = self.directory / "categories.csv"
        new = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(["run", "cell", "variant", "rep", "category", "value"])
            writer.writerows([run, cell.key, variant, rep, name, value] for name, value in values.items() if value)

    def add_failure(self, run: str, cell: Cell, variant: str, rep: int, error: str) -> None:
        path = self.directory / "failed.csv"
        new = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(["run", "cell", "variant", "rep", "error"])
            writer.writerow([run, cell.key, variant, rep, error])

    def add_problem(self, text: str) -> None:
        with (self.directory / "problems.txt").open("a") as file:
            file.write(text + "\n")
