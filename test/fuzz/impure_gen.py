"""
impure_gen.py - generator of statements with effects, failing expressions, and both.

A statement is generated from the top: a shape (query, cursor, loop, modification, ...), then
its parts.  Wherever an expression may stand, something impure may stand: how much of it, and of
which kind, is the case's profile.  Most statements have one to four such places, as one alone
shows most clearly whether it was run at another time than in stock.

Sizes.  Every from item has the columns id, k, v and t.  Gen keeps an estimate of the rows of a
join, so that none has more than MANY: these statements have to be over in a millisecond.

Marks.  Parts that shrink.py may put something simpler for are between \\x01 and \\x02, with a
letter for what they are: i, b, t an expression of that type, q a query, o what may be left out.
strip() takes the marks away.
"""

MANY = 500
# how often an expression is impure, as long as the budget lasts: most often where nodes are rescanned
HEAT, LATERAL_HEAT = 0.16, 0.35

VOLATILE = [
    "eff({i})", "eff({i})", "eff2({i})", "tell({i})", "put({i})", "put_sql({i})", "off_to({i})", "off_to({i})",
    "off_to_sql({i})", "random_to(9)", "vol_inlined({i})", "vol_sql({i})", "log_count()", "(nextval('sq') % 9)::int",
    "length(set_config('my.off', (abs({i}) % 5)::text, false))", "length(eff_text({t}))", "eff_bool({b})::int",
    "(select nextval('sq')::int)", "(select eff({c}))", "(select eff({i}) from te limit 1)",
    "(select sum(eff(id + {i}))::int from te)", "(select off_to({i}))",
    "length(set_config('timezone', case when {i} % 2 = 0 then 'America/New_York' else 'Asia/Tokyo' end, true))",
]
LYING = [
    "stable_tell({i})", "stable_eff({i})", "imm_tell({i})", "imm_eff({i})", "(select imm_eff({i}))", "stable_eff({c})",
    "imm_eff({c})",
]
STABLE = [
    "off()", "off()", "off_pl()", "off_plus({i})", "current_setting('my.off')::int", "drawn()", "drawn_sql()",
    "log_stable()", "log_stable_sql()", "(currval('sq') % 9)::int", "(select off() + {i})", "(select off_pl())",
    # declared immutable
    "extract(day from age(timestamptz '1990-01-01' + {i} * interval '1 day', '1980-03-31 15:00+00'))::int",
    "extract(hour from date_trunc('day', timestamptz '1990-01-01 12:00+00', 'PST8PDT'))::int",
]
FAILING = [
    "10 / ({i} - {c})", "10 / ({i} - {c})", "{i} % ({i} - {c})", "boom({i})", "boom_stable({i})", "boom_sql({i})",
    "strict_boom({i})", "{t}::int", "({i} + 2147483600)", "ln({i} - {s})::int", "length(substr('abc', 1, {i} - {s}))",
    "(select z.id from te z where z.id <= {i} - {c})", "(select 20 / (z.id - 5) from te z where z.id = {i})",
    "(select 10 / (max(z.id) - {s}) from te z)", "ascii(chr({i} - {s}))", "cardinality(array_fill(1, array[{i} % 5 - {s}]))",
]
DOMAINS = [
    "({i}::dom_eff)::int", "({i}::dom_fail)::int", "({i}::dom_off)::int", "({i}::dom_put)::int", "({i}::dom_dom)::int",
    "(array[{i}, 2]::dom_eff[])[1]", "(array[{i}]::dom_fail[])[1]", "((row({i}, 2)::pair)).p::int",
    "((row(1, {i})::pair)).q::int", "({i}::text::dom_eff)::int", "((('{{' || {i} || '}}')::dom_put[])[1])::int",
    "(json_populate_record(null::pair, json_build_object('p', {i}))).p::int", "length({t}::dom_text)",
]
PURE = [
    "({i} + {i})", "({i} + {s})", "({i} - {s})", "({i} * 2)", "({i} % 7)", "coalesce({i}, {s})", "abs({i})", "length({t})",
    "case when {b} then {i} else {i} end", "case when {b} then {i} end", "greatest({i}, {i})", "nullif({i}, {s})",
    "harmless({i})", "harmless_sql({i})",
]
VOLATILE_BOOL = ["eff_bool({b})", "eff({i}) > {s}", "random() < 0.6", "off_to({i}) <> {s}", "peek({i})", "tell({i}) > {s}"]
WARNING_BOOL = ["has_type_privilege(case when {i} % 9 = 4 then 'time(9)' else 'int4' end, 'usage')",
                "to_regtype(case when {i} % 9 = 5 then 'timestamp(8)' else 'int4' end) is not null"]
LYING_BOOL = WARNING_BOOL + ["peek({i})", "peek_tell({i})", "{i} <<<< {i}", "{i} ==== {i}", "imm_eff({i}) <> {s}", "stable_tell({i}) > 2"]
FAILING_BOOL = ["peek_fail({i})", "{i} =!= {i}", "10 / ({i} - {c}) < 3", "{i} <!< {i}", "{t}::int > {s}", "boom({i}) > {s}"]

# weights of: volatile, lying, stable, failing, domains
PROFILES = [
    (8, None), (22, (0, 0, 0, 1, 0)), (14, (1, 0, 0, 0, 0)), (10, (0, 1, 0, 0, 0)), (18, (2, 0, 3, 0, 0)),
    (8, (1, 0, 0, 0, 3)), (12, (1, 0, 0, 2, 0)), (10, (2, 1, 2, 2, 2)),
]

TABLES = ["ta"] * 4 + ["tb"] * 4 + ["tc"] * 4 + ["tp"] * 2 + ["tu", "tt", "tt", "td", "te", "tn", "vb", "vs", "vf", "vj", "tr"]
INDEXED = ["ta"] * 3 + ["tb"] * 4 + ["tc"] * 5 + ["tp"] * 2 + ["tu", "tt", "tn", "td"]
ROWS = {"ta": 60, "tb": 90, "tc": 150, "te": 5, "tp": 90, "tu": 90, "tt": 70, "tr": 60, "td": 60, "tn": 60,
        "vb": 60, "vs": 90, "vf": 60, "vj": 60}


def strip(sql):
    """Without marks, each of which has a letter behind it."""
    if "\x01" not in sql:
        return sql
    head, *parts = sql.split("\x01")
    return (head + "".join(p[1:] for p in parts)).replace("\x02", "")


def optional(sql):
    return f"\x01o{sql}\x02"


class Case:
    """Steps of one transaction, and the settings that they run under."""

    def __init__(self, number, kind):
        self.number = number
        self.kind = kind
        self.steps = []
        self.planner = {}
        self.isolation = "read committed"
        self.prepared = False           # planned once, and executed by all runs
        self.named = False              # does it leave a prepared statement "p"?
        self.single_row = False         # rows before an error are seen
        self.ordered = True
        self.ahead = []                 # settings of each run but the first
        self.again = False              # is the outcome undetermined?  then more than one run of it counts


class Gen:
    def __init__(self, rng):
        self.r = rng
        self.ctes = []
        self.aliases = 0
        self.param = False
        self.safe = False               # for parallel workers
        self.heat = HEAT
        self.choose_profile()

    # ---- dice -------------------------------------------------------------

    def chance(self, p):
        return self.r.random() < p

    def choose_profile(self):
        r = self.r
        self.budget = r.choice((1, 1, 2, 2, 3, 3, 4, 6))
        weights = r.choices([p[1] for p in PROFILES], [p[0] for p in PROFILES])[0]
        self.pools, self.bools = [], []
        if weights is None:
            self.budget = 0
            return
        for w, pool, bools in zip(weights, (VOLATILE, LYING, STABLE, FAILING, DOMAINS),
                                  (VOLATILE_BOOL, LYING_BOOL, (), FAILING_BOOL, ())):
            self.pools += [pool] * w
            if bools:
                self.bools += [bools] * w

    def alias(self):
        self.aliases += 1
        return f"a{self.aliases}"

    # ---- expressions ------------------------------------------------------

    def fill(self, template, sc, d):
        out = template
        while "{i}" in out:
            out = out.replace("{i}", self.i(sc, d - 1), 1)
        while "{b}" in out:
            out = out.replace("{b}", self.b(sc, d - 1), 1)
        while "{t}" in out:
            out = out.replace("{t}", self.t(sc, d - 1), 1)
        while "{c}" in out:
            out = out.replace("{c}", str(self.r.randint(1, 60)), 1)
        while "{s}" in out:
            out = out.replace("{s}", str(self.r.randint(0, 9)), 1)
        return out.replace("{{", "{").replace("}}", "}")

    def i(self, sc, d=2):
        """An expression of type int."""
        x = self.r.random()
        if self.budget > 0 and x < self.heat and self.pools:
            self.budget -= 1
            return f"\x01i{self.fill(self.r.choice(self.r.choice(self.pools)), sc, d)}\x02"
        if d <= 0 or x < 0.6:
            return self.leaf(sc)
        if x > 0.97 and not self.safe and sc:
            call = f"{self.r.choice(('max', 'count', 'min'))}(z.id + {self.i(sc + ['z'], d - 1)})::int"
            return f"\x01i(select {call} from te z where {self.b(sc + ['z'], 1)})\x02"
        return f"\x01i{self.fill(self.r.choice(PURE), sc, d)}\x02"

    def leaf(self, sc):
        if self.param and self.chance(0.2):
            return "$1"
        if not sc or self.chance(0.08):
            return str(self.r.randint(0, 12))
        # the closest names are the most interesting ones
        a = sc[-1] if self.chance(0.5) else self.r.choice(sc)
        return f"{a}.{self.r.choice(('id', 'id', 'id', 'k', 'k', 'v'))}"

    def t(self, sc, d=1):
        x = self.r.random()
        if d > 0 and x < 0.2:
            return f"\x01t({self.i(sc, d - 1)})::text\x02"
        if not sc:
            return f"'{self.r.randint(0, 30)}'"
        return f"{self.r.choice(sc)}.t"

    def b(self, sc, d=2):
        """A condition."""
        r, x = self.r, self.r.random()
        if self.budget > 0 and x < 0.12 and self.bools:
            self.budget -= 1
            return f"\x01b({self.fill(r.choice(r.choice(self.bools)), sc, d)})\x02"
        if d <= 0 or x < 0.55:
            op = r.choice(("=", "<", ">", "<>", "<=", "<", ">"))
            right = str(r.randint(0, 60)) if self.chance(0.5) else self.i(sc, d - 1)
            return f"\x01b{self.i(sc, d - 1)} {op} {right}\x02"
        if x < 0.62:
            return f"\x01b({self.b(sc, d - 1)} {r.choice(('and', 'and', 'or'))} {self.b(sc, d - 1)})\x02"
        if x < 0.66:
            return f"\x01bnot {self.b(sc, d - 1)}\x02"
        if x < 0.7:
            return f"\x01b{self.i(sc, d - 1)} is {r.choice(('', 'not '))}null\x02"
        if x < 0.76:
            return f"\x01b{self.i(sc, d - 1)} between {r.randint(0, 20)} and {self.i(sc, d - 1)}\x02"
        if x < 0.8:
            return f"\x01b{self.t(sc)} like '%{r.randint(1, 3)}%'\x02"
        if x < 0.85:
            return f"\x01b{self.i(sc, d - 1)} in ({', '.join(str(r.randint(1, 40)) for _ in range(r.randint(1, 6)))})\x02"
        if x < 0.87:
            return f"\x01b{self.i(sc, d - 1)} = any (array[{self.i(sc, d - 1)}, {self.i(sc, 0)}])\x02"
        return self.sublink(sc, d)

    def sublink(self, sc, d):
        r, z = self.r, self.alias()
        word = r.choice(("exists", "exists", "not exists", "in", "in", "not in", "any", "array", "row"))
        inner = sc + [z]
        if word.endswith("exists"):
            table = r.choice(INDEXED)
            key = f"{z}.id = {self.i(sc, 1)}" if self.chance(0.8) else f"{z}.k = {self.leaf(sc)}"
            more = optional(f" and {self.b(inner, d - 1)}") if self.chance(0.5) else ""
            return f"\x01b{word} (select from {table} {z} where {key}{more})\x02"
        table = r.choice(("ta", "te", "tu", "tb", "tt"))
        what = f"select {z}.id" if self.chance(0.6) else f"select {self.i([z], d - 1)}"
        where = optional(f" where {self.b([z] if self.chance(0.85) else [z] + sc[:1], d - 1)}") if self.chance(0.6) else ""
        if word == "row":
            return f"\x01b({self.leaf(sc)}, {self.i(sc, 1)}) in (select {z}.id, {self.i([z], 1)} from te {z}{where})\x02"
        if word == "any":
            return f"\x01b{self.i(sc, d - 1)} {r.choice(('=', '<'))} {r.choice(('any', 'all'))} ({what} from te {z}{where})\x02"
        if word == "array":
            return f"\x01b{self.i(sc, d - 1)} = any (array({what} from {table} {z}{where}))\x02"
        return f"\x01b{self.i(sc, d - 1)} {word} ({what} from {table} {z}{where})\x02"

    def fence(self, text, p):
        """Keeps a subquery from being pulled up."""
        return optional(" offset 0") if "offset" not in text and self.chance(p) else ""

    # ---- from -------------------------------------------------------------

    def item(self, d, sc, most):
        """One from item that knows nothing of its neighbours: (text, alias, rows)."""
        r, a, x = self.r, self.alias(), self.r.random()
        if d > 0 and x < 0.2:
            text, n = self.query(d - 1, [], most)
            return f"({text}{self.fence(text, 0.5)}) {a}", a, n
        if self.ctes and x < 0.3:
            name, n = r.choice(self.ctes)
            if n <= most:
                return f"{name} {a}", a, n
        if x > 0.96 and not self.safe:
            n = r.randint(1, 4)
            return f"some_rows({self.i([], 1) if self.chance(0.5) else n}) {a}", a, 3
        if 0.87 < x <= 0.93:
            return self.function(a)
        if x > 0.93:
            n = r.randint(2, 8)
            values = ", ".join(f"({self.i([], 1)}, {self.i([], 1)}, {i}, '{i}')" for i in range(n))
            return f"(values {values}) {a} (id, k, v, t)", a, n
        fit = [t for t in TABLES if ROWS[t] <= most and not (self.safe and t in ("tt", "tr", "vb", "tn"))]
        table = r.choice(fit or ["te"])
        return f"{table} {a}", a, ROWS[table]

    def function(self, a):
        """Rows of a function, and of functions side by side: as of item()."""
        r, n = self.r, self.r.randint(2, 40)
        calls = [f"generate_series(1, {n})", "unnest(array(select z.id from te z order by z.id desc))",
                 f"generate_series({self.i([], 1)} % 3, {n})"]
        if not self.safe:
            calls.append(f"set_eff({n % 7})")
        call = r.choice(calls)
        x = r.random()
        if x < 0.5:
            return f"(select g as id, g % 5 as k, g as v, g::text as t from {call} g) {a}", a, n
        if x < 0.8:
            return f"(select g as id, (o % 5)::int as k, g as v, o::text as t from {call} with ordinality z(g, o)) {a}", a, n
        return f"(select g as id, h % 5 as k, h as v, g::text as t from rows from ({call}, generate_series(3, {n})) z(g, h)) {a}", a, n

    def lateral(self, d, sc):
        """An item that refers to the ones before it."""
        self.heat = LATERAL_HEAT
        out = self.any_lateral(d, sc)
        self.heat = HEAT
        return out

    def any_lateral(self, d, sc):
        r, a, x = self.r, self.alias(), self.r.random()
        if x < 0.2 and not self.safe:
            call = r.choice(("generate_series(1, {} % 3)", "generate_series({} % 3, 2)", "set_eff({} % 4)", "set_boom({})", "set_sql({} % 3)"))
            return f"lateral (select g as id, g % 5 as k, g as v, g::text as t from {call.format(self.i(sc, 1))} g) {a}", a, 2
        if x < 0.3:
            return (f"lateral (values ({self.i(sc, 1)}, {self.i(sc, 1)}, 1, 'x'), (2, {self.i(sc, 1)}, 3, '4')) {a} (id, k, v, t)", a, 2)
        if x < 0.4 and not self.safe:
            return f"lateral some_rows({self.i(sc, 1)} % 3) {a}", a, 2
        text, n = self.query(min(d - 1, 1), sc, 8, small=True)
        return f"lateral ({text}) {a}", a, max(n, 1)

    def joined(self, d, outer, most):
        """FROM: (text, aliases, rows)."""
        r = self.r
        text, a, n = self.item(d, outer, most)
        aliases = [a]
        for _ in range(r.choices((0, 1, 2, 3), (30, 42, 20, 8) if d > 0 else (60, 32, 8, 0))[0]):
            sc = outer + aliases
            x = r.random()
            if x < 0.22 and n <= 130:
                item, b, m = self.lateral(d, sc)
                if n * m > MANY:
                    continue
                kind = r.choice(("cross join", "cross join", "join", "left join"))
                on = "" if kind == "cross join" else f" on {self.b(sc + [b], 1) if self.chance(0.4) else 'true'}"
                n *= m
            elif x < 0.28 and n * 5 <= MANY:
                b = self.alias()
                item, kind, on = f"te {b}", "cross join", ""
                n *= 5
            else:
                kind = r.choice(("join", "join", "left join", "left join", "left join", "right join", "full join"))
                if self.chance(0.75):
                    b = self.alias()
                    item = r.choice([t for t in INDEXED if not (self.safe and t in ("tt", "tn"))])
                    m = ROWS[item]
                    item = f"{item} {b}"
                else:
                    item, b, m = self.item(d - 1, outer, 130)
                on = " on " + self.key(b, aliases, outer, kind, n * m)
                n = max(n, m) if kind in ("right join", "full join") else int(n * 1.2)
            if self.chance(0.15) and len(aliases) > 1:
                text = f"({text})"
            text += optional(f" {kind} {item}{on}")
            aliases.append(b)
        return text, aliases, n

    def key(self, b, aliases, outer, kind, pairs=MANY):
        """A join condition with a key of few matches, for so many pairs of rows."""
        r = self.r
        op = "="
        if self.bools and self.budget > 0 and not self.safe and self.chance(0.1) and pairs < 6000:
            self.budget -= 1
            op = r.choice(("====", "=!="))
        full = kind == "full join"
        left = self.leaf(aliases) if full or self.chance(0.5) else self.i(outer + aliases, 2)
        if left[0] not in "\x01a":
            left = f"{aliases[0]}.k"
        on = f"{b}.{r.choice(('id', 'id', 'k'))} {op} {left}"
        if not full and self.chance(0.2):
            on += optional(f" and {self.b(outer + aliases + [b], 1)}")
        if self.chance(0.1):
            on += optional(f" and {b}.v {r.choice(('=', '<', '>'))} {self.leaf(aliases)}")
        return on

    # ---- queries ----------------------------------------------------------

    def query(self, d, outer, most, small=False):
        """SELECT with the columns id, k, v, t: (text, rows)."""
        text, n = self.any_query(d, outer, most, small)
        return f"\x01q{text}\x02", n

    def any_query(self, d, outer, most, small):
        x = self.r.random()
        if d > 0 and x < 0.12:
            return self.with_query(d, outer, most, small)
        if x < 0.2 and d > 0:
            return self.set_operation(d, outer, most, small)
        if x < 0.24:
            return self.recursive(d, outer)
        if x < 0.36:
            return self.grouped(d, outer, most, small)
        if x < 0.44:
            return self.windowed(d, outer, most, small)
        return self.plain(d, outer, most, small)

    def source(self, d, outer, most, small):
        """FROM and WHERE."""
        r = self.r
        if small:
            a = self.alias()
            # of a few rows, for each row of the outer query
            if self.chance(0.6):
                where = [optional(f" where {self.b(outer + [a], 2)}")] if self.chance(0.6) else []
                return f"from te {a}{''.join(where)}", [a], 5
            table = r.choice([t for t in INDEXED if not (self.safe and t in ("tt", "tn"))])
            key = f"{a}.{r.choice(('id', 'k'))} = {self.i(outer, 1)}"
            if self.chance(0.2):
                key = f"{a}.id between {self.leaf(outer)} and {self.leaf(outer)} + 2"
            more = optional(f" and {self.b(outer + [a], 1)}") if self.chance(0.4) else ""
            return f"from {table} {a} where {key}{more}", [a], 2
        text, aliases, n = self.joined(d, outer, most)
        sc = outer + aliases
        conds = [self.b(sc, 2) for _ in range(r.choices((0, 1, 2), (40, 45, 15))[0])]
        where = optional(f" where {' and '.join(conds)}") if conds else ""
        return f"from {text}{where}", aliases, n

    def columns(self, sc):
        """A target list."""
        def one(leaf):
            return self.i(sc, 2) if self.chance(0.45) else leaf
        a = sc[-1] if not sc or self.chance(0.5) else self.r.choice(sc)
        return f"{one(f'{a}.id')} as id, {one(f'{a}.k')} as k, {one(f'{sc[0]}.v')} as v, {self.t(sc)} as t"

    def tail(self, sc, outer, n, aggregated=False):
        """ORDER BY, LIMIT, OFFSET: (text, rows)."""
        r, out = self.r, ""
        if self.chance(0.3):
            by = r.choice(("1", "2, 1", "4", "3 desc nulls last, 1", "1 desc", "2 nulls first"))
            if not aggregated and self.chance(0.35):
                by = self.i(sc, 2)
                if by[0] not in "\x01a":
                    by = "1"
            elif self.bools and self.budget > 0 and not self.safe and self.chance(0.1):
                by = "1 using <<<<"
                self.budget -= 1
            out += optional(f" order by {by}")
        if self.chance(0.25):
            if self.chance(0.5):
                m = r.choice((1, 1, 2, 3, 5, 10, 40))
                out += optional(f" limit {m}")
                n = min(n, m)
            else:
                out += optional(f" limit {self.i(outer, 2)}")
        if self.chance(0.08):
            out += optional(f" offset {r.randint(0, 4) if self.chance(0.6) else self.i(outer, 1)}")
        return out, n

    def plain(self, d, outer, most, small):
        r = self.r
        text, aliases, n = self.source(d, outer, most, small)
        sc = outer + aliases
        distinct = ""
        columns = self.columns(aliases if not small or self.chance(0.3) else sc)
        if self.chance(0.07):
            distinct = optional("distinct ")
        elif self.chance(0.04):
            distinct = f"distinct on ({aliases[0]}.{r.choice(('v', 'k', 'id'))}) "
            return f"select {distinct}{columns} {text} order by {distinct[13:-2]}, 1", n
        elif self.chance(0.05) and not self.safe:
            several = r.choice(("generate_series(1, {} % 3)", "set_eff({} % 3)", "set_boom({})")).format(self.i(aliases, 1))
            columns = f"{self.leaf(aliases)} as id, {several} as k, {self.i(sc, 1)} as v, {aliases[0]}.t as t"
            n *= 2
        tail, n = self.tail(aliases, outer, n, aggregated=bool(distinct))
        return f"select {distinct}{columns} {text}{tail}", n

    def aggregate(self, aliases, outer):
        r, sc = self.r, outer + aliases
        e, x = self.i(sc, 2), r.random()
        if outer and not any(f"{a}." in e for a in aliases):
            # it would be an aggregate of the outer query
            e = f"({aliases[0]}.id + {e})"
        if self.budget > 0 and self.pools and x < 0.3 and not self.safe:
            self.budget -= 1
            call = f"{r.choice(('sum_eff', 'sum_boom', 'sum_off', 'sum_tell'))}({e})"
            return f"\x01i{call}\x02"
        if x < 0.4:
            return f"\x01icount(distinct {e})::int\x02"
        if x < 0.5:
            return f"\x01icount(*) filter (where {self.b(aliases, 1)})::int\x02"
        if x < 0.6:
            return f"\x01ilength(string_agg({self.t(aliases)}, ',' order by {self.leaf(aliases)}))\x02"
        if x < 0.66:
            return f"\x01i(array_agg({e} order by {self.i(aliases, 1)}))[1]\x02"
        return f"\x01i{r.choice(('sum', 'max', 'min', 'count'))}({e})::int\x02"

    def grouped(self, d, outer, most, small):
        r = self.r
        text, aliases, n = self.source(d, outer, most, small)
        group = self.leaf(aliases)
        if group[0] != "a":
            group = f"{aliases[0]}.v"
        if self.chance(0.2):
            # none: one row
            having = optional(f" having count(*) > {self.i(outer, 1)}") if self.chance(0.2) else ""
            return (f"select {self.aggregate(aliases, outer)} as id, {self.aggregate(aliases, outer)} as k, {self.aggregate(aliases, outer)} as v, "
                    f"'1'::text as t {text}{having}"), 1
        x = r.random()
        if x < 0.15:
            by = r.choice((f"rollup ({group}, {aliases[0]}.v)", f"grouping sets (({group}), ())", f"cube ({group}, {aliases[-1]}.k)",
                           f"grouping sets (({group}), ({aliases[0]}.v))"))
            n *= 2
        elif x < 0.3:
            group = self.i(aliases, 2)
            if not group.startswith("\x01"):
                group = f"({group} + 0)"
            by = "1"
        else:
            by = group
        having = optional(f" having {self.aggregate(aliases, outer)} > {r.randint(0, 9)}") if self.chance(0.2) else ""
        tail, n = self.tail(aliases, outer, n, aggregated=True)
        return (f"select {group} as id, {self.aggregate(aliases, outer)} as k, {self.aggregate(aliases, outer)} as v, "
                f"'g'::text as t {text} group by {by}{having}{tail}"), n

    def windowed(self, d, outer, most, small):
        r = self.r
        text, aliases, n = self.source(d, outer, most, small)
        sc = outer + aliases
        a = aliases[0]
        over = r.choice((f"order by {a}.id", f"partition by {a}.v order by {a}.id", f"partition by {a}.v", "", f"order by {a}.k, {a}.id",
                         f"order by {a}.id rows between 2 preceding and current row", f"order by {a}.id rows 3 preceding"))
        e = self.i(sc, 2)
        call = r.choice((f"sum({e})", f"row_number()", f"lag({e}, 1)", f"first_value({e})", f"ntile({self.i(outer, 1)})",
                         f"nth_value({e}, 2)", f"count(*) filter (where {self.b(sc, 1)})", "rank()"))
        if self.budget > 0 and self.pools and not self.safe and self.chance(0.4):
            self.budget -= 1
            call = f"{r.choice(('sum_eff', 'sum_boom', 'sum_off', 'sum_tell'))}({e})"
        text = f"select {self.i(aliases, 1)} as id, ({call} over ({over}))::int as k, {self.i(aliases, 1)} as v, {self.t(aliases)} as t {text}"
        if self.chance(0.3):
            w = self.alias()
            return f"select {w}.* from ({text}) {w} where {w}.k <= {r.randint(1, 6)}", n
        tail, n = self.tail(aliases, outer, n)
        return text + tail, n

    def set_operation(self, d, outer, most, small):
        r = self.r
        word = r.choice(("union all", "union all", "union", "intersect", "except", "except all"))
        left, n = self.query(d - 1, outer, most // 2, small)
        right, m = self.query(d - 1, outer, most // 2, small)
        tail, m = self.tail(["nothing"], outer, n + m, aggregated=True)
        return f"({left}) {word} ({right}){tail}", m

    def recursive(self, d, outer):
        name, a = self.alias(), self.alias()
        sc = outer + [name]
        start = f"select ({self.i(outer, 1)})::int as id, 1 as k, ({self.i(outer, 1)})::int as v, '1'::text as t"
        step = self.r.choice((
            f"select ({self.i(sc, 1)})::int, {name}.k + 1, ({self.i(sc, 1)})::int, {name}.t from {name} where {name}.k < {self.r.randint(2, 6)}",
            f"select {a}.id, {name}.k + 1, ({self.i(sc + [a], 1)})::int, {a}.t from {name} join {self.r.choice(('ta', 'tb', 'tc'))} {a} "
            f"on {a}.id = {name}.id + 1 where {name}.k < 5"))
        more = optional(f" limit {self.i(outer, 1)}") if self.chance(0.2) else ""
        return f"with recursive {name} (id, k, v, t) as ({start} union {self.r.choice(('all ', ''))}{step}) select * from {name}{more}", 5

    def with_query(self, d, outer, most, small):
        name = f"c{self.alias()}"
        text, n = self.query(d - 1, [], min(most, 130))
        word = self.r.choice(("", "materialized ", "materialized ", "not materialized "))
        # (a second WITH could not follow)
        self.ctes.append((name, n))
        body, m = self.plain(d - 1, outer, most, small)
        if self.chance(0.3) and not small:
            a = self.alias()
            body, m = f"select * from {name} {a} where {self.b(outer + [a], 2)}", n
        self.ctes.pop()
        return f"with {name} as {word}({text}) {body}", m
