"""
differ.py - plays acts in worlds, with look-ahead off and on, and compares all that can be seen.

How it works
  1. shapes.py gives each world a shape, of which world.py makes tables, in a database that is
     then copied: once for each of MODES.  So all of them begin with the same pages, statistics and
     OIDs, and stay alike as long as look-ahead changes nothing.
  2. Each act of acts.py is played in all copies, one after another.  Most acts are rolled back; what
     some of them commit is there for later ones.
  3. Required: the same rows in the same order, errors with all their fields, notices in their place,
     command tags, locks that are held before the transaction ends, what is stored, settings, and
     effects that no rollback undoes: a digest of calls in a sequence.  At the end of each world: the
     same rows, amcheck of every btree index, no buffer pinned, a clean server log.
  4. A difference is judged once more, on new copies: alone, then behind the acts before it.  Where
     stock does not agree with itself, it is "undetermined"; where the difference is gone, it is
     a finding all the same, "seen once",
     unless an index of the world grows by chance (GiST, SP-GiST).
     Look-ahead may prune pages earlier (docs/safety.md), so that rows that were written later lie, and are returned,
     in another order; that does not count.
  5. A crash is a finding.  The server starts again, the world is made anew, and the next act follows.
  6. Each job has a process, and a server of its own.

World W of a seed and its act A do not depend on which worlds are played: --only-world W.A plays one.
"""

import contextlib
import copy
import multiprocessing
import os
import queue
import re
import shutil
import subprocess
import tempfile
import time
import traceback
from collections import Counter
from itertools import zip_longest

from psycopg import Error, pq

import acts
import shapes
import world
import world_base
from server import ERROR_FIELDS, Lost, Outcome, Server, Session

SLOW = {"miss_threshold": "0", "min_read_time": "0", "attach_threshold": "0", "cache_prefetch_threshold": "0"}
MODES = {
    "off": {"enable": "off"},
    "on": {},
    "slow": SLOW,
    "force": {"force": "on"},
    "own": {**SLOW, "enable_index_build": "on", "enable_btree_insert": "on"},
}
EXTENSIONS = ("citext", "btree_gist", "btree_gin", "amcheck", "pg_buffercache", "pg_lookahead")

# many copies come and go; their blocks are in the operating system's cache
SERVER_SETTINGS = {
    "shared_buffers": "4MB", "max_connections": "40", "restart_after_crash": "on", "max_wal_size": "4GB", "wal_level": "minimal", "max_wal_senders": "0",
    "checkpoint_timeout": "1h", "full_page_writes": "off", "effective_cache_size": "8MB", "max_locks_per_transaction": "200", "log_checkpoints": "off",
}

# of a statement: a run of so many minutes leaves slow ones out, and others are to do the same each time
SHORT_TIMEOUT, TIMEOUT = "2s", "120s"
SHRINK_SECONDS = 20
# (what the act has made has another OID in each copy)
LOCKS = ("select locktype, mode, coalesce(regexp_replace(relation::regclass::text, '[0-9]{4,}|(?<=temp_)[0-9]+', 'N', 'g'), ''), count(*) from pg_locks where pid = pg_backend_pid() and "
         "locktype in ('relation', 'advisory', 'tuple') and (relation is null or relation >= 16384) group by 1, 2, 3 order by 1, 2, 3")
STATE = ("select current_setting('timezone'), current_setting('my.off'), current_setting('my.shift'), current_setting('datestyle'), current_setting('role'), "
         "(select string_agg(x::text, ',' order by n) from log)")
STORED = ("t", "o", "b", "p", "log")
EFFECTS = "select (select last_value from trail), (select last_value from logseq)"
TEMPORARY = re.compile(rb"(pg_(?:toast_)?temp_)[0-9]+")
# (19 says what a canceled statement has waited for)
WAITED = re.compile(rb"(relation )[0-9]+( of database )[0-9]+")
START = "setval('public.sq', 1), setval('public.trail', 1)"
END = "reset role; reset all; deallocate all; close all; drop table if exists held"


class Player(Session):
    """A session in one of the copies."""

    def __init__(self, server, database, mode, stock, timeout=TIMEOUT):
        settings = {} if stock else {f"pg_lookahead.{k}": v for k, v in MODES[mode].items()}
        settings.update({"my.off": "0", "my.shift": "0", "statement_timeout": timeout, "lock_timeout": "3s", "timezone": "Europe/Berlin",
                         "max_parallel_workers_per_gather": "0"})
        options = " ".join(f"-c {k}={v}" for k, v in settings.items())
        self.server, self.mode, self.database = server, mode, database
        self.side = None
        # what START resets to becomes the session's, for RESET ALL returns to it
        self.conn = pq.PGconn.connect((f"host={server.dir} user=fuzz dbname={database} application_name=fuzz connect_timeout=10 options='{options}'").encode())
        if self.conn.status != pq.ConnStatus.OK:
            raise Lost(self.conn.error_message.decode())
        self.notices = []
        self.conn.notice_handler = self.on_notice
        self.identity = None

    def outcome(self, res, rows):
        if res.status in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.SINGLE_TUPLE):
            return Outcome(rows, None, self.notices, res.command_status)
        error = tuple(res.error_field(f) for f in ERROR_FIELDS)
        if error[1] is None or self.conn.status != pq.ConnStatus.OK:
            raise Lost(res.error_message.decode(errors="replace"))
        return Outcome(rows, error, self.notices, None)

    def stream(self, sql):
        """Rows one by one, so that those before an error count, too."""
        self.notices = []
        rows, out = [], None
        try:
            self.conn.send_query(sql.encode())
            self.conn.set_single_row_mode()
            while (res := self.conn.get_result()) is not None:
                if res.status == pq.ExecStatus.SINGLE_TUPLE:
                    rows.append(tuple(res.get_value(0, j) for j in range(res.nfields)))
                elif res.status == pq.ExecStatus.COPY_OUT:
                    out = self.copied()
                    break
                else:
                    out = self.outcome(res, rows)
                res.clear()
        except Error as e:
            raise Lost(f"{sql}\n{e}") from e
        if out is None:
            raise Lost(f"{sql}\n{self.conn.error_message.decode(errors='replace')}")
        return out

    def copy_in(self, sql, data):
        """COPY FROM STDIN."""
        self.notices = []
        try:
            res = self.conn.exec_(sql.encode())
            if res.status != pq.ExecStatus.COPY_IN:
                return self.outcome(res, None)
            raw = data.encode()
            for at in range(0, len(raw), 4000):
                self.conn.put_copy_data(raw[at:at + 4000])
            self.conn.put_copy_end()
            out = None
            while (res := self.conn.get_result()) is not None:
                out = self.outcome(res, None)
                res.clear()
        except Error as e:
            raise Lost(f"{sql}\n{e}") from e
        if out is None:
            raise Lost(f"{sql}\n{self.conn.error_message.decode(errors='replace')}")
        return out

    def step(self, step, streamed):
        if isinstance(step, tuple):
            if step[0] == "copy":
                return self.copy_in(step[1], step[2])
            if self.side is None:
                self.side = Player(self.server, self.database, self.mode, self.mode == "stock")
                self.side.must("set lock_timeout = '1s'")
            return self.side.execute(step[1])
        return self.stream(step) if streamed else self.execute(step)

    def in_failed(self):
        return self.conn.transaction_status == pq.TransactionStatus.INERROR

    # ---- an act -----------------------------------------------------------

    def begin(self, act):
        local = "true" if act.transaction else "false"
        calls = [f"set_config('{k}', '{v}', {local})" for k, v in act.planner.items()]
        if self.identity:
            calls.append(f"setval('{self.identity}', {act.number * 10000})")
        if act.role:
            calls.append(f"set_config('role', '{act.role}', {local})")
        self.must(("begin; " if act.transaction else "") + f"select {', '.join([START] + calls)}")

    def play(self, act):
        """Everything that the act has shown: [(what, Outcome)]."""
        out, saved = [], False
        self.begin(act)
        for k, step in enumerate(act.steps):
            outcome = self.step(step, act.streamed)
            if act.settled is not None and k >= act.settled and outcome.rows:
                # where the new rows lie depends on when pages have been pruned
                outcome.rows.sort(key=str)
            out.append((step if isinstance(step, str) else f"{step[0]}: {step[1]}", outcome))
            saved |= step == "savepoint s"
            if self.in_failed():
                if not saved or self.execute("rollback to s").error:
                    break
        if not self.in_failed():
            out += [("locks held", self.execute(LOCKS)), ("state", self.execute("reset role; " + STATE))]
            if act.writes:
                digest = ", ".join(f"(select array[count(*), sum(hashtextextended(whole_row::text, 0))] from {t} whole_row)" for t in STORED)
                out.append(("stored", self.execute(f"select {digest}")))
        if self.conn.transaction_status != pq.TransactionStatus.IDLE:
            end = "commit" if act.commit else "rollback"
            out.append((end, self.execute(end)))
        self.execute(END)
        out.append(("effects", self.execute(EFFECTS)))
        return out

    def close(self):
        if self.side:
            self.side.conn.finish()
        self.conn.finish()


def same_names(fields):
    """Without the number of the session's temporary schema, and OIDs of the copy."""
    return fields and tuple(f and WAITED.sub(rb"\1N\2N", TEMPORARY.sub(rb"\1N", f)) for f in fields)


def comparable(what, outcome, mode):
    rows, error, notices, tag = outcome.key()
    error, notices = same_names(error), [same_names(n) for n in notices]
    if mode == "own" and error and (error[2].startswith(b"could not create unique index") or re.match(r"create (unique )?index|reindex", what)):
        # of several errors the library's build may raise another one (docs/safety.md)
        error = "some"
    return what, rows, error, notices, tag


def first_difference(stock, other, mode):
    """The number of the first part that differs, or None."""
    for n, (a, b) in enumerate(zip_longest(stock, other)):
        if a is None or b is None or comparable(*a, mode) != comparable(*b, mode):
            return n
    return None


def timed_out(result):
    return any(o.error and o.error[1] == b"57014" for _, o in result)


def text(row):
    return "(no row)" if row is None else " | ".join("null" if c is None else c.decode(errors="replace")[:120] for c in row)


def describe(outcome):
    if outcome is None:
        return "(not reached)"
    rows = "" if outcome.rows is None else f"{len(outcome.rows)} rows, "
    if outcome.error:
        return rows + "ERROR " + " | ".join(e.decode(errors="replace") for e in outcome.error[1:] if e)
    return f"{rows}{(outcome.tag or b'').decode()}, {len(outcome.notices)} notices"


def what_differs(stock, other, n):
    a, b = (r[n][1] if n < len(r) else None for r in (stock, other))
    what = (stock if n < len(stock) else other)[n][0]
    if what in ("locks held", "state", "stored", "effects", "commit", "rollback"):
        return what
    if a is None or b is None:
        return "an error of one only"
    if (a.error is None) != (b.error is None):
        return "an error of one only"
    if a.error != b.error:
        return "another error"
    if a.rows != b.rows:
        return "rows"
    return "notices" if a.notices != b.notices else "tag"


def show(stock, other, n):
    """Lines about the first difference."""
    a, b = (r[n] if n < len(r) else (None, None) for r in (stock, other))
    out = [f"step {n + 1}: {a[0] or b[0]}"[:600], f"  off: {describe(a[1])}", f"  on:  {describe(b[1])}"]
    for name in ("rows", "notices"):
        shown = 0
        for k, (x, y) in enumerate(zip_longest(getattr(a[1], name, None) or (), getattr(b[1], name, None) or ())):
            if x != y and shown < 3:
                out += [f"  {name[:-1]} {k + 1}  off: {text(x)}", f"  {name[:-1]} {k + 1}  on:  {text(y)}"]
                shown += 1
    return out


def stopped(step):
    return step.rstrip(";") + ";"


def script(w, act, mode, before=()):
    """The act as a psql script: for each of both runs, the world anew; the base is made by run --world-base."""
    out = [f"-- world {w.number} of seed {w.seed}: {w.describe()}"]
    for m in ("off", mode):
        settings = [f"set pg_lookahead.{k} = '{v}';" for k, v in MODES[m.split()[0]].items()]
        out += [f"\\echo == look-ahead: {m}", "\\c postgres", "drop database if exists one_world;", "create database one_world template worlds_base;", "\\c one_world",
                "set client_min_messages = error;"] + [stopped(sql) for sql, _ in w.tables()]
        out += ["\\c" if not w.temp else "", "set client_min_messages = notice;", "set timezone = 'Europe/Berlin'; set my.off = 0; set my.shift = 0; set max_parallel_workers_per_gather = 0;"] + settings
        for a in list(before) + [act]:
            local = "local " if a.transaction else ""
            out += ["begin;"] if a.transaction else []
            out += [f"set {local}{k} = '{v}';" for k, v in a.planner.items()] + ([f"set {local}role = '{a.role}';"] if a.role else [])
            for step in a.steps:
                if isinstance(step, str):
                    out.append(stopped(step))
                elif step[0] == "copy":
                    out += [stopped(step[1]), step[2].rstrip("\n"), "\\."]
                else:
                    out.append(f"\\! psql -d one_world -c \"{step[1]}\"")
            out += [("commit;" if a.commit else "rollback;")] if a.transaction else []
            out += ["reset role;"]
    return "\n".join(line for line in out if line)


class Job:
    """Plays worlds; what one process does."""

    def __init__(self, server, name, args, have, report, note=None):
        self.server, self.name, self.args, self.have, self.report, self.note = server, name, args, have, report, note
        self.counts, self.kinds, self.sqlstates, self.classes, self.failed_ddl, self.seconds, self.messages = (Counter() for _ in range(7))
        self.players, self.world, self.played, self.keeper, self.log_end = {}, None, [], None, 0
        self.modes = list(MODES) if not args.modes else ["off"] + args.modes

    # ---- copies -----------------------------------------------------------

    def admin(self, *statements):
        if self.keeper is None:
            self.keeper = self.connect("postgres")
            self.keeper.must("set statement_timeout = 0")
        for sql in statements:
            self.keeper.must(sql)

    def connect(self, database, mode="off"):
        end = time.time() + 90
        while True:
            try:
                return Player(self.server, database, mode, self.args.stock, SHORT_TIMEOUT if self.args.minutes else TIMEOUT)
            except Lost:
                if time.time() > end:
                    raise
                time.sleep(0.1)

    def close(self):
        for p in self.players.values():
            p.close()
        self.players = {}

    def source(self, w):
        """The world, of which copies are made."""
        began = time.time()
        self.close()
        name = f"{self.name}_source"
        self.admin(f"drop database if exists {name} with (force)", f"create database {name} template worlds_base strategy file_copy")
        if not w.temp:
            s = self.connect(name)
            self.make_tables(s, w)
            s.close()
        self.world = w
        self.seconds["(making worlds)"] += time.time() - began

    def make_tables(self, s, w):
        s.must("set statement_timeout = 0")
        for sql, optional in w.tables():
            out = s.execute(sql)
            if out.error:
                if not optional:
                    raise SystemExit(f"world {w.number} of seed {w.seed}: {sql}\n  {describe(out)}\n{w.describe()}")
                self.failed_ddl[f"{out.error[1].decode()} {sql[:60]}"] += 1
        s.must("reset statement_timeout")

    def rebuild(self, w):
        """All of it anew, which the end of a crash may come between."""
        for _ in range(10):
            try:
                self.source(w)
                self.copy(self.modes)
                return
            except Lost:
                self.wait()
        raise Lost("the server does not come back")

    def copy(self, modes):
        """New copies of the world, one for each mode (twice the same is another copy)."""
        made, began = [], time.time()
        self.close()
        for k, mode in enumerate(modes):
            database = f"{self.name}_{k}"
            self.admin(f"drop database if exists {database} with (force)", f"create database {database} template {self.name}_source strategy file_copy")
            p = self.connect(database, mode)
            if self.world.temp:
                self.make_tables(p, self.world)
            if self.world.shape["columns"] == "identity":
                p.identity = p.must("select pg_get_serial_sequence('t', 'g')")[0][0]
            p.must(f"set application_name = '{mode}'")
            made.append(p)
        self.players = dict(enumerate(made))
        self.played = []
        self.seconds["(copying them)"] += time.time() - began
        return made

    # ---- judging ----------------------------------------------------------

    def again(self, w, act, before, mode, timeout=TIMEOUT):
        """Play it on new copies, with stock twice: results of stock, of the mode, and whether stock agrees with itself."""
        players = self.copy(["off", mode] + ["off"] * (4 if w.random_index() else 1))
        results = []
        for p in players:
            p.must(f"set statement_timeout = '{timeout}'")
            for a in before:
                p.play(a)
                p.must(f"set statement_timeout = '{timeout}'")
            results.append(p.play(act))
        return results[0], results[1], all(first_difference(results[0], r, "off") is None for r in results[2:])

    def judge(self, w, act, mode, stock, other):
        """A difference has been seen: is it one?  Prints it, if so."""
        committed = [a for a in self.played if a.commit or not a.transaction]
        # what depends on how long a read takes shows again where no read is fast enough
        chance = w.random_index() or self.placed(0) != self.placed(self.modes.index(mode))
        for m in (mode, "slow", "force") if mode == "on" else (mode, mode):
            # (what was before may have led to another order of rows by itself)
            for before in ([], committed) if committed and not chance else ([],):
                try:
                    a, b, agrees = self.again(w, act, before, m)
                except Lost as e:
                    self.crash(w, act, m, e, before)
                    return
                if not agrees:
                    self.undetermined(w, act, mode, stock, other)
                    return
                n = first_difference(a, b, m)
                if n is not None:
                    small = act
                    if self.classes[self.class_of(act, m, what_differs(a, b, n))] < 2:
                        small, a, b = self.shrink(w, act, before, m, a, b)
                    n = first_difference(a, b, m)
                    self.found(w, small, m if m == mode else f"{m} (and once {mode})", before, what_differs(a, b, n), show(a, b, n))
                    return
        n = first_difference(stock, other, mode)
        if timed_out(stock) or timed_out(other):
            self.counts["too slow"] += 1
            return
        if chance:
            self.undetermined(w, act, mode, stock, other)
            return
        self.found(w, act, mode, committed, what_differs(stock, other, n) + ", seen once", show(stock, other, n))

    def placed(self, number):
        """Where the rows of a copy are.  Look-ahead may prune a page earlier (docs/safety.md), and later rows then lie elsewhere."""
        p = self.players[number]
        return [p.execute(f"select md5(string_agg(tableoid || ' ' || ctid || ' ' || x, ',' order by tableoid, ctid)) from (select tableoid, ctid, {x} as x from {t}) s").rows
                for t, x in (("t", "id"), ("o", "id"), ("b", "id"), ("p", "id"))]

    def undetermined(self, w, act, mode, stock, other):
        """What decides it is chance, in stock as well."""
        self.counts["undetermined"] += 1
        if self.args.verbose:
            self.report("\n".join([f"(undetermined: world {w.number}.{act.number} ({act.kind}), seed {w.seed}, {mode}: {w.describe()}"] +
                                  show(stock, other, first_difference(stock, other, mode))) + ")")

    def shrink(self, w, act, before, mode, a, b):
        """Fewer steps and settings, as long as it differs."""
        end = time.time() + SHRINK_SECONDS
        wanted = what_differs(a, b, first_difference(a, b, mode))

        def attempt(**changes):
            nonlocal act, a, b
            if time.time() > end:
                return
            smaller = copy.copy(act)
            for name, value in changes.items():
                setattr(smaller, name, value)
            x, y, agrees = self.again(w, smaller, before, mode)
            n = first_difference(x, y, mode)
            if agrees and n is not None and what_differs(x, y, n) == wanted:
                act, a, b = smaller, x, y
        try:
            for i in range(len(act.steps) - 1, -1, -1):
                if len(act.steps) > 1 and not str(act.steps[i]).startswith("declare"):
                    attempt(steps=act.steps[:i] + act.steps[i + 1:])
            for k in list(act.planner):
                attempt(planner={x: v for x, v in act.planner.items() if x != k})
            if act.role:
                attempt(role=None)
        except Lost:
            self.wait()
        return act, a, b

    def class_of(self, act, mode, wrong):
        return f"{wrong}: {act.kind}, {mode.split()[0]}"

    def found(self, w, act, mode, before, wrong, lines):
        self.counts["failed"] += 1
        known = self.class_of(act, mode, wrong)
        self.classes[known] += 1
        head = [f"\n=== world {w.number}.{act.number} ({act.kind}), seed {w.seed}: {mode} differs from stock: {wrong}",
                f"repeat: test/fuzz/run --bindir ... --seed {w.seed} --only-world {w.number}.{act.number}" + (f" --shape {','.join(self.args.shape)}" if self.args.shape else ""),
                f"shape: {w.describe()}"] + ([f"behind {len(before)} acts before it"] if before else []) + lines
        if self.classes[known] > 3:
            # what has been seen that often is one fault, most likely
            self.report("\n".join(head[:2] + lines[:4]))
            return
        self.report("\n".join(head + ["repro (psql, after: test/fuzz/run --world-base | psql):"] + [f"  {line}" for line in script(w, act, mode, before).splitlines()]))

    def crash(self, w, act, mode, error, before=()):
        self.wait()
        tail = self.said()
        self.found(w, act, mode, before, "connection lost", [str(error)[:500], "server log:"] + [f"  {line}" for line in tail])

    def said(self):
        """What the server has said since the last crash: the failed assertion, or its last lines."""
        with open(self.server.log, errors="replace") as f:
            f.seek(self.log_end)
            lines = f.read().splitlines()
            self.log_end = f.tell()
        traps = [i for i, line in enumerate(lines) if "TRAP:" in line or "PANIC:" in line or "was terminated by signal" in line]
        return lines[traps[0]:][:12] if traps else lines[-20:]

    def wait(self):
        """Until the server is there again, and not about to end what it has begun."""
        self.close()
        if self.keeper:
            self.keeper.close()
            self.keeper = None
        end = time.time() + 90
        while time.time() < end:
            time.sleep(1)
            try:
                s = self.connect("postgres")
                time.sleep(1)
                s.must("select 1")
                s.close()
                return
            except (Lost, SystemExit):
                pass

    # ---- playing ----------------------------------------------------------

    def one(self, w, act):
        """One act in all copies."""
        results, began = [], time.time()
        for p in self.players.values():
            try:
                results.append(p.play(act))
                if p.mode == "off" and timed_out(results[0]):
                    self.counts["too slow"] += 1
                    self.seconds[act.kind] += time.time() - began
                    self.copy(self.modes)
                    return
            except Lost as e:
                self.crash(w, act, p.mode, e)
                self.rebuild(w)
                return
        self.seconds[act.kind] += time.time() - began
        self.count(act, results)
        for mode, result in zip(self.modes[1:], results[1:]):
            if first_difference(results[0], result, mode) is None:
                continue
            self.judge(w, act, mode, results[0], result)
            self.rebuild(w)
            return
        self.played.append(act)

    def count(self, act, results):
        self.counts["acts"] += 1
        self.counts["comparisons"] += len(results) - 1
        self.kinds[act.kind] += 1
        for _, outcome in results[0]:
            self.counts["rows"] += len(outcome.rows or ())
            self.counts["notices"] += len(outcome.notices)
            if outcome.error:
                self.sqlstates[outcome.error[1].decode()] += 1
                if self.args.verbose:
                    self.messages[f"{act.kind}: {outcome.error[2].decode()[:110]}"] += 1
                self.counts["errors"] += 1

    def play(self, w, only=None):
        self.rebuild(w)
        for number, kind in enumerate(acts.kinds_of(w), 1):
            act = acts.make(w, number, kind)
            if only is not None and number > only:
                break
            if self.args.acts and kind not in self.args.acts and number != only:
                continue
            self.one(w, act)
            if self.counts["failed"] >= self.args.max_failures:
                break
        self.finish(w)
        self.counts["worlds"] += 1

    def finish(self, w):
        """What the world has become."""
        bad = []
        for p in self.players.values():
            try:
                bad += [f"{p.mode}: {line}" for line in self.damage(p)]
            except Lost as e:
                bad.append(f"{p.mode}: {e}")
                self.wait()
                break
        if bad:
            self.counts["failed"] += 1
            self.classes["damage"] += 1
            self.report(f"\n=== world {w.number}, seed {w.seed}: damage at its end\nshape: {w.describe()}\n" + "\n".join(f"  {line}" for line in bad[:20]))

    def damage(self, p):
        bad = []
        p.must("set statement_timeout = 0")
        for (index,) in p.must("select c.oid::regclass from pg_class c join pg_am am on am.oid = c.relam join pg_index i on i.indexrelid = c.oid where c.relkind = 'i' and "
                               "am.amname = 'btree' and c.relnamespace = 'public'::regnamespace and indisvalid order by 1::text"):
            out = p.execute(f"select bt_index_check('{index}', true)")
            # (a class of operators may raise an error)
            if out.error and out.error[1] in (b"XX001", b"XX002"):
                bad.append(f"{index}: {describe(out)}")
        pins = p.must("select count(*) from pg_buffercache where pinning_backends > 0 and reldatabase = (select oid from pg_database where datname = current_database())")
        if int(pins[0][0]):
            time.sleep(1)
            rest = p.must("select relfilenode, relblocknumber from pg_buffercache where pinning_backends > 0 and reldatabase = (select oid from pg_database where datname = current_database())")
            bad += [f"pinned: {row}" for row in rest]
        return bad

    def all(self, worlds, deadline=None):
        for number, shape in worlds:
            if self.counts["failed"] >= self.args.max_failures or (deadline and time.time() > deadline):
                break
            self.play(world.World(self.args.seed, number, shape, self.have), None)
            if self.note:
                self.note(self)
        self.close()

    def summary(self):
        return {"counts": self.counts, "kinds": self.kinds, "sqlstates": self.sqlstates, "classes": self.classes, "failed_ddl": self.failed_ddl, "seconds": self.seconds, "messages": self.messages}


# ---- the whole --------------------------------------------------------------

def server_settings(settings, bindir):
    """Those of the other tests, with the library's defaults, and these.  (Where processes of the server read, an act
    waits for a busy machine's scheduler at each block.)"""
    version = subprocess.run([os.path.join(bindir, "postgres"), "--version"], check=True, capture_output=True, text=True).stdout
    rest = {k: v for k, v in settings.items() if not k.startswith("pg_lookahead.")}
    return dict({**rest, **SERVER_SETTINGS}, **({"io_method": "sync"} if int(re.search(r"\d+", version)[0]) >= 18 else {}))


def build_tableam(bindir, top):
    """test/modules/tableam, compiled for this server; None where that cannot be."""
    source, config = os.path.join(top, "test", "modules", "tableam"), os.path.join(bindir, "pg_config")
    if not os.path.isdir(source) or not os.path.exists(config):
        return None
    target = tempfile.mkdtemp(prefix="pg_lookahead.tableam.", dir=os.environ.get("TMPDIR", "/var/tmp"))
    os.chmod(target, 0o755)
    shutil.copytree(source, target, dirs_exist_ok=True)
    done = subprocess.run(["make", "-s", "-C", target, f"PG_CONFIG={config}", "with_llvm=no"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    library = os.path.join(target, "la_test_tableam.so")
    if done.returncode or not os.path.exists(library):
        print(f"(without another table access method, which could not be compiled:\n{done.stdout})")
        shutil.rmtree(target, ignore_errors=True)
        return None
    return library


def base_statements(have):
    """[(statement, optional)] of the template."""
    out = [(sql, sql.startswith("create collation")) for sql in world_base.create_base(have["extensions"])]
    if have["tableam"]:
        out += [(f"create function la_other_handler(internal) returns table_am_handler language c as '{have['tableam']}', 'la_test_table_handler'", False),
                ("create access method la_other type table handler la_other_handler", False)]
    return out + [(sql, False) for sql in world_base.split(world_base.TRIGGERS)]


def make_base(server, have):
    s = Session(server)
    s.must("set client_min_messages = warning")
    for sql in world_base.create_roles() + ["create database worlds_base"]:
        s.must(sql)
    s.close()
    s = Session(server, database="worlds_base")
    s.must("set client_min_messages = warning")
    for sql, optional in base_statements(have):
        out = s.execute(sql)
        if out.error and not optional:
            raise SystemExit(f"unexpected error: {sql}\n  {describe(out)}")
        have["icu"] = have["icu"] and not (out.error and optional)
    s.must("vacuum freeze")
    s.close()


def what_there_is(server, args, top):
    s = Session(server)
    major = int(s.must("show server_version_num")[0][0]) // 10000
    names = {n for (n,) in s.must("select name from pg_available_extensions")}
    s.close()
    wanted = [e for e in EXTENSIONS if e in names and not (e == "pg_lookahead" and args.stock)]
    library = build_tableam(args.bindir, top)
    return {"major": major, "extensions": wanted, "icu": True, "tableam": library}


def numbered(args, have, jobs, job):
    """(number, shape) of the worlds of one job."""
    only = int(args.only_world.split(".")[0]) if args.only_world else None
    pinned = dict(pair.split("=") for pair in args.shape)
    for number, shape in enumerate(shapes.shapes(args.seed), 1):
        shape = shapes.settle({**shape, **pinned})
        if shape["key"] == "citext" and "citext" not in have["extensions"]:
            shape["key"] = "text"
        if only is not None:
            if number == only:
                yield number, shape
                return
        elif number >= args.first_world + args.worlds:
            return
        elif number >= args.first_world and number % jobs == job:
            yield number, shape


def job(server, number, jobs, args, have, deadline, out):
    """A process, with a server of its own: the crash of one does not disturb the other."""
    name = f"w{number}"
    try:
        with (contextlib.nullcontext(server) if number == 0 else Server(args.bindir, None if args.stock else "pg_lookahead", server.settings)) as own:
            if number:
                make_base(own, have)
            j = Job(own, name, args, have, lambda line: out.put(("text", line)),
                    lambda j: out.put(("progress", (name, j.counts["comparisons"], j.counts["failed"], j.counts["worlds"]))))
            if args.only_world and "." in args.only_world:
                for n, shape in numbered(args, have, jobs, number):
                    j.play(world.World(args.seed, n, shape, have), int(args.only_world.split(".")[1]))
            else:
                j.all(numbered(args, have, jobs, number), deadline)
            if number and not args.stock and j.counts["failed"] == 0:
                for line in own.complaints():
                    j.counts["failed"] += 1
                    out.put(("text", f"\n=== server log of job {number}: {line}"))
        out.put(("end", j.summary()))
    except BaseException as e:
        out.put(("text", f"job {name}: {type(e).__name__}: {e}\n{traceback.format_exc()}"))
        out.put(("end", None))
        raise


def compare(server, args, top):
    """All worlds that the arguments ask for; the sums of the jobs' counters."""
    began = reported = time.time()
    deadline = args.minutes and began + args.minutes * 60
    have = what_there_is(server, args, top)
    make_base(server, have)
    jobs = args.jobs
    context = multiprocessing.get_context("fork")
    out = context.Queue()
    processes = [context.Process(target=job, args=(server, k, jobs, args, have, deadline, out)) for k in range(jobs)]
    for p in processes:
        p.start()
    sums = {name: Counter() for name in ("counts", "kinds", "sqlstates", "classes", "failed_ddl", "seconds", "messages")}
    done, left = {}, jobs
    while left:
        try:
            what, value = out.get(timeout=5)
        except queue.Empty:
            if not any(p.is_alive() for p in processes) and out.empty():
                print("a job has died")
                sums["counts"]["failed"] += 1
                break
            continue
        if what == "text":
            print(value, flush=True)
        elif what == "progress":
            done[value[0]] = value[1:]
        else:
            left -= 1
            if value is None:
                sums["counts"]["failed"] += 1
            else:
                for name, counter in value.items():
                    sums[name].update(counter)
        if time.time() - reported > 60 and done:
            reported = time.time()
            n, failed, worlds = (sum(v[i] for v in done.values()) for i in (0, 1, 2))
            print(f"{worlds} worlds, {n} comparisons, {failed} differ, {n / (reported - began):.0f}/s", flush=True)
    for p in processes:
        p.join()
    if have["tableam"]:
        shutil.rmtree(os.path.dirname(have["tableam"]), ignore_errors=True)
    sums["elapsed"] = time.time() - began
    return sums


def print_sums(sums, verbose):
    c = sums["counts"]
    print(f"{c['worlds']} worlds, {c['acts']} acts, {c['comparisons']} comparisons: {c['rows']} rows, {c['notices']} notices, {c['errors']} errors, {c['too slow']} too slow, "
          f"{c['undetermined']} undetermined; {sums['elapsed']:.0f} s, {c['comparisons'] / sums['elapsed']:.0f}/s")
    print(f"  acts: {', '.join(f'{k} {v}' for k, v in sorted(sums['kinds'].items()))}")
    print(f"  errors: {', '.join(f'{k} {v}' for k, v in sums['sqlstates'].most_common(30))}")
    if sums["classes"]:
        print(f"  differences: {', '.join(f'{k} {v}' for k, v in sums['classes'].most_common())}")
    if verbose:
        print("  statements of worlds that failed:\n" + "\n".join(f"    {v} {k}" for k, v in sums["failed_ddl"].most_common()))
        print("  messages:\n" + "\n".join(f"    {v} {k}" for k, v in sums["messages"].most_common(60)))
        print("  seconds: " + ", ".join(f"{k} {v:.1f}" for k, v in sums["seconds"].most_common()))


def print_base():
    """For psql: the template that the scripts of differences need."""
    print("create database worlds_base;\n\\c worlds_base\nset client_min_messages = warning;")
    have = {"extensions": ("citext", "btree_gist", "pg_lookahead"), "tableam": None}
    for sql in world_base.create_roles() + [sql for sql, _ in base_statements(have)]:
        print(f"{sql};")
