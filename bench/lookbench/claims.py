"""What is claimed of look-ahead beside bitmap scans, and the cells that must bear it out.

`bench/run --select NAME` measures the cells of a claim, `bench/summarize --claims` prints a
line for each bound: the cell that is worst, and whether it holds.  A bound is a ratio of
medians, how many times as fast as something else look-ahead must be at least:

  stock    the plan of look-ahead, without it; of a replay, the server's defaults
  bitmap   the best of the bitmap scans
  best     the better of both
  tuned    replay: the best that the server reaches by settings of its own
  off      replay: recovery_prefetch = off

or a share that must be reached:

  gain     apply: of the time that stock saves when all files are in the operating system's cache
  iops     replay: of the reads per second that the volume allows
  live     apply: of a subscriber's time that writers wrote, so 1 when it has everything as soon as they stop

The cells of the last five, and those of `promotion`, are measured by bench/replay.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import Mapping, Sequence

from .storages import LOCAL, STORAGES

STOCK = "stock"
BITMAP = "bitmap"
BEST = "best"
TUNED = "tuned"
OFF = "off"
GAIN = "gain"
IOPS = "iops"
LIVE = "live"
VOLUME = "cloud-1ms-16k"
SLOW_VOLUME = "cloud-1ms-5k"


@dataclass(frozen=True)
class Claim:
    name: str
    text: str
    patterns: Sequence[str]  # of cells
    least: Mapping[str, float]  # one of the words above -> the bound
    majors: Sequence[int] = (15, 17, 18)  # where it is claimed
    storages: Sequence[str] = STORAGES

    def covers(self, cell: str) -> bool:
        return any(fnmatch.fnmatch(cell, pattern) for pattern in self.patterns)


_RECOVERIES = ("replay/pgbench/update/*", "replay/pgbench/update-fpw/*", "replay/three/insert/*")

# names in the order of the claims; several claims may share one
CLAIMS: Sequence[Claim] = (
    Claim(
        "parity", "nearly clustered, cyclic, correlated, one value: 10 to 100,000 rows, cold",
        ("fragmented/*/cold", "matching/cyclic/range/??*/cold", "matching/correlated/range/??*/cold",
         "matching/*/eq/??*/cold"),
        {BITMAP: 1.0, STOCK: 0.97},
    ),
    Claim(
        "random", "100,000 random rows, cold",
        ("matching/random/range/100000/cold",), {BITMAP: 0.97},
    ),
    Claim(
        "cached", "100,000 cyclic or correlated rows, cached",
        ("matching/cyclic/range/100000/cached", "matching/correlated/range/100000/cached"), {BEST: 1.0},
    ),
    Claim("bitmap-heap", "bitmap heap scans, default settings, cold", ("bitmap/scattered/heap/*/cold",), {STOCK: 3.0}, (15, 17)),
    Claim("bitmap-index", "bitmap ranges, AND and OR of fragmented btree indexes, cold", ("bitmap/grown/*/cold",), {STOCK: 1.5}),
    Claim("bitmap-index", "GIN indexes with three keys and more, cold", ("bitmap-gin/*/cold",), {STOCK: 1.5}),
    Claim("demo", "the demo's three questions", ("contents/*",), {BITMAP: 1.0}),
    Claim("short", "10 cold rows in a fresh session", ("short/*/10/cold",), {STOCK: 1.3}),
    Claim("short", "30 cold rows in a fresh session", ("short/*/30/cold",), {STOCK: 2.0}),
    Claim(
        "index-only", "index-only scans of pages that are not all-visible, cyclic and correlated, cold",
        ("indexonly/cyclic/*/cold", "indexonly/correlated/*/cold"), {BITMAP: 1.0, STOCK: 0.97},
    ),
    Claim("write", "50,000 rows into four random indexes, cold", ("write/four/insert/50000/cold",), {STOCK: 5.0}, storages=(LOCAL,)),
    Claim("write", "COPY of 100,000 rows with one index of UUIDs, cold", ("write/uuid/copy/100000/cold",), {STOCK: 4.0}, storages=(LOCAL,)),
    Claim("write", "upsert of 100,000 rows, half of them there, cold", ("write/uuid/upsert-50/100000/cold",), {STOCK: 4.0}, storages=(LOCAL,)),
    Claim("write", "20,000 rows that refer to random parents, cold", ("write/child/insert/20000/cold",), {STOCK: 2.5}, storages=(LOCAL,)),
    Claim("write", "3,000 parents deleted with their children, cold", ("write/parent/cascade/3000/cold",), {STOCK: 2.5}, storages=(LOCAL,)),
    Claim("write-volume", "50,000 rows into four random indexes, cold", ("write/four/insert/50000/cold",), {STOCK: 10.0}, storages=(VOLUME,)),
    Claim("write-volume", "20,000 rows that refer to random parents, cold", ("write/child/insert/20000/cold",), {STOCK: 8.0}, storages=(VOLUME,)),
    Claim("write-volume", "3,000 parents deleted with their children, cold", ("write/parent/cascade/3000/cold",), {STOCK: 8.0}, storages=(VOLUME,)),
    Claim("documents", "2,000 documents out of line by an index, cold", ("documents/*/index/*/cold",), {STOCK: 3.0}, storages=(LOCAL,)),
    Claim("documents", "10,000 documents by a sequential scan and by COPY TO, cold",
          ("documents/scattered/sequential/*/cold", "documents/scattered/copy/*/cold"), {STOCK: 2.5}, storages=(LOCAL,)),
    Claim("documents-volume", "2,000 documents out of line by an index, cold", ("documents/*/index/*/cold",), {STOCK: 8.0}, storages=(VOLUME,)),
    Claim("documents-volume", "10,000 documents by a sequential scan and by COPY TO, cold",
          ("documents/scattered/sequential/*/cold", "documents/scattered/copy/*/cold"), {STOCK: 6.0}, storages=(VOLUME,)),
    Claim("documents-cached", "documents out of line, cached",
          ("documents/*/index/*/cached", "documents/*/sequential/*/cached", "documents/*/copy/*/cached"), {STOCK: 0.98}),
    Claim("documents-cached", "scans that do not read the documents", ("documents/*/untouched/*",), {STOCK: 0.99}),
    # bench/summarize --plans says what they show
    Claim("plans", "TPC-H and star queries, by adjusted costs", ("tpch/*/q??/*", "tpch/*/q??-parallel/*", "star/*"), {}, storages=(LOCAL,)),
    Claim("write-cached", "many rows written, cached", ("write/[!s]*/cached",), {STOCK: 0.98}),
    Claim("write-cached", "INSERT of a single row, cached", ("write/single/insert/*/cached",), {STOCK: 0.99}),
    Claim("replay", "crash recovery: updates, with and without full pages, and inserts with three indexes", _RECOVERIES,
          {TUNED: 1.0, OFF: 0.98}, storages=(LOCAL,)),
    Claim("replay-volume", "crash recovery: updates, with and without full pages, and inserts with three indexes", _RECOVERIES,
          {STOCK: 1.3, TUNED: 1.0}, storages=(VOLUME,)),
    Claim("replay-munro", "crash recovery, updates: reads per second", ("replay/pgbench/munro/*",), {IOPS: 0.97}, storages=(SLOW_VOLUME,)),
    Claim("apply", "random updates by primary key, one more index", ("apply/update/writers-1/*",), {GAIN: 0.8}, storages=(LOCAL,)),
    Claim("apply", "inserts with random keys, primary and secondary", ("apply/insert-two/writers-1/*",), {GAIN: 0.8}, storages=(LOCAL,)),
    Claim("apply", "inserts with random primary keys; deletes; one streamed transaction",
          ("apply/insert-one/writers-1/*", "apply/delete/writers-1/*", "apply/update/streamed/*"), {STOCK: 1.0}, storages=(LOCAL,)),
    Claim("apply", "eight writers at work", ("apply/update/live-8/*",), {LIVE: 0.95}, storages=(LOCAL,)),
    Claim("apply-volume", "random updates by primary key, one more index", ("apply/update/writers-1/*",), {STOCK: 8.0}, storages=(VOLUME,)),
    Claim("apply-volume", "inserts with random keys, primary and secondary", ("apply/insert-two/writers-1/*",), {STOCK: 8.0}, storages=(VOLUME,)),
    Claim("apply-volume", "eight writers at work", ("apply/update/live-8/*",), {LIVE: 0.95}, storages=(VOLUME,)),
    Claim("promotion", "a standby is promoted; a server starts after a crash with little WAL", ("promotion/*",), {STOCK: 0.95},
          storages=(LOCAL,)),
)

NAMES: Sequence[str] = tuple(dict.fromkeys(claim.name for claim in CLAIMS))


def patterns_of(name: str) -> list[str]:
    """Patterns of the cells of all claims of that name."""
    return [pattern for claim in CLAIMS if claim.name == name for pattern in claim.patterns]
