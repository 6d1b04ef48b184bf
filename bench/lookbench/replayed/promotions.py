"""The delay of a promotion, and of a restart after a crash: what the library must not lengthen.

  standby/caught-up  a standby that has replayed all of its primary's log is promoted
  standby/behind     a standby has received all of it and replayed nothing (recovery_min_apply_delay): its promotion
                     begins with the replay of that, of blocks that are not in memory
  crash/restart      a server that was killed after a few transactions is started, with its files and programs in the
                     page cache as a crash of the server leaves them, and cold as one of the machine does

The time is that from pg_ctl promote, or from the start of the postmaster, until a row can be written; `redo_ms` in
categories.csv is that from the promotion to the end of redo, by the server's log.  The primary runs throughout, on
the machine's own disk; each sample is a standby of its own, a copy of what the primary was before its load.
"""

from __future__ import annotations

import re
import time
from contextlib import closing

import psycopg

from ..measure import changed_settings
from ..server import SUPERUSER, ServerError, drop_page_cache
from ..storages import Speed
from ..workloads.base import COLD
from .cells import Promotion, Variant
from .crashes import CLIENTS, SEED, Result
from .servers import CopiedServer, Originals, execute, give

WAIT_SECONDS = 120  # for a standby to receive the log, or to be promoted
POLL_SECONDS = 0.001
PRIMARY = {
    "wal_level": "replica", "max_wal_senders": "10", "wal_keep_size": "4GB", "shared_buffers": "1GB", "shared_preload_libraries": "",
}
STANDBY = {"hot_standby": "on", "max_wal_senders": "10"}
DELAYED = {"recovery_min_apply_delay": "1d"}
WRITE = "insert into bench_written values (1)"
_REQUESTED = re.compile(r"^(\d+\.\d+) LOG:  received promote request", re.M)
_DONE = re.compile(r"^(\d+\.\d+) LOG:  redo done at ", re.M)


class Promotions:
    """Samples of `promotion`."""

    def __init__(self, primary: CopiedServer, server: CopiedServer, originals: Originals, speed: Speed) -> None:
        self.primary = primary
        self.server = server
        self.originals = originals
        self.speed = speed
        self.end = ""  # of the primary's log

    # ---- what is there before --------------------------------------------------------

    def _tables(self, promotion: Promotion, server: CopiedServer) -> None:
        server.start(PRIMARY)
        server.program("pgbench", ["-i", "-q", "-s", str(promotion.scale)])
        execute(server, "create table bench_written (n integer)", "checkpoint")

    def _before_load(self, promotion: Promotion) -> str:
        def make(server: CopiedServer) -> None:
            self._tables(promotion, server)
            server.stop()

        name = f"standby-{promotion.scale}"
        self.originals.ensure(name, make)
        return name

    def _crashed(self, promotion: Promotion) -> str:
        def make(server: CopiedServer) -> None:
            self._tables(promotion, server)
            self._load(promotion, server)
            server.stop("immediate")

        name = f"killed-{promotion.scale}-{promotion.cell.size}"
        self.originals.ensure(name, make)
        return name

    @staticmethod
    def _load(promotion: Promotion, server: CopiedServer) -> None:
        server.program(
            "pgbench", ["-n", "-b", "simple-update", "-M", "prepared", "-c", str(CLIENTS), "-j", "2", f"--random-seed={SEED}",
                        "-t", str(promotion.cell.size // CLIENTS)]
        )

    def _run_primary(self, promotion: Promotion) -> None:
        """With its load done, which all standbys get."""
        if self.end:
            return
        self.primary.restore(self.originals.path(self._before_load(promotion)))
        self.primary.start(PRIMARY)
        self._load(promotion, self.primary)
        self.end = execute(self.primary, "select pg_current_wal_flush_lsn()::text")[0][0]

    # ---- a sample --------------------------------------------------------------------

    def sample(self, promotion: Promotion, variant: Variant, rep: int) -> Result:
        self.speed.full()
        settings = {"shared_buffers": promotion.buffers, "wal_level": "replica"} | dict(variant.settings)
        if promotion.restarts:
            return self._restart(promotion, settings)
        self._run_primary(promotion)
        connection = f"host={self.primary.sockets} port=5432 user={SUPERUSER}"
        settings |= STANDBY | {"primary_conninfo": connection} | (DELAYED if promotion.behind else {})
        self.server.restore(self.originals.path(self._before_load(promotion)))
        signal = self.server.data / "standby.signal"
        signal.touch()
        give(signal, self.server.user)
        self.server.start(settings)
        with closing(self.server.connect()) as connected:
            self._wait_for_log(connected, promotion.behind)
            changed = changed_settings(connected)
            changed.pop("primary_conninfo", None)  # a path of this machine
            if promotion.behind:
                drop_page_cache(self.server.data)
            start = time.monotonic()
            self.server.program("pg_ctl", ["promote", "-W", "-s", "-D", str(self.server.data)])
            self._write(connected)
            ms = (time.monotonic() - start) * 1000
            rows = int(connected.execute("select count(*) from pgbench_history").fetchone()[0])  # type: ignore[index]
        log = (self.server.data / "server.log").read_text()
        self.server.stop("immediate")
        requested, done = _REQUESTED.search(log), _DONE.search(log)
        if requested is None or done is None:
            raise ServerError("the log says nothing of a promotion")
        return Result(ms, rows, "", None, {"redo_ms": round((float(done[1]) - float(requested[1])) * 1000)}, changed)

    def _restart(self, promotion: Promotion, settings: dict[str, str]) -> Result:
        self.server.restore(self.originals.path(self._crashed(promotion)))
        if promotion.cell.state == COLD:
            drop_page_cache(self.server.data)
        start = time.monotonic()
        self.server.start(settings)
        with closing(self.server.connect()) as connected:
            self._write(connected)
            ms = (time.monotonic() - start) * 1000
            rows = int(connected.execute("select count(*) from pgbench_history").fetchone()[0])  # type: ignore[index]
            changed = changed_settings(connected)
        self.server.stop("immediate")
        return Result(ms, rows, "", None, {}, changed)

    def _wait_for_log(self, connected: psycopg.Connection, behind: bool) -> None:
        """Until the standby has received the primary's log, or replayed it."""
        function = "pg_last_wal_receive_lsn" if behind else "pg_last_wal_replay_lsn"
        until = time.monotonic() + WAIT_SECONDS
        while connected.execute(f"select coalesce({function}() >= %s::pg_lsn, false)", (self.end,)).fetchone() != (True,):
            if time.monotonic() > until:
                raise ServerError("the standby does not receive the log")
            time.sleep(POLL_SECONDS)

    def _write(self, connected: psycopg.Connection) -> None:
        """As soon as that is possible."""
        until = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                connected.execute(WRITE)
                return
            except psycopg.errors.ReadOnlySqlTransaction:
                if time.monotonic() > until:
                    raise ServerError("the standby is not promoted") from None
                time.sleep(POLL_SECONDS)

    def release(self) -> None:
        self.server.discard()
        self.primary.discard()
