"""The picture of what happens: stock's reads one after another, look-ahead's side by side.

A drawing and no measurement: a read takes READ units of time, a row ROW, and to start a read
takes START.
"""

from __future__ import annotations

from typing import Iterator

BLOCKS = (17, 4, 90, 203, 61, 8)
READ, ROW, START = 60, 12, 7
LEFT, WIDTH, LANE, BAR = 14, 468, 17, 12
TEXT, WAIT, DONE, LINE = "#334155", "#f0b27a", "#00796b", "#cbd5e1"


def _bar(x: float, y: float, width: float, colour: str, label: str = "") -> str:
    bar = f'<rect x="{LEFT + x:g}" y="{y:g}" width="{width:g}" height="{BAR}" rx="2" fill="{colour}"/>'
    if label:
        bar += f'<text x="{LEFT + x + 4:g}" y="{y + BAR - 3:g}" font-size="9" fill="{TEXT}">{label}</text>'
    return bar


def _stock(top: float) -> Iterator[str]:
    x = 0
    for block in BLOCKS:
        yield _bar(x, top, READ, WAIT, f"read {block}")
        yield _bar(x + READ, top, ROW, DONE)
        x += READ + ROW


def _ahead(top: float) -> Iterator[str]:
    row = 0
    for number, block in enumerate(BLOCKS):
        start = number * START
        yield _bar(start, top + number * LANE, READ, WAIT, f"read {block}")
        row = max(row, start + READ)
        yield _bar(row, top + number * LANE, ROW, DONE)
        row += ROW


def waits_svg() -> str:
    heading = f'font-size="12" font-weight="bold" fill="{TEXT}"'
    height = 84 + len(BLOCKS) * LANE + 24
    legend = height - 18
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' font-family="sans-serif" role="img">',
        "<title>Stock waits for one read after another; with look-ahead the reads overlap.</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="18" {heading}>stock: one read after another</text>',
        *_stock(26),
        f'<text x="{LEFT}" y="66" {heading}>pg_lookahead: side by side, rows in the same order</text>',
        *_ahead(74),
        f'<path d="M{LEFT} {legend - 8}H{WIDTH - LEFT}" stroke="{LINE}"/>',
        _bar(0, legend, BAR, WAIT), f'<text x="{LEFT + 18}" y="{legend + 10}" font-size="10" fill="{TEXT}">the storage reads a block</text>',
        _bar(160, legend, BAR, DONE), f'<text x="{LEFT + 178}" y="{legend + 10}" font-size="10" fill="{TEXT}">the executor returns a row</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
