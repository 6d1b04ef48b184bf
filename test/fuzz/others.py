"""
others.py - statements for access methods other than btree: part of the generator.

Their scans return rows in an order that is not defined, so order is compared only
where nobody changes the index between the two runs (schema.OTHER_TABLES).  DML runs on
the copies, whose GiST indexes differ in shape: there, rows are compared as a set.
"""

import schema


class Others:
    """Shapes (s_*) and kinds (k_*) of cases.Gen."""

    def point(self):
        return f"point({self.rng.randint(0, 1000)}, {self.rng.randint(0, 1000)})"

    def box(self, wide=False):
        r = self.rng
        x, y = (0, 0) if wide else (r.randint(0, 900), r.randint(0, 900))
        return f"box(point({x}, {y}), point({r.randint(x, 1100)}, {r.randint(y, 1100)}))"

    def other_condition(self, table, alias="", wide=False):
        """A condition that an index of schema.OTHER_INDEXES can use."""
        r = self.rng
        c = f"{alias}." if alias else ""
        lo = r.randint(0, 900)
        conditions = [
            f"{c}p <@ {self.box(wide)}",
            f"{c}p <@ {self.box(wide)}",
            f"{c}p <@ circle({self.point()}, {r.choice([5, 60, 400])})",
            f"{c}r && int4range({lo}, {lo + r.choice([1, 20, 300])})",
            f"{c}r @> {lo}",
            f"{c}r << int4range({lo}, {lo + 1})",
            f"{c}r && int4range({lo}, {lo + 90}) and {c}p <@ {self.box(True)}",
            f"{c}b = {self.lit(table, 'b')}",
            f"{c}b = {self.lit(table, 'b')}",
            f"{c}t ^@ {r.choice(['T1', 'T', 'aaaa'])!r}",
            f"{c}t = {self.lit(table, 't')}",
            f"{c}t > {self.lit(table, 't')} collate \"C\"",
            f"{c}t is null",
        ]
        keys = schema.KEYS.replace("[a", f"[{c}a").replace(" b", f" {c}b").replace(" id", f" {c}id")
        few = [str(r.choice([r.randint(0, 9), r.randint(100, 150), r.randint(1000, 1700)]))
               for _ in range(r.choice([1, 2, 2, 3, 4]))]
        conditions += [f"{keys} {r.choice(['@>', '@>', '&&', '<@'])} array[{', '.join(few)}]"] * 4
        if not wide:
            conditions += [f"{c}a = {self.lit(table, 'a')}"] * 2
        if schema.have_btree_gist:
            conditions += [f"{c}a between {lo} and {lo + r.choice([3, 100])} and {c}r && int4range({lo}, 900)",
                           f"{c}ts > {self.lit(table, 'ts')} and {c}p <@ {self.box(True)}"]
        return r.choice(conditions)

    def other_targets(self, alias=""):
        c = f"{alias}." if alias else ""
        return self.rng.choice([f"{c}id", f"{c}id, {c}a, {c}p", f"{c}p", f"{c}p", f"{c}r", f"{c}r, {c}p", f"{c}t",
                                f"{c}id, length({c}w), {c}t", f"{c}id, {c}ctid, {c}r"])

    def s_found(self, wide=False):
        table = self.rng.choice(schema.OTHER_TABLES)
        sql = f"select {self.other_targets()} from {table} where {self.other_condition(table, wide=wide)}"
        if self.chance(0.25):
            sql += f" and id % {self.rng.choice([2, 7])} = 0"
        return sql + (self.limit(200) if self.chance(0.3) else "")

    def s_nearest(self, most=200):
        """ORDER BY distance."""
        r, table = self.rng, self.rng.choice(schema.OTHER_TABLES)
        order = distance = f"p <-> {self.point()}"
        if schema.have_btree_gist and self.chance(0.2):
            distance = r.choice([f"a <-> {self.lit(table, 'a')}", f"ts <-> {self.lit(table, 'ts')}"])
            # Which of equal distances comes first depends on the entries that the scans
            # before have marked dead: stock does not repeat its own order.
            order = f"{distance}, id"
        where = f" where {self.other_condition(table, wide=True)}" if self.chance(0.4) else ""
        columns = r.choice(["id, p", "p", f"id, {distance} as d", "id, a, left(w, 9)"])
        tail = r.choice([f" limit {r.choice([1, 2, 10, most])}", self.limit(most), ""])
        return f"select {columns} from {table}{where} order by {order}{tail}"

    def s_other_join(self):
        """Scans that start over for every row, and end early."""
        r = self.rng
        t1, t2 = r.choice(schema.OTHER_TABLES), r.choice(schema.OTHER_TABLES)
        outer = f"(select * from {t1} where {self.other_condition(t1)} limit {r.choice([3, 20, 60])})"
        return r.choice([
            f"select x.id, y.id from {outer} x join {t2} y on y.p <@ circle(x.p, {r.choice([5, 30])})",
            f"select x.id, y.id, y.t from {outer} x join {t2} y on y.a = x.a",
            f"select x.id, count(y.id), sum(length(y.w)) from {outer} x left join {t2} y on y.b = x.b group by x.id",
            f"select x.id, y.id from {outer} x join {t2} y on y.r && x.r and y.id % 5 = 0",
            f"select x.id, y.* from {outer} x, lateral (select id, p from {t2} z "
            f"order by z.p <-> x.p limit {r.choice(['1', '7', 'x.id % 9', '40'])}) y",
            f"select x.id, y.* from {outer} x, lateral (select id, {r.choice(['w', 'r'])} from {t2} z "
            f"where z.b = x.b limit {r.choice(['1', '7', 'x.id % 50'])}) y",
            f"select x.id, exists (select from {t2} y where y.p <@ circle(x.p, 9) and y.id <> x.id) from {outer} x",
            f"select x.id, (select y.id from {t2} y order by y.p <-> x.p limit 1 offset 2) from {outer} x",
        ])

    def s_other_digest(self):
        inner = self.s_nearest(3000) if self.chance(0.3) else self.s_found(wide=True)
        return f"select count(*), md5(string_agg(x::text, ',')) from ({inner}) x"

    def s_other_error(self):
        table = self.rng.choice(schema.OTHER_TABLES)
        return (f"select id, 1000 / (a - {self.lit(table, 'a')}) from {table} "
                f"where {self.other_condition(table, wide=True)}")

    def s_other(self, wide=False):
        if wide:
            return self.rng.choice([self.s_found, self.s_nearest])()
        return self.rng.choice([self.s_found] * 3 + [self.s_nearest] * 2 + [self.s_other_join] * 2 +
                               [self.s_other_digest, self.s_other_error])()

    # ---- kinds ------------------------------------------------------------

    def k_other(self, number):
        """Cursors that only go forward: those that would turn do not look ahead here."""
        r = self.rng
        names, declares = [f"c{i}" for i in range(r.choice([1, 1, 2, 3]))], []
        for name in names:
            sql = self.s_other(wide=self.chance(0.7))
            hold = " with hold" if self.chance(0.15) else ""
            declares.append(f"declare {name} no scroll cursor{hold} for {sql}")
        moves = []
        for name in names:
            for _ in range(r.randint(3, 12)):
                verb = r.choice(["fetch", "fetch", "move"])
                moves.append(f"{verb} {r.choice(['next', '2', '7', '40', '300', 'all', 'forward 0'])} from {name}")
        r.shuffle(moves)
        if self.chance(0.5):
            k = r.randint(0, len(moves))
            middle = r.choice([["select 1/0"], [f"close {names[0]}"], [f"fetch 20 from {names[0]}"],
                               [f"declare d no scroll cursor for {self.s_found()}", "fetch 5 from d"]])
            moves = moves[:k] + ["savepoint s"] + middle + ["rollback to savepoint s"] + moves[k:]
        after = []
        if "with hold" in " ".join(declares):
            after = [f"fetch 10 from {names[0]}", f"fetch all from {names[0]}", "close all"]
        return self.make(number, "other", declares + moves, declares, after_commit=after)

    def k_other_dml(self, number):
        """As k_dml, by indexes of schema.COPY_INDEXES."""
        r = self.rng
        lo = r.randint(0, 900)
        cond = r.choice([
            f"x.p <@ {self.box()}", f"x.r && int4range({lo}, {lo + r.choice([1, 9])})",
            f"x.id % 50 = {r.randint(0, 50)}", f"x.p <@ circle({self.point()}, 60) and x.r @> {lo}"])
        sql = r.choice([
            f"update {{T}} x set p = p + point(1, 1), c = {r.choice(['c', 'a'])} where {cond} returning id, a",
            f"update {{T}} x set r = int4range({lo}, {lo + 50}) where {cond} and id % 3 = 0 returning id, r",
            f"update {{T}} x set w = 'moved' where {cond} returning id",
            f"delete from {{T}} x where {cond} and id % 4 = 1 returning id, p",
            f"insert into {{T}} select (select max(id) from {{T}}) + id, a, b, c, t, md5(u::text || {number})::uuid, "
            f"ts, n, f, null, p, r from {{T}} x where {cond} and id < 5000 returning id",
            f"insert into {{T}} select x.* from frag x where x.p <@ {self.box()} "
            "on conflict (id) do update set p = excluded.p, b = excluded.b",
            f"merge into {{T}} x using (select * from vis x where {cond}) y on x.id = y.id "
            "when matched and x.b > 5 then delete when matched then update set p = y.p, r = y.r "
            "when not matched then insert values (y.*)",
            f"select id, a, p from {{T}} x where {cond} for update skip locked",
            f"select id from {{T}} x where {cond} for no key update",
            "vacuum (index_cleanup on) {T}",
        ])
        explain = [] if sql.startswith("vacuum") else [sql]
        case = self.make(number, "other dml", [sql], explain, dml=True, ordered=False)
        # one entry of many: the planner would rather read the table
        case.planner["enable_bitmapscan"] = "off"
        return case
