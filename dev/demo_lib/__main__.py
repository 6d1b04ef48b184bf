"""Load, choose, contest, show.  Started by dev/demo."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psycopg
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from lookbench.machine import describe, random_reads
from lookbench.server import BASE_SETTINGS, SUPERUSER, Server, ServerError, drops_whole_cache
from lookbench.variants import LIBRARY, Variant, make_variants

from . import show
from .contest import CACHED_BUFFERS, CACHED_REPETITIONS, COLD_BUFFERS, COLD_REPETITIONS, Contest, Outcome
from .keep import control, write_compare
from .load import fill
from .queries import NoQueries, Query, choose

FIO_SECONDS = 3


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bindir", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--user", required=True)
    parser.add_argument("--expected", type=int, default=0, help="bytes of rows on standard input, about; 0: generate")
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args()


class Demo:
    def __init__(self, options: argparse.Namespace, console: Console) -> None:
        self.options = options
        self.console = console
        self.began = time.monotonic()
        self.server = Server(options.bindir, options.work / "data", options.work, options.user)
        self.base = {"shared_preload_libraries": LIBRARY, "shared_buffers": COLD_BUFFERS}

    def say(self, text: str, commands: bool = False) -> None:
        """Prose is wrapped between words; commands are left whole, to be copied."""
        self.console.print(text, soft_wrap=commands)

    # ---- the parts --------------------------------------------------------

    def load(self) -> list[Query]:
        self.server.create(BASE_SETTINGS)
        self.server.start(self.base)
        with closing(self.server.connect()) as connection:
            connection.execute(f"create extension {LIBRARY}")
            rows = fill(connection, self.options.expected, self.console)
            sizes = connection.execute(
                "select pg_size_pretty(pg_table_size('files')), pg_size_pretty(pg_relation_size('files_package')),"
                " (select count(*) from packages)"
            ).fetchone()
            assert sizes is not None
            kind = "paths of Debian's packages" if self.options.expected else "generated paths"
            self.say(f"{rows:,} {kind}, {sizes[2]:,} packages; table {sizes[0]}, index {sizes[1]}, "
                     f"shared_buffers {COLD_BUFFERS}")
            self.heap = self.server.relation_files(connection, ["files"])[0]
            return choose(connection)

    def ceiling(self) -> int | None:
        """The disk's random reads per second at depth 64, and a line about it."""
        self.server.stop()
        with self.console.status("the disk's random reads per second (fio)"):
            single = random_reads(self.heap, 1, FIO_SECONDS)
            deep = random_reads(self.heap, 64, FIO_SECONDS)
        if single is None or deep is None:
            self.say("fio cannot be used here: the disk's ceiling is unknown")
            return None
        machine = describe(self.heap)
        self.say(f"{machine['cores']} cores of {machine['cpu']}; this disk reads {single:,} random blocks/s one at "
                 f"a time and {deep:,} with 64 under way")
        return deep

    def variants(self) -> list[Variant]:
        uring = self.server.major >= 18 and self.server.starts_with(self.base | {"io_method": "io_uring"})
        stock, bitmap, *_, ahead = make_variants(("stock", "bitmap", "lookahead"), (), self.server, True, uring)
        return [stock, bitmap, ahead]

    def contest(self, contest: Contest, queries: list[Query]) -> tuple[list[dict[str, Outcome]], list[dict[str, Outcome]]]:
        total = len(queries) * (len(contest.variants) * COLD_REPETITIONS + (len(contest.variants) + 1) * CACHED_REPETITIONS)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console, disable=not self.console.is_terminal, transient=True) as progress:
            task = progress.add_task("", total=total)

            def ask(state: str, number: int, query: Query) -> dict[str, Outcome]:
                def tick(variant: str) -> None:
                    progress.update(task, advance=1, description=f"query {number} of {len(queries)}, {state}, {variant}")

                return (contest.cold if state == "cold" else contest.cached)(query, tick)

            cold = [ask("cold", number, query) for number, query in enumerate(queries, 1)]
            cached = [ask("cached", number, query) for number, query in enumerate(queries, 1)]
        return cold, cached

    def explain(self, contest: Contest, query: Query) -> None:
        """One cold execution with everything that EXPLAIN has to say."""
        ahead = contest.variants[-1]
        contest.restart_cold(ahead)
        with closing(self.server.connect(ahead.session)) as connection:
            contest.explain(connection, query)
            show.explained(self.console, contest.explain(connection, query, "(analyze, buffers)"))
            if self.server.major < 18:
                show.last_statement(self.console, connection)

    def ending(self, example: str) -> None:
        psql = f"{self.server.bindir}/psql -h {self.options.work} -U {SUPERUSER} postgres"
        if not self.options.keep:
            self.say("Server and data are removed now. To keep them for experiments of your own: dev/demo --keep")
            return
        compare = write_compare(self.server, self.options.work, self.options.user, example)
        self.say("The server stays. To ask a query of yours with look-ahead off and on, each time with empty caches:\n"
                 f"  {compare} 'select ...'\n"
                 "To use it by hand, where the second execution finds cached what the first has read:\n"
                 f"  {psql}\n"
                 "  set enable_bitmapscan = off; set enable_seqscan = off;   -- leave the index scan\n"
                 "  set pg_lookahead.enable = off;                           -- stock; on: look-ahead\n"
                 f"  explain (analyze, buffers) {example};\n"
                 f"{self.explain_hint()}"
                 "To stop and remove it:\n"
                 f"  {control(self.server, self.options.user)} stop && rm -r {self.options.work}", commands=True)

    def explain_hint(self) -> str:
        """Before 18, EXPLAIN says nothing about look-ahead."""
        if self.server.major >= 18:
            return ""
        return "To see look-ahead in the plan as well:\n  select * from pg_lookahead_explain('select ...');\n"

    # ---- all of it --------------------------------------------------------

    def run(self) -> int:
        self.say(f"PostgreSQL {self.server.version}, a server of its own in {self.options.work}")
        queries = self.load()
        ceiling = self.ceiling()
        variants = self.variants()
        contest = Contest(self.server, variants)
        method = "page cache emptied" if drops_whole_cache() else "the server's files evicted from the page cache"
        cold, cached = self.contest(contest, queries)
        self.console.print()
        show.results(self.console, f"Cold: server restarted, {method}; median of {COLD_REPETITIONS}", queries, cold, ceiling)
        self.say("Below the times: blocks read per second. Below the gain (over the stock index scan): the "
                 f"share of the disk's ceiling. Bitmap scan with {_described(variants[1])}.\n")
        show.results(self.console, f"Cached: all blocks in shared_buffers ({CACHED_BUFFERS}); median of {CACHED_REPETITIONS}", queries, cached, None)
        self.say("Cached, nothing waits for the disk: there is little to gain or lose. Noise: by how much stock differs from itself, "
                 "asked in two sessions by turns; a gain or loss within that is none.\n")
        self.explain(contest, queries[1])
        for complaint in contest.complaints:
            self.say(f"[red]problem:[/red] {complaint}")
        if not contest.complaints:
            self.say("All three returned the same rows; pg_lookahead also in the order of the stock index scan "
                     "and with the same plan.")
        if self.options.keep:
            self.server.stop()
            self.server.start(self.base)
        else:
            self.server.stop()
        self.ending(queries[1].statements[0])
        return 1 if contest.complaints else 0


def _described(variant: Variant) -> str:
    """What makes the bitmap scan as fast as it can be."""
    settings = dict(variant.session) | dict(variant.server)
    return ", ".join(f"{name} = {settings[name]}" for name in ("effective_io_concurrency", "io_method") if name in settings)


def main() -> int:
    console = Console(highlight=False, soft_wrap=False)
    try:
        return Demo(parse(), console).run()
    except KeyboardInterrupt:
        console.print("interrupted")
        return 130
    except (ServerError, NoQueries, psycopg.Error, OSError, subprocess.SubprocessError) as error:
        console.print(f"error: {str(error).strip().splitlines()[0]}", markup=False)
        return 1


if __name__ == "__main__":
    sys.exit(main())
