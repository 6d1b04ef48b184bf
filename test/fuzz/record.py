"""
record.py - what has been compared so far: a line for each run and phase, in the cache.

.cache/fuzz/record.jsonl of the checkout (LA_CACHE moves .cache) says which server, which phase, how
many cases, how many of them differed, and a digest of the library.  run --report adds them up.
"""

import hashlib
import json
import os
import subprocess
import time
from pathlib import Path


def path():
    cache = os.environ.get("LA_CACHE") or Path(__file__).resolve().parents[2] / ".cache"
    return Path(cache) / "fuzz" / "record.jsonl"


def library(bindir):
    """A digest of the library that the server loads."""
    try:
        where = subprocess.run([os.path.join(bindir, "pg_config"), "--pkglibdir"], capture_output=True, text=True, check=True)
        return hashlib.sha256((Path(where.stdout.strip()) / "pg_lookahead.so").read_bytes()).hexdigest()[:10]
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


class Record:
    def __init__(self, server, bindir, stock):
        self.server = server
        self.library = "none" if stock else library(bindir)

    def add(self, phase, compared, differ):
        if compared == 0 and differ == 0:
            return
        line = {"when": time.strftime("%Y-%m-%dT%H:%M:%S"), "server": self.server, "phase": phase, "library": self.library,
                "compared": compared, "differ": differ}
        try:
            path().parent.mkdir(parents=True, exist_ok=True)
            with open(path(), "a") as f:
                f.write(json.dumps(line) + "\n")
        except OSError as e:
            print(f"(could not be recorded: {e})")


def report():
    """Sums by server and phase; the last columns are those that count."""
    sums = {}
    try:
        lines = path().read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        entry = json.loads(line)
        kind = entry["phase"] if entry["library"] != "none" else f"{entry['phase']} (stock with stock)"
        s = sums.setdefault((entry["server"], kind), {"compared": 0, "differ": 0, "since": 0, "library": None, "newest": 0})
        s["compared"] += entry["compared"]
        s["differ"] += entry["differ"]
        s["since"] = s["since"] + entry["compared"] if entry["differ"] == 0 else 0
        if s["library"] != entry["library"]:
            s["library"], s["newest"] = entry["library"], 0
        s["newest"] += entry["compared"]
    if not sums:
        print(f"nothing recorded in {path()}")
        return
    rows = [("server", "phase", "compared", "differed", "since the last difference", "by the last library")]
    rows += [(server, phase, s["compared"], s["differ"], s["since"], f"{s['newest']} ({s['library']})")
             for (server, phase), s in sorted(sums.items())]
    widths = [max(len(str(r[i])) for r in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(str(v).ljust(w) for v, w in zip(row, widths)).rstrip())
