"""The report's charts as PNG files, by matplotlib: for mails and other documents.

One file for each chart with all of its panels, and one for each workload with the heat
maps of all places, those against stock in the left column.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Sequence

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402

from .report_charts import Panel  # noqa: E402
from .report_data import RED, RIVAL_TEXTS, Report, ratio_text  # noqa: E402
from .report_heat import HeatMap, background, heat_maps, text_colour  # noqa: E402

COLOURS = {
    "stock": "#b45309", "ahead": "#00796b", "ceiling": "#475569", "first": "#00796b", "second": "#5b4fb3", "third": "#b45309",
}
COLUMNS = 3  # of panels
DOTS = 130


def write_panels(panels: Sequence[Panel], path: Path) -> None:
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    inches = max(panel.height for panel in panels) / 250 * 3.2 + 0.4
    figure, axes = pyplot.subplots(rows, columns, figsize=(4.8 * columns, inches * rows), squeeze=False)
    for number, axis in enumerate(axes.flat):
        if number < len(panels):
            _panel(axis, panels[number])
        else:
            axis.set_axis_off()
    _save(figure, path)


def _panel(axis: Any, panel: Panel) -> None:
    for series in panel.series:
        xs, ys = [p.x for p in series.points], [p.y for p in series.points]
        colour = COLOURS[series.role]
        if series.kind == "bars":
            width = 0.8 / sum(s.kind == "bars" for s in panel.series)
            axis.bar(xs, ys, width, color=colour, label=series.name)
        elif series.kind == "line":
            axis.plot(xs, ys, "o-", color=colour, markersize=4, label=series.name)
        else:
            fills = [p.fill or colour for p in series.points]
            axis.scatter(xs, ys, s=24, c=fills, edgecolors="#475569" if series.points[0].fill else "white", linewidths=0.5,
                         label=series.name, zorder=3)
    axis.set_title(panel.title, fontsize=10, loc="left")
    axis.set_xlabel(panel.x_label, fontsize=9)
    axis.set_ylabel(panel.y_label, fontsize=9)
    axis.set_xticks([x for x, _ in panel.x_ticks], [text for _, text in panel.x_ticks], fontsize=8)
    axis.set_yticks([y for y, _ in panel.y_ticks], [text for _, text in panel.y_ticks], fontsize=8)
    axis.set_xlim(*panel.x_range)
    axis.set_ylim(*panel.y_range)
    axis.grid(axis="x" if panel.upright else "y", color="#e2e8f0")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    if panel.base is not None:
        (axis.axvline if panel.upright else axis.axhline)(panel.base, color="#475569", linewidth=1)
    names = dict(zip(*reversed(axis.get_legend_handles_labels())))
    if any(names):
        axis.legend(names.values(), names.keys(), fontsize=8, frameon=False)


def write_heat_maps(report: Report, out: Path) -> None:
    for workload in report.workloads():
        rows = [pair for place in report.places if any(pair := heat_maps(place, workload))]
        if not rows:
            continue
        heights = [max(found.lines() for found in pair if found) + 2.5 for pair in rows]
        widths = [max((len(pair[n].columns) for pair in rows if pair[n]), default=1) + 3 for n in (0, 1)]
        figure, axes = pyplot.subplots(
            len(rows), 2, squeeze=False, figsize=(0.62 * sum(widths), 0.3 * sum(heights) + 0.6),
            gridspec_kw={"height_ratios": heights, "width_ratios": widths},
        )
        for pair, line in zip(rows, axes):
            for found, axis, against in zip(pair, line, ("stock", RIVAL_TEXTS.get(workload, "best bitmap"))):
                axis.set_axis_off()
                if found:
                    _heat_map(axis, found, against)
        figure.suptitle(f"{workload}: times as fast with look-ahead", x=0.01, ha="left", fontsize=12)
        _save(figure, out / f"heat-{workload}.png")


def _heat_map(axis: Any, found: HeatMap, against: str) -> None:
    axis.set_title(f"{found.place.label}: {against} / look-ahead", fontsize=8, loc="left")
    axis.set_xlim(-3, len(found.columns))
    axis.set_ylim(found.lines() + 1, 0)
    for x, name in enumerate(found.columns):
        axis.text(x + 0.5, 0.6, name, ha="center", va="center", fontsize=6 if len(name) > 6 else 7)
    y = 1
    for block in found.blocks:
        if block.heading:
            axis.text(-0.1, y + 0.55, block.heading, ha="right", va="center", fontsize=7, style="italic", color="#475569")
            y += 1
        for line in block.lines:
            axis.text(-0.1, y + 0.5, line.label, ha="right", va="center", fontsize=7)
            for x, entry in enumerate(line.cells):
                if entry is None:
                    continue
                ratio = found.value(entry)
                colour = "#3b3b3b" if entry.failures else background(ratio) if ratio else "#ffffff"
                edge = "#7f1d1d" if ratio and ratio < RED else "white"
                axis.add_patch(Rectangle((x + 0.03, y + 0.03), 0.94, 0.94, facecolor=colour, edgecolor=edge, linewidth=1))
                text = "failed" if entry.failures else ratio_text(ratio) if ratio else "–"
                axis.text(x + 0.5, y + 0.52, text, ha="center", va="center", fontsize=7, color=text_colour(colour))
            y += 1


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=DOTS)
    pyplot.close(figure)
