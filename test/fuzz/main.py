"""
main.py - randomized differential test: look-ahead on must equal look-ahead off.

How it works
  1. A temporary server with pg_lookahead preloaded, the tables of schema.py.
  2. For each case of cases.py, in one session and with nobody else writing: EXPLAIN and all
     steps with look-ahead off, then with it on under random settings.  Required: the same
     plans, rows in the same order (as a multiset when parallel), errors, notices, command
     tags.  DML runs on two identical copies, which are then compared.
  3. A second phase does the same for reading cases while two sessions update, delete, insert
     and vacuum: there both runs are in one transaction, hence in one snapshot.
  4. Index builds (builds.py): generated tables and indexes; the pages must be the same.
  5. Statements with effects, and failing ones (impure.py), on tables of their own.
     (And, if asked for: statements over damaged pages, damage.py; generated schemas, differ.py.)
  6. At the end: amcheck of every btree index, no buffer left pinned, a clean server log, and
     the statistics have to show that look-ahead was at work at all (if not yet, there are up to
     four times as many cases; what they add is not in the sum).

What differs is asked of stock again: an outcome that it comes to, too, is no mismatch, and counted
as undetermined.  A mismatch prints the case, both plans, the first rows that differ and a psql script that
was shortened as long as it still failed.  The exit code is then 1.

When plans differ, the table may have grown in between (cases that modify roll back, but leave
dead rows).  The case is then run again; a plan that depends on the setting stays different.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import damage
import differ
import impure
import impure_schema
import record
import report
import schema
from builds import BUILDS, Builds
from cases import KEYS, Gen
from server import Lost, Server, Session, left_pins, wait_until

PHASE2 = 1000000        # case numbers from here on run beside writers

# cases, and statements of impure.py
SIZES = {"quick": (400, 4000), "medium": (1200, 12000), "full": (3000, 40000)}

# Of a statement; no case needs a tenth of it, unless a machine is very busy, and one that
# reaches it is named and not counted.  How many cases there are does not depend on time, or
# else no two runs would have the same number of checks.
TIMEOUT = "300s"

# How often stock is asked again for an outcome that it has not come to at first.
STOCK_RUNS = 20

SERVER_SETTINGS = {
    # small, so that scans do miss; the operating system has the rest
    "shared_buffers": "8MB",
    "temp_buffers": "800kB",
    "autovacuum": "off",
    "bgwriter_lru_maxpages": "0",
    "checkpoint_timeout": "1h",
    "fsync": "off",
    "synchronize_seqscans": "off",
    "jit": "off",
    "max_connections": "20",
    "max_worker_processes": "12",
    "max_parallel_workers": "6",
    "max_pred_locks_per_transaction": "500",
    "log_line_prefix": "%p ",
    "log_min_messages": "warning",
    # off by default
    "pg_lookahead.enable_index_build": "on",
    "pg_lookahead.enable_subplan": "on",
    "pg_lookahead.enable_toast": "on",
    "log_min_error_statement": "panic",
    "deadlock_timeout": "200ms",
}


class Fuzz:
    def __init__(self, args, server):
        self.args = args
        self.server = server
        self.counts = Counter()
        self.kinds = Counter()
        self.ahead_settings = None
        self.shutdown = threading.Event()
        self.writing = threading.Event()
        self.writing.set()
        self.session = None

    # ---- set-up -----------------------------------------------------------

    def connect(self):
        """A session with its temporary table."""
        s = Session(self.server)
        s.must("set client_min_messages = warning")
        for sql in schema.create_temporary(random.Random(f"{self.args.seed}/tmp"), self.args.seed):
            s.must(sql)
        s.must("set client_min_messages = notice")
        self.set_timeout(s)
        return s

    @staticmethod
    def set_timeout(s):
        s.must(f"set statement_timeout = '{TIMEOUT}'")

    def setup(self):
        s = Session(self.server)
        schema.have_btree_gist = bool(s.must("select from pg_available_extensions where name = 'btree_gist'"))
        rng = random.Random(f"{self.args.seed}/schema")
        for sql in schema.create_all(rng, self.args.seed):
            s.must(sql)
        if not self.args.stock:
            s.must("create extension if not exists pg_lookahead")
        s.must("create extension if not exists pg_buffercache")
        s.must("checkpoint")
        s.close()
        self.session = self.connect()
        self.samples = {}
        for table in schema.TABLES:
            self.samples[table] = self.sample(table)

    def sample(self, table):
        """Literals for each expression that conditions use: present, and out of range."""
        types = {"u": "uuid", "ts": "timestamp", "n": "numeric", "f": "bool"}
        beyond = {"id": ["-1", "999999"], "a": ["-5", "99999"], "b": ["-1", "12"],
                  "c": ["-1", "99999"], "(a % 100)": ["100"], "ts": ["'infinity'::timestamp"],
                  "n": ["-1", "'NaN'::numeric", "1e9"], "t": ["''", "'zzz'"]}
        out = {}
        for expr in {e for k in KEYS for e, _ in k}:
            literals = []
            for (v,) in self.session.must(
                    f"select distinct x from (select {expr} as x, id from {table} where {expr} "
                    f"is not null order by rnd(id, 77, 1000000) limit 80) s order by 1"):
                if expr in types:
                    literals.append(f"'{v}'::{types[expr]}")
                elif "t" in expr:
                    literals.append(f"'{v}'")
                else:
                    literals.append(v)
            out[expr] = literals + beyond.get(expr, [])
        return out

    # ---- running a case ---------------------------------------------------

    def settings(self, case, on):
        out = [f"set {k} = '{v}'" for k, v in case.planner.items()]
        if not on:
            return out + ["set pg_lookahead.enable = off"]
        return out + ["set pg_lookahead.enable = on"] + [
            f"set pg_lookahead.{k} = '{v}'" for k, v in case.ahead.items()]

    def plans(self, s, case, copy):
        """EXPLAIN's lines, or its error: the statement itself may be invalid."""
        out = []
        for sql in case.explain:
            e = s.execute(self.fill(f"explain (costs off) {sql}", copy))
            if e.error:
                s.execute("rollback")
                return out + [str(e.error)]
            out += [r[0].decode().replace(f"copy{copy}", "copyN").replace(f"child{copy}", "childN")
                    for r in e.rows]
        return out

    @staticmethod
    def fill(sql, copy):
        return sql.replace("{T}", f"copy{copy}").replace("{C}", f"child{copy}")

    COUNTERS = ("select relname, seq_scan, seq_tup_read, idx_scan, idx_tup_fetch "
                "from pg_stat_xact_user_tables where schemaname !~ '^pg_toast' union all "
                "select c.relname, pg_stat_get_xact_numscans(c.oid), "
                "pg_stat_get_xact_tuples_returned(c.oid), 0, 0 "
                "from pg_class c where relkind = 'i' and relnamespace >= 2200")

    def counters(self, s):
        return {r[0]: [int(x or 0) for x in r[1:]] for r in s.must(self.COUNTERS)}

    def run(self, case, on, copy=1, transaction=True):
        """One run: (plans, outcomes).  The session is left as it was found."""
        s = self.session
        if case.cold and transaction:
            s.must("set pg_lookahead.enable = off")
            s.must(schema.READ_FILLER)
        for sql in self.settings(case, on):
            s.must(sql)
        for sql in case.before:
            s.execute(sql)
        plans = self.plans(s, case, copy)
        if transaction and not case.dml:
            s.must(f"begin isolation level {case.isolation}")
        # an error ends the transaction: what follows fails in both runs alike
        was = self.counters(s) if case.counters else None
        outcomes = [s.execute(self.fill(sql, copy)) for sql in case.steps]
        if case.counters and not outcomes[-1].error:
            now = self.counters(s)
            diff = sorted((k, [x - y for x, y in zip(v, was.get(k, [0] * 4))])
                          for k, v in now.items())
            outcomes[-1].tag = (outcomes[-1].tag, [d for d in diff if any(d[1])])
        if case.after_commit:
            s.execute("commit")
            outcomes += [s.execute(sql) for sql in case.after_commit]
        if transaction and not case.dml:
            s.execute("rollback")
        if case.before:
            s.execute("deallocate all")
        if transaction:
            s.must("reset all")
            self.set_timeout(s)
        return plans, outcomes

    def pair(self, case):
        """Both runs.  In the second phase they share a transaction."""
        if case.dml:
            off = self.run(case, False, copy=1)
            on = self.run(case, True, copy=2)
            return off, on
        if case.number >= PHASE2:
            s = self.session
            s.must(f"begin isolation level {case.isolation}")
            try:
                s.must("select 1 from small limit 1")       # takes the snapshot
                s.must("savepoint start")
                off = self.run(case, False, transaction=False)
                s.execute("rollback to savepoint start")
                # an error kept the first run from doing so
                s.execute("deallocate all")
                on = self.run(case, True, transaction=False)

                def again():
                    s.execute("rollback to savepoint start")
                    s.execute("deallocate all")
                    return self.run(case, False, transaction=False)
                off = self.ask_stock_again(case, off, on, again)
            finally:
                s.execute("rollback")
                s.must("reset all")
                self.set_timeout(s)
            return off, on
        if case.counters:
            self.run(case, False)       # sets hint bits and kills dead entries
        off, on = self.run(case, False), self.run(case, True)
        return self.ask_stock_again(case, off, on, lambda: self.run(case, False)), on

    def ask_stock_again(self, case, off, on, again):
        """A run of stock that is like the other one, if it comes to that, too; or else the first."""
        if self.verdict(case, off, on) == "outcome":
            for _ in range(STOCK_RUNS):
                other = again()
                if self.verdict(case, other, on) is None:
                    self.counts["undetermined"] += 1
                    return other
        return off

    def verdict(self, case, off, on):
        """None, or what is wrong in a word."""
        if off[0] != on[0]:
            return "plan"
        for a, b in zip(off[1], on[1]):
            if case.dml:
                a, b = a.renamed(b"copyN", b"childN"), b.renamed(b"copyN", b"childN")
            if a.key(case.ordered) != b.key(case.ordered):
                if b.error and b.error[1] == b"57014" or a.error and a.error[1] == b"57014":
                    return "timeout"
                return "outcome"
        return None

    def tables_differ(self):
        """Findings about the copies, which must have the same rows.

        They should have them at the same places, too, or else the next statement may see
        them in another order.  When places differ - a page was pruned in one of the
        copies only - both are written anew.
        """
        s, out = self.session, []
        s.must("set max_parallel_workers_per_gather = 0")
        for table in ("copy", "child"):
            digests = [s.must("select count(*), sum(hashtextextended(x::text, 0)::numeric), "
                              "sum(hashtextextended(x::text || ctid::text, 0)::numeric) "
                              f"from {table}{k} x")[0] for k in "12"]
            if digests[0][:2] != digests[1][:2]:
                out.append(f"{table}1 {digests[0]} {table}2 {digests[1]}")
            elif digests[0] != digests[1]:
                self.counts["copies rewritten"] += 1
                for k in "12":
                    s.must(f"cluster {table}{k} using {table}{k}_order")
        s.must("reset all")
        self.set_timeout(s)
        return out

    @staticmethod
    def timed_out(off, on):
        return any(o.error and o.error[1] == b"57014" for o in off[1] + on[1])

    def judge(self, case):
        """Run a case until its plans are comparable: (verdict, off, on)."""
        try:
            return self.compared(case)
        finally:
            self.writing.set()

    def compared(self, case):
        # beside writers and VACUUM a plan may change from one moment to the next, and does so for
        # seconds together, so in the end they rest; one that depends on the setting never comes to
        # be the same
        tries = 20 if case.number >= PHASE2 else 3
        for n in range(tries):
            if n == 10:
                self.writing.clear()
            off, on = self.pair(case)
            wrong = self.verdict(case, off, on)
            if case.dml:
                # it cannot be repeated; a copy that has drifted still gives the same rows
                if wrong == "plan":
                    self.counts["plan drift"] += 1
                    wrong = None
                return wrong, off, on
            if wrong != "plan" and not self.estimates_may_order(case, wrong, off, on):
                return wrong, off, on
            self.counts["plan drift"] += 1
        return wrong, off, on

    @staticmethod
    def estimates_may_order(case, wrong, off, on):
        """The same rows in another order, where VACUUM beside the case may have made it.

        A HashAggregate returns its groups in an order that depends on how many of them the
        planner expected, and this on the size of tables that other sessions change.
        """
        return (wrong == "outcome" and case.number >= PHASE2 and "HashAggregate" in str(off[0]) and
                all(a.key(False) == b.key(False) for a, b in zip(off[1], on[1])))

    def generate(self, number):
        rng = random.Random(f"{self.args.seed}/{number}")
        return Gen(rng, self.samples, readonly=number >= PHASE2).case(number)

    def one(self, number):
        case = self.generate(number)
        wrong, off, on = self.judge(case)
        if self.timed_out(off, on) and not case.dml:
            self.counts["too slow"] += 1
            print(f"case {number}: a statement took more than {TIMEOUT}")
            return
        if wrong is None and case.dml:
            differ = self.tables_differ()
            if differ:
                wrong = "tables: " + "; ".join(differ)
        self.kinds[case.kind] += 1
        self.counts["errors"] += any(o.error for o in off[1])
        self.counts["rows"] += sum(len(o.rows or ()) for o in off[1])
        if wrong is None:
            self.counts["passed"] += 1
            return
        self.counts["failed"] += 1
        report.mismatch(self, case, wrong, off, on)
        if wrong.startswith("tables"):
            raise SystemExit("the copies differ from here on: giving up")

    # ---- second phase -----------------------------------------------------

    @staticmethod
    def change(rng, table, n):
        """A statement that changes keys, deletes, or inserts from n on, or VACUUM."""
        lo = rng.randint(1, 9000)
        some = f"id between {lo} and {lo + rng.randint(0, 40)}"
        return rng.choice([
            f"update {table} set a = a + 1, b = (b + 1) % 10 where {some}",
            f"update {table} set c = null, ts = ts + interval '1 hour' where {some}",
            f"update {table} set w = 'hot' where {some}",
            f"delete from {table} where {some} and id % 9 = 0",
            f"insert into {table} select {n} + row_number() over (), a, b, c, t, "
            f"md5(u::text || {n})::uuid, ts, n, f, null, p, r from {table} where {some}",
            f"vacuum {table}", f"vacuum (index_cleanup on) {table}",
        ])

    def writer(self, k):
        """Changes tables, until it is asked to stop."""
        s = Session(self.server)
        rng = random.Random(f"{self.args.seed}/writer{k}")
        n = 200000 * (k + 1)
        while not self.shutdown.is_set():
            if not self.writing.wait(0.1):
                continue
            n += 100
            # a deadlock between the two is fine
            s.execute(self.change(rng, rng.choice([t for t in schema.READABLE if t != "tmp"]), n))
            time.sleep(0.004)
        s.close()

    def beside_writers(self, numbers):
        indexes = [r[0] for r in self.session.must(
            "select i.indexrelid::regclass from pg_index i join pg_class c on c.oid = indexrelid "
            "join pg_am am on am.oid = c.relam where am.amname = 'btree' and c.relkind = 'i' and "
            f"indrelid::regclass::text in {schema.OTHER_TABLES} order by 1")]
        self.session.must("set client_min_messages = warning")
        for sql in schema.before_writers(indexes):
            self.session.must(sql)
        self.session.must("reset client_min_messages")
        threads = [threading.Thread(target=self.writer, args=(k,)) for k in range(2)]
        for t in threads:
            t.start()
        try:
            self.all(numbers)
        finally:
            self.shutdown.set()
            for t in threads:
                t.join()

    def all(self, numbers):
        for number in numbers:
            if self.counts["failed"] >= self.args.max_failures:
                print(f"stopped after {self.counts['failed']} failures")
                break
            try:
                self.one(number)
            except Lost as e:
                self.counts["failed"] += 1
                report.lost(self, self.generate(number), e)
                wait_until(self.reconnect, 60)

    def reconnect(self):
        try:
            self.session = self.connect()
            return True
        except Lost:
            return False

    def impure_statements(self, count, seconds=None, jobs=1, first=1, quiet=True):
        """Cases of impure.py, which have databases of their own."""
        deadline = time.time() + seconds if seconds else None
        before = {} if self.args.stock else self.activity()
        sums = impure.compare(self.server, self.args.seed, count, jobs, first, deadline, self.args.max_failures,
                              self.args.stock, quiet, lambda n, failed: self.record.add("impure", n, failed))
        c = sums["counts"]
        self.counts["passed"] += c["statements"] - c["failed"]
        self.counts["failed"] += c["failed"]
        print(f"impure statements: {', '.join(f'{k} {v}' for k, v in sorted(sums['kinds'].items()))}; {c['rows']} rows, "
              f"{c['notices']} notices, {c['errors']} with an error, {c['too slow']} too slow, {c['undetermined']} undetermined; "
              f"{sums['seconds']:.0f} s, {c['statements'] / sums['seconds']:.0f}/s")
        print(f"  errors: {', '.join(f'{k} {v}' for k, v in sums['sqlstates'].most_common())}")
        if sums["classes"]:
            print(f"  differences: {', '.join(f'{k} {v}' for k, v in sums['classes'].most_common())}")
        if not self.args.stock:
            done = {kind: {k: v - before.get(kind, {}).get(k, 0) for k, v in row.items() if isinstance(v, int)}
                    for kind, row in self.activity().items()}
            print("  " + "; ".join(f"{kind}s attached {row['scans_attached']}, activated {row['scans_activated']}" for kind, row in done.items()))
            if c["statements"] >= 2000:
                self.check("look-ahead was hardly at work in impure statements: nothing has been tested",
                           [f"{kind}: {row}" for kind, row in done.items()
                            if not kind.startswith("bitmap") and kind not in ("subplan", "toast", "tid scan") and row["scans_activated"] < 20
                            and (kind not in ("index insert", "foreign key") or c["statements"] >= 10000)])

    def worlds(self):
        """Schemas of many shapes, and what is done in them (differ.py)."""
        args = self.args
        sums = differ.compare(self.server, args, str(Path(__file__).resolve().parents[2]))
        c = sums["counts"]
        self.record.add("worlds", c["comparisons"], c["failed"])
        differ.print_sums(sums, args.verbose)
        self.counts["passed"] += max(c["comparisons"] - c["failed"], 0)
        self.counts["failed"] += c["failed"]
        if c["failed"] == 0:
            self.check("server log", self.server.complaints())
        if not args.stock:
            activity = self.activity()
            print("  " + "; ".join(f"{kind}s attached {row['scans_attached']}, activated {row['scans_activated']}" for kind, row in activity.items()))
            # keys have too few rows in most worlds: some hundred have enough of those that do
            many = c["comparisons"] >= 40000
            kinds = ("index scan", "nested loop", "subplan", "index insert") + (("foreign key",) if many else ())
            if c["comparisons"] >= 4000:
                self.check("look-ahead was hardly at work in worlds: nothing has been tested",
                           [f"{kind}: {row}" for kind, row in activity.items()
                            if row["scans_activated"] < (20 if many else 10) and kind in kinds])

    def recorded(self, phase, function):
        """Run a phase, and record what it has compared."""
        before = self.counts.copy()
        function()
        failed = self.counts["failed"] - before["failed"]
        self.record.add(phase, self.counts["passed"] - before["passed"] + failed, failed)

    # ---- the end ----------------------------------------------------------

    def check(self, what, bad):
        """A final check: bad is a list of findings."""
        self.counts["failed" if bad else "passed"] += 1
        if bad:
            print(f"\n=== {what}:")
            for line in bad[:20]:
                print(f"  {line}")

    def amcheck(self):
        s, bad = self.session, []
        s.must("set statement_timeout = 0")
        s.must("set client_min_messages = warning")
        for (name,) in s.must(
                "select c.oid::regclass from pg_class c join pg_am am on am.oid = c.relam "
                "where c.relkind = 'i' and am.amname = 'btree' and c.relnamespace >= 2200 "
                "and pg_table_size(c.oid) > 0 order by 1"):
            out = s.execute(f"select bt_index_check('{name}', heapallindexed => true)")
            if out.error:
                bad.append(f"{name}: {out.error[2].decode()}")
        return bad

    def index_against_heap(self):
        """Every index gives as many rows as the heap: no live row has been marked dead."""
        s, bad = self.session, []
        s.must("set max_parallel_workers_per_gather = 0")
        s.must("set enable_bitmapscan = off")
        s.must("set pg_lookahead.enable = off")
        for table in schema.TABLES:
            digest = f"select count(*), sum(hashtext(id::text || coalesce(c::text, '')))"
            s.must("set enable_seqscan = on")
            s.must("set enable_indexscan = off")
            s.must("set enable_indexonlyscan = off")
            heap = s.must(f"{digest} from {table}")
            s.must("set enable_seqscan = off")
            s.must("set enable_indexscan = on")
            s.must("set enable_indexonlyscan = on")
            s.must("set enable_sort = off")
            for key in KEYS:
                inner = f"select id, c from {table} order by " + ", ".join(
                    f"{e} {d}" for e, d in key)
                if s.must(f"{digest} from ({inner} offset 0) s") != heap:
                    bad.append(f"{table} by {key}")
            s.must("reset all")
        # hash, GiST and SP-GiST
        s.must("set pg_lookahead.enable = off")
        s.must("set enable_bitmapscan = off")
        for table in ("copy1", "copy2"):
            heap = s.must(f"{digest} from {table}")
            for where in ("p <@ box(point(-9999, -9999), point(9999, 9999))",
                          "r && int4range(-9999, 9999)"):
                s.must("set enable_seqscan = off")
                if s.must(f"{digest} from (select * from {table} where {where} offset 0) s") != heap:
                    bad.append(f"{table} by {where}")
            s.must("set enable_hashjoin = off")
            s.must("set enable_mergejoin = off")
            if s.must(f"{digest} from (select t.* from generate_series(0, 49) g join {table} t "
                      "on t.id % 50 = g offset 0) s") != heap:
                bad.append(f"{table} by hash")
            s.must("set enable_seqscan = on")
        s.must("reset all")
        return bad

    def activity(self):
        """Figures of pg_stat_lookahead, as {kind: {column: value}}."""
        if self.session:
            # some statistics are reported at the end of a transaction only
            self.session.must("select 1")
        s = Session(self.server)
        s.must("set client_min_messages = warning")
        s.must("create extension if not exists pg_lookahead")
        res = s.must("select to_jsonb(v)::text from pg_stat_lookahead v")
        s.close()
        out = {}
        for (text,) in res:
            row = json.loads(text)
            out[row.pop("kind")] = row
        return out

    def idle(self, activity):
        """Where look-ahead has done too little to have been tested."""
        scans = ("scans_attached", "scans_activated")
        blocks = ("blocks_foreseen", "blocks_issued")
        # heap blocks of bitmaps are the server's from 18 on; foreign keys are in impure statements;
        # a subplan, or a scan with values out of line, is attached only when it has read a block; the
        # rows whose TIDs a case has were read a moment before
        counted = {"hash join": scans, "foreign key": (), "toast": blocks, "subplan": blocks, "tid scan": ("blocks_foreseen",), "bitmap heap scan": (), "bitmap index scan": scans + ("leaf_pages_issued",)}
        return [f"{kind}: {name} = {row.get(name)}" for kind, row in activity.items()
                for name in counted.get(kind, scans + blocks)
                if (row.get(name) or 0) < 50]

    def until_busy(self, first, most):
        """More cases, at most so many, where all phases together gave some kind of look-ahead too few."""
        passed = self.counts["passed"]
        while first < most and self.counts["failed"] == 0 and self.idle(self.activity()):
            self.all(range(first, first + 50))
            first += 50
        more = self.counts["passed"] - passed
        if more:
            print(f"{more} more cases than are counted, until each kind of look-ahead was at work")
            self.counts["passed"] = passed

    def index_builds(self, numbers):
        """Cases of builds.py, which have sessions of their own."""
        builds = Builds(self)
        builds.all(numbers)
        rare = builds.finish()
        if not self.args.stock and self.args.only is None:
            self.check("the library hardly built any index: nothing has been tested", rare)

    def finish(self):
        self.check("dead or damaged index entries (bt_index_check)", self.amcheck())
        self.check("index and heap disagree", self.index_against_heap())
        self.check("buffers left pinned", left_pins(self.session))
        self.check("server log", self.server.complaints())
        if not self.args.stock:
            activity = self.activity()
            for kind, row in activity.items():
                print(f"{kind}: " + ", ".join(f"{k} {v}" for k, v in row.items()
                                              if isinstance(v, (int, float))))
            self.check("look-ahead was hardly at work: nothing has been tested",
                       [] if self.args.only is not None or self.args.builds else self.idle(activity))


def words(text):
    return text.split(",")


def arguments():
    p = argparse.ArgumentParser(prog="test/fuzz/run", description="see test/fuzz/main.py")
    p.add_argument("--bindir")
    p.add_argument("--major", help="(for the caller's convenience; not used)")
    p.add_argument("--seed", type=int)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--medium", action="store_true")
    p.add_argument("--full", action="store_true")
    p.add_argument("--queries", type=int)
    p.add_argument("--only", type=int, metavar="CASE")
    p.add_argument("--beside", type=int, metavar="N", help="only so many cases of the second phase")
    p.add_argument("--builds", type=int, metavar="N", help="only so many index builds")
    p.add_argument("--impure", type=int, metavar="N", help="only so many impure statements")
    p.add_argument("--impure-only", type=int, metavar="CASE")
    p.add_argument("--impure-schema", action="store_true", help="print a script that makes their tables")
    p.add_argument("--damage", type=int, metavar="N", help="only so many cases of damaged pages, with checksums and without")
    p.add_argument("--soak", action="store_true", help="soak.py, for so many minutes; eight hours by default")
    p.add_argument("--first-case", type=int, default=1, help="the first one of --damage")
    p.add_argument("--worlds", type=int, metavar="N", help="only so many schemas, and what is done in them")
    p.add_argument("--first-world", type=int, default=1, help="the first one of --worlds")
    p.add_argument("--only-world", metavar="W[.A]", help="a single schema of the seed, up to its act A")
    p.add_argument("--modes", type=words, help="of the modes of --worlds, only these, separated by commas")
    p.add_argument("--acts", type=words, help="of the acts of --worlds, only these kinds")
    p.add_argument("--shape", type=words, default=[], metavar="F=V,...", help="all --worlds have these features")
    p.add_argument("--verbose", action="store_true", help="with --worlds: what could not be made, and what took how long")
    p.add_argument("--world-base", action="store_true", help="print a script that makes the database that the repros of worlds need")
    p.add_argument("--jobs", type=int, default=1, help="sessions that --impure uses, or servers that --worlds does")
    p.add_argument("--minutes", type=float, help="--impure and --worlds end then, and each half of --damage")
    p.add_argument("--report", action="store_true", help="print what has been compared so far")
    p.add_argument("--stock", action="store_true")
    p.add_argument("--keep", action="store_true")
    p.add_argument("--max-failures", type=int, default=5)
    args = p.parse_args()
    if not args.bindir and not args.report and not args.impure_schema and not args.world_base:
        p.error("--bindir is missing")
    if args.only_world:
        args.worlds = args.jobs = 1
    if args.seed is None:
        args.seed = int(time.time()) % 100000
    args.size = "full" if args.full else "medium" if args.medium else "quick"
    if args.queries is None:
        args.queries = SIZES[args.size][0]
    return args


def describe(server):
    """The server, as it says itself what it is."""
    s = Session(server)
    version = s.must("show server_version")[0][0].split()[0]
    assertions = s.must("show debug_assertions")[0][0]
    s.close()
    print(f"PostgreSQL {version}, debug_assertions {assertions}")
    return version.split(".")[0] + (" with assertions" if assertions == "on" else "")


def phases(fuzz):
    """All of them, or those that the arguments name."""
    args = fuzz.args
    if args.only is not None and args.only >= BUILDS:
        fuzz.index_builds([args.only])
    elif args.only is not None:
        fuzz.all([args.only])
    elif args.builds:
        fuzz.recorded("builds", lambda: fuzz.index_builds(range(BUILDS, BUILDS + args.builds)))
    elif args.beside:
        fuzz.beside_writers(range(PHASE2, PHASE2 + args.beside))
    else:
        beside = args.queries // 5
        fuzz.recorded("reading and writing", lambda: fuzz.all(range(1, args.queries - beside + 1)))
        if fuzz.counts["failed"] == 0:
            fuzz.recorded("beside writers", lambda: fuzz.beside_writers(range(PHASE2, PHASE2 + beside)))
        # in proportion to the others
        fuzz.recorded("builds", lambda: fuzz.index_builds(range(BUILDS, BUILDS + args.queries * 2 // 15)))
        fuzz.impure_statements(SIZES[args.size][1])
        if not args.stock:
            fuzz.until_busy(args.queries - beside + 1, 4 * args.queries)


def compare(fuzz, server):
    """Everything between the server's start and its end."""
    args, began = fuzz.args, time.time()
    if args.worlds:
        fuzz.worlds()
        return
    if args.impure or args.impure_only is not None:
        first = 1 if args.impure_only is None else args.impure_only
        fuzz.impure_statements(args.impure or 1, args.minutes and args.minutes * 60, args.jobs, first, quiet=False)
        fuzz.check("server log", server.complaints())
        return
    fuzz.setup()
    print(f"tables made in {time.time() - began:.0f} s")
    phases(fuzz)
    try:
        fuzz.finish()
    except Lost as e:
        fuzz.check(f"connection lost in the final checks: {e}", server.tail().splitlines() or ["no log"])
    c = fuzz.counts
    print(f"cases: {', '.join(f'{k} {v}' for k, v in sorted(fuzz.kinds.items()))}")
    print(f"{c['rows']} rows, {c['errors']} cases with an error, {c['too slow']} too slow, {c['undetermined']} undetermined, "
          f"{c['plan drift']} plans drifted, {c['copies rewritten']} copies rewritten, {time.time() - began:.0f} s")


def damaged(args):
    """Cases of damage.py, which have servers of their own."""
    version = subprocess.run([f"{args.bindir}/postgres", "--version"], check=True, capture_output=True, text=True).stdout
    args.no_checksums_option = int(re.search(r"\d+", version)[0]) >= 18
    settings = dict(SERVER_SETTINGS, log_min_error_statement="panic", restart_after_crash="on", full_page_writes="off")
    sums = [damage.compare(args, settings, checksums) for checksums in (False, True)]
    passed, failed = (sum(s[i] for s in sums) for i in (0, 1))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    sys.stdout.reconfigure(line_buffering=True)
    args = arguments()
    if args.report:
        return record.report()
    if args.impure_schema:
        return impure_schema.print_script()
    if args.world_base:
        return differ.print_base()
    what = (f"{args.impure} impure statements" if args.impure else f"{args.worlds} worlds" if args.worlds else
            f"{args.damage or args.queries} cases")
    print(f"seed {args.seed}, {what}, {args.bindir}")
    if args.damage:
        return damaged(args)
    if args.soak:
        import soak         # which imports this file  # pylint: disable=import-outside-toplevel
        return soak.soak(args)
    preload = None if args.stock else "pg_lookahead"
    settings = differ.server_settings(SERVER_SETTINGS, args.bindir) if args.worlds else SERVER_SETTINGS
    with Server(args.bindir, preload, settings, args.keep) as server:
        fuzz = Fuzz(args, server)
        fuzz.record = record.Record(describe(server), args.bindir, args.stock)
        compare(fuzz, server)
    print(f"{fuzz.counts['passed']} passed, {fuzz.counts['failed']} failed")
    return 1 if fuzz.counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
