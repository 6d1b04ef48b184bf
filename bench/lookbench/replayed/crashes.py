"""Data directories as a crash left them, and the time that redo takes.

An original is made so that all of redo's work is in it: tables are made and checkpointed, then the load runs
in shared_buffers that hold everything, with nobody who writes pages back, and the server is killed.
So the files are those of the checkpoint, as a replica has them, and the log has the load.

  pgbench/update      transactions of pgbench's simple-update by eight clients, full_page_writes off
  pgbench/update-fpw  full_page_writes on, as many transactions as there are in 30 minutes between two checkpoints of
                      a server of scale 300 with 1,000 transactions/s: four to a page of the table, of which
                      one has a full-page image.  Pages that redo has written and lost are in the page cache, so that
                      nothing but the log has to be read
  pgbench/munro       as update: reads per second by maintenance_io_concurrency
  three/insert        rows inserted one by one into a table with three indexes of random integers, whose leaf
                      pages are a tenth full, so that there are many; full_page_writes off

A sample copies the original to the storage, drops the page cache, starts the server, and takes the time between the
log's lines "redo starts" and "redo done".  Nobody else writes pages during it (bgwriter_lru_maxpages = 0).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping

import psycopg

from ..measure import changed_settings
from ..server import drop_page_cache
from ..storages import Speed
from .cells import LIBRARY, Crash, Variant
from .servers import CopiedServer, Device, Originals, execute

PGBENCH_ROWS = 100_000  # at scale 1
CLIENTS = 8
SEED = 42
# the load: nothing leaves shared_buffers
LOAD = {"wal_level": "replica", "shared_buffers": "3GB", "bgwriter_lru_maxpages": "0"}

# one transaction, which with wal_level = minimal has hardly anything to log
THREE = """
create table bench_replay (id bigint, a integer, b integer, c integer, t text);
insert into bench_replay
select i, hashint4(i), hashint4extended(i, 1)::bit(32)::integer, hashint4extended(i, 2)::bit(32)::integer, repeat('x', 60)
from generate_series(1, {rows}) i;
create index on bench_replay (a) with (fillfactor = 10);
create index on bench_replay (b) with (fillfactor = 10);
create index on bench_replay (c) with (fillfactor = 10)
"""
INSERTS = """
do $$ begin for i in {first} .. {last} loop
insert into bench_replay values
(i, hashint4(i), hashint4extended(i, 1)::bit(32)::integer, hashint4extended(i, 2)::bit(32)::integer, repeat('x', 60));
commit;
end loop; end $$
"""

SUMS: Mapping[str, str] = {
    "pgbench": "select count(*), sum(abalance), (select sum(delta) from pgbench_history) from pgbench_accounts",
    "three": "select count(*), sum(a::bigint) + sum(b), sum(c) from bench_replay",
}
_PREFETCH = "select prefetch, hit, skip_init, skip_new, skip_fpw, skip_rep from pg_stat_recovery_prefetch"
AHEAD = "pg_stat_lookahead_replay"


@dataclass
class Result:
    ms: float
    rows: int | None
    checksum: str
    reads: int | None
    categories: dict[str, int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


def view(connection: psycopg.Connection, name: str) -> dict[str, int]:
    """The numbers of a view of the library, summed up over its rows; nothing if there is no such view.

    Of another build they are known from 18 on, where the extension's functions are looked for by
    dynamic_library_path, and can be had from the file that is preloaded.
    """
    row = connection.execute("show shared_preload_libraries").fetchone()
    assert row is not None
    if row[0] != LIBRARY and (connection.info.server_version < 180000 or Path(row[0]).name != f"{LIBRARY}.so"):
        return {}
    connection.execute(f"create extension if not exists {LIBRARY}")
    if connection.execute("select to_regclass(%s)", (name,)).fetchone() == (None,):
        return {}
    found: dict[str, int] = {}
    cursor: psycopg.Cursor[Any] = connection.execute(f"select * from {name}")  # type: ignore[call-overload]
    for row in cursor:
        for column, value in zip(cursor.description or (), row):
            if not isinstance(value, (str, bytes, bool)):
                try:
                    found[column.name] = found.get(column.name, 0) + round(float(value))
                except (TypeError, ValueError, OverflowError):
                    pass
    return found


def make(crash: Crash, server: CopiedServer) -> None:
    """Fill the original; the server is dead in the end."""
    server.start({})
    if crash.is_pgbench:
        server.program("pgbench", ["-i", "-q", "-s", str(crash.thousands * 1000 // PGBENCH_ROWS)])
    else:
        execute(server, THREE.format(rows=crash.thousands * 1000), "vacuum (freeze, analyze)")
    execute(server, "checkpoint")
    # a clean end, so that the log of all this is not in the way
    server.stop()
    server.start(LOAD | {"full_page_writes": "on" if crash.full_pages else "off"})
    execute(
        server, "create extension if not exists pg_prewarm",
        "select sum(pg_prewarm(oid::regclass)) from pg_class where relkind in ('r', 'i')", "checkpoint",
    )
    size = crash.cell.size
    if crash.is_pgbench:
        server.program(
            "pgbench", ["-n", "-b", "simple-update", "-M", "prepared", "-c", str(CLIENTS), "-j", "2", f"--random-seed={SEED}", "-t", str(size // CLIENTS)]
        )
    else:
        first = crash.thousands * 1000 + 1
        execute(server, INSERTS.format(first=first, last=first + size - 1))
    server.stop("immediate")


class Crashes:
    """Samples of `replay`."""

    def __init__(self, server: CopiedServer, originals: Originals, speed: Speed) -> None:
        self.server = server
        self.originals = originals
        self.speed = speed

    @staticmethod
    def name(crash: Crash) -> str:
        cell = crash.cell
        return f"{cell.data}-{cell.shape}-{crash.thousands}k-{cell.size}"

    def original(self, crash: Crash) -> Path:
        return self.originals.ensure(self.name(crash), lambda server: make(crash, server))

    def sample(self, crash: Crash, variant: Variant, rep: int) -> Result:
        original = self.original(crash)
        settings = {
            "wal_level": "replica", "shared_buffers": crash.buffers, "bgwriter_lru_maxpages": "0",
            "full_page_writes": "on" if crash.full_pages else "off",
        } | dict(variant.settings)
        self.speed.full()
        self.server.restore(original)
        drop_page_cache(self.server.data)
        device = Device(self.server.data, self.speed)
        self.speed.own()
        redo = self.server.recover(settings, device)
        categories = {"cpu_user_ms": redo.user_ms, "cpu_system_ms": redo.system_ms, "elapsed_ms": redo.elapsed_ms}
        categories |= {f"device_{name}": value for name, value in device.counters().items() if name in ("mean_read_us", "max_in_flight")}
        self.speed.full()
        self.server.wait(settings)
        with closing(self.server.connect()) as connection:
            # what it has read ahead, before anything else of the library
            if variant.has_library:
                categories |= {f"lookahead_{name}": value for name, value in view(connection, AHEAD).items()}
            categories |= self._prefetched(connection)
            rows, sums = None, ""
            if rep == 0:
                found = connection.execute(SUMS[crash.cell.data]).fetchone()  # type: ignore[call-overload]
                assert found is not None
                rows, sums = int(found[0]), f":{found[1]}:{found[2]}"
            changed = changed_settings(connection)
        self.server.stop("immediate")
        return Result(redo.ms, rows, redo.end + sums, redo.reads, categories, changed)

    def _prefetched(self, connection: psycopg.Connection) -> dict[str, int]:
        cursor = connection.execute(_PREFETCH)
        row = cursor.fetchone()
        assert row is not None and cursor.description is not None
        return {f"core_{column.name}": int(value) for column, value in zip(cursor.description, row)}

    def release(self) -> None:
        self.server.discard()
