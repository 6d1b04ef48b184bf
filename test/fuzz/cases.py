"""
cases.py - generates the statements.

A Case is what the driver runs twice: planner settings, and steps that go to the server
one after the other inside a transaction.  All choices come from the random generator that
the driver seeds with (seed, case number), so a case can be made again on its own.

Three layers (those for access methods other than btree are in others.py, hash joins in joins.py, long
values in values.py):
  KEYS and Gen.cond()    conditions that an index of schema.py can use
  Gen.s_*                query shapes: one SELECT each
  Gen.case()             kinds: how such a SELECT is run (plain, cursor, prepared, ...)
"""

from dataclasses import dataclass, field

import schema
from joins import HASH_JOIN, Joins
from others import Others
from values import LONG, Values

# Leading columns of the indexes, with the order that the index has.
KEYS = [
    [("id", "")],
    [("a", ""), ("b", "")],
    [("b", "")],
    [("b", ""), ("id", "")],
    [("b", "desc nulls first"), ("a", "")],
    [("c", "desc nulls last"), ("b", "")],
    [("c", "nulls first")],
    [("t", ""), ("id", "")],
    [('t collate "C"', "desc")],
    [("u", "")],
    [("ts", ""), ("b", "")],
    [("n", "nulls first"), ("c", "")],
    [("(a % 100)", ""), ("id", "")],
    [("lower(t)", ""), ("a", "")],
    [("b", ""), ("c", "")],
    [("f", ""), ("b", ""), ("id", "")],
]
NULLABLE = {"b", "c", "t", 't collate "C"', "n", "f", "lower(t)"}
# integer columns that two tables can be joined on
JOINABLE = ["id", "a", "b", "c"]
NESTED_LOOP = "/* nested loop */"  # planner() knows it by that
SUBPLAN = "/* subplan */"

REVERSED = {"": "desc", "desc": "", "desc nulls first": "", "desc nulls last": "nulls first",
            "nulls first": "desc nulls last"}


@dataclass
class Case:
    number: int
    kind: str
    planner: dict
    ahead: dict                 # settings of look-ahead, besides enable
    steps: list
    explain: list               # statements whose plans must not change
    before: list = field(default_factory=list)     # outside the transaction, not compared
    after_commit: list = field(default_factory=list)
    isolation: str = "repeatable read"
    ordered: bool = True
    modifies: bool = False      # leaves dead rows behind
    counters: bool = False      # compare pg_stat counters, too
    dml: bool = False           # {T} and {C} stand for the copies
    cold: bool = False          # nothing is cached when a run begins


class Gen(Others, Joins, Values):
    def __init__(self, rng, samples, readonly=False):
        self.rng = rng
        self.samples = samples  # table -> expression -> literals
        self.readonly = readonly
        self.keys = KEYS

    # ---- small choices ----------------------------------------------------

    def table(self):
        return self.rng.choice(schema.READABLE)

    def chance(self, p):
        return self.rng.random() < p

    def lit(self, table, expr):
        return self.rng.choice(self.samples[table][expr])

    def order(self, key, alias="", backward=False):
        parts = []
        for expr, direction in key:
            d = REVERSED[direction] if backward else direction
            parts.append(f"{self.q(expr, alias)} {d}".strip())
        return ", ".join(parts)

    @staticmethod
    def q(expr, alias):
        """Qualify the column in expr with alias."""
        if not alias:
            return expr
        if expr.startswith("(a %"):
            return f"({alias}.a % 100)"
        if expr.startswith("lower"):
            return f"lower({alias}.t)"
        return f"{alias}.{expr}"

    def limit(self, most=60):
        out = ""
        if self.chance(0.8):
            out += f" limit {self.rng.choice([0, 1, 2, 3, 7, 20, most, most * 10])}"
        if self.chance(0.3):
            out += f" offset {self.rng.choice([0, 1, 5, 40, 300])}"
        return out

    # ---- conditions -------------------------------------------------------

    def one(self, table, expr, alias, kinds):
        """A condition on one column."""
        r, q = self.rng, self.q(expr, alias)
        kind = r.choice(kinds)
        lit = lambda: self.lit(table, expr)
        if kind == "eq":
            return f"{q} = {lit()}"
        if kind == "in":
            values = [lit() for _ in range(r.choice([1, 2, 3, 5, 9, 30]))]
            values += values[:1]
            if self.chance(0.15):
                values.append("null")
            if self.chance(0.5):
                return f"{q} in ({', '.join(values)})"
            return f"{q} = any (array[{', '.join(values)}])"
        if kind == "range":
            lo, hi = lit(), lit()
            return (f"{q} {r.choice(['>', '>='])} least({lo}, {hi}) and "
                    f"{q} {r.choice(['<', '<='])} greatest({lo}, {hi})")
        if kind == "half":
            return f"{q} {r.choice(['<', '<=', '>', '>='])} {lit()}"
        if kind == "null":
            return f"{q} is null"
        if kind == "notnull":
            return f"{q} is not null"
        if kind == "some":          # = any of an array that the planner cannot see into
            return f"{q} = any ((select array_agg(x) from (values {self.values(table, expr)}) v(x))::{self.pgtype(expr)}[])"
        if kind == "lessany":
            return f"{q} < any (array[{lit()}, {lit()}, {lit()}])"
        raise ValueError(kind)

    def values(self, table, expr):
        return ", ".join(f"({self.lit(table, expr)})" for _ in range(self.rng.randint(1, 6)))

    @staticmethod
    def pgtype(expr):
        return {"u": "uuid", "ts": "timestamp", "n": "numeric", "f": "bool", "t": "text",
                't collate "C"': "text", "lower(t)": "text"}.get(expr, "int")

    def cond(self, table, key, alias="", wide=False):
        """Conditions on a prefix of key; wide ones leave many rows."""
        r = self.rng
        if len(key) > 1 and self.chance(0.12):
            cols = ", ".join(self.q(e, alias) for e, _ in key[:2])
            vals = ", ".join(self.lit(table, e) for e, _ in key[:2])
            if self.chance(0.3):
                rows = [f"({', '.join(self.lit(table, e) for e, _ in key[:2])})" for _ in range(r.choice([1, 3, 12]))]
                return f"({cols}) in ({', '.join(rows)})"
            return f"({cols}) {r.choice(['<', '<=', '>', '>='])} ({vals})"
        out = []
        for i, (expr, _) in enumerate(key):
            last = i == len(key) - 1
            kinds = ["range", "half"] if wide else ["eq", "in", "in", "range", "half", "some"]
            if expr in NULLABLE:
                kinds += ["notnull"] if wide else ["null", "notnull"]
            if expr == "f":
                kinds = ["eq", "null", "notnull"]
            if self.chance(0.04) and expr in JOINABLE:
                kinds = ["lessany"]
            # leave a column out: skip scan on 18, a filter on the index before
            if not last and self.chance(0.15):
                continue
            if i > 0 and self.chance(0.4):
                break
            out.append(self.one(table, expr, alias, kinds))
        if self.chance(0.08):
            out.append("f" if not alias else f"{alias}.f")
        return " and ".join(out) or "true"

    def targets(self, key, alias=""):
        """A select list: an index-only scan's, or one that needs the heap."""
        p = f"{alias}." if alias else ""
        cols = [self.q(e, alias) for e, _ in key if "(" not in e]
        if cols and self.chance(0.4):
            return ", ".join(cols)
        base = [f"{p}id", f"{p}a", f"{p}b", f"{p}c"]
        if self.chance(0.3):
            base += [f"{p}t"]
        if self.chance(0.15):
            base += [f"length({p}w)", f"left({p}w, 5)"]
        if self.chance(0.2):
            base += [f"{p}tableoid::regclass", f"{p}ctid"]
        if self.chance(0.15):
            base += [f"{p}u", f"{p}ts", f"{p}n", f"{p}f"]
        return ", ".join(base)

    # ---- shapes: each returns a SELECT ------------------------------------

    def s_scan(self, table=None, wide=False):
        table = table or self.table()
        key = self.rng.choice(KEYS)
        sql = f"select {self.targets(key)} from {table} where {self.cond(table, key, wide=wide)}"
        if self.chance(0.8):
            sql += f" order by {self.order(key, backward=self.chance(0.45))}"
            if self.chance(0.5):
                sql += self.limit()
            elif self.chance(0.1):
                sql += f" fetch first {self.rng.choice([1, 5, 60])} rows with ties"
        return sql

    def s_lists(self):
        """Lists on several columns, over many leaf pages, in the order of the index."""
        r, table = self.rng, self.table()
        key = r.choice([k for k in KEYS if len(k) > 1 and k[0][0] in ("a", "b", "c", "f")])
        conds = []
        for i, (expr, _) in enumerate(key):
            n = r.choice([2, 3, 7] if expr in ("b", "f") else [3, 40, 250])
            values = ", ".join(self.lit(table, expr) for _ in range(n))
            conds.append(r.choice([f"{expr} in ({values})", f"{expr} in ({values})",
                                   self.one(table, expr, "", ["range", "half"]), None if i else
                                   f"{expr} in ({values})"]) if expr != "f" else "f = any ('{f,t}')")
        where = " and ".join(c for c in conds if c)
        return (f"select {self.targets(key)} from {table} where {where} "
                f"order by {self.order(key, backward=self.chance(0.5))}")

    def s_digest(self):
        """The whole of a large result, in the order of the scan."""
        table, key = self.table(), self.rng.choice(KEYS)
        inner = f"select {self.targets(key)} from {table} where {self.cond(table, key, wide=True)}"
        if self.chance(0.8):
            inner += f" order by {self.order(key, backward=self.chance(0.4))}"
        return f"select count(*), md5(string_agg(x::text, ',')) from ({inner}) x"

    def s_error(self):
        table, key = self.table(), self.rng.choice(KEYS)
        sql = (f"select id, 1000 / (a - {self.lit(table, 'a')}) from {table} "
               f"where {self.cond(table, key, wide=True)} "
               f"order by {self.order(key, backward=self.chance(0.4))}")
        return sql + (self.limit(200) if self.chance(0.5) else "")

    def s_minmax(self):
        table = self.table()
        e = self.rng.sample(["id", "a", "b", "c", "t", "ts", "n", "u::text"], 2)
        key = self.rng.choice(KEYS)
        return (f"select min({e[0]}), max({e[1]}), max({e[0]}) from {table} "
                f"where {self.cond(table, key)}")

    def s_group(self):
        table, key = self.table(), self.rng.choice(KEYS)
        expr = self.rng.choice(key)[0]
        agg = self.rng.choice(["count(*)", "sum(id)", "array_agg(id)", "min(c)"])
        if self.chance(0.3):
            return (f"select distinct on ({expr}) {expr}, id from {table} where "
                    f"{self.cond(table, key)} order by {expr}, id")
        return (f"select {expr}, {agg} from {table} where {self.cond(table, key)} "
                f"group by {expr} order by {expr}")

    def s_window(self):
        table, key = self.table(), self.rng.choice(KEYS)
        return (f"select id, row_number() over w, lag(id, 2) over w, sum(a) over w from {table} "
                f"where {self.cond(table, key)} window w as (order by {self.order(key)}, id)")

    def s_nestloop(self):
        """Inner index scans that are rescanned for every outer row."""
        t1, t2 = self.table(), self.table()
        k1 = self.rng.choice(KEYS)
        j1, j2 = self.rng.choice(JOINABLE), self.rng.choice(JOINABLE)
        if self.chance(0.15):
            t2, j2 = "part", "a"
        outer = (f"select * from {t1} where {self.cond(t1, k1)} "
                 f"order by {self.order(k1, backward=self.chance(0.3))} "
                 f"limit {self.rng.choice([1, 5, 20, 100, 300, 300])}")
        if self.chance(0.45):
            outer = f"select * from {t1} where {self.cond(t1, k1)}"
        join = self.rng.choice(["join", "join", "left join"])
        k2 = self.rng.choice(KEYS)
        extra = f" and {self.cond(t2, k2, 'y')}" if self.chance(0.4) else ""
        equal = f"y.{j2} = x.{j1}"
        if self.chance(0.2):
            equal = f"y.{j2} = x.{j1} and y.b = x.b"
        if self.chance(0.1):
            equal = f"y.{j2} = x.{j1} + {self.rng.randint(0, 3)}"
        elif self.chance(0.1):
            # fails for some rows, and overflows for none or many
            factor = self.rng.choice([1, 3, 1_000_000])
            equal = f"y.{j2} = x.id * {factor} / {factor} + 100 / (x.id - {self.rng.randint(0, 3000)})"
        if self.chance(0.5):
            # all rows are wanted, so more of them are taken ahead
            return (f"select count(*), sum(y.id), min(x.id) from ({outer}) x {NESTED_LOOP} {join} {t2} y "
                    f"on {equal}{extra}")
        return (f"select x.id, {self.targets(k2, 'y')} from ({outer}) x {NESTED_LOOP} {join} {t2} y "
                f"on {equal}{extra} limit 3000")

    def s_lateral(self):
        """Inner scans that end early, again and again."""
        t1, t2 = self.table(), self.table()
        k1, k2 = self.rng.choice(KEYS), self.rng.choice(KEYS)
        j = self.rng.choice(JOINABLE)
        cmp = self.rng.choice(["=", ">=", "<", "="])
        return (f"select x.id, y.* from (select * from {t1} where {self.cond(t1, k1)} "
                f"order by {self.order(k1)} limit {self.rng.choice([3, 30, 90])}) x, "
                f"lateral (select {self.targets(k2, 'z')} from {t2} z where z.{j} {cmp} x.{j} "
                f"order by {self.order(k2, 'z', self.chance(0.4))} "
                f"limit {self.rng.choice(['1', '2', '5', '40', 'x.id % 9', 'nullif(x.id % 30, 7)'])}) y")

    def s_ranges(self):
        """Inner scans by a range whose bounds are values of the outer row."""
        r = self.rng
        t1, t2 = self.table(), self.table()
        k1, k2, j = r.choice(KEYS), r.choice(KEYS), r.choice(["a", "b", "id"])
        n = r.choice([0, 1, 5, 60])
        bounds = r.choice([
            f"y.{j} between x.{j} and x.{j} + {n}",
            f"y.{j} > x.{j} - {n} and y.{j} < x.{j}",
            f"y.{j} <= x.{j}",
            f"y.{j} > x.{j} and y.{j} is not null",
            f"y.{j} >= x.{j} and y.{j} > x.{j} - {n} and y.{j} < x.{j} + {n}",
            f"y.{j} between x.{j} and x.{j} + 100 / (x.id - {r.randint(0, 3000)})",
        ])
        where = f"{bounds}{r.choice(['', f' and y.b = x.b', f' and y.a = x.a', f' and {self.cond(t2, k2, chr(121))}'])}"
        outer = (f"(select * from {t1} where {self.cond(t1, k1)} order by {self.order(k1)} "
                 f"limit {r.choice([3, 30, 90, 300])}) x")
        order = f"order by {self.order([(j, '')], 'y', self.chance(0.5))}, y.id"
        if self.chance(0.4):
            limit = r.choice(["limit 1", "limit 2 offset 1", "limit 40"])
            return f"select x.id, l.* from {outer}, lateral (select {self.targets(k2, 'y')} from {t2} y where {where} {order} {limit}) l"
        if self.chance(0.5):
            what = r.choice([f"min(y.{j})", f"max(y.{j})", "count(*)", "sum(y.id)"])
            return f"select x.id, (select {what} from {t2} y where {where}) from {outer}"
        kind = r.choice(["exists", "not exists"])
        return f"select x.id from {outer} where {kind} (select from {t2} y where {where} and y.id % {r.choice([1, 3])} = 0)"

    def s_merge(self):
        """Merge joins with duplicates on both sides: mark and restore."""
        t1, t2 = self.table(), self.table()
        j = self.rng.choice(["b", "b", "a", "c", "id", "t"])
        keys = [k for k in KEYS if k[0][0] == j]
        c1 = self.cond(t1, self.rng.choice(keys), "x")
        # the inner side with a list or a range on the column after the join key
        c2 = self.rng.choice([
            "true",
            self.cond(t2, self.rng.choice(keys), "y"),
            self.one(t2, "id", "y", ["in", "range", "half"]),
            self.one(t2, "b", "y", ["in", "null", "half"]),
            self.one(t2, j, "y", ["in", "half"]),
        ])
        small = self.one(t1, "id", "x", ["range", "in"])
        join = self.rng.choice(["join", "join", "left join", "full join"])
        if join == "full join":
            return (f"select x.id, y.id from (select * from {t1} x where {c1} and {small}) x "
                    f"full join (select * from {t2} y where {c2}) y on x.{j} = y.{j} limit 4000")
        return (f"select x.id, x.{j}, {self.targets([(j, '')], 'y')} from {t1} x {join} {t2} y "
                f"on x.{j} = y.{j} and {c2} where {c1} and {small} limit 4000")

    def s_semi(self):
        t1, t2 = self.table(), self.table()
        k1, k2 = self.rng.choice(KEYS), self.rng.choice(KEYS)
        j1, j2 = self.rng.choice(JOINABLE), self.rng.choice(JOINABLE)
        neg = self.rng.choice(["", "", "not "])
        if self.chance(0.5):
            return (f"select {self.targets(k1, 'x')} from {t1} x where {self.cond(t1, k1, 'x')} "
                    f"and {neg}exists (select 1 from {t2} y where y.{j2} = x.{j1} "
                    f"and {self.cond(t2, k2, 'y')}) limit 2000")
        return (f"select {self.targets(k1, 'x')} from {t1} x where {self.cond(t1, k1, 'x')} "
                f"and x.{j1} {neg}in (select y.{j2} from {t2} y "
                f"where {self.cond(t2, k2, 'y')} and y.{j2} is not null) limit 2000")

    def s_subplan(self):
        t1, t2 = self.table(), self.table()
        k1, k2 = self.rng.choice(KEYS), self.rng.choice(KEYS)
        j = self.rng.choice(JOINABLE)
        sub = self.rng.choice([
            f"(select max(y.id) from {t2} y where y.{j} = x.{j})",
            f"(select min(y.ts) from {t2} y where y.id > x.id)",
            f"array(select y.id from {t2} y where y.{j} = x.{j} "
            f"order by {self.order(k2, 'y', self.chance(0.5))} limit 4)",
            f"(select count(*) from {t2} y where y.b = x.b and y.c < x.c)",
            f"(x.a = any (select y.a from {t2} y where y.b = x.b order by y.a limit 9))",
            f"exists (select from {t2} y where y.{j} = x.{j} and y.id > x.id)",
            f"case when x.id % 7 < 4 then (select count(y.t) from {t2} y where y.{j} = x.{j}) end",
            f"case when x.id % 7 < 4 then (select count(y.t) from {t2} y where y.{j} = 12 * x.id / (6 - x.id % 7)) end",
            f"(select sum((select count(z.t) from {t2} z where z.{j} = y.{j})) from {t2} y where y.id = x.id)",
        ])
        sub = f"{SUBPLAN} {sub}"
        place = self.rng.random()
        if place < 0.25:
            # the rows of a node above a sort, and of a filter
            return (f"select s.id, {sub.replace('x.', 's.')} from (select x.* from {t1} x "
                    f"where {self.cond(t1, k1, 'x')} order by {self.order(k1, 'x')} limit 400) s")
        if place < 0.5:
            return (f"select x.id from {t1} x where {self.cond(t1, k1, 'x')} and {sub} is not null "
                    f"order by {self.order(k1, 'x')} limit 400")
        return (f"select x.id, {sub} from {t1} x where {self.cond(t1, k1, 'x')} "
                f"order by {self.order(k1, 'x')} limit {self.rng.choice([40, 400])}")

    def s_union(self):
        key = self.rng.choice(KEYS)
        tables = self.rng.sample(schema.READABLE, self.rng.randint(2, 4))
        back = self.chance(0.4)
        parts = [f"(select {', '.join(e + f' as k{i}' for i, (e, _) in enumerate(key))}, id as ident "
                 f"from {t} where {self.cond(t, key)})" for t in tables]
        order = ", ".join(f"k{i} {REVERSED[d] if back else d}" for i, (_, d) in enumerate(key))
        return f"select * from ({' union all '.join(parts)}) s order by {order}{self.limit()}"

    def s_recursive(self):
        """Loose index scan by hand: the classic that rescans at every step."""
        table = self.table()
        col = self.rng.choice(["a", "b", "c"])
        op, fn = self.rng.choice([(">", "min"), ("<", "max")])
        return (f"with recursive r(v, n) as (select {fn}({col}), 1 from {table} union all "
                f"select (select {fn}({col}) from {table} where {col} {op} r.v), n + 1 from r "
                f"where r.v is not null and n < 60) select * from r")

    def s_tids(self):
        """Rows by their addresses: a list of them, or those of the rows of another scan."""
        table, key = self.table(), self.rng.choice(KEYS)
        found = (f"select ctid as at from {table} where {self.cond(table, key, wide=True)} "
                 f"order by {self.order(key)} limit {self.rng.choice([3, 40, 900])}")
        if self.chance(0.6):
            return f"select {self.targets(key)} from {table} where ctid = any (array({found}))"
        return f"select {self.targets(key, 'x')} from ({found}) y join {table} x on x.ctid = y.at"

    def select(self):
        shapes = [self.s_scan] * 7 + [self.s_lists] * 2 + [self.s_nestloop] * 14 + [self.s_hash] * 14 + [self.s_lateral] * 3 + [self.s_ranges] * 4 + \
            [self.s_merge] * 5 + [self.s_semi] * 2 + [self.s_subplan] * 14 + [self.s_long] * 5 + \
            [self.s_tids] * 6 + [self.s_digest] * 2 + [self.s_union, self.s_group, self.s_window, self.s_minmax,
                                   self.s_recursive, self.s_error]
        if not self.readonly:
            shapes += [self.s_other] * 4
        return self.rng.choice(shapes)()

    # ---- settings ---------------------------------------------------------

    def planner(self, sql):
        r = self.rng
        s = {"enable_seqscan": "off", "max_parallel_workers_per_gather": "0"}
        if "array[" not in sql and self.chance(0.85):
            s["enable_bitmapscan"] = "off"
        elif self.chance(0.6):
            s["enable_indexscan"] = "off"
        if self.chance(0.35):
            s["enable_sort"] = "off"
        if self.chance(0.25):
            s["enable_indexonlyscan"] = "off"
        if self.chance(0.6):
            s["enable_material"] = "off"
        if self.chance(0.6):
            s["enable_memoize"] = "off"
        if self.chance(0.2):
            s["enable_incremental_sort"] = "off"
        if " join " in sql or "exists" in sql or " in (select" in sql or "lateral" in sql:
            want = r.choice(["merge", "merge", "nest", "nest", "hash", "any"])
            if NESTED_LOOP in sql and self.chance(0.7):
                want = "nest"
            if HASH_JOIN in sql and self.chance(0.8):
                want = "hash"
            for kind, name in (("merge", "enable_mergejoin"), ("nest", "enable_nestloop"),
                               ("hash", "enable_hashjoin")):
                if want not in ("any", kind):
                    s[name] = "off"
        if "nullif" in sql:
            # a limit that is null in one scan and not in the next fails an assertion of stock
            # 18's incremental sort (tuplesort_set_bound)
            s["enable_incremental_sort"] = "off"
        if self.chance(0.15):
            s["enable_partitionwise_join"] = "on"
            s["enable_partitionwise_aggregate"] = "on"
        if self.chance(0.35 if HASH_JOIN in sql else 0.1):
            s["work_mem"] = r.choice(["64kB", "64kB", "150kB", "400kB"])
        if LONG in sql:
            self.plan_values(s)
        return s

    def ahead(self):
        r = self.rng
        s = {"enable_nestloop": r.choice(["on", "on", "on", "off"]),
             "enable_hash_join": r.choice(["on", "on", "on", "off"]),
             "enable_toast": r.choice(["on", "on", "on", "off"]),
             "enable_tid_scan": r.choice(["on", "on", "on", "off"]),
             "hash_join_huge_pages": r.choice(["on", "off"]),
             "nestloop_reuse_tids": r.choice(["on", "on", "off"]),
             "max_leaf_pages": r.choice([2, 3, 8, 64]),
             "max_distance": r.choice([1, 2, 7, 64, 512]),
             "tablespace_max_in_flight": r.choice([0, 0, 0, 1, 2, 5, 1000])}
        if self.chance(0.8):
            s["force"] = "on"
        else:
            # look-ahead begins at once or after a few visits; a read is never (or always) too
            # fast to have been a wait, so that scans also stop looking ahead and begin again
            s.update(force="off", miss_threshold=r.choice([0, 0, 1]),
                     min_read_time=r.choice([0, 0, 1000]), cache_prefetch_threshold=r.choice([0, 0, 3, -1]),
                     attach_threshold=r.choice([0, 1, 2, 8, 30]))
        return s

    # ---- kinds ------------------------------------------------------------

    def case(self, number):
        kinds = ["select"] * 9 + ["cursor"] * 6 + ["prepared", "parallel", "plpgsql", "copy"]
        if not self.readonly:
            # these need a table that holds still, or a transaction of their own
            kinds += ["analyze"] * 2 + ["dml"] * 3 + ["write"] * 6 + ["hold", "currentof", "inside", "serializable",
                                                        "other", "other", "other_dml"]
        kind = self.rng.choice(kinds)
        case = getattr(self, "k_" + kind)(number)
        case.ahead = self.ahead()
        # these read few blocks that their outer side has not read
        text = " ".join(case.steps)
        case.cold = self.chance(0.8 if NESTED_LOOP in text or SUBPLAN in text or LONG in text else 0.4)
        return case

    def make(self, number, kind, steps, explain, **more):
        text = " ".join(explain)
        return Case(number, kind, self.planner(text), {}, steps, explain, **more)

    def k_select(self, number):
        sql = self.select()
        return self.make(number, "select", [sql], [sql])

    def k_analyze(self, number):
        """EXPLAIN ANALYZE and the statistics counters: nothing shows but time.

        Only for scans that are read to their end: look-ahead does read a leaf page that
        an early LIMIT would not have reached, and that is counted.
        """
        shape = self.rng.choice([self.s_digest, self.s_digest, self.s_group, self.s_window])
        sql = shape()
        how = "explain (analyze, costs off, timing off, summary off, buffers off)"
        case = self.make(number, "analyze", [f"{how} {sql}"], [sql], counters=True)
        case.planner["pg_lookahead.explain"] = "off"
        return case

    def motions(self):
        r, out = self.rng, []
        for _ in range(r.randint(4, 22)):
            n = r.choice([1, 1, 2, 3, 10, 60, 400])
            m = r.choice([-400, -60, -5, -2, -1, 0, 1, 2, 5, 60, 400, 3000])
            out.append(r.choice([
                "next", "next", f"forward {n}", f"forward {n}", f"forward {n}", "prior",
                f"backward {n}", f"backward {n}", "first", "last", f"absolute {m}",
                f"absolute {m}", f"relative {m}", f"relative {m}",
                "forward all", "backward all", "forward 0"]))
        return out

    def play(self, names, insert=()):
        """FETCH and MOVE on cursors, with other statements in between."""
        out = []
        for name in names:
            for m in self.motions():
                verb = "move" if self.chance(0.2) else "fetch"
                out.append(f"{verb} {m} from {name}")
        if len(names) > 1:
            self.rng.shuffle(out)
        for sql in insert:
            out.insert(self.rng.randint(0, len(out)), sql)
        return out

    def cursor_query(self):
        shape = self.rng.choice([self.s_scan] * 5 + [self.s_lists] * 3 + [self.s_long] * 2 + [self.s_merge, self.s_nestloop, self.s_union,
                                                     self.s_lateral] + [self.s_other] * (not self.readonly))
        if shape == self.s_scan:
            return self.s_scan(wide=self.chance(0.6))
        return shape()

    def k_cursor(self, number):
        names, declares = ["c1"], []
        if self.chance(0.25):
            names.append("c2")
        for name in names:
            sql = self.cursor_query()
            how = self.rng.choice(["scroll ", "scroll ", "scroll ", "", "no scroll "])
            declares.append(f"declare {name} {how}cursor for {sql}")
        broken = self.chance(0.2)
        moves = self.play(names)
        if broken:
            # an error in between rolls back to the savepoint, the cursor lives on
            k = self.rng.randint(0, len(moves))
            moves[k:k] = ["savepoint s", "select 1/0", "rollback to savepoint s"]
        if self.chance(0.5):
            moves += [f"close {n}" for n in names]
        case = self.make(number, "cursor", declares + moves, declares)
        if self.chance(0.3):
            case.planner["cursor_tuple_fraction"] = "1.0"
        return case

    def k_inside(self, number):
        """A cursor whose table is changed by its own transaction."""
        table = self.rng.choice(schema.CHANGED)
        sql = self.s_scan(table, wide=True)
        key = self.rng.choice(KEYS)
        change = self.rng.choice([
            f"update {table} set a = a + 1 where id in (select id from {table} "
            f"where {self.cond(table, key)} order by id limit 50)",
            f"delete from {table} where id in (select id from {table} "
            f"where {self.cond(table, key)} order by id limit 50)",
            f"insert into {table} select id + 100000, a, b, c, t, md5(u::text)::uuid, ts, n, f, w, p, r "
            f"from {table} where {self.cond(table, key)} order by id limit 50",
        ])
        steps = [f"declare c1 {self.rng.choice(['scroll ', 'scroll ', ''])}cursor for {sql}"]
        insert = [change]
        if self.chance(0.5):
            insert = []
            k = self.play(["c1"])
            steps += k[:3] + ["savepoint s", change] + k[3:8] + ["rollback to savepoint s"] + k[8:]
        steps += self.play(["c1"], insert)
        steps.append(f"select count(*), sum(a), sum(b), sum(c) from {table}")
        return self.make(number, "inside", steps, [sql], modifies=True)

    def k_hold(self, number):
        sql = self.cursor_query()
        scroll = self.rng.choice(["scroll ", ""])
        fetched = [f"fetch {self.rng.choice([1, 5, 80])} from c1"] if self.chance(0.6) else []
        return self.make(number, "hold", [f"declare c1 {scroll}cursor with hold for {sql}"] + fetched,
                         [sql], after_commit=self.play(["c1"]) + ["close c1"])

    def k_currentof(self, number):
        table = self.rng.choice(schema.CHANGED)
        key = self.rng.choice(KEYS)
        lock = self.rng.choice(["", " for update", " for share", " for no key update", " for update skip locked"])
        # CURRENT OF cannot follow a cursor through an aggregate or a sort: index order only
        sql = (f"select {self.targets(key)} from {table} where {self.cond(table, key, wide=True)} "
               f"order by {self.order(key, backward=self.chance(0.4))}{lock}")
        steps = [f"declare c1 cursor for {sql}"]
        for _ in range(self.rng.randint(2, 8)):
            steps.append(f"fetch {self.rng.choice([1, 1, 3, 50])} from c1")
            steps.append(self.rng.choice([
                f"update {table} set b = 3, c = c + 1 where current of c1 returning id, a, b, c",
                f"update {table} set w = 'x' where current of c1 returning id",
                f"delete from {table} where current of c1 returning id, a",
            ]))
        steps.append(f"select count(*), sum(hashtext(x::text)::bigint) from {table} x")
        case = self.make(number, "currentof", steps, [sql], modifies=True)
        case.planner["enable_sort"] = "off"
        return case

    def k_prepared(self, number):
        table, key = self.table(), self.rng.choice([k for k in KEYS if k[0][0] in JOINABLE])
        col = key[0][0]
        where = self.rng.choice([f"{col} = $1", f"{col} between $1 and $2", f"{col} in ($1, $2)",
                                 f"{col} = any (array[$1, $2, $1 + 1])", f"{col} > $1 and id < $2"])
        tail = self.rng.choice(["", f" order by {self.order(key, backward=self.chance(0.5))}",
                                f" order by {self.order(key)} limit $2"])
        sql = f"select {self.targets(key)} from {table} where {where}{tail}"
        runs = []
        for _ in range(self.rng.randint(2, 6)):
            args = [self.lit(table, col) if self.chance(0.9) else "null",
                    self.rng.choice(["5", "100", self.lit(table, "id")])]
            runs.append(f"execute p1({args[0]}, {args[1]})")
        case = self.make(number, "prepared", runs, [runs[0]],
                         before=[f"prepare p1(int, int) as {sql}"])
        case.planner["plan_cache_mode"] = self.rng.choice(["force_generic_plan", "force_custom_plan"])
        return case

    def k_parallel(self, number):
        table, key = self.rng.choice(["vis", "mixed", "dead", "dups", "frag", "part", "unl"]), self.rng.choice(KEYS)
        cond = self.cond(table, key, "x", wide=self.chance(0.7))
        t2, j = self.rng.choice(["vis", "frag", "dead"]), self.rng.choice(["a", "id", "c"])
        sql = self.rng.choice([
            f"select {self.targets(key, 'x')} from {table} x where {cond}",
            f"select count(*), sum(x.id), sum(x.a), min(x.b) from {table} x where {cond}",
            f"select x.b, count(*), sum(x.c) from {table} x where {cond} group by x.b",
            f"select count(*), sum(y.id) from {table} x join {t2} y on y.{j} = x.{j} where {cond}",
            f"select x.id from {table} x where {cond} order by {self.order(key, 'x')}, x.id",
            # workers are started anew for each row of the outer side
            f"select * from (values (1), (2), (3)) v(i) left join (select count(*), sum(x.id) "
            f"from {table} x where {cond}) s on true",
        ])
        case = self.make(number, "parallel", [sql], [sql], ordered=False)
        case.planner.update({"enable_material": "off",
            "parallel_setup_cost": "0", "parallel_tuple_cost": "0",
            "min_parallel_index_scan_size": "0", "min_parallel_table_scan_size": "0",
            "max_parallel_workers_per_gather": str(self.rng.choice([1, 2, 3]))})
        if self.chance(0.3):
            case.planner["parallel_leader_participation"] = "off"
        return case

    def k_plpgsql(self, number):
        which = self.rng.choice(["looped", "nested", "stepped"])
        if which == "looped":
            sql = self.select()
            call = f"select * from looped($q${sql}$q$, {self.rng.choice([1, 3, 30, 1000])})"
        elif which == "nested":
            t1, t2 = self.table(), self.table()
            j = self.rng.choice(JOINABLE)
            # Nobody compares the plan of the inner query.  Beside writers, whose work
            # makes the planner change its mind, the order must not depend on it.
            last = ", y.id" if self.readonly else ""
            sql = self.rng.choice([
                f"select y.id::text from {t2} y where y.{j} = $1 order by y.{j}, y.id",
                f"select (100 / (y.b - 4))::text || y.id from {t2} y where y.{j} >= $1 "
                f"order by y.{j}{last} limit 30",
                f"select y.a::text from {t2} y where y.{j} < $1 order by y.{j} desc{last}",
            ])
            key = self.rng.choice(KEYS)
            outer = f"select id from {t1} where {self.cond(t1, key)} order by {self.order(key)} limit 40"
            call = f"select * from nested($q${outer}$q$, $q${sql}$q$)"
            sql = outer
        else:
            sql = self.s_lists() if self.chance(0.4) else self.s_scan(wide=True)
            hows = [str(self.rng.choice([1, 1, 2, 7, 100, -1, -3, -50, 0]))
                    for _ in range(self.rng.randint(3, 15))]
            call = f"select * from stepped($q${sql}$q$, array[{', '.join(hows)}])"
        return self.make(number, "plpgsql", [call], [sql])

    def k_serializable(self, number):
        """What SSI has locked when a scan stops early is visible in pg_locks."""
        sql = self.s_other(wide=True) if self.chance(0.3) else \
            self.s_scan(self.rng.choice(["vis", "dead", "dups", "frag"]), wide=self.chance(0.7))
        locks = ("select relation::regclass, locktype, page, tuple from pg_locks "
                 "where mode = 'SIReadLock' and pid = pg_backend_pid() order by 1, 2, 3, 4")
        steps = [f"declare c1 cursor for {sql}", f"fetch {self.rng.choice([1, 2, 10, 100])} from c1",
                 locks, "fetch 5 from c1", locks, "close c1"]
        return self.make(number, "serializable", steps, [sql], isolation="serializable")

    def k_write(self, number):
        """Like k_dml: many rows into, or of, a table that is not in the order of its indexes."""
        r = self.rng
        source = r.choice(["vis", "frag", "dead", "part"])
        new = "(select max(id) from {T}) + row_number() over ()"
        columns = f"md5(u::text || {number})::uuid, ts, n, f, null, p, r"
        some = f"(id * {r.choice([7, 11, 13])}) % {r.choice([5, 9, 20])} = 0"
        conflict = r.choice(["nothing", "update set a = excluded.a, c = {T}.c + 1", "update set w = 'again'"])
        sql = r.choice([
            f"insert into {{T}} select {new}, a, b, c, t, {columns} from {source} where {some}",
            f"insert into {{T}} select {new}, a, b, c, t, {columns} from {source} where {some} returning id, a",
            f"insert into {{T}} select id, a, b, c, t, {columns} from {source} where {some} "
            f"on conflict (id) do {conflict}",
            f"update {{T}} set a = a * {r.choice([3, 5])} % 4000, c = id, u = md5(u::text || {number})::uuid where {some}",
            f"update {{T}} set t = 'W' || a % 150, b = nullif(b + 1, 10) where {some}",
            "delete from {T} where id > 4000",
        ])
        return self.make(number, "write", [sql], [sql], dml=True)

    def k_dml(self, number):
        """Runs on copy1 with look-ahead off, on copy2 with it on, and is committed."""
        r, key = self.rng, self.rng.choice(KEYS)
        cond = self.cond("copy1", key)
        some = f"id in (select id from {{T}} where {cond} order by {self.order(key)} limit 80)"
        where = cond if self.chance(0.15) else some
        limit = f"id between {r.randint(1, 3500)} and {r.randint(1, 4000)}"
        sql = r.choice([
            f"update {{T}} set a = a + {r.choice([1, 7, -3])} where {where} returning id, a",
            f"update {{T}} set b = (b + 1) % 10, c = {r.choice(['c', 'null', 'a'])} where {where} returning id",
            f"update {{T}} set t = 'N' || id % 40, ts = ts + interval '1 day' where {where} returning id, t",
            f"update {{T}} set w = repeat('z', 3000) where {some} and {limit}",
            f"update {{T}} set id = id + {r.choice([1, 100000])} where {limit} and {cond} returning id",
            f"delete from {{T}} where {some} returning id, a, b",
            f"delete from {{T}} where {some} and {limit}",
            f"update {{T}} set a = a + 1 where ctid = any (array(select ctid from {{T}} where {cond} order by {self.order(key)} limit 80)) returning id",
            f"delete from {{T}} where ctid in (select ctid from {{T}} where {cond} order by {self.order(key)} limit 80) returning id",
            "insert into {T} select (select max(id) from {T}) + row_number() over (), a, b, c, t, "
            f"md5(u::text || {number})::uuid, ts, n, f, w, p, r from {{T}} where {some} returning id",
            "insert into {T} select (select max(id) from {T}) + row_number() over (), a, b, c, t, "
            f"md5(u::text || {number})::uuid, ts, n, f, null, p, r from {{T}} where {limit} limit 300",
            "insert into {T} select * from vis where id % 50 = "
            f"{r.randint(0, 49)} on conflict (id) do update set b = excluded.b, c = {{T}}.c + 1",
            f"merge into {{T}} x using (select * from frag where {limit}) y on x.id = y.id "
            "when matched and x.b > 5 then delete when matched then update set a = y.a "
            "when not matched then insert values (y.*)",
            f"merge into {{T}} x using (select id + {r.randint(0, 2000)} as i, a, b, t from {{T}} where {limit}) y "
            f"on x.id = y.i when matched and x.a % 3 = y.b % 3 then do nothing when matched and x.b < {r.randint(0, 9)} "
            "then update set a = y.a, t = y.t || x.t when matched and y.b > 8 then delete "
            f"when not matched and 10 / (y.b - {r.randint(-9, -1)}) >= 1 then insert (id, a, b, t) "
            "values (y.i, y.a + y.b, y.b, y.t) when not matched and y.b = 0 then do nothing",
            f"update {{C}} set v = v + 1 where pid in (select id from {{T}} where {cond}) "
            f"and v > {r.randint(0, 100)} returning id, v",
            f"delete from {{C}} where v < {r.randint(0, 9)} returning id",
            f"update {{T}} x set n = y.v from {{C}} y where y.pid = x.id and y.v < {r.randint(0, 30)} "
            "and y.id % 7 = 0",
            f"with d as (delete from {{T}} where {some} returning *) "
            "select count(*), sum(a), min(t) from d",
            f"select id, a from {{T}} where {cond} order by {self.order(key)} limit 50 for update"
            f"{r.choice(['', ' skip locked', ' nowait'])}",
            "vacuum {T}", "vacuum {C}", "reindex table {T}", "analyze {T}",
        ])
        explain = [] if sql.split()[0] in ("vacuum", "reindex", "analyze") else [sql]
        return self.make(number, "dml", [sql], explain, dml=True)
