"""The report: results directories in, one HTML page and PNG files of its charts out.

    report_data     what was measured: ratios, noise, red and failed cells, the finding
    report_heat     heat maps: which cell stands where, and its colour
    report_charts   curves, dots and bars as data, and as SVG
    report_page     the page
    report_png      heat maps and charts once more, by matplotlib

The page is static: CSS and SVG are inside it, there is no script, and nothing is loaded.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .records import samples_file
from .report_charts import iops_panels, limit_panels, overview_panels, tpch_panels
from .report_data import Report, read_report
from .report_page import page
from .report_png import write_heat_maps, write_panels


def write(report: Report, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    charts = {
        "overview": overview_panels(report),
        "limit": limit_panels(report),
        "iops": iops_panels(report),
        "tpch": tpch_panels(report),
    }
    (out / "index.html").write_text(page(report, charts))
    for name, panels in charts.items():
        if panels:
            write_panels(panels, out / f"{name}.png")
    write_heat_maps(report, out)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/report", description="One page of what bench/run has measured.")
    parser.add_argument("directories", type=Path, nargs="+", metavar="RESULTS_DIR", help="what bench/run has written")
    parser.add_argument("--out", type=Path, required=True, help="directory of index.html (default .cache/report)")
    parser.add_argument("--variant", default="lookahead", help="the look-ahead variant (default lookahead)")
    options = parser.parse_args()
    for directory in options.directories:
        if samples_file(directory) is None:
            print(f"error: there is no {directory / 'samples.csv'}", file=sys.stderr)
            return 1
    report = read_report(options.directories, options.variant)
    write(report, options.out)
    print(report.finding())
    print(f"report: {options.out / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
