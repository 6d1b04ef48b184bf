"""
server.py - a temporary PostgreSQL server, and connections that keep everything.

Server   initdb, start, stop and removal of a server in a fresh directory.  PostgreSQL
         refuses to run as root, so a test started by root runs the server as an
         unprivileged user through setpriv; the test itself stays what it is and
         connects through the server's socket.
Session  a connection on the level of libpq.  execute() returns an Outcome: rows
         as the server's text, or the whole error (SQLSTATE, message, detail, hint,
         context), and notices.  Nothing is converted, so two outcomes are equal if
         and only if a client could not tell them apart.
"""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time

from psycopg import Error, pq

# Every error field that a user can see, except file, line and function.
ERROR_FIELDS = (
    pq.DiagnosticField.SEVERITY,
    pq.DiagnosticField.SQLSTATE,
    pq.DiagnosticField.MESSAGE_PRIMARY,
    pq.DiagnosticField.MESSAGE_DETAIL,
    pq.DiagnosticField.MESSAGE_HINT,
    pq.DiagnosticField.CONTEXT,
)

PIN_LOOKS = 60


def server_user():
    """The user that owns the server: ourselves, or somebody harmless for root."""
    if os.getuid() != 0:
        return pwd.getpwuid(os.getuid())
    for name in (os.environ.get("LA_SERVER_USER"), "postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except (KeyError, TypeError):
            continue
    raise SystemExit("no unprivileged user to run a server as")


class Server:
    """One temporary server; use as a context manager."""

    def __init__(self, bindir, preload, settings, keep=False, init=()):
        self.bindir = bindir
        self.keep = keep
        self.init = init
        self.user = server_user()
        self.dir = tempfile.mkdtemp(prefix="pg_lookahead.fuzz.",
                                    dir=os.environ.get("TMPDIR", "/var/tmp"))
        os.chmod(self.dir, 0o755)
        if os.getuid() == 0:
            os.chown(self.dir, self.user.pw_uid, self.user.pw_gid)
        self.data = os.path.join(self.dir, "data")
        self.log = os.path.join(self.dir, "server.log")
        self.settings = dict(settings)
        if preload:
            self.settings["shared_preload_libraries"] = preload
        self.running = False

    def command(self, *args):
        """Run a command as the owner of the server."""
        argv = list(args)
        if os.getuid() == 0:
            argv = ["setpriv", f"--reuid={self.user.pw_uid}",
                    f"--regid={self.user.pw_gid}", "--clear-groups", "--"] + argv
        env = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        env["HOME"] = self.dir
        env["LC_ALL"] = "C.UTF-8"
        done = subprocess.run(argv, cwd=self.dir, env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(args)} failed:\n{done.stdout}\n{self.tail()}")
        return done.stdout

    def bin(self, name):
        return os.path.join(self.bindir, name)

    def tail(self):
        """What the server said last: the failed assertion, or its last lines."""
        try:
            with open(self.log, errors="replace") as f:
                lines = f.readlines()
        except OSError:
            return ""
        traps = [i for i, line in enumerate(lines) if "TRAP:" in line or "PANIC:" in line]
        if traps:
            return "".join(lines[traps[-1]:][:15])
        return "".join(lines[-20:])

    def __enter__(self):
        self.command(self.bin("initdb"), "-D", self.data, "-U", "fuzz", "-A", "trust",
                     "--no-sync", "-E", "UTF8", "--locale=C.UTF-8", *self.init)
        lines = [f"unix_socket_directories = '{self.dir}'", "listen_addresses = ''"]
        for name, value in self.settings.items():
            lines.append(f"{name} = '{value}'")
        with open(os.path.join(self.data, "postgresql.conf"), "a") as f:
            f.write("\n".join(lines) + "\n")
        self.start()
        return self

    def start(self):
        self.command(self.bin("pg_ctl"), "-D", self.data, "-l", self.log, "-t", "600", "-w", "start")
        self.running = True

    def stop(self, mode):
        self.command(self.bin("pg_ctl"), "-D", self.data, "-m", mode, "-t", "600", "-w", "stop")
        self.running = False

    def is_there(self):
        return os.path.exists(os.path.join(self.data, "postmaster.pid"))

    def __exit__(self, *exc):
        if self.running and self.is_there():
            # fast would wait for nothing, too, but a server that hangs must not hang us
            try:
                self.command(self.bin("pg_ctl"), "-D", self.data, "-m", "fast",
                             "-t", "30", "-w", "stop")
            except SystemExit:
                self.command(self.bin("pg_ctl"), "-D", self.data, "-m", "immediate",
                             "-w", "stop")
        if self.keep:
            print(f"kept: {self.dir}")
        else:
            shutil.rmtree(self.dir, ignore_errors=True)

    def complaints(self):
        """Lines of the server log that no run may leave behind."""
        bad = ("PANIC:", "TRAP:", "refcount leak", "was not closed", "leaked",
               "was terminated by signal", "terminated by exception",
               "could not read block", "invalid page", "unexpected data beyond EOF")
        with open(self.log, errors="replace") as f:
            return [line.rstrip() for line in f if any(b in line for b in bad)]


class Outcome:
    """What one statement returned.  Compare with ==."""

    __slots__ = ("rows", "error", "notices", "tag")

    def __init__(self, rows, error, notices, tag):
        self.rows = rows
        self.error = error
        self.notices = notices
        self.tag = tag

    def key(self, ordered=True):
        rows = self.rows
        if rows is not None and not ordered:
            rows = sorted(rows, key=lambda r: [(c is None, c or b"") for c in r])
        return (rows, self.error, self.notices, self.tag)

    def renamed(self, table, child):
        """The same with the numbers of the copies taken out of the error."""
        error = self.error and tuple(
            e and re.sub(rb"\bcopy[12]", table, re.sub(rb"\bchild[12]", child, e))
            for e in self.error)
        return Outcome(self.rows, error, self.notices, self.tag)

    def __eq__(self, other):
        return self.key() == other.key() if isinstance(other, Outcome) else NotImplemented


class Lost(Exception):
    """The connection is gone: the server crashed, or nearly."""


class Session:
    def __init__(self, server, setup=(), database="postgres"):
        conninfo = (f"host={server.dir} user=fuzz dbname={database} "
                    "application_name=fuzz connect_timeout=10")
        self.conn = pq.PGconn.connect(conninfo.encode())
        if self.conn.status != pq.ConnStatus.OK:
            raise Lost(self.conn.error_message.decode())
        self.notices = []
        self.conn.notice_handler = self.on_notice
        for sql in setup:
            self.must(sql)

    def on_notice(self, result):
        self.notices.append(tuple(result.error_field(f) for f in ERROR_FIELDS))

    def execute(self, sql):
        self.notices = []
        try:
            res = self.conn.exec_(sql.encode())
        except Error as e:
            raise Lost(f"{sql}\n{e}") from e
        status = res.status
        if self.conn.status != pq.ConnStatus.OK:
            raise Lost(f"{sql}\n{res.error_message.decode(errors='replace')}")
        if status == pq.ExecStatus.TUPLES_OK:
            cols = range(res.nfields)
            rows = [tuple(res.get_value(i, j) for j in cols) for i in range(res.ntuples)]
            out = Outcome(rows, None, self.notices, res.command_status)
        elif status == pq.ExecStatus.COPY_OUT:
            try:
                out = self.copied()
            except Error as e:
                raise Lost(f"{sql}\n{e}") from e
        elif status in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY):
            out = Outcome(None, None, self.notices, res.command_status)
        else:
            error = tuple(res.error_field(f) for f in ERROR_FIELDS)
            if error[1] is None:        # libpq's own
                raise Lost(f"{sql}\n{res.error_message.decode(errors='replace')}")
            out = Outcome(None, error, self.notices, None)
        res.clear()
        return out

    def copied(self):
        """The outcome of COPY TO STDOUT, each message of which counts as a row."""
        rows = []
        while True:
            size, data = self.conn.get_copy_data(0)
            if size <= 0:
                break
            rows.append((bytes(data),))
        out = None
        while (res := self.conn.get_result()) is not None:
            if res.status == pq.ExecStatus.COMMAND_OK:
                out = Outcome(rows, None, self.notices, res.command_status)
            else:
                out = Outcome(rows, tuple(res.error_field(f) for f in ERROR_FIELDS), self.notices, None)
            res.clear()
        return out

    def must(self, sql):
        """Execute what cannot fail, and return its rows as strings."""
        out = self.execute(sql)
        if out.error:
            raise SystemExit(f"unexpected error: {sql}\n  " + " | ".join(
                e.decode() for e in out.error if e))
        return [tuple(None if c is None else c.decode() for c in r) for r in out.rows or ()]

    def close(self):
        self.conn.finish()


def left_pins(session):
    """The buffers that stay pinned; the checkpointer's and the background writer's pins are short."""
    left = None
    for _ in range(PIN_LOOKS):
        seen = set(session.must(
            "select relfilenode, relblocknumber from pg_buffercache b where pinning_backends > 0 and reldatabase = "
            "(select oid from pg_database where datname = current_database()) and relfilenode in "
            "(select pg_relation_filenode(oid) from pg_class where relnamespace >= 2200)"))
        left = seen if left is None else left & seen
        if not left:
            break
        time.sleep(1)
    return sorted(left)


def wait_until(predicate, seconds=10):
    end = time.time() + seconds
    while time.time() < end:
        if predicate():
            return True
        time.sleep(0.05)
    return False
