"""Is the gain of look-ahead on this machine as it should be?

`bench/run --machine-check` measures PATTERNS, and prints each ratio beside its bound.  A cold query takes C, the
time of the same query when everything is cached, and waits for the rest of its time T.  Reads that overlap take
1/G of the waits, where G is what the disk gains from depth (fio: reads per second at the best queue depth, by
those at depth 1).  So a query can become

    T / (C + (T - C) / G)

times as fast, and no more.  Where the query was not measured cached, as writes are not, the bound is G, which no
query reaches: a "<" stands before it.  Queries whose tables are cached wait for memory.  How long, counters of the
processor say, which virtual machines seldom have: they get no bound.

"noise" is stock against itself, as measured beside.  A gain is low if it is less than LOW of its bound, noise
taken off.
"""

from __future__ import annotations

from typing import Iterable, Mapping, Sequence

from .workloads import CACHED, COLD, Cell

PATTERNS = (
    "matching/random/range/100/*", "matching/random/range/10000/*", "inlist/random/in1/1000/*",
    "indexonly/random/hidden/1000/*", "nestloop/random/one/1000/*", "nestloop/random/chain2/1000/*", "subquery/random/count/1000/*",
    "documents/scattered/index/2000/*", "documents/scattered/sequential/10000/*", "bitmap/grown/range/10000/*",
    "write/four/insert/5000/cold", "write/child/insert/2000/cold", "hashjoin/itself/int/1000000/cached", "hashjoin/random/hit1/1000000/cached",
)
COLUMNS = ("query", "state", "stock, ms", "look-ahead, ms", "times as fast", "noise", "bound", "of the bound", "")
TEXT_COLUMNS = ("query", "state", "")
LOW = 0.6
NONE = "-"


def gain(reads: Mapping[str, float]) -> float | None:
    """What the disk gains from depth, by fio's reads per second at each."""
    return max(reads.values()) / reads["1"] if reads.get("1") else None


def bound(cold: float, cached: float | None, depth: float) -> float:
    """How many times as fast at most.

    >>> round(bound(100, 10, 4), 2)     # 90 of waits become 22.5
    3.08
    >>> bound(100, None, 4), bound(10, 12, 4)
    (4, 1.0)
    """
    if cached is None:
        return depth
    processor = min(cached, cold)
    return cold / (processor + (cold - processor) / depth)


def rows(medians: Mapping[Cell, Mapping[str, float]], reads: Mapping[str, float]) -> Iterable[Sequence[str]]:
    depth = gain(reads)
    stock = {(cell.workload, cell.data, cell.shape, cell.size, cell.state): by["stock"] for cell, by in medians.items() if "stock" in by}
    for cell, by in medians.items():
        if "stock" not in by or "lookahead" not in by:
            continue
        ratio = by["stock"] / by["lookahead"]
        noise = abs(by["stock"] / by["again"] - 1) if "again" in by else 0.0
        row = [f"{cell.workload}/{cell.data}/{cell.shape}/{cell.size}", cell.state, f"{by['stock']:.1f}", f"{by['lookahead']:.1f}",
               f"{ratio:.2f}", f"±{noise:.0%}" if "again" in by else NONE]
        if cell.state != COLD or depth is None:
            slow = ratio * (1 + noise) < 0.97
            yield [*row, NONE, NONE, "slower than stock" if slow else "as it should be"]
            continue
        cached = stock.get((cell.workload, cell.data, cell.shape, cell.size, CACHED))
        most = bound(by["stock"], cached, depth)
        share = ratio / most
        low = share * (1 + noise) < LOW and cached is not None
        yield [*row, f"{'' if cached is not None else '< '}{most:.2f}", f"{share:.0%}", "low" if low else "as it should be"]
