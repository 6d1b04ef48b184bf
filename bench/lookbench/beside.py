"""A race: each variant of a cell in a column of its own, those of other servers by their names.

The two ratios tell how look-ahead comes off: against stock of the same server, and against the best
of the variants that were measured beside it.  Above 1, look-ahead is faster.  Those of a server that preloads the
library (their names begin with "look") are compared with nothing.
"""

from __future__ import annotations

from typing import Iterator, Mapping

from .workloads import Cell

Medians = Mapping[Cell, Mapping[str, float]]

TEXT_COLUMNS = ("cell",)
OWN = ("stock", "lookahead")
NONE = "-"
LOOKS = "look"  # beginning of the names of variants that look ahead


def names_of(medians: Medians, others: Mapping[str, str]) -> list[str]:
    found = {name for by in medians.values() for name in by}
    return [*(name for name in OWN if name in found), *(name for name in others if name in found)]


def columns(medians: Medians, others: Mapping[str, str]) -> list[str]:
    heads = [f"{name} ({others[name]}), ms" if name in others else f"{name}, ms" for name in names_of(medians, others)]
    return ["cell", *heads, "stock / lookahead", "best beside / lookahead"]


def rows(medians: Medians, others: Mapping[str, str]) -> Iterator[list[str]]:
    names = names_of(medians, others)
    for cell, by in medians.items():
        ahead = by.get("lookahead")
        rivals = [by[name] for name in others if name in by and not name.startswith(LOOKS)]
        ratios = [by.get("stock"), min(rivals) if rivals else None]
        yield [
            cell.key, *(f"{by[name]:,.3f}" if name in by else NONE for name in names),
            *(f"{other / ahead:.2f}" if other and ahead else NONE for other in ratios),
        ]
