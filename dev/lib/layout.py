#!/usr/bin/env python3
"""The layout rules of src/, one line per violation.

Includes go one way, as docs/ and the header of src/pg_lookahead.c promise:

    pg_lookahead.c -> {scan, nestloop, hashjoin, btree, recovery}
                   -> {window, attach} -> base

A feature room includes no other feature room; nestloop and scan may use
btree/descent.h.
Project headers are named relative to src/.  The server's version is asked for in
base/compat.h alone.  Files have a header comment and at most 800 lines.

Run by dev/lint from the top of the checkout.
"""

import re
import sys
from pathlib import Path

SRC = Path("src")
MAX_LINES = 800
MAX_MAKEFILE = 60

FEATURES = {"scan", "nestloop", "hashjoin", "btree", "recovery"}
MIDDLE = {"window", "attach"}
ROOMS = FEATURES | MIDDLE | {"base"}

# room -> rooms it may include besides itself
MAY = {room: MIDDLE | {"base"} for room in FEATURES}
MAY |= {room: {"base"} for room in MIDDLE}
MAY["base"] = set()

# single headers that a room may use all the same
DOORS = {("nestloop", "btree/descent.h"), ("scan", "btree/descent.h")}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
VERSION = re.compile(
    r"\b(PG_VERSION_NUM|PG_VERSION|PG_VERSION_STR|PG_MAJORVERSION|PG_MAJORVERSION_NUM"
    r"|PG_MINORVERSION_NUM|CATALOG_VERSION_NO|PG_CONTROL_VERSION|server_version_num)\b"
)


def without_comments(text):
    """Blank out comments and keep the line numbers."""
    return re.sub(
        r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"",
        lambda m: m[0] if m[0].startswith('"') else re.sub(r"[^\n]", " ", m[0]),
        text,
        flags=re.S,
    )


def check_include(path, room, target):
    """Say what is wrong with including target from a file of room, or None."""
    if (path.parent / target).exists() and not (SRC / target).exists():
        return f'"{target}" should be named relative to src/'
    if not (SRC / target).exists():
        return None  # a header of PostgreSQL's
    if room is None:
        return None  # pg_lookahead.c may include every room
    other = target.split("/")[0]
    if other == room or other in MAY[room] or (room, target) in DOORS:
        return None
    return f'room {room} must not include "{target}"'


def check(path):
    """Yield (line, message) for one source file."""
    text = path.read_text()
    rel = path.relative_to(SRC)
    room = rel.parts[0] if len(rel.parts) > 1 else None

    if room is not None and room not in ROOMS:
        yield 1, f"there is no room {room} (known: {', '.join(sorted(ROOMS))})"
        return
    if room is None and rel.name not in ("pg_lookahead.c",):
        yield 1, "only pg_lookahead.c lives outside the rooms"
    if not text.startswith("/*"):
        yield 1, "does not begin with a /* file header */"
    count = text.count("\n")
    if count > MAX_LINES:
        yield count, f"{count} lines, at most {MAX_LINES} are allowed"

    code = without_comments(text).split("\n")
    for number, line in enumerate(code, 1):
        match = INCLUDE.match(line)
        if match:
            wrong = check_include(path, room, match[1])
            if wrong:
                yield number, wrong
        if rel.as_posix() != "base/compat.h":
            for name in VERSION.findall(line):
                yield number, f"{name} belongs into src/base/compat.h"


def main():
    findings = 0
    for path in sorted(SRC.rglob("*.[ch]")):
        for line, message in check(path):
            print(f"{path}:{line}: {message}")
            findings += 1
    makefile = Path("Makefile")
    if makefile.exists():
        count = makefile.read_text().count("\n")
        if count > MAX_MAKEFILE:
            print(f"Makefile:{count}: {count} lines, at most {MAX_MAKEFILE} are allowed")
            findings += 1
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
