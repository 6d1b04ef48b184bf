"""Medians, ratios and the share of the disk's ceiling, from samples.csv.

One line per cell.  "bitmap" is the best bitmap variant by median, whichever it is; of `replay` the best
that the server reaches by settings of its own, of `apply` stock with all files in the page cache.
Times are milliseconds per execution; a number after ± is half the distance between the
quartiles in percent of the median.  Ratios above 1 mean that look-ahead is faster.
Blocks per second are the blocks that were not in shared_buffers, by the time of the
whole query; the ceiling is fio's at its best queue depth, measured in the same run.

Written with rich for a terminal, as Markdown with --markdown.  With --claims there is one line for
each bound of claims.py instead, with the cell that comes off worst; with --plans what adjusted costs
make of whole queries (plans.py); with --beside all variants of each cell, other servers among them, and
two ratios (beside.py).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Container, Iterable, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from . import beside, check, plans
from .claims import BEST, BITMAP, CLAIMS, GAIN, IOPS, LIVE, OFF, STOCK, TUNED, Claim
from .records import Sample, read_samples, samples_file
from .replayed.cells import APPLY, CACHED_VARIANT, REPLAY, TUNED_PREFIX
from .replayed.cells import SOURCES as REPLAYED
from .storages import LOCAL, VOLUMES
from .workloads import COLD, WORKLOADS, Cell

COLUMNS = ("data", "query", "size", "stock, ms", "bitmap, ms", "look-ahead, ms",
           "stock / look-ahead", "bitmap / look-ahead", "blocks/s", "of the ceiling")
TEXT_COLUMNS = 2
CLAIM_COLUMNS = ("claim", "against", "at least", "cells", "below", "worst", "spread", "its cell")
CLAIM_TEXT_COLUMNS = ("claim", "against", "its cell")
NONE = "-"
RIVALS = ("bitmap", TUNED_PREFIX, CACHED_VARIANT)  # beginnings of the names of variants
# of a column's heading, where it is not "bitmap"
RIVAL_NAMES = {REPLAY: "tuned", APPLY: "cached"}
WIDTH = 125  # of the tables where the terminal does not say or is narrower


@dataclass(frozen=True)
class Figure:
    """One variant of one cell."""

    median: float
    spread: float  # half the interquartile range, relative to the median
    repetitions: int
    blocks_per_second: float | None


def figure(samples: list[Sample]) -> Figure:
    latencies = sorted(sample.latency for sample in samples)
    median = statistics.median(latencies)
    quartiles = statistics.quantiles(latencies, n=4, method="inclusive") if len(latencies) > 1 else [median] * 3
    rates = [sample.reads / sample.ms * 1000 for sample in samples if sample.reads]
    return Figure(
        median,
        (quartiles[2] - quartiles[0]) / 2 / median if median else 0.0,
        len(latencies),
        statistics.median(rates) if rates else None,
    )


def rival(by: Mapping[str, Figure]) -> tuple[str, Figure] | None:
    """The best of the bitmap variants, or of what else a cell has in their place.

    Where only some have been measured again, because they were the best of the first repetition, the luck of
    the others does not count.
    """
    found = [(name, f) for name, f in by.items() if name.startswith(RIVALS)]
    most = max((f.repetitions for name, f in found), default=0)
    if any(name.startswith(TUNED_PREFIX) for name, _ in found):
        found = [pair for pair in found if pair[1].repetitions == most]
    return min(found, key=lambda pair: pair[1].median) if found else None


class Results:
    """One directory of the runner."""

    def __init__(self, csv: Path, variant: str) -> None:
        self.csv = csv
        self.variant = variant
        machine = csv.parent / "machine.json"
        self.runs: dict[str, dict[str, Any]] = json.loads(machine.read_text()) if machine.exists() else {}
        grouped: dict[Cell, dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
        for sample in read_samples(csv):
            grouped[sample.cell][sample.variant].append(sample)
        self.cells = {cell: {name: figure(s) for name, s in by.items()} for cell, by in grouped.items()}

    @property
    def medians(self) -> Mapping[Cell, Mapping[str, float]]:
        return {cell: {name: found.median for name, found in by.items()} for cell, by in self.cells.items()}

    @property
    def ceiling(self) -> float | None:
        """The most reads per second that fio reached in any of the runs."""
        reads = [n for run in self.runs.values() for n in run["ceiling_reads_per_second"].values()]
        return max(reads) if reads else None

    @property
    def major(self) -> int | None:
        return int(self.runs[max(self.runs)]["server"].split(".")[0]) if self.runs else None

    @property
    def storage(self) -> str | None:
        return str(self.runs[max(self.runs)].get("storage", LOCAL)) if self.runs else None

    def beside(self) -> Mapping[str, str]:
        """Variants that were measured on other servers, and the versions of these."""
        return {name: version for run in self.runs.values() for name, version in run.get("beside", {}).items()}

    def title(self) -> str:
        if not self.runs:
            return str(self.csv)
        run = self.runs[max(self.runs)]
        machine = run["machine"]
        return (
            f"PostgreSQL {run['server']}, {machine['cores']} cores of {machine['cpu']}, {machine['memory_gb']} GB, "
            f"{machine['disk']['filesystem'].split()[0]}, {machine['system']}"
        )

    def notes(self) -> list[str]:
        lines = []
        for name, run in sorted(self.runs.items()):
            source = run["source"]
            changed = " with changes" if source["src_changed"] else ""
            reads = ", ".join(f"{v:,} at depth {k}" for k, v in run["ceiling_reads_per_second"].items())
            lines.append(f"run {name}: commit {source['commit'][:12]}{changed} (src {source['src_digest']}), "
                         f"disk {reads or 'not measured'} reads/s")
        return lines

    def bitmap(self, cell: Cell) -> Figure | None:
        """The best of the bitmap variants, or what the cell has instead."""
        found = rival(self.cells[cell])
        return found[1] if found else None

    def reached(self, cell: Cell, against: str) -> float | None:
        """What a bound of a claim is compared with, if it has been measured."""
        by = self.cells[cell]
        stock, ahead = by.get("stock"), by.get(self.variant)
        if ahead is None:
            return None
        if against == IOPS:
            volume = VOLUMES.get(self.storage or "")
            return ahead.blocks_per_second / volume.iops if volume and volume.iops and ahead.blocks_per_second else None
        if against == LIVE:
            return cell.size * 1000 / ahead.median
        if against == GAIN:
            cached = by.get(CACHED_VARIANT)
            waits = stock.median - cached.median if stock and cached else 0.0
            return (stock.median - ahead.median) / waits if stock and waits > 0 else None
        others = {
            STOCK: [stock], BITMAP: [self.bitmap(cell)], TUNED: [self.bitmap(cell)], BEST: [stock, self.bitmap(cell)], OFF: [by.get("off")],
        }[against]
        medians = [other.median for other in others if other]
        return min(medians) / ahead.median if medians else None

    def row(self, cell: Cell) -> list[str]:
        by = self.cells[cell]
        stock, bitmap, ahead = by.get("stock"), self.bitmap(cell), by.get(self.variant)
        rate = ahead.blocks_per_second if ahead and cell.state == COLD else None
        return [
            cell.data, cell.shape, f"{cell.size:,}", _time(stock), _time(bitmap), _time(ahead),
            _ratio(stock, ahead), _ratio(bitmap, ahead),
            f"{rate:,.0f}" if rate else NONE,
            f"{rate / self.ceiling:.0%}" if rate and self.ceiling else NONE,
        ]

    def claim_rows(self, claim: Claim) -> Iterable[list[str]]:
        """A row for each bound of a claim that this server must keep, as far as it has been measured."""
        if self.major not in (None, *claim.majors) or self.storage not in (None, *claim.storages):
            return
        for against, least in claim.least.items():
            ratios = []
            for cell in (cell for cell in self.cells if claim.covers(cell.key)):
                found = self.reached(cell, against)
                if found is not None:
                    ratios.append((found, self.cells[cell][self.variant].spread, cell.key))
            head = [f"{claim.name}: {claim.text}", against, f"{least:.2f}", f"{len(ratios)}"]
            if not ratios:
                yield [*head, NONE, NONE, NONE, NONE]
                continue
            ratio, spread, key = min(ratios)
            below = sum(round(found, 2) < least for found, _, _ in ratios)
            yield [*head, f"{below}", f"{ratio:.2f}", f"±{spread:.0%}", key]

    def groups(self) -> Iterable[tuple[str, list[Cell]]]:
        """Cells by workload and state, in the order of the workloads."""
        states = list(dict.fromkeys(cell.state for cell in self.cells))
        for name, source in ({kind.name: kind.source for kind in WORKLOADS} | dict(REPLAYED)).items():
            for state in states:
                cells = [c for c in self.cells if c.workload == name and c.state == state]
                if cells:
                    yield f"{name}, {state} ({source})", sorted(cells, key=lambda c: (c.data, c.shape, c.size))


def _columns(cells: list[Cell]) -> list[str]:
    """The headings of a group of cells."""
    return [column.replace("bitmap", RIVAL_NAMES.get(cells[0].workload, "bitmap")) for column in COLUMNS]


def _time(figure: Figure | None) -> str:
    if figure is None:
        return NONE
    digits = 3 if figure.median < 1 else 2 if figure.median < 10 else 1 if figure.median < 100 else 0
    return f"{figure.median:,.{digits}f} ±{figure.spread:.0%}"


def _ratio(other: Figure | None, ahead: Figure | None) -> str:
    return f"{other.median / ahead.median:.2f}" if other and ahead else NONE


def print_markdown(results: Results) -> None:
    print(f"## {results.title()}\n")
    for line in results.notes():
        print(f"- {line}")
    for heading, cells in results.groups():
        print(f"\n### {heading}\n")
        print("| " + " | ".join(_columns(cells)) + " |")
        print("|" + "---|" * TEXT_COLUMNS + "---:|" * (len(COLUMNS) - TEXT_COLUMNS))
        for cell in cells:
            print("| " + " | ".join(results.row(cell)) + " |")


def print_terminal(results: Results, console: Console) -> None:
    console.rule(results.title())
    for line in results.notes():
        console.print(line)
    for heading, cells in results.groups():
        table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for number, column in enumerate(_columns(cells)):
            table.add_column(column.replace(" / ", " /\n").replace("ahead, ", "ahead,\n"), no_wrap=True, justify="left" if number < TEXT_COLUMNS else "right")
        for cell in cells:
            row = results.row(cell)
            table.add_row(*row[:6], _coloured(row[6]), _coloured(row[7]), *row[8:])
        console.print(table)


def print_claims(results: Results, console: Console, markdown: bool) -> None:
    rows = [row for claim in CLAIMS for row in results.claim_rows(claim)]
    numbers = [column not in CLAIM_TEXT_COLUMNS for column in CLAIM_COLUMNS]
    if markdown:
        print(f"## {results.title()}\n")
        print("| " + " | ".join(CLAIM_COLUMNS) + " |")
        print("|" + "".join("---:|" if number else "---|" for number in numbers))
        for row in rows:
            print("| " + " | ".join(row) + " |")
        return
    console.rule(results.title())
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, number in zip(CLAIM_COLUMNS, numbers):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row, style="red" if row[4] not in ("0", NONE) else None)
    console.print(table)


def print_medians(
    results: Results, console: Console, markdown: bool, columns: Sequence[str], texts: Container[str], rows: Iterable[Sequence[str]]
) -> None:
    """A table of all cells, made by another module of their medians; texts: columns that are no numbers."""
    numbers = [column not in texts for column in columns]
    if markdown:
        print(f"## {results.title()}\n")
        print("| " + " | ".join(columns) + " |")
        print("|" + "".join("---:|" if number else "---|" for number in numbers))
        for row in rows:
            print("| " + " | ".join(row) + " |")
        return
    console.rule(results.title())
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, number in zip(columns, numbers):
        table.add_column(column.replace(" (", "\n("), justify="right" if number else "left", no_wrap=not number)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def print_check(results: Results, console: Console, markdown: bool = False) -> None:
    reads = results.runs[max(results.runs)]["ceiling_reads_per_second"]
    depth = check.gain(reads)
    if depth:
        console.print(f"the disk: {reads['1']:,} reads/s one at a time, {max(reads.values()):,} at its best depth: {depth:.1f} times as many")
    print_medians(results, console, markdown, check.COLUMNS, check.TEXT_COLUMNS, check.rows(results.medians, reads))


def _coloured(ratio: str) -> str:
    """Green where look-ahead is clearly faster, red where it is clearly slower."""
    if ratio == NONE or 0.95 <= float(ratio) <= 1.05:
        return ratio
    return f"[green]{ratio}[/green]" if float(ratio) > 1 else f"[red]{ratio}[/red]"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/summarize", description="Ratios of what bench/run has measured.")
    parser.add_argument("csv", type=Path, nargs="+", help="samples.csv, or the directory that holds it")
    parser.add_argument("--markdown", action="store_true", help="Markdown instead of tables for the terminal")
    parser.add_argument("--claims", action="store_true", help="a line for each claim of lookbench/claims.py, with its worst cell")
    parser.add_argument("--plans", action="store_true", help="what adjusted costs make of whole queries: ratios and regret")
    parser.add_argument("--beside", action="store_true", help="all variants of each cell, with the servers of bench/run --beside")
    parser.add_argument("--check", action="store_true", help="each ratio beside what the machine allows: bench/run --machine-check")
    parser.add_argument("--variant", default="lookahead", help="the look-ahead variant (default lookahead)")
    options = parser.parse_args()
    console = Console(highlight=False, width=max(WIDTH, Console().width))
    for path in options.csv:
        csv = samples_file(path) or path / "samples.csv" if path.is_dir() else path
        if not csv.exists():
            console.print(f"error: there is no {csv}")
            return 1
        results = Results(csv, options.variant)
        medians = results.medians
        if options.plans:
            print_medians(results, console, options.markdown, plans.COLUMNS, plans.TEXT_COLUMNS, plans.rows(medians))
        elif options.beside:
            others = results.beside()
            columns = beside.columns(medians, others)
            print_medians(results, console, options.markdown, columns, beside.TEXT_COLUMNS, beside.rows(medians, others))
        elif options.check:
            print_check(results, console, options.markdown)
        elif options.claims:
            print_claims(results, console, options.markdown)
        elif options.markdown:
            print_markdown(results)
        else:
            print_terminal(results, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
