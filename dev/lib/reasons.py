#!/usr/bin/env python3
#
# dev/lib/reasons.py - every reason for which src/ leaves something to the server is explained.
#
# Users read reasons in pg_lookahead_last_statement(), pg_stat_lookahead_statements and
# pg_stat_lookahead_index_build, and pg_lookahead_report() looks up in pg_lookahead_reasons() what
# to do about them.  A reason is a constant: an argument of la_effects_add() or
# la_stats_refuse(), what a function returns or assigns to `refused` or `reason`, or a
# reason of enum LaBuildOutcome's table.  dev/lint calls this; it prints a line for each reason of
# src/ that is not in the function, and for each in the function that src/ does not give.

import re
import sys
from pathlib import Path

TEXT = r'"((?:[^"\\]|\\.)*)"'
# literals are looked for in what these find; a statement ends at its semicolon
PLACES = (
    r"\bla_effects_add\s*\(([^;]*);",
    r"\bla_stats_refuse\s*\(([^;]*);",
    r"\breturn\b([^;]*);",
    r"\b(?:refused|reason)\s*=(?!=)([^;]*);",
)
# a sentence in small letters: no name, no identifier, no format
SENTENCE = re.compile(r"[a-z][A-Za-z' ,-]* [A-Za-z' ,-]*[A-Za-z]")
ROOMS = ("attach", "scan", "bitmap", "nestloop", "subplan", "rows", "hashjoin", "write")


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def given():
    """The reasons in src/, and where."""
    found = {}
    for room in ROOMS:
        for path in sorted(Path("src", room).glob("*.[ch]")):
            text = without_comments(path.read_text())
            for place in PLACES:
                for statement in re.findall(place, text):
                    for literal in re.findall(TEXT, statement):
                        if SENTENCE.fullmatch(literal):
                            found.setdefault(literal, path)
    path = Path("src/base/buildstats.c")
    table = re.search(r"reasons\[LA_NUM_BUILD_OUTCOMES\] = \{(.*?)\n\};", path.read_text(), re.S)
    for reason in re.findall(TEXT, table.group(1)):
        found.setdefault(reason, path)
    return found


def numbers(version):
    return [int(n) for n in re.findall(r"\d+", version)]


def explained():
    """The reasons in the newest definition of pg_lookahead_reasons(), and its script."""
    for path in sorted(Path("sql").glob("*.sql"), key=lambda p: numbers(p.stem.split("--")[-1]), reverse=True):
        body = re.search(r"FUNCTION pg_lookahead_reasons\(.*?AS \$\$(.*?)\$\$;", path.read_text(), re.S)
        if body:
            rows = re.findall(r"^    \('((?:[^']|'')*)',", body.group(1), re.M)
            return [row.replace("''", "'") for row in rows], path
    return [], Path("sql")


def main():
    reasons = given()
    rows, script = explained()
    findings = [f"{path}: no row in pg_lookahead_reasons(): {reason}" for reason, path in reasons.items() if reason not in rows]
    findings += [f"{script}: src/ does not give this reason: {row}" for row in rows if row not in reasons]
    findings += [f"{script}: twice in pg_lookahead_reasons(): {row}" for row in sorted(set(rows)) if rows.count(row) > 1]
    if len(reasons) < 30:
        findings.append(f"dev/lib/reasons.py: only {len(reasons)} reasons found in src/")
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
