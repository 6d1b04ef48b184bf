"""What a measurement was taken on, and how fast its disk can be at best.

The ceiling is fio's: 8 kB random reads with direct I/O, at several queue depths, on a
file of the table that is measured (opened read-only), so it is the same file system,
the same blocks and nothing has to be laid out first.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any, Sequence

ROOT = Path(__file__).resolve().parents[2]


def _first_field(path: str, key: str) -> str:
    """The value of a "key : value" line in a file of /proc."""
    for line in Path(path).read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return "unknown"


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(ROOT), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def source_state() -> dict[str, Any]:
    """Commit, whether src/ differs from it, and a digest of src/ itself."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return {
        "commit": _git("rev-parse", "HEAD") or "none",
        "src_changed": bool(_git("status", "--porcelain", "--", "src")),
        "src_digest": digest.hexdigest()[:16],
    }


def disk_of(path: Path) -> dict[str, str]:
    """File system and block device below a path."""
    best, found = "", {"filesystem": "unknown", "device": "unknown"}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        device, mount, kind, options = line.split()[:4]
        if os.path.commonpath([mount, str(path)]) == mount and len(mount) >= len(best):
            best, found = mount, {"filesystem": f"{kind} ({options})", "device": Path(device).name}
    block = (Path("/sys/class/block") / found["device"]).resolve()
    queue = next((d / "queue" for d in (block, block.parent) if (d / "queue").is_dir()), block)
    for name in ("scheduler", "rotational", "read_ahead_kb", "logical_block_size"):
        if (queue / name).exists():
            found[name] = (queue / name).read_text().strip()
    return found


def memory_megabytes() -> int:
    return int(_first_field("/proc/meminfo", "MemTotal").split()[0]) // 1024


def describe(path: Path) -> dict[str, Any]:
    """Processor, memory, kernel and the disk that holds `path`."""
    release = Path("/etc/os-release").read_text() if Path("/etc/os-release").exists() else ""
    system = next((l.split("=", 1)[1].strip('"') for l in release.splitlines() if l.startswith("PRETTY_NAME=")), "Linux")
    return {
        "cpu": _first_field("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory_gb": round(memory_megabytes() / 1024, 1),
        "kernel": platform.release(),
        "system": system,
        "disk": disk_of(path),
    }


def random_reads(file: Path, depth: int, seconds: int = 3) -> int | None:
    """8 kB random reads per second at that queue depth, or None without fio."""
    if shutil.which("fio") is None:
        return None
    done = subprocess.run(
        ["fio", "--name=ceiling", f"--filename={file}", "--readonly", "--rw=randread", "--bs=8k",
         "--direct=1", "--ioengine=libaio", f"--iodepth={depth}", f"--runtime={seconds}",
         "--time_based", "--thread", "--output-format=json"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd="/",
    )
    if done.returncode != 0:
        return None
    # warnings may stand before the JSON text
    report = json.loads(done.stdout[done.stdout.index("{"):])
    return int(report["jobs"][0]["read"]["iops"])


def ceiling(file: Path, depths: Sequence[int], seconds: int = 3) -> dict[str, int]:
    """Queue depth -> reads per second, for those depths that fio could measure."""
    results = {str(depth): random_reads(file, depth, seconds) for depth in depths}
    return {depth: reads for depth, reads in results.items() if reads is not None}
