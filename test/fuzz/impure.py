"""
impure.py - randomized comparison of statements that have effects, or fail.

How it works
  1. impure_cases.py makes cases: some steps of one transaction, of which most have functions
     with effects, stable functions whose values change, expressions that fail, and so on, in
     places chosen at random.  The tables (impure_schema.py) are tiny, since it takes very many
     statements to come across what one of them shows.
  2. A session runs each case with look-ahead off, with thresholds that such tables reach, and
     forced, each in a transaction that is rolled back.  All of it is sent at once (libpq's
     pipeline) and read afterwards.
  3. Required: the same rows in the same order, command tags, errors with all their fields, notices
     in order, and effects: sequences (one of them is a digest of the order of calls, which
     survives an error; of a write that fails, not the one that its plan draws from), the rows
     of the log in order, and settings.  Where workers are at work, rows are compared as a
     multiset, and the outcome must be one that stock has, too; of several errors the one that
     a process comes to first is reported, so there another error will do, if a single process
     fails as stock does.
  4. EXPLAIN (ANALYZE) is compared with its figures where the plan is read to its end.  Where a
     node may stop before (EARLY_END), rows that were taken ahead and not used are counted, as
     src/README.md says; then only the plan is compared, and what it returns.
  5. Each job has a process, a session and a database of its own.

A difference is shortened by shrink.py and printed as a psql script; run --impure-schema prints
the script that makes the tables.
"""

import copy
import multiprocessing
import queue
import re
import time
from collections import Counter

from psycopg import pq

import impure_cases
import impure_schema
import shrink
from impure_gen import strip
from server import ERROR_FIELDS, Lost, Session

RUNS = ("off", "low thresholds", "forced")
TIMEOUT = "3s"               # of a statement, and on a busy machine:
LONG_TIMEOUT = "120s"
CLEAN_EVERY = 400           # cases, until dead rows are vacuumed away
TRIES = 8                   # of a case whose outcome is undetermined
ROUNDS = 60                 # ... of stock, until it has come to all that was seen
ALONE = ({"max_parallel_workers": "0"}, {"max_parallel_workers": "1", "parallel_leader_participation": "off"})

# (only a setval() of a value that has been used tells currval())
START = ["setval('sq', 1)", "setval('logseq', 1)", "setval('trail', 1)", "set_config('my.off', '0', true)",
         "setseed(0.5)"]
AFTER = ("select current_setting('my.off'), (select string_agg(n || ':' || coalesce(x::text, '-'), ',' order by n) from log)")
SEQUENCES = ("select (select array[last_value::text, is_called::text] from sq), "
             "(select last_value from trail), (select array[last_value::text, is_called::text] from logseq)")
STATEMENTS = {b"rollback": "rollback", b"after": AFTER, b"sequences": SEQUENCES}
LEVELS = {"read committed": b"begin_rc", "repeatable read": b"begin_rr", "serializable": b"begin_s"}


# Nodes that may leave others before their end, and what these then count.  (A hash join may take one
# row of its outer side, find its table empty, and end.)
EARLY_END = re.compile(rb"Limit|Semi Join|Anti Join|Merge|SubPlan|InitPlan|WindowAgg|Inner Unique|Materialize|never executed|"
                       rb"->  Hash \(actual rows=0")
FIGURES = re.compile(rb" \((actual rows=[^)]*|never executed)\)$")
COUNTED = re.compile(rb"^ *(Rows Removed by|Index Searches|Heap Fetches|Heap Blocks|Hits|Buckets|Sort Method|Full-sort|"
                     rb"Pre-sorted|Storage|Batches|Planned Partitions)")


def comparable(step):
    """The result of EXPLAIN (ANALYZE), without figures that nobody has promised."""
    tag, rows, error = step
    if rows and any(EARLY_END.search(r[0]) for r in rows if r[0]):
        rows = [(FIGURES.sub(b"", r[0]),) for r in rows if r[0] and not COUNTED.match(r[0])]
    return (tag, rows, error)


class Result:
    """What one run of a case has shown."""

    __slots__ = ("steps", "after", "notices", "writes")

    def __init__(self, writes=False):
        self.steps, self.after, self.notices, self.writes = [], [], [], writes

    def key(self, ordered):
        steps = self.steps
        if not ordered:
            # nor is it known which process fails
            return [(tag, rows and sorted(rows, key=str), error and error[:-1]) for tag, rows, error in steps]
        after = self.after
        if self.writes and self.errors():
            # a write that fails may have drawn more from the sequence "sq" (docs/safety.md)
            tag, rows, error = after[-1]
            after = after[:-1] + [(tag, rows and [row[1:] for row in rows], error)]
        return (steps, after, self.notices)

    def errors(self):
        return [s[2] for s in self.steps if s[2]]

    def timed_out(self):
        return any(e[1] == b"57014" for e in self.errors())


def prologue(case, settings):
    """A query that sets the scene of one run."""
    calls = [f"set_config('{k}', '{v}', true)" for k, v in settings.items()]
    # last: it takes the rights to do the rest away
    role = case.planner.get("role")
    planner = [f"set_config('{k}', '{v}', true)" for k, v in case.planner.items() if k != "role"]
    return f"select {', '.join(START + planner + calls)}, mark()" + (f", set_config('role', '{role}', true)" if role else "")


def settings_of(case, run):
    if run == 0:
        return {"pg_lookahead.enable": "off"}
    return {f"pg_lookahead.{k}": v for k, v in case.ahead[run - 1].items()}


class Impure(Session):
    """A session that runs cases in pipelines."""

    def __init__(self, server, database):
        super().__init__(server, database=database)
        for sql in impure_schema.create_temporary():
            self.must(sql)
        # workers are for the cases that ask for them
        self.must("set max_parallel_workers_per_gather = 0")
        self.must("set pg_lookahead.explain = off")
        self.must("set my.off = 0")
        for level, name in LEVELS.items():
            self.conn.prepare(name, f"begin isolation level {level}".encode())
        for name, sql in STATEMENTS.items():
            self.conn.prepare(name, sql.encode())
        self.set_timeout(TIMEOUT)
        self.conn.enter_pipeline_mode()

    def set_timeout(self, timeout):
        self.must(f"set statement_timeout = '{timeout}'")

    def outside(self, *statements):
        """Run statements outside of the pipeline, and of transactions."""
        self.conn.exit_pipeline_mode()
        for sql in statements:
            self.must(sql)
        self.conn.enter_pipeline_mode()

    def clean(self):
        self.outside("truncate log", *(f"vacuum {t}" for t in impure_schema.TARGETS))

    # ---- sending ----------------------------------------------------------

    def send_run(self, case, run, steps, plan):
        """Queue up one run of the case; plan: only the making of its plan."""
        conn = self.conn
        conn.send_query_prepared(LEVELS[case.isolation], None)
        conn.send_query_params(prologue(case, settings_of(case, run)).encode(), None)
        if plan:
            conn.send_prepare(b"s", steps[0])
            conn.send_query_params(b"explain (costs off) execute s", None)
        for i, sql in enumerate(steps[:0] if plan else steps):
            if case.prepared and i == 0:
                conn.send_query_prepared(b"s", None)
            else:
                conn.send_query_params(sql, None)
            conn.pipeline_sync()
        if plan:
            conn.pipeline_sync()
        else:
            conn.send_query_prepared(b"after", None)
            conn.pipeline_sync()
        conn.send_query_prepared(b"rollback", None)
        conn.send_query_prepared(b"sequences", None)
        conn.pipeline_sync()
        if case.named:
            conn.send_query_params(b"deallocate p", None)
            conn.pipeline_sync()

    # ---- reading ----------------------------------------------------------

    def read(self, single_row=False):
        """One command's result: (tag, rows, error)."""
        conn, rows = self.conn, None
        tag = error = None
        if single_row:
            try:
                conn.set_single_row_mode()
            except Exception:
                pass
        while (res := conn.get_result()) is not None:
            status = res.status
            if status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.SINGLE_TUPLE):
                value, columns = res.get_value, range(res.nfields)
                rows = (rows or []) + [tuple([value(i, j) for j in columns]) for i in range(res.ntuples)]
                tag = res.command_status
            elif status == pq.ExecStatus.COMMAND_OK:
                tag = res.command_status
            elif status == pq.ExecStatus.PIPELINE_ABORTED:
                tag = b"skipped"
            else:
                if conn.status != pq.ConnStatus.OK:
                    raise Lost(res.error_message.decode(errors="replace") or conn.error_message.decode(errors="replace"))
                error = tuple([res.error_field(f) for f in ERROR_FIELDS])
            res.clear()
        return (tag, rows, error)

    def read_sync(self):
        res = self.conn.get_result()
        if res is None or res.status != pq.ExecStatus.PIPELINE_SYNC:
            raise Lost(f"no end of a group: {res and res.status} {self.conn.error_message.decode(errors='replace')}")

    def read_run(self, case, nsteps, plan):
        out = Result(case.kind in ("write", "with_write"))
        self.read()
        out.after.append(self.read()[2])
        if plan:
            out.steps = [self.read(), self.read()]
            self.read_sync()
        else:
            for i in range(nsteps):
                step = self.read(case.single_row and i == 0)
                out.steps.append(comparable(step) if case.kind == "analyze" else step)
                self.read_sync()
            out.after.append(self.read())
            self.read_sync()
        self.read()
        out.after.append(self.read())
        self.read_sync()
        if case.named:
            self.read()
            self.read_sync()
        return out

    def run(self, case, runs=None):
        """Results of the runs (0 is stock), and the plan, if it was made before."""
        runs = range(len(case.ahead) + 1) if runs is None else runs
        steps = [strip(s).encode() for s in case.steps]
        self.notices = []
        if case.prepared:
            self.send_run(case, 0, steps, True)
        for run in runs:
            self.send_run(case, run, steps, False)
        if case.prepared:
            self.conn.send_query_params(b"deallocate s", None)
            self.conn.pipeline_sync()
        plan = self.read_run(case, 0, True) if case.prepared else None
        results = [self.read_run(case, len(steps), False) for _ in runs]
        if case.prepared:
            self.read()
            self.read_sync()
        # a notice is seen when it arrives, which may be before the result in front of it is read
        k = -1 - bool(case.prepared) + 1
        for notice in self.notices:
            if notice[2] == b"run begins":
                k += 1
            elif k > 0:
                results[k - 1].notices.append(notice)
        return results, plan


class Compared:
    """Runs cases and judges them; what one job does."""

    def __init__(self, server, database, seed, report, most_failures=5):
        self.server, self.database, self.seed, self.report = server, database, seed, report
        self.most_failures = most_failures
        self.counts, self.kinds, self.sqlstates, self.classes = Counter(), Counter(), Counter(), Counter()
        self.session = None
        self.connect()

    def connect(self):
        end = time.time() + 60
        while True:
            try:
                self.session = Impure(self.server, self.database)
                return
            except Lost:
                if time.time() > end:
                    raise
                time.sleep(0.2)

    def differs(self, case, runs=None):
        """None, or the number of the run that is not like stock's, and the results."""
        results, plan = self.session.run(case, runs)
        stock = results[0].key(case.ordered)
        for i, r in enumerate(results[1:], 1):
            if r.key(case.ordered) != stock:
                return (i if runs is None else runs[i]), results, plan
        return None, results, plan

    def is_undetermined(self, case, run):
        """Does stock come to this run's outcome, too, if it is asked often enough?  Or does the
        statement fail either way, and is it only the race of its processes that decides with what?"""
        seen = []
        here = [r for _ in range(TRIES) for r in self.session.run(case, (run,))[0]]
        for _ in range(ROUNDS):
            seen += [r.key(False) for _ in range(TRIES) for r in self.session.run(case, (0, 0))[0]]
            if all(r.key(False) in seen for r in here):
                return True
        fails = all(r.errors() for r in here) and all(any(error for _, _, error in key) for key in seen)
        return fails and self.agrees_alone(case, run)

    def agrees_alone(self, case, run):
        """Is the run like stock's, in all that is compared and in order, where one process does all
        of it: the leader, or a worker?"""
        for alone in ALONE:
            single = copy.copy(case)
            single.planner, single.ordered = {**case.planner, **alone}, True
            stock, other = self.session.run(single, (0, run))[0]
            if stock.key(True) != other.key(True):
                return False
        return True

    def one(self, number):
        case = impure_cases.make(self.seed, number)
        try:
            self.judge(case)
        except Lost as e:
            self.connect()
            # else it is what another job has found
            if "crash of another server process" not in str(e):
                self.counts["failed"] += 1
                self.classes["connection lost"] += 1
                self.report(shrink.lost(self, case, str(e)))

    def judge(self, case):
        run, results, plan = self.differs(case)
        if any(r.timed_out() for r in results):
            self.counts["slow"] += 1
            run, results, plan = self.with_time(case)
            if results[0].timed_out():
                self.counts["too slow"] += 1
                self.report(f"statement {case.number}: more than {LONG_TIMEOUT}")
                return
        if run is not None and case.again and self.is_undetermined(case, run):
            self.counts["undetermined"] += 1
            run = None
        self.counts["statements"] += 1
        self.kinds[case.kind] += 1
        errors = results[0].errors()
        if errors:
            self.counts["errors"] += 1
            self.sqlstates[errors[0][1].decode()] += 1
        self.counts["rows"] += sum(len(s[1] or ()) for s in results[0].steps)
        self.counts["notices"] += len(results[0].notices)
        if run is not None:
            self.counts["failed"] += 1
            self.report(shrink.mismatch(self, case, run, results, plan))

    def with_time(self, case):
        self.session.outside(f"set statement_timeout = '{LONG_TIMEOUT}'")
        found = self.differs(case)
        self.session.outside(f"set statement_timeout = '{TIMEOUT}'")
        return found

    def all(self, numbers, deadline=None, progress=None):
        for n, number in enumerate(numbers):
            if self.counts["failed"] >= self.most_failures or (deadline and time.time() > deadline):
                break
            if n % CLEAN_EVERY == CLEAN_EVERY - 1:
                self.session.clean()
                if progress:
                    progress(self)
            self.one(number)

    def summary(self):
        return {"counts": self.counts, "kinds": self.kinds, "sqlstates": self.sqlstates, "classes": self.classes}


def make_database(server, name, stock):
    """A database with the tables, as a template of those of the jobs."""
    s = Session(server)
    s.must(f"create database {name}")
    s.close()
    s = Session(server, database=name)
    s.must("set client_min_messages = warning")
    for sql in impure_schema.create_all():
        s.must(sql)
    s.must(impure_schema.MARK)
    if not stock:
        s.must("create extension if not exists pg_lookahead")
    s.close()


def job(server, database, seed, numbers, deadline, most_failures, out):
    """A process."""
    try:
        compared = Compared(server, database, seed, lambda text: out.put(("text", text)), most_failures)
        compared.all(numbers, deadline, lambda c: out.put(("progress", (database, c.counts["statements"], c.counts["failed"]))))
        out.put(("end", compared.summary()))
    except BaseException as e:
        out.put(("text", f"job {database}: {type(e).__name__}: {e}"))
        out.put(("end", None))
        raise


def compare(server, seed, count, jobs=1, first=1, deadline=None, most_failures=5, stock=False, quiet=False, note=None):
    """Cases first ... first + count - 1 by so many jobs; returns the sums of their counters.

    note(statements, failed) gets what has been compared since its last call.
    """
    began = reported = time.time()
    make_database(server, "impure", stock)
    s = Session(server)
    names = [f"impure{k}" for k in range(jobs)]
    for name in names:
        s.must(f"create database {name} template impure")
    s.close()
    context = multiprocessing.get_context("fork")
    out = context.Queue()
    processes = [context.Process(target=job, args=(server, name, seed, range(first + k, first + count, jobs), deadline,
                                                   most_failures, out)) for k, name in enumerate(names)]
    for p in processes:
        p.start()
    sums = {name: Counter() for name in ("counts", "kinds", "sqlstates", "classes")}
    done, noted, left = {}, (0, 0), jobs
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
            n, failed = (sum(v[i] for v in done.values()) for i in (0, 1))
            if not quiet:
                print(f"{n} statements compared, {failed} differ, {n / (reported - began):.0f}/s", flush=True)
            if note:
                note(n - noted[0], failed - noted[1])
                noted = (n, failed)
    for p in processes:
        p.join()
    if note:
        c = sums["counts"]
        note(c["statements"] - noted[0], c["failed"] - noted[1])
    sums["seconds"] = time.time() - began
    return sums
