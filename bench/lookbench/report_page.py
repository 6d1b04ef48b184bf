"""The report's page: HTML with everything in it.

Text that comes from results (errors, problems, names) is escaped; findings.md is rendered
by markdown-it with HTML in it shown as text, links checked by its rules and images left
out, so that the page loads nothing.  The style is in report.css, which goes inside.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

from markdown_it import MarkdownIt

from .replayed.cells import SOURCES as REPLAYED
from .report_charts import Panel, svg
from .report_data import RED, RIVAL_TEXTS, Entry, Place, Report, geometric_mean, ratio_text
from .report_heat import DARK, LIGHT, HeatMap, background, heat_maps, text_colour
from .workloads import WORKLOADS

STYLE = Path(__file__).with_name("report.css")
SOURCES = {kind.name: kind.source for kind in WORKLOADS} | dict(REPLAYED)
SAMPLES = (0.5, 0.7, 0.9, 1.0, 1.5, 2.0, 4.0, 8.0)  # of the legend
Section = tuple[str, str, str, str]  # anchor, short name, heading, HTML


def page(report: Report, charts: Mapping[str, Sequence[Panel]]) -> str:
    sections = [s for s in _sections(report, charts) if s[3]]
    links = "".join(f'<a href="#{anchor}">{escape(name)}</a>' for anchor, name, _, _ in sections)
    body = "".join(
        f'<section><h2 id="{anchor}">{escape(heading)}</h2>{html}</section>' for anchor, _, heading, html in sections
    )
    headline, _, rest = report.finding().partition("; ")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>pg_lookahead: measured</title>
<style>
{STYLE.read_text()}</style>
</head>
<body>
<header>
<h1>pg_lookahead, measured by bench/run</h1>
<p class="finding">{escape(headline.rstrip("."))}. <span>{escape(rest[:1].upper() + rest[1:])}</span></p>
<div class="tiles">{"".join(map(_tile, report.places))}</div>
<nav>{links}</nav>
</header>
<main>{body}</main>
<footer>{_footer()}</footer>
</body>
</html>
"""


def _sections(report: Report, charts: Mapping[str, Sequence[Panel]]) -> Iterable[Section]:
    yield "machine", "machine", "What it was measured on", _machines(report)
    yield "overview", "every cell", "Every cell", _overview(charts["overview"])
    for workload in report.workloads():
        yield f"heat-{workload}", workload, f"Heat map: {workload}", _workload(report, workload)
    yield "limit", "LIMIT curves", "LIMIT curves", _panels(
        charts["limit"], "Short scans must not pay for look-ahead, long ones must gain: time (lower is better) or"
        " executions per second (higher is better) of ORDER BY with LIMIT n.")
    yield "iops", "IOPS", "Reads per second against the disk's ceiling", _panels(
        charts["iops"], "The curve is what the disk gives fio for random 8 kB reads at each queue depth; the dots are"
        " cold scans of scattered data, blocks that were not in shared_buffers by the time of the whole query.")
    yield "tpch", "TPC-H bars", "TPC-H, query by query", _panels(charts["tpch"], "Bars above the line are faster with look-ahead.")
    yield "red", f"red cells ({len(report.red())})", f"Red cells: all below {RED}", _red(report)
    yield "failed", f"failed ({len(report.failed())})", "Failed cells", _failed(report)
    yield "findings", "findings", "Findings", "".join(_findings(name, text) for name, text in report.findings)
    yield "problems", f"problems ({len(report.problems)})", "Problems that the runner noticed", _problems(report)


def _tile(place: Place) -> str:
    scattered = place.scattered()
    measured = [e for e in place.entries.values() if e.ratio is not None]
    worst = min(measured, key=lambda e: e.ratio or 0, default=None)
    red = sum(e.is_red for e in measured)
    failed = sum(bool(e.failures) for e in place.entries.values())
    lines = [f"<strong>{escape(place.label)}</strong>"]
    if scattered:
        lines += [f"<b>{ratio_text(geometric_mean(scattered))}× <small>as fast</small></b>",
                  f"<span>geometric mean of {len(scattered)} cold cells on random and cyclic data</span>"]
    if worst is not None:
        lines.append(f'<span title="{_attribute(worst.tip())}">worst of {len(measured)}: {ratio_text(worst.ratio or 0)}'
                     f" ({escape(worst.cell.key)})</span>")
    if red or failed:
        summary = [f"{red} below {RED}"] * bool(red) + [f"{failed} failed"] * bool(failed)
        lines.append(f'<span class="alarm">{", ".join(summary)}</span>')
    return f'<div class="tile">{"".join(lines)}</div>'


def _attribute(text: str) -> str:
    return escape(text).replace("\n", "&#10;")


# ---- tables ---------------------------------------------------------------


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], red: bool = False) -> str:
    """Cells are HTML; on a phone each is preceded by its head."""
    lines = []
    for row in rows:
        cells = "".join(
            f'<td data-name="{escape(head)}"{" class=number" if head == "ratio" else ""}>{cell}</td>'
            for head, cell in zip(heads, row)
        )
        lines.append(f'<tr{" class=red" if red else ""}>{cells}</tr>')
    if not lines:
        return ""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    return f'<div class="scroll"><table class="plain"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _machines(report: Report) -> str:
    heads = ("results", "storage", "server", "machine", "disk", "ceiling, 8 kB random reads/s", "commit")
    return _table(heads, (
        _machine(place, run, facts) for place in report.places for run, facts in sorted(place.runs.items())
    ))


def _machine(place: Place, run: str, facts: dict[str, Any]) -> list[str]:
    machine, source = facts.get("machine", {}), facts.get("source", {})
    disk = machine.get("disk", {})
    reads = {int(depth): n for depth, n in facts.get("ceiling_reads_per_second", {}).items() if n}
    best = max(reads, key=lambda depth: reads[depth], default=None)
    commit = str(source.get("commit", "unknown"))[:12] + (" with changes in src/" if source.get("src_changed") else "")
    return [
        f'{escape(place.directory.name)}<br><small class="quiet">{escape(run)}</small>',
        escape(place.storage),
        f"PostgreSQL {escape(str(facts.get('server', place.major)))}",
        escape(f"{machine.get('cores', '?')} cores of {machine.get('cpu', 'an unknown processor')},"
               f" {machine.get('memory_gb', '?')} GB, {machine.get('system', '')}"),
        escape(f"{disk.get('device', '?')}, {str(disk.get('filesystem', '?')).split()[0]}"),
        "not measured" if best is None else f"{reads[best]:,} at queue depth {best}",
        f"<code>{escape(commit)}</code><br><small class=quiet>src {escape(str(source.get('src_digest', '?')))}</small>",
    ]


def _red(report: Report) -> str:
    cells = report.red()
    if not cells:
        return f"<p>None: no cell is below {RED}.</p>"
    known = sum(e.noise is not None for e in cells)
    noise = sum(e.is_noise for e in cells)
    summary = f"{len(cells)} of {sum(e.ratio is not None for e in report.entries())} cells, against stock."
    if known:
        summary += f" {noise} of them {'is' if noise == 1 else 'are'} within what stock differs from itself."
    if known < len(cells):
        summary += f" For {len(cells) - known} stock was not measured against itself, so only the spreads tell what is noise."
    rows = _table(("ratio", "cell", "place", "stock", "look-ahead", "noise", "again"), map(_red_row, cells), red=True)
    return f"<p>{summary}</p>{rows}"


def _red_row(entry: Entry) -> list[str]:
    def side(figure: Any) -> str:
        return f"{figure.median:,.4g} ms ±{figure.spread:.1%}" if figure else "–"

    if entry.noise is None or entry.again_ratio is None:
        noise = "A/A not measured"
    else:
        verdict = "within the noise" if entry.is_noise else "beyond the noise"
        noise = f"A/A {entry.again_ratio:.2f}, {entry.noise_text().rsplit(', ', 1)[1]}: {verdict}"
    return [
        ratio_text(entry.ratio or 0), f"<code>{escape(entry.cell.key)}</code>", escape(entry.place.label),
        side(entry.stock), side(entry.ahead), escape(noise), f"<code>{escape(entry.command)}</code>",
    ]


def _failed(report: Report) -> str:
    rows = [
        [f"<code>{escape(entry.cell.key)}</code>", escape(entry.place.label), escape(failure.variant), escape(failure.rep),
         escape(failure.error), "yes" if failure.measured_since else "no", f"<code>{escape(entry.command)}</code>"]
        for entry in report.failed() for failure in entry.failures
    ]
    return _table(("cell", "place", "variant", "repetition", "error", "measured since", "again"), rows, red=True)


def _problems(report: Report) -> str:
    return _table(("results", "problem"), ([escape(name), escape(line)] for name, line in report.problems))


# ---- heat maps ------------------------------------------------------------


def _workload(report: Report, workload: str) -> str:
    rows = []
    for place in report.places:
        maps = zip(heat_maps(place, workload), (("stock", "stock"), ("bitmap", RIVAL_TEXTS.get(workload, "best bitmap scan"))))
        tables = "".join(_heat_map(found, kind, name) for found, (kind, name) in maps if found)
        if tables:
            rows.append(f'<div class="row">{tables}</div>')
    source = f'<p class="quiet">{escape(SOURCES[workload])}</p>' if workload in SOURCES else ""
    legend = _legend() if report.workloads()[0] == workload else ""
    return f'{source}{legend}<div class="rows">{"".join(rows)}</div>' if rows else ""


def _heat_map(found: HeatMap, kind: str, name: str) -> str:
    heads = "".join(f"<th scope=col>{escape(text).replace(' ', '<br>')}</th>" for text in found.columns)
    lines = []
    for block in found.blocks:
        if block.heading:
            lines.append(f'<tr class="state"><th colspan="{len(found.columns) + 1}">{escape(block.heading)}</th></tr>')
        for line in block.lines:
            cells = "".join(_heat_cell(entry, found, kind) for entry in line.cells)
            lines.append(f"<tr><th scope=row>{escape(line.label)}</th>{cells}</tr>")
    return (
        f"<figure><figcaption>{escape(found.place.label)}<small>{escape(name)} / look-ahead</small></figcaption>"
        f'<div class="scroll"><table class="heat"><thead><tr><th>{escape(found.corner)}</th>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div></figure>"
    )


def _heat_cell(entry: Entry | None, found: HeatMap, kind: str) -> str:
    if entry is None:
        return '<td class="none"></td>'
    ratio = found.value(entry)
    data = (f' data-map="{kind}" data-place="{escape(found.place.slug)}" data-key="{escape(entry.cell.key)}"'
            f' tabindex="-1" title="{_attribute(entry.tip())}"')
    if entry.failures:
        return f'<td class="failed"{data}>failed</td>'
    if ratio is None:
        return f'<td class="none"{data}></td>'
    classes = ["noise"] * (kind == "stock" and entry.is_noise) + ["below"] * (ratio < RED)
    named = f' class="{" ".join(classes)}"' if classes else ""
    return f'<td{named} style="{_colours(ratio)}"{data}>{ratio_text(ratio)}</td>'


def _colours(ratio: float) -> str:
    light, dark = background(ratio, LIGHT), background(ratio, DARK)
    return f"--l:{light};--lt:{text_colour(light)};--d:{dark};--dt:{text_colour(dark)}"


def _legend() -> str:
    swatches = "".join(
        f'<td{" class=below" if ratio < RED else ""} style="{_colours(ratio)}">{ratio:g}</td>' for ratio in SAMPLES
    )
    return (
        "<p>Each number is the median time of stock PostgreSQL, or of its best bitmap scan, by that with look-ahead:"
        " 2.00 is twice as fast. Columns are the number of rows. Rest on a cell, or tap it, for its times, its noise"
        " and the command that measures it again.</p>"
        f'<div class="legend"><table class="heat"><tr>{swatches}</tr></table>'
        f'<span>framed: below {RED}</span><span><i class="corner"></i> corner: differs from 1 no more than stock from itself</span>'
        "<span>failed: some sample ended in an error</span></div>"
    )


# ---- charts ---------------------------------------------------------------


def _overview(panels: Sequence[Panel]) -> str:
    return _panels(panels, "Each dot is a cell; right of the line look-ahead is faster.")


def _panels(panels: Sequence[Panel], text: str) -> str:
    if not panels:
        return ""
    return f'<p>{escape(text)}</p><div class="panels">{"".join(map(_panel, panels))}</div>'


def _panel(panel: Panel) -> str:
    named = dict((series.name, series.role) for series in panel.series if series.name)
    keys = "".join(f'<span class="key"><i class="{role}"></i>{escape(name)}</span>' for name, role in named.items())
    notes = "".join(f"<p>{escape(note)}</p>" for note in panel.notes)
    return f'<figure class="panel"><figcaption>{escape(panel.title)}<br>{keys}</figcaption>{svg(panel)}{notes}</figure>'


# ---- findings and footer --------------------------------------------------


def _findings(name: str, text: str) -> str:
    """Markdown; its headings go below the page's."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = markdown.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
    html = markdown.renderer.render(tokens, markdown.options, {})
    return f'<p class="quiet">{escape(name)}/findings.md</p><div class="findings">{html}</div>'


def _footer() -> str:
    return (
        "<p>Medians of repetitions that were interleaved with those of the other variants; cells are compared inside one"
        " run only. A failed cell is one of which any sample ended in an error. Noise is the larger of the distance"
        " between the medians of two runs of stock and half the interquartile range of both together. Reads per second"
        " include the processor's time. The same charts lie beside this page as PNG files; bench/README.md says how"
        " everything is measured.</p>"
    )
