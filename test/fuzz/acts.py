"""
acts.py - what is done in a world: scripts of one transaction, mostly.

An act is a list of steps.  A step is a statement, or
  ("side", statement)      done by a second session
  ("copy", statement, text)    COPY FROM STDIN with these data
Acts are made of a query (a shape: q_ methods), whose expressions have effects, fail, read settings or warn,
and of a destination that takes its rows (a cursor, a loop, a table, ...), or are a modification.

KINDS has all kinds; a world plays each of them at least once.
"""

import random

import impure_cases

# expressions of a row {a}, by what they do.  All give an integer.
PURE = ("{a}.v", "{a}.id % 10", "coalesce({a}.z, 0) + 1", "length({a}.x)", "abs({a}.v - {a}.z)", "{a}.j % 50", "quiet({a}.z)")
FAIL = ("100 / ({a}.z - {n})", "{a}.x::int", "boom({a}.id)", "({a}.id * 77)::dom_fails::int", "({a}.v - 9 + {a}.z * 0) / ({a}.v - {m})",
        "length(substring('abcdef' from 1 for {a}.v - 2))", "sqrt(({a}.z - 2)::float8)::int", "({a}.id::int2 * 100::int2)::int",
        "chr({a}.v - 1)::text = 'x' and true", "(array[1, 2, 3])[1 + {a}.v] / ({a}.z - {n})", "('[' || {a}.x || ']')::json ->> 0 = '1' and true",
        "to_date({a}.x, 'YYYY') > 'epoch' and true", "ln(({a}.v)::numeric)::int", "({a}.ty::regtype)::oid::int % 100",
        "has_type_privilege({a}.ty || '', 'nothing')", "format('%' || {a}.x, 1) = '1' and true")
SUB = ("(select b.w from b where b.tid = {a}.id)", "(select b.w from b where b.tid = {a}.id and (b.id <= 900 or b.id % 30 = 7))",
       "(select b.w from b where b.tid = {a}.id and (b.id <= 900 or b.id % 30 = 7))", "(select max(b.w) from b where b.tid = {a}.id)", "(select 20 / (b.w - {m}) from b where b.tid = {a}.id order by b.id limit 1)",
       "exists (select 1 / (b.w - {m}) from b where b.tid = {a}.id and 10 / (b.w - {m}) > 0) and true", "({a}.v = any (select 10 / (b.w - {m}) from b where b.tid = {a}.id)) and true",
       "({a}.v > all (select b.w from b where b.tid = {a}.id)) and true", "(row({a}.v, {a}.z) = (select b.w, b.id from b where b.tid = {a}.id)) and true",
       "array_length(array(select b.w from b where b.tid = {a}.id order by b.id), 1)", "(select count(*)::int from b where b.tid = {a}.id and b.w < {a}.v)",
       "(select t2.v from t t2 where t2.id = {a}.j)", "(select t2.v from t t2 where t2.k {eq} {a}.k)", "(select max(t2.z) from vt t2 where t2.k {eq} {a}.k and t2.id > {a}.v)",
       "(select p.pv from p where p.id = {a}.j)", "(select count(*)::int from t t2, b where t2.id = {a}.j and b.tid = t2.id)", "({a}.j in (select p.id from p where p.pv = {a}.v)) and true",
       "({a}.k not in (select t2.k from t t2 where t2.id < 20)) and true", "(select length(t2.big) from t t2 where t2.id = {a}.j)", "(select b.w from b where b.tid = {a}.id and 10 / (b.w - {m}) < 5)")
READ = ("length(({a}.ts at time zone 'LMT')::text)", "extract(hour from {a}.ts::timestamptz)::int", "extract(hour from {a}.tz)::int", "length({a}.tz::text)",
        "off_imm({a}.v)", "{a}.v + off()", "extract(hour from {a}.ts at time zone {a}.zone)::int", "extract(hour from date_trunc('day', {a}.tz))::int",
        "length(({a}.ts::date)::text)", "({a}.ts < timestamptz '2024-01-01 03:00+00') and true", "extract(hour from make_timestamptz(2024, 1, 1, {a}.v, 0, 0))::int",
        "extract(hour from timezone({a}.zone, {a}.ts))::int", "to_char({a}.tz, 'HH24')::int", "length(({a}.ts || '')::text)", "extract(hour from ((({a}.x)::int % 24) || ':00')::timetz)::int")
WARN = ("has_type_privilege({a}.ty, 'usage') and true", "has_type_privilege({a}.ty, 'usage') and true", "has_type_privilege('reader', {a}.ty, 'usage') and true", "(to_regtype({a}.ty) is null) and true", "coalesce(to_regtype({a}.ty)::oid::int % 10, 0)", "tell({a}.v)", "imm_tell({a}.z)", "peek_tell({a}.id) and true",
        "({a}.v::dom_tells)::int", "numnode(plainto_tsquery('english', case when {a}.v = 3 then 'the' else 'cat' end))", "length(format_type({a}.ty::regtype, 5))",
        "numnode(websearch_to_tsquery('english', 'a ' || {a}.zone))", "(select tell(b.w) from b where b.tid = {a}.id limit 1)")
WARN_16 = ("pg_input_is_valid({a}.v::text, {a}.ty) and true",)
DO = ("eff({a}.v)", "put({a}.v)", "zone_to({a}.id) and true", "off_to({a}.id) and true", "stable_eff({a}.z)", "imm_eff({a}.v)", "(nextval('sq') % 10)::int",
      "(set_config('timezone', case when {a}.id % 30 > 14 then 'Asia/Tokyo' else 'Europe/Berlin' end, false) is not null) and true",
      "length(set_config('my.off', ({a}.v % 3)::text, true))", "peek({a}.v) and true")
POOLS = {"pure": PURE, "fail": FAIL, "sub": SUB, "read": READ, "warn": WARN, "do": DO}


class Act:
    def __init__(self, number, kind):
        self.number, self.kind = number, kind
        self.steps, self.planner = [], {}
        self.role = None
        self.commit = False         # what it has done stays, for later acts
        self.streamed = False       # rows are read one by one, so that those before an error are seen
        self.settled = None         # from this step on rows may be in any order
        self.transaction = True     # not for statements that cannot be in one
        self.writes = False         # then the tables are compared


class Acts:
    """Makes one act; method names are k_ and the kind."""

    def __init__(self, world, number, kind):
        self.w, self.s = world, world.shape
        self.r = random.Random(f"act/{world.seed}/{world.number}/{number}")
        self.names = 0
        self.act = act = Act(number, kind)
        act.planner = impure_cases.planner_settings(self.r)
        act.planner.pop("work_mem", None)
        self.pools = self.r.choice((("pure", "sub"), ("fail", "sub", "pure"), ("read", "do"), ("warn", "sub", "pure"), ("do", "sub", "pure"), ("fail", "do", "pure"),
                                    ("sub",), ("fail", "sub"), ("pure",), ("read", "do", "sub"), ("pure", "fail", "read", "warn", "do", "sub")))
        act.streamed = self.chance(0.3)
        getattr(self, f"k_{kind}")()
        # rights that are looked at when a statement runs
        if act.role is None and self.chance(0.3 if "rls" in self.s["security"] else 0.05):
            act.role = "reader"

    def chance(self, p):
        return self.r.random() < p

    def pick(self, *values):
        return self.r.choice(values)

    def alias(self):
        self.names += 1
        return f"a{self.names}"

    # ---- expressions ------------------------------------------------------

    def fill(self, text, a):
        return text.format(a=a, n=self.r.randint(0, 49), m=self.r.randint(0, 9), eq=self.w.key.op("="))

    def drawn(self, pool, a):
        return self.fill(self.r.choice(POOLS[pool]), a)

    def i(self, a):
        """An integer of a row."""
        text = self.drawn(self.r.choice(self.pools), a)
        return f"({text})::int"

    def t(self, a):
        return self.pick(f"{a}.x", f"md5({a}.big)", f"left({a}.big, 20)", f"{a}.k::text", f"{a}.tz::text", f"({a}.ts at time zone {a}.zone)::text", f"({self.i(a)})::text",
                         f"length({a}.big)::text", f"{a}.cj::text")

    def b(self, a):
        """A condition of a row."""
        if self.chance(0.45):
            return self.pick(f"{a}.v < {self.r.randint(2, 10)}", f"{a}.id % {self.r.randint(2, 7)} <> 1", f"{a}.z > {self.r.randint(0, 30)}")
        return f"{self.i(a)} {self.pick('>', '<', '<>', '>=')} {self.r.randint(-1, 12)}"

    def value(self, i):
        return self.w.key.value(str(i))

    def table(self, *also):
        return self.pick("t", "t", "t", "vt", "vt", *also)

    def some_key(self):
        return self.value(self.r.randint(1, self.w.n))

    def moment(self, zone="+00"):
        """A time that some of the rows of "t" have before it, and others behind it."""
        minute = self.r.randint(self.w.n // 10, self.w.n)
        return f"2024-01-{1 + minute // 1440:02} {minute // 60 % 24:02}:{minute % 60:02}{zone}"

    def key_condition(self, a):
        """A condition by the key, or another column with an index."""
        op, n = self.w.key.op, self.w.n
        lo = self.r.randint(1, n)
        hi = min(n, lo + self.r.choice((3, 50, 400, n)))
        k = f"{a}.k"
        found = [f"{k} {op('=')} {self.value(lo)}", f"{k} {op('>=')} {self.value(lo)} and {k} {op('<=')} {self.value(hi)}", f"{k} {op('<')} {self.value(hi)}",
                 f"{k} {op('>')} {self.value(lo)}", f"{k} {op('>')} {self.value(lo)} and {a}.v < 6",
                 f"{k} {op('=')} any (array[{', '.join(self.value(self.r.randint(1, n)) for _ in range(4))}]::{self.w.key.type}[])", f"{k} is null",
                 f"{k} {op('=')} (select o.k from o where o.id = {self.r.randint(1, 400)})"]
        other = [f"{a}.ts < timestamptz '{self.moment()}'", f"{a}.ts >= timestamptz '{self.moment()}' and {a}.ts < timestamp '{self.moment('')}'",
                 f"{a}.ts > timestamptz '{self.moment()}'", f"{a}.cj < row({hi}, '{{}}')::pairj", f"{a}.cj >= row({lo}, '{{}}')::pairj", f"{a}.tz < timestamp '2024-01-03 00:00'",
                 f"{a}.id between {lo} and {hi}", f"{a}.id = any (array[{lo}, {hi}, 3, 4])", f"{a}.v in (1, 3) and {a}.z < 20", f"array[{a}.v, {a}.z] && array[{lo % 10}, {hi % 10}]",
                 f"int4range({a}.id, {a}.id + 3) && int4range({lo}, {hi + 1})", f"int4range({a}.id, {a}.id + 5) @> {lo}", f"quiet({a}.v) = {lo % 10}", f"imm_tell({a}.z) < {lo % 50}",
                 f"off_imm({a}.id) between {lo} and {hi}", f"quiet({a}.id) < {hi}", f"array[{a}.v, {a}.z, {a}.id] @> array[{lo}]", f"{a}.v = {lo % 10} and {a}.z >= {hi % 30}"]
        special = {"array": [f"{k} && array[{lo}, {hi}]", f"{k} @> array[{lo}]"], "jsonb": [f"{k} @> '{{\"a\": {lo}}}'"], "int4range": [f"{k} && int4range({lo}, {hi + 1})", f"{k} << int4range({hi}, {hi + 2})"],
                   "inet": [f"{k} << inet '10.0.0.0/24'"], "text": [f"{k} like 'k0000%'", f"{k} ^@ 'k00001'"], "timestamp": [f"{k} < timestamptz '{self.moment()}'"] * 5,
                   "timestamptz": [f"{k} < timestamp '{self.moment('')}'"] * 5, "date": [f"{k} < timestamptz '2001-01-01 20:00+00'"] * 3}.get(self.s["key"], [])
        return self.r.choice(self.r.choice([found, found, other, special or found]))

    # ---- queries ----------------------------------------------------------

    def columns(self, *aliases):
        a = self.r.choice(aliases)
        out = [f"{aliases[0]}.id as id", f"{self.i(a)} as c1", f"{self.t(self.r.choice(aliases))} as c2"]
        if self.chance(0.5):
            out.append(f"{self.i(self.r.choice(aliases))} as c3")
        return ", ".join(out)

    def tail(self, *aliases):
        a = self.r.choice(aliases)
        return self.pick("", "", f" order by {a}.id", f" order by {a}.k using {self.w.key.op('<')}, {a}.id", f" order by {self.i(a)}, {a}.id", f" limit {self.r.choice((1, 7, 60))}",
                         f" order by {a}.id desc limit {self.r.choice((5, 90))}", f" order by {a}.v, {a}.id offset 3", " offset 0")

    def where(self, *aliases):
        conds = [self.b(self.r.choice(aliases)) for _ in range(self.r.choice((0, 1, 1, 2)))]
        return conds

    def small(self, a):
        """Few enough rows for what is done with each of them."""
        return self.pick(f"{a}.id <= {self.r.randint(40, 600)}", f"{a}.id > {self.w.n - self.r.randint(40, 500)}", f"{a}.v = {self.r.randint(0, 9)} and {a}.id < 2000")

    def text(self, columns, source, conds, tail=""):
        where = f" where {' and '.join(conds)}" if conds else ""
        return f"select {columns} from {source}{where}{tail}"

    def q_join(self):
        a, b = self.alias(), self.alias()
        kind = self.pick("join", "left join", "left join")
        on = self.pick(f"{b}.k {self.w.key.op('=')} {a}.k", f"{b}.k {self.w.key.op('=')} {a}.k", f"{b}.id = {a}.j", f"{b}.id = {self.i(a)}", f"{b}.id = {a}.id", f"{b}.ts = {a}.tz",
                       f"{b}.v = {a}.v and {b}.z = {a}.z and {b}.id < 300", f"{b}.k {self.w.key.op('<')} {a}.k and {b}.id < 40", f"{b}.cj = {a}.cj",
                       f"{b}.k {self.w.key.op('=')} {a}.k and {b}.v = {self.i(a)}", f"{b}.ts < {a}.tz and {b}.ts > {a}.tz - interval '20 minutes'")
        return self.text(self.columns(a, b), f"{self.pick('o', 'o', 'vo')} {a} {kind} {self.table()} {b} on {on}", self.where(a, b), self.tail(a, b))

    def q_join_key(self):
        """Joins by an expression of the outer row."""
        a, b = self.alias(), self.alias()
        table, column = self.pick(("f", "b"), ("f", "b"), ("b", "tid"), ("p", "id"))
        kind = self.pick("join", "left join")
        return self.text(f"{a}.id as id, {b}.{column} as c1, {self.t(a)} as c2", f"{self.pick('o', 'o', 't')} {a} {kind} {table} {b} on {b}.{column} = {self.i(a)}", [self.small(a)] + self.where(a), self.tail(a))

    def q_join_three(self):
        a, b, c = self.alias(), self.alias(), self.alias()
        on = self.pick(f"{c}.tid = {b}.id", f"{c}.tid = {a}.id", f"{c}.tid = {self.i(a)}")
        return self.text(self.columns(a, b), f"o {a} join {self.table()} {b} on {self.pick(f'{b}.id = {a}.j', f'{b}.k {self.w.key.op(chr(61))} {a}.k', f'{b}.id = {a}.id')} "
                         f"{self.pick('left join', 'join')} b {c} on {on}", self.where(a, b), self.tail(a))

    def q_sub(self):
        a = self.alias()
        return self.text(self.columns(a) + f", ({self.drawn('sub', a)})::int as s", f"{self.table('o', 'vo')} {a}", [self.small(a)] + self.where(a), self.tail(a))

    def q_sub_above(self):
        """A subquery in the output of a join or of an aggregate, whose conditions may fail."""
        a, b = self.alias(), self.alias()
        out = self.pick(f"count(*), sum(({self.drawn('sub', b)})::int)", f"{a}.id as id, ({self.drawn('sub', b)})::int as c1", f"count(*), max(({self.drawn('sub', a)})::int)")
        return self.text(out, f"o {a} join {self.table()} {b} on {b}.id = {a}.{self.pick('id', 'j')}", [self.pick(self.b(a), f"100 / ({a}.z - {self.r.randint(0, 49)}) is not null", f"({self.drawn('fail', a)})::int is not null")] + self.where(a, b))

    def q_range(self):
        a = self.alias()
        order = self.pick("", f" order by {a}.k using {self.w.key.op('<')}", f" order by {a}.ts", f" order by {a}.ts desc", f" order by {a}.id", f" limit {self.r.choice((3, 40, 300))}")
        columns = self.pick(f"{a}.id as id, {self.i(a)} as c1", f"{a}.k::text as c1, {a}.v", f"{a}.k::text as k", f"count(*), sum({a}.id)", f"{a}.id as id, md5({a}.big) as c1", f"{a}.ts")
        if "count" in columns:
            order = ""
        return self.text(columns, f"{self.table()} {a}", [self.key_condition(a)] + self.where(a)[:1], order)

    def q_changing(self):
        """A scan during which a setting changes, by the rows that it has returned, that its own condition reads."""
        a, q = self.alias(), self.alias()
        cond = self.pick(f"{a}.ts < timestamptz '{self.moment()}'", f"{a}.ts < timestamptz '{self.moment()}'", f"{a}.ts > timestamptz '{self.moment()}'", f"{a}.tz < timestamp '2024-01-02 00:00'", self.key_condition(a))
        change = self.pick(f"set_config('timezone', case when {a}.id > {self.r.randint(5, self.w.n // 2)} then 'Asia/Tokyo' else 'Europe/Berlin' end, false)",
                           f"set_config('my.shift', ({a}.id / 50 % 9)::text, false)", f"set_config('my.off', ({a}.id / 50 % 4)::text, false)")
        order = self.pick("ts", "ts", "k using " + self.w.key.op("<"), "id")
        return f"select id, z from (select {a}.id, {change} z from {self.table()} {a} where {cond} order by {a}.{order} offset 0) {q} where length(z) > 0"

    def q_semi(self):
        a, b = self.alias(), self.alias()
        cond = self.pick(f"exists (select from {self.table()} {b} where {b}.k {self.w.key.op('=')} {a}.k and {self.b(b)})", f"not exists (select from {self.table()} {b} where {b}.id = {a}.j and {self.b(b)})",
                         f"{a}.id in (select {b}.j from {self.table()} {b} where {self.small(b)} and {self.b(b)})", f"exists (select from b where b.tid = {a}.id and 10 / (b.w - {self.r.randint(0, 9)}) > 1)",
                         f"{a}.j not in (select {b}.id from {self.table()} {b} where {b}.v = 3 and {self.b(b)})")
        return self.text(self.columns(a), f"{self.pick('o', 'o', 't')} {a}", [cond, self.small(a)] + self.where(a), self.tail(a))

    def q_agg(self):
        a = self.alias()
        return self.pick(
            self.text(f"{a}.v as id, count(*), sum({self.i(a)}), max({self.t(a)})", f"{self.table()} {a}", [self.small(a)], f" group by {a}.v" + self.pick("", f" having sum({a}.z) > 30") + " order by 1"),
            self.text(f"max({a}.k) as id" if not self.w.key.own and self.s["key"] not in ("jsonb", "bool", "uuid", "bytea", "bit", "int4range", "comp_int_text", "name", "oidvector", "comp_int_json", "array_of_comp", "comp_of_comp")
                      else f"max({a}.id) as id", f"{self.table()} {a}", [self.b(a)]),
            self.text(f"{a}.id as id, sum({self.i(a)}) over (order by {a}.id) as c1", f"{self.table()} {a}", [self.small(a)]),
            self.text(f"distinct on ({a}.k) {a}.id as id, {self.i(a)} as c1", f"{self.table()} {a}", [self.small(a)], f" order by {a}.k, {a}.id") if self.s["key"] not in ("jsonb",) and not self.w.key.own
            else self.text(f"distinct {a}.v as id", f"{self.table()} {a}", [self.small(a)]))

    def q_lateral(self):
        a, b, c = self.alias(), self.alias(), self.alias()
        inner = self.pick(f"select {b}.id, {b}.v, {self.i(a)} as c from {self.table()} {b} where {b}.id = {a}.j", f"select {b}.id, {b}.v, {b}.z as c from {self.table()} {b} where {b}.k {self.w.key.op('=')} {a}.k order by {b}.id limit 2",
                          f"select max({b}.w) as id, count(*) as v, sum({b}.w) as c from b {b} where {b}.tid = {a}.id having count(*) > 0", f"select {b}.id, {b}.v, {self.i(b)} as c from {self.table()} {b} where {b}.id > {a}.j order by {b}.id limit 3",
                          f"select {b}.b as id, {b}.c as v, 1 as c from f {b} where {b}.b = {self.i(a)} limit 1")
        return self.text(f"{a}.id as id, {c}.v as c1, {c}.c as c2, {self.i(a)} as c3", f"o {a} {self.pick('cross join lateral', 'left join lateral')} ({inner}) {c}"
                         .replace("left join lateral", "left join lateral") + (" on true" if False else ""), self.where(a)[:1], self.tail(a))

    def q_set(self):
        a, b = self.alias(), self.alias()
        op = self.pick("union all", "union all", "union", "except", "intersect")
        return (f"select {a}.id as id, {self.i(a)} as c1 from {self.table()} {a} where {self.key_condition(a)} {op} "
                f"select {b}.id, {self.i(b)} from {self.table()} {b} where {self.small(b)}")

    def q_cte(self):
        a, b, n = self.alias(), self.alias(), self.alias()
        made = self.pick("as", "as materialized")
        return (f"with {n} {made} (select {a}.id, {a}.j, {a}.k, {self.i(a)} as c from o {a} where {self.b(a)}) "
                f"select {n}.id as id, {n}.c as c1, {b}.v as c2 from {n} {self.pick('join', 'left join')} {self.table()} {b} on {self.pick(f'{b}.id = {n}.j', f'{b}.k {self.w.key.op(chr(61))} {n}.k')}")

    def q_values(self):
        a, b = self.alias(), self.alias()
        rows = ", ".join(f"({self.r.randint(1, 400)}, {self.pick('1', '2', '0', 'null')})" for _ in range(20))
        return self.text(f"{a}.x as id, {b}.v as c1, {self.i(b)} as c2", f"(values {rows}) {a} (x, y) {self.pick('join', 'left join')} {self.table()} {b} on {b}.id = {self.pick(f'{a}.x', f'{a}.x / {a}.y', f'tell({a}.x)')}", [])

    def q_locks(self):
        a, b = self.alias(), self.alias()
        t = self.table()
        return (self.text(self.columns(a), f"o {b} join {t} {a} on {a}.id = {b}.j", self.where(a, b)) +
                f" for {self.pick('update', 'share', 'no key update', 'key share')} of {a}{self.pick('', ' skip locked', ' nowait')}")

    QUERIES = ("join", "join", "join_key", "join_three", "sub", "sub", "sub_above", "range", "range", "changing", "semi", "agg", "lateral", "set", "cte", "values")

    def query(self, *kinds):
        q = getattr(self, f"q_{self.r.choice(kinds or self.QUERIES)}")()
        if "left join lateral" in q:
            # the condition that its syntax asks for stands behind the parenthesis
            q = lateral_on_true(q)
        return q

    def quoted(self, sql):
        return f"$q${sql}$q$"

    # ---- acts that read ---------------------------------------------------

    def k_select(self):
        self.act.steps = [self.query()]

    def k_range(self):
        self.act.steps = [self.query("range"), self.query("range", "changing"), self.query("range")]

    def k_join(self):
        self.act.steps = [self.query("join", "join_key", "join_three")]

    def k_join_key(self):
        self.pools = self.pick(("warn",), ("warn", "do"), ("read", "do"), ("fail",), ("sub",))
        if self.chance(0.6):
            self.act.planner.update({"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "enable_memoize": "off", "enable_material": "off"})
        self.act.steps = [self.query("join_key")]

    def k_sub(self):
        if self.chance(0.5):
            self.act.planner.update({"enable_hashjoin": "off", "enable_mergejoin": "off"})
        self.act.steps = [self.query("sub", "sub_above", "sub_above")]

    def k_changing(self):
        self.act.planner.update({"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off"} if self.chance(0.7) else {})
        self.act.steps = ["set local timezone = 'Europe/Berlin'", self.query("changing"), self.query("changing")]

    def k_other(self):
        self.act.steps = [self.query("semi", "agg", "lateral", "set", "cte", "values"), self.query("semi", "lateral")]

    def k_locks(self):
        self.act.steps = [self.q_locks()]

    def fetches(self, scroll):
        steps = []
        for _ in range(self.r.randint(3, 8)):
            n = self.r.choice((1, 2, 10, 10, 40, 150))
            steps.append(self.pick(f"fetch {n} from c", f"fetch {n} from c", f"fetch {n} from c", f"move {n} from c", "set timezone = 'Asia/Tokyo'", "set timezone = 'Europe/Berlin'",
                                   f"select set_config('my.shift', '{self.r.randint(0, 9)}', false)", f"select set_config('my.off', '{self.r.randint(0, 3)}', false)", "select eff(7)", "savepoint s",
                                   *([f"fetch backward {n} from c", "fetch last from c", f"fetch absolute {n} from c", "fetch first from c", f"move backward {n} from c"] if scroll else [])))
        return steps

    def k_cursor(self):
        scroll = self.chance(0.3)
        q = self.query(*self.pick(("join", "join_key", "sub"), ("range", "changing"), ("range",), self.QUERIES, ("join",)))
        if self.chance(0.4):
            self.act.planner.update({"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off"})
        self.act.steps = [f"declare c {'scroll' if scroll else 'no scroll'} cursor for {q}"] + self.fetches(scroll) + self.pick([], ["fetch all from c"], ["close c"])

    def k_hold(self):
        scroll = self.chance(0.4)
        self.act.steps = ([f"declare c {'scroll' if scroll else 'no scroll'} cursor with hold for {self.query()}"] + self.fetches(False)[:2] + ["commit", "begin"] +
                          self.fetches(scroll) + ["close c"])

    def k_current_of(self):
        """Rows are changed through a cursor's position, by statements."""
        a = self.alias()
        t = self.pick("t", "t", "vt", "vt", "o", "vo")
        columns = self.pick(f"{a}.id, ({self.drawn('sub', a)})::int", f"{a}.id, (select max(w) from b where b.tid = {a}.id)", self.columns(a), f"{a}.id")
        q = self.text(columns, f"{t} {a}", [self.pick(self.key_condition(a), self.small(a), "true")] + self.where(a)[:1])
        base = {"vt": "t", "vo": "o"}.get(t, t)
        steps = [f"declare c {self.pick('no scroll', 'no scroll', '', 'scroll')} cursor for {q}{self.pick('', '', ' for update')}"]
        for _ in range(self.r.randint(2, 6)):
            steps += [f"{self.pick('fetch', 'move', 'fetch')} {self.r.choice((1, 1, 5, 30))} from c",
                      self.pick(f"delete from {base} where current of c returning id", f"update {base} set v = 5 where current of c returning id", f"delete from {base} where current of c")]
        self.act.steps = steps + ["close c"]
        self.act.writes = True

    def k_current_of_loop(self):
        """The same in PL/pgSQL, where the cursor may also run over a view."""
        a = self.alias()
        t = self.pick("t", "vt", "vt", "vt", "o", "vo")
        columns = self.pick(f"{a}.id, (select max(w) from b where b.tid = {a}.id)", f"{a}.id, (select max(w) from b where b.tid = {a}.id)", f"{a}.id, ({self.drawn('sub', a)})::int", self.columns(a))
        q = self.text(columns, f"{t} {a}", self.pick([], [], [self.small(a)], [self.key_condition(a)]) + self.where(a)[:1])
        base = {"vt": "t", "vo": "o"}.get(t, t)
        self.act.steps = [f"select * from walked({self.quoted(q)}, '{base}', '{self.pick('delete', 'delete', 'update')}', {self.r.choice((3, 10, 50))}, {self.r.choice((100, 700))})"]
        self.act.writes = True

    def k_loop(self):
        self.act.steps = [self.pick(f"select * from looped({self.quoted(self.query())}, {self.r.choice((5, 40, 300))})", f"select * from caught({self.quoted(self.query())})",
                                    f"select looped({self.quoted(self.query())}, {self.r.choice((20, 200))}) limit 12", f"select counted({self.quoted(self.query())})",
                                    f"select * from walked_scroll({self.quoted(self.query())}, array[1, 5, 20, -3, 0, 1, 40, 0, 1, 1, -1])")]

    def k_generic(self):
        a = self.alias()
        cond = self.pick(f"{a}.k {self.w.key.op('=')} {self.w.key.value('$1')}", f"{a}.id > $1", f"{a}.v = $1 % 10", f"{a}.ts < timestamptz '2024-01-01 00:00+00' + $1 * interval '1 minute'",
                         f"{a}.id = (select b.tid from b where b.id = $1)")
        q = self.text(self.columns(a), f"{self.table()} {a}", [cond] + self.where(a), self.tail(a))
        self.act.planner["plan_cache_mode"] = self.pick("force_generic_plan", "force_generic_plan", "auto")
        self.act.steps = [f"prepare s (int) as {q}"] + [f"execute s ({self.r.randint(1, 400)})" for _ in range(3)] + self.pick([], ["set timezone = 'Asia/Tokyo'", "execute s (300)"])

    def k_made_table(self):
        q = self.query()
        self.act.steps = [self.pick(f"create table made as {q}", f"create temporary table made as {q}", f"create unlogged table made as {q}", f"select * into made from ({q}) x"),
                          "select made::text from made"]
        self.act.writes = True

    def k_matview(self):
        a = self.alias()
        t = "t" if not self.w.temp else "pg_class"
        if self.w.temp:
            self.act.steps = ["create materialized view mv as select relname from pg_class where oid < 2000", "refresh materialized view mv"]
            return
        q = self.text(f"{a}.id as id, {self.i(a)} as c1, md5({a}.big) as c2, {a}.k as k", f"{t} {a}", [self.small(a)])
        self.act.steps = [f"create materialized view mv as {q}{self.pick('', ' with no data')}", "create unique index on mv (id)", "refresh materialized view mv",
                          f"update t set v = 3 where id between 10 and {self.r.randint(20, 90)}", self.pick("refresh materialized view mv", "refresh materialized view concurrently mv"), "select id, c1, c2 from mv"]
        self.act.writes = True
        self.act.settled = 3

    def k_copy_to(self):
        fmt = self.pick("", " with (format csv)", " with (format binary)", " with (header, format csv)")
        self.act.steps = [self.pick(f"copy t to stdout{fmt}", f"copy ({self.query()}) to stdout{fmt}", f"copy t (id, k, big) to stdout{fmt}", "copy vt to stdout", f"copy (select * from vt) to stdout{fmt}",
                                    f"copy ({self.query()}) to stdout{fmt}", f"copy (delete from t where id < 60 returning id, v) to stdout")]
        self.act.streamed = False
        if self.chance(0.4):
            self.act.role = self.pick("reader", "stranger")

    # ---- acts that write --------------------------------------------------

    def new_row(self, a, n):
        """Columns of a row to be inserted: of the number n, an expression of a."""
        zone = self.pick(f"{a}.tz", f"{a}.ts at time zone 'LMT'", f"{a}.ts at time zone 'LMT'", f"{a}.ts at time zone {a}.zone", f"{a}.ts::timestamptz", f"timezone({a}.zone, {a}.ts)")
        stamp = self.pick(f"{a}.ts", f"{a}.tz::timestamp", f"{a}.tz at time zone 'MST'", f"((({a}.x)::int % 24) || ':00')::time + {a}.ts::date" if "fail" in self.pools else f"{a}.ts")
        v = self.pick(f"{a}.v", f"{a}.v", self.i(a), f"({self.drawn('sub', a)})::int" if "sub" in self.pools else f"{a}.v")
        if self.w.partition_column == "v" and v != f"{a}.v":
            v = f"abs({v}) % 10"
        j = self.pick(f"{a}.j", f"{a}.j", f"{n} % 420", self.i(a))
        return f"{n}, {self.value(n) if self.s['key'] != 'enum' else self.value(n)}, {v}, {a}.z, {stamp}, {zone}, {self.pick(f'{a}.x', self.t(a))}, {a}.ty, {a}.zone, row({n}, '{{}}')::pairj, {j}, {a}.big"

    def arbiters(self):
        """The targets that ON CONFLICT may have here; and now and then one that it may not."""
        s = self.s
        part = f", {self.w.partition_column}" if self.w.partition_column and self.w.partition_column != "id" else ""
        k_part = f", {self.w.partition_column}" if self.w.partition_column else ""
        every = [f"(id{part})", "on constraint t_id", "on constraint t_k", f"(k{k_part})", f"((quiet(id)){k_part})", f"(id{part}) where v = 5"]
        if self.chance(0.1):
            return every
        out = []
        if s["id"] in ("primary", "unique"):
            out.append(every[0])
        if s["id"] == "primary":
            out.append(every[1])
        if s["index"] == "exclusion":
            out.append(every[2])
        if s["index"] in ("unique", "unique_nulls"):
            out.append(every[3])
        if s["index"] == "expression":
            out.append(every[4])
        if s["index"] == "partial":
            out.append(every[5])
        return out

    def arbiter(self):
        targets = self.arbiters()
        if not targets or self.chance(0.5):
            return self.pick("", " on conflict do nothing", " on conflict do nothing")
        action = self.pick("do nothing", "do nothing", "do update set v = excluded.v + 1", "do update set z = excluded.z, x = excluded.x where t.v < 5 and excluded.id % 2 = 0",
                           f"do update set v = ({self.i('excluded')}) % 10, k = excluded.k")
        return f" on conflict {self.r.choice(targets)} {action}"

    COLUMNS = "id, k, v, z, ts, tz, x, ty, zone, cj, j, big"

    def first(self):
        """The number behind which there is none yet."""
        return self.w.n + self.act.number * 10000 % 1000000

    def insert(self):
        a = self.alias()
        n = self.w.n
        base = self.first()
        table, key = self.pick(("o", f"{base} + {a}.id"), ("o", f"{base} + {a}.id"), ("o", f"{a}.id * 7919 % {2 * n} + 1"), ("o", f"{base} + {a}.id * 7 % 501"), ("t", f"{a}.id * 7919 % {n + n // 4} + 1"), ("t", f"{base} + {a}.id"), ("vt", f"{base} + {a}.id * 3"))
        conds = [f"{a}.id < {self.r.choice((60, 400, 3000))}"] + (self.where(a) if self.chance(0.5) else [])
        order = self.pick("", "", f" order by {a}.id", f" order by {a}.z, {a}.id")
        into = self.pick("t", "t", "t", "vt") if self.s["security"] != "none" else "t"
        returning = self.pick("", "", f" returning id, v", " returning k::text, g" if into == "t" else "")
        arbiter = self.arbiter()
        alias = " as t" if into == "vt" else ""
        return f"insert into {into}{alias} ({self.COLUMNS}) " + self.text(self.new_row(a, key), f"{table} {a}", conds, order) + arbiter + returning

    def k_insert(self):
        self.act.steps = [self.insert()]
        self.written()

    def k_insert_arbiter(self):
        """Pure rows into all indexes, with and without an arbiter."""
        self.pools = ("pure",)
        self.act.steps = [self.insert()]
        self.written()

    def k_insert_values(self):
        n = self.first()
        rows = [f"({n + i}, {self.value(n + i)}, {i % 10}, {self.pick('1', '2', '1/0' if self.chance(0.02) else '3')}, '2024-05-05', '2024-05-05 00:00+00', '{i}', 'int', 'UTC', null, {i}, null)" for i in range(1, 60)]
        self.act.steps = [f"insert into t ({self.COLUMNS}) values {', '.join(rows)}{self.arbiter()}"] + [
            f"insert into t ({self.COLUMNS}) values {row}{self.arbiter()}" for row in rows[:2]]
        self.written()

    def k_insert_zone(self):
        """What a trigger sets decides about the next row's values."""
        a = self.alias()
        self.pools = ("read",)
        n = f"{self.first()} + {a}.id"
        zone = self.pick(f"{a}.ts at time zone 'LMT'", f"{a}.ts at time zone 'LMT'", f"{a}.ts at time zone 'LMT'", f"{a}.ts::timestamptz", f"{a}.ts at time zone {a}.zone", f"timezone('LMT', {a}.ts)")
        # (where a key's value may fail, no row is made early)
        row = f"{n}, {self.pick(self.value(n), 'null', 'null')}, {a}.v, {a}.z, {a}.ts, {zone}, {self.pick(f'{a}.x', f'{a}.x', f'{a}.tz::text')}, {a}.ty, {a}.zone, {a}.cj, {a}.j, null"
        self.act.steps = [f"insert into t ({self.COLUMNS}) select {row} from {self.pick('o', 'o', 't')} {a} where {a}.id < 390"]
        self.written()

    def k_update(self):
        a, b = self.alias(), self.alias()
        t = self.pick("t", "t", "t", "vt")
        what = self.pick(f"v = ({self.i(a)}) % 10", f"k = {self.value(f'{a}.id + {self.w.n}')}", f"ts = {a}.ts + interval '1 day', tz = {a}.ts at time zone 'LMT'", f"x = {self.t(a)}", f"j = {a}.j + 1",
                         f"id = {a}.id + {self.w.n}", f"v = ({self.drawn('sub', a)})::int", f"big = {a}.big || 'z'", f"z = {self.i(a)}, v = 3")
        source = self.pick("", f" from o {b}", f" from o {b}", f" from b {b}")
        conds = [self.pick(self.small(a), self.key_condition(a), f"{a}.id between 10 and 300")]
        if " o " in source:
            conds = [self.pick(f"{a}.id = {b}.j", f"{a}.k {self.w.key.op('=')} {b}.k", f"{a}.id = {b}.id", f"{a}.id = {self.i(b)}")] + self.where(b)[:1]
        elif " b " in source:
            conds = [f"{a}.id = {b}.tid", f"{b}.w > {self.r.randint(0, 9)}"]
        self.act.steps = [f"update {t} {a} set {what}{source} where {' and '.join(conds)}{self.pick('', f' returning {a}.id, {a}.v', f' returning {a}.id, {self.i(a)}')}"]
        self.written()

    def k_delete(self):
        a, b = self.alias(), self.alias()
        t = self.pick("t", "t", "t", "vt", "p")
        if t == "p":
            self.act.steps = [self.pick("delete from p where id < 40", "delete from p where id between 350 and 400", "update p set id = id + 10000 where id % 40 = 7")]
        else:
            tail = self.pick(f" where {self.small(a)} and {self.b(a)}", f" where {self.key_condition(a)}", f" using o {b} where {a}.id = {b}.j and {self.b(b)}", f" using o {b} where {a}.k {self.w.key.op('=')} {b}.k",
                             f" where {a}.id in (select b.tid from b where b.w = 3)")
            self.act.steps = [f"delete from {t} {a}{tail}{self.pick('', f' returning {a}.id', f' returning {a}.id, {self.i(a)}')}"]
        self.written()

    def k_merge(self):
        a = self.alias()
        on = self.pick(f"t.id = {a}.j", f"t.k {self.w.key.op('=')} {a}.k", f"t.id = {a}.id + {self.w.n - 100}", f"t.id = {self.i(a)}")
        n = f"{self.w.n} + {a}.id"
        matched = self.pick(f"update set v = {a}.v, z = {self.i(a)}", "delete", "do nothing", f"update set k = {self.value(n)}", f"update set tz = {a}.ts at time zone 'LMT'")
        cond = self.pick("", f" and {self.b(a)}", f" and t.v < {self.r.randint(1, 9)}")
        insert = self.pick("", f" when not matched then insert ({self.COLUMNS}) values ({self.new_row(a, n)})", f" when not matched and {self.b(a)} then insert ({self.COLUMNS}) values ({self.new_row(a, n)})")
        source = self.pick(f"(select distinct on (j) * from o) {a}", f"o {a}", f"(select * from o where id < 200) {a}")
        self.act.steps = [f"merge into t using {source} on {on} when matched{cond} then {matched}{insert}"]
        self.written()

    def k_with_write(self):
        a = self.alias()
        first = self.pick(f"delete from t {a} where {self.small(a)} returning {a}.id, {a}.j, {a}.k", f"update t {a} set v = 4 where {self.small(a)} returning {a}.id, {a}.j, {a}.k",
                          f"insert into t ({self.COLUMNS}) select {self.new_row(a, f'{self.first()} + {a}.id')} from o {a} returning id, j, k")
        main = self.pick(f"select w.id, (select max(b.w) from b where b.tid = w.id) from w", f"select w.id, t2.v from w left join t t2 on t2.id = w.j", f"select w.id, t2.v from w join t t2 on t2.k {self.w.key.op('=')} w.k limit 20",
                         "update o set v = 3 from w where w.id = o.j returning o.id", "delete from b using w where b.tid = w.id returning b.id")
        self.act.steps = [f"with w as ({first}) {main}"]
        self.written()

    def k_fk(self):
        n = self.w.n
        self.act.steps = [self.pick(f"insert into b select 5000 + i, i * 7 % {n + n // 50}, 1 from generate_series(1, {self.r.choice((50, 300))}) i", f"delete from t where id between {self.r.randint(1, 300)} and 320",
                                    f"update t set id = id + {2 * n} where id % 50 = 7 and id < 900", f"update t set j = 1 + (j * 7) % {self.r.choice((300, 402))} where id < 500", "delete from p where id % 9 = 4", "update p set id = -id where id % 50 = 3",
                                    f"insert into t ({self.COLUMNS}) select {self.new_row('o', f'{self.first()} + o.id')} from o")] + self.pick([], ["set constraints all immediate"])
        self.written()

    def k_copy_from(self):
        """Rows from the client, some of which cannot be stored."""
        n = self.first()
        bad = self.r.choice((0, 0, 0, self.r.randint(5, 290)))
        same = self.r.choice((0, 0, self.r.randint(5, 290)))
        rows = []
        for i in range(1, 300):
            row = [str(n + (i * 7 if i != same else 7)), None, str(i % 10), str(i % 50), "2024-01-01 10:00", "2024-01-01 10:00 LMT" if i % 3 == 0 else "2024-01-01 10:00+00", str(i), "int", "UTC", "\\N", str(1 + i % 320), "y" * (i % 5 * 700)]
            if i == bad:
                row[2] = "not a number"
            rows.append(row)
        columns = [c for c in self.COLUMNS.split(", ") if c != "k"]
        data = "".join("\t".join(c for c in r if c is not None) + "\n" for r in rows)
        where = self.pick("", "", "", f" where v < {self.r.randint(3, 9)}", " where 10 / (v - 20) < 4 and tell(v) > 1")
        options = self.pick("", "", " with (freeze)" if self.chance(0.1) else "", " with (on_error ignore)" if self.w.have["major"] >= 17 else "")
        self.act.steps = [("copy", f"copy {self.pick('t', 't', 't', 'vt')} ({', '.join(columns)}) from stdin{options}{where}", data)]
        if self.chance(0.3):
            # ... with keys that have been read from the table
            made = [f"create temporary table held as select id + {n} as id, k, v from o", "copy held to stdout"]
            self.act.steps = made + self.act.steps
        if self.chance(0.25):
            self.act.role = self.pick("reader", "stranger")
        self.act.streamed = False
        self.written()

    def k_copy_rights(self):
        """Those who may not."""
        self.act.role = self.pick("reader", "stranger", "stranger")
        data = "1\tx\n2\ty\n"
        steps = [self.pick("copy hidden.t from '/etc/passwd'", "copy hidden.t to '/tmp/nothing'", "copy hidden.t to stdout", "copy hidden.nothing from '/etc/passwd'", "copy nothing.t from '/etc/passwd'", "copy nothing from program 'true'",
                           "copy hidden.t (a) from program 'true'", "copy t from '/etc/passwd'", "copy t to '/tmp/nothing'", "copy open_to_all to stdout", "copy open_to_all (a) to stdout", "copy open_to_all (a, nothing) to stdout", "copy hidden.t (nothing) to stdout",
                           "copy nothing to stdout", "copy (select * from hidden.t) to stdout", "copy postgres.hidden.t to stdout", "copy other.hidden.t from '/etc/passwd'", "copy a.b.c.d from '/etc/passwd'",
                           "copy hidden.t from '/etc/passwd' with (format nothing)", "copy hidden.t to stdout with (format csv, delimiter 'ab')", "copy vt from '/etc/passwd'", "copy pg_authid to stdout", "copy pg_class from '/etc/passwd'"),
                 self.pick(("copy", "copy hidden.t from stdin", data), ("copy", "copy open_to_all from stdin", data), ("copy", "copy open_to_all (a) from stdin", "1\n"), ("copy", "copy nothing from stdin", data), ("copy", "copy t (id, v) from stdin", "1\t2\n"),
                           ("copy", "copy hidden.nothing (a) from stdin", data), ("copy", "copy log (x) from stdin", "4\n"))]
        self.act.transaction = False
        self.act.steps = steps
        self.act.streamed = False

    def k_copy_stale(self):
        """A table that another session has made anew since it was looked at."""
        name = self.pick("st", "st", "st2")
        look = self.pick(f"select to_regclass('public.{name}') is null", f"select count(*) from {name}", f"copy {name} to stdout", f"savepoint s", f"select '{name}'::regclass is null", f"prepare x as select * from {name}",
                         f"select to_regclass('public.{name}') is null")
        anew = self.pick([f"drop table {name}", f"create table {name} (a int, b text)"], [f"drop table {name}", f"create table {name} (a int, b text)"], [f"alter table {name} rename to {name}_old", f"create table {name} (a int, b text)", f"drop table {name}_old"],
                         [f"drop table {name}", f"create view {name} as select 1 as a, 'x'::text as b"], [f"truncate {name}"], [f"drop table {name}"])
        last = self.pick([("copy", f"copy {name} from stdin", "1\tx\n2\ty\n")], [f"copy {name} to stdout"], [("copy", f"copy {name} (a) from stdin", "1\n2\n"), f"copy {name} to stdout"], [f"copy (select * from {name}) to stdout"],
                         [f"insert into {name} select i, 'z' from generate_series(1, 100) i on conflict do nothing", f"select count(*) from {name}"])
        level = self.pick("read committed", "read committed", "repeatable read")
        locks = "count(*)" in look or look.startswith("copy")
        if locks:
            # the other session would wait for this one's lock
            self.act.steps = [("side", f"drop table if exists {name}"), ("side", f"create table {name} (a int, b text)"), look] + [("side", s) for s in anew] + last
            self.act.transaction = False
        else:
            self.act.steps = [("side", f"drop table if exists {name}"), ("side", f"create table {name} (a int, b text)"), ("side", f"insert into {name} select i, 'x' from generate_series(1, 50) i"),
                              f"begin isolation level {level}", look] + [("side", s) for s in anew] + last + ["commit"]
            self.act.transaction = False
        self.act.steps += [("side", f"drop view if exists {name}") if "create view" in str(anew) else ("side", f"drop table if exists {name}")]
        self.act.streamed = False

    def k_index(self):
        """Indexes that are made in the transaction, and used."""
        k = f"k {self.w.key.opclass('btree')}".strip()
        how = self.pick(f"create index made on t ({k}, id)", f"create index made on t (v, z, id)", "create index made on t (x, ts)", "create index made on t (tz, id) where v > 2", "create unique index made on t (id, v)", "create index made on t ((imm_tell(z)))",
                        "create index made on t (j) include (v)", "reindex index t_ts", "create index made on t (ts desc nulls last, v)", "create index made on t (upper(x), id)")
        self.act.steps = [how, self.query("range"), self.insert()]
        self.written(self.query("range", "join"))

    def k_table_changes(self):
        a = self.alias()
        self.act.steps = [self.pick("alter table t add extra int default 3", "alter table t alter z type bigint", "alter table t add extra2 text default eff(3)::text", "alter table t drop column x", "truncate log", f"cluster t using t_ts",
                                    "alter table o alter v type bigint", "lock table t in exclusive mode", "create table t_like (like t including all)"),
                          self.query("range"), self.query("join", "sub"), self.insert()]
        self.written()

    def k_vacuum(self):
        self.act.transaction = False
        self.act.steps = [self.pick("vacuum t", "vacuum (index_cleanup on, truncate off) t", "vacuum o", "vacuum b", "vacuum full t", "reindex table t"), self.query("range")]

    def written(self, *then):
        act = self.act
        act.writes = True
        act.settled = len(act.steps)
        act.steps += then
        if self.chance(0.5):
            act.steps.append(self.query("range", "sub", "join"))
        act.commit = self.chance(0.25)


KINDS = tuple(name[2:] for name in sorted(vars(Acts)) if name.startswith("k_"))
# what is played more often than the others, for there is more of it
OFTEN = ("select", "cursor", "current_of_loop", "insert", "insert_arbiter", "join", "sub", "update", "loop", "range", "changing", "join_key", "insert_zone")
# making the copies of a world takes as long as some hundred acts
ROUNDS = 2


def lateral_on_true(sql):
    """LEFT JOIN LATERAL (...) x, with the ON that it needs."""
    begin = sql.index("left join lateral (") + len("left join lateral ")
    depth = 0
    for at in range(begin, len(sql)):
        depth += {"(": 1, ")": -1}.get(sql[at], 0)
        if depth == 0:
            break
    end = at + 1
    rest = sql[end:].split(" ", 2)      # "", alias, the rest
    return sql[:end] + " " + rest[1] + " on true" + (" " + rest[2] if len(rest) > 2 else "")


def kinds_of(world):
    """The kinds of the acts of a world, in its order."""
    r = random.Random(f"kinds/{world.seed}/{world.number}")
    kinds = (list(KINDS) + 2 * list(OFTEN)) * ROUNDS
    r.shuffle(kinds)
    return kinds


def make(world, number, kind):
    return Acts(world, number, kind).act
