"""What the demo prints."""

from __future__ import annotations

from typing import Mapping, Sequence

import psycopg
from rich import box
from rich.console import Console
from rich.table import Table

from .contest import AGAIN, Outcome
from .queries import Query

FIGURES = ("relation", "scans_attached", "scans_activated", "blocks_foreseen", "blocks_issued",
           "blocks_on_time", "blocks_late", "blocks_wasted", "avg_distance", "max_distance")
BUSY = 0.1  # stock differs from itself by more


def _time(ms: float) -> str:
    return f"{ms:,.0f} ms" if ms >= 100 else f"{ms:.1f} ms"


def _noise(by: Mapping[str, Outcome], stock: Outcome) -> float | None:
    """By what share stock differs from itself, where it was asked twice."""
    return abs(stock.median / by[AGAIN].median - 1) if AGAIN in by else None


def _gain(stock: Outcome, ahead: Outcome, noise: float | None, ceiling: int | None) -> str:
    gain = stock.median / ahead.median
    if noise is not None and abs(gain - 1) <= noise:
        return "none"
    share = f"\n{ahead.blocks_per_second / ceiling:.0%}" if ceiling and ahead.blocks else ""
    return f"{gain:.2f}x{share}"


def results(
    console: Console,
    title: str,
    queries: Sequence[Query],
    outcomes: Sequence[Mapping[str, Outcome]],
    ceiling: int | None,
) -> None:
    """One line per query; below the times the blocks read per second, if any were."""
    names = [name for name in outcomes[0] if name != AGAIN]
    noises = [_noise(by, by[names[0]]) for by in outcomes]
    cached = None not in noises
    columns = ["rows", *([] if cached else ["blocks"]), "index scan", "bitmap", "look-ahead", *(["noise"] if cached else []), "gain"]
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    table.add_column("query", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for query, by, noise in zip(queries, outcomes, noises):
        stock, ahead = by[names[0]], by[names[-1]]
        cells = [f"{stock.rows:,}", *([] if cached else [f"{stock.blocks:,}"])]
        for name in names:
            rate = f"\n{by[name].blocks_per_second:,.0f}/s" if by[name].blocks else ""
            cells.append(_time(by[name].median) + rate)
        if noise is not None:
            cells.append(f"{noise:.0%}")
        cells.append(_gain(stock, ahead, noise, ceiling))
        table.add_row(query.title, *cells)
    console.print(table)
    if any(noise is not None and noise > BUSY for noise in noises):
        console.print("This machine is busy: stock differs from itself by more than 10%.\n")


def explained(console: Console, plan: str) -> None:
    console.print("[bold]EXPLAIN (ANALYZE, BUFFERS) of the second query with pg_lookahead, cold[/bold]")
    console.print(plan, markup=False, soft_wrap=True)
    console.print()


def last_statement(console: Console, connection: psycopg.Connection) -> None:
    """The figures that EXPLAIN cannot print before PostgreSQL 18."""
    rows = connection.execute(
        f"select {', '.join(FIGURES)} from pg_lookahead_last_statement() where scans_attached > 0"
    ).fetchall()
    console.print("[bold]select * from pg_lookahead_last_statement()[/bold], the same in figures")
    for row in rows:
        for name, value in zip(FIGURES, row):
            shown = f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
            console.print(f"  {name:<16} {shown}")
    console.print()
