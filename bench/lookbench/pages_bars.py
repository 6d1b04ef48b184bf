"""The charts of docs/performance.md: a bar for each row of a table, as long as look-ahead is faster than stock.

Written as SVG without any library, so that --check compares whole files.  The axis is logarithmic:
twice as fast and half as fast are equally far from the rule at 1.
"""

from __future__ import annotations

import math
import re
from html import escape
from typing import Sequence

WIDTH, ROW, BAR = 760, 22, 14
LEFT, RIGHT, TOP, BOTTOM = 372, 56, 26, 40
FASTER, SLOWER, NEITHER = "#00796b", "#b45309", "#64748b"
TICKS = (0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30)

Bar = tuple[str, float, bool]  # label, ratio, is it noise?


def _plain(label: str) -> str:
    return re.sub(r"[`*]", "", label)


def _axis(bars: Sequence[Bar]) -> tuple[float, float]:
    """The ticks between which all bars end."""
    least, most = min(ratio for _, ratio, _ in bars), max(ratio for _, ratio, _ in bars)
    low = max((tick for tick in TICKS if tick <= min(least, 1)), default=least)
    high = min((tick for tick in TICKS if tick >= max(most, 2)), default=most)
    return low, high


def bars_svg(title: str, bars: Sequence[Bar], note: str) -> str:
    low, high = _axis(bars)
    height = TOP + ROW * len(bars) + BOTTOM
    bottom = height - BOTTOM

    def x(ratio: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(ratio / low) / math.log(high / low)

    def text(at: float, y: float, what: str, attributes: str) -> str:
        return f'<text x="{at:.1f}" y="{y:.1f}" {attributes}>{escape(what)}</text>'

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f"<title>{escape(_plain(title))}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        text(8, 16, f"times as fast: {_plain(title)}", 'fill="#0f172a" font-weight="bold"'),
    ]
    for tick in TICKS:
        if low <= tick <= high:
            lines.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{bottom}" '
                         f'stroke="{"#475569" if tick == 1 else "#e2e8f0"}"/>')
            lines.append(text(x(tick), bottom + 14, f"{tick:g}", 'fill="#475569" text-anchor="middle" font-size="11"'))
    for number, (label, ratio, noise) in enumerate(bars):
        y = TOP + ROW * number
        start, end = sorted((x(1), x(ratio)))
        colour = NEITHER if noise else FASTER if ratio >= 1 else SLOWER
        lines.append(text(LEFT - 8, y + 15, _plain(label), 'fill="#0f172a" text-anchor="end"'))
        lines.append(f'<rect x="{start:.1f}" y="{y + (ROW - BAR) / 2:.1f}" width="{max(end - start, 1):.1f}" '
                     f'height="{BAR}" fill="{colour}"/>')
        lines.append(text(end + 5, y + 15, f"{ratio:.2f}", 'fill="#0f172a"'))
    lines += [text(8, height - 8, note, 'fill="#475569" font-size="10"'), "</svg>", ""]
    return "\n".join(lines)
