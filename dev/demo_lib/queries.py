"""The three questions, chosen by what the table holds.

Packages are taken whose files lie on about as many blocks as there are files: that is
where an index scan waits for the disk at nearly every row.  The choice is by a hash of
the name, so it is arbitrary and the same in every run.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg import sql

ONE_BY_ONE = 48  # packages
LISTED = 1_000
RANGE_ROWS = 40_000  # about, of which a half is asked for


class NoQueries(Exception):
    """The table is not of the expected shape."""


@dataclass(frozen=True)
class Query:
    title: str
    statements: tuple[str, ...]  # asked one after another


def _packages(connection: psycopg.Connection, low: int, high: int, count: int) -> list[str]:
    """Names of packages with that many blocks, scattered ones."""
    rows = connection.execute(
        "select package from packages where blocks between %s and %s and files <= 3 * blocks"
        " order by md5(package) limit %s",
        (low, high, count),
    ).fetchall()
    if not rows:
        raise NoQueries(f"no package has its files on {low} to {high} blocks")
    return [row[0] for row in rows]


def _range(connection: psycopg.Connection) -> tuple[str, str, int]:
    """First and last name of the most scattered range, and how many of its rows to ask for.

    A range is as scattered as it has blocks at which a package's next run of blocks
    begins; within a run the kernel's own read-ahead leaves little to wait for.  The limit is at the end of a package: which of a package's rows are the first ones
    is not defined by the order of names.
    """
    found = connection.execute(
        "select min(package), max(package) from"
        " (select package, block, files, sum(files) over (order by package) / %s as part,"
        "   block - lag(block) over (partition by package order by block) is distinct from 1 as begins"
        "  from spots) numbered"
        " group by part having sum(files) < %s order by count(distinct block) filter (where begins) desc, 1 limit 1",
        (RANGE_ROWS, 2 * RANGE_ROWS),
    ).fetchone()
    if found is None:
        raise NoQueries("no range of package names has the right size")
    low, high = found
    row = connection.execute(
        "select total from (select sum(files) over (order by package) as total from packages"
        " where package between %s and %s) totals order by abs(total - %s) limit 1",
        (low, high, RANGE_ROWS / 2),
    ).fetchone()
    assert row is not None
    return str(low), str(high), int(row[0])


def choose(connection: psycopg.Connection) -> list[Query]:
    def text(template: str, **values: object) -> str:
        literals = {name: sql.Literal(value) for name, value in values.items()}
        return sql.SQL(template).format(**literals).as_string(connection)

    single = _packages(connection, 100, 400, ONE_BY_ONE)
    listed = _packages(connection, 3, 20, LISTED)
    low, high, limit = _range(connection)
    names = sql.SQL(", ").join(map(sql.Literal, listed)).as_string(connection)
    return [
        Query(
            f"files of {len(single)} packages,\none query for each",
            tuple(text("select path from files where package = {name}", name=name) for name in single),
        ),
        Query(
            f"range of package names\nORDER BY LIMIT {limit:,}",
            (text("select package, path from files where package between {low} and {high}"
                  " order by package limit {limit}", low=low, high=high, limit=limit),),
        ),
        Query(
            f"package IN (list of\n{len(listed):,} names)",
            (f"select package, path from files where package in ({names})",),
        ),
    ]
