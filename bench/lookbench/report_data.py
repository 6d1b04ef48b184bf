"""What the report says: ratios, their noise, red cells, failed cells, the finding.

A place is one results directory, by major version and storage: only what was measured in
one directory is compared.  A ratio is the median of stock (or of the best bitmap variant)
by the median of look-ahead, so 2.00 is twice as fast.

The noise of a cell is what stock measured against itself (the variant "again") differs by:
the larger of the distance of their medians and half the interquartile range of both
together.  A ratio no farther from 1 than that is no result.  Without "again" nothing is
called noise, and the spreads have to do.

A cell of which any sample ended in an error is failed: it has no ratio and is in no mean.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, Sequence

from .records import Sample, read_samples, samples_file
from .replayed.cells import APPLY, REPLAY
from .replayed.cells import SOURCES as REPLAYED
from .summary import Figure, figure, rival
from .workloads import CACHED, COLD, OS_CACHED, WORKLOADS, Cell

LOCAL = "local"
STATES = (COLD, OS_CACHED, CACHED)
SCATTERED = ("random", "cyclic")  # data of which the finding speaks
RED = 0.97
TPCH = "tpch"
# with what look-ahead is compared besides stock, where it is not the best bitmap scan
RIVAL_TEXTS = {REPLAY: "best settings", APPLY: "cached"}


@dataclass(frozen=True)
class Failure:
    run: str
    variant: str
    rep: str
    error: str
    measured_since: bool


@dataclass
class Entry:
    """One cell of one place."""

    place: Place
    cell: Cell
    figures: dict[str, Figure] = field(default_factory=dict)
    itself: Figure | None = None  # stock and "again" together
    runs: set[str] = field(default_factory=set)
    failures: list[Failure] = field(default_factory=list)

    @property
    def stock(self) -> Figure | None:
        return self.figures.get("stock")

    @property
    def ahead(self) -> Figure | None:
        return self.figures.get(self.place.variant)

    @property
    def bitmap(self) -> tuple[str, Figure] | None:
        """The best of the bitmap variants, or what the cell has instead."""
        return rival(self.figures)

    def _against(self, other: Figure | None) -> float | None:
        if self.failures or not other or not self.ahead or not other.median or not self.ahead.median:
            return None
        return other.median / self.ahead.median

    @property
    def ratio(self) -> float | None:
        return self._against(self.stock)

    @property
    def bitmap_ratio(self) -> float | None:
        return self._against(self.bitmap[1] if self.bitmap else None)

    @property
    def again_ratio(self) -> float | None:
        again = self.figures.get("again")
        return self.stock.median / again.median if self.stock and again and again.median else None

    @property
    def noise(self) -> float | None:
        """How far stock is from itself, as a logarithm."""
        again = self.again_ratio
        if not again or self.itself is None:
            return None
        return max(abs(math.log(again)), math.log1p(self.itself.spread))

    @property
    def is_noise(self) -> bool:
        return self.noise is not None and self.ratio is not None and abs(math.log(self.ratio)) <= self.noise

    @property
    def is_red(self) -> bool:
        return self.ratio is not None and self.ratio < RED

    @property
    def command(self) -> str:
        """What measures it again."""
        words = ["bench/replay" if self.cell.workload in REPLAYED else "bench/run", "--major", self.place.major]
        if self.place.storage != LOCAL:
            words += ["--storage", self.place.storage]
        if any(self.place.runs.get(run, {}).get("options", {}).get("quick") for run in self.runs):
            words.append("--quick")
        if any(self.place.runs.get(run, {}).get("options", {}).get("full") for run in self.runs):
            words.append("--full")
        if self.cell.workload == TPCH:
            words += ["--tpch", str(self.cell.size)]
        return " ".join([*words, "--only", f"'{self.cell.key}'"])

    def noise_text(self) -> str:
        """In words, with the spreads of both sides."""
        spreads = [f"{name} ±{f.spread:.1%}" for name, f in (("stock", self.stock), ("look-ahead", self.ahead)) if f]
        if self.noise is None or self.again_ratio is None:
            return ", ".join([*spreads, "stock against itself not measured"])
        return ", ".join([*spreads, f"stock against itself {self.again_ratio:.2f}, noise ±{math.expm1(self.noise):.1%}"])

    def tip(self) -> str:
        """Everything that is known of the cell, for the pointer."""
        lines = [self.cell.key, self.place.label]
        for failure in self.failures:
            lines.append(f"failed: {failure.variant}, repetition {failure.rep}: {failure.error}")
        for name, f in self.figures.items():
            rate = f", {f.blocks_per_second:,.0f} blocks/s" if f.blocks_per_second else ""
            lines.append(f"{name} {milliseconds(f.median)} ±{f.spread:.1%}, {f.repetitions} repetitions{rate}")
        if self.ratio is not None:
            within = ", within its noise" if self.is_noise else ""
            lines.append(f"stock / look-ahead {ratio_text(self.ratio)}{within} ({self.noise_text()})")
        if self.bitmap_ratio is not None:
            lines.append(f"{RIVAL_TEXTS.get(self.cell.workload, 'best bitmap')} / look-ahead {ratio_text(self.bitmap_ratio)}")
        return "\n".join([*lines, self.command])


@dataclass
class Place:
    """One results directory, one major version, one storage."""

    directory: Path
    major: str
    server: str
    storage: str
    variant: str
    runs: dict[str, dict[str, Any]]
    label: str = ""
    entries: dict[Cell, Entry] = field(default_factory=dict)

    def entry(self, cell: Cell) -> Entry:
        return self.entries.setdefault(cell, Entry(self, cell))

    def scattered(self) -> list[float]:
        """The ratios of cold cells on random and cyclic data."""
        return [
            entry.ratio for cell, entry in self.entries.items()
            if cell.state == COLD and cell.data in SCATTERED and entry.ratio is not None
        ]

    @property
    def slug(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", f"{self.directory.name}-{self.storage}".lower()).strip("-")


@dataclass
class Report:
    places: list[Place]
    problems: list[tuple[str, str]]  # directory, line
    findings: list[tuple[str, str]]  # directory, Markdown

    def entries(self) -> Iterable[Entry]:
        for place in self.places:
            yield from place.entries.values()

    def workloads(self) -> list[str]:
        """Those that there is something of, in the order in which they are measured."""
        there = dict.fromkeys(entry.cell.workload for entry in self.entries())
        known = [kind.name for kind in WORKLOADS if kind.name in there]
        return known + [name for name in there if name not in known]

    def red(self) -> list[Entry]:
        return sorted((e for e in self.entries() if e.is_red), key=lambda e: e.ratio or 0)

    def failed(self) -> list[Entry]:
        return [e for e in self.entries() if e.failures]

    def worst(self) -> Entry | None:
        measured = [e for e in self.entries() if e.ratio is not None]
        return min(measured, key=lambda e: e.ratio or 0) if measured else None

    def means(self) -> dict[str, tuple[float, int]]:
        """Storage -> geometric mean over cold cells on scattered data, and how many they are."""
        ratios: dict[str, list[float]] = defaultdict(list)
        for place in self.places:
            ratios[place.storage] += place.scattered()
        return {storage: (geometric_mean(found), len(found)) for storage, found in ratios.items() if found}

    def finding(self) -> str:
        """The one sentence."""
        means = [
            f"{mean:.2f} times as fast on {storage_text(storage)} (geometric mean of {count} cells)"
            for storage, (mean, count) in self.means().items()
        ]
        parts = []
        if means:
            parts.append("With look-ahead, cold scans of random and cyclic data are " + _listed(means))
        worst = self.worst()
        if worst is not None:
            number = sum(e.ratio is not None for e in self.entries())
            parts.append(
                f"the worst of all {number} cells is {ratio_text(worst.ratio or 0)} times as fast"
                f" ({worst.cell.key}, {worst.place.label})"
            )
        failed = len(self.failed())
        if failed:
            parts.append(f"{failed} {'cell' if failed == 1 else 'cells'} failed and {'is' if failed == 1 else 'are'} in no mean")
        text = "; ".join(parts) or "nothing was measured"
        return text[0].upper() + text[1:] + "."


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else words[0]


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def ratio_text(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}" if ratio < 100 else f"{ratio:.0f}"


def milliseconds(value: float) -> str:
    digits = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f} ms"


def storage_text(storage: str) -> str:
    return "the local disk" if storage == LOCAL else storage


# ---- reading --------------------------------------------------------------


def read_report(directories: Sequence[Path], variant: str) -> Report:
    report = Report([], [], [])
    for directory in dict.fromkeys(path.resolve() for path in directories):
        report.places += _read_places(directory, variant)
        problems = directory / "problems.txt"
        if problems.exists():
            report.problems += [(directory.name, line) for line in problems.read_text().splitlines() if line.strip()]
        findings = directory / "findings.md"
        if findings.exists():
            report.findings.append((directory.name, findings.read_text()))
    _label(report.places)
    return report


def _label(places: list[Place]) -> None:
    """By version and storage, and by directory where that says too little."""
    for place in places:
        place.label = f"PostgreSQL {place.major}, {'local disk' if place.storage == LOCAL else place.storage}"
    labels = [place.label for place in places]
    for place in places:
        if labels.count(place.label) > 1:
            place.label += f", {place.directory.name}"


def _read_places(directory: Path, variant: str) -> list[Place]:
    path = directory / "machine.json"
    runs: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    places: dict[tuple[str, str], Place] = {}

    def place_of(run: str) -> Place:
        facts = runs.get(run, {})
        server, storage = str(facts.get("server", "")), str(facts.get("storage", LOCAL))
        named = re.search(r"-(\d\d)(?:-|$)", directory.name)
        major = server.split(".")[0] or (named[1] if named else "18")
        place = places.setdefault((major, storage), Place(directory, major, server, storage, variant, {}))
        if run in runs:
            place.runs[run] = facts
            place.server = server
        return place

    for run in sorted(runs):
        place_of(run)
    _read_samples(directory, place_of)
    # a run of which everything was measured anew, or that was stopped at once
    return [place for place in places.values() if place.entries]


def _read_samples(directory: Path, place_of: Any) -> None:
    grouped: dict[int, tuple[Place, dict[Cell, dict[str, list[Sample]]]]] = {}
    taken: set[tuple[str, str, str]] = set()
    for sample in read_samples(samples_file(directory) or directory / "samples.csv"):
        place = place_of(sample.run)
        _, cells = grouped.setdefault(id(place), (place, {}))
        cells.setdefault(sample.cell, defaultdict(list))[sample.variant].append(sample)
        taken.add((sample.cell.key, sample.variant, str(sample.rep)))
        place.entry(sample.cell).runs.add(sample.run)
    for place, cells in grouped.values():
        for cell, variants in cells.items():
            entry = place.entry(cell)
            entry.figures = {name: figure(samples) for name, samples in variants.items()}
            if "stock" in variants and "again" in variants:
                entry.itself = figure(variants["stock"] + variants["again"])
    path = directory / "failed.csv"
    if not path.exists():
        return
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            workload, data, shape, size, state = row["cell"].split("/")
            entry = place_of(row["run"]).entry(Cell(workload, data, shape, int(size), state))
            entry.runs.add(row["run"])
            since = (row["cell"], row["variant"], row["rep"]) in taken
            entry.failures.append(Failure(row["run"], row["variant"], row["rep"], row["error"], since))
