"""The README's picture: time by number of rows, for an index scan of stock, a bitmap scan and look-ahead.

Three panels: scattered rows cold, which is what look-ahead is for; rows in the order of the
index, where there is nothing to win; scattered rows that are all in shared_buffers.  Below
them stand machine, settings, commit and the results directory.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Sequence

from .report_data import Entry

SIZES = (1, 10, 100, 1_000, 10_000, 100_000)
PANELS = (
    ("scattered rows, cold", "matching/random/range/{}/cold"),
    ("rows in the order of the index, cold", "matching/sequential/range/{}/cold"),
    ("scattered rows, all in shared_buffers", "matching/random/range/{}/cached"),
)
STYLES = (  # name, colour, marker
    ("index scan, stock", "#b45309", "o"),
    ("bitmap scan, its best setting", "#64748b", "s"),
    ("index scan, look-ahead", "#00796b", "D"),
)
LABEL_STEP = 1.75  # so far apart, as factors of their times, labels can be read
SHOWN_SETTINGS = ("shared_buffers", "effective_io_concurrency", "io_method", "pg_lookahead.max_distance")


@dataclass(frozen=True)
class Curves:
    """Panel -> series -> milliseconds by number of rows."""

    panels: Sequence[tuple[str, Sequence[Sequence[float]]]]
    notes: Sequence[str]

    @property
    def digest(self) -> str:
        shown = repr([(title, [[f"{ms:.6g}" for ms in line] for line in lines]) for title, lines in self.panels])
        return "times " + hashlib.sha256((shown + repr(self.notes)).encode()).hexdigest()[:16]


def curves(find: Callable[[str], Entry], source: str) -> Curves:
    panels = []
    settings: dict[str, dict[str, str]] = {}
    for title, key in PANELS:
        entries = [find(key.format(size)) for size in SIZES]
        lines = [[e.stock.median for e in entries if e.stock], [e.bitmap[1].median for e in entries if e.bitmap],
                 [e.ahead.median for e in entries if e.ahead]]
        panels.append((title, lines))
        for entry in entries:
            used = {f"{entry.cell.state} {name}" for name in entry.figures}
            for run in entry.runs:
                known = entry.place.runs[run]["settings"]
                settings |= {session: known[session] for session in sorted(used & known.keys())}
    return Curves(panels, [source, settings_text(settings)])


def settings_text(settings: dict[str, dict[str, str]]) -> str:
    """SHOWN_SETTINGS with all values that were set; settings is by "state variant"."""
    parts = []
    for name in SHOWN_SETTINGS:
        by_value: dict[str, list[str]] = {}
        for session, values in settings.items():
            if name in values:
                by_value.setdefault(values[name], []).append(session)
        values = [
            value if len(sessions) == len(settings) else f"{value} ({_kind(sessions, settings)})"
            for value, sessions in by_value.items()
        ]
        if values:
            parts.append(f"{name} = {', '.join(values)}")
    return "; ".join(parts)


def _kind(sessions: Sequence[str], settings: dict[str, dict[str, str]]) -> str:
    """The states that these are all sessions of, else their variants."""
    states = {session.split()[0] for session in sessions}
    if all(session in sessions for session in settings if session.split()[0] in states):
        return ", ".join(sorted(states))
    return ", ".join(sorted({session.split()[1] for session in sessions}))


def draw(shown: Curves, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # the same file from the same times, with text as text
    pyplot.rcParams.update({"svg.hashsalt": "pg_lookahead", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10})
    figure, axes = pyplot.subplots(1, len(shown.panels), figsize=(12.6, 4.6), sharey=True)
    for axis, (title, lines) in zip(axes, shown.panels):
        _panel(axis, title, lines)
    axes[0].set_ylabel("milliseconds")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="upper center", ncols=len(names), frameon=False, fontsize=11)
    figure.tight_layout(rect=(0, 0.085, 1, 0.93))
    for number, note in enumerate(shown.notes):
        figure.text(0.008, 0.055 - 0.035 * number, note, fontsize=8, color="#475569")
    figure.savefig(path, facecolor="white", metadata={"Date": None, "Creator": "bench/pages", "Description": shown.digest})
    pyplot.close(figure)


def _panel(axis: Any, title: str, lines: Sequence[Sequence[float]]) -> None:
    for (name, colour, marker), line in zip(STYLES, lines):
        axis.plot(SIZES, line, color=colour, marker=marker, markersize=5, linewidth=2, label=name)
    height = 0.0
    for ms, (_, colour, _) in sorted((line[-1], style) for style, line in zip(STYLES, lines)):
        height = max(ms, height * LABEL_STEP)
        axis.text(SIZES[-1] * 1.6, height, _time(ms), va="center", fontsize=9, color=colour)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_title(title, fontsize=11, loc="left")
    axis.set_xlabel("rows")
    axis.set_xticks(SIZES, [f"{size}" if size < 1_000 else f"{size // 1_000}k" for size in SIZES])
    axis.set_yticks((0.1, 1, 10, 100, 1_000, 10_000), ("0.1", "1", "10", "100", "1,000", "10,000"))
    axis.minorticks_off()
    axis.set_xlim(0.6, 3_000_000)
    axis.grid(color="#e2e8f0")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def _time(ms: float) -> str:
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms"
