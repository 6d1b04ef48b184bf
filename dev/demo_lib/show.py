"""What the demo prints."""

from __future__ import annotations

from typing import Mapping, Sequence

import psycopg
from rich import box
from rich.console import Console
from rich.table import Table

from .contest import Outcome
from .queries import Query

FIGURES = ("relation", "scans_attached", "scans_activated", "blocks_foreseen", "blocks_issued",
           "blocks_on_time", "blocks_late", "blocks_wasted", "avg_distance", "max_distance")


def _time(ms: float) -> str:
    return f"{ms:,.0f} ms" if ms >= 100 else f"{ms:.1f} ms"


def results(
    console: Console,
    title: str,
    queries: Sequence[Query],
    outcomes: Sequence[Mapping[str, Outcome]],
    ceiling: int | None,
) -> None:
    """One line per query; below the times the blocks read per second, if any were."""
    names = list(outcomes[0])
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("query", no_wrap=True)
    for column in ("rows", "blocks", "index scan", "bitmap", "look-ahead", "gain"):
        table.add_column(column, justify="right", no_wrap=True)
    for query, by in zip(queries, outcomes):
        stock, ahead = by[names[0]], by[names[-1]]
        cells = []
        for name in names:
            rate = f"\n{by[name].blocks_per_second:,.0f}/s" if by[name].blocks else ""
            cells.append(_time(by[name].median) + rate)
        gain = f"{stock.median / ahead.median:.2f}x"
        if ceiling and ahead.blocks:
            gain += f"\n{ahead.blocks_per_second / ceiling:.0%}"
        table.add_row(query.title, f"{stock.rows:,}", f"{stock.blocks:,}" if stock.blocks else "-", *cells, gain)
    console.print(table)


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
