"""A publisher with changes to be applied, and the time until a subscriber has them.

The publisher lies on the machine's own disk, is made anew by each run, and runs throughout; its tables have as many rows
as the subscriber's and no more indexes than a primary key.  The subscriber is an original like those of
crashes.py: tables whose leaf pages are a tenth full, so that there are many, and a subscription that is
disabled.  Keys are multiples of STEP; a cell that inserts rows takes keys between them, its own.

A cell's changes are made once, after a slot has been created; each sample applies them from the beginning, with a
copy of that slot, on a copy of the subscriber.  Changes are transactions of one row, in random order of
keys, by one or by more writers; `streamed` is one transaction, which the publisher sends while it is not finished and a
parallel worker applies (16 and later).  The last of them writes a mark, and the time is that from
ALTER SUBSCRIPTION ... ENABLE until the mark can be seen.

A live cell has nothing prepared: the subscription is enabled, writers update random rows as fast as they can, with fsync, for
as many seconds as its size says, and the time is that from their beginning until their mark can be seen: a
subscriber that keeps up takes hardly longer than they.

Cold: catalogs are in shared_buffers, the page cache is empty.  In the variant `cached` the files of tables and
indexes are locked in the page cache.
"""

from __future__ import annotations

import re
import threading
import time
from contextlib import closing, nullcontext
from typing import ContextManager

import psycopg

from ..measure import changed_settings
from ..residency import Resident
from ..server import SUPERUSER, ServerError, drop_page_cache
from ..storages import Speed
from .cells import Stream, Tables, Variant
from .crashes import Result, view
from .servers import SETTINGS, CopiedServer, Device, Originals, execute

STEP = 16  # from key to key
CATCH_UP_SECONDS = 1200  # at most
POLL_SECONDS = 0.005
SLOT = "bench"
WORK_SLOT = "bench_work"
NAME = "bench_changes"  # publication and subscription
AHEAD = "pg_stat_lookahead_apply"
PUBLISHER = {
    "wal_level": "logical", "max_wal_senders": "10", "max_replication_slots": "10", "shared_buffers": "1GB",
    "shared_preload_libraries": "",
}
SUBSCRIBER = {"wal_level": "replica", "full_page_writes": "on"}
TABLES = ("bench_apply", "bench_apply_one")

SCHEMA = """
create table bench_apply (id integer, k integer, v integer, filler text);
create table bench_apply_one (id integer, filler text);
create table bench_mark (n integer);
insert into bench_apply select i * {step}, hashint4(i), 0, repeat('x', 200) from generate_series(0, {rows} - 1) i;
insert into bench_apply_one select i * {step}, repeat('x', 60) from generate_series(0, {rows} - 1) i;
alter table bench_apply add primary key (id) {sparse};
alter table bench_apply_one add primary key (id) {sparse}
"""
SPARSE = "with (fillfactor = 10)"

# by the data of a cell: the table, and what is done for one of its rows, r
CHANGES = {
    "update": ("bench_apply", "update bench_apply set k = hashint4(r.id + {number}), v = v + 1 where id = r.id"),
    "insert-one": ("bench_apply_one", "insert into bench_apply_one values (r.id + {number}, repeat('y', 60))"),
    "insert-two": ("bench_apply", "insert into bench_apply values (r.id + {number}, hashint4(r.id + {number}), 0, repeat('y', 200))"),
    "delete": ("bench_apply", "delete from bench_apply where id = r.id"),
}
LOOP = """
do $$ declare r record; begin
for r in select id from {table} where id % {step} = 0 and id / {step} % {writers} = {writer}
  order by hashint8extended(id, {number}) limit {rows} loop
{change};
{commit}
end loop; end $$
"""
LIVE = """
\\set id random(0, {last})
\\set k random(0, 2000000000)
update bench_apply set k = :k, v = v + 1 where id = :id * {step};
"""
# v counts updates, so that a sum of it tells whether all have come
SUMS = {
    "bench_apply": "select count(*), sum(k::bigint), sum(v) from bench_apply",
    "bench_apply_one": "select count(*), sum(id::bigint), 0 from bench_apply_one",
}


def _number(server: CopiedServer, query: str) -> int:
    return int(execute(server, query)[0][0])


class Streams:
    """Samples of `apply`."""

    def __init__(
        self, publisher: CopiedServer, subscriber: CopiedServer, originals: Originals, speed: Speed, tables: Tables, rate: int
    ) -> None:
        self.publisher = publisher
        self.subscriber = subscriber
        self.originals = originals
        self.speed = speed
        self.rows = tables.thousands * 1000
        self.buffers = tables.buffers
        self.rate = rate
        self.mark = 0
        self.prepared: Stream | None = None
        self.made = False

    @property
    def name(self) -> str:
        return f"subscriber-{self.rows // 1000}k"

    # ---- what is there before --------------------------------------------------------

    def make(self) -> None:
        """A new publisher, and the subscriber's original if there is none."""
        if self.made:
            return
        self.speed.full()
        self.publisher.discard()
        self.publisher.create(SETTINGS)
        self.publisher.start(PUBLISHER)
        execute(
            self.publisher, SCHEMA.format(rows=self.rows, step=STEP, sparse=""), "vacuum (freeze, analyze)",
            f"create publication {NAME} for all tables",
        )
        self.originals.ensure(self.name, self._make_subscriber)
        self.made = True

    def _make_subscriber(self, server: CopiedServer) -> None:
        server.start({"shared_preload_libraries": ""})
        execute(
            server, "create extension pg_prewarm", SCHEMA.format(rows=self.rows, step=STEP, sparse=SPARSE),
            f"create index bench_apply_k on bench_apply (k) {SPARSE}", "vacuum (freeze, analyze)",
            f"create subscription {NAME} connection '{self._connection()}' publication {NAME}"
            f" with (enabled = false, create_slot = false, copy_data = false, slot_name = '{WORK_SLOT}')",
        )
        server.stop()

    def _connection(self) -> str:
        return f"host={self.publisher.sockets} port=5432 user={SUPERUSER} dbname=postgres"

    def prepare(self, stream: Stream) -> None:
        """Make the changes of a cell, unless they are there."""
        self.make()
        settings = dict(PUBLISHER) | ({"logical_decoding_work_mem": "256kB"} if stream.one_transaction else {})
        self.publisher.start(settings | {"fsync": "on" if stream.live else "off"})
        if self.prepared == stream:
            return
        self._drop_slot(WORK_SLOT)
        self._drop_slot(SLOT)
        self.prepared = stream
        if stream.live:
            return
        execute(self.publisher, f"select pg_create_logical_replication_slot('{SLOT}', 'pgoutput')")
        self._change(stream)
        self._write_mark()
        execute(self.publisher, "checkpoint")

    def _change(self, stream: Stream) -> None:
        table, change = CHANGES[stream.cell.data]
        errors: list[BaseException] = []

        def write(writer: int) -> None:
            text = LOOP.format(
                table=table, change=change.format(number=stream.number), commit="" if stream.one_transaction else "commit;", writer=writer,
                writers=stream.writers, rows=stream.cell.size // stream.writers, number=stream.number, step=STEP,
            )
            try:
                execute(self.publisher, text)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=write, args=(n,)) for n in range(stream.writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def _write_mark(self) -> None:
        self.mark += 1
        execute(self.publisher, f"insert into bench_mark values ({self.mark})")

    def _drop_slot(self, name: str) -> None:
        """When whoever uses it has gone."""
        until = time.monotonic() + 60
        while rows := execute(self.publisher, f"select active from pg_replication_slots where slot_name = '{name}'"):
            if not rows[0][0]:
                execute(self.publisher, f"select pg_drop_replication_slot('{name}')")
                return
            if time.monotonic() > until:
                raise ServerError(f"the slot {name} stays in use")
            time.sleep(0.05)

    # ---- a sample --------------------------------------------------------------------

    def sample(self, stream: Stream, variant: Variant, rep: int) -> Result:
        self.prepare(stream)
        settings = SUBSCRIBER | {"shared_buffers": self.buffers} | dict(variant.settings)
        self.speed.full()
        self.subscriber.restore(self.originals.path(self.name))
        self._drop_slot(WORK_SLOT)
        if stream.live:
            execute(self.publisher, f"select pg_create_logical_replication_slot('{WORK_SLOT}', 'pgoutput')")
        else:
            execute(self.publisher, f"select pg_copy_logical_replication_slot('{SLOT}', '{WORK_SLOT}')")
        self.subscriber.start(settings)
        streaming = ("parallel" if self.subscriber.major >= 16 else "on") if stream.one_transaction else "off"
        execute(
            self.subscriber,
            f"alter subscription {NAME} connection '{self._connection()}'",
            f"alter subscription {NAME} set (streaming = {streaming})",
            "select sum(pg_prewarm(oid::regclass)) from pg_class where relnamespace = 'pg_catalog'::regnamespace and relkind in ('r', 'i')",
        )
        device = Device(self.subscriber.data, self.speed)
        with closing(self.subscriber.connect()) as watcher:
            # it has been here before, so that its own catalog look-ups are done
            watcher.execute("select 1 from bench_mark where n = 0")
            drop_page_cache(self.subscriber.data)
            with self._resident() if variant.is_cached else nullcontext():
                self.speed.own()
                before = device.reads()
                start = time.monotonic()
                watcher.execute(f"alter subscription {NAME} enable")
                facts = self._write(stream) if stream.live else {}
                if stream.live:
                    start = facts.pop("start")
                ended = time.monotonic()
                self._wait_for_mark(watcher)
                ms = (time.monotonic() - start) * 1000
                after = device.reads()
                if stream.live:
                    facts["catch_up_ms"] = (time.monotonic() - ended) * 1000
            self.speed.full()
            categories = {name: round(value) for name, value in facts.items()}
            if variant.has_library:
                categories |= {f"lookahead_{name}": value for name, value in view(watcher, AHEAD).items()}
            found = watcher.execute(SUMS[CHANGES[stream.cell.data][0]]).fetchone()  # type: ignore[call-overload]
            assert found is not None
            changed = changed_settings(watcher)
        self._check_parallel(stream)
        self.subscriber.stop("immediate")
        reads = None if before is None or after is None else after - before
        # live writers write as much as they can
        return Result(ms, None if stream.live else int(found[0]), "" if stream.live else f"{found[1]}:{found[2]}", reads, categories, changed)

    def _resident(self) -> ContextManager[object]:
        names = [*TABLES, "bench_apply_pkey", "bench_apply_one_pkey", "bench_apply_k"]
        with closing(self.subscriber.connect()) as connection:
            return Resident(self.subscriber.relation_files(connection, names))

    def _wait_for_mark(self, watcher: psycopg.Connection) -> None:
        until = time.monotonic() + CATCH_UP_SECONDS
        look = time.monotonic() + 1
        while watcher.execute(f"select 1 from bench_mark where n = {self.mark}").fetchone() is None:
            now = time.monotonic()
            if now > until:
                raise ServerError(f"the subscriber has not caught up after {CATCH_UP_SECONDS} seconds")
            if now > look:
                look = now + 1
                errors = watcher.execute("select sum(apply_error_count) from pg_stat_subscription_stats").fetchone()
                if errors and errors[0]:
                    raise ServerError(f"the subscriber cannot apply; see {self.subscriber.data / 'server.log'}")
            time.sleep(POLL_SECONDS)

    def _check_parallel(self, stream: Stream) -> None:
        """A streamed transaction must have been streamed."""
        if not stream.one_transaction:
            return
        if not _number(self.publisher, f"select coalesce(sum(stream_txns), 0) from pg_stat_replication_slots where slot_name = '{WORK_SLOT}'"):
            raise ServerError("the transaction was not streamed")

    # ---- live ------------------------------------------------------------------------

    def _write(self, stream: Stream) -> dict[str, float]:
        """Let writers write; what they did, and how far behind the subscriber is when they stop."""
        script = self.publisher.data.parent / "live.sql"
        script.write_text(LIVE.format(last=self.rows - 1, step=STEP))
        script.chmod(0o644)
        self._wait_for_worker()
        rate = ["-R", str(self.rate)] if self.rate else []
        start = time.monotonic()
        output = self.publisher.program(
            "pgbench", ["-n", "-M", "prepared", "-c", str(stream.writers), "-j", "2", "-T", str(stream.cell.size), *rate, "-f", str(script)]
        )
        applied = execute(self.subscriber, "select coalesce(max(remote_lsn), '0/0')::text from pg_replication_origin_status")[0][0]
        lag = _number(self.publisher, f"select pg_current_wal_lsn() - '{applied}'::pg_lsn")
        self._write_mark()
        done = re.search(r"number of transactions actually processed: (\d+)", output)
        return {"start": start, "transactions": float(done[1]) if done else 0.0, "lag_bytes": float(lag)}

    def _wait_for_worker(self) -> None:
        """Until the subscriber is connected."""
        until = time.monotonic() + 60
        while not execute(self.publisher, f"select 1 from pg_replication_slots where slot_name = '{WORK_SLOT}' and active"):
            if time.monotonic() > until:
                raise ServerError("the subscriber does not connect")
            time.sleep(POLL_SECONDS)

    def release(self) -> None:
        self.subscriber.discard()
        self.publisher.discard()

