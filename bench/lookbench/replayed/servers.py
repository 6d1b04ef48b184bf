"""A server whose data directory is a copy of another, made anew for each sample.

A copy is on the storage that is measured, the original is kept where there is room.  Both belong to the
server's user; the copy has no log of its own to begin with.  Reads are those of the device: the
simulated volume's counters, or the kernel's of the block device, which serves others as well.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

from ..machine import disk_of
from ..server import BASE_SETTINGS, Server, ServerError, clean_environment
from ..storages import Speed

POLL_SECONDS = 0.002
REDO_SECONDS = 1800  # at most
_STARTS = re.compile(r"^(\d+\.\d+) LOG:  redo starts at ")
_DONE = re.compile(
    r"^(\d+\.\d+) LOG:  redo done at (\S+) system usage: CPU: user: ([\d.]+) s, system: ([\d.]+) s, elapsed: ([\d.]+) s"
)
_NEEDLESS = re.compile(r"^\d+\.\d+ LOG:  redo is not required")

# what the originals have in postgresql.conf; the log's lines begin with seconds and milliseconds
SETTINGS: Mapping[str, str] = dict(BASE_SETTINGS) | {"log_line_prefix": "'%n '", "checkpoint_timeout": "1h", "max_wal_size": "32GB"}


class Redo:
    """What the log says of a recovery, and the device of its reads."""

    def __init__(self, start: str, done: re.Match[str], reads: int | None) -> None:
        self.ms = (float(done[1]) - float(start)) * 1000
        self.end = done[2]
        self.user_ms, self.system_ms, self.elapsed_ms = (round(float(done[n]) * 1000) for n in (3, 4, 5))
        self.reads = reads


class Device:
    """The storage below a path, and how often it was read."""

    def __init__(self, path: Path, speed: Speed) -> None:
        self.speed = speed
        self._stat = Path("/sys/class/block") / disk_of(path.resolve())["device"] / "stat"

    def reads(self) -> int | None:
        counters = self.counters()
        return counters.get("reads")

    def counters(self) -> Mapping[str, int]:
        """Reads and writes; what else a simulated volume has counted since its speed was set."""
        volume = self.speed.counters()
        if volume:
            return {name: round(float(volume[name])) for name in ("reads", "writes", "mean_read_us", "max_in_flight") if name in volume}
        if not self._stat.exists():
            return {}
        fields = self._stat.read_text().split()
        return {"reads": int(fields[0]), "writes": int(fields[4])}


class CopiedServer(Server):
    def restore(self, original: Path) -> None:
        """The data directory as the original is, its settings included."""
        self.discard()
        subprocess.run(["cp", "-a", "--reflink=auto", str(original), str(self.data)], check=True, env=clean_environment())
        (self.data / "server.log").unlink(missing_ok=True)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def discard(self) -> None:
        """Stop it, whatever it does, and remove the data directory."""
        self.stop("immediate")
        shutil.rmtree(self.data, ignore_errors=True)

    def recover(self, settings: Mapping[str, str], device: Device) -> Redo:
        """Start it, and wait until it has gone through the log; it may still be at work then.

        Nobody connects meanwhile, and the log is read so seldom that it takes no time from the server.
        """
        log = self._launch(settings)
        start, before = "", None
        for line in self._lines(log):
            if _NEEDLESS.match(line):
                raise ServerError("there was nothing to recover")
            if found := _STARTS.match(line):
                start, before = found[1], device.reads()
            if done := _DONE.match(line):
                after = device.reads()
                return Redo(start, done, None if before is None or after is None else after - before)
        raise ServerError(f"the server does not recover; see {log}")

    def _lines(self, log: Path) -> Iterator[str]:
        """The lines of a log as they are written, until the server has ended or takes too long."""
        assert self._postmaster is not None
        until = time.monotonic() + REDO_SECONDS
        with log.open() as file:
            text = ""
            while time.monotonic() < until:
                ended = self._postmaster.poll() is not None
                text += file.read()
                *lines, text = text.split("\n")
                yield from lines
                if ended:
                    return
                time.sleep(POLL_SECONDS)

    def wait(self, settings: Mapping[str, str]) -> None:
        """Until a server that has gone through the log takes connections."""
        if not self._comes_up():
            raise ServerError(f"the server does not come up; see {self.data / 'server.log'}")
        self.running_with = dict(settings)

    def program(self, name: str, arguments: Sequence[str]) -> str:
        """Run a client of the server as its user; what it prints."""
        return self._run([str(self.bindir / name), *arguments], self.client_environment({}))


def execute(server: Server, *statements: str) -> list[tuple[Any, ...]]:
    """In a new session, one after another; the rows of the last one.  Several in one text are one transaction."""
    with closing(server.connect()) as connection:
        for statement in statements:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []


class Originals:
    """Data directories that are made once and kept, each with the note that it is complete."""

    def __init__(self, server: Server, keep: Path, sockets: Path) -> None:
        self._like = server
        self._keep = keep
        self._sockets = sockets

    def path(self, name: str) -> Path:
        return self._keep / name

    def ensure(self, name: str, make: Callable[[CopiedServer], None]) -> Path:
        """The directory of that name; make() leaves it as it is to be copied, with the server stopped."""
        path = self.path(name)
        note = self._keep / f"{name}.done"
        if note.exists() and note.read_text().strip() == self._like.version:
            return path
        note.unlink(missing_ok=True)
        server = CopiedServer(self._like.bindir, path, self._sockets, self._like.user)
        server.discard()
        try:
            server.create(SETTINGS)
            make(server)
        except BaseException:
            server.discard()
            raise
        note.write_text(self._like.version + "\n")
        return path

    def forget(self, name: str) -> None:
        (self._keep / f"{name}.done").unlink(missing_ok=True)
        shutil.rmtree(self.path(name), ignore_errors=True)


def own(path: Path, user: str) -> None:
    """Make a directory that is the server's user's."""
    path.mkdir(parents=True, exist_ok=True)
    give(path, user)


def give(path: Path, user: str) -> None:
    """Give what we have made to the server's user."""
    if os.geteuid() == 0:
        shutil.chown(path, user)
