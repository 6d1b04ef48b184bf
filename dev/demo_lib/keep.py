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
control='{run_as}{bindir}/pg_ctl -w -D {data} -l {data}/compare.log'
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


def write_compare(server: Server, work: Path, user: str, default: str) -> Path:
    libraries = os.environ.get("LD_LIBRARY_PATH")
    environment = f"env LD_LIBRARY_PATH={shlex.quote(libraries)} " if libraries else ""
    run_as = f"setpriv --reuid={user} --regid={user} --clear-groups " if os.geteuid() == 0 else ""
    script = work / "compare"
    script.write_text(SCRIPT.format(
        default=default,
        default_quoted=shlex.quote(default),
        run_as=run_as + environment,
        libraries=environment,
        bindir=server.bindir,
        data=server.data,
        empty=WHOLE_CACHE if os.geteuid() == 0 else FILES_ONLY.format(data=server.data),
        sockets=work,
        user=SUPERUSER,
    ))
    script.chmod(0o755)
    return script
