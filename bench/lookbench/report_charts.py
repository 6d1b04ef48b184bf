"""Curves, dots and bars: first as data, then as SVG (report_png.py draws the same data).

A chart is a list of panels, each small enough for a phone; the page puts as many beside
each other as fit.  Coordinates are already transformed (logarithms), ticks say what they
stand for, so that both renderers only have to scale them linearly.  Every point carries
its cell and the command that measures it again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from typing import Sequence

from .replayed.cells import SOURCES as REPLAYED
from .report_data import COLD, STATES, TPCH, Entry, Place, Report, geometric_mean, ratio_text
from .report_heat import background, query_of, short
from .summary import Figure

WIDTH, HEIGHT = 360, 250
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 10, 40


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    tip: str
    fill: str = ""  # a colour of its own


@dataclass(frozen=True)
class Series:
    name: str
    role: str  # stock, ahead, ceiling, first, second, third: the colour
    kind: str  # line, dots, bars
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Panel:
    title: str
    x_label: str
    y_label: str
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    series: Sequence[Series]
    base: float | None = None  # where bars begin and a rule is drawn
    upright: bool = False  # the rule is at an x
    height: int = HEIGHT
    left: int = LEFT
    notes: Sequence[str] = field(default_factory=tuple)  # below it


# ---- what there is to draw ------------------------------------------------


def overview_panels(report: Report) -> list[Panel]:
    """Every ratio as a dot, by state; one panel for a place."""
    ratios = [e.ratio for e in report.entries() if e.ratio is not None]
    if not ratios:
        return []
    low, high = min([0.7, *ratios]), max([2.0, *ratios])
    panels = []
    for place in report.places:
        measured = [e for e in place.entries.values() if e.ratio is not None]
        states = [state for state in STATES if any(e.cell.state == state for e in measured)]
        if not states:
            continue
        points = tuple(
            Point(math.log2(e.ratio or 1), len(states) - 1 - states.index(e.cell.state) + _stagger(n), e.tip(),
                  background(e.ratio or 1))
            for n, e in enumerate(sorted(measured, key=lambda e: e.ratio or 0)) if e.cell.state in states
        )
        scattered = place.scattered()
        notes = [f"cold, random and cyclic data: geometric mean {ratio_text(geometric_mean(scattered))}"
                 f" of {len(scattered)} cells"] if scattered else []
        panels.append(Panel(
            place.label, "stock / look-ahead", "",
            [(math.log2(v), _factor(v)) for v in (0.5, 1, 2, 4, 8, 16, 32) if low * 0.95 <= v <= high * 1.05],
            [(len(states) - 1 - n, state) for n, state in enumerate(states)],
            (math.log2(low) - 0.15, math.log2(high) + 0.15), (-0.5, len(states) - 0.5),
            [Series("", "ahead", "dots", points)], base=0.0, upright=True, height=62 + 44 * len(states), left=66, notes=notes,
        ))
    return panels


def _stagger(number: int) -> float:
    """Neighbours beside each other instead of on top."""
    return ((number * 3) % 7 - 3) / 10


def limit_panels(report: Report) -> list[Panel]:
    """Milliseconds (cold) or executions per second (in memory) against LIMIT n."""
    panels = []
    for place in report.places:
        entries = [e for c, e in place.entries.items() if c.workload == "limit" and e.stock and e.ahead and not e.failures]
        for state in STATES:
            found = sorted((e for e in entries if e.cell.state == state), key=lambda e: e.cell.size)
            if len(found) < 2:
                continue
            cold = state == COLD
            series = [
                Series("stock", "stock", "line", tuple(_limit_point(e, e.stock, cold) for e in found if e.stock)),
                Series("look-ahead", "ahead", "line", tuple(_limit_point(e, e.ahead, cold) for e in found if e.ahead)),
            ]
            ys = [p.y for s in series for p in s.points]
            xs = [p.x for s in series for p in s.points]
            panels.append(Panel(
                f"{state}: {place.label}", "LIMIT", "ms" if cold else "executions/s",
                [(math.log2(e.cell.size), short(e.cell.size)) for e in found], _decades(min(ys), max(ys)),
                (min(xs) - 0.3, max(xs) + 0.3), (min(ys) - 0.1, max(ys) + 0.1), series,
            ))
    return panels


def _limit_point(entry: Entry, figure: Figure, cold: bool) -> Point:
    return Point(math.log2(entry.cell.size), math.log10(figure.median if cold else 1000 / figure.median), entry.tip())


def iops_panels(report: Report) -> list[Panel]:
    """fio's random reads against queue depth, and the blocks per second of cold scans beside it.

    Only scattered data and other access methods: what is read in order has another ceiling.
    """
    panels = []
    for place in report.places:
        curves = []
        for run, facts in sorted(place.runs.items()):
            reads = {int(depth): n for depth, n in facts.get("ceiling_reads_per_second", {}).items() if n}
            if reads:
                curves.append(Series("ceiling (fio)", "ceiling", "line", tuple(
                    Point(math.log2(d), math.log10(n), f"fio, run {run}: {n:,} reads/s at queue depth {d}")
                    for d, n in sorted(reads.items())
                )))
        if not curves:
            continue
        depths = sorted({p.x for curve in curves for p in curve.points})
        last = depths[-1]
        scans = [
            (name, role, last + offset, tuple(
                Point(last + offset + _stagger(n) / 1.4, math.log10(f.blocks_per_second or 1), e.tip())
                for n, (e, f) in enumerate(_rates(place, variant))
            ))
            for name, role, variant, offset in (("stock", "stock", "stock", 1.3), ("look-ahead", "ahead", place.variant, 3.5))
        ]
        dots = [Series(name, role, "dots", points) for name, role, _, points in scans if points]
        ys = [p.y for s in [*curves, *dots] for p in s.points]
        ticks = [(x, short(round(2**x))) for x in depths if len(depths) < 6 or round(x) % 2 == 0 or x == last]
        best = max(p.y for curve in curves for p in curve.points)
        panels.append(Panel(
            place.label, "queue depth of fio, then cold scans", "8 kB reads/s",
            [*ticks, *((x, name) for name, _, x, points in scans if points)],
            _decades(min(ys), max(ys)), (depths[0] - 0.3, last + (4.6 if dots else 0.3)), (min(ys) - 0.1, max(ys) + 0.1),
            [*curves, *dots], notes=_share_note(place, 10**best),
        ))
    return panels


def _rates(place: Place, variant: str) -> list[tuple[Entry, Figure]]:
    ordered = {"sequential", "correlated"}
    return [
        (e, e.figures[variant]) for c, e in place.entries.items()
        if c.state == COLD and c.data not in ordered and c.workload not in (TPCH, *REPLAYED) and not e.failures
        and variant in e.figures and e.figures[variant].blocks_per_second
    ]


def _share_note(place: Place, ceiling: float) -> list[str]:
    rates = [(f.blocks_per_second or 0, e) for e, f in _rates(place, place.variant)]
    if not rates:
        return []
    rate, entry = max(rates, key=lambda pair: pair[0])
    return [f"look-ahead at its best: {rate:,.0f} blocks/s, {rate / ceiling:.0%} of the ceiling ({entry.cell.key})"]


def tpch_panels(report: Report) -> list[Panel]:
    """A bar for each query and scale, from 1 up or down; one panel for a state and a way to run them."""
    entries = [e for e in report.entries() if e.cell.workload == TPCH and e.ratio is not None]
    ratios = [e.ratio or 1 for e in entries]
    panels = []
    for place in report.places:
        for state in STATES:
            there = [e for e in entries if e.place is place and e.cell.state == state]
            for how in sorted({query_of(e.cell.shape)[1] for e in there}):
                found = [e for e in there if query_of(e.cell.shape)[1] == how]
                title = f"{state}{', ' if how else ''}{how}: {place.label}"
                panels.append(_tpch_panel(title, found, min([0.8, *ratios]), max([1.5, *ratios])))
    return panels


def _tpch_panel(title: str, entries: list[Entry], low: float, high: float) -> Panel:
    names = sorted({query_of(e.cell.shape)[0] for e in entries})
    scales = sorted({(e.cell.size, e.cell.data) for e in entries})
    roles = ("first", "second", "third")
    series = []
    for number, (_, data) in enumerate(scales):
        shift = (number - (len(scales) - 1) / 2) * 0.8 / len(scales)
        series.append(Series(f"scale {data[2:] if data.startswith('sf') else data}", roles[number % 3], "bars", tuple(
            Point(names.index(query_of(e.cell.shape)[0]) + shift, math.log2(e.ratio or 1), e.tip()) for e in entries if e.cell.data == data
        )))
    return Panel(
        title, "query", "stock / look-ahead",
        [(n, name.lstrip("q0")) for n, name in enumerate(names) if len(names) < 12 or n % 2 == 0],
        [(math.log2(v), _factor(v)) for v in (0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 3, 4, 8, 16)
         if low * 0.95 <= v <= high * 1.05 and (high < 3 or v in (0.5, 1, 2, 4, 8, 16, 0.25))],
        (-0.6, len(names) - 0.4), (math.log2(low) - 0.05, math.log2(high) + 0.05), series, base=0.0, left=58,
    )


def _factor(value: float) -> str:
    return f"{value:g}×"


def _decades(low: float, high: float) -> list[tuple[float, str]]:
    """Ticks between two logarithms: 1, 2, 5 of each decade, or fewer."""
    steps = (1, 2, 5) if high - low < 2.2 else (1,)
    found = []
    for exponent in range(math.floor(low) - 1, math.ceil(high) + 1):
        for step in steps:
            place = exponent + math.log10(step)
            if low - 0.1 <= place <= high + 0.1:
                value = step * 10**exponent
                found.append((place, short(int(value)) if value >= 1 else f"{value:g}"))
    return found


# ---- SVG ------------------------------------------------------------------


class _Frame:
    """From a panel's coordinates to those of the picture."""

    def __init__(self, panel: Panel) -> None:
        self.left, self.right = panel.left, WIDTH - RIGHT
        self.top, self.bottom = TOP, panel.height - BOTTOM
        self._x, self._y = panel.x_range, panel.y_range

    def x(self, value: float) -> float:
        return round(self.left + (value - self._x[0]) / (self._x[1] - self._x[0]) * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        return round(self.bottom - (value - self._y[0]) / (self._y[1] - self._y[0]) * (self.bottom - self.top), 1)


def svg(panel: Panel) -> str:
    frame = _Frame(panel)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {panel.height}" role="img" aria-label="{escape(panel.title)}">',
        *_axes(panel, frame),
        *(text for series in panel.series for text in _drawn(series, panel, frame)),
        "</svg>",
    ]
    return "".join(parts)


def _axes(panel: Panel, frame: _Frame) -> list[str]:
    parts = []
    for value, text in panel.y_ticks:
        y = frame.y(value)
        if not panel.upright:
            parts.append(f'<line class="grid" x1="{frame.left}" x2="{frame.right}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="end" x="{frame.left - 6}" y="{y + 4}">{escape(text)}</text>')
    for value, text in panel.x_ticks:
        x = frame.x(value)
        if panel.upright:
            parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{frame.top}" y2="{frame.bottom}"/>')
        parts.append(f'<text class="mid" x="{x}" y="{frame.bottom + 15}">{escape(text)}</text>')
    if panel.base is not None:
        x, y = frame.x(panel.base), frame.y(panel.base)
        ends = (x, x, frame.top, frame.bottom) if panel.upright else (frame.left, frame.right, y, y)
        parts.append('<line class="rule" x1="{}" x2="{}" y1="{}" y2="{}"/>'.format(*ends))
    middle = (frame.left + frame.right) / 2
    parts.append(f'<text class="mid name" x="{middle}" y="{panel.height - 6}">{escape(panel.x_label)}</text>')
    if panel.y_label:
        height = (frame.top + frame.bottom) / 2
        parts.append(f'<text class="mid name" transform="translate(11 {height}) rotate(-90)">{escape(panel.y_label)}</text>')
    return parts


def _drawn(series: Series, panel: Panel, frame: _Frame) -> list[str]:
    if series.kind == "bars":
        return _bars(series, panel, frame)
    parts = []
    if series.kind == "line":
        path = " ".join(f"{frame.x(p.x)},{frame.y(p.y)}" for p in series.points)
        parts.append(f'<polyline class="{series.role}" points="{path}"/>')
    for point in series.points:
        fill = f' style="fill:{point.fill}"' if point.fill else ""
        parts.append(
            f'<circle class="{series.role}" cx="{frame.x(point.x)}" cy="{frame.y(point.y)}" r="4"{fill}>'
            f"<title>{escape(point.tip)}</title></circle>"
        )
    return parts


def _bars(series: Series, panel: Panel, frame: _Frame) -> list[str]:
    bars = sum(s.kind == "bars" for s in panel.series)
    width = round((frame.x(0.8) - frame.x(0)) / bars, 1)
    zero = frame.y(panel.base or 0)
    parts = []
    for point in series.points:
        y = frame.y(point.y)
        parts.append(
            f'<rect class="{series.role}" x="{frame.x(point.x) - width / 2:.1f}" y="{min(y, zero)}"'
            f' width="{width}" height="{max(abs(y - zero), 1):.1f}"><title>{escape(point.tip)}</title></rect>'
        )
    return parts
