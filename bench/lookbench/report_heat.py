"""Heat maps: which cell stands where, and in which colour.

Rows are data and shape, by state of the caches; columns are the number of rows, or what
else a workload's size counts.  Whole
queries (TPC-H) have a row each, and a column for each scale and state.

The colour is that of the logarithm of the ratio: green above 1, full at 8; red below,
full at 0.5.  Green is a bluish and red a yellowish one, and they differ in lightness as
they go, so that those who cannot tell red from green can read them; cells below the red
limit have a frame besides.  Text is black or white, whichever contrasts more (at least
4.5 : 1 by construction).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable

from .replayed.cells import SIZES
from .report_data import STATES, TPCH, Entry, Place
from .workloads import WORKLOADS

Colour = tuple[int, int, int]
Value = Callable[[Entry], "float | None"]

FULL_GREEN = 8.0
FULL_RED = 0.5


@dataclass(frozen=True)
class Scale:
    """Colours from "no difference" to "full"."""

    green: tuple[str, ...]
    red: tuple[str, ...]


LIGHT = Scale(("#f3f1ec", "#bfe5da", "#4fb8a3", "#00685a"), ("#f3f1ec", "#f9c6ad", "#e57a52", "#a3201c"))
DARK = Scale(("#30343b", "#1e5850", "#1f9481", "#7fe9d0"), ("#30343b", "#71382b", "#c2563a", "#ffab91"))


def _rgb(text: str) -> Colour:
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def _luminance(colour: Colour) -> float:
    parts = [c / 255 for c in colour]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def background(ratio: float, scale: Scale = LIGHT) -> str:
    """As #rrggbb."""
    stops = scale.green if ratio >= 1 else scale.red
    share = min(1.0, math.log(ratio) / math.log(FULL_GREEN if ratio >= 1 else FULL_RED))
    place = share * (len(stops) - 1)
    first = min(int(place), len(stops) - 2)
    low, high = _rgb(stops[first]), _rgb(stops[first + 1])
    return "#" + "".join(f"{round(a + (b - a) * (place - first)):02x}" for a, b in zip(low, high))


def text_colour(colour: str) -> str:
    return "#000000" if _luminance(_rgb(colour)) > 0.179 else "#ffffff"


# ---- layout ---------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    label: str
    cells: tuple[Entry | None, ...]


@dataclass(frozen=True)
class Block:
    """Lines of one state; no heading where the columns tell it."""

    heading: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class HeatMap:
    place: Place
    corner: str
    columns: tuple[str, ...]
    blocks: tuple[Block, ...]
    value: Value

    def lines(self) -> int:
        return sum(len(block.lines) + bool(block.heading) for block in self.blocks)


def short(number: int) -> str:
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if number >= unit and number % unit == 0:
            return f"{number // unit}{name}"
    return str(number)


def heat_maps(place: Place, workload: str) -> tuple[HeatMap | None, HeatMap | None]:
    """Against stock, and against the best bitmap scan or what the workload has instead."""
    entries = [entry for cell, entry in place.entries.items() if cell.workload == workload]
    stocks = [entry for entry in entries if entry.stock is not None or entry.failures]
    bitmaps = [entry for entry in entries if entry.bitmap is not None]
    return _map(place, stocks, lambda e: e.ratio), _map(place, bitmaps, lambda e: e.bitmap_ratio)


def _map(place: Place, entries: list[Entry], value: Value) -> HeatMap | None:
    if not entries:
        return None
    if entries[0].cell.workload == TPCH:
        return _queries(place, entries, value)
    sizes = sorted({entry.cell.size for entry in entries})
    blocks = []
    states = sorted({entry.cell.state for entry in entries}, key=_state_order)
    for state in states:
        there = {(e.cell.data, e.cell.shape, e.cell.size): e for e in entries if e.cell.state == state}
        rows = dict.fromkeys((data, shape) for data, shape, _ in there)
        lines = [
            Line(data if data == shape else f"{data} {shape}", tuple(there.get((data, shape, size)) for size in sizes))
            for data, shape in rows
        ]
        blocks.append(Block(state, tuple(lines)))
    return HeatMap(place, _size_is(entries[0].cell.workload), tuple(map(short, sizes)), tuple(blocks), value)


def _size_is(workload: str) -> str:
    return next((kind.size_is for kind in WORKLOADS if kind.name == workload), SIZES.get(workload, "rows"))


def _queries(place: Place, entries: list[Entry], value: Value) -> HeatMap:
    """A line for each query; serial and parallel, scale and state beside each other."""
    there = {(*query_of(e.cell.shape), e.cell.data, e.cell.state): e for e in entries}
    columns = sorted(
        {(e.cell.state, query_of(e.cell.shape)[1], e.cell.size, e.cell.data) for e in entries},
        key=lambda c: (_state_order(c[0]), *c[1:]),
    )
    lines = [
        Line(query, tuple(there.get((query, how, data, state)) for state, how, _, data in columns))
        for query in sorted({query_of(e.cell.shape)[0] for e in entries})
    ]
    heads = tuple(f"{data} {state} {how}".strip() for state, how, _, data in columns)
    return HeatMap(place, "query", heads, (Block("", tuple(lines)),), value)


def query_of(shape: str) -> tuple[str, str]:
    """Of q07-parallel: q07, and parallel."""
    query, _, how = shape.partition("-")
    return query, how


def _state_order(state: str) -> tuple[int, str]:
    return (STATES.index(state) if state in STATES else len(STATES), state)
