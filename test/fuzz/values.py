"""
values.py - values stored out of line: part of the generator.

Statements that fetch them, all or some: in the target list, in a filter, sorted by another column,
in the order of an index, in part; and COPY TO.  Most are about the table "long".
"""

LONG = "/* long values */"  # planner() knows it by that

TARGETS = ["md5(w)", "w", "length(w)", "substr(w, 100, 20)", "left(w, 40)", "right(w, 9)", "octet_length(w)",
           "pg_column_size(w) > 0", "case when id % 5 < 2 then md5(w) end", "to_jsonb(w) #>> '{}' like '%ab%'",
           "case when w like '{%' then w::jsonb -> 'n' end", "case when w like '{%' then left(w::jsonb ->> 'k', 30) end",
           "w is null", "coalesce(w, t) > 'd'", "1000 / nullif(length(w) % 97, 0)"]
FILTERS = ["w like '%abc%'", "length(w) > 5000", "w is not null", "substr(w, 3000, 1) < '8'", "md5(w) < '8'", "w > 'c'",
           "1000 / (length(w) - 7) < 1", "w like '{%' and (w::jsonb ->> 'n')::int % 3 = 0"]


class Values:
    """Shapes (s_*) and kinds (k_*) of cases.Gen."""

    def long_rows(self):
        """FROM and WHERE: most of the table's rows, found by an index or not, and perhaps filtered."""
        table = "long" if self.chance(0.85) else self.table()
        key = self.rng.choice(self.keys)
        conds = [self.rng.choice(["true", self.cond(table, key, wide=True), self.cond(table, key, wide=True)])]
        if self.chance(0.35):
            conds.append(self.rng.choice(FILTERS))
        return f"from {table} where {' and '.join(conds)}", key

    def s_long(self):
        r = self.rng
        rows, key = self.long_rows()
        columns = ", ".join(["id"] + r.sample(TARGETS, r.choice([1, 1, 2, 3])))
        order = r.choice(["", f" order by {self.order(key, backward=self.chance(0.4))}, id",
                          f" order by {self.order(r.choice(self.keys), backward=self.chance(0.4))}, id"])
        place = r.random()
        if place < 0.15:
            return f"select count(*), md5(string_agg(x::text, ',')) {LONG} from (select {columns} {rows}{order} offset 0) x"
        if place < 0.25:
            # repeated, with a limit or without
            limit = r.choice(["", " limit 30", " limit o.id % 40"])
            return (f"select o.id, z.* {LONG} from (select id, b from small order by id limit {r.choice([2, 5])}) o, "
                    f"lateral (select {columns} {rows} and id > o.id * 9{order}{limit}) z")
        return f"select {columns} {LONG} {rows}{order}" + (self.limit(200) if self.chance(0.4) else "")

    def k_copy(self, number):
        """COPY TO of a table, or of a query."""
        r = self.rng
        what = r.choice(["long", "long", "long (id, w)", "long (id, t)", "mixed (w, id)", "dead", f"({self.s_long()})"])
        sql = f"copy {what} to stdout{r.choice(['', ' (format csv)', ' (format binary)'])} {LONG}"
        return self.make(number, "copy", [sql], [what[1:-1]] if what.startswith("(") else [])

    def plan_values(self, settings):
        """Scans of all kinds, since most rows are wanted."""
        way = self.rng.choice(["seqscan", "seqscan", "indexscan", "indexscan", "bitmapscan"])
        settings.update({f"enable_{kind}": "on" if kind == way else "off"
                         for kind in ("seqscan", "indexscan", "bitmapscan")})
        settings["enable_indexonlyscan"] = "off"
        if way == "seqscan":
            settings.pop("enable_sort", None)
