"""
report.py - says what went wrong in a case, and makes it small.

The repro is a psql script.  Steps are taken away one by one, then settings, as long as the
rest still fails in the same session; a case that cannot be repeated (DML that was committed,
damage that lasts) is printed as it is.
"""

import copy
from itertools import zip_longest

LEAVE = 40              # runs that shortening may take


def text(row):
    if row is None:
        return "(no row)"
    return " | ".join("null" if c is None else c.decode(errors="replace")[:60] for c in row)


def describe(outcome):
    if outcome.error:
        return "ERROR " + " | ".join(e.decode() for e in outcome.error[1:] if e)
    rows = "" if outcome.rows is None else f"{len(outcome.rows)} rows, "
    return f"{rows}tag {outcome.tag}" + (f", notices {outcome.notices}" if outcome.notices else "")


def first_difference(case, off, on):
    """Lines about the first step whose outcomes differ."""
    steps = case.steps + case.after_commit
    for i, (a, b) in enumerate(zip(off, on)):
        if a.key(case.ordered) == b.key(case.ordered):
            continue
        out = [f"step {i + 1} of {len(steps)}: {steps[i]}",
               f"  off: {describe(a)}", f"  on:  {describe(b)}"]
        ra, rb = a.key(case.ordered)[0] or [], b.key(case.ordered)[0] or []
        shown = 0
        for n, (x, y) in enumerate(zip_longest(ra, rb)):
            if x != y:
                out.append(f"  row {n + 1}  off: {text(x)}")
                out.append(f"  {'':>{len(str(n + 1)) + 4}}  on:  {text(y)}")
                shown += 1
                if shown == 5:
                    break
        return out
    return ["(no step differs)"]


def shorten(fuzz, case, wrong):
    """A smaller case that fails in the same way, or the case itself."""
    budget = LEAVE

    def fails(candidate):
        nonlocal budget
        budget -= 1
        if budget < 0:
            return False
        off, on = fuzz.pair(candidate)
        return fuzz.verdict(candidate, off, on) == wrong

    if case.dml or not fails(case):
        return case, False
    for attribute in ("after_commit", "steps"):
        i = len(getattr(case, attribute)) - 1
        while i >= 0:
            smaller = copy.copy(case)
            steps = list(getattr(case, attribute))
            step = steps.pop(i)
            setattr(smaller, attribute, steps)
            if steps and not step.startswith("declare") and fails(smaller):
                case = smaller
            i -= 1
    for name in list(case.planner):
        smaller = copy.copy(case)
        smaller.planner = {k: v for k, v in case.planner.items() if k != name}
        if fails(smaller):
            case = smaller
    return case, True


def script(fuzz, case):
    """The case as a psql script: both runs."""
    out = []
    for on in (False, True):
        k = 2 if on and case.dml else 1
        out.append(f"-- look-ahead {'on' if on else 'off'}")
        out += [f"{s};" for s in fuzz.settings(case, on)]
        out += [f"{s};" for s in case.before]
        if not case.dml:
            out.append(f"begin isolation level {case.isolation};")
        out += [fuzz.fill(s, k) + ";" for s in case.steps]
        if case.after_commit:
            out.append("commit;")
            out += [f"{s};" for s in case.after_commit]
        if not case.dml:
            out.append("rollback;")
        out += [f"deallocate all;"] if case.before else []
        out.append("reset all;")
    return "\n".join(out)


def head(fuzz, case, wrong):
    args = fuzz.args
    print(f"\n=== case {case.number} ({case.kind}), seed {args.seed}: {wrong}")
    print(f"repeat: test/fuzz/run --bindir {args.bindir} --seed {args.seed} --only {case.number}")
    print("settings: " + ", ".join(f"{k}={v}" for k, v in {**case.planner, **case.ahead}.items()))


def lost(fuzz, case, error):
    """The server crashed."""
    head(fuzz, case, "connection lost")
    print(error)
    print("server log:")
    print("\n".join(f"  {line}" for line in fuzz.server.tail().splitlines()))
    print("repro (psql), not shortened:")
    print("\n".join(f"  {line}" for line in script(fuzz, case).splitlines()))


def mismatch(fuzz, case, wrong, off, on):
    head(fuzz, case, wrong)
    print("plan, look-ahead off:")
    print("\n".join(f"  {line}" for line in off[0]))
    if off[0] != on[0]:
        print("plan, look-ahead on:")
        print("\n".join(f"  {line}" for line in on[0]))
    else:
        print("plan, look-ahead on: the same")
    print("\n".join(first_difference(case, off[1], on[1])))
    try:
        small, again = shorten(fuzz, case, wrong)
    except Exception as e:          # a repro is worth having, but no reason to stop
        small, again = case, False
        print(f"(could not be made smaller: {e})")
    print("repro (psql), " + ("shortened:" if again else "does not fail when repeated:"))
    print("\n".join(f"  {line}" for line in script(fuzz, small).splitlines()))
