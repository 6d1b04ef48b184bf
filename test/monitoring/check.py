#!/usr/bin/env python3
#
# test/monitoring/check.py - what test/monitoring/run checks; see there.
#
# Runs as the user who may own a server, and writes below --work only.  All programs listen at the
# loopback address, at ports that the system chooses.

import argparse
import csv
import io
import json
import re
import socket
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

VIEWS = {
    "pg_stat_lookahead",
    "pg_stat_lookahead_statements",
    "pg_stat_lookahead_indexes",
    "pg_stat_lookahead_info",
    "pg_stat_lookahead_index_build",
    "pg_lookahead_report",
}
# without the library, only this one has rows
ALWAYS = "pg_lookahead_report"
NAME = re.compile(r"\bpg_(?:stat_)?lookahead\w*")

passed = failed = 0


def test_that(text, good, detail=""):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
    print(f"{'ok' if good else 'not ok'} {passed + failed} - {text}")
    if not good and detail:
        for line in str(detail).splitlines()[:20]:
            print(f"# {line}")


@contextmanager
def tested(text):
    """A test for what has to go without an exception."""
    try:
        yield
    except Exception:
        test_that(text, False, traceback.format_exc())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- the files ---------------------------------------------------------------------------


class Files:
    """The files of monitoring/, as load.py has left them: metrics and queries by name."""

    def __init__(self, directory):
        d = Path(directory)
        self.exporter = json.loads((d / "postgres_exporter/queries.json").read_text())
        self.collectors = [json.loads(p.read_text()) for p in sorted((d / "sql_exporter").glob("*.collector.json"))]
        self.jobs = json.loads((d / "sql_exporter/prometheus-sql-exporter.json").read_text())
        self.pgwatch = json.loads((d / "pgwatch/metrics.json").read_text())
        self.dashboard = json.loads((d / "grafana/pg_lookahead.json").read_text())
        self.unknown = (d / "unknown").read_text()

    def exporter_metrics(self):
        """name -> (type, labels)"""
        found = {}
        for query, entry in self.exporter.items():
            columns = [(c, usage) for column in entry["metrics"] for c, usage in column.items()]
            labels = frozenset(c for c, usage in columns if usage["usage"] == "LABEL")
            for column, usage in columns:
                if usage["usage"] != "LABEL":
                    found[f"{query}_{column}"] = (usage["usage"].lower(), labels)
        return found

    def collector_metrics(self):
        return {
            m["metric_name"]: (m["type"], frozenset(m.get("key_labels", [])))
            for collector in self.collectors
            for m in collector["metrics"]
        }

    def job_metrics(self):
        """query -> (values, labels)"""
        return {q["name"]: (set(q["values"]), set(q.get("labels", []))) for job in self.jobs["jobs"] for q in job["queries"]}

    def queries(self):
        """(name, view, SQL) of all formats"""
        for query, entry in self.exporter.items():
            yield f"postgres_exporter's {query}", query, entry["query"]
        for collector in self.collectors:
            for query in collector["queries"]:
                yield f"sql_exporter's {query['query_name']}", query["query_name"], query["query"]
        for job in self.jobs["jobs"]:
            for query in job["queries"]:
                yield f"prometheus-sql-exporter's {query['name']}", query["name"], query["query"]
        for name, metric in self.pgwatch["metrics"].items():
            view = ("pg_" if name == "lookahead_report" else "pg_stat_") + name
            for version, sql in metric["sqls"].items():
                yield f"pgwatch's {name} for {version}", view, sql


def check_keys(text, entry, required, optional=()):
    keys = set(entry)
    test_that(text, set(required) <= keys <= set(required) | set(optional), f"keys: {sorted(keys)}")


def check_files(files):
    ours = files.exporter_metrics()
    test_that("postgres_exporter: a query for each view", set(files.exporter) == VIEWS, set(files.exporter))
    for query, entry in files.exporter.items():
        check_keys(f"postgres_exporter: keys of {query}", entry, ("query", "metrics"), ("master", "cache_seconds"))
    usages = {usage["usage"] for e in files.exporter.values() for m in e["metrics"] for usage in m.values()}
    test_that("postgres_exporter: usages", usages == {"LABEL", "COUNTER", "GAUGE"}, usages)

    for collector in files.collectors:
        name = collector["collector_name"]
        check_keys(f"sql_exporter: keys of {name}", collector, ("collector_name", "metrics", "queries"), ("min_interval",))
        names = {q["query_name"] for q in collector["queries"]}
        for m in collector["metrics"]:
            keys = {"metric_name", "type", "help", "values", "query_ref"}
            if not (keys <= set(m) <= keys | {"key_labels"}) or m["query_ref"] not in names or len(m["values"]) != 1:
                test_that(f"sql_exporter: {m['metric_name']}", False, m)
    theirs = files.collector_metrics()
    test_that("sql_exporter exports what postgres_exporter does", theirs == ours, set(theirs.items()) ^ set(ours.items()))
    theirs = {f"{q}_{v}": frozenset(labels) for q, (values, labels) in files.job_metrics().items() for v in values}
    test_that("prometheus-sql-exporter exports what postgres_exporter does",
              theirs == {name: labels for name, (_, labels) in ours.items()}, theirs)
    same = {" ".join(sql.split()) for name, view, sql in files.queries() if not name.startswith("pgwatch")}
    test_that("by the same queries", len(same) == len(VIEWS), f"{len(same)} queries")

    metrics = files.pgwatch["metrics"]
    for name, metric in metrics.items():
        check_keys(f"pgwatch: keys of {name}", metric, ("sqls", "is_instance_level"),
                   ("gauges", "description"))
    for name, preset in files.pgwatch["presets"].items():
        test_that(f"pgwatch: preset {name} has all metrics", set(preset["metrics"]) == set(metrics))
    test_that("dashboard: Grafana's own models know every key", not files.unknown, files.unknown)
    check_dashboard(files.dashboard, set(ours))


def expressions(dashboard):
    """(title of the panel, expression)"""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def check_dashboard(dashboard, metrics):
    panels = dashboard["panels"]
    required = {"id", "type", "title", "gridPos"}
    test_that("dashboard: what each panel has",
              all(required <= set(p) and (p["type"] == "row" or p["targets"] and {"fieldConfig", "options", "datasource"} <= set(p))
                  for p in panels))
    kinds = {p["type"] for p in panels}
    test_that("dashboard: panels of Grafana's own", kinds <= {"row", "stat", "timeseries", "bargauge", "table"}, kinds)
    test_that("dashboard: ids differ", len({p["id"] for p in panels}) == len(panels))
    cells = [(x, y) for p in panels for g in [p["gridPos"]]
             for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])]
    test_that("dashboard: no panel covers another", len(cells) == len(set(cells)))
    test_that("dashboard: all within 24 columns", max(x for x, y in cells) < 24)
    variables = {v["name"] for v in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps(panels)))
    test_that("dashboard: variables", {v for v in used if not v.startswith("__")} == variables, used)
    test_that("dashboard: everybody's data source",
              all(p.get("datasource", {}).get("uid", "${datasource}") == "${datasource}" for p in panels))
    asked = set()
    for title, expression in expressions(dashboard):
        names = set(NAME.findall(expression))
        asked |= names
        test_that(f"dashboard: '{title}' asks for metrics that there are", names and names <= metrics, names - metrics)
    asked |= set(NAME.findall(json.dumps(dashboard["templating"])))
    test_that("dashboard: so do its variables", asked <= metrics, asked - metrics)


# ---- a server --------------------------------------------------------------------------


class Server:
    def __init__(self, bindir, work):
        self.bindir, self.data = Path(bindir), Path(work) / "data"
        self.port = free_port()
        self.work = work

    def run(self, program, *args):
        return subprocess.run([self.bindir / program, *args], check=True, capture_output=True, text=True).stdout

    def init(self):
        self.run("initdb", "-D", self.data, "-U", "postgres", "-N", "-A", "trust", "--no-locale", "-E", "UTF8")

    def start(self, libraries):
        (self.data / "postgresql.auto.conf").write_text(
            f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nfsync = off\n"
            f"autovacuum = off\nshared_buffers = 2MB\nmax_connections = 20\ncompute_query_id = on\ntrack_io_timing = on\n"
            f"shared_preload_libraries = '{libraries}'\n")
        self.run("pg_ctl", "-D", self.data, "-w", "-l", Path(self.work) / "server.log", "start")

    def stop(self):
        self.run("pg_ctl", "-D", self.data, "-w", "-m", "fast", "stop")

    def psql(self, sql, user="postgres", database="postgres"):
        """Rows as dictionaries."""
        done = subprocess.run(
            [self.bindir / "psql", "-XqAt", "--csv", "-P", "tuples_only=off", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1",
             "-p", str(self.port), "-U", user, "-d", database, "-c", sql],
            capture_output=True, text=True)
        if done.returncode != 0 or done.stderr:
            raise RuntimeError(done.stderr)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def url(self, database="postgres"):
        return f"postgresql://watcher@127.0.0.1:{self.port}/{database}?sslmode=disable"


SCHEMA = """
CREATE EXTENSION pg_lookahead;
CREATE ROLE watcher LOGIN;
GRANT pg_monitor TO watcher;
CREATE TABLE t AS SELECT i AS id, hashint4(i) AS a, repeat('w', 200) AS w FROM generate_series(1, 40000) i;
CREATE INDEX t_a ON t (a);
CREATE INDEX t_id ON t (id);
CREATE FUNCTION unsteady(i int) RETURNS int LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN i; END';
VACUUM ANALYZE t;
"""
WORK = """
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET max_parallel_workers_per_gather = 0;
SET pg_lookahead.force = on;
SET pg_lookahead.enable_index_build = on;
SELECT count(w) FROM (SELECT w FROM t WHERE a > 0 ORDER BY a OFFSET 0) s;
SELECT count(t.w) FROM (SELECT unsteady(id) AS id FROM t WHERE id < 2000 OFFSET 0) o JOIN t ON t.id = o.id;
REINDEX INDEX t_id;
"""


def check_queries(files, server, preloaded):
    where = "with the library" if preloaded else "without the library"
    for name, view, sql in files.queries():
        try:
            rows = server.psql(sql, user="watcher")
        except RuntimeError as e:
            test_that(f"{name}, {where}", False, e)
            continue
        test_that(f"{name}, {where}: rows", bool(rows) == (preloaded or view == ALWAYS), rows[:2])
        if not rows:
            continue
        if name.startswith("pgwatch"):
            test_that(f"{name}: columns", "epoch_ns" in rows[0], list(rows[0]))
            short = view.removeprefix("pg_stat_").removeprefix("pg_")
            gauges = files.pgwatch["metrics"][short].get("gauges", [])
            test_that(f"{name}: gauges are columns", set(gauges) <= set(rows[0]), gauges)
        else:
            columns = {c for m in files.exporter[view]["metrics"] for c in m}
            test_that(f"{name}: columns", set(rows[0]) == columns, set(rows[0]) ^ columns)
        labels = [tuple(v for c, v in r.items() if c.startswith("tag_") or c in LABELS) for r in rows]
        test_that(f"{name}: no two rows of the same labels", len(labels) == len(set(labels)), labels)
    if not preloaded:
        rows = server.psql("SELECT finding FROM pg_lookahead_report() WHERE severity = 'problem'", user="watcher")
        test_that("the report says that the library is not preloaded", any("does not preload" in r["finding"] for r in rows), rows)


LABELS = {"kind", "datname", "usename", "queryid", "schemaname", "relname", "indexrelname", "status", "reason", "severity"}

# ---- programs ----------------------------------------------------------------------------


def get(url):
    with urllib.request.urlopen(url, timeout=120) as answer:
        return answer.read().decode()


@contextmanager
def running(command, log, ready, env=None):
    with open(log, "w") as out:
        process = subprocess.Popen([str(c) for c in command], stdout=out, stderr=subprocess.STDOUT, env=env)
        try:
            for _ in range(1200):
                if process.poll() is not None:
                    raise RuntimeError(Path(log).read_text())
                try:
                    get(ready)
                    break
                except (urllib.error.URLError, OSError):
                    time.sleep(0.1)
            else:
                raise RuntimeError("it does not answer: " + Path(log).read_text())
            yield
        finally:
            process.terminate()
            process.wait(20)


@contextmanager
def exporter_running(program, directory, server, database="postgres"):
    port = free_port()
    command = [program, f"--extend.query-path={directory}/postgres_exporter/queries.yaml",
               f"--web.listen-address=127.0.0.1:{port}"]
    env = {"DATA_SOURCE_NAME": server.url(database), "PATH": "/usr/bin:/bin"}
    with running(command, f"{server.work}/exporter.log", f"http://127.0.0.1:{port}/", env):
        yield f"127.0.0.1:{port}"


def scrape(address):
    """name -> [(labels, value)], and the whole text"""
    text = get(f"http://{address}/metrics")
    found = {}
    for name, labels, value in re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)$", text, re.M):
        found.setdefault(name, []).append((dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)), float(value)))
    return found, text


def check_exporter(files, program, directory, server, prometheus):
    with exporter_running(program, directory, server) as address:
        found, text = scrape(address)
        test_that("postgres_exporter: the file was loaded without errors",
                  [v for _, v in found.get("pg_exporter_user_queries_load_error", [])] == [0.0],
                  found.get("pg_exporter_user_queries_load_error"))
        test_that("postgres_exporter: no error in the scrape", [v for _, v in found["pg_exporter_last_scrape_error"]] == [0.0],
                  Path(server.work, "exporter.log").read_text())
        for name, (kind, labels) in files.exporter_metrics().items():
            rows = found.get(name, [])
            test_that(f"postgres_exporter: {name}",
                      rows and f"# TYPE {name} {kind}\n" in text and all(labels <= set(r) for r, _ in rows), rows[:3])
        begun = sum(v for _, v in found["pg_stat_lookahead_scans_activated"])
        asked = server.psql("SELECT sum(scans_activated) AS n FROM pg_stat_lookahead", user="watcher")
        test_that("postgres_exporter: figures are the server's", 0 < begun <= int(asked[0]["n"]), (begun, asked))
        refused = [v for _, v in found["pg_stat_lookahead_statements_refusals"]]
        test_that("postgres_exporter: a statement that must not look ahead", max(refused) > 0, refused)
        if prometheus:
            with tested("prometheus"):
                check_prometheus(files, prometheus, address, server)


def when_answered(server, url, seconds=300):
    """What Prometheus says when it has figures, which need some scrapes, and work between them."""
    end = time.time() + seconds
    while True:
        answer = json.loads(get(url))
        if answer["data"]["result"] or time.time() > end:
            return answer
        server.psql(WORK)
        time.sleep(1)


def check_prometheus(files, program, exporter, server):
    port = free_port()
    work = Path(server.work)
    config = {"global": {"scrape_interval": "5s", "scrape_timeout": "5s"},
              "scrape_configs": [{"job_name": "postgres", "static_configs": [{"targets": [exporter]}]}]}
    (work / "prometheus.yml").write_text(json.dumps(config))
    command = [program, f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/prometheus-data",
               f"--web.listen-address=127.0.0.1:{port}"]
    with running(command, work / "prometheus.log", f"http://127.0.0.1:{port}/-/ready"):
        base = f"http://127.0.0.1:{port}/api/v1"
        for title, expression in expressions(files.dashboard):
            expression = expression.replace("$__rate_interval", "2m").replace("$__range", "2m").replace("$instance", ".*")
            try:
                answer = when_answered(server, f"{base}/query?" + urllib.parse.urlencode({"query": expression}))
            except urllib.error.HTTPError as e:
                test_that(f"dashboard: '{title}' has an answer", False, f"{expression}: {e.read().decode()}")
                continue
            test_that(f"dashboard: '{title}' has an answer", answer["data"]["result"], f"{expression}: {answer}")
        instances = json.loads(get(f"{base}/label/instance/values?" + urllib.parse.urlencode(
            {"match[]": "pg_stat_lookahead_scans_attached"})))
        test_that("dashboard: the variable has the server", instances["data"] == [exporter], instances)


def check_sql_exporter(files, program, server):
    """Debian's; it asks by itself, and tells what the last answer was."""
    work, port = Path(server.work), free_port()
    config = json.loads(json.dumps(files.jobs))
    for job in config["jobs"]:
        job.update(interval="1s", connections=[server.url().replace("postgresql://", "postgres://")])
    (work / "sql_exporter.yml").write_text(json.dumps(config))
    log = work / "sql_exporter.log"
    with running([program, f"-config.file={work}/sql_exporter.yml", f"-web.listen-address=127.0.0.1:{port}"], log,
                 f"http://127.0.0.1:{port}/metrics"):
        for _ in range(600):
            found, _ = scrape(f"127.0.0.1:{port}")
            if {f"sql_{query}" for query in files.job_metrics()} <= set(found):
                break
            time.sleep(0.2)
        for query, (values, labels) in files.job_metrics().items():
            rows = [r for r, _ in found.get(f"sql_{query}", [])]
            test_that(f"prometheus-sql-exporter: sql_{query}", {r["col"] for r in rows} == values and all(labels <= set(r) for r in rows),
                      f"{rows[:3]}\n{log.read_text()[-2000:]}")


def check_exporter_without(program, directory, server, database, text):
    """Ours are missing, or only the report is there; everybody else's figures go on."""
    with exporter_running(program, directory, server, database) as address:
        found, _ = scrape(address)
        test_that(f"postgres_exporter, {text}: the server is up", [v for _, v in found["pg_up"]] == [1.0], found.get("pg_up"))
        test_that(f"postgres_exporter, {text}: the server's own figures are there", "pg_stat_database_xact_commit" in found)
        ours = {n for n in found if NAME.match(n)}
        if database == "postgres":
            problems = [v for r, v in found.get("pg_lookahead_report_findings", []) if r["severity"] == "problem"]
            test_that(f"postgres_exporter, {text}: the report has a problem", problems and problems[0] > 0, problems)
            test_that(f"postgres_exporter, {text}: nothing else of ours", all(n.startswith(ALWAYS) for n in ours), ours)
            test_that(f"postgres_exporter, {text}: no error", [v for _, v in found["pg_exporter_last_scrape_error"]] == [0.0])
        else:
            test_that(f"postgres_exporter, {text}: nothing of ours", not ours, ours)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bindir", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--files", required=True)
    parser.add_argument("--exporter")
    parser.add_argument("--prometheus")
    parser.add_argument("--sql-exporter")
    args = parser.parse_args()

    files = Files(args.files)
    with tested("files"):
        check_files(files)
    server = Server(args.bindir, args.work)
    server.init()
    server.start("pg_lookahead")
    try:
        for statement in SCHEMA.strip().splitlines():
            server.psql(statement)
        server.psql("CREATE DATABASE bare")
        server.psql(WORK)
        check_queries(files, server, True)
        if args.exporter:
            with tested("postgres_exporter"):
                check_exporter(files, args.exporter, args.files, server, args.prometheus)
            with tested("postgres_exporter without the extension"):
                check_exporter_without(args.exporter, args.files, server, "bare", "in a database without the extension")
        if args.sql_exporter:
            with tested("prometheus-sql-exporter"):
                check_sql_exporter(files, args.sql_exporter, server)
        server.stop()
        server.start("")
        check_queries(files, server, False)
        if args.exporter:
            with tested("postgres_exporter without the library"):
                check_exporter_without(args.exporter, args.files, server, "postgres", "without the library")
    finally:
        server.stop()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
