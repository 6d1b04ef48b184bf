"""
impure_cases.py - what is done with generated queries: cursors, loops, modifications, ...

make(seed, number) returns the case of that number.
"""

import random

from impure_gen import Case, FAILING, Gen, MANY, optional

PARALLEL = {"max_parallel_workers_per_gather": "2", "parallel_setup_cost": "0", "parallel_tuple_cost": "0",
            "min_parallel_table_scan_size": "0", "min_parallel_index_scan_size": "0"}


def planner_settings(r):
    """Which joins there are, mostly."""
    def chance(p):
        return r.random() < p

    out = {}
    style = r.choices(("nestloop", "hash", "merge", "any"), (50, 28, 8, 14))[0]
    if style == "nestloop":
        out = {"enable_hashjoin": "off", "enable_mergejoin": "off"}
        if chance(0.3):
            out["enable_seqscan"] = "off"
    elif style == "hash":
        out = {"enable_nestloop": "off", "enable_mergejoin": "off"}
    elif style == "merge":
        out = {"enable_nestloop": "off", "enable_hashjoin": "off"}
    for name, p in (("enable_material", 0.5), ("enable_memoize", 0.5), ("enable_bitmapscan", 0.8), ("enable_sort", 0.08),
                    ("enable_hashagg", 0.25), ("enable_incremental_sort", 0.15), ("enable_indexonlyscan", 0.25),
                    ("enable_indexscan", 0.05)):
        if chance(p):
            out[name] = "off"
    if chance(0.6):
        out["join_collapse_limit"] = "1"
    if chance(0.3):
        out["from_collapse_limit"] = "1"
    if chance(0.12):
        out["work_mem"] = "64kB"
    if chance(0.1):
        out["cursor_tuple_fraction"] = "1.0"
    return out


def ahead_settings(r, force):
    """One way of looking ahead; without force, by thresholds that tiny tables reach."""
    out = {
        "enable": "on", "force": "on" if force else "off",
        "max_distance": r.choice(("1", "2", "4", "16", "64", "64")),
        "cache_prefetch_distance": r.choice(("1", "8", "32")),
        "tablespace_max_in_flight": r.choice(("0", "0", "0", "1", "2", "1000")),
        "max_leaf_pages": r.choice(("2", "64")),
        "miss_threshold": r.choice(("0", "1")),
        "cache_prefetch_threshold": r.choice(("0", "0", "1", "-1" if force else "0")),
        "attach_threshold": r.choice(("0", "0", "3")),
        "min_read_time": "0",
    }
    if r.random() < 0.2:
        out["nestloop_reuse_tids"] = "off"
    if r.random() < 0.3:
        out["enable_btree_insert"] = "on"
    if r.random() < 0.2:
        out["enable_index_scan"] = "off"
    return out


class Cases:
    """One case; method names are k_ and the kind."""

    def __init__(self, seed, number):
        self.r = random.Random(f"impure/{seed}/{number}")
        self.g = Gen(self.r)
        kind = self.r.choices(KINDS, WEIGHTS)[0]
        self.case = case = Case(number, kind)
        case.planner = planner_settings(self.r)
        if self.r.random() < 0.03:
            case.isolation = "serializable"
        elif self.r.random() < 0.05:
            case.isolation = "repeatable read"
        if self.r.random() < 0.06:
            case.planner["role"] = "reader"
        getattr(self, f"k_{kind}")()
        case.ahead = [ahead_settings(self.r, False), ahead_settings(self.r, True)]

    def query(self, d=2):
        return self.g.query(d, [], 150)[0]

    def quoted(self, sql):
        return f"$q${sql}$q$"

    def k_select(self):
        case = self.case
        case.steps = [self.query()]
        case.prepared = self.g.chance(0.6)
        case.single_row = self.g.chance(0.08)

    def joined(self):
        """What look-ahead is for: a join with an outer side that has a story of its own."""
        g, r = self.g, self.r
        outer, n = g.query(r.choice((0, 1, 1, 2)), [], 120)
        o = g.alias()
        sc, text = [o], f"({outer}{g.fence(outer, 0.4)}) {o}"
        if n <= 100 and g.chance(0.3):
            # which is rescanned for each of its rows
            item, b, _ = g.lateral(2, sc)
            kind, on = r.choice((("cross join", ""), ("cross join", ""), ("left join", " on true")))
            text, sc = f"({text} {kind} {item}{on})", [o, b]
        for _ in range(r.choice((1, 1, 1, 2))):
            b = g.alias()
            item = f"{r.choice([t for t in ('ta', 'tb', 'tb', 'tc', 'tc', 'tc', 'tp', 'tu', 'tt')])} {b}"
            kind = r.choice(("left join", "left join", "left join", "join", "join"))
            text += optional(f" {kind} {item} on {g.key(b, sc, [], kind)}")
            sc.append(b)
        where = optional(f" where {g.b(sc, 1)}") if g.chance(0.3) else ""
        tail = g.tail(sc, [], n)[0] if g.chance(0.4) else ""
        return f"select {g.columns(sc)} from {text}{where}{tail}"

    def either(self, d=2):
        return self.joined() if self.g.chance(0.5) else self.query(d)

    def k_joined(self):
        case = self.case
        case.steps = [self.joined()]
        case.prepared = self.g.chance(0.6)
        case.single_row = self.g.chance(0.08)

    def k_rescanned(self):
        """A node that is read to its end at once, but again for each row of another, above that a join,
        of which some rows are wanted."""
        g, r = self.g, self.r
        a, s, z = g.alias(), g.alias(), g.alias()
        pool = r.choice(g.pools) if g.pools else FAILING
        f = f"\x01i{g.fill(r.choice(pool), [a], 1)}\x02"
        own = f"{f} + {z}.id * 0" if g.chance(0.8) else f"\x01i{g.fill(r.choice(pool), [a, z], 1)}\x02"
        text = r.choice((
            f"select g as id from generate_series(1, 1 + abs({f} % 2)) g",
            f"select {own} as id from te {z} order by 1 limit {r.randint(1, 3)}",
            f"select {own} as id from te {z} order by {z}.k",
            f"select {z}.id from te {z} limit {f}",
            f"select {z}.id from te {z} order by {z}.v limit 1 offset abs({f} % 4)",
            f"select sum({own} + {z}.id * 0)::int as id from te {z}",
            f"select count(*)::int as id from te {z} group by {own}",
            f"select distinct {own} as id from te {z}",
            f"select {own} as id from te {z} {r.choice(('except', 'intersect', 'union', 'except all'))} select {r.randint(1, 9)}",
            f"select (sum({own}) over (order by {z}.id))::int as id from te {z}",
            f"select generate_series(1, 1 + abs({f} % 2)) as id",
            f"select {z}.id from (values (1), ({f})) {z} (id)",
            f"with recursive {z} (id) as (select 1 union all select {z}.id + 1 + ({f}) * 0 from {z} where {z}.id < 3) select id from {z}",
            f"select {z}.id from tb {z} where {z}.id = {f}",
            f"select {z}.id from ta {z} join te on te.id = {z}.k and {z}.id = {f} order by 1",
            f"select max({z}.id) as id from te {z} having max({z}.k) > {f}"))
        table = r.choice(("ta", "tb", "tc", "tu", "tt", "tp"))
        kind = r.choice(("cross join", "cross join", "left join"))
        text = f"({table} {a} {kind} lateral ({text}) {s}{' on true' if kind == 'left join' else ''})"
        sc = [a]
        for _ in range(r.choice((1, 1, 2))):
            b = g.alias()
            kind = r.choice(("left join", "left join", "join"))
            text += optional(f" {kind} {r.choice(('ta', 'tb', 'tc', 'tp', 'tt'))} {b} on {b}.{r.choice(('id', 'k'))} = {a}.{r.choice(('id', 'k'))}")
            sc.append(b)
        self.case.planner["join_collapse_limit"] = "1"
        self.in_part(f"select {a}.id as id, {s}.id as k, {g.i(sc, 1)} as v, {g.t(sc)} as t from {text}")

    def in_part(self, query):
        """Take some rows of a query."""
        r, x, n = self.r, self.r.random(), self.r.randint(1, 60)
        if x < 0.4:
            steps = [f"declare c no scroll cursor for {query}", f"{r.choice(('fetch', 'move', 'move'))} {n} from c"]
            if x < 0.2:
                steps += [f"select set_config('my.off', '{r.randint(1, 5)}', false), nextval('sq')", f"fetch {r.choice((1, 2, 20))} from c"]
            self.case.steps = steps
        elif x < 0.65:
            self.case.steps = [f"{query} limit {n}"]
        elif x < 0.75:
            self.case.steps = [f"select looped({self.quoted(query)}, {n})"]
        elif x < 0.85:
            self.case.steps = [f"select stepped({self.quoted(query)}, array[{n}, 1, -2, 1, 1])"]
        elif x < 0.9:
            self.case.steps = [f"select exists ({query})"]
        else:
            self.case.steps = [query]

    def k_cursor(self):
        g, r = self.g, self.r
        queries = [self.either() for _ in range(r.choice((1, 1, 1, 2)))]
        scroll = g.chance(0.2)
        steps = [f"declare c{i} {'scroll' if scroll else 'no scroll'} cursor for {q}" for i, q in enumerate(queries)]
        for _ in range(r.randint(2, 7)):
            n = r.choice((1, 1, 2, 3, 7, 20))
            c = f"c{r.randrange(len(queries))}"
            x = r.random()
            if x < 0.25:
                step = r.choice((f"select set_config('my.off', '{r.randint(0, 5)}', false)", "select nextval('sq')", "select eff(99)",
                                 "select put(3)", "savepoint s", "select tell(7)", f"set local work_mem = '{r.choice(('64kB', '4MB'))}'"))
            elif scroll and x < 0.5:
                step = r.choice((f"fetch backward {n} from {c}", f"move backward {n} from {c}", f"fetch absolute {n} from {c}",
                                 f"fetch last from {c}", f"fetch first from {c}", f"fetch relative 2 from {c}"))
            elif x < 0.65:
                step = f"fetch {n} from {c}"
            elif x < 0.9:
                step = f"move {n} from {c}"
            else:
                step = f"{r.choice(('fetch', 'move'))} all from {c}"
            steps.append(step)
        if g.chance(0.4):
            steps.append("close c0")
        self.case.steps = steps

    def k_loop(self):
        g, r = self.g, self.r
        q = self.quoted(self.either())
        x = r.random()
        if x < 0.2:
            step = f"select looped({q}, {r.choice((1, 2, 5, 20, 60))})"
        elif x < 0.4:
            step = f"select caught({q})"
        elif x < 0.6:
            step = f"select taken({q})"
        elif x < 0.8:
            moves = [r.choice((1, 1, 1, 2, 5, 20, -1, -3)) for _ in range(r.randint(2, 8))]
            step = f"select stepped({q}, array{moves})"
        elif x < 0.9:
            step = f"select counted({q}) + {g.i([], 1)}"
        else:
            step = f"select nested({self.quoted(g.query(0, [], 60)[0])}, {self.quoted(g.query(1, [], 8, small=True)[0])})"
        self.case.steps = [step]
        if g.chance(0.3):
            self.case.steps.append(step)

    def k_parameters(self):
        """A prepared statement, executed as often as it takes to get a generic plan, or at once."""
        self.g.param = True
        self.case.planner["plan_cache_mode"] = self.r.choice(("auto", "force_generic_plan", "force_generic_plan", "force_custom_plan"))
        times = self.r.choice((2, 2, 3))
        self.case.steps = [f"prepare p (int) as {self.either()}"] + [
            f"execute p ({self.r.randint(0, 40)})" for _ in range(times)]
        self.case.named = True

    def k_analyze(self):
        self.case.steps = [f"explain (analyze, costs off, timing off, summary off, buffers off) {self.either()}"]

    def k_locks(self):
        g, r = self.g, self.r
        a, b = g.alias(), g.alias()
        table = r.choice(("ta", "tb", "tu", "tt", "w0"))
        mode = r.choice(("update", "share", "no key update", "key share"))
        tail = g.tail([a, b], [], 60)[0]
        self.case.steps = [
            f"select {g.columns([a, b])} from {table} {a} join {r.choice(('ta', 'tb', 'tc'))} {b} on {g.key(b, [a], [], 'join')} "
            f"where {g.b([a, b], 2)}{tail} for {mode} of {r.choice((a, b))}{r.choice(('', '', ' nowait', ' skip locked'))}"]

    # ---- statements that write --------------------------------------------

    def written(self, table):
        """What a modification has left."""
        out = [f"select * from {table} order by 1, 2, 3, 4"]
        if table == "w2":
            out += ["select * from w4 order by 1, 2", "select * from w5 order by 1, 2"]
        if self.g.chance(0.15):
            # new rows are not where they were in the run before
            out.append(f"select sum({self.g.i(['w'], 1)}) from (select * from {table} order by 1, 2, 3, 4 offset 0) w")
        return out

    def returning(self, w):
        return optional(f" returning {self.g.i([w], 2)}, {w}.id") if self.g.chance(0.6) else ""

    def modification(self, table, w):
        g, r = self.g, self.r
        x = r.random()
        if x < 0.35:
            q = self.either()
            if g.chance(0.5):
                s = g.alias()
                q = f"select coalesce({s}.id, 0) % 200 + 1000, {g.i([s], 2)}, {g.i([s], 2)}, {s}.t from ({q}) {s}"
            conflict = ""
            if table == "w2":
                conflict = r.choice(("", " on conflict do nothing", f" on conflict (id) do update set k = {g.i(['excluded'], 1)}, v = {g.i([w], 1)}"))
            return f"insert into {table} as {w} {q}{conflict}{self.returning(w)}"
        if x < 0.6:
            text, aliases, _ = g.joined(1, [], 200)
            s = r.choice(("k", "v", "k", "id")) if table != "w2" else r.choice(("k", "v"))
            where = f" where {w}.id = {g.leaf(aliases)}{optional(f' and {g.b(aliases + [w], 1)}') if g.chance(0.4) else ''}"
            return f"update {table} {w} set {s} = {g.i(aliases + [w], 2)}, t = {g.t(aliases)} from {text}{where}{self.returning(w)}"
        if x < 0.75:
            text, aliases, _ = g.joined(1, [], 200)
            where = f" where {w}.{r.choice(('id', 'k'))} = {g.leaf(aliases)}{optional(f' and {g.b(aliases + [w], 1)}') if g.chance(0.4) else ''}"
            return f"delete from {table} {w} using {text}{where}{self.returning(w)}"
        if x < 0.85:
            cond = g.b([w], 2)
            return r.choice((f"update {table} {w} set k = {g.i([w], 2)} where {cond}", f"delete from {table} {w} where {cond}")) + self.returning(w)
        s = g.alias()
        text, _ = g.query(1, [], 100)
        matched = r.choice((f"update set v = {g.i([w, s], 2)}", f"update set k = {g.i([s, w], 2)}, t = {s}.t", "delete", "do nothing"))
        cond = optional(f" and {g.b([w, s], 1)}") if g.chance(0.5) else ""
        last = f" when matched then {r.choice(('delete', f'update set k = {g.i([w, s], 1)}'))}" if cond and g.chance(0.4) else ""
        only = optional(f" and {g.b([s], 1)}") if g.chance(0.3) else ""
        insert = (f" when not matched{only} then insert values (coalesce({s}.id, 0), {s}.k, {g.i([s], 1)}, {s}.t)"
                  if g.chance(0.7) else "")
        return f"merge into {table} {w} using ({text}) {s} on {w}.id = {s}.id when matched{cond} then {matched}{last}{insert}"

    def k_write(self):
        g, r = self.g, self.r
        table = r.choice(("w0", "w0", "w1", "w1", "w2", "w3"))
        self.case.steps = [self.modification(table, g.alias())]
        if table == "w1":
            self.case.steps.append("set constraints all immediate")
        self.case.steps += self.written(table)
        # the table is not as large as it was in the run before: that must not change the plan
        self.case.prepared = True

    def k_new_table(self):
        """A table made of a query, whose receiver may refuse a row."""
        name = self.g.alias()
        columns = "".join(f", case when {name}.id % 7 = 3 then 'x'::name end as n{i}" for i in range(130)) if self.g.chance(0.5) else ""
        self.case.steps = [f"create temporary table made as select {name}.*{columns} from ({self.either()}) {name}",
                           "select id, k, v, t from made"]

    def k_with_write(self):
        """WITH that modifies, beside a query, or two of them."""
        g, r = self.g, self.r
        table, name, a = r.choice(("w0", "w1", "w2", "w3")), g.alias(), g.alias()
        w = g.alias()
        first = r.choice((
            f"insert into {table} as {w} select s.id % 200 + 2000, s.k, {g.i(['s'], 1)}, s.t from ({self.query(1)}) s where s.id is not null",
            f"update {table} {w} set k = {g.i([w], 2)} where {g.b([w], 1)}",
            f"delete from {table} {w} where {g.b([w], 1)}"))
        g.ctes.append((name, 60))
        if g.chance(0.5):
            main = self.query(1)
        else:
            b = g.alias()
            main = f"select {g.columns([a, b])} from {name} {a} left join {r.choice(('ta', 'tb', 'tc'))} {b} on {g.key(b, [a], [], 'left join')}"
        g.ctes.pop()
        more = optional(f" limit {r.randint(1, 9)}") if g.chance(0.2) else ""
        self.case.steps = [f"with {name} as ({first} returning {w}.id::int as id, {w}.k::int as k, {w}.v::int as v, {w}.t::text as t) "
                           f"select * from ({main}) z{more}"] + self.written(table)
        self.case.prepared = True

    def k_parallel(self):
        """Workers: rows come in any order, and only what is safe there is used."""
        g, case = self.g, self.case
        g.safe = True
        g.pools = [p for p in g.pools if p and p[0].startswith("10 /")]
        g.pools, g.bools = [[p for p in pool if "boom" not in p and "select" not in p] for pool in g.pools], []
        case.planner.update(PARALLEL)
        case.planner.pop("role", None)
        case.isolation = "read committed"
        text, aliases, _ = g.joined(1, [], MANY)
        where = optional(f" where {g.b(aliases, 2)}") if g.chance(0.6) else ""
        case.steps = [f"select {g.columns(aliases)} from {text}{where}"]
        case.prepared = True
        case.ordered = False
        case.again = True


KINDS = ("select", "joined", "rescanned", "cursor", "loop", "parameters", "analyze", "locks", "write", "with_write", "new_table", "parallel")
WEIGHTS = (24, 26, 10, 12, 8, 5, 5, 2, 8, 3, 2, 0.4)


def make(seed, number):
    return Cases(seed, number).case
