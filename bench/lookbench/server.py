"""A private PostgreSQL server that can be started cold.

The server belongs to an unprivileged user when we are root (PostgreSQL refuses to
run as root), listens on a Unix socket only and reads its settings from
postgresql.conf plus `variant.conf`, which `start(settings)` writes: a repetition may
thus run under other server settings than the one before it.

Cold means: server stopped and started, shared_buffers filled with pages of something
else, dirty pages written, page cache dropped.
Dropping takes /proc/sys/vm/drop_caches when we may write to it, and otherwise
POSIX_FADV_DONTNEED on every file of the data directory.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import signal
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Mapping, Sequence

import psycopg

from .relations import occupy_buffers

SUPERUSER = "postgres"
WAIT_SECONDS = 60  # for a server to start or to stop
STOP_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
DROP_CACHES = Path("/proc/sys/vm/drop_caches")

# A server for measuring: nothing runs by itself, nothing is durable.
BASE_SETTINGS: Mapping[str, str] = {
    "listen_addresses": "''",
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "8GB",
    "autovacuum": "off",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "2",
    "maintenance_work_mem": "512MB",
    "work_mem": "64MB",
    "track_io_timing": "off",
    "log_min_messages": "warning",
    "timezone": "UTC",
}


class ServerError(Exception):
    """The server or one of its programs did not do what it was asked to."""


def _user_arguments(user: str) -> dict[str, Any]:
    """Arguments of subprocess that make a child run as that user."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def clean_environment() -> dict[str, str]:
    """The environment without variables that would redirect a client."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PG")} | {"LC_ALL": "C.UTF-8"}


def digest_of(path: Path) -> str:
    """A few letters that tell this path from others."""
    return hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:6]


class Server:
    def __init__(self, bindir: Path, data: Path, sockets: Path, user: str) -> None:
        self.bindir = bindir
        self.data = data
        self.sockets = sockets
        self.user = user
        self.running_with: dict[str, str] | None = None
        self.prefix: Sequence[str] = ()  # what the postmaster is started by, such as valgrind
        self._postmaster: subprocess.Popen[bytes] | None = None  # if it was started here
        text = self._run([str(bindir / "postgres"), "--version"]).strip()
        self.version = text.split()[2]
        self.major = int(re.match(r"\d+", self.version)[0])  # type: ignore[index]

    def _surroundings(self) -> dict[str, Any]:
        """Of the server's programs: its user, and a session of their own."""
        return {"env": self._environment(), "cwd": "/", "start_new_session": True} | _user_arguments(self.user)

    def _environment(self) -> dict[str, str]:
        """Its programs load its own libraries, whichever server this process was prepared for."""
        return clean_environment() | {"LD_LIBRARY_PATH": str(self.bindir.parent / "lib")}

    def _run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
        """Run one of the server's programs, in a clean environment or in this one; what it prints."""
        done: subprocess.CompletedProcess[str] = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **self._surroundings() | ({} if environment is None else {"env": environment}),
        )
        if done.returncode != 0:
            last = (done.stdout.strip().splitlines() or ["no message"])[-1]
            raise ServerError(f"{Path(command[0]).name} failed: {last}")
        return done.stdout

    def has_extension(self, name: str) -> bool:
        """Whether CREATE EXTENSION could find it."""
        share = self._run([str(self.bindir / "pg_config"), "--sharedir"]).strip()
        return (Path(share) / "extension" / f"{name}.control").exists()

    # ---- the data directory -----------------------------------------------

    def exists(self) -> bool:
        return (self.data / "variant.conf").exists()

    def create(self, settings: Mapping[str, str] = BASE_SETTINGS) -> None:
        """initdb with C collation; settings go into postgresql.conf."""
        self._run(
            [str(self.bindir / "initdb"), "-D", str(self.data), "-U", SUPERUSER, "-A", "trust",
             "--no-locale", "--encoding=UTF8", "--no-sync"]
        )
        with (self.data / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = {value}\n" for name, value in settings.items())
            conf.write("include 'variant.conf'\n")
        self._write_variant({})

    def has_checksums(self) -> bool:
        """Whether its pages have them: by default from PostgreSQL 18 on."""
        return re.search(r"^Data page checksum version: +[1-9]", self._run([str(self.bindir / "pg_controldata"), str(self.data)]), re.M) is not None

    def set_checksums(self, wanted: bool) -> None:
        """Give pages checksums, or go without; the server is stopped afterwards."""
        if self.has_checksums() == wanted:
            return
        # one that was killed has to recover first
        self.start({"shared_preload_libraries": ""})
        self.stop()
        self._run([str(self.bindir / "pg_checksums"), "--enable" if wanted else "--disable", "--no-sync", "-D", str(self.data)])

    def _write_variant(self, settings: Mapping[str, str]) -> None:
        path = self.data / "variant.conf"
        path.write_text("".join(f"{name} = '{value}'\n" for name, value in settings.items()))
        path.chmod(0o644)

    # ---- start and stop ---------------------------------------------------

    def start(self, settings: Mapping[str, str]) -> None:
        """Start with these settings, unless it runs with them already."""
        if self.running_with == dict(settings):
            return
        self.stop()
        log = self._launch(settings)
        if not self._comes_up():
            lines = [line for line in log.read_text().splitlines() if "FATAL" in line]
            self.stop("immediate")
            raise ServerError(f"the server does not start: {lines[-1] if lines else f'see {log}'}")
        self.running_with = dict(settings)

    def _launch(self, settings: Mapping[str, str]) -> Path:
        """Start the postmaster, and do not wait for it; its log, to which it appends."""
        self._write_variant(dict(settings) | {"unix_socket_directories": str(self.sockets)})
        log = self.data / "server.log"
        with log.open("a") as output:
            self._postmaster = subprocess.Popen(
                [*self.prefix, str(self.bindir / "postgres"), "-D", str(self.data)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, **self._surroundings(),
            )
        return log

    def _comes_up(self) -> bool:
        """Wait for a server just started, with less delay than pg_ctl, which looks ten times in a second."""
        assert self._postmaster is not None
        until = time.monotonic() + WAIT_SECONDS
        while self._postmaster.poll() is None and time.monotonic() < until:
            try:
                self.connect().close()
                return True
            except psycopg.OperationalError:
                time.sleep(0.005)
        return False

    def stop(self, mode: str = "fast") -> None:
        """Stop it if it runs, also one that an interrupted run left behind."""
        self.running_with = None
        if self._postmaster is not None:
            self._postmaster.send_signal(STOP_SIGNALS[mode])
            try:
                self._postmaster.wait(WAIT_SECONDS)
            except subprocess.TimeoutExpired:
                raise ServerError(f"the server does not stop; see {self.data / 'server.log'}") from None
            self._postmaster = None
        elif self._runs():
            self._run([str(self.bindir / "pg_ctl"), "stop", "-D", str(self.data), "-m", mode, "-w"])

    def _runs(self) -> bool:
        if not (self.data / "postmaster.pid").exists():
            return False
        try:
            self._run([str(self.bindir / "pg_ctl"), "status", "-D", str(self.data)])
        except ServerError:
            return False
        return True

    def restart_cold(self, settings: Mapping[str, str]) -> None:
        """Nothing of the tables in shared_buffers or in the page cache afterwards."""
        self.stop()
        self.start(settings)
        with closing(self.connect()) as connection:
            occupy_buffers(connection)
        drop_page_cache(self.data)

    def starts_with(self, settings: Mapping[str, str]) -> bool:
        """Try settings that this machine or build may refuse."""
        try:
            self.start(settings)
        except ServerError:
            self.stop("immediate")
            return False
        return True

    # ---- clients ----------------------------------------------------------

    def connect(self, settings: Mapping[str, str] | None = None) -> psycopg.Connection:
        """A connection in autocommit mode with these session settings."""
        connection = psycopg.connect(
            host=str(self.sockets), port=5432, user=SUPERUSER, dbname="postgres", autocommit=True,
            prepare_threshold=None,
        )
        for name, value in (settings or {}).items():
            connection.execute("select set_config(%s, %s, false)", (name, value))
        return connection

    def client_environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        """The environment for psql or pgbench, with session settings for it."""
        return self._environment() | {
            "PGHOST": str(self.sockets),
            "PGPORT": "5432",
            "PGUSER": SUPERUSER,
            "PGDATABASE": "postgres",
            "PGOPTIONS": " ".join(f"-c {name}={value}" for name, value in settings.items()),
        }

    def relation_files(self, connection: psycopg.Connection, names: Sequence[str]) -> list[Path]:
        """The main-fork files (all segments) of tables or indexes."""
        files: list[Path] = []
        for name in names:
            row = connection.execute("select pg_relation_filepath(%s::regclass)", (name,)).fetchone()
            assert row is not None
            first = self.data / row[0]
            files += [first, *sorted(first.parent.glob(first.name + ".*"))]
        return files


def drop_page_cache(data: Path) -> None:
    """Empty the page cache, or at least throw out what belongs to this data directory."""
    os.sync()
    try:
        DROP_CACHES.write_text("3")
        return
    except OSError:
        pass
    for directory, _, names in os.walk(data):
        for name in names:
            try:
                fd = os.open(os.path.join(directory, name), os.O_RDONLY)
            except OSError:
                continue
            try:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)


def drops_whole_cache() -> bool:
    """Whether cold means an empty page cache (and not only evicted data files)."""
    return os.access(DROP_CACHES, os.W_OK)
