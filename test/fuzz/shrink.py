"""
shrink.py - makes a case of impure.py small, and prints it.

The generator marks parts of its statements (impure_gen.py).  Any of them may be replaced by
something simpler, or by one of the parts within, and optional ones left out, as long as a run
still differs from stock's: first steps, then settings, then parts, the largest first.
"""

import copy
import time
from itertools import zip_longest

import impure
from impure_gen import strip

SECONDS = 25
SIMPLE = {"i": ("1", "0"), "b": ("true", "false"), "t": ("'1'",), "o": ("",), "q": ("select * from te",)}


def parts(sql):
    """Marked parts: [(begin, end, kind)], the largest first."""
    out, stack = [], []
    for i, c in enumerate(sql):
        if c == "\x01":
            stack.append(i)
        elif c == "\x02":
            begin = stack.pop()
            out.append((begin, i + 1, sql[begin + 1]))
    return sorted(out, key=lambda p: p[0] - p[1])


def simpler(sql):
    """Statements with one part replaced."""
    found = parts(sql)
    for begin, end, kind in found:
        for text in SIMPLE[kind]:
            if sql[begin + 2:end - 1] != text:
                yield sql[:begin] + text + sql[end:]
        for b, e, k in found:
            if k == kind and begin < b and e < end:
                yield sql[:begin] + sql[b:e] + sql[end:]


class Shrink:
    def __init__(self, compared, case, run):
        self.compared, self.run = compared, run
        self.case = copy.copy(case)
        self.end = time.time() + SECONDS

    def fails(self, case):
        if time.time() > self.end:
            return False
        if case.again:
            return self.compared.differs(case, (0, self.run))[0] is not None and not self.compared.is_undetermined(case, self.run)
        found, results, _ = self.compared.differs(case, (0, self.run))
        return found is not None and not any(r.timed_out() for r in results)

    def attempt(self, **changes):
        smaller = copy.copy(self.case)
        for name, value in changes.items():
            setattr(smaller, name, value)
        if self.fails(smaller):
            self.case = smaller
            return True
        return False

    def drop_keys(self, name, value, put):
        for key in list(value):
            rest = {k: v for k, v in value.items() if k != key}
            if self.attempt(**{name: put(rest)}):
                value = rest

    def all(self):
        """Returns whether the case fails again at all."""
        if not self.fails(self.case):
            return False
        self.attempt(prepared=False)
        self.attempt(single_row=False)
        self.attempt(isolation="read committed")
        for i in range(len(self.case.steps) - 1, -1, -1):
            if len(self.case.steps) > 1:
                self.attempt(steps=self.case.steps[:i] + self.case.steps[i + 1:])
        self.drop_keys("planner", self.case.planner, lambda v: v)

        def put(rest):
            ahead = list(self.case.ahead)
            ahead[self.run - 1] = rest
            return ahead
        again = True
        while again and time.time() < self.end:
            again = False
            for i in range(len(self.case.steps)):
                again |= self.step(i)
        self.drop_keys("planner", self.case.planner, lambda v: v)
        self.drop_keys("ahead", self.case.ahead[self.run - 1], put)
        return True

    def step(self, i):
        changed, again = False, True
        while again and time.time() < self.end:
            again = False
            for text in simpler(self.case.steps[i]):
                if self.attempt(steps=self.case.steps[:i] + [text] + self.case.steps[i + 1:]):
                    changed = again = True
                    break
        return changed


def script(case, run):
    """Both runs, for psql in a database with the tables (run --impure-schema)."""
    out = []
    for k in (0, run):
        out.append(f"\\echo -- look-ahead: {impure.RUNS[k]}")
        out.append("set my.off = 0; set client_min_messages = warning;")
        if case.prepared:
            out += ["begin;", impure.prologue(case, impure.settings_of(case, 0)) + " \\gset",
                    f"prepare s as {strip(case.steps[0])};", "explain (costs off) execute s;", "rollback;"] if k == 0 else []
        out += [f"begin isolation level {case.isolation};", impure.prologue(case, impure.settings_of(case, k)) + " \\gset",
                "set client_min_messages = notice;"]
        out += ["execute s;" if case.prepared and i == 0 else f"{strip(s)};" for i, s in enumerate(case.steps)]
        out += [f"{impure.AFTER};", "rollback;", f"{impure.SEQUENCES};"]
    return "\n".join(out)


def text(row):
    if row is None:
        return "(no row)"
    return " | ".join("null" if c is None else c.decode(errors="replace")[:160] for c in row)


def message(error):
    return "ERROR " + " | ".join(e.decode(errors="replace") for e in error[1:] if e)


def describe(step):
    tag, rows, error = step
    return f"{'' if rows is None else f'{len(rows)} rows, '}{message(error) if error else (tag or b'').decode()}"


def first_difference(case, stock, other):
    out = []
    for i, (a, b) in enumerate(zip(stock.steps, other.steps)):
        if a == b:
            continue
        out += [f"step {i + 1} of {len(case.steps)}:", f"  off: {describe(a)}", f"  on:  {describe(b)}"]
        for n, (x, y) in enumerate(zip_longest(a[1] or (), b[1] or ())):
            if x != y:
                out += [f"  row {n + 1}  off: {text(x)}", f"  row {n + 1}  on:  {text(y)}"]
                break
        break
    for n, (x, y) in enumerate(zip_longest(stock.notices, other.notices)):
        if x != y:
            out += [f"notice {n + 1}", f"  off: {x and text(x[2:])}", f"  on:  {y and text(y[2:])}"]
            break
    if stock.after != other.after:
        out += ["effects (my.off, log; sequences sq, trail, logseq)"]
        out += [f"  {name} {' ; '.join(text(r[1][0]) for r in x.after[1:] if r and r[1])}" for name, x in (("off:", stock), ("on: ", other))]
    return out


def what_differs(case, stock, other):
    """In a word."""
    for a, b in zip(stock.steps, other.steps):
        if (a[2] is None) != (b[2] is None):
            return "an error of one only"
        if a[2] != b[2]:
            return "another error"
        if a[1] != b[1]:
            return "figures of EXPLAIN" if case.kind == "analyze" else "rows"
        if a[0] != b[0]:
            return "command tag"
    if stock.notices != other.notices:
        return "notices"
    return "effects" if stock.after != other.after else "nothing any more"


def head(compared, case, wrong):
    return [f"\n=== impure case {case.number} ({case.kind}), seed {compared.seed}: {wrong}",
            f"repeat: test/fuzz/run --bindir ... --seed {compared.seed} --impure-only {case.number}"]


def mismatch(compared, case, run, results, plan):
    """The report of a difference, of the case made small if it fails again."""
    out = head(compared, case, f"{impure.RUNS[run]} differs from stock")
    try:
        s = Shrink(compared, case, run)
        again = s.all()
        small = s.case if again else case
        if again:
            results, plan = compared.session.run(small, (0, run))
    except impure.Lost as e:
        out.append(f"(connection lost: {e})")
        compared.connect()
        small, again = case, False
    stock, other = results[0], results[-1 if again else run]
    compared.classes[f"{what_differs(small, stock, other)}, {impure.RUNS[run]}"] += 1
    out += first_difference(small, stock, other)
    if plan:
        out += ["plan:"] + [f"  {r[0].decode()}" for r in plan.steps[1][1] or ()]
    out += ["repro (psql), " + ("shortened:" if again else "does not fail when repeated:")]
    return "\n".join(out + [f"  {line}" for line in script(small, run).splitlines()])


def lost(compared, case, error):
    """The server crashed."""
    out = head(compared, case, "connection lost") + [error, "server log:"]
    out += [f"  {line}" for line in compared.server.tail().splitlines()]
    runs = [f"  {line}" for k in range(1, len(case.ahead) + 1) for line in script(case, k).splitlines()]
    return "\n".join(out + ["repro (psql), not shortened:"] + runs)
