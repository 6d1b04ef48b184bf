#!/usr/bin/env python3
"""The layout rules of src/, one line per violation.

Includes go one way, as src/README.md shows:

    pg_lookahead.c -> {scan, bitmap, nestloop, hashjoin, indexbuild, toast, write, plancost, calibrate, replay}
                   -> rows -> gin -> btree -> window -> attach -> base

A room above does not include another one beside it.  A room has one public header, ROOM.h, and one
for its own files, ROOM_int.h, which no other room includes; further headers only where PURE and DATA
say why.  Functions of ours are declared in a header of the room that defines them.  The files of a
room call each other one way, without a circle.  What a header names of ours is declared by what lies
in the same room or below it, macros included.

Project headers are named relative to src/.  The server's version is asked for in
base/compat.h alone (and base/compat_bitmap.h, base/compat_btree.h); what that says of a version
by a macro LA_... does not divide functions elsewhere.  Files have a header comment and at most 1,500 lines, of at most 100 columns;
functions have at most 60, or the file's header says why not, naming them.

Descriptors of scans are cast in attach/descriptors.h alone, which checks whose they are; what may be
early is asked in attach/gate.h, by functions that know access methods, settings and standbys; and
pages are read by the files of PAGES, each for the reason given there.

Run by dev/lint from the top of the checkout.
"""

import re
import sys
from pathlib import Path

SRC = Path("src")
MAX_LINES = 1500
MAX_FUNCTION = 60
MAX_COLUMNS = 100
MAX_MAKEFILE = 60
COMPAT = ("base/compat.h", "base/compat_bitmap.h", "base/compat_btree.h")

ABOVE = ["scan", "bitmap", "nestloop", "hashjoin", "indexbuild", "toast", "write", "plancost", "calibrate", "replay"]
BELOW = ["rows", "gin", "btree", "window", "attach", "base"]
ROOMS = set(ABOVE + BELOW)

# room -> rooms it may include besides itself
MAY = {room: set(BELOW) for room in ABOVE}
MAY |= {room: set(BELOW[i + 1 :]) for i, room in enumerate(BELOW)}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
VERSION = re.compile(
    r"\b(PG_VERSION_NUM|PG_VERSION|PG_VERSION_STR|PG_MAJORVERSION|PG_MAJORVERSION_NUM"
    r"|PG_MINORVERSION_NUM|CATALOG_VERSION_NO|PG_CONTROL_VERSION|server_version_num)\b"
)
EXTERN = re.compile(r"^extern\s[^;{]*?\b(\w+)\s*\(", re.M)
DEFINED = re.compile(r"^(?!extern|static|typedef|#)\w[^;{}()]*?\b(\w+)\s*\(|^(\w+)\(", re.M)
OURS = re.compile(r"\b(?:la_[a-z]\w*|La[A-Z]\w+)\b")
FEATURE = re.compile(r"^\s*#\s*(?:if|elif|ifdef|ifndef)\b.*\bLA_[A-Z]")

# headers beside the two of a room: what unit tests compile without the server's headers
PURE = {
    "calibrate/curve.h", "plancost/prices.h", "plancost/scatter.h", "replay/applymessage.h",
    "replay/applypace.h", "replay/applyqueue.h", "replay/replay_depth.h", "replay/replay_policy.h",
    "replay/replay_trial.h", "window/cache_policy.h", "window/io_policy.h", "window/leaf_policy.h",
    "window/lot_policy.h", "window/readahead.h", "window/scan_length.h", "window/scan_policy.h",
    "window/share_policy.h",
}
# ... and generated tables, checks of versions, and casts
DATA = {
    "attach/function_lists.h", "attach/descriptors.h", "base/minor_table.h", *COMPAT,
}

# "One gate": what is asked of the gate, and by which file else, because it is what the gate asks
DESCRIPTOR = re.compile(
    r"\(\s*(?:const\s+)?(?:HeapScanDesc|BitmapHeapScanDesc|BTScanOpaque|HashScanOpaque|GISTScanOpaque"
    r"|SpGistScanOpaque|GinScanOpaque|BrinOpaque\s*\*|IndexFetchHeapData\s*\*)\s*\)"
)
QUESTION = re.compile(r"(?:==|!=)\s*GetHeapamTableAmRoutine\b|\bla_budget_has_pin\s*\(")
PAGE = re.compile(
    r"\b(?:ReadBuffer\w*|_bt_getbuf|_bt_relandgetbuf|_bt_getroot|_bt_search|_hash_getbuf\w*|read_stream_\w+)\s*\(|\bla_issue_read\s*\("
)
CASTS = {"attach/descriptors.h"}
QUESTIONS = {
    "attach/attach.h": "the gate",
    "attach/gate.c": "the gate",
    "base/budget.c": "defines the limit of pins",
    "base/base.h": "declares it",
    "gin/ginreads.c": "pins that are released before the executor goes on",
    "btree/leafahead.c": "the same",
    "plancost/plancost.c": "asked while plans are made, of a table that is not scanned",
}
PAGES = {
    "base/compat_btree.h": "names of functions in two versions",
    "gin/ginreads.c": "a page that the same call of the access method reads next",
    "btree/descent.c": "searches, for keys whose comparison the gate has judged",
    "btree/downlinks.c": "the same, parents of a scan's pages",
    "plancost/leafsample.c": "leaf pages sampled while plans are made; nothing is compared",
    "replay/applytable.c": "the row that a change finds, in its turn",
    "rows/aheadrows.c": "visits of rows to come, each with a descent or a block",
    "rows/aheadtouch.c": "the same, cached",
    "rows/tablecursor.c": "pages of a scan of a heap table: la_gate_refuses_rows()",
    "scan/graph.c": "pages of an access method that has been reviewed",
    "nestloop/scan_rows.c": "rows to come: la_gate_refuses_rows()",
    "toast/values.c": "rows of a heap table on cached pages",
    "window/aio.c": "the engine",
    "window/issue.c": "the engine",
    "window/reads.c": "the engine",
    "window/window.c": "the engine",
    "window/window.h": "the engine",
    "write/heaprow.c": "rows that the transaction has written",
    "write/insert_location.c": "the page of an entry, as btinsert() reads it",
}


def check_gate(rel, line):
    """Say what of a line belongs to the gate, or None."""
    if DESCRIPTOR.search(line) and rel not in CASTS:
        return "descriptors are cast in attach/descriptors.h"
    if QUESTION.search(line) and rel not in QUESTIONS:
        return "this is asked of attach/gate.h"
    if PAGE.search(line) and rel not in PAGES and not rel.startswith("indexbuild/"):
        return "pages are read by the files of PAGES in dev/lib/layout.py"
    return None


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
    if other != room and target.endswith("_int.h"):
        return f'"{target}" is for the files of its room'
    if other == room or other in MAY[room]:
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
    for number, line in enumerate(text.split("\n"), 1):
        if len(line.expandtabs(4)) > MAX_COLUMNS:
            yield number, f"more than {MAX_COLUMNS} columns"
    inside, start = False, 0
    for number, line in enumerate(code, 1):
        match = INCLUDE.match(line)
        if match:
            wrong = check_include(path, room, match[1])
            if wrong:
                yield number, wrong
        wrong = check_gate(rel.as_posix(), line)
        if wrong:
            yield number, wrong
        if line == "{":
            start = number
        elif line == "}" and inside and number - start - 1 > MAX_FUNCTION:
            name = next((m[1] for l in reversed(code[:start]) if (m := re.match(r"(\w+)\(", l))), "?")
            if name not in text[: text.index("*/")]:
                yield start, f"{name}() has {number - start - 1} lines, at most {MAX_FUNCTION} are allowed"
        inside = line == "{" or (inside and not line.startswith("}"))
        if rel.as_posix() not in COMPAT:
            if inside and FEATURE.match(line):
                yield number, "a check of the version, by another name, inside a function"
            for name in VERSION.findall(line):
                yield number, f"{name} belongs into src/base/compat.h"


def circle_in(uses):
    """A circle in {name: names}, as a list that ends as it begins, or None."""
    done, path = set(), []

    def visit(name):
        if name in path:
            return path[path.index(name) :] + [name]
        if name in done:
            return None
        path.append(name)
        for other in sorted(uses[name]):
            circle = visit(other)
            if circle:
                return circle
        done.add(path.pop())
        return None

    return next(filter(None, map(visit, sorted(uses))), None)


def check_room(room):
    """Yield what is wrong between the files of a room."""
    texts = {p.stem: without_comments(p.read_text()) for p in sorted((SRC / room).glob("*.c"))}
    defined = {a or b: stem for stem, text in texts.items() for a, b in DEFINED.findall(text)}
    declared = set()
    for path in sorted((SRC / room).glob("*.h")):
        rel = path.relative_to(SRC).as_posix()
        if path.stem not in (room, f"{room}_int") and rel not in PURE | DATA:
            yield f"{path}: a room has {room}.h and {room}_int.h"
        for function in EXTERN.findall(without_comments(path.read_text())):
            declared.add(function)
            if function not in defined:
                yield f"{path}: {function}() is not defined in this room"
    uses = {
        stem: {defined[n] for n in set(OURS.findall(text)) & declared if n in defined} - {stem}
        for stem, text in texts.items()
    }
    circle = circle_in(uses)
    if circle:
        yield f"src/{room}: a circle of calls: {' -> '.join(circle)}"


def check_upward():
    """Yield names of ours in a header that only a room above declares."""
    declared = {}
    texts = {p: without_comments(p.read_text()) for p in sorted(SRC.glob("*/*.h"))}
    for path, text in texts.items():
        names = EXTERN.findall(text) + re.findall(r"#\s*define\s+(\w+)", text)
        names += re.findall(r"^\}\s*(\w+);|^(?:static inline[^;{]*?\b|)(la_\w+)\(", text, re.M)
        for name in names:
            for n in [name] if isinstance(name, str) else name:
                declared.setdefault(n, set()).add(path.parent.name)
    for path, text in texts.items():
        room = path.parent.name
        for name in sorted(set(OURS.findall(text)) & set(declared)):
            if not declared[name] & (MAY.get(room, set()) | {room}):
                yield f"{path}: {name} is declared above, in {', '.join(sorted(declared[name]))}"


def main():
    findings = 0
    for path in sorted(SRC.rglob("*.[ch]")):
        for line, message in check(path):
            print(f"{path}:{line}: {message}")
            findings += 1
    rooms = [line for room in sorted(ROOMS) for line in check_room(room)]
    for line in rooms + list(check_upward()):
        print(line)
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
