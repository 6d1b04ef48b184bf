"""What adjusted costs make of plans, from samples.csv: ratios and regret.

A line for each group of cells (workload, data, serial or parallel, state).  "faster" is how many times as
fast as with stock's costs the plans are that adjusted ones lead to, both with look-ahead: their geometric mean,
and the cell that comes off worst.  The regret of a plan is the time that it takes more than the
best of all plans of its cell that have been measured, forced ones included; the regrets of a group are
added up.  "best, mean" is the geometric mean that a planner would have reached which always chose the best
of them.  Without forced plans there is neither.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import Iterable, Mapping

from .variants import FORCED
from .workloads import Cell

STOCK_COSTS = "lookahead"
ADJUSTED = "adjusted"
PARALLEL = "-parallel"
COLUMNS = ("queries", "cells", "faster, mean", "best, mean", "worst", "its cell", "regret of stock's costs, s", "adjusted, s", "share")
TEXT_COLUMNS = ("queries", "its cell")
NONE = "-"


def group_of(cell: Cell) -> str:
    return f"{cell.workload}, {cell.data}, {'two workers' if cell.shape.endswith(PARALLEL) else 'serial'}, {cell.state}"


def rows(medians: Mapping[Cell, Mapping[str, float]]) -> Iterable[list[str]]:
    """A line for each group; medians: cell -> variant -> milliseconds."""
    groups: dict[str, list[Cell]] = defaultdict(list)
    for cell, by in medians.items():
        if STOCK_COSTS in by and ADJUSTED in by:
            groups[group_of(cell)].append(cell)
    for name, cells in sorted(groups.items()):
        ratios = {cell: medians[cell][STOCK_COSTS] / medians[cell][ADJUSTED] for cell in cells}
        worst = min(cells, key=lambda cell: ratios[cell])
        mean = statistics.geometric_mean(ratios.values())
        yield [
            name, f"{len(cells)}", f"{mean:.2f}", best(medians[cell] for cell in cells), f"{ratios[worst]:.2f}", worst.key,
            *regrets(medians[cell] for cell in cells),
        ]


def has_forced(by: Mapping[str, float]) -> bool:
    return any(name.startswith(FORCED) for name in by)


def best(cells: Iterable[Mapping[str, float]]) -> str:
    """What there is to gain."""
    all_cells = list(cells)
    if not any(map(has_forced, all_cells)):
        return NONE
    return f"{statistics.geometric_mean(by[STOCK_COSTS] / min(by.values()) for by in all_cells):.2f}"


def regrets(cells: Iterable[Mapping[str, float]]) -> list[str]:
    """Of stock's costs, of adjusted ones, and the share that is left."""
    stock = adjusted = 0.0
    forced = False
    for by in cells:
        if has_forced(by):
            forced = True
            least = min(by.values())
            stock += by[STOCK_COSTS] - least
            adjusted += by[ADJUSTED] - least
    if not forced:
        return [NONE, NONE, NONE]
    return [f"{stock / 1000:.2f}", f"{adjusted / 1000:.2f}", f"{adjusted / stock:.2f}" if stock > 0 else NONE]
