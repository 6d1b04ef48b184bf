"""Results in which everything that the report can show occurs.

    synthetic.py DIRECTORY     makes DIRECTORY/2030-01-02-18 and -18-cloud-1ms-5k

Local: gains, a red cell beyond and one within what stock differs from itself, a cell that
failed and was measured again, one that has nothing but a failure, LIMIT in three states,
candidates of which only some were measured again, TPC-H at two scales, serial, parallel and as
index scans, problems and findings with HTML in them.
Cloud: cold cells only, without the variant "again".
"""

from __future__ import annotations

import csv
import json
import random
import sys
from pathlib import Path

HEAD = ["run", "workload", "data", "shape", "size", "state", "variant", "rep", "ms", "executions", "rows", "checksum", "reads"]
REPS = 5
FINDINGS = """# What we found

Look-ahead **gains** most at `LIMIT 1024`; 1 < 2 & 3 > 2.

<script>document.title = "broken in"</script>
<img src="missing.png" onerror="document.title = 'broken in'">

[a bad link](javascript:alert(1)) and ![a picture](https://example.com/picture.png)

| state | ratio |
|---|---:|
| cold | 4.00 |
"""


def machine(run: str, storage: str | None) -> dict[str, object]:
    reads = {"1": 7000, "8": 40000, "64": 90000} if not storage else {"1": 950, "8": 4900, "64": 5000, "128": 5001}
    facts: dict[str, object] = {
        "started": run, "server": "18.6",
        "machine": {"cpu": "Made-up <CPU>", "cores": 2, "memory_gb": 23.5, "system": "Debian", "kernel": "6.1",
                    "disk": {"filesystem": "ext4 (rw)", "device": "vda"}},
        "source": {"commit": "0123456789abcdef0123", "src_changed": True, "src_digest": "feed"},
        "options": {"quick": False}, "ceiling_reads_per_second": reads, "settings": {},
    }
    if storage:
        facts["storage"] = storage
    return facts


class Writer:
    def __init__(self, directory: Path, run: str) -> None:
        directory.mkdir(parents=True)
        self.run, self.draw, self.rows = run, random.Random(directory.name), []
        self.directory = directory

    def cell(self, key: str, stock: float, once: tuple[str, ...] = (), **factors: float) -> None:
        """A cell by stock's milliseconds and, for the others, how much faster they are; once: measured only once."""
        workload, data, shape, size, state = key.split("/")
        for variant, factor in {"stock": 1.0, **factors}.items():
            for rep in range(1 if variant in once else REPS):
                ms = stock / factor * (1 + 0.004 * (rep - 2) + 0.001 * self.draw.random())
                reads = int(size) if state == "cold" else 0
                self.rows.append([self.run, workload, data, shape, size, state, variant.replace("_", "-"), rep,
                                  round(ms, 4), 1, size, "1:1", reads])

    def write(self) -> None:
        with (self.directory / "samples.csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([HEAD, *self.rows])


def local(directory: Path) -> None:
    run = "20300102T030405Z"
    out = Writer(directory, run)
    for data in ("random", "sequential", "correlated", "cyclic"):
        gain = {"random": 4.0, "cyclic": 3.0, "correlated": 1.5, "sequential": 1.0}[data]
        for power in range(6):
            size = 10**power
            factor = 1 + (gain - 1) * power / 5
            out.cell(f"matching/{data}/range/{size}/cold", 0.4 + size / 20, again=1.01, bitmap_uring_64=gain / 1.3,
                     bitmap_worker_64=gain / 1.6, lookahead=factor)
            out.cell(f"matching/{data}/range/{size}/cached", 0.1 + size / 4000, again=0.99, bitmap_uring_64=0.9, lookahead=0.995)
    for power in range(11):
        for state, gain in (("cold", 5.0), ("os-cached", 1.4), ("cached", 1.0)):
            out.cell(f"limit/random/limit/{2**power}/{state}", 0.3 + 2**power / 30, again=1.0,
                     lookahead=1 + (gain - 1) * power / 10)
    out.cell("lookup/random/select-only/1/cached", 0.04, again=0.94, lookahead=0.95)  # red, within the noise
    out.cell("toast/random/range/1000/cached", 3.0, again=1.001, lookahead=0.85)  # red, beyond it
    out.cell("methods/gist/knn/10000/cold", 900.0, again=1.0, lookahead=14.2)
    out.cell("inlist/random/in1/1000/cold", 70.0, again=1.0, bitmap_uring_64=4.0, lookahead=3.9)  # failed once
    # what was measured once is faster by luck
    out.cell("replay/pgbench/update/120000/cold", 4000.0, again=1.02, once=("off", "tuned_32_512kB"), off=0.3, tuned_32_512kB=2.0,
             tuned_256_4MB=1.5, lookahead=1.6)
    out.cell("apply/update/writers-1/60000/cold", 15000.0, again=1.0, cached=2.5, lookahead=2.2)
    draw = random.Random(22)
    for scale in (1, 5):
        for query in range(1, 23):
            for suffix in ("", "-parallel", "-index") if query in (6, 14) else ("", "-parallel"):
                for state in ("cold", "cached"):
                    gain = 1 + draw.random() * (1.5 if state == "cold" else 0.02)
                    out.cell(f"tpch/sf{scale}/q{query:02d}{suffix}/{scale}/{state}", 800.0 * scale, again=1.01, lookahead=gain)
    out.write()
    (directory / "machine.json").write_text(json.dumps({run: machine(run, None)}))
    (directory / "failed.csv").write_text(
        "run,cell,variant,rep,error\n"
        f"{run},inlist/random/in1/1000/cold,lookahead,2,<b>server</b> closed the connection\n"
        f"{run},inlist/random/in10/100/cold,stock,0,out of memory\n"
    )
    (directory / "problems.txt").write_text(f"{run} matching/random/range/1/cold lookahead: its plan is not that of <i>stock</i>\n")
    (directory / "findings.md").write_text(FINDINGS)


def cloud(directory: Path) -> None:
    run = "20300102T070809Z"
    out = Writer(directory, run)
    for data, gain in (("random", 5.0), ("cyclic", 4.5)):
        for size in (100, 1000, 10000):
            out.cell(f"matching/{data}/range/{size}/cold", float(size), bitmap_uring_64=gain, lookahead=gain)
    out.cell("limit/random/limit/1/cold", 1.1, lookahead=0.96)
    out.cell("limit/random/limit/1024/cold", 1030.0, lookahead=5.0)
    out.write()
    (directory / "machine.json").write_text(json.dumps({run: machine(run, "cloud-1ms-5k")}))


if __name__ == "__main__":
    top = Path(sys.argv[1])
    local(top / "2030-01-02-18")
    cloud(top / "2030-01-02-18-cloud-1ms-5k")
