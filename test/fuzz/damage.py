"""
damage.py - damaged pages: the same rows or the same error as without look-ahead.

A database is made once and copied twice, file by file, for each case.  Then pages of its tables,
indexes and toast tables are damaged in both copies alike: bytes anywhere, or where a page is most
sensitive (header, line pointers, heads of tuples, links to siblings), pages that are zeroed,
replaced by others, or cut off.  The same statements run in one copy with look-ahead off, and in the other
with random settings.

What must hold
  - A session that crashes in the second copy crashes in the first one, too.  One exception: with assertions, if
    an index is damaged and the statement ends with an error in the first copy, an assertion in a source file of
    the server may fail first in the second one, since pages of indexes are read ahead of that error, by the
    server's code.  Not one in a header, whose functions are part of the library, too.
  - What the first copy answers in time, so does the second.
  - Outcomes are equal.  Where an index page is damaged, or the statement has a join or a subquery, an error
    may come in place of another outcome: pages of these are read ahead.  With nestloop_reuse_tids, which
    searches btree pages by itself, keys that are out of order may be found, or not, otherwise than by the
    server (docs/safety.md).  Into which page of a GiST index an entry goes is random.
  - A case that fails is repeated without look-ahead.  A server over damaged pages works with what its memory
    happens to hold; so what stock itself does now and then, a crash for a crash, is no failure.

Servers with checksums report most of this when a page is read; those without come to work with it.
"""

import glob
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter

from server import Lost, Outcome, Server, Session, wait_until

BLOCK = 8192
LSN = 8                 # bytes of a page's header
TIMEOUT = "4s"
STOCK = ["set pg_lookahead.enable = off"]
# of a case that has failed, to see what stock does: at most, as long as some outcome of it is not explained
REPETITIONS = 24
PATIENCE = 15           # seconds: a loop of the server over damaged pages need not be interruptible
# of a server that works with damaged pages
ERRORS_AHEAD = {b"XX000", b"XX001", b"XX002", b"58030", b"58P01", b"22021", b"54000", b"53200"}

SCHEMA = """
create table h (id int, a int, b int, t text, p point, r int4range, keys int[], w text) with (fillfactor = 70);
insert into h select i, (i * 7919) % 500, i % 90, md5((i % 300)::text), point(i % 100 + i / 1e5, i / 100 + i / 1e6), int4range(i, i + 20),
    array[i % 10, 100 + i % 50, 1000 + i], repeat('w', 150) from generate_series(1, 1500) i;
create unique index h_id on h (id) with (fillfactor = 30);
create index h_a on h (a, b) with (fillfactor = 20);
create index h_b on h (b) include (id) with (fillfactor = 50);
create index h_t on h (t);
create index h_hash on h using hash (b);
create index h_gist on h using gist (p);
create index h_range on h using gist (r);
create index h_spgist on h using spgist (t);
create index h_gin on h using gin (keys) with (fastupdate = off);
create index h_brin on h using brin (id) with (pages_per_range = 2);
create table g (k int primary key, ref int, w text) with (fillfactor = 40);
insert into g select i, (i * 31) % 1500 + 1, repeat('g', 200) from generate_series(1, 500) i;
create index g_ref on g (ref);
alter table h add constraint h_g foreign key (b) references g on update cascade not valid;
create table c (k int references g on delete cascade, v int);
insert into c select 1 + i % 400, i from generate_series(1, 800) i;
create index c_k on c (k);
create table l (id int primary key, doc text, packed text);
alter table l alter doc set storage external;
insert into l select i, (select string_agg(md5((i * j)::text), '') from generate_series(1, 60 + i) j),
    repeat(md5(i::text), 300) from generate_series(1, 120) i;
update h set a = a + 1 where id % 5 = 0;
delete from h where id % 11 = 0;
vacuum (analyze) g;
vacuum (analyze) c;
vacuum (analyze) l;
analyze h;
checkpoint
"""

RELATIONS = ("h", "h_id", "h_a", "h_b", "h_t", "h_hash", "h_gist", "h_range", "h_spgist", "h_gin",
             "h_brin", "g", "g_pkey", "g_ref", "c", "c_k", "l", "l_pkey")
BTREES = ("h_id", "h_a", "h_b", "h_t", "g_pkey", "g_ref", "c_k", "l_pkey", "toast_index")
HEAPS = ("h", "g", "c", "l", "toast")

PLAIN = "set local enable_seqscan = off; set local enable_bitmapscan = off"
BITMAP = "set local enable_seqscan = off; set local enable_indexscan = off; set local enable_indexonlyscan = off"
NESTED = PLAIN + "; set local enable_hashjoin = off; set local enable_mergejoin = off; set local enable_memoize = off"
HASHED = PLAIN + "; set local enable_nestloop = off; set local enable_mergejoin = off"

# planner, joins or subqueries, statements; {n} is a number of the case
STATEMENTS = [
    (PLAIN, False, ["select id, a, w from h where a between {n} and {n} + 200 order by a, b"]),
    (PLAIN, False, ["select id, a, w from h where a > {n} order by a desc, b desc"]),
    (PLAIN, False, ["select id, a from h where a >= {n} order by a limit 7"]),
    (PLAIN, False, ["select a, b from h where a > {n} order by a, b"]),
    (PLAIN, False, ["select id, b from h where b < 60 order by b"]),
    (PLAIN, False, ["select count(*), sum(length(w)) from h where a = any (array[1, {n}, {n} + 3, 490, 77])"]),
    (PLAIN, False, ["select id, w from h where id > {n} order by id"]),
    (PLAIN, False, ["select t from h where t > 'a' order by t"]),
    (PLAIN, False, ["declare x scroll cursor for select id, w from h where a > {n} order by a, b",
                    "move 90 in x", "fetch 2 in x", "move backward 60 in x", "fetch 2 in x", "move 300 in x", "fetch backward 3 in x"]),
    (PLAIN, False, ["select id from h where p <@ box(point(10, 1), point(70, 9))"]),
    (PLAIN, False, ["select id from h order by p <-> point({n} / 9, 3) limit 60"]),
    (PLAIN, False, ["select id from h where r && int4range({n}, {n} + 200)"]),
    (PLAIN, False, ["select id from h where t ^@ 'a'"]),
    (BITMAP, False, ["select count(*), sum(id) from h where keys && array[3, 1000 + {n}]"]),
    (BITMAP, False, ["select count(*), sum(id) from h where keys @> array[3, 103]"]),
    (BITMAP, False, ["select count(*), sum(id) from h where a between {n} and {n} + 90 and b < 50 or t > 'f'"]),
    (BITMAP, False, ["select count(*), sum(length(w)) from h where id between {n} and {n} + 300"]),
    (NESTED, True, ["select g.k, h.id from g join h on h.a = g.k where g.ref > {n}"]),
    (NESTED, True, ["select g.k, h.w from g left join h on h.id = g.ref order by g.k"]),
    (NESTED, True, ["select count(*) from g join h on h.b = g.k % 90 and h.a > 3"]),
    (NESTED, True, ["select k from g where exists (select from h where h.a = g.k and w <> '')"]),
    (NESTED, True, ["select k from g where not exists (select from h where h.id = g.ref)"]),
    (HASHED, True, ["select count(*), sum(h.id) from h join g on g.ref = h.id"]),
    (HASHED, True, ["select count(*) from g left join h on h.b = g.k where g.w <> 'x'"]),
    (PLAIN, True, ["select k, (select length(w) from h where id = g.ref) from g"]),
    (PLAIN, True, ["select k, (select max(w) from h where a = g.k and b > 3) from g where k > {n} order by k"]),
    (PLAIN, False, ["select id, md5(doc), md5(packed) from l order by id"]),
    ("set local enable_indexscan = off", False, ["select id, md5(doc) from l"]),
    ("set local enable_seqscan = on", False, ["copy l to stdout"]),
    ("set local enable_seqscan = on", False, ["select id, md5(doc) from l order by md5(id::text)"]),
    (PLAIN, True, ["insert into h select 5000 + i, (i * 7919) % 500, i % 90 + 1, md5(i::text), point(1, 1), 'empty', null, 'new' "
                   "from generate_series(1, 300) i"]),
    (PLAIN, True, ["insert into g select i, i, 'new' from generate_series(100, 700) i on conflict (k) do update set w = 'old'"]),
    (PLAIN, True, ["update h set a = a + 7, w = 'u' where id between {n} and {n} + 200"]),
    (PLAIN, True, ["insert into c select 1 + (i * 7) % 500, i from generate_series(1, 300) i"]),
    (PLAIN, True, ["delete from g where k between {n} and {n} + 100"]),
    (NESTED, True, ["merge into g using h on g.k = h.id and h.id < 600 when matched then update set w = 'm' when not matched then do nothing"]),
    (PLAIN, True, ["create index later on h (b, a)", PLAIN, "select count(*) from h where b > 3"]),
]


def settings(rng):
    """Of look-ahead, as statements."""
    onoff = lambda *names: [f"set pg_lookahead.{n} = {rng.choice(['on', 'on', 'on', 'off'])}" for n in names]
    return ["set pg_lookahead.force = on", f"set pg_lookahead.max_leaf_pages = {rng.choice([2, 3, 64])}",
            f"set pg_lookahead.max_distance = {rng.choice([1, 3, 64])}"] + onoff(
                "enable_nestloop", "enable_hash_join", "enable_toast", "enable_subplan", "enable_write", "enable_foreign_key",
                "enable_index_build", "enable_btree_insert", "nestloop_reuse_tids", "enable_bitmap_scan")


def damage(rng, data, keep_lsn):
    """A page, damaged; or None: the file ends before it."""
    kind, page = damage_any(rng, data)
    if keep_lsn and page is not None and kind != "zero":
        page[:LSN] = data[:LSN]
    return kind, page


def damage_any(rng, data):
    page, kind = bytearray(data), rng.choice(["bytes"] * 4 + ["header", "lines", "lines", "tuple", "tuple", "special", "special",
                                                             "zero", "noise", "cut"])
    if kind == "zero":
        return kind, bytearray(BLOCK)
    if kind == "cut":
        return kind, None
    if kind == "noise":
        return kind, bytearray(rng.randbytes(BLOCK))
    lower = int.from_bytes(page[12:14], "little")
    upper = int.from_bytes(page[14:16], "little")
    special = int.from_bytes(page[16:18], "little")
    lo, hi = {"bytes": (0, BLOCK), "header": (0, 24), "lines": (24, max(25, min(lower, BLOCK))),
              "tuple": (min(upper, BLOCK - 1), max(min(special, BLOCK), min(upper, BLOCK - 1) + 1)),
              "special": (min(special, BLOCK - 16), BLOCK)}[kind]
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = rng.randrange(lo, hi)
        page[at] = rng.choice([0, 1, 0x7f, 0x80, 0xff, page[at] ^ (1 << rng.randrange(8)), rng.randrange(256)])
    return kind, page


def normal(outcome, ordered):
    """An outcome without what differs between the copies: their paths, and the order of rows that have none."""
    clean = lambda fields: fields and tuple(f and re.sub(rb"base/\d+", b"base/N", f) for f in fields)
    rows, error, notices, tag = outcome.key(ordered)
    if error and b"previous segment is only" in error[2]:
        # its SQLSTATE is made of whatever errno is
        error = error[:1] + (None,) + error[2:]
    return rows, clean(error), [clean(n) for n in notices], tag


class Crash:
    """The outcome of a step after which the session is gone."""

    def __init__(self, words, hung):
        self.words = words      # of the log, and the functions it was in
        self.hung = hung        # it was ended from here

    def is_assertion_of_server(self):
        return any(re.search(r'TRAP: .*File: "[^"]*src/backend/[^"]*\.c"', line) for line in self.words)

    def __str__(self):
        return "\n    ".join(["hung" if self.hung else "crash"] + [line[:200] for line in self.words])


class Dead(Exception):
    """The server does not come back: what a crash has left in the WAL of damaged pages can end recovery, too."""


class Damage:
    def __init__(self, server, args, counts, kinds):
        self.server = server
        self.args = args
        self.counts = counts
        self.kinds = kinds
        self.admin = None
        self.hung = []              # sessions

    def is_late(self):
        return self.args.deadline is not None and time.time() > self.args.deadline

    def connect(self, database="postgres"):
        found = []

        def there():
            try:
                found.append(Session(self.server, database=database))
                return True
            except Lost:
                return False
        if not wait_until(lambda: there() or not self.server.is_there(), 60) or not found:
            raise Dead()
        return found[0]

    def must(self, sql):
        for attempt in range(3):
            try:
                if self.admin is None:
                    self.admin = self.connect()
                return self.admin.must(sql)
            except Lost:
                self.admin = None
        raise SystemExit(f"connection lost three times: {sql}\n{self.server.tail()}")

    def setup(self):
        self.must("create database clean")
        s = self.connect("clean")
        for sql in SCHEMA.split(";\n"):
            s.must(sql)
        self.keeps_lsn = int(s.must("show server_version_num")[0][0]) >= 190000
        self.files = dict(s.must("select relname, pg_relation_filepath(oid) from pg_class where relname in "
                                 f"{RELATIONS} or oid = (select reltoastrelid from pg_class where relname = 'l')"
                                 " or relname in (select relname || '_index' from pg_class where oid = (select reltoastrelid "
                                 "from pg_class where relname = 'l'))"))
        self.files = {("toast_index" if k.endswith("_index") else "toast") if k.startswith("pg_toast") else k: v
                      for k, v in self.files.items()}
        s.close()

    def hurt(self, rng, oids):
        """Damage files of both copies; returns [(relation, block, kind)]."""
        done = []
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            name = rng.choice(sorted(self.files))
            paths = [os.path.join(self.server.data, "base", oid, os.path.basename(self.files[name])) for oid in oids]
            size = os.path.getsize(paths[0])
            if size == 0:
                continue
            block = rng.randrange(size // BLOCK)
            with open(paths[0], "rb") as f:
                f.seek(block * BLOCK)
                # from 19 on, a query that reads a page may set it all-visible; one with an LSN of the future then
                # fails to be written, and each checkpoint with it
                kind, page = damage(rng, f.read(BLOCK), self.keeps_lsn)
            for path in paths:
                with open(path, "r+b") as f:
                    if page is None:
                        f.truncate(block * BLOCK)
                    else:
                        f.seek(block * BLOCK)
                        f.write(page)
            done.append((name, block, kind))
        return done

    def play(self, database, ahead, statements):
        """Outcomes of the steps of all statements; a crash ends those of one."""
        out, s = [], None
        for planner, _, steps in statements:
            results, mark = [], os.path.getsize(self.server.log)
            try:
                if s is None:
                    s = self.connect(database)
                    for sql in [f"set statement_timeout = '{TIMEOUT}'"] + ahead:
                        s.execute(sql)
                s.execute("begin")
                s.execute(planner)
                for sql in steps:
                    results.append(self.execute(s, sql))
                s.execute("rollback")
            except Lost:
                hung, s = s in self.hung, None
                self.await_restart(mark)
                with open(self.server.log, errors="replace") as f:
                    f.seek(mark)
                    log = f.read()
                trap = re.search("TRAP:|terminated by signal", log)
                words = log[trap.start():].splitlines()[:1] if trap else log.splitlines()[-5:]
                results.append(Crash(words + self.frames(database == "d_on"), hung))
            out.append(results)
        if s is not None:
            s.close()
        return out

    def execute(self, s, sql):
        """With a limit that the server need not keep: then it dumps core."""
        def end():
            self.hung.append(s)
            os.kill(s.conn.backend_pid, signal.SIGABRT)
        timer = threading.Timer(PATIENCE, end)
        timer.start()
        try:
            return s.execute(sql)
        finally:
            timer.cancel()

    def frames(self, wanted):
        """The functions that a server which has dumped core was in, innermost first, as lines, if gdb can tell."""
        lines = []
        for core in glob.glob(os.path.join(self.server.data, "core*")):
            if wanted and shutil.which("gdb"):
                done = subprocess.run(["gdb", "-batch", "-nx", "-ex", "bt 40", self.server.bin("postgres"), core], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                # the innermost one comes first once more
                lines += [line for line in done.stdout.splitlines() if line.startswith("#")][1:]
            os.unlink(core)
        return lines

    def await_restart(self, mark):
        """After a crash: until then, sessions are accepted that are ended at once."""
        def settled():
            with open(self.server.log, errors="replace") as f:
                f.seek(mark)
                return "ready to accept connections" in f.read() or not self.server.is_there()
        wait_until(settled, 120)

    def verdict(self, off, on, spots, reads_ahead, ordered):
        """None, or what is wrong, of the steps of a statement."""
        for a, b in zip(off, on):
            if isinstance(a, Crash):
                self.counts["stock had no answer in time" if a.hung else "crashes of stock"] += 1
                return None
            if isinstance(b, Crash):
                if a.error is not None and b.is_assertion_of_server() and any(name not in HEAPS for name, _, _ in spots):
                    self.counts["assertions that failed earlier"] += 1
                    return None
                return "no answer in time" if b.hung else "crash"
            if normal(a, ordered) == normal(b, ordered):
                continue
            code = lambda o: o.error and o.error[1]
            if code(a) == b"57014":
                self.counts["stock had no answer in time"] += 1
                return None
            if code(b) == b"57014":
                return "no answer in time"
            if code(b) in ERRORS_AHEAD and (reads_ahead or any(name not in HEAPS for name, _, _ in spots)):
                self.counts["errors that came earlier"] += 1
                return None
            return "outcome"
        return None

    def prepare(self, number):
        """Both copies, damaged: (settings of look-ahead, statements, what was damaged); the same for a number whenever."""
        rng = random.Random(f"{self.args.seed}/damage{number}")
        ahead = settings(random.Random(f"{self.args.seed}/settings{number}"))
        statements = [(p, j, [s.replace("{n}", str(rng.randrange(400))) for s in steps])
                      for p, j, steps in rng.sample(STATEMENTS, len(STATEMENTS))]
        for k in ("off", "on"):
            self.must(f"drop database if exists d_{k}")
            self.must(f"create database d_{k} template clean strategy file_copy")
        oids = [self.must(f"select oid from pg_database where datname = 'd_{k}'")[0][0] for k in ("off", "on")]
        spots = self.hurt(rng, oids)
        if "cut" in (kind for _, _, kind in spots):
            # what the server finds in blocks that it adds behind the end is undetermined, if it has failed to
            # read them before
            statements = [s for s in statements if s[2][0].split()[0] not in ("insert", "update", "merge")]
        return ahead, statements, spots

    def undetermined(self, number, wrong, off):
        """Of statements, by position, that are wrong: those of which stock has the like, or other outcomes, by itself.

        A server that works with damaged pages reads what its memory happens to hold.  So the case is repeated
        without look-ahead: a crash must be one that stock has, too.
        """
        found = set()
        for _ in range(REPETITIONS):
            _, statements, _ = self.prepare(number)
            for database in ("d_off", "d_on"):
                again = self.play(database, STOCK, statements)
                for i in wrong:
                    crashes = [o for o in again[i] if isinstance(o, Crash)]
                    ordered = "order by" in statements[i][2][0]
                    if crashes or wrong[i] == "outcome" and [normal(o, ordered) for o in again[i]] != [normal(o, ordered) for o in off[i]]:
                        found.add(i)
            if len(found) == len(wrong):
                break
        return found

    def one(self, number):
        ahead, statements, spots = self.prepare(number)
        for _, _, kind in spots:
            self.kinds[kind] += 1
        off = self.play("d_off", STOCK, statements)
        on = self.play("d_on", ahead, statements)
        wrong = {}
        for i, (statement, a, b) in enumerate(zip(statements, off, on)):
            self.counts["statements"] += 1
            self.counts["with an error"] += any(isinstance(o, Outcome) and o.error is not None for o in a)
            w = self.judge(statement, a, b, spots, ahead)
            if w is not None:
                wrong[i] = w
        excused = self.undetermined(number, wrong, off) if wrong else ()
        self.counts["undetermined"] += len(excused)
        self.counts["passed"] += len(statements) - len(wrong) + len(excused)
        for i in sorted(set(wrong) - set(excused)):
            self.counts["failed"] += 1
            self.report(number, wrong[i], ahead, statements[i], off[i], on[i], spots)

    def judge(self, statement, off, on, spots, ahead):
        """None, or what is wrong with a statement."""
        planner, reads_ahead, steps = statement
        wrong = self.verdict(off, on, spots, reads_ahead, "order by" in steps[0])
        if (wrong == "outcome" and planner == NESTED and "set pg_lookahead.nestloop_reuse_tids = on" in ahead
                and any(name in BTREES for name, _, _ in spots)):
            self.counts["other rows by an index out of order"] += 1
            return None
        if wrong == "outcome" and steps[0].split()[0] in ("insert", "update", "merge") and any(
                name in ("h_gist", "h_range") for name, _, _ in spots):
            self.counts["undetermined"] += 1
            return None
        return wrong

    def report(self, number, wrong, ahead, statement, off, on, spots):
        planner, _, steps = statement
        print(f"\n=== {wrong}: case {number} of seed {self.args.seed}, damaged: {spots}")
        print("\n".join([f"  {s};" for s in ahead] + [f"  {planner};"] + [f"  {s};" for s in steps]))
        for who, results in (("off", off), ("on", on)):
            for o in results:
                print(f"  {who}: {o if isinstance(o, Crash) else o.error or (o.tag, str(o.rows)[:200])}")

    def traps(self):
        """Assertions that failed, and crashes, of ours."""
        with open(self.server.log, errors="replace") as f:
            return [line.rstrip() for line in f if "TRAP:" in line and re.search(
                r'File: "(?:\./)?src/(?:attach|base|bitmap|btree|calibrate|hashjoin|indexbuild|nestloop|plancost|replay|rows|scan|subplan|toast|window|write)/',
                line)]


def series(args, settings_of_server, option, counts, kinds, number):
    """Cases on one server, as long as it lives; returns the number of the next one, and failed assertions."""
    with Server(args.bindir, "pg_lookahead", settings_of_server, args.keep, option) as server:
        d = Damage(server, args, counts, kinds)
        try:
            d.setup()
            while number < args.first_case + args.damage and counts["failed"] < args.max_failures and not d.is_late():
                number += 1
                d.one(number - 1)
        except Dead:
            counts["servers that did not recover"] += 1
        return number, d.traps()


def compare(args, settings_of_server, checksums):
    """All cases.  Returns (passed, failed)."""
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    option = ["--data-checksums"] if checksums else ["--no-data-checksums"] if args.no_checksums_option else []
    began, counts, kinds, number, traps = time.time(), Counter(), Counter(), args.first_case, []
    args.deadline = began + args.minutes * 60 if args.minutes else None
    while True:
        first = number
        number, more = series(args, settings_of_server, option, counts, kinds, number)
        traps += more
        if not counts["servers that did not recover"] or number == first or number == args.first_case + args.damage or (
                args.deadline and time.time() > args.deadline) or counts["failed"] >= args.max_failures:
            break
    if traps:
        counts["failed"] += len(traps)
        print("\n=== assertions that failed in the library:\n  " + "\n  ".join(sorted(set(traps))))
    print(f"damaged pages, checksums {'on' if checksums else 'off'}: {number - args.first_case} cases, {dict(kinds)}")
    print(f"  {dict(counts)}; {time.time() - began:.0f} s")
    return counts["passed"], counts["failed"]
