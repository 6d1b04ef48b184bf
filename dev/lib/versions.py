#!/usr/bin/env python3
#
# dev/lib/versions.py - the places that name the version, and META.json.
#
#   versions.py check            a line for each place that names another version than META.json, and
#                                for what PGXN would not take of it; exit code 1 when there is any
#   versions.py set VERSION      all places name that one
#   versions.py freeze [DATE]    the version is released: changelogs get the date, and test/t/019_upgrade.pl
#                                the checksums of its scripts, which do not change from then on
#
# Set renames the scripts of a version that was never released, with the symbols in the
# library that are named for it.  After a release it begins a new update script instead.
# dev/release calls this.

import hashlib
import json
import re
import subprocess
import sys
from datetime import date, datetime
from email.utils import format_datetime
from pathlib import Path

NUMBER = r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?"
# the first match in each file; its group is the version
PLACES = (
    ("META.json", r'^   "version": "(.*)"'),
    ("META.json", r'^         "version": "(.*)"'),
    ("META.json", rf'"file": "sql/pg_lookahead--(?:.*--)?({NUMBER})\.sql"'),
    ("pg_lookahead.control", r"^default_version = '(.*)'"),
    ("src/pg_lookahead.c", r'\.version = "(.*?)"'),
    ("CHANGELOG.md", r"^## (\d\S*)"),  # what has no version yet is under "Unreleased"
    ("debian/changelog", r"^pg-lookahead \((.*)-\d+\)"),
    ("packaging/pg_lookahead.spec", r"^Version: +(\S+)"),
    ("packaging/pg_lookahead.spec", r"^\* .* - (\S+)-\d+$"),
)
RELEASED = Path("test/t/019_upgrade.pl")
# pages that tell of the update to a version that is not released
PAGES = ("docs/install.md", str(RELEASED))
EXPECTED = Path("test/expected/update.out")


def version():
    return json.loads(Path("META.json").read_text())["version"]


def scripts_to(number):
    """The scripts that end at the version: a whole one, updates."""
    return sorted(p for p in Path("sql").glob("pg_lookahead--*.sql") if p.stem.split("--")[-1] == number)


def released():
    """Names of scripts that do not change any more."""
    return set(re.findall(r"'(pg_lookahead--[^']*\.sql)' =>", RELEASED.read_text()))


# ---- check ----------------------------------------------------------------

# What the PGXN Meta Spec 1.0.0 demands of a key
TERM = re.compile(r"[^\s/\\\x00-\x1f]{2,}")
SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
KEYS = {"name", "version", "abstract", "maintainer", "license", "provides", "meta-spec", "description", "generated_by",
        "tags", "no_index", "prereqs", "release_status", "resources"}
PHASES = {"configure", "build", "test", "runtime", "develop"}
RELATIONS = {"requires", "recommends", "suggests", "conflicts"}


def meta_findings():
    meta = json.loads(Path("META.json").read_text())
    for key in ("name", "version", "abstract", "maintainer", "license", "provides", "meta-spec"):
        if not meta.get(key):
            yield f"{key} is missing"
    for key in meta:
        if key not in KEYS and not key.lower().startswith("x_"):
            yield f"{key} is not a key of the specification"
    if not TERM.fullmatch(meta.get("name", "")):
        yield "name is not a term"
    if not SEMVER.fullmatch(meta.get("version", "")):
        yield "version is not a semantic version"
    if meta.get("meta-spec", {}).get("version") != "1.0.0":
        yield "meta-spec does not name version 1.0.0"
    if meta.get("release_status", "stable") not in ("stable", "testing", "unstable"):
        yield "release_status is none of stable, testing, unstable"
    for name, what in meta.get("provides", {}).items():
        if not TERM.fullmatch(name) or not SEMVER.fullmatch(what.get("version", "")):
            yield f"provides: {name} has no name or semantic version"
        for key in ("file", "docfile"):
            if (key == "file" or key in what) and not Path(what.get(key, "-")).is_file():
                yield f"provides: {name}: {key} is not a file"
    for phase, relations in meta.get("prereqs", {}).items():
        if phase not in PHASES or set(relations) - RELATIONS:
            yield f"prereqs: {phase} is not as specified"
    for kind, names in meta.get("no_index", {}).items():
        for name in names:
            if kind not in ("file", "directory") or not Path(name).exists():
                yield f"no_index: {kind} {name} is not there"
    if not all(isinstance(tag, str) and tag and not re.search(r"[/\\]", tag) and len(tag) < 256 for tag in meta.get("tags", ["-"])):
        yield "tags are not terms"


def check():
    number = version()
    for file, pattern in PLACES:
        found = re.search(pattern, Path(file).read_text(), re.M)
        if not found or found[1] != number:
            yield f"{file} names version {found[1] if found else '-'}, META.json {number}"
    if not scripts_to(number):
        yield f"no script in sql leads to version {number}"
    yield from (f"META.json: {text}" for text in meta_findings())


# ---- set ------------------------------------------------------------------


def replace(file, pattern, text, count=0):
    path = Path(file)
    before = path.read_text()
    after = re.sub(pattern, text, before, count=count, flags=re.M)
    if after != before:
        path.write_text(after)
        print(f"{file}")


def name_version(number):
    for file, pattern in PLACES:
        path = Path(file)
        text = path.read_text()
        found = re.search(pattern, text, re.M)
        if not found:
            sys.exit(f"error: {file} has no place for the version")
        path.write_text(text[: found.start(1)] + number + text[found.end(1):])
        print(f"{file}")
    status = "testing" if number.startswith("0.") or "-" in number else "stable"
    replace("META.json", r'"release_status": "\w+"', f'"release_status": "{status}"')


def rename_scripts(scripts, old, new):
    """Of a version that nobody has."""
    renamed = []
    for script in scripts:
        renamed.append(script.with_name(script.name.replace(f"--{old}.sql", f"--{new}.sql")))
        script.rename(renamed[-1])
        replace(renamed[-1], re.escape(old), new)
        print(f"{script} is {renamed[-1]} now")
    was, is_now = ("_" + "_".join(n.split(".")[:2]) + r"\b" for n in (old, new))
    for path in [*renamed, EXPECTED, *sorted(Path("src").rglob("*.c"))]:
        replace(path, rf"(lookahead\w*){was}", rf"\g<1>{is_now[:-2]}")
    replace(EXPECTED, rf"^ {re.escape(old)}$", f" {new}")
    for page in PAGES:
        replace(page, rf"\b{re.escape(old)}\b", new)


def begin_script(old, new):
    """After a release."""
    script = Path(f"sql/pg_lookahead--{old}--{new}.sql")
    script.write_text(
        f"/* {script} */\n\n"
        "-- complain if script is sourced in psql, rather than via ALTER EXTENSION\n"
        f"\\echo Use \"ALTER EXTENSION pg_lookahead UPDATE TO '{new}'\" to load this file. \\quit\n")
    replace("META.json", r'"file": "sql/pg_lookahead--.*\.sql"', f'"file": "{script}"')
    if re.search(r"^## Unreleased$", Path("CHANGELOG.md").read_text(), re.M):
        replace("CHANGELOG.md", r"^## Unreleased$", f"## {new} (unreleased)", 1)
    else:
        replace("CHANGELOG.md", r"^## ", f"## {new} (unreleased)\n\n- Nothing yet.\n\n## ", 1)
    who = " -- The pg_lookahead developers <pg-lookahead@packages.invalid>  "
    entry = Path("debian/changelog")
    entry.write_text(f"pg-lookahead ({new}-1) UNRELEASED; urgency=medium\n\n  * New version.\n\n{who}{now()}\n\n" + entry.read_text())
    replace("packaging/pg_lookahead.spec", r"^%changelog\n", f"%changelog\n* {rpm_day(date.today())} The pg_lookahead developers - {new}-1\n- New version\n\n", 1)
    print(f"{script} is new; test/expected/update.out will have a line for it")


def now():
    return format_datetime(datetime.now().astimezone())


def rpm_day(day):
    return f"{day:%a %b %d %Y}"


def set_version(new):
    old = version()
    if not re.fullmatch(NUMBER, new) or not SEMVER.fullmatch(new):
        sys.exit(f"error: {new} is not a semantic version (three numbers: 1.0.0)")
    if new == old:
        sys.exit(f"error: it is {old} already")
    problems = list(check())
    if problems:
        sys.exit("error: first mend:\n" + "\n".join(problems))
    scripts = scripts_to(old)
    if scripts[0].name in released():
        begin_script(old, new)
    else:
        rename_scripts(scripts, old, new)
    name_version(new)
    mentions = subprocess.run(["git", "-c", "safe.directory=*", "grep", "-nwF", old, "--", ".", ":!bench/results", ":!docs/results"],
                              capture_output=True, text=True).stdout
    if mentions:
        print(f"\nStill named is {old}; rightly?\n{mentions}", end="")


# ---- freeze ---------------------------------------------------------------


def freeze(day):
    number = version()
    scripts = scripts_to(number)
    problems = list(check())
    if problems:
        sys.exit("error: first mend:\n" + "\n".join(problems))
    if scripts[0].name in released():
        sys.exit(f"error: {scripts[0].name} has been released")
    replace("CHANGELOG.md", rf"^## {re.escape(number)} \(unreleased\)$", f"## {number} ({day:%Y-%m-%d})", 1)
    stamp = format_datetime(datetime(day.year, day.month, day.day, 12).astimezone())
    replace("debian/changelog", r"\A(pg-lookahead \(.*\)) UNRELEASED;", r"\1 unstable;")
    replace("debian/changelog", r"\A((?:.*\n)*? -- .*?>  ).*", rf"\g<1>{stamp}", 1)
    replace("packaging/pg_lookahead.spec", r"^\* \w+ \w+ +\d+ \d+ ", f"* {rpm_day(day)} ", 1)
    text = RELEASED.read_text()
    last = re.search(r"^(my %released = \(.*?)\);", text, re.M | re.S)
    if not last:
        sys.exit(f"error: {RELEASED} has no list of released scripts")
    sums = "".join(f",\n\t'{script.name}' => '{hashlib.sha256(script.read_bytes()).hexdigest()}'" for script in scripts)
    RELEASED.write_text(text[: last.end(1)] + sums + text[last.end(1):])
    print(f"{RELEASED}: {', '.join(script.name for script in scripts)}: no change any more")


def main():
    arguments = sys.argv[1:]
    if arguments == ["check"]:
        found = list(check())
        print("\n".join(found), end="\n" if found else "")
        return 1 if found else 0
    if len(arguments) == 2 and arguments[0] == "set":
        set_version(arguments[1])
    elif arguments[:1] == ["freeze"] and len(arguments) <= 2:
        freeze(date.fromisoformat(arguments[1]) if arguments[1:] else date.today())
    else:
        sys.exit("usage: versions.py check | set VERSION | freeze [DATE]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
