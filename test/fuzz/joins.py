"""
joins.py - hash joins: part of the generator.

Keys of all types and of two columns, equal ones by the thousand, nulls, all types of joins,
conditions beside the keys, some of which fail, and joins that are repeated with a
parameter inside or outside of the hashed side.  work_mem is often too small (planner()), so
that tables spill, also those that the planner thought would not.
"""

HASH_JOIN = "/* hash join */"  # planner() knows it by that

PAIRS = [
    ("id", "id"), ("id", "a"), ("b", "b"), ("a", "c"), ("c", "c"), ("t", "t"), ("u", "u"),
    ("ts", "ts"), ("n", "n"), ("a::bigint", "c"), ("b", "c::smallint"), ("n", "b"), ("left(t, 2)", "left(t, 2)"),
    ("a % 97", "c"), ("b", "id % 10"),
]


def qualified(expr, alias):
    return f"left({alias}.t, 2)" if expr.startswith("left") else f"{alias}.{expr}"


class Joins:
    """Shapes (s_*) of cases.Gen."""

    def joined(self, tables, sides):
        """FROM and WHERE of a join of two sides, and whether rows of y may be missing."""
        r = self.rng
        (x, y), (t1, t2) = sides, tables
        kind = r.choice(["join", "join", "left join", "right join", "full join", "semi", "anti"])
        on = []
        for left, right in r.sample(PAIRS, r.choice([1, 1, 1, 2])):
            on.append(f"{qualified(left, 'x')} = {qualified(right, 'y')}")
        if kind != "full join" and self.chance(0.3):
            on.append(r.choice(["x.id % 7 <> y.id % 5", "x.b < y.b", "x.id < y.id", "1000 / (x.id + y.a + 1) < 40",
                                "1000 / (y.id - 40) < 40", "(x.c is null or y.c > 3)"]))
        cond = " and ".join(on)
        if kind in ("semi", "anti"):
            word = "exists" if kind == "semi" else "not exists"
            return f"from {x} x where {word} (select from {y} y where {cond})", False
        return f"from {x} x {HASH_JOIN} {kind} {y} y on {cond}", True

    def side(self, table, small):
        """All rows of a table, or those of a condition."""
        cond = self.one(table, "id", "", ["range", "in"] if small else ["range", "half", "half"])
        columns = "*" if self.chance(0.3) else "id, a, b, c, t, u, ts, n"
        return f"(select {columns} from {table} where {cond})" if small or self.chance(0.5) else table

    def s_hash(self):
        t1, t2 = self.table(), self.table()
        small = self.rng.choice([0, 1])
        source, both = self.joined((t1, t2), (self.side(t1, small == 0), self.side(t2, small == 1)))
        if self.chance(0.2):
            # a parameter: of the hashed side, of the other one, or of none
            inner = self.rng.choice(["x.id > o.id", "y.id > o.id" if both else "x.a > o.id", "x.id % 3 <> o.b"])
            inner = f" and {inner}" if " where " in source.rpartition(")")[2] or not both else f" where {inner}"
            return (f"select o.id, z.* from (select id, b from small order by id limit {self.rng.choice([2, 5, 20])}) o, "
                    f"lateral (select count(*), sum(x.id), min(x.t) {source}{inner}) z {HASH_JOIN}")
        if self.chance(0.5):
            sums = "sum(y.id), count(y.t)" if both else "sum(x.a)"
            return f"select count(*), sum(x.id), max(x.t), {sums} {source} {HASH_JOIN}"
        columns = "x.id, x.t, y.id, y.n, y.t" if both and self.chance(0.5) else "x.id, x.b, y.id" if both else "x.id, x.t"
        return f"select {columns} {source} limit {self.rng.choice([1, 3, 60, 700, 4000])} {HASH_JOIN}"
