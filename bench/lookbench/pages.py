"""The tables and the picture of README.md and docs/, made of committed results.

A page marks where a table belongs:

    <!-- bench/pages NAME -->
    ...
    <!-- end -->

What is between the two lines is replaced.  A table has the medians of the cells named below,
all from one results directory, and a last line with that directory, server, machine and
commit.  "noise" in it is a ratio no farther from 1 than stock is from itself (report_data.py).
The picture (pages_picture.py) names the same, and carries a digest of the times it shows,
so that --check needs no matplotlib.  Where a page shows charts/NAME.svg, that is a chart of the
table of that name (pages_bars.py).
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

from .machine import source_state
from .pages_bars import bars_svg
from .pages_picture import Curves, curves, draw
from .pages_waits import waits_svg
from .report_data import Entry, Place, geometric_mean, read_report
from .workloads import COLD

FULL = "index-scans-18"
RELEASE = "release-1.0-18"
BESIDE = "majors-18-19"
RACE = "race-core-18"
README, PERFORMANCE = "README.md", "docs/performance.md"
PICTURE = "docs/scan-times.svg"
WAITS = "docs/waits.svg"

Row = tuple[str, str]  # the first column of the table, and the cell


@dataclass(frozen=True)
class PageTable:
    name: str  # in the marker
    page: str
    directory: str
    head: str  # of the first column
    rows: Sequence[Row]
    bitmap: bool = False  # a column for the best bitmap scan
    itself: bool = False  # and one for stock against stock
    seconds: bool = False
    mean: bool = False  # a last line: geometric mean of the ratios
    later: str = ""  # major version that was measured beside: its variants "stock19" and "look19" have columns, too
    rivals: Sequence[tuple[str, str]] = ()  # variants of servers beside, with their heads; the first one is not a rival

    @property
    def path(self) -> str:
        return f"bench/results/{self.directory}"


# The picture's rows are those of matching/*/range of the same directory.
SCANS: Sequence[Row] = (
    ("1 row", "matching/random/range/1/cold"),
    ("1,000 scattered rows, in index order", "matching/random/range/1000/cold"),
    ("100,000 scattered rows, in index order", "matching/random/range/100000/cold"),
    ("`ORDER BY ... LIMIT 100`", "matching/random/limit/100/cold"),
    ("`IN` list of 1,000 scattered values", "inlist/random/in1/1000/cold"),
    ("10,000 nearest points (GiST, `ORDER BY p <-> ...`)", "methods/random/gist-knn/10000/cold"),
    ("100 nearest vectors (pgvector, HNSW)", "vector/clustered/hnsw/100/cold"),
    ("100,000 scattered rows, all in `shared_buffers`", "matching/random/range/100000/cached"),
    ("10,000 scattered rows, in the operating system's cache", "matching/random/range/10000/os-cached"),
    ("10,000 rows that lie in the order of the index", "matching/sequential/range/10000/cold"),
)

VOLUME: Sequence[Row] = (
    ("10 scattered rows, in index order", "matching/random/range/10/cold"),
    ("100", "matching/random/range/100/cold"),
    ("1,000", "matching/random/range/1000/cold"),
    ("`IN` list of 1,000 scattered values", "inlist/random/in1/1000/cold"),
    ("`LIMIT 16`", "limit/random/limit/16/cold"),
    ("`LIMIT 64`", "limit/random/limit/64/cold"),
)

SCALE: Sequence[Row] = (
    *((f"10,000 scattered rows of {data[:-1]} million, in index order", f"scale/{data}/range/10000/cold") for data in ("10M", "100M", "300M")),
    *((f"nested loop, 10,000 look-ups in {data[:-1]} million", f"scale/{data}/loop/10000/cold") for data in ("10M", "100M", "300M")),
    *(
        (f"10,000 rows of 10 million, in {count} partition{'s' if count > '1' else ''}", f"scale/{count}-partitions/range/10000/cold")
        for count in ("1", "10", "100", "1000")
    ),
)

BEHIND: Sequence[Row] = (
    ("2,000 documents by an index, scattered", "documents/scattered/index/2000/cold"),
    ("10,000 documents, sequential scan, scattered", "documents/scattered/sequential/10000/cold"),
    ("... by `COPY TO`", "documents/scattered/copy/10000/cold"),
    ("a correlated count of ten rows, for 5,000 rows", "subquery/random/count/5000/cold"),
    ("`EXISTS`, for 5,000 rows", "subquery/random/exists/5000/cold"),
    ("`LATERAL ... LIMIT 3`, for 5,000 rows", "subquery/random/top3/5000/cold"),
    ("16 partitions, for each of 1,000 rows", "subquery/random/parts/1000/cold"),
)
BEHIND_ORDERED: Sequence[Row] = (
    ("10,000 documents in the order of their rows, sequential scan", "documents/loaded/sequential/10000/cold"),
    ("... by `COPY TO`", "documents/loaded/copy/10000/cold"),
)
BEHIND_TPCH: Sequence[Row] = (
    ("TPC-H, scale factor 5, Q17 as index scans", "tpch/sf5/q17-index/5/cold"),
    ("... Q20", "tpch/sf5/q20-index/5/cold"),
)
WRITES: Sequence[Row] = (
    ("50,000 rows into four random indexes", "write/four/insert/50000/cold"),
    ("`COPY` of 100,000 rows, an index of UUIDs", "write/uuid/copy/100000/cold"),
    ("upsert of 100,000 rows, half of them there", "write/uuid/upsert-50/100000/cold"),
    ("20,000 rows that refer to random parents", "write/child/insert/20000/cold"),
    ("3,000 parents deleted with their children", "write/parent/cascade/3000/cold"),
)

RACED: Sequence[Row] = (
    ("10 scattered rows, in index order", "matching/random/range/10/cold"),
    ("100", "matching/random/range/100/cold"),
    ("1,000", "matching/random/range/1000/cold"),
    ("10,000", "matching/random/range/10000/cold"),
    ("100,000", "matching/random/range/100000/cold"),
    ("1,000 backward", "reviewed/random/backward/1000/cold"),
    ("100 equal, scattered", "matching/random/eq/100/cold"),
    ("`ORDER BY ... LIMIT 1`", "limit/random/limit/1/cold"),
    ("`LIMIT 16`", "limit/random/limit/16/cold"),
    ("`LIMIT 64`", "limit/random/limit/64/cold"),
    ("`LIMIT 256`", "limit/random/limit/256/cold"),
    ("`IN` list of 1,000 scattered values", "inlist/random/in1/1000/cold"),
    ("nested loop, 1,000 outer rows", "nestloop/random/one/1000/cold"),
    ("semi join, 10,000 outer rows", "nestloop/random/semi/10000/cold"),
    ("merge anti join that ends early, 100 rows", "reviewed/random/merge/100/cold"),
    ("inner side of an anti join, 100 outer rows", "reviewed/random/anti/100/cold"),
    ("inner side of a semi join, index-only, 100 outer rows", "reviewed-only/random/semi/100/cold"),
    ("10,000 entries, index-only, all-visible", "indexonly/random/visible/10000/cold"),
    ("10,000 entries, index-only, 99.99% all-visible", "reviewed-only/random/rare/10000/cold"),
    ("1,000 nearly clustered rows", "fragmented/1%/near/1000/cold"),
    ("10,000", "fragmented/1%/near/10000/cold"),
    ("10,000 scattered rows, in the operating system's cache", "matching/random/range/10000/os-cached"),
    ("`LIMIT 16`, in `shared_buffers`", "limit/random/limit/16/cached"),
)
RIVALS = (("coreoff", "core, not prefetching"), ("core", "core, `io_uring`"), ("coreworker", "core, `worker`"))

JOINED = "10 million rows of which {} find one of 1 million"

TABLES: Sequence[PageTable] = (
    PageTable("scans", README, RELEASE, "20 million rows; cold unless said", SCANS, bitmap=True, itself=True),
    PageTable("scans-15", PERFORMANCE, "index-scans-15", "20 million rows; cold unless said", SCANS),
    PageTable("scale", PERFORMANCE, "scale-18", "cold", SCALE),
    PageTable("race-core", PERFORMANCE, RACE, "20 million rows; cold unless said", RACED, rivals=RIVALS),
    PageTable("scans-19", PERFORMANCE, BESIDE, "20 million rows; cold unless said", SCANS, later="19"),
    PageTable(
        "reading-first", PERFORMANCE, "first-reader-18", "cold",
        (
            ("1,000 scattered rows, in index order", "matching/random/range/1000/cold"),
            ("10,000", "matching/random/range/10000/cold"),
            ("100,000", "matching/random/range/100000/cold"),
            ("nested loop, 10,000 outer rows with one inner row each", "nestloop/random/one/10000/cold"),
            ("... with ten inner rows each", "nestloop/random/ten/10000/cold"),
            ("... with one, and one more of a third table", "nestloop/random/chain2/10000/cold"),
        ),
    ),
    PageTable(
        "nestloop-bitmap", PERFORMANCE, "nested-loops-18-bitmap", "cold unless said",
        (
            ("10,000 outer rows with one inner row each", "nestloop/random/one/10000/cold"),
            ("... with ten inner rows each", "nestloop/random/ten/10000/cold"),
            ("... with one, and one more of a third table", "nestloop/random/chain2/10000/cold"),
            ("... with one inner row each, all in `shared_buffers`", "nestloop/random/one/10000/cached"),
        ),
        bitmap=True,
    ),
    PageTable("volume-1ms", PERFORMANCE, "volume-1ms-16k", "1 ms, 16,000 reads/s; cold", VOLUME),
    PageTable("volume-5k", PERFORMANCE, "volume-1ms-5k", "1 ms, 5,000 reads/s; cold", VOLUME),
    PageTable("volume-quarter", PERFORMANCE, "volume-0.25ms", "0.25 ms; cold", VOLUME),
    PageTable(
        "nestloop-volume", PERFORMANCE, "nested-loops-volume-1ms-16k", "1 ms, 16,000 reads/s; cold",
        (
            ("1,000 outer rows with one inner row each", "nestloop/random/one/1000/cold"),
            ("10,000", "nestloop/random/one/10000/cold"),
            ("1,000 with ten inner rows each", "nestloop/random/ten/1000/cold"),
            ("1,000 with one, and one more of a third table", "nestloop/random/chain2/1000/cold"),
        ),
        seconds=True,
    ),
    PageTable(
        "tpch", PERFORMANCE, "tpch-sf5-18", "TPC-H, scale factor 5, cold",
        tuple((f"Q{n}", f"tpch/sf5/q{n:02}/5/cold") for n in range(1, 23)), seconds=True, mean=True,
    ),
    PageTable(
        "hashjoin", PERFORMANCE, "hash-joins-18", "everything in `shared_buffers`",
        (
            ("10 million integers with themselves", "hashjoin/itself/int/10000000/cached"),
            ("30 million", "hashjoin/itself/int/30000000/cached"),
            ("10 million `text` keys", "hashjoin/itself/text/10000000/cached"),
            ("10 million keys of two columns", "hashjoin/itself/pair/10000000/cached"),
            (JOINED.format("1%"), "hashjoin/random/hit1/10000000/cached"),
            (JOINED.format("all"), "hashjoin/random/hit100/10000000/cached"),
            ("the 1%, `LEFT JOIN`", "hashjoin/random/left/10000000/cached"),
            ("the 1%, `FULL JOIN`", "hashjoin/random/full/10000000/cached"),
            ("10 million rows looked up among 1,000", "hashjoin/random/resident/1000/cached"),
            ("10 million integers, `work_mem` 4 MB: 256 batches", "hashjoin/itself/spill/10000000/cached"),
        ),
        seconds=True,
    ),
    PageTable(
        "indexbuild", PERFORMANCE, "index-builds-18", "`REINDEX` of 5 million rows; workers; `maintenance_work_mem`",
        (
            ("three texts; none; 64 MB", "indexbuild/text3/reindex-0/64/cached"),
            ("three texts; none; 2 GB", "indexbuild/text3/reindex-0/2048/cached"),
            ("three texts; two; 2 GB", "indexbuild/text3/reindex-2/2048/cached"),
            ("three texts, one in an ICU collation; none; 2 GB", "indexbuild/collated/reindex-0/2048/cached"),
            ("three integers; none; 2 GB", "indexbuild/int3/reindex-0/2048/cached"),
            ("integer; none; 2 GB", "indexbuild/int/reindex-0/2048/cached"),
            ("integer; two; 2 GB", "indexbuild/int/reindex-2/2048/cached"),
            ("uuid, unique; none; 2 GB", "indexbuild/uuid/reindex-0/2048/cached"),
            ("uuid, unique; two; 2 GB", "indexbuild/uuid/reindex-2/2048/cached"),
            ("text of 200 bytes; none; 2 GB", "indexbuild/wide/reindex-0/2048/cached"),
        ),
        seconds=True,
    ),
    PageTable(
        "inserts", PERFORMANCE, "index-builds-18", "`INSERT ... SELECT` of 1 million rows, one index",
        (
            ("three texts, rows in random order", "insert/random/text3/1/cached"),
            ("... by four sessions", "insert/random/text3/4/cached"),
            ("... rows in the index's order", "insert/sorted/text3/1/cached"),
            ("integer, rows in random order", "insert/random/int/1/cached"),
            ("... rows in the index's order", "insert/sorted/int/1/cached"),
        ),
        seconds=True,
    ),
    PageTable("writes", PERFORMANCE, "writes-18", "the local disk; cold", WRITES, seconds=True),
    PageTable(
        "writes-volume", PERFORMANCE, "writes-volume-1ms", "1 ms, 16,000 reads/s; cold",
        (WRITES[0], *WRITES[3:]), seconds=True,
    ),
    PageTable("behind", PERFORMANCE, "rows-behind-rows-18", "the local disk; cold", (*BEHIND, *BEHIND_TPCH, *BEHIND_ORDERED)),
    PageTable(
        "behind-20m", PERFORMANCE, "rows-behind-rows-18-20m", "20 million rows; cold",
        (
            ("a correlated count of ten rows, for 100 rows", "subquery/random/count/100/cold"),
            ("... for 5,000", "subquery/random/count/5000/cold"),
            ("... for 100,000", "subquery/random/count/100000/cold"),
            ("the same as `LEFT JOIN` and `GROUP BY`, for 5,000 rows", "subquery/random/grouped/5000/cold"),
            ("`EXISTS`, for 5,000 rows", "subquery/random/exists/5000/cold"),
            ("`LATERAL ... LIMIT 3`, for 5,000 rows", "subquery/random/top3/5000/cold"),
            ("16 partitions, for each of 1,000 rows", "subquery/random/parts/1000/cold"),
        ),
    ),
    PageTable(
        "behind-volume", PERFORMANCE, "rows-behind-rows-volume-1ms", "1 ms, 16,000 reads/s; cold",
        (*BEHIND, *BEHIND_ORDERED),
    ),
    PageTable(
        "idle", PERFORMANCE, FULL, "nothing to gain",
        (
            ("`pgbench -S`, 1 client", "lookup/random/select-only/1/cached"),
            ("... 8 clients", "lookup/random/select-only/8/cached"),
            ("... 32 clients", "lookup/random/select-only/32/cached"),
            ("`pgbench`, tpcb-like, 1 client", "lookup/random/tpcb-like/1/cached"),
            ("... 32 clients", "lookup/random/tpcb-like/32/cached"),
            ("`LIMIT 1`, in `shared_buffers`", "limit/random/limit/1/cached"),
            ("`LIMIT 16`, in `shared_buffers`", "limit/random/limit/16/cached"),
            ("100 scattered rows, in `shared_buffers`", "matching/random/range/100/cached"),
            ("1 row, in the operating system's cache", "matching/random/range/1/os-cached"),
            ("100,000 scattered rows, in the operating system's cache", "matching/random/range/100000/os-cached"),
            ("100,000 rows that lie in the order of the index, cold", "matching/sequential/range/100000/cold"),
            ("100,000 rows that nearly do, cold", "matching/correlated/range/100000/cold"),
            ("... in `shared_buffers`", "matching/correlated/range/100000/cached"),
        ),
        itself=True,
    ),
    PageTable(
        "idle-repeated", PERFORMANCE, "index-scans-18-repeated", "again, more often",
        (
            ("`LIMIT 1`, in `shared_buffers`", "limit/random/limit/1/cached"),
            ("`LIMIT 16`, in `shared_buffers`", "limit/random/limit/16/cached"),
            ("1 row, in the operating system's cache", "matching/random/range/1/os-cached"),
            ("`LIMIT 100000`, rows nearly in the order of the index, cold", "matching/correlated/limit/100000/cold"),
            ("10,000 rows, half of them displaced to near pages, cold", "fragmented/50%/near/10000/cold"),
        ),
    ),
)


class PageError(Exception):
    pass


class Directory:
    """One results directory."""

    def __init__(self, top: Path, name: str) -> None:
        self.name = name
        path = top / "bench" / "results" / name
        if not (path / "machine.json").exists():
            raise PageError(f"there is no bench/results/{name}, which lookbench/pages.py names")
        self.places: list[Place] = read_report([path], "lookahead").places

    def entry(self, key: str) -> Entry:
        for place in self.places:
            for cell, entry in place.entries.items():
                if cell.key == key and entry.stock and entry.ahead and not entry.failures:
                    return entry
        raise PageError(f"bench/results/{self.name} has no {key}")


def runs_of(entries: Sequence[Entry]) -> list[Mapping[str, Any]]:
    """The runs that they were measured in: entries of machine.json."""
    found = {run: entry.place.runs[run] for entry in entries for run in sorted(entry.runs)}
    return [found[run] for run in sorted(found)]


def machine_text(run: Mapping[str, Any]) -> str:
    machine = run["machine"]
    return f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gb']:.0f} GB"


def ceiling_text(runs: Sequence[Mapping[str, Any]]) -> str:
    """What fio read at best, and one at a time, in the run that began first."""
    reads = runs[0]["ceiling_reads_per_second"]
    if not reads:
        return ""
    most = max(reads, key=lambda depth: reads[depth])
    return f"; the disk reads {reads['1']:,} blocks/s one at a time, {reads[most]:,} with {most} in flight"


def source_text(table: PageTable, entries: Sequence[Entry]) -> str:
    runs = runs_of(entries)
    commits = ", ".join(dict.fromkeys(f"`{run['source']['commit'][:12]}`" for run in runs))
    counts = sorted({entry.stock.repetitions for entry in entries if entry.stock})
    repetitions = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    measured = "One repetition" if counts == [1] else f"Medians of {repetitions} interleaved repetitions"
    server = ", ".join(dict.fromkeys(run["server"] for run in runs))
    cold = any(entry.cell.state == COLD for entry in entries)
    return (
        f"{measured}; PostgreSQL {server}, {machine_text(runs[0])}{ceiling_text(runs) if cold else ''}. "
        f"Results: `{table.path}`, commit {commits}."
    )


def number(ms: float, seconds: bool) -> str:
    value = ms / 1000 if seconds else ms
    digits = 2 if value < 10 else 1 if value < 100 else 0
    if value < 1:
        digits = 3
    return f"{value:,.{digits}f}"


def lines_of(table: PageTable, entries: Sequence[Entry]) -> Iterator[str]:
    unit = "s" if table.seconds else "ms"
    heads = [table.head, f"stock, {unit}"]
    heads += [f"bitmap scan, {unit}"] if table.bitmap else []
    heads += [f"look-ahead, {unit}", "times as fast"]
    heads += ["stock against itself"] if table.itself else []
    if table.later:
        heads = [heads[0], *(f"{server}: {head}" for server in (entries[0].place.major, table.later) for head in heads[1:])]
    heads += [*(f"{head}, {unit}" for _, head in table.rivals), "times as fast as the better method"] if table.rivals else []
    yield "| " + " | ".join(heads) + " |"
    yield "|---|" + "---:|" * (len(heads) - 1)
    for (label, _), entry in zip(table.rows, entries):
        assert entry.stock and entry.ahead and entry.ratio
        cells = [label, number(entry.stock.median, table.seconds)]
        if table.bitmap:
            cells.append(number(entry.bitmap[1].median, table.seconds) if entry.bitmap else "-")
        cells.append(number(entry.ahead.median, table.seconds))
        known = table.itself and entry.noise is not None
        cells.append(f"{entry.ratio:.2f}" if not known else f"{entry.ratio:.2f}, noise" if entry.is_noise else f"**{entry.ratio:.2f}**")
        if table.itself:
            cells.append(f"{entry.again_ratio:.2f}" if entry.again_ratio else "-")
        cells += later_cells(table, entry) if table.later else []
        cells += rival_cells(table, entry) if table.rivals else []
        yield "| " + " | ".join(cells) + " |"
    if table.mean:
        mean = geometric_mean([entry.ratio for entry in entries if entry.ratio])
        yield "| geometric mean |" + " |" * (len(heads) - 3) + f" {mean:.2f} |"
    yield ""
    yield source_text(table, entries)


def later_cells(table: PageTable, entry: Entry) -> list[str]:
    """The columns of the server that was measured beside."""
    stock, ahead = (entry.figures.get(f"{kind}{table.later}") for kind in ("stock", "look"))
    if not stock or not ahead:
        return ["-"] * 3
    return [number(stock.median, table.seconds), number(ahead.median, table.seconds), f"{stock.median / ahead.median:.2f}"]


def rival_ratio(table: PageTable, entry: Entry) -> float | None:
    """The best of the rivals, by look-ahead."""
    found = [entry.figures.get(variant) for variant, _ in table.rivals[1:]]
    best = min((figure.median for figure in found if figure), default=None)
    return best / entry.ahead.median if best and entry.ahead else None


def rival_cells(table: PageTable, entry: Entry) -> list[str]:
    """The columns of a server beside: without and with prefetching, which look-ahead is compared with."""
    found = [entry.figures.get(variant) for variant, _ in table.rivals]
    ratio = rival_ratio(table, entry)
    return [*(number(figure.median, table.seconds) if figure else "-" for figure in found), f"{ratio:.2f}" if ratio else "-"]


def bar_of(table: PageTable, entry: Entry) -> tuple[float | None, bool]:
    """What the chart shows of a row, and whether that is noise."""
    if table.rivals:
        return rival_ratio(table, entry), False
    return entry.ratio, table.itself and entry.noise is not None and entry.is_noise


def replaced(text: str, name: str, lines: Sequence[str]) -> str:
    marker = f"<!-- bench/pages {name} -->"
    pattern = re.compile(rf"^{re.escape(marker)}\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise PageError(f"there is no place for the table: {marker} ... <!-- end -->")
    return pattern.sub(lambda _: "\n".join([marker, *lines, "<!-- end -->"]), text)


def picture_of(directory: Directory) -> Curves:
    run = runs_of([directory.entry(key) for _, key in SCANS])[0]
    return curves(directory.entry, (
        f"PostgreSQL {run['server']}; {run['options']['rows']:,} rows; {machine_text(run)}; {run['machine']['system']}; "
        f"commit {run['source']['commit'][:12]}; bench/results/{directory.name}"
    ))


def pages(top: Path, directories: Mapping[str, Directory]) -> dict[str, str]:
    """Page -> its text, with all tables as they should be."""
    texts = {page: (top / page).read_text() for page in dict.fromkeys(table.page for table in TABLES)}
    for table in TABLES:
        entries = [directories[table.directory].entry(key) for _, key in table.rows]
        texts[table.page] = replaced(texts[table.page], table.name, list(lines_of(table, entries)))
    return texts


def charts(top: Path, directories: Mapping[str, Directory]) -> dict[str, str]:
    """File -> the chart that it should be, for each that a page shows."""
    found = {}
    for table in TABLES:
        name = f"charts/{table.name}.svg"
        if f"({name})" in (top / table.page).read_text():
            entries = [directories[table.directory].entry(key) for _, key in table.rows]
            shown = [(label, *bar_of(table, entry)) for (label, _), entry in zip(table.rows, entries)]
            bars = [(label, ratio, noise) for label, ratio, noise in shown if ratio]
            run = runs_of(entries)[0]
            note = f"PostgreSQL {run['server']}; {machine_text(run)}; {table.path}, commit {run['source']['commit'][:12]}"
            found[str(Path(table.page).parent / name)] = bars_svg(table.head, bars, note)
    return found


def of_other_sources(directories: Mapping[str, Directory], digest: str) -> dict[str, list[str]]:
    """Table -> the commits that it was measured on, if src/ was another one than that with this digest."""
    found = {}
    for table in TABLES:
        runs = runs_of([directories[table.directory].entry(key) for _, key in table.rows])
        commits = [run["source"]["commit"][:12] for run in runs if run["source"]["src_digest"] != digest]
        if commits:
            found[table.name] = list(dict.fromkeys(commits))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/pages", description="The tables and the picture of README.md and docs/.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page differs from the results")
    parser.add_argument("--release", action="store_true", help="with --check: fail where a figure is not of this src/")
    parser.add_argument("--top", type=Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    top: Path = options.top
    differ = []
    try:
        directories = {name: Directory(top, name) for name in dict.fromkeys([RELEASE, *(table.directory for table in TABLES)])}
        texts = {**pages(top, directories), **charts(top, directories), WAITS: waits_svg()}
        shown = picture_of(directories[RELEASE])
    except PageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for page, text in texts.items():
        if not (top / page).exists() or (top / page).read_text() != text:
            differ.append(page)
            if not options.check:
                (top / page).parent.mkdir(exist_ok=True)
                (top / page).write_text(text)
    picture = top / PICTURE
    if options.check:
        if not picture.exists() or shown.digest not in picture.read_text():
            differ.append(PICTURE)
        for page in differ:
            print(f"{page} differs from the results; bench/pages writes it")
        others = of_other_sources(directories, source_state()["src_digest"]) if options.release else {}
        for name, commits in others.items():
            print(f"{name}: measured with the src/ of {', '.join(commits)}; bench/release measures it again")
        return 1 if differ or others else 0
    draw(shown, picture)
    print(f"written: {', '.join([*differ, PICTURE])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
