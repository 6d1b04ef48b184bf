"""
world.py - makes the tables of a schema with the features of a shape (shapes.py).

  t    what all statements are about: it has the shape's access methods, index, partitions,
       triggers, policies, foreign keys
  o    rows that are joined to it, in another order; its first keys are not in "t"
  b    from no row to three for each of the first rows of "t", found by its index on tid
  p    what "t" refers to
  vt   a view of "t", with a security barrier if the shape says so
  vo   a view of "o" and "b"

All of t, o, vt have the same columns, so that any expression fits any of them.  The values of a
row follow from its number, so that acts know which ones there are.

A statement marked optional may fail, as an access method may not have what the shape asks for;
then the table goes without.  Of a temporary table each session makes its own.
"""

import random

import shapes

COLUMNS = "id, k, v, z, ts, tz, x, ty, zone, cj, j, big"
TYPES = ("int", "text", "timestamp(9)", "numeric", "time(8)", "uuid", "bool", "interval(7)", "date", "char(3)")


class Key:
    """A type of keys: how its values are made of numbers, and which operators it has."""

    def __init__(self, kind):
        self.kind = kind
        self.type, self.expr, self.own = {
            "int4": ("int", "({i})"), "int8": ("bigint", "(({i})::bigint * 3)"), "int2": ("smallint", "(({i}) % 30000)::smallint"),
            "text": ("text", "('k' || lpad(({i})::text, 7, '0'))"), "citext": ("citext", "(case when ({i}) % 2 = 0 then 'K' else 'k' end || lpad(({i})::text, 7, '0'))::citext"),
            "numeric": ("numeric", "(({i})::numeric / 7)"), "uuid": ("uuid", "(lpad(to_hex({i}), 32, '0')::uuid)"),
            "timestamp": ("timestamp", "(timestamp '2024-01-01' + ({i}) * interval '1 minute')"),
            "timestamptz": ("timestamptz", "(timestamptz '2024-01-01 00:00+00' + ({i}) * interval '1 minute')"),
            "date": ("date", "(date '2000-01-01' + ({i}))"), "time": ("time", "(time '00:00' + ({i}) * interval '1 second')"),
            "interval": ("interval", "(({i}) * interval '1 hour')"), "float8": ("float8", "(({i})::float8 / 3)"),
            "bool": ("bool", "(({i}) % 2 = 0)"), "bytea": ("bytea", "decode(lpad(to_hex({i}), 12, '0'), 'hex')"),
            "name": ("name", "('n' || lpad(({i})::text, 7, '0'))::name"), "bpchar": ("char(12)", "('c' || lpad(({i})::text, 7, '0'))::char(12)"),
            "inet": ("inet", "(inet '10.0.0.0' + ({i}))"), "jsonb": ("jsonb", "jsonb_build_object('a', ({i}))"),
            "int4range": ("int4range", "int4range(({i}) * 2, ({i}) * 2 + 2)"), "bit": ("bit(32)", "(({i})::bit(32))"),
            "array": ("int[]", "array[({i}) / 3, ({i})]"), "comp_int_text": ("pair", "row(({i}) / 2, 'p' || ({i}))::pair"),
            "comp_int_json": ("pairj", "row(({i}), '{{}}')::pairj"), "array_of_comp": ("pairj[]", "array[row(({i}), '{{}}')::pairj]"),
            "comp_of_comp": ("deep", "row(row(({i}), '{{}}')::pairj, ({i}))::deep"), "domain": ("dom", "({i})::dom"),
            "domain_text": ("dom_text", "('d' || lpad(({i})::text, 7, '0'))::dom_text"), "domain_fails": ("dom_fails", "({i})::dom_fails"),
            "enum": ("mood", "('m' || lpad((abs({i}) % 300)::text, 3, '0'))::mood"),
            "oidvector": ("oidvector", "((({i})::text || ' 7')::oidvector)"),
        }.get(kind, ("int", "({i})")) + (kind if kind in shapes.OWN else None,)
        self.mark = {"own_quiet": "%", "own_tells": "@", "own_reads": "#", "own_fails": "!", "own_effects": "&"}.get(kind, "")
        self.fails_when_equal = kind in ("comp_int_json", "array_of_comp", "comp_of_comp")

    def value(self, i):
        return self.expr.format(i=i)

    def op(self, name):
        return f"{name}{self.mark}"

    def opclass(self, am):
        return f"{self.own}_{am}" if self.own and am in ("btree", "hash") else ""


class World:
    def __init__(self, seed, number, shape, have):
        """have: what there is beside the server's own (extensions, "tableam", "icu", major version)."""
        self.seed, self.number, self.shape, self.have = seed, number, shape, have
        self.r = random.Random(f"world/{seed}/{number}")
        self.key = Key(shape["key"])
        n = {"few": 300, "some": 1200, "many": 6000}[shape["rows"]]
        if self.key.own or shape["persistence"] == "temp" or shape["columns"] in ("generated_tells", "checked"):
            n = min(n, 1200)
        if shape["key"] == "int2":
            n = min(n, 9000)
        self.n = n
        self.outer = 250
        self.temp = shape["persistence"] == "temp"
        self.partitioned = shape["layout"] in ("range", "list", "hash")
        if shape["index"] == "exclusion" and shape["am"] not in ("btree", "hash"):
            n = min(n, 300)
        self.n = n
        # of unique indexes: what has to be in them
        self.partition_column = {"range": "id", "hash": "id", "list": "v"}.get(shape["layout"])

    # ---- values of rows ---------------------------------------------------

    def key_number(self, i):
        """Which key the row of number i has."""
        how = self.shape["duplicates"]
        if self.key.fails_when_equal or how == "none":
            return f"({i})"
        return f"(({i}) / 3)" if how == "few" else f"(({i}) % 37)"

    def row(self, i, key):
        """The columns of a row."""
        big = {"none": "null", "external": f"(case when {i} % 3 = 0 then repeat(md5(({i})::text), 90) end)",
               "compressed": f"(case when {i} % 4 <> 1 then repeat('abc' || {i}, 1500) end)",
               "mixed": f"(case {i} % 5 when 0 then repeat(md5(({i})::text), 80) when 1 then 'short' when 2 then repeat('x' || {i}, 900) end)"}
        return (f"{i}, {key}, {self.number_of(i)}, ({i} * 11) % 50, "
                f"timestamp '2024-01-01' + {i} * interval '1 minute', timestamptz '2024-01-01 00:00+00' + {i} * interval '7 minutes', "
                f"case when {i} % 191 = 94 then 'x' || {i} when {i} % 11 <> 3 then ({i} % 100)::text end, "
                f"(array{list(TYPES)})[1 + {i} % {len(TYPES)}], (array['UTC', 'LMT', 'Asia/Tokyo', 'MST', 'Europe/Berlin', 'EST5EDT', 'IST'])[1 + {i} % 7], "
                f"row({i}, '{{}}')::pairj, 1 + {i} % 300, {big[self.shape['toast']]}")

    def number_of(self, i):
        """The column v: from 0 to 9, or null where no partition depends on it."""
        return f"({i} * 7) % 10" if self.partition_column == "v" else f"case when {i} % 13 <> 6 then ({i} * 7) % 10 end"

    def rows(self, n, key, shuffle):
        return f"select {self.row('i', key)} from generate_series(1, {n}) i order by (i * {shuffle}) % {n + 1}"

    # ---- tables -----------------------------------------------------------

    def columns(self, more=""):
        collate = {"C": ' collate "C"', "nondeterministic": " collate blind", "icu": " collate german"}.get(self.shape["collation"], "")
        if collate and ("blind" in collate or "german" in collate) and not self.have["icu"]:
            collate = ""
        return (f"id int not null, k {self.key.type}{collate}, v int, z int, ts timestamp, tz timestamptz, x text, ty text, zone text, "
                f"cj pairj, j int, big text{more}")

    def more_columns(self):
        how = self.shape["columns"]
        if how == "virtual" and self.have["major"] < 18:
            how = "generated"
        return {"generated": ", g int generated always as (id % 10) stored",
                "generated_tells": ", g int generated always as (imm_tell(id) % 10) stored",
                "identity": ", g int generated always as identity",
                "virtual": ", g int generated always as (id % 10) virtual",
                "default_effects": ", g int default eff(nextval('sq')::int % 100)",
                "checked": ", g int default 1, check (peek(v) or true), check (imm_eff(id) is not null)"}.get(how, ", g int default 5")

    def create_t(self):
        s, layout = self.shape, self.shape["layout"]
        kind = {"temp": "temporary ", "unlogged": "unlogged "}.get(s["persistence"], "")
        using = " using la_other" if s["table_am"] == "other" and self.have["tableam"] else ""
        options = "" if using else f" with (fillfactor = {s['fill']})"
        c = self.columns(self.more_columns())
        out = []
        if layout == "range":
            out.append(f"create {kind}table t ({c}) partition by range (id)")
            cut = [self.n // 4, self.n // 2, self.n]
            for i, (lo, hi) in enumerate(zip(["minvalue"] + cut, cut + ["maxvalue"])):
                out.append(f"create {kind}table t_{i} partition of t for values from ({lo}) to ({hi}){using}{options}")
        elif layout == "list":
            out.append(f"create {kind}table t ({c}) partition by list (v)")
            out.append(f"create {kind}table t_0 partition of t for values in (0, 1, 2, null){using}{options}")
            out.append(f"create {kind}table t_1 partition of t for values in (3, 4, 77){using}{options}")
            out.append(f"create {kind}table t_2 partition of t default{using}{options}")
        elif layout == "hash":
            out.append(f"create {kind}table t ({c}) partition by hash (id)")
            out += [f"create {kind}table t_{i} partition of t for values with (modulus 3, remainder {i}){using}{options}" for i in range(3)]
        else:
            out.append(f"create {kind}table t ({c}){using}{options}")
            if layout == "inherits":
                out.append(f"create {kind}table t_0 (extra int) inherits (t){using}{options}")
        return out

    def fill_t(self):
        key = self.key.value(self.key_number("i"))
        out = [f"insert into t ({COLUMNS}) {self.rows(self.n, key, 7919)}"]
        if self.shape["layout"] == "inherits":
            out[0] = f"insert into t ({COLUMNS}) select {COLUMNS} from ({self.rows(self.n, key, 7919)}) s ({COLUMNS}) where id % 2 = 0"
            out.append(f"insert into t_0 ({COLUMNS}) select {COLUMNS} from ({self.rows(self.n, key, 7919)}) s ({COLUMNS}) where id % 2 = 1")
        return out

    def create_others(self):
        kind = "temporary " if self.temp else ""
        n = self.outer
        # the first keys are of no row of "t"; then those of some rows, in another order, and nulls
        number = f"(case when i <= 60 then -i when i % 31 = 4 then null else (i * 37) % {self.n} + 1 end)"
        if self.shape["key"] in ("uuid", "int4range", "bytea", "bit", "oidvector", "time", "enum"):
            number = number.replace("-i", f"i + {3 * self.n}")
        key = self.key.value(self.key_number(number))
        return [
            f"create {kind}table o ({self.columns(', g int')}) with (fillfactor = 20)",
            f"insert into o ({COLUMNS}) select {self.row('i', key)} from generate_series(1, {n}) i",
            f"create index o_id on o (id)",
            f"create {kind}table b (id int, tid int, w int, k {self.key.type}, bx text) with (fillfactor = 20)",
            f"insert into b select i, 1 + (i * 53) % {min(self.n, 900)}, (i * 3) % 10, {self.key.value(self.key_number('i'))}, "
            f"case when i % 7 = 3 then repeat('b' || i, 200) end from generate_series(1, 1200) i where (i * 53) % {min(self.n, 900)} % 7 <> 3",
            "create index b_tid on b (tid)",
            f"create {kind}table p (id int primary key, pv int) with (fillfactor = 10)",
            "insert into p select i, i % 10 from generate_series(0, 400) i order by (i * 71) % 401",
            # a column with the statement's types, whose functions warn
            f"create {kind}table f (b int, c int) with (fillfactor = 10)",
            "insert into f select i % 2, i from generate_series(1, 200) i",
            "create index f_b on f (b, c)",
        ]

    # ---- indexes ----------------------------------------------------------

    def fillfactor(self, am):
        return " with (fillfactor = 10)" if am in ("btree", "hash", "gist", "spgist") and self.shape["fill"] != "100" else ""

    def indexed(self, am):
        """The column, or expression, that an index of this access method is made on."""
        kind = self.shape["key"]
        if am in ("btree", "hash") or (am == "brin" and not self.key.own and kind not in
                                       ("array", "bool", "jsonb", "oidvector", "comp_int_text", "comp_int_json", "array_of_comp", "comp_of_comp",
                                        "enum", "citext", "int4range")):
            cls = self.key.opclass(am)
            return f"k {cls}".strip(), "k"
        if am == "gist":
            if kind == "inet":
                return "k inet_ops", "k"
            return ("k", "k") if kind in shapes.HAVE_GIST else ("v", "v")
        if am == "spgist":
            return ("k", "k") if kind in ("text", "int4range", "inet", "domain_text") and self.shape["collation"] != "nondeterministic" else ("int4range(id, id + 3)", "r")
        if am == "gin":
            return ("k", "k") if kind in ("array", "jsonb") else ("(array[v, z])", "a")
        return "v", "v"

    def create_indexes(self):
        """The index of the shape, then those beside it."""
        s, am, how = self.shape, self.shape["am"], self.shape["index"]
        column, self.am_column = self.indexed(am)
        fill = self.fillfactor(am)
        part = f", {self.partition_column}" if self.partition_column else ""
        expr = {"text": "k || ''", "int4": "k + 0"}.get(s["key"], "quiet(v)")
        out = []
        cls = self.key.opclass("btree")
        k = f"k {cls}".strip()
        out += {
            "primary": [f"alter table t add constraint t_id primary key (id{part if part != ', id' else ''})"],
            "unique": [f"create unique index t_id on t (id{part if part != ', id' else ''}){self.fillfactor('btree')}"],
            "plain": [f"create index t_id on t (id){self.fillfactor('btree')}"],
            "deferrable": [f"alter table t add constraint t_id primary key (id{part if part != ', id' else ''}) deferrable initially deferred"],
            "none": [],
        }[s["id"]]
        if s["layout"] == "inherits":
            out += {"none": []}.get(s["id"], ["create unique index t_0_id on t_0 (id)", "create index t_0_k on t_0 (" + k + ")"])
        plain = f"create index t_k on t using {am} ({column}){fill}"
        out += {
            "plain": [plain],
            "unique": [f"create unique index t_k on t using btree ({k}{part}){self.fillfactor('btree')}"] + self.own_too(am, column),
            "unique_nulls": [f"create unique index t_k on t ({k}{part}) nulls not distinct"] + self.own_too(am, column),
            "exclusion": [f"alter table t add constraint t_k exclude using {am} ({column} with {self.excluded()})"] if am not in ("gin", "brin") else
                         [f"alter table t add constraint t_k exclude using btree ({k} with {self.key.op('=')})"] + self.own_too(am, column),
            "deferrable": [f"alter table t add constraint t_k unique (k{part}) deferrable"] + self.own_too(am, column),
            "deferred": [f"alter table t add constraint t_k unique (k{part}) deferrable initially deferred"] + self.own_too(am, column),
            "partial": [f"{plain} where v > 2", f"create unique index t_part on t (id{part if part != ', id' else ''}) where peek(z) is not null and v = 3",
                        f"create unique index t_part2 on t (id{part if part != ', id' else ''}) where v = 5"],
            "expression": [f"create index t_k on t using {am if am in ('btree', 'hash') else 'btree'} (({expr}))", f"create unique index t_expr on t ((quiet(id)){part})", plain.replace("t_k", "t_k2")],
            "expression_tells": [f"create index t_k on t ((imm_tell(z)), v)", f"create index t_off on t ((off_imm(id)))", plain.replace("t_k", "t_k2")],
            "include": [f"create index t_k on t using {am if am in ('btree', 'gist', 'spgist') else 'btree'} ({column if am in ('btree', 'gist', 'spgist') else k}) include (v, z)"] +
                       self.own_too(am, column),
            "two_columns": [f"create index t_k on t using {am if am not in ('hash', 'spgist') else 'btree'} ({column if am not in ('hash', 'spgist') else k}, v){fill}"] + self.own_too(am, column),
            "fails_later": [f"create index t_k on t ({k}, cj){self.fillfactor('btree')}", f"create index t_cj on t (cj){self.fillfactor('btree')}"] + self.own_too(am, column),
            "descending": [f"create index t_k on t ({k} desc nulls last, v){self.fillfactor('btree')}"] + self.own_too(am, column),
        }[how]
        out.append(f"create index t_ts on t (ts){self.fillfactor('btree')}")
        out += {"none": [], "btree": ["create index t_v on t (v, z)", "create index t_g on t (g)"], "hash": ["create index t_vh on t using hash (v)"],
                "gin": ["create index t_vg on t using gin ((array[v, z, id])) with (fastupdate = off)"], "brin": ["create index t_vb on t using brin (v, z)"],
                "gist": ["create index t_vr on t using gist (int4range(id, id + 5))"],
                "many": ["create index t_v on t (v)", "create index t_z on t (z, id)", "create index t_x on t (x)", "create index t_tz on t (tz)",
                         "create index t_vh on t using hash (id)", "create index t_zh on t using hash (z)",
                         "create index t_va on t using gin ((array[v, z]))", "create index t_g on t (g)"]}[s["beside"]]
        return out

    def own_too(self, am, column):
        """The shape's access method has an index beside the one of the constraint."""
        return [f"create index t_am on t using {am} ({column}){self.fillfactor(am)}"] if am != "btree" else []

    def excluded(self):
        if self.shape["am"] in ("gist", "spgist") and self.am_column == "r":
            return "-|-" if self.shape["am"] == "gist" else "="
        return self.key.op("=") if self.am_column == "k" else "="

    # ---- what happens beside ----------------------------------------------

    def create_rules(self):
        s = self.shape
        out = []
        row = {"sets_timezone": "t_zone", "sets_setting": "t_setting", "changes_rows": "t_change", "skips_rows": "t_skip", "writes": "t_write",
               "fails": "t_fail"}.get(s["trigger"])
        if row:
            out.append(f"create trigger t_before before insert or update on t for each row execute function {row}()")
        elif s["trigger"] == "after_tells":
            out.append("create trigger t_after after insert or update or delete on t for each row execute function t_tell()")
        elif s["trigger"] == "statement":
            for event, table in (("insert", "new"), ("update", "new"), ("delete", "old")):
                out.append(f"create trigger t_{event} after {event} on t referencing {table} table as seen for each statement execute function t_seen()")
        keys = s["keys"]
        if keys in ("out", "both", "deferred", "cascade"):
            out.append("alter table t add constraint t_fk foreign key (j) references p (id)" +
                       {"deferred": " deferrable initially deferred", "cascade": " on delete cascade on update cascade"}.get(keys, ""))
        if keys in ("in", "both", "cascade"):
            out.append("alter table b add constraint b_fk foreign key (tid) references t (id)" +
                       {"cascade": " on delete cascade on update set null"}.get(keys, ""))
        if s["security"] in ("rls", "rls_forced", "barrier_rls"):
            out += ["alter table t enable row level security", "create policy seen on t using (v is distinct from 4 and peek_tell(id))",
                    "create policy read on t for select using (z <> 3 or off() < 3)"]
            if s["security"] == "rls_forced":
                out.append("alter table t force row level security")
        return out

    def create_views(self):
        barrier = self.shape["security"] in ("barrier", "barrier_rls")
        kind = "temporary " if self.temp else ""
        option = " with (security_barrier)" if barrier else ""
        where = {"barrier": " where v is distinct from 8 and zone <> 'none'", "barrier_rls": " where peek_tell(z) and v is distinct from 8",
                 "rls": " where z < 48"}.get(self.shape["security"], "")
        return [f"create {kind}view vt{option} as select {COLUMNS}, g from t{where}",
                f"create {kind}view vo{option} as select {COLUMNS}, g from o where exists (select from b where b.tid = o.id) or id % 3 <> 1"]

    def grants(self):
        return [f"grant all on {t} to reader" for t in ("t", "o", "b", "p", "f", "vt", "vo")]

    # ---- all of it --------------------------------------------------------

    def tables(self):
        """[(statement, optional)]"""
        required = self.create_t() + self.create_others() + self.fill_t()
        optional = self.create_indexes() + self.create_rules()
        vacuum = [f"vacuum analyze {t}" for t in ("t", "o", "b", "p", "f")]
        return ([(sql, False) for sql in required] + [(sql, True) for sql in optional] + [(sql, False) for sql in self.create_views() + self.grants()] +
                [(sql, False) for sql in vacuum])

    def random_index(self):
        """Has it an index whose insertions choose pages by chance, in stock as well?"""
        return self.shape["am"] in ("gist", "spgist") or self.shape["beside"] == "gist"

    def describe(self):
        return ", ".join(f"{k} {v}" for k, v in sorted(self.shape.items()))
