"""What --keep leaves besides the server: a script that asks any query cold, off and on."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from lookbench.server import DROP_CACHES, SUPERUSER, Server

SCRIPT = """#!/bin/sh
# compare - ask a query with look-ahead off and on, each time with empty caches.
#
#   compare ['QUERY']     without one: {default}
set -e
query=${{1:-{default_quoted}}}
control='{control} -w -l {data}/compare.log'
for value in off on; do
	$control -m fast restart >/dev/null
	{empty}
	echo "---- pg_lookahead.enable = $value"
	{libraries}{bindir}/psql -X -q -h {sockets} -U {user} -v value=$value -v query="$query" postgres <<'END'
\\pset format unaligned
\\pset tuples_only on
set enable_bitmapscan = off;
set enable_seqscan = off;
set pg_lookahead.enable = :value;
select * from pg_lookahead_explain(:'query');
END
done
"""

WHOLE_CACHE = f"sync; echo 3 >{DROP_CACHES}"
FILES_ONLY = "find {data} -type f -exec dd if={{}} iflag=nocache count=0 status=none ';'"


def libraries() -> str:
    """What goes before a program of the server's."""
    path = os.environ.get("LD_LIBRARY_PATH")
    return f"env LD_LIBRARY_PATH={shlex.quote(path)} " if path else ""


def control(server: Server, user: str) -> str:
    """pg_ctl for this server, to be run by whoever runs this."""
    run_as = f"setpriv --reuid={user} --regid={user} --clear-groups " if os.geteuid() == 0 else ""
    return f"{run_as}{libraries()}{server.bindir}/pg_ctl -D {server.data}"


def write_compare(server: Server, work: Path, user: str, default: str) -> Path:
    script = work / "compare"
    script.write_text(SCRIPT.format(
        default=default,
        default_quoted=shlex.quote(default),
        control=control(server, user),
        libraries=libraries(),
        bindir=server.bindir,
        data=server.data,
        empty=WHOLE_CACHE if os.geteuid() == 0 else FILES_ONLY.format(data=server.data),
        sockets=work,
        user=SUPERUSER,
    ))
    script.chmod(0o755)
    return script
