"""
builds.py - index builds: generated tables and indexes, built with
pg_lookahead.enable_index_build off and on.

A case is a table of random columns, what has happened to its rows (wear), one to four indexes,
a statement that builds them, and settings.  Both runs see the same table: the statement
is undone in between, or both run in one transaction, each in a savepoint.  Required: the same
errors, notices and tags, the same catalog rows, and the same pages of all indexes, byte for
byte with the unused space, except LSN and checksum.  Only which of several duplicates an
error names is nobody's affair.  A part of the indexes is given to amcheck, too.

  TYPES         columns: values from a number k, and extremes
  BuildGen      makes a case from (seed, number)
  Builds        runs it, and says what is wrong

Rows that are deleted or updated while another session holds a snapshot are recently dead: they
go into the index, unique or not.  The statements that wait for that session have none.
"""

import copy
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import zip_longest

import report
import schema
from server import Lost, Session, wait_until

BUILDS = 2000000        # case numbers from here on are index builds
LEAVE = 60              # runs that shortening may take
TIMEOUT = "300s"
STOCK_RUNS = 5          # of what stock has not done at first

# Every page without LSN and checksum; every catalog row of table and indexes.
SETUP = """
create function pages(index oid, raw bool) returns setof text language sql as $$
    select case when raw then encode(p, 'hex') else md5(p) end
    from (select b, substring(get_raw_page(index::regclass::text, b::int) from 11) p
        from generate_series(0, pg_relation_size(index) / current_setting('block_size')::int - 1) b) x
    order by b
$$;

-- tells how often it is called, and when
create function noted(x int) returns int language plpgsql immutable as $$
begin
    if x % 97 = 0 then
        raise notice 'noted(%)', x;
    end if;
    return x / 3;
end $$;

create function state(tab regclass) returns setof text language sql as $$
    select concat_ws(' ', c.relname, c.relkind, c.reltuples, c.relpages,
        'unique', indisunique, indisprimary, indisexclusion, indimmediate, 'clustered', indisclustered,
        'valid', indisvalid, 'checkxmin', indcheckxmin, 'ready', indisready, indislive)
    from pg_class c left join pg_index i on i.indexrelid = c.oid
    where tab in (c.oid, i.indrelid) order by c.relname
$$;
"""

INDEXES = ("select indexrelid::regclass, indexrelid from pg_index i where indrelid = 't'::regclass "
           "and indisvalid order by indexrelid::regclass::text")

# ---- columns ------------------------------------------------------------------

STRINGS = [
    "'county ' || {k} % 120",
    "repeat('c', {k} % 7) || {k}",
    "md5({k}::text)",
    "(array['a', 'A', 'ä', 'b', 'B', 'Äpfel', 'apfel', 'a-b', 'ab', '', 'ß', 'ss', 'Z', 'z', 'é', 'e' || chr(769)])"
    "[{k} % 16 + 1] || (array['', ' ', '1', '  '])[{k} / 16 % 4 + 1] || {k} / 64",
    "repeat(chr((array[1, 2, 127, 255, 1114111, 32])[{k} % 6 + 1]), {k} % 40) || case when {k} % 3 = 0 then chr(1) else '' end",
    "repeat('a', {k} % 300)",
    "repeat('w', 200) || {k}",
]
# toasted: compressed, or stored out of line
LONG = [
    "repeat(md5({k}::text), {k} % 90)",
    "repeat(md5(({k} / 10)::text), 80) || {k} % 10",
    "(select string_agg(md5(({k} + j)::text), '') from generate_series(1, {k} % 60) j)",
    "(select string_agg(md5(j::text), '') from generate_series(1, 55) j) || {k}",
]
# now and then longer than an index row may be
TOO_LONG = "(select string_agg(md5(({k} + j)::text), '') from generate_series(1, {k} % 100) j)"

# name -> (SQL type, values of k, extremes, what has to be created)
TYPES = {
    "int2": ("int2", ["({k} % 32768 - 16384)::int2"], ["-32768", "32767", "0", "-1"], []),
    "int4": ("int4", ["hashint4({k})", "{k}", "-{k}"], ["-2147483648", "2147483647", "0", "-1"], []),
    "int8": ("int8", ["hashint8extended({k}, 0)", "{k}", "{k} * 4294967296"],
             ["-9223372036854775808", "9223372036854775807", "0", "4294967295", "4294967296"], []),
    "oid": ("oid", ["({k}::int8 * 214741 % 4294967296)::oid"], ["0", "4294967295", "2147483648", "2147483647"], []),
    "char": ('"char"', ["({k} % 256 - 128)::int4::\"char\""], [], []),
    "name": ("name", STRINGS, [""], []),
    "text": ("text", STRINGS, ["", " ", "  ", "ÿ", "a"], []),
    "varchar": ("varchar(300)", STRINGS, ["", " ", "  "], []),
    "bpchar": ("char(14)", STRINGS, ["", "x", "a  b"], []),
    "bytea": ("bytea", ["decode(md5({k}::text), 'hex')", "decode(repeat(lpad(to_hex({k} % 256), 2, '0'), {k} % 9), 'hex')",
                        "decode(repeat((array['00', 'ff', '0001', '01', 'fe', '00ff', 'ff00'])[{k} % 7 + 1], {k} % 6), 'hex')",
                        "convert_to(" + LONG[0] + ", 'UTF8')"],
              [r"\x", r"\x00", r"\x0000", r"\xff", r"\x01"], []),
    "numeric": ("numeric", ["({k} % 9000 - 4500)::numeric / 7", "round({k} / 10.0, {k} % 4)", "{k}::numeric * 10000000000000000",
                            "power(10::numeric, {k} % 60 - 30) * ({k} % 21 - 10)", "{k}"],
                ["NaN", "Infinity", "-Infinity", "0", "0.000", "1", "1.0", "1.00", "-1e-300", "1e-300", "1e300", "-1e300",
                 "99999999999999999999999999999.9", "10000", "9999", "0.0001"], []),
    "float4": ("float4", ["({k} / 3.0 - 800)::float4", "(1e30 * ({k} - 99))::float4"],
               ["NaN", "Infinity", "-Infinity", "-0", "0", "1e-45", "-1e-45", "3.4e38", "-3.4e38"], []),
    "float8": ("float8", ["{k} / 3.0::float8 - 800", "1e300 * ({k} - 99)::float8 / 1e9"],
               ["NaN", "Infinity", "-Infinity", "-0", "0", "5e-324", "-5e-324", "1.7e308", "-1.7e308"], []),
    "bool": ("bool", ["{k} % 2 = 0"], [], []),
    "date": ("date", ["date '2000-01-01' + {k} % 9000 - 4000"], ["infinity", "-infinity", "4714-11-24 BC", "5874897-12-31"], []),
    "time": ("time", ["time '00:00' + {k} % 86400 * interval '1 s'"], ["00:00", "24:00", "23:59:59.999999"], []),
    "timetz": ("timetz", ["((time '00:00' + {k} % 86400 * interval '1 s')::text || "
                          "(array['+00', '-05', '+13', '+05:30'])[{k} % 4 + 1])::timetz"],
               ["12:00+00", "13:00+01", "11:00-01", "00:00+15", "24:00-15"], []),
    "timestamp": ("timestamp", ["timestamp '1999-12-31 23:00' + {k} * interval '1 min'", "timestamp '2000-01-01' - {k} * interval '1 day'"],
                  ["infinity", "-infinity", "4714-11-24 00:00:00 BC", "294276-12-31 23:59:59", "2000-01-01"], []),
    "timestamptz": ("timestamptz", ["timestamptz '1999-12-31 23:00Z' + {k} * interval '1 s'"],
                    ["infinity", "-infinity", "4714-11-24 00:00:00+00 BC", "2000-01-01Z"], []),
    "interval": ("interval", ["{k} * interval '1 day 3 h'", "({k} - 500) * interval '1 h'", "make_interval(months => {k} % 40, days => {k} % 90)"],
                 ["0", "1 mon", "30 days", "720:00:00", "-1 mon", "-30 days", "1 mon -30 days", "178000000 years",
                  "-178000000 years", "2147483647 days", "-2147483648 days"], []),
    "uuid": ("uuid", ["md5({k}::text)::uuid", "lpad(to_hex({k}), 32, '0')::uuid"],
             ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"], []),
    "inet": ("inet", ["set_masklen(('10.' || {k} % 4 || '.' || {k} % 250 || '.7')::inet, {k} % 33)",
                      "('2001:db8::' || to_hex({k} % 60000) || '/' || {k} % 129)::inet", "('192.168.' || {k} / 200 % 200 || '.' || {k} % 200)::inet"],
             ["0.0.0.0/0", "255.255.255.255", "::/0", "10.0.0.0/8", "10.0.0.0/9", "10.0.0.0", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"], []),
    "cidr": ("cidr", ["('10.' || {k} % 250 || '.' || {k} / 250 % 250 || '.0/24')::cidr"], ["0.0.0.0/0", "::/0", "10.0.0.0/8"], []),
    "macaddr": ("macaddr", ["('08:00:2b:' || lpad(to_hex({k} % 256), 2, '0') || ':02:' || lpad(to_hex({k} / 256 % 256), 2, '0'))::macaddr"],
                ["00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"], []),
    "macaddr8": ("macaddr8", ["('08:00:2b:' || lpad(to_hex({k} % 256), 2, '0') || ':02:03:04:05')::macaddr8"],
                 ["00:00:00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff:ff:ff"], []),
    "bit": ("bit(19)", ["({k} % 524288)::bit(19)"], ["0" * 19, "1" * 19], []),
    "varbit": ("varbit", ["substring({k}::bit(32) from 32 - {k} % 20)::varbit", "repeat('10', {k} % 30)::varbit",
                          "(repeat('0', {k} % 17) || '1')::varbit"], ["", "0", "00", "1", "00000000", "000000001"], []),
    "money": ("money", ["({k} - 500)::money"], ["-92233720368547758.08", "92233720368547758.07"], []),
    "pg_lsn": ("pg_lsn", ["pg_lsn '0/0' + {k}::numeric"], ["0/0", "FFFFFFFF/FFFFFFFF", "80000000/0"], []),
    "xid8": ("xid8", ["{k}::text::xid8"], ["0", "18446744073709551615", "9223372036854775808"], []),
    "tid": ("tid", ["format('(%s,%s)', {k} / 90, {k} % 90 + 1)::tid"], ["(0,0)", "(4294967295,65535)", "(2147483648,1)"], []),
    "oidvector": ("oidvector", ["({k} % 7 || ' ' || {k} % 300)::oidvector", "ltrim(repeat(' 9', {k} % 4) || ' ' || {k})::oidvector"],
                  ["", "0", "4294967295"], []),
    "enum": ("colour", ["(enum_range(null::colour))[{k} % cardinality(enum_range(null::colour)) + 1]"], [], ["colour"]),
    "domain": ("short", STRINGS[:4], [""], ["short"]),
    "domain int": ("whole", ["{k} % 4000"], [], ["whole"]),
    "array": ("int[]", ["case {k} % 9 when 0 then '{{}}'::int[] when 1 then '{{null}}' when 2 then '{{{{1,2}},{{3,4}}}}' "
                        "else array[{k} % 9, {k} % 70] end"], [], []),
    "text array": ("text[]", ["array['x' || {k} % 7, {k}::text]", "array_fill('y'::text, array[{k} % 5])"], [], []),
    "range": ("int4range", ["int4range({k} % 100, {k} % 100 + {k} % 5)", "int4range({k}, null)"], ["empty", "(,)", "(,5)", "[5,)"], []),
    "numrange": ("numrange", ["numrange({k}, {k} + 1.5, (array['[]', '()', '[)', '(]'])[{k} % 4 + 1])"], ["empty", "(,)"], []),
    "multirange": ("int4multirange", ["int4multirange(int4range({k} % 100, {k} % 100 + 3), int4range(200, 200 + {k} % 5))"], ["{}"], []),
    "composite": ("pair", ["row({k} % 50, 'x' || {k} % 3)::pair", "row({k}, null)::pair", "row(null, {k})::pair"], [], ["pair"]),
    "jsonb": ("jsonb", ["jsonb_build_object('k', {k})", "to_jsonb({k} % 300)"], ["null", "[]", "{}", '""', "true"], []),
    "tsvector": ("tsvector", ["to_tsvector('simple', 'a' || {k} % 90 || ' b')"], [""], []),
}
# those that have a code of their own (src/indexbuild/normalizedkey.c) oftener than the others
OFTEN = ["int4", "int4", "int8", "text", "text", "text", "text", "varchar", "bpchar", "numeric", "numeric", "float8", "timestamp",
         "interval", "uuid", "bytea", "bytea", "enum", "inet", "varbit", "bool"]
TEXTS = ("text", "varchar", "bpchar", "name", "domain")

CREATED = {
    "colour": ["create type colour as enum ('red', 'green', 'blue')"],
    "short": ["create domain short as text check (length(value) < 500)"],
    "whole": ["create domain whole as int check (value >= 0)"],
    "pair": ["create type pair as (a int, b text)"],
}

# name -> expressions; all of them are immutable, and fail for hardly any value
EXPRESSIONS = {
    "int4": ["{c} % 10", "{c} / 7", "noted({c})"], "int2": ["{c} % 10::int2"], "int8": ["{c} % 1000", "{c} / 4294967296"],
    "text": ["lower({c})", "left({c}, 3)", "length({c})", "{c} || 'x'", "md5({c})", "upper({c}) || left({c}, 1)"],
    "varchar": ["lower({c})", "length({c})", "{c}::text"], "bpchar": ["{c}::text", "length({c})"],
    "numeric": ["trunc({c}, 1)", "abs({c})"], "float8": ["abs({c})", "-{c}"], "float4": ["-{c}"],
    "timestamp": ["date_trunc('month', {c})", "{c}::date"], "bytea": ["length({c})", "{c} || {c}"],
    "bool": ["not {c}"], "inet": ["masklen({c})", "network({c})"], "composite": ["({c}).b", "({c}).a"], "array": ["{c}[1]"],
    "jsonb": ["{c} -> 'k'", "{c} ->> 'k'"], "interval": ["justify_hours({c})"],
}
PATTERN = {"text": "text_pattern_ops", "domain": "text_pattern_ops", "varchar": "varchar_pattern_ops", "bpchar": "bpchar_pattern_ops"}


@dataclass
class Column:
    name: str
    kind: str
    type: str               # with collation
    value: str              # from i and its own number k<n>
    number: str             # k<n>
    expressions: list


@dataclass
class Build:
    number: int
    kind: str
    rows: int
    persistence: str
    options: str
    columns: list
    order: str
    created: list           # statements before the table
    storage: list           # statements before its rows
    wear: list              # statements after them
    prepare: list           # statements before both runs, with index builds off
    steps: list             # what is compared
    undo: list
    settings: dict
    transaction: str = ""   # how it begins, if both runs are in one
    changes: list = field(default_factory=list)     # in it, before both runs
    holder: bool = False
    amcheck: bool = False


class BuildGen:
    def __init__(self, rng, collations, least_memory):
        self.rng = rng
        self.collations = collations
        self.least_memory = least_memory        # kB

    def chance(self, p):
        return self.rng.random() < p

    def rnd(self, of, n):
        return f"rnd({of}, {self.rng.randint(1, 9999)}, {n})"

    # ---- table -----------------------------------------------------------------

    def count(self):
        r = self.rng
        lo, hi = r.choices([(0, 0), (1, 2), (3, 60), (61, 800), (800, 4000), (4000, 12000), (12000, 20000)],
                           [2, 4, 10, 22, 30, 20, 12])[0]
        return r.randint(lo, hi)

    def collation(self):
        """The server's default, C, or another one that it has."""
        if self.chance(0.55):
            return ' collate "C"'
        return f" collate {self.rng.choice(self.collations)}" if self.chance(0.7) else ""

    def column(self, n, rows):
        r = self.rng
        kind = r.choice(OFTEN) if self.chance(0.6) else r.choice(list(TYPES))
        type_, values, extremes, _ = TYPES[kind]
        value = r.choice(values)
        if kind in ("text", "bytea") and self.chance(0.2):
            value = TOO_LONG if self.chance(0.1) else r.choice(LONG)
            value = f"convert_to({value}, 'UTF8')" if kind == "bytea" else value
        k = f"k{n}"
        value = f"({value.format(k=k)})::{type_}"
        cases = []
        nulls = r.choice([0, 0, 0, 5, 30, 100 if self.chance(0.1) else 1])
        if nulls:
            cases.append(f"when {self.rnd('i', 100)} < {nulls} then null")
        if extremes and self.chance(0.6):
            some = r.sample(extremes, r.randint(1, len(extremes)))
            literals = ", ".join("'" + x.replace("'", "''") + "'" for x in some)
            cases.append(f"when {self.rnd('i', 100)} < {r.choice([1, 10, 60])} then "
                         f"(array[{literals}]::{type_}[])[1 + {self.rnd('i', len(some))}]")
        if cases:
            value = f"case {' '.join(cases)} else {value} end"
        number = r.choice([self.rnd("i", r.choice([1, 2, 10, 100, 1000, 20000, 1000000]))] * 5 +
                          ["i", f"{rows} - i", "i / 10", f"i / 3 + {self.rnd('i', 40)}"])
        collation = self.collation() if kind in TEXTS + ("text array",) else ""
        return Column(f"c{n}", kind, type_ + collation, value, f"{number} as {k}", EXPRESSIONS.get(kind, []))

    def enum_statements(self):
        out = list(CREATED["colour"])
        labels = ["red", "green", "blue"]
        for label in self.rng.sample(["black", "white", "a", "grey"], self.rng.choice([0, 0, 1, 2, 4])):
            where = self.rng.choice(["", f" before '{self.rng.choice(labels)}'", f" after '{self.rng.choice(labels)}'"])
            out.append(f"alter type colour add value '{label}'{where}")
            labels.append(label)
        return out

    def wear(self, rows, columns, most):
        """What happens to the rows; where there is no index yet, updates are HOT if there is room."""
        r, out = self.rng, []
        c = r.choice(columns)
        for _ in range(r.randint(0, most)):
            some = f"{self.rnd('id', r.choice([2, 3, 10, 50]))} = 0"
            out.append(r.choice([
                f"delete from t where {some}",
                f"update t set hot = hot + 1 where {some}",
                f"update t set hot = hot + 1 where {some}",
                f"update t set {c.name} = null where {some}",
                f"update t set {c.name} = x.{c.name} from (select id, {c.name} from t) x where x.id = {rows} - t.id and {some.replace('(id', '(t.id')}",
                f"insert into t select -id, hot, {', '.join(x.name for x in columns)}, p from t where id > 0 and {some}",
            ]))
        return out

    def more_wear(self):
        """What a transaction cannot do, or what the table's columns are for."""
        r = self.rng
        out = r.choice([[], [], ["begin", "insert into t (id, hot) select 100000 + i, 0 from generate_series(1, 500) i", "rollback"],
                        ["vacuum t"], ["alter table t add column later int default 42", "alter table t drop column later"],
                        ["analyze t"]])
        return list(out)

    # ---- index -----------------------------------------------------------------

    def key(self, column):
        """A column or expression of an index, with collation and operator class."""
        r = self.rng
        text, plain = column.name, True
        if column.expressions and self.chance(0.2):
            text, plain = f"({r.choice(column.expressions).format(c=column.name)})", False
        elif self.chance(0.04):
            text, plain = f"({column.name} is null)", False
        if plain and column.kind in TEXTS and self.chance(0.15):
            text += self.collation()
        if plain and column.kind in PATTERN and '"nd"' not in column.type + text and self.chance(0.15):
            text += " " + PATTERN[column.kind]
        elif plain and column.kind == "composite" and self.chance(0.2):
            text += " record_image_ops"
        return text

    def directions(self):
        return self.rng.choice(["", "", ""] + [" desc", " desc nulls last", " nulls first", " desc nulls first"])

    def storage(self):
        r, out = self.rng, []
        if self.chance(0.35):
            out.append(f"fillfactor = {r.choice([10, 20, 50, 70, 89, 91, 100, 100, r.randint(10, 100)])}")
        if self.chance(0.15):
            out.append("deduplicate_items = off")
        return f" with ({', '.join(out)})" if out else ""

    def included(self, columns):
        if not self.chance(0.2):
            return ""
        names = [c.name for c in self.rng.sample(columns, min(len(columns), self.rng.choice([1, 1, 2])))]
        return f" include ({', '.join(names + (['p'] if self.chance(0.2) else []))})"

    def definition(self, n, columns, concurrently=False, plain=False):
        """CREATE INDEX; plain: what a constraint or CLUSTER can use."""
        r = self.rng
        keys = [self.key(c) + self.directions() for c in r.sample(columns, min(len(columns), r.choice([1, 1, 2, 2, 3, 4, 5])))]
        if self.chance(0.1):
            keys.insert(0, r.choice(["(id % 7)", "(id / 100)", "(hot % 3)"]))
        unique = self.chance(0.3)
        if unique and self.chance(0.65) or self.chance(0.1):
            keys.insert(r.choice([0, len(keys), len(keys)]), "id" + self.directions())
        where = ""
        if not plain and self.chance(0.18):
            where = " where " + r.choice(["id % 3 = 0", "id < 400", f"{columns[0].name} is not null", "hot = 0", "false"])
        distinct = " nulls not distinct" if unique and self.chance(0.3) else ""
        return (f"create {'unique ' if unique else ''}index {'concurrently ' if concurrently else ''}i{n} on t ({', '.join(keys)})"
                f"{self.included(columns)}{distinct}{self.storage()}{where}")

    def constraint(self, n, columns):
        r = self.rng
        names = [c.name for c in r.sample(columns, min(len(columns), r.choice([0, 1, 1, 2, 3])))]
        if not names or self.chance(0.6):
            names.insert(r.choice([0, len(names)]), "id")
        if self.chance(0.3):
            how = "primary key"
        else:
            how = "unique" + (" nulls not distinct" if self.chance(0.3) else "")
        return (f"alter table t add constraint i{n} {how} ({', '.join(names)}){self.included(columns)}{self.storage()}"
                f"{' deferrable initially deferred' if self.chance(0.15) else ''}")

    # ---- case ------------------------------------------------------------------

    def settings(self):
        r = self.rng
        out = {"maintenance_work_mem": f"{r.choice([self.least_memory, self.least_memory, 1024, 1024, 2048, 16384, 65536])}kB",
               "max_parallel_maintenance_workers": str(r.choice([0, 0, 0, 1, 2, 2])),
               "min_parallel_table_scan_size": "0"}
        if self.chance(0.15):
            out["parallel_leader_participation"] = "off"
        if self.chance(0.05):
            out["max_parallel_workers"] = str(r.choice([0, 1]))
        return out

    def case(self, number):
        r = self.rng
        rows = self.count()
        columns = [self.column(n, rows) for n in range(r.choice([1, 2, 3, 3, 4, 5, 6]))]
        if any(c.value.count("string_agg") for c in columns):
            rows = min(rows, 3000)
        created = []
        for name in sorted({n for c in columns for n in TYPES[c.kind][3]}):
            created += self.enum_statements() if name == "colour" else CREATED[name]
        options = [f"fillfactor = {r.choice([40, 70, 90, 100])}"]
        if self.chance(0.7):
            # else the planner, whose figures depend on maintenance_work_mem, hardly ever wants any
            options.append("parallel_workers = 2")
        storage = [f"alter table t alter {c.name} set storage {r.choice(['external', 'main', 'plain', 'extended'])}"
                   for c in columns if c.kind in ("text", "bytea", "numeric", "varchar", "array") and self.chance(0.4)]
        wear = self.wear(rows, columns, 4) + self.more_wear()

        kind = r.choice(["create"] * 7 + ["concurrently"] * 3 + ["reindex"] * 4 + ["reindex concurrently"] * 2 +
                        ["constraint"] * 3 + ["cluster", "vacuum full", "alter type"] * 2)
        many = range(r.choice([1, 1, 2, 2, 3, 4]))
        prepare, undo, transaction = [], [], self.chance(0.3)
        if kind in ("create", "concurrently"):
            steps = [self.definition(n, columns, kind == "concurrently") for n in many]
            undo = [f"drop index if exists i{n}" for n in many]
            if kind == "concurrently":
                transaction = False
        elif kind == "constraint":
            steps = [self.constraint(n, columns) for n in many]
            # primary keys make columns NOT NULL for good
            transaction = True
        else:
            prepare = [self.definition(n, columns, plain=kind == "cluster") for n in many]
            if kind != "vacuum full":
                prepare += self.wear(rows, columns, 2)
            if kind == "cluster":
                steps, transaction = ["cluster t using i0"], True
            elif kind == "vacuum full":
                # only the first one changes the order of rows, or their number
                prepare.append("vacuum full t")
                steps, transaction = ["vacuum full t"], False
            elif kind == "alter type":
                steps, transaction = [f"alter table t alter {r.choice(['hot', 'id'])} type bigint"], True
            else:
                how = "(concurrently) " if kind == "reindex concurrently" else ""
                steps = r.choice([[f"reindex {how}table t"], [f"reindex {how}index i{n}" for n in many]])
                transaction = transaction and not how
        case = Build(number, kind, rows, r.choice(["", "", "", "", "", "unlogged ", "temp "]), f" with ({', '.join(options)})",
                     columns, f" order by {self.rnd('i', 1000000)}, i" if self.chance(0.4) else "", created, storage, wear,
                     prepare, steps, undo, self.settings())
        if transaction:
            case.transaction = "begin isolation level " + r.choice(["read committed", "read committed", "repeatable read"])
            case.changes = self.wear(rows, columns, 2) if self.chance(0.6) else []
            if self.chance(0.3):
                case.changes += ["savepoint x"] + self.wear(rows, columns, 2) + ["rollback to x"]
        # the library makes concurrent builds if workers are wanted, whether or not there are any
        if "concurrently" in kind and self.chance(0.7) and case.settings["max_parallel_maintenance_workers"] == "0":
            case.settings |= {"max_parallel_maintenance_workers": "1", "max_parallel_workers": "0"}
        # CONCURRENTLY waits for the others' snapshots
        case.holder = "concurrently" not in kind and case.persistence != "temp " and self.chance(0.3)
        case.amcheck = self.chance(0.15)
        return case


# ---- running ------------------------------------------------------------------

def agreed(outcome):
    """An outcome without what may differ."""
    if not outcome.error:
        return (None, outcome.notices, outcome.tag)
    severity, code, message, detail, hint, context = (e and e.decode() for e in outcome.error)
    if code == "23505":
        # which of several duplicates
        detail = re.sub(r"\)=\(.*\) is duplicated", ") is duplicated", detail or "", flags=re.DOTALL)
    # which process came across it
    context = re.sub(r"\n?parallel worker$", "", context or "")
    return ((severity, code, message, detail, hint, context), outcome.notices, outcome.tag)


class Result:
    """What a step did."""

    def __init__(self, outcome, state=(), pages=None, checked=None):
        self.outcome = outcome
        self.state = state
        self.pages = pages or {}
        self.checked = checked          # amcheck's complaint

    def differences(self, other):
        """Lines that tell what is not as in the other run, which had index builds on."""
        out = []
        if agreed(self.outcome) != agreed(other.outcome):
            out += [f"off: {report.describe(self.outcome)}", f"on:  {report.describe(other.outcome)}"]
        for a, b in zip_longest(self.state, other.state):
            if a != b:
                out += [f"off: {a}", f"on:  {b}"]
        for index in sorted(self.pages.keys() | other.pages.keys()):
            a, b = self.pages.get(index, []), other.pages.get(index, [])
            differ = [n for n, (x, y) in enumerate(zip(a, b)) if x != y]
            if differ or len(a) != len(b):
                out.append(f"{index}: off {len(a)} pages, on {len(b)}; {len(differ)} differ: {differ[:10]}")
                if differ and len(a[differ[0]]) > 32:
                    x, y = a[differ[0]], b[differ[0]]
                    at = next(i for i in range(0, len(x), 2) if x[i:i + 2] != y[i:i + 2])
                    out.append(f"  page {differ[0]} from byte {at // 2 + 10} on: off {x[at:at + 48]}, on {y[at:at + 48]}")
        if other.checked:
            out.append(f"amcheck: {other.checked}")
        return out


class Builds:
    def __init__(self, fuzz):
        self.fuzz = fuzz
        self.kinds = Counter()
        self.outcomes = Counter()
        s = Session(fuzz.server)
        s.must("create extension if not exists pageinspect")
        for sql in SETUP.split("\n\n"):
            s.must(sql)
        self.least_memory = max(64, int(s.must("select min_val from pg_settings where name = 'maintenance_work_mem'")[0][0]))
        self.collations = [f'"{name}"' for (name,) in s.must(
            "select collname from pg_collation where collencoding in (-1, 6) and collname in ('und-x-icu', 'en-US-x-icu', 'de-x-icu', "
            "'en_US', 'en_US.utf8', 'C.utf8', 'POSIX', 'ucs_basic', 'pg_c_utf8', 'pg_unicode_fast') order by 1")]
        if any("icu" in name for name in self.collations):
            # some values that differ are equal
            s.must("create collation \"nd\" (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
            self.collations.append('"nd"')
        s.close()
        self.connect()
        self.before = self.figures()

    def connect(self):
        self.session = Session(self.fuzz.server)
        self.other = Session(self.fuzz.server)

    def generate(self, number):
        return BuildGen(random.Random(f"{self.fuzz.args.seed}/{number}"), self.collations, self.least_memory).case(number)

    # ---- a case ----------------------------------------------------------------

    @staticmethod
    def switch(on):
        return [f"set pg_lookahead.enable_index_build = {'on' if on else 'off'}"]

    @staticmethod
    def made(case):
        """Statements that make the table."""
        columns = "".join(f", {c.name} {c.type}" for c in case.columns)
        values = "".join(f", {c.value}" for c in case.columns)
        numbers = "".join(f", {c.number}" for c in case.columns)
        return case.created + [
            f"create {case.persistence}table t (id int, hot int{columns}, p point){case.options}"] + case.storage + [
            f"insert into t select i, 0{values}, point(i, 0) from (select i{numbers} "
            f"from generate_series(1, {case.rows}) i{case.order} offset 0) x"]

    def settings(self, case, on):
        return [f"set {k} = '{v}'" for k, v in case.settings.items()] + self.switch(on)

    def prepare(self, case):
        s = self.session
        for sql in ["set client_min_messages = warning", f"set statement_timeout = '{TIMEOUT}'", "drop table if exists t",
                    "drop schema if exists b cascade", "create schema b", "set search_path = b, public"] + self.switch(False):
            s.must(sql)
        made = self.made(case)
        for sql in made[:-1]:
            s.must(sql)
        # some rows do not fit on a page
        self.outcomes["tables without rows"] += s.execute(made[-1]).error is not None
        if case.holder:
            self.other.must("begin isolation level repeatable read")
            self.other.must("select 1")
        for sql in case.wear + case.prepare:
            s.execute(sql)
        s.must("set client_min_messages = notice")
        if case.transaction:
            s.must(case.transaction)
            for sql in case.changes:
                s.must("savepoint change")
                # a savepoint of its own would hide those of the case
                if sql.split()[0] in ("savepoint", "rollback"):
                    s.must(sql)
                elif s.execute(sql).error:
                    s.must("rollback to change")

    def run(self, case, on, raw):
        s, out = self.session, []
        if case.transaction:
            s.must("savepoint start")
        for sql in self.settings(case, on):
            s.must(sql)
        for sql in case.steps:
            if case.transaction:
                s.must("savepoint step")
            outcome = s.execute(sql)
            if outcome.error and case.transaction:
                s.must("rollback to step")
            self.outcomes["statements"] += on
            self.outcomes["errors"] += on and outcome.error is not None
            out.append(self.look(case, on, raw, sql, outcome))
        s.must("set client_min_messages = warning")
        for sql in case.undo:
            s.must(sql)
        s.must("set client_min_messages = notice")
        if case.transaction:
            s.must("rollback to start")
        return out

    def look(self, case, on, raw, sql, outcome):
        """Table and indexes as they are now."""
        s, pages, checked = self.session, {}, []
        if outcome.error:
            # the table's figures are those of other statements: they are not rolled back
            return Result(outcome)
        only = re.search(r"(index|constraint) (concurrently )?(i\d)", sql)
        state = [x for (x,) in s.must("select state('t')") if not only or x.startswith(("t ", only[3]))]
        if case.kind == "alter type":
            # how many empty pages stock leaves behind the rows it rewrites is not the same each time
            state = [re.sub(r"^(t r \S+) \d+", r"\1", x) for x in state]
        for name, oid in s.must(INDEXES):
            if only and name != only[3]:
                continue
            pages[name] = [p for (p,) in s.must(f"select pages({oid}, {raw})")]
            if on and case.amcheck:
                if case.transaction:
                    s.must("savepoint checked")
                check = s.execute(f"select bt_index_parent_check({oid}, true, true)")
                self.outcomes["amchecks"] += 1
                # 40001: the transaction's snapshot is older than what the index is good for
                if check.error and check.error[1] != b"40001":
                    checked.append(f"{name}: {report.describe(check)}")
                if check.error and case.transaction:
                    s.must("rollback to checked")
        return Result(outcome, state, pages, "; ".join(checked))

    def pair(self, case, raw=False, ways=(False, True)):
        """Both runs, with index builds off and on."""
        try:
            self.prepare(case)
            return [self.run(case, on, raw) for on in ways]
        finally:
            if self.session.conn.status == 0:
                self.session.execute("rollback")
                self.session.must("reset all")
            self.other.execute("rollback")

    @staticmethod
    def differences(off, on):
        return [x.differences(y) for x, y in zip(off, on)]

    def stock_comes_to(self, case, on):
        """Is the build not the same each time in stock, and also like this?"""
        for _ in range(STOCK_RUNS):
            if not any(self.differences(self.pair(case, ways=(False,))[0], on)):
                self.outcomes["undetermined"] += 1
                return True
        return False

    def one(self, number):
        case = self.generate(number)
        off, on = self.pair(case)
        self.kinds[case.kind] += 1
        if any(x.outcome.error and x.outcome.error[1] == b"57014" for x in off + on):
            self.outcomes["too slow"] += 1
            return
        if not any(self.differences(off, on)) or self.stock_comes_to(case, on):
            self.fuzz.counts["passed"] += 1
            return
        self.fuzz.counts["failed"] += 1
        self.mismatch(case, off, on)

    def all(self, numbers):
        counts = self.fuzz.counts
        for number in numbers:
            if counts["failed"] >= self.fuzz.args.max_failures:
                print(f"stopped after {counts['failed']} failures")
                break
            try:
                self.one(number)
            except Lost as e:
                counts["failed"] += 1
                self.head(self.generate(number), "connection lost")
                print(f"{e}\nserver log:\n{self.fuzz.server.tail()}")
                self.script(self.generate(number), "not shortened")
                wait_until(self.reconnect, 60)

    def reconnect(self):
        try:
            self.connect()
            return True
        except Lost:
            return False

    # ---- a report --------------------------------------------------------------

    def head(self, case, what):
        args = self.fuzz.args
        print(f"\n=== case {case.number} (index build, {case.kind}), seed {args.seed}: {what}")
        print(f"repeat: test/fuzz/run --bindir {args.bindir} --seed {args.seed} --only {case.number}")

    def mismatch(self, case, off, on):
        self.head(case, "not as without it")
        for sql, lines in zip(case.steps, self.differences(off, on)):
            if lines:
                print("\n".join([sql] + [f"  {line}" for line in lines[:12]]))
        small = self.shorten(case)
        if small is None:
            self.script(case, "does not fail when repeated")
            return
        for sql, lines in zip(small.steps, self.differences(*self.pair(small, raw=True))):
            if lines:
                print("\n".join(["shortened: " + sql] + [f"  {line}" for line in lines[:12]]))
        self.script(small, "shortened")

    def shorten(self, case):
        """A smaller case that fails, too; None if not even this one does."""
        budget = LEAVE

        def fails(**changed):
            nonlocal budget
            budget -= 1
            candidate = copy.copy(case)
            for name, value in changed.items():
                setattr(candidate, name, value)
            try:
                return candidate if budget >= 0 and any(self.differences(*self.pair(candidate))) else None
            except (SystemExit, AssertionError):        # makes no sense any more
                return None

        if not fails():
            return None
        for name in ("steps", "changes", "prepare", "wear", "storage", "columns"):
            for i in reversed(range(len(getattr(case, name)))):
                items = list(getattr(case, name))
                item = items.pop(i)
                if items or name not in ("steps", "columns"):
                    used = case.steps + case.wear + case.prepare + case.changes
                    if name != "columns" or not any(re.search(rf"\b{item.name}\b", sql) for sql in used):
                        case = fails(**{name: items}) or case
        for changed in ({"holder": False}, {"order": ""}, {"options": ""}, {"persistence": ""}):
            case = fails(**changed) or case
        for name in list(case.settings):
            case = fails(settings={k: v for k, v in case.settings.items() if k != name}) or case
        for rows in (3, 40, 400, 2000, case.rows * 3 // 4):
            if rows < case.rows:
                smaller = fails(rows=rows)
                if smaller:
                    return smaller
        return case

    def script(self, case, what):
        """The case for psql, from an empty database on."""
        rnd = next(s for s in schema.FUNCTIONS.split("\n\n") if "function rnd" in s).strip()
        out = ["create extension pageinspect;", "create extension amcheck;", rnd] + SETUP.strip().split("\n\n")
        if any('"nd"' in sql for sql in self.made(case) + case.prepare + case.steps):
            out.append("create collation \"nd\" (provider = icu, locale = 'und-u-ks-level2', deterministic = false);")
        made = self.made(case)
        out += [f"{s};" for s in self.switch(False) + made]
        if case.holder:
            out.append("-- in another session: begin isolation level repeatable read; select 1;")
        out += [f"{s};" for s in case.wear + case.prepare]
        if case.transaction:
            out += ["\\set ON_ERROR_ROLLBACK on"] + [f"{s};" for s in [case.transaction] + case.changes]
        look = ["select state('t')", "select indexrelid::regclass, md5(string_agg(x, ' ' order by n)) from pg_index, "
                "pages(indexrelid, false) with ordinality y(x, n) where indrelid = 't'::regclass and indisvalid group by 1 order by 1"]
        for on in (False, True):
            out.append(f"-- index builds {'on' if on else 'off'}")
            out += ["savepoint start;"] if case.transaction else []
            out += [f"{s};" for s in self.settings(case, on)]
            for sql in case.steps:
                out += [f"{s};" for s in [sql] + look]
            out += [f"{s};" for s in case.undo]
            out += ["rollback to start;"] if case.transaction else []
        print(f"repro (psql), {what}:\n" + "\n".join(f"  {line}" for line in "\n".join(out).splitlines()))

    # ---- the end ---------------------------------------------------------------

    def figures(self):
        """pg_stat_lookahead_index_build: what became of builds, and how many, with workers, in files."""
        if self.fuzz.args.stock:
            return {}
        out = {}
        for fate, *numbers in self.session.must(
                "select coalesce('left: ' || reason, status), builds, parallel_builds, spilled_builds"
                " from pg_stat_lookahead_index_build"):
            out.update(zip((fate, f"{fate}, parallel", f"{fate}, spilled"), map(int, numbers)))
        return out

    def finish(self):
        """Prints what has been done; lines about what has been done too rarely to be tested."""
        print(f"index builds: {', '.join(f'{k} {v}' for k, v in sorted(self.kinds.items()))}; "
              + ", ".join(f"{v} {k}" for k, v in self.outcomes.items()))
        now = self.figures()
        done = {k: v - self.before[k] for k, v in now.items()}
        cases = sum(self.kinds.values())
        print("index builds: " + ", ".join(f"{k} {v}" for k, v in done.items() if v))
        self.session.close()
        self.other.close()
        if not done:
            return []
        wanted = {"built": cases // 2, "built, parallel": cases // 12, "built, spilled": cases // 20}
        return [f"{k}: {done[k]} of {cases} cases" for k, least in wanted.items() if done[k] < least]
