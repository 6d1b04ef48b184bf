#!/usr/bin/env python3
#
# dev/lib/coverage.py - what gcov has counted, for dev/coverage.
#
#   coverage.py COVERAGE.json UNCOVERED
#
# COVERAGE.json is gcovr's.  UNCOVERED lists functions with lines that no test reaches,
# FILE:FUNCTION, FUNCTION, ...: why; and reasons that no test names: FILE:"REASON": why.  The exit code is 1 if fewer
# than 90% of the lines are reached, if one that is not is in no listed function, if a listed function
# is not there, or if no test names a reason why something runs as in stock.

import json
import re
import sys
from pathlib import Path

import reasons

AT_LEAST = 90.0


class File:
    def __init__(self):
        self.lines = 0
        self.missed = {}                # function -> numbers of lines
        self.functions = set()


def read(path):
    """What has been counted, by file."""
    files = {}
    for entry in json.loads(Path(path).read_text())["files"]:
        name = entry["file"]
        file = files.setdefault(name if name.startswith("src/") else "src/" + name, File())
        starts = sorted((f["lineno"], f.get("demangled_name") or f["name"]) for f in entry["functions"])
        file.functions.update(name for _, name in starts)
        # a line may be in several objects
        counts = {}
        for line in entry["lines"]:
            if not line.get("gcovr/noncode"):
                counts[line["line_number"]] = counts.get(line["line_number"], 0) + line["count"]
        file.lines += len(counts)
        for number, count in sorted(counts.items()):
            if count == 0:
                before = [name for start, name in starts if start <= number]
                file.missed.setdefault(before[-1] if before else "-", []).append(number)
    return files


def listed(path):
    """Functions that may have lines which no test reaches, and the list's own faults."""
    known, faults = {}, []
    text = Path(path).read_text() if Path(path).exists() else ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r'(src/[\w/]+\.[ch]):(\w+(?:, \w+)*|"[^"]+"): (.+)', line)
        if match is None:
            faults.append(f"{path}:{number}: not FILE:FUNCTION: why")
            continue
        file, names, why = match.groups()
        for name in [names] if names.startswith('"') else names.split(", "):
            known[file, name] = why
    return known, faults


def ranges(numbers):
    """1, 2, 3, 7 -> 1-3, 7"""
    parts = []
    for n in numbers:
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def unnamed_reasons():
    """Reasons that no expected output and no test names."""
    text = ""
    for pattern in ("expected/*.out", "t/*.p[lm]", "fuzz/*.py", "modules/*/expected/*.out", "beside/*"):
        for path in Path("test").glob(pattern):
            if path.is_file():
                text += path.read_text(errors="replace")
    return [(reason, path) for reason, path in reasons.given().items() if reason not in text]


def by_room(files):
    """Lines of each room, and how many of them are reached."""
    rooms = {}
    for name, file in files.items():
        room = rooms.setdefault(str(Path(name).parent), [0, 0])
        room[0] += file.lines
        room[1] += file.lines - sum(len(n) for n in file.missed.values())
    return rooms


def main():
    files = read(sys.argv[1])
    known, faults = listed(sys.argv[2])
    total = sum(f.lines for f in files.values())
    missed = excused = 0
    print(f"\n{'lines':>7} {'reached':>8}  file")
    for name, file in sorted(files.items()):
        here = sum(len(n) for n in file.missed.values())
        missed += here
        print(f"{file.lines:7} {100.0 * (file.lines - here) / max(file.lines, 1):7.1f}%  {name}")
    print()
    for room, (lines, reached) in sorted(by_room(files).items()):
        print(f"{lines:7} {100.0 * reached / max(lines, 1):7.1f}%  {room}")
    print(f"{total:7} {100.0 * (total - missed) / max(total, 1):7.1f}%  all\n")
    for (name, function) in known:
        if function.startswith('"'):
            continue
        if name not in files or function not in files[name].functions:
            faults.append(f"{sys.argv[2]}: there is no {name}:{function}")
    for name, file in sorted(files.items()):
        for function, numbers in sorted(file.missed.items(), key=lambda item: item[1]):
            if (name, function) in known:
                excused += len(numbers)
            else:
                print(f"{name}:{function}: not reached: {ranges(numbers)}")
    for reason, path in unnamed_reasons():
        if (str(path), f'"{reason}"') not in known:
            faults.append(f"{path}: no test names this reason: {reason}")
    for fault in faults:
        print(fault)
    print(f"{total} lines, {total - missed} reached ({100.0 * (total - missed) / max(total, 1):.1f}%), "
          f"{excused} not reached with a reason, {missed - excused} without, {len(faults)} other findings")
    return 1 if faults or missed > excused or total - missed < AT_LEAST / 100 * total else 0


if __name__ == "__main__":
    sys.exit(main())
