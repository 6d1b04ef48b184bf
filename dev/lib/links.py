#!/usr/bin/env python3
#
# dev/lib/links.py - links of the Markdown pages lead somewhere.
#
#   links.py        a line for each that does not; exit code 1 when there is any
#
# Looked at are links and pictures of every page: the file has to be in the checkout, and a page has
# to have the heading that an anchor names, as hosting sites spell anchors.  Addresses on
# the net are findings, too: nothing here depends on another host being there.  Code
# is not looked at.  dev/docs_lib/site.py imports pages() and targets().

import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"\[(?:[^\][]|\[[^\][]*\])*\]\(([^()\s]+(?:\([^()\s]*\))?)\)")
FENCE = re.compile(r"^\s*(```|~~~)")
ITEM = re.compile(r"[-*+] |\d+\. ")
# the findings of measurements are read beside their figures
APART = "bench/results/"


def pages():
    """The Markdown pages of the checkout: tracked ones and new ones."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    try:
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):
        names = [str(p) for p in Path(".").rglob("*.md") if not str(p).startswith(".cache/")]
    return sorted(Path(n) for n in names if n and not n.startswith(APART) and Path(n).exists())


def prose(page):
    """The lines of a page, those of code and comments emptied."""
    fenced = listed = False
    for line in page.read_text().splitlines():
        fence = FENCE.match(line)
        if not line.startswith(" ") and line:
            listed = bool(ITEM.match(line))
        code = fenced or fence or line.startswith("<!--") or (line.startswith("    ") and not listed)
        fenced = fenced != bool(fence)
        yield "" if code else re.sub(r"`[^`]*`", "", line)


def anchor(heading):
    """As hosting sites make it of a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    text = re.sub(r"[*]+", "", text).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(page):
    found = set()
    for line, kept in zip(page.read_text().splitlines(), prose(page)):
        heading = kept and re.match(r"#{1,6} +(.*?)(?: +#+)?$", line)
        if heading:
            name, n = anchor(heading[1]), 0
            while (name if n == 0 else f"{name}-{n}") in found:
                n += 1
            found.add(name if n == 0 else f"{name}-{n}")
    return found


def targets(page):
    """(number, target) of its links and pictures."""
    text = "\n".join(prose(page))
    for link in LINK.finditer(text):
        yield text.count("\n", 0, link.start()) + 1, link[1]


def findings():
    known = {page: anchors(page) for page in pages()}
    for page in known:
        for number, target in targets(page):
            if re.match(r"[a-z]+:|//", target):
                yield f"{page}:{number}: leads out of the project: {target}"
                continue
            path, _, name = target.partition("#")
            there = Path(page.parent, path) if path else page
            if there.exists() and there.resolve().is_relative_to(Path.cwd()):
                there = there.resolve().relative_to(Path.cwd())
            if not there.exists() or there.is_absolute() or ".." in there.parts:
                yield f"{page}:{number}: dead link: {target}"
            elif name and name not in known.get(there, anchors(there) if there.suffix == ".md" else ()):
                yield f"{page}:{number}: dead anchor: {target}"


if __name__ == "__main__":
    rc = 0
    for finding in findings():
        print(finding)
        rc = 1
    sys.exit(rc)
