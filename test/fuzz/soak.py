"""
soak.py - a long mixed load with everything that can happen to a server, and looks for what it leaves.

A primary and its standby, all features on, look-ahead forced, the tables of schema.py and some of its own.  Cycles
follow one another.  Each has a rough part and a calm one, and ends with checks:

  readers    generated statements (cases.py), each without look-ahead and with it in one snapshot, on the primary and
             on the standby; what both return must be the same
  writers    INSERT, UPDATE, DELETE, MERGE, COPY, ON CONFLICT, foreign keys, values out of line, VACUUM; sums that hold
             in every snapshot are looked at beside them
  ddl        indexes built, dropped, reindexed, concurrently or not; tables rewritten, truncated, altered
  cancels    of statements (pg_cancel_backend, SIGINT), and ends of sessions (SIGTERM)
  crashes    (rough part) SIGKILL of a session or an auxiliary process, an immediate stop of the primary,
             a restart or crash of the standby

  checks     everybody holds still.  No lock, pin or prepared transaction is left, no session of the calm part
             has grown or keeps more files open, nothing of the server is left in directories; indexes are whole (amcheck), the
             visibility maps right (pg_visibility); the standby has the same rows; the logs have nothing that is
             not expected
"""

import os
import random
import re
import signal
import threading
import time
from collections import Counter

import report
import schema
from main import PHASE2, SERVER_SETTINGS, Fuzz
from server import Lost, Server, Session, left_pins, wait_until

READERS, STANDBY_READERS, WRITERS = 3, 2, 3
CYCLE = (120, 150)          # seconds of the rough and of the calm part
ACCOUNTS = 5000
MEMORY = 32 << 20           # bytes that a session may grow by in a calm part; caches of catalogs have some MB
FILES = 200                 # that a session may keep open

# of errors that a cancel, a crash, the end of a session or a conflict makes
INTERRUPTED = {b"57014", b"57P01", b"57P02", b"57P03", b"40001", b"40P01", b"55P03", b"25P02", b"08006", b"72000"}

SETTINGS = dict(
    SERVER_SETTINGS, autovacuum="on", autovacuum_naptime="2s", max_connections="60", checkpoint_timeout="60s",
    restart_after_crash="on", wal_level="replica", max_wal_senders="5", hot_standby="on", wal_keep_size="512MB",
    max_standby_streaming_delay="2s", log_line_prefix="%m %p %b %e ", lock_timeout="10s", max_files_per_process=str(FILES),
    max_prepared_transactions="5", wal_receiver_status_interval="1s", deadlock_timeout="200ms", max_wal_size="1GB")
for name in ("enable_btree_insert", "enable_index_build", "enable_subplan", "enable_toast", "force"):
    SETTINGS[f"pg_lookahead.{name}"] = "on"

OWN = f"""
create table acc (id int primary key, a int not null, amount bigint not null default 0, w text) with (fillfactor = 70);
insert into acc select i, (hashint4(i) & 2147483647) % 100000, 0, repeat('w', 100) from generate_series(1, {ACCOUNTS}) i;
create index acc_a on acc (a);
create table hist (id bigserial primary key, acc int references acc on delete cascade, d int, note text);
create index hist_acc on hist (acc);
create table docs (id int primary key, n int, doc text);
alter table docs alter doc set storage external;
create unlogged table fast (id int primary key, v text);
create materialized view sums as select a % 100 as a, count(*) as n from acc group by 1;
create unique index sums_a on sums (a);
create extension pg_visibility"""

# {x} and {y}: accounts, {d}: a small number
WRITES = [
    "begin; update acc set amount = amount - {d} where id = least({x}, {y}); update acc set amount = amount + {d} "
    "where id = greatest({x}, {y}); insert into hist (acc, d, note) values ({x}, {d}, repeat('h', {d})); {end}",
    "insert into hist (acc, d, note) select 1 + (g * {x}) % {n}, g, 'many' from generate_series(1, 500) g",
    "insert into acc select g, {d}, 0, 'new' from generate_series({x}, {x} + 200) g on conflict (id) do update set w = excluded.w",
    "merge into acc using (select 1 + (g * {d}) % {n} as id, max(g) as g from generate_series(1, 300) g group by 1) s on acc.id = s.id "
    "when matched and acc.a % 2 = 0 then update set a = s.g when matched then do nothing when not matched then insert values (s.id, s.g, 0, 'm')",
    "update acc set a = (a + {d}) % 100000 where id between {x} and {x} + 100",
    "delete from hist where id in (select id from hist order by id limit 400)",
    "begin; savepoint a; update acc set id = -id where id = {x}; rollback to a; update acc set w = 'b' where id = {x}; {end}",
    "insert into docs values ({d}, 0, (select string_agg(md5((g * {x})::text), '') from generate_series(1, 40 + {d} * 3) g)) "
    "on conflict (id) do update set doc = excluded.doc, n = docs.n + 1",
    "copy (select acc, d, note from hist limit 300) to '{dir}/rows{k}'; copy hist (acc, d, note) from '{dir}/rows{k}'",
    "insert into fast select g, 'f' from generate_series({x}, {x} + 50) g on conflict do nothing; delete from fast where id > {y}",
    "vacuum acc", "vacuum hist", "vacuum (freeze) docs", "vacuum (index_cleanup on) acc", "analyze hist",
]

DDL = [
    "create index concurrently if not exists acc_new on acc (amount, id)", "drop index if exists acc_new",
    "reindex index concurrently acc_a", "reindex index hist_acc", "reindex table docs", "refresh materialized view concurrently sums",
    "vacuum full hist", "cluster docs using docs_pkey", "truncate fast",
    "drop table if exists made; create table made as select g as id, g * 7 % 1000 as k, md5(g::text) as v from generate_series(1, 4000) g; "
    "create index on made (k); create index on made using hash (v); create index on made using gist (int8range(id, null)); "
    "alter table made add primary key (id); alter table made add x int default 5; update made set k = k + 1 where id % 3 = 0",
    "begin; alter table made add y text default 'y'; savepoint a; create index made_later on made (v, k); rollback to a; commit",
    "create index if not exists mixed_new on mixed (c, a)", "drop index if exists mixed_new", "reindex index concurrently vis_i3",
    "alter table dead set (fillfactor = 70)", "analyze",
    "create table if not exists copied (like acc including all); insert into copied select * from acc on conflict do nothing; drop table copied",
]

# What must not be in a log: errors of these classes, and the lines of UNEXPECTED.  All others are of statements
# that are meant to fail, or of what is done to the server.
BAD_CLASSES = ("XX", "58", "53", "54")
UNEXPECTED = re.compile(r"PANIC:|TRAP:|leak|was not closed|could not be unpinned|terminated by signal (?!9:)|terminated by exception|"
                        r"invalid page|unexpected data beyond EOF|corrupt")
# queries of stock standbys that are about to open an index when the primary has dropped it
OF_STANDBYS = re.compile(r"could not open relation with OID \d+$")
EXPECTED_WARNINGS = re.compile(
    r"terminating connection because of|there is (?:no|already a) transaction in progress|canceling wait for|"
    r"could not open (?:file|directory) .*No such file|some data might be corrupted|some useless files may be left|skipping .* --- |"
    # of what is asked of others' sessions
    r"PID \d+ is not a PostgreSQL")


class Standby(Server):
    """Of a primary; a context manager like that."""

    def __init__(self, primary):
        super().__init__(primary.bindir, None, {}, primary.keep)
        self.primary = primary

    def __enter__(self):
        self.command(self.bin("pg_basebackup"), "-h", self.primary.dir, "-U", "fuzz", "-D", self.data, "-R", "-c", "fast", "--no-sync")
        with open(os.path.join(self.data, "postgresql.conf"), "a") as f:
            f.write(f"unix_socket_directories = '{self.dir}'\n")
        self.start()
        return self


class Soak:
    def __init__(self, args, primary, standby):
        self.args, self.primary, self.standby = args, primary, standby
        self.rng = random.Random(f"{args.seed}/soak")
        self.counts = Counter()
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.held = threading.Event()       # everybody is to hold still
        self.idle = {}                      # who -> does it?
        self.sessions = {}                  # who -> its process ID, if that is to be looked at
        self.number = PHASE2
        self.log_read = {}

    def say(self, text):
        print(f"[{time.strftime('%H:%M:%S')}] {text}")

    def count(self, what, n=1):
        with self.lock:
            self.counts[what] += n

    def fail(self, text):
        self.count("failed")
        self.say(f"=== {text}")

    # ---- whoever works ----------------------------------------------------

    def connected(self, make):
        """A session, when there can be one."""
        while not self.over.is_set():
            try:
                return make()
            except (Lost, SystemExit):      # what must not fail has been canceled, or ended
                time.sleep(0.3)
        return None

    def work(self, who, make, step):
        """step(session) again and again, in a session that is made anew when it is lost; until it is over."""
        s, hold = None, True
        while not self.over.is_set():
            if self.held.is_set() and hold:
                self.idle[who] = True
                time.sleep(0.1)
                continue
            self.idle[who] = False
            if s is None:
                s = self.connected(make)
                if s is None:
                    break
                conn = s if isinstance(s, Session) else s.session
                self.sessions[who] = conn.conn.backend_pid
            try:
                step(s)
            except Lost:
                self.count("sessions lost")
                s = None
                self.sessions.pop(who, None)
            except SystemExit as e:
                if not re.search("canceling statement|terminating connection|deadlock|conflict|lock timeout", str(e)):
                    self.fail(f"{who}: {e}")
                self.count("interrupted")
                s = None
                self.sessions.pop(who, None)
            except Exception as e:      # pylint: disable=broad-except
                self.fail(f"{who}: {e!r}")
                s = None
        self.idle[who] = True

    def next_number(self):
        with self.lock:
            self.number += 1
            return self.number

    def fuzz_of(self, server, samples):
        def make():
            f = Fuzz(self.args, server)
            f.samples = samples
            f.session = f.connect() if server is self.primary else Session(server)
            if server is not self.primary:
                f.set_timeout(f.session)
            return f
        return make

    def compare(self, fuzz):
        case = fuzz.generate(self.next_number())
        if fuzz.server is not self.primary and re.search(r"\btmp\b|for (?:no key )?(?:update|share)|nextval", " ".join(case.steps)):
            return
        if fuzz.server is not self.primary:
            case.isolation = "repeatable read"
        wrong, off, on = fuzz.judge(case)
        self.count("statements on the primary" if fuzz.server is self.primary else "statements on the standby")
        if wrong is None:
            self.count("passed")
        elif any(o.error and o.error[1] in INTERRUPTED for o in off[1] + on[1]):
            self.count("interrupted")
        elif wrong == "plan":
            self.count("plans that changed")
        else:
            self.count("failed")
            with self.lock:
                report.mismatch(fuzz, case, wrong, off, on)

    def write(self, s, rng, k):
        sql = rng.choice(WRITES).format(
            x=rng.randint(1, ACCOUNTS), y=rng.randint(1, ACCOUNTS), d=rng.randint(1, 99), n=ACCOUNTS, k=k, dir=self.primary.dir,
            end=rng.choice(["commit", "commit", "commit", "rollback"]))
        if rng.random() < 0.4:
            sql = Fuzz.change(rng, rng.choice([t for t in schema.READABLE if t != "tmp"]), self.next_number())
        self.each(s, sql)
        if rng.random() < 0.1:
            out = s.execute("select sum(amount) from acc")
            if not out.error and out.rows[0][0] != b"0":
                self.fail(f"a sum of amounts is {out.rows[0][0]}")
        self.count("writes")

    def each(self, s, sql):
        """Statements one by one; what fails ends their transaction."""
        for part in sql.split("; "):
            out = s.execute(part)
            if out.error and out.error[1][:2].decode() in BAD_CLASSES:
                self.fail(f"{part}: {out.error}")
        s.execute("rollback") if s.conn.transaction_status != 0 else None

    def change_schema(self, s, rng):
        for name, in s.must("select indexrelid::regclass from pg_index where not indisvalid and indrelid >= 16384"):
            s.execute(f"drop index if exists {name}")
        self.each(s, rng.choice(DDL))
        self.count("ddl")
        time.sleep(0.3)

    def disturb(self, s, rng):
        """Cancel, or end, a session."""
        time.sleep(rng.uniform(0.05, 0.6))
        pid = rng.choice(list(self.sessions.values()) or [0])
        how = rng.choice(["cancel"] * 6 + ["sigint"] * 6 + (["sigterm"] if not self.calm else []))
        if pid and how == "cancel":
            s.execute(f"select pg_cancel_backend({pid})")
        elif pid:
            self.kill(pid, signal.SIGINT if how == "sigint" else signal.SIGTERM)
        self.count(f"{how}s")

    def kill(self, pid, number):
        """Of the primary or the standby only."""
        try:
            if os.readlink(f"/proc/{pid}/cwd") in (self.primary.data, self.standby.data):
                os.kill(pid, number)
                return True
        except OSError:
            pass
        return False

    def crash(self):
        what = self.rng.choice(["session", "session", "auxiliary", "immediate", "standby", "standby crash", "standby session"])
        self.say(f"crash: {what}")
        self.count(f"crashes: {what}")
        if what == "immediate":
            self.primary.stop("immediate")
            self.primary.start()
        elif what == "standby" or what == "standby crash":
            self.standby.stop("fast" if what == "standby" else "immediate")
            self.standby.start()
        else:
            server = self.standby if what == "standby session" else self.primary
            kind = "in ('checkpointer', 'background writer', 'walwriter', 'io worker')" if what == "auxiliary" else "= 'client backend'"
            try:
                s = Session(server)
                pids = s.must(f"select pid from pg_stat_activity where backend_type {kind} and pid <> pg_backend_pid() "
                              "order by random() limit 1")
                s.close()
                if pids:
                    self.kill(int(pids[0][0]), signal.SIGKILL)
            except (Lost, SystemExit):
                pass

    # ---- checks -----------------------------------------------------------

    def hold(self):
        self.held.set()
        if not wait_until(lambda: all(self.idle.values()), 300):
            self.fail(f"do not come to rest: {[w for w, i in self.idle.items() if not i]}")

    def admin(self, server):
        found = []

        def there():
            try:
                found.append(Session(server))
                return True
            except Lost:
                return False
        if not wait_until(there, 300):
            raise SystemExit(f"no connection:\n{server.tail()}")
        found[0].must("set pg_lookahead.enable = off")
        found[0].must("set lock_timeout = 0")
        return found[0]

    def check(self, what, bad):
        if bad:
            self.fail(f"{what}: {bad[:10]}")
        else:
            self.count("checks passed")

    def figures(self):
        """Of each session that is looked at: its process, its own memory, and open files."""
        out = {}
        for who, pid in list(self.sessions.items()):
            try:
                with open(f"/proc/{pid}/status") as f:
                    anonymous = int(re.search(r"RssAnon:\s+(\d+)", f.read())[1]) * 1024
                out[who] = (pid, anonymous, len(os.listdir(f"/proc/{pid}/fd")))
            except (OSError, TypeError):
                pass
        return out

    def check_growth(self, before, after):
        grown = []
        for who, (pid, memory, files) in after.items():
            if who in before and before[who][0] == pid:
                self.count("sessions measured")
                self.grown = max(self.grown, memory - before[who][1])
                if memory - before[who][1] > MEMORY:
                    grown.append(f"{who}: {memory - before[who][1]} bytes")
                if files > FILES + 50:
                    grown.append(f"{who}: {files} open files")
        self.check("sessions have grown", grown)

    def check_left(self, server, name):
        s = self.admin(server)
        self.check(f"{name}: locks", s.must(
            "select pid, locktype, relation::regclass, mode from pg_locks l where pid <> pg_backend_pid() and "
            "exists (select from pg_stat_activity a where a.pid = l.pid and backend_type = 'client backend')"))
        self.check(f"{name}: transactions", s.must(
            "select pid, state, query from pg_stat_activity where application_name = 'fuzz' and pid <> pg_backend_pid() and xact_start is not null"))
        self.check(f"{name}: pins", left_pins(s))
        s.close()

    def check_structure(self):
        s, bad = self.admin(self.primary), []
        s.must("set client_min_messages = warning")
        for (name,) in s.must("select c.oid::regclass from pg_class c join pg_am am on am.oid = c.relam join pg_index i on i.indexrelid = c.oid "
                              "where c.relkind = 'i' and am.amname = 'btree' and c.relnamespace >= 2200 and indisvalid and relpersistence <> 't'"):
            out = s.execute(f"select bt_index_check('{name}', heapallindexed => true)")
            if out.error and out.error[1] != b"42P01":
                bad.append(f"{name}: {out.error[2].decode()}")
        self.check("amcheck", bad)
        self.check("visibility maps", s.must(
            "select c.oid::regclass, f, t from pg_class c cross join lateral (select 'frozen', t::text from pg_check_frozen(c.oid) t union all "
            "select 'visible', t::text from pg_check_visible(c.oid) t) x(f, t) where relkind in ('r', 'm', 't') and relnamespace >= 99 "
            "and relpersistence <> 't' and pg_relation_size(c.oid, 'vm') > 0 and c.oid >= 16384 limit 10"))
        self.check("foreign keys", s.must("select h.id from hist h left join acc a on a.id = h.acc where a.id is null limit 5"))
        s.close()

    def check_standby(self):
        p, s = self.admin(self.primary), self.admin(self.standby)
        target = p.must("select pg_current_wal_flush_lsn()")[0][0]
        if not wait_until(lambda: s.must(f"select pg_last_wal_replay_lsn() >= '{target}'")[0][0] == "t", 300):
            self.fail("the standby does not follow")
            return
        for table in ["acc", "hist", "docs"] + [t for t in schema.READABLE if t not in ("tmp", "unl")]:
            query = f"select count(*), sum(hashtextextended(x::text, 0)::numeric) from {table} x"
            self.check(f"{table} on the standby", [] if p.must(query) == s.must(query) else [p.must(query), s.must(query)])
        p.close()
        s.close()

    def check_files(self, server, name):
        left = [f for d, _, files in os.walk(server.data) for f in files if f.startswith("pgsql_tmp") or f.startswith("pg_lookahead")
                and not d.endswith("pg_stat")]
        self.check(f"{name}: files left", left)

    def check_log(self, server, name):
        with open(server.log, errors="replace") as f:
            f.seek(self.log_read.get(name, 0))
            lines = f.readlines()
            self.log_read[name] = f.tell()
        bad = []
        for line in lines:
            m = re.match(r"\S+ \S+ \S+ \d+ (.*?) (\w{5}) (\w+):  (.*)", line)
            if UNEXPECTED.search(line) and not EXPECTED_WARNINGS.search(line):
                bad.append(line.rstrip())
            elif m and m[3] in ("ERROR", "FATAL") and m[2][:2] in BAD_CLASSES and m[2] != "53300" and not (
                    name == "standby" and OF_STANDBYS.match(m[4])):
                bad.append(line.rstrip())
            elif m and m[3] == "WARNING" and not EXPECTED_WARNINGS.search(m[4]):
                bad.append(line.rstrip())
        self.check(f"{name}: log", bad)

    def check_all(self):
        for server, name in ((self.primary, "primary"), (self.standby, "standby")):
            self.check_left(server, name)
        self.check_structure()
        self.check_standby()
        for server, name in ((self.primary, "primary"), (self.standby, "standby")):
            self.check_files(server, name)
            self.check_log(server, name)

    # ---- all of it --------------------------------------------------------

    def cycle(self, until):
        """A rough part, a calm one, and the checks."""
        rough, calm = CYCLE
        self.calm = False
        self.held.clear()
        end = min(time.time() + rough, until)
        while time.time() < end:
            time.sleep(self.rng.uniform(8, 25))
            if time.time() < end:
                self.crash()
        self.calm = True
        self.hold()
        self.held.clear()
        time.sleep(min(calm / 3, max(0, until - time.time())))
        self.hold()
        before = self.figures()
        self.held.clear()
        time.sleep(min(calm * 2 / 3, max(0, until - time.time())))
        self.hold()
        self.grown = 0
        self.check_growth(before, self.figures())
        self.check_all()

    def run(self, minutes):
        samples = self.prepare()
        threads = []

        def begin(who, make, step):
            self.idle[who] = False
            threads.append(threading.Thread(target=self.work, args=(who, make, step), daemon=True))

        for k in range(READERS):
            begin(f"reader {k}", self.fuzz_of(self.primary, samples), self.compare)
        for k in range(STANDBY_READERS):
            begin(f"standby reader {k}", self.fuzz_of(self.standby, samples), self.compare)
        for k in range(WRITERS):
            rng = random.Random(f"{self.args.seed}/soak writer {k}")
            begin(f"writer {k}", lambda: Session(self.primary), lambda s, rng=rng, k=k: self.write(s, rng, k))
        rng = random.Random(f"{self.args.seed}/soak ddl")
        begin("ddl", lambda: Session(self.primary), lambda s: self.change_schema(s, rng))
        begin("cancels", lambda: Session(self.primary), lambda s: self.disturb(s, self.rng))
        self.calm = False
        until, last = time.time() + minutes * 60, 0
        for t in threads:
            t.start()
        while time.time() < until and self.counts["failed"] < self.args.max_failures:
            self.cycle(until)
            last += 1
            self.say(f"cycle {last}: a session has grown by {self.grown >> 10} kB at most; " +
                     ", ".join(f"{k} {v}" for k, v in sorted(self.counts.items())))
        self.over.set()
        for t in threads:
            t.join(120)
        return self.counts["passed"] + self.counts["checks passed"], self.counts["failed"]

    def prepare(self):
        fuzz = Fuzz(self.args, self.primary)
        fuzz.setup()
        indexes = [r[0] for r in fuzz.session.must(
            "select i.indexrelid::regclass from pg_index i join pg_class c on c.oid = indexrelid "
            "join pg_am am on am.oid = c.relam where am.amname = 'btree' and c.relkind = 'i' and "
            f"indrelid::regclass::text in {schema.OTHER_TABLES} order by 1")]
        fuzz.session.must("set client_min_messages = warning")
        for sql in schema.before_writers(indexes) + OWN.split(";\n"):
            fuzz.session.must(sql)
        fuzz.session.close()
        self.standby.__enter__()
        return fuzz.samples


def soak(args):
    """For args.minutes; returns the exit code."""
    with Server(args.bindir, "pg_lookahead", SETTINGS, args.keep, ["--data-checksums"]) as primary:
        standby = Standby(primary)
        try:
            passed, failed = Soak(args, primary, standby).run(args.minutes or 480)
        finally:
            standby.__exit__()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
