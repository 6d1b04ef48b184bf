"""Real data: which file belongs to which package of Debian.

Source: dev/demo, its data and its three questions.  The table has the paths in order and an
index on the package, so the files of one package are scattered.  The Contents indices are
fetched by the demo's own script; where that is impossible rows of similar shape are
generated, and the index is called files_package_generated.

  packages   48 packages with their files on 100 to 400 blocks, one query for each
  range      a range of names ORDER BY LIMIT: some 20,000 rows
  list       IN (1,000 names)
"""

from __future__ import annotations

import subprocess
from typing import Iterator, Sequence

import psycopg

from ..datasets import is_done, note_done
from ..machine import ROOT
from ..server import Server, ServerError
from .base import CACHED, COLD, Cell, Index, Workload

ROWS = 7_300_000  # about
SHAPES = (("packages", 48), ("range", 20_000), ("list", 1_000))
QUICK_SHAPES = SHAPES[:2]
CHUNK = 1 << 20
NAMES = ("files", "packages", "spots")
INDEXES = {"debian": "files_package", "generated": "files_package_generated"}

PARTS = ("dev/lib/common.sh", "dev/lib/packages.sh", "dev/lib/sources.sh", "dev/lib/servers.sh",
         "dev/demo_lib/contents.sh")


def _shell(command: str) -> list[str]:
    """A command that may use the demo's functions; it works at the top of the checkout."""
    return ["bash", "-c", f"set -euo pipefail; {''.join(f'. {part}; ' for part in PARTS)}{command}"]


def _copy(connection: psycopg.Connection) -> None:
    """All paths and packages of the indices that have been fetched."""
    with subprocess.Popen(_shell("contents_rows"), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as rows:
        assert rows.stdout is not None
        with connection.cursor() as cursor, cursor.copy("copy files from stdin with (freeze)") as copy:
            while chunk := rows.stdout.read(CHUNK):
                copy.write(chunk)
    if rows.returncode != 0:
        raise ServerError("Debian's Contents indices cannot be read")


class Contents(Workload):
    name = "contents"
    source = "dev/demo: Debian's Contents indices"
    table = "files"
    bytes_per_row = 150
    all_bitmaps = True

    _index = INDEXES["debian"]
    _statements: dict[str, list[str]] = {}

    @property
    def table_rows(self) -> int:
        return ROWS

    def cells(self) -> Iterator[Cell]:
        for shape, size in QUICK_SHAPES if self.scope.quick else SHAPES:
            for state in (COLD, CACHED):
                yield Cell(self.name, "paths", shape, size, state)

    def index(self, cell: Cell) -> Index:
        return Index(self.table, self._index, "package")

    def make(self, server: Server, connection: psycopg.Connection, cells: Sequence[Cell]) -> None:
        # the demo's modules are found through PYTHONPATH, which bench/run sets
        from demo_lib.queries import NoQueries, choose

        if not is_done(connection, self.table, ROWS):
            self._load(connection)
        for index in INDEXES.values():
            if connection.execute("select to_regclass(%s)", (index,)).fetchone() != (None,):
                self._index = index
        try:
            queries = choose(connection)
        except NoQueries as error:
            raise ServerError(f"contents: {error}") from None
        self._statements = {
            shape: [f"select count(*), sum(hashtext(path)), 0 from ({text}) scan" for text in query.statements]
            for (shape, _), query in zip(SHAPES, queries)
        }

    def _load(self, connection: psycopg.Connection) -> None:
        from demo_lib.load import GENERATED, PACKAGES, SPOTS

        fetch = _shell("fetch_contents >&2")
        fetched = subprocess.run(fetch, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
        connection.execute(f"drop table if exists {', '.join(NAMES)}")
        connection.execute("set work_mem = '512MB'")
        with connection.transaction():
            connection.execute("create table files (path text not null, package text not null)")
            if fetched:
                _copy(connection)
            else:
                connection.execute(GENERATED)
        index = INDEXES["debian" if fetched else "generated"]
        connection.execute(f"create index {index} on files (package)")
        connection.execute(SPOTS)
        connection.execute(PACKAGES)
        connection.execute("reset work_mem")
        note_done(connection, self.table, ROWS, NAMES)

    def seconds(self, cell: Cell) -> float:
        return 1.0

    def statements(self, cell: Cell, rep: int) -> Sequence[str]:
        """The same in all repetitions: the questions were chosen by what the table holds."""
        return self._statements[cell.shape]
