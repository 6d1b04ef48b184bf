"""Look at bench/report's pages in a headless Chromium.

    check.py [--shots DIR] --page NAME DIR N RESULTS... [--page ...]

The ratios are computed here once more from samples.csv, independently of the report's
code, and compared with what the browser shows.  Widths, errors, what is loaded, and the
contrast of every text with what is behind it are asked of the browser itself, at the sizes
of a phone and a desktop, in the light and in the dark colour scheme.
"""

from __future__ import annotations

import base64
import csv
import json
import os
import re
import shutil
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

SIZES = {"phone": (390, 844, 3, True), "desktop": (1440, 900, 1, False)}
CONTRAST = 4.5
RED = 0.97

# every element that has text of its own: contrast with the nearest background behind it
CONTRASTS = r"""
const rgb = s => { const m = s.match(/[\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
const lum = c => { const [r, g, b] = c.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
	return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 0.99) return c; }
	return [255, 255, 255]; };
const found = [];
for (const e of document.querySelectorAll('body *')) {
	if (e.closest('title') || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
	const style = getComputedStyle(e);
	const a = lum(rgb(e.closest('svg') ? style.fill : style.color).slice(0, 3)), b = lum(behind(e).slice(0, 3));
	const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
	found.push([ratio, e.closest('td[data-key]') ? 'cell' : 'text', e.tagName + ' ' + e.textContent.trim().slice(0, 30),
		parseFloat(style.fontSize)]);
}
return found;
"""
CELLS = """return [...document.querySelectorAll('td[data-key]')].map(e => [e.dataset.map, e.dataset.place, e.dataset.key,
	e.textContent, e.title, e.className])"""
PICTURES = """return [...document.querySelectorAll('img, svg')].map(e => { const r = e.getBoundingClientRect();
	return [r.width, r.height, e.tagName === 'IMG' ? e.naturalWidth : e.querySelectorAll('circle, rect, polyline').length]; })"""
SECTION = """const h = document.getElementById(arguments[0]); return h ? h.parentElement.innerText : ''"""
RED_ROWS = """const h = document.getElementById('red');
return h ? [...h.parentElement.querySelectorAll('tbody tr')].map(r => [...r.cells].map(c => c.textContent)) : []"""


class Checks:
    def __init__(self) -> None:
        self.passed = self.failed = 0

    def that(self, what: bool, name: str, detail: object = "") -> None:
        number = self.passed + self.failed + 1
        print(f"{'ok' if what else 'not ok'} {number} - {name}")
        if what:
            self.passed += 1
        else:
            self.failed += 1
            print(f"#   {str(detail)[:1500]}")


# ---- what should be there -------------------------------------------------


class Expected:
    """The ratios, failures and commands of results directories."""

    def __init__(self, directories: list[Path]) -> None:
        self.texts: dict[tuple[str, str, str], str] = {}  # map, place, key
        self.commands: dict[tuple[str, str], str] = {}  # place, key
        self.red: list[tuple[str, str]] = []  # ratio as text, key
        self.failed: list[tuple[str, str]] = []  # key, error
        self.problems: list[str] = []
        self.numbers: list[tuple[float, str]] = []
        self.scattered: dict[str, list[float]] = defaultdict(list)  # storage as the page names it
        for directory in directories:
            self._read(directory)

    def _read(self, directory: Path) -> None:
        runs = json.loads((directory / "machine.json").read_text())
        storages: dict[tuple[str, str], str] = {}
        times: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        with (directory / "samples.csv").open() as file:
            for row in csv.DictReader(file):
                facts = runs[row["run"]]
                storage = facts.get("storage", "local")
                place = re.sub("[^a-z0-9]+", "-", f"{directory.name}-{storage}".lower())
                key = "/".join(row[name] for name in ("workload", "data", "shape", "size", "state"))
                storages[place, key] = "the local disk" if storage == "local" else storage
                times[place, key][row["variant"]].append(float(row["ms"]) / int(row["executions"]))
                program = "bench/replay" if row["workload"] in ("replay", "apply", "promotion") else "bench/run"
                self.commands[place, key] = f"{program} --major {facts['server'].split('.')[0]} "
        failed = set()
        if (directory / "failed.csv").exists():
            with (directory / "failed.csv").open() as file:
                for row in csv.DictReader(file):
                    storage = runs[row["run"]].get("storage", "local")
                    place = re.sub("[^a-z0-9]+", "-", f"{directory.name}-{storage}".lower())
                    failed.add((place, row["cell"]))
                    self.failed.append((row["cell"], row["error"]))
                    self.texts["stock", place, row["cell"]] = "failed"
        for (place, key), variants in times.items():
            medians = {name: statistics.median(found) for name, found in variants.items()}
            rivals = [name for name in medians if name.startswith(("bitmap", "tuned-", "cached"))]
            if any(name.startswith("tuned-") for name in rivals):  # only the best were measured in all repetitions
                most = max(len(variants[name]) for name in rivals)
                rivals = [name for name in rivals if len(variants[name]) == most]
            best = min((medians[name] for name in rivals), default=None)
            for kind, other in (("stock", medians.get("stock")), ("bitmap", best)):
                if other is None or "lookahead" not in medians:
                    continue
                ratio = other / medians["lookahead"]
                text = f"{ratio:.{2 if ratio < 10 else 1 if ratio < 100 else 0}f}"
                self.texts[kind, place, key] = "failed" if (place, key) in failed else text
                if kind == "stock" and (place, key) not in failed:
                    self.numbers.append((ratio, key))
                    _, data, *_, state = key.split("/")
                    if data in ("random", "cyclic") and state == "cold":
                        self.scattered[storages[place, key]].append(ratio)
                    if ratio < RED:
                        self.red.append((text, key))
        problems = directory / "problems.txt"
        if problems.exists():
            self.problems += problems.read_text().splitlines()


# ---- the browser ----------------------------------------------------------


def start() -> webdriver.Chrome:
    options = Options()
    options.binary_location = shutil.which("chromium") or "chromium"
    # the page is our own file; as root, and in containers, there is no sandbox
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                     "--disable-background-networking", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def show(driver: webdriver.Chrome, page: Path, size: str, scheme: str) -> None:
    width, height, scale, mobile = SIZES[size]
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    driver.get(page.as_uri())


def shoot(driver: webdriver.Chrome, path: Path, size: str) -> None:
    """The whole page; a phone's in one pixel for each, or it would be too tall."""
    width = SIZES[size][0]
    height = driver.execute_script("return document.documentElement.scrollHeight")
    done: dict[str, Any] = driver.execute_cdp_cmd("Page.captureScreenshot", {
        "captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": width, "height": min(height, 16000),
                                                "scale": 1 / SIZES[size][2]},
    })
    path.write_bytes(base64.b64decode(done["data"]))


# ---- checks ---------------------------------------------------------------


def check_look(checks: Checks, driver: webdriver.Chrome, name: str, size: str, scheme: str) -> None:
    where = f"{name}, {size}, {scheme}"
    width = SIZES[size][0]
    inner, scroll = driver.execute_script("return [window.innerWidth, document.documentElement.scrollWidth]")
    checks.that(inner == width and scroll <= width, f"{where}: no horizontal scrolling", f"inner {inner}, scroll {scroll}")
    logged = [entry["message"] for entry in driver.get_log("browser")]
    checks.that(not logged, f"{where}: nothing on the console", logged)
    pictures = driver.execute_script(PICTURES)
    checks.that(bool(pictures) and all(min(p) > 0 for p in pictures), f"{where}: {len(pictures)} pictures are drawn", pictures)
    found = driver.execute_script(CONTRASTS)
    for kind, least in (("cell", CONTRAST), ("text", CONTRAST)):
        bad = [f for f in found if f[1] == kind and f[0] < least]
        checks.that(not bad and any(f[1] == kind for f in found),
                    f"{where}: contrast of {kind}s is at least {least}", bad[:10])
    small = [f for f in found if f[3] < 12]
    checks.that(not small, f"{where}: no text below 12 px", small[:10])


def check_cells(checks: Checks, driver: webdriver.Chrome, name: str, expected: Expected) -> None:
    shown = driver.execute_script(CELLS)
    texts = {(kind, place, key): text for kind, place, key, text, _, _ in shown}
    checks.that(len(texts) == len(shown), f"{name}: each cell once")
    # a cell without any bitmap sample is in the map against stock only
    wrong = {k: (v, texts.get(k)) for k, v in expected.texts.items() if texts.get(k) != v}
    checks.that(not wrong, f"{name}: all {len(expected.texts)} cells show the ratio of samples.csv", wrong)
    extra = set(texts) - set(expected.texts)
    checks.that(not extra, f"{name}: no other cells", extra)
    silent = [
        (place, key) for _, place, key, _, title, _ in shown
        if f"--only '{key}'" not in title or expected.commands.get((place, key), "bench/run --major ") not in title
    ]
    checks.that(not silent, f"{name}: each cell tells its command", silent)
    wrong_frames = [k for _, _, k, text, _, names in shown if ("below" in names.split()) != (text not in ("", "failed") and
                    float(text) < RED) and abs(float(text) - RED) > 0.006]
    checks.that(not wrong_frames, f"{name}: cells below {RED} are framed, and no others", wrong_frames)


def check_lists(checks: Checks, driver: webdriver.Chrome, name: str, expected: Expected) -> None:
    rows = driver.execute_script(RED_ROWS)
    checks.that(sorted((r[0], r[1]) for r in rows) == sorted(expected.red), f"{name}: {len(expected.red)} red cells are listed", rows)
    checks.that(all(f"--only '{row[1]}'" in row[-1] for row in rows), f"{name}: red cells tell their command", rows)
    text = driver.execute_script(SECTION, "failed")
    checks.that(all(key in text and error in text for key, error in expected.failed),
                f"{name}: {len(expected.failed)} failures are listed with their error", text)
    text = driver.execute_script(SECTION, "problems")
    checks.that(all(line in text for line in expected.problems), f"{name}: {len(expected.problems)} problems are listed", text)
    finding = driver.execute_script("return document.querySelector('.finding').textContent")
    worst, key = min(expected.numbers)
    checks.that(f"{worst:.2f} times as fast ({key}" in finding, f"{name}: the finding names the worst cell", finding)
    for storage, found in expected.scattered.items():
        shown = f"{statistics.geometric_mean(found):.2f} times as fast on {storage} (geometric mean of {len(found)} cells)"
        checks.that(shown in finding, f"{name}: the finding has the geometric mean on {storage}", finding)
    loaded = driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    checks.that(not [u for u in loaded if not u.startswith("data:")], f"{name}: nothing else is loaded", loaded)
    scripts = driver.execute_script("return document.querySelectorAll('script, iframe, object, link[rel=stylesheet]').length")
    checks.that(scripts == 0, f"{name}: no scripts, no frames, no style sheets elsewhere", scripts)


def check_made(checks: Checks, driver: webdriver.Chrome) -> None:
    """What the synthetic results have in them."""
    shown = {(place, key): (text, names, title) for kind, place, key, text, title, names in driver.execute_script(CELLS)
             if kind == "stock"}
    local, cloud = "2030-01-02-18-local", "2030-01-02-18-cloud-1ms-5k-cloud-1ms-5k"
    checks.that("noise" in shown[local, "lookup/random/select-only/1/cached"][1], "a red cell within the noise is marked")
    checks.that("noise" not in shown[local, "toast/random/range/1000/cached"][1], "a red cell beyond the noise is not")
    checks.that(not any("noise" in names for (place, _), (_, names, _) in shown.items() if place == cloud),
                "without A/A nothing is called noise")
    checks.that("--storage cloud-1ms-5k" in shown[cloud, "matching/random/range/1000/cold"][2], "the command names the storage")
    checks.that(shown[local, "inlist/random/in10/100/cold"][0] == "failed", "a cell that has nothing but a failure is shown")
    rows = {row[1]: " ".join(row) for row in driver.execute_script(RED_ROWS)}
    checks.that("within the noise" in rows["lookup/random/select-only/1/cached"] and
                "beyond the noise" in rows["toast/random/range/1000/cached"] and
                "A/A not measured" in rows["limit/random/limit/1/cold"], "the red list says what is noise", rows)
    text = driver.execute_script(SECTION, "findings")
    checks.that("<script>" in text and "onerror" in text and "1 < 2 & 3 > 2" in text, "HTML in findings.md is text", text)
    inside = driver.execute_script("""const d = document.querySelector('.findings');
        return [d.querySelectorAll('script, img, [onerror]').length, d.querySelectorAll('a[href^="javascript"]').length,
                d.querySelectorAll('h3').length, d.querySelectorAll('td').length, document.title]""")
    checks.that(inside[:2] == [0, 0] and "broken" not in inside[4], "findings.md cannot bring scripts or pictures", inside)
    checks.that(inside[2] == 1 and inside[3] == 2, "findings.md is rendered", inside)
    bars = driver.execute_script("return document.getElementById('tpch').parentElement.querySelectorAll('rect').length")
    checks.that(bars == 2 * 2 * (2 * 22 + 2), "TPC-H has a bar for each query, scale, state and way to run it", bars)
    finding = driver.execute_script("return document.querySelector('.finding').textContent")
    checks.that("the local disk" in finding and "cloud-1ms-5k" in finding and "2 cells failed" in finding,
                "the finding speaks of both storages and of the failures", finding)
    shown = driver.execute_script("""const e = document.querySelector('td[data-key]'); e.focus();
        const s = getComputedStyle(e, '::before'); return [s.content, s.position]""")
    checks.that("bench/run" in shown[0] and shown[1] == "fixed", "a tapped cell tells its command", shown)


def check_files(checks: Checks, name: str, out: Path, wanted: list[str]) -> None:
    bad = [f for f in wanted if not (out / f"{f}.png").exists() or (out / f"{f}.png").read_bytes()[:4] != b"\x89PNG"]
    checks.that(not bad, f"{name}: charts are there as PNG files", bad)


def main() -> int:
    arguments = sys.argv[1:]
    shots = None
    if arguments[0] == "--shots":
        shots, arguments = Path(arguments[1]), arguments[2:]
    checks = Checks()
    driver = start()
    try:
        while arguments:
            name, out, count = arguments[1], Path(arguments[2]), int(arguments[3])
            expected = Expected([Path(a) for a in arguments[4:4 + count]])
            arguments = arguments[4 + count:]
            for size in SIZES:
                for scheme in ("light", "dark"):
                    show(driver, out / "index.html", size, scheme)
                    check_look(checks, driver, name, size, scheme)
                    if shots:
                        shoot(driver, shots / f"{name}-{size}-{scheme}.png", size)
            check_cells(checks, driver, name, expected)
            check_lists(checks, driver, name, expected)
            workloads = {key.split("/")[0] for _, _, key in expected.texts}
            check_files(checks, name, out, ["overview", "iops", *(f"heat-{w}" for w in workloads), *{"limit", "tpch"} & workloads])
            if name == "made":
                check_made(checks, driver)
    finally:
        driver.quit()
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    sys.exit(main())
