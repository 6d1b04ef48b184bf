"""TPC-H: its tables, its queries, and the data for them.

schema.sql     the tables
keys.sql       primary keys, foreign keys and indexes
q01.sql ...    the 22 queries with the specification's validation parameters; {scale} is
               the scale factor.  A first line ANY_ORDER: what the query orders by may be
               equal in several rows
load           a schema for each scale factor, made once

The data comes from tpchgen-cli, a package of bench/requirements-run.txt that makes the bytes
of TPC's own dbgen; it goes into COPY through a pipe, no file is written.
"""

from __future__ import annotations

from pathlib import Path

QUERIES = range(1, 23)
ANY_ORDER = "-- any order"

_HERE = Path(__file__).parent


def text(name: str) -> str:
    return (_HERE / name).read_text()


def query(number: int, scale: int) -> str:
    """The text of a query."""
    return text(f"q{number:02}.sql").replace("{scale}", str(scale)).strip()
