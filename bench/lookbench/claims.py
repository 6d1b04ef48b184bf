"""What is claimed of look-ahead beside bitmap scans, and the cells that must bear it out.

`bench/run --select NAME` measures the cells of a claim, `bench/summarize --claims` prints a
line for each bound: the cell that is worst, and whether it holds.  A bound is a ratio of
medians, how many times as fast as something else look-ahead must be at least:

  stock    the plan of look-ahead, without it
  bitmap   the best of the bitmap scans
  best     the better of both
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import Mapping, Sequence

from .storages import LOCAL, STORAGES

STOCK = "stock"
BITMAP = "bitmap"
BEST = "best"
VOLUME = "cloud-1ms-16k"


@dataclass(frozen=True)
class Claim:
    name: str
    text: str
    patterns: Sequence[str]  # of cells
    least: Mapping[str, float]  # stock, bitmap or best -> the bound
    majors: Sequence[int] = (15, 17, 18)  # where it is claimed
    storages: Sequence[str] = STORAGES

    def covers(self, cell: str) -> bool:
        return any(fnmatch.fnmatch(cell, pattern) for pattern in self.patterns)


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
    # bench/summarize --plans says what they show
    Claim("plans", "TPC-H and star queries, by adjusted costs", ("tpch/*/q??/*", "tpch/*/q??-parallel/*", "star/*"), {}, storages=(LOCAL,)),
    Claim("write-cached", "many rows written, cached", ("write/[!s]*/cached",), {STOCK: 0.98}),
    Claim("write-cached", "INSERT of a single row, cached", ("write/single/insert/*/cached",), {STOCK: 0.99}),
)

NAMES: Sequence[str] = tuple(dict.fromkeys(claim.name for claim in CLAIMS))


def patterns_of(name: str) -> list[str]:
    """Patterns of the cells of all claims of that name."""
    return [pattern for claim in CLAIMS if claim.name == name for pattern in claim.patterns]
