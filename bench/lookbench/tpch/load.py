"""The tables of one scale factor, in a schema of their own.

They are noted in bench_done like all tables, with the nominal number of rows of lineitem.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Iterator

import psycopg

from ..datasets import is_done, note_done
from ..server import ServerError, clean_environment
from . import text

# the largest first
TABLES = ("lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region")
LINEITEM_ROWS = 6_000_000  # for each scale factor, nearly

GENERATOR = Path(sys.executable).with_name("tpchgen-cli")
CHUNK = 1 << 20  # bytes


def schema(scale: int) -> str:
    return f"tpch{scale}"


def tables(scale: int) -> tuple[str, ...]:
    return tuple(f"{schema(scale)}.{table}" for table in TABLES)


def ensure_scale(connection: psycopg.Connection, scale: int) -> None:
    """Make the tables of that scale factor, unless they are there."""
    name = schema(scale)
    rows = LINEITEM_ROWS * scale
    if is_done(connection, name, rows):
        return
    connection.execute(f"drop schema if exists {name} cascade")
    connection.execute(f"create schema {name}")
    connection.execute(f"set search_path = {name}")
    connection.execute("set maintenance_work_mem = '1GB'")
    connection.execute("set work_mem = '512MB'")  # foreign keys are checked by a join
    # rows may be frozen from the beginning in a table of the same transaction
    with connection.transaction():
        connection.execute(text("schema.sql"))
        for table in reversed(TABLES):
            _fill(connection, table, scale)
    for statement in text("keys.sql").split(";\n"):
        connection.execute(statement)
    for setting in ("search_path", "maintenance_work_mem", "work_mem"):
        connection.execute(f"reset {setting}")
    note_done(connection, name, rows, tables(scale))


def _fill(connection: psycopg.Connection, table: str, scale: int) -> None:
    with tempfile.TemporaryFile() as messages:
        generator = subprocess.Popen(
            [str(GENERATOR), "csv", "--scale-factor", str(scale), "--tables", table, "--stdout", "--quiet"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages, env=clean_environment(),
        )
        assert generator.stdout is not None
        try:
            with connection.cursor().copy(f"copy {table} from stdin (format csv, header, freeze)") as copy:
                for chunk in _chunks(generator.stdout):
                    copy.write(chunk)
        finally:
            generator.stdout.close()  # it ends, if it has not
            code = generator.wait()
        if code != 0:
            messages.seek(0)
            last = (messages.read().decode(errors="replace").strip().splitlines() or ["no message"])[-1]
            raise ServerError(f"{GENERATOR.name} failed: {last}")


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK):
        yield chunk
