#!/usr/bin/env python3
#
# test/monitoring/load.py FILES OUT - reads what monitoring/ has, as the programs would.
#
# YAML files become JSON files of the same names in OUT, for check.py, which runs as another user.
# The dashboard is read by the models that Grafana publishes of its own schema, and written again:
# what is missing then is a key that Grafana does not know there.  Prints each such key, and nothing
# else.

import json
import sys
from pathlib import Path

import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard


def lost(before, after, where="dashboard"):
    """What of before is not in after, or not the same."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key not in after:
                yield f"{where}.{key} = {value}"
            else:
                yield from lost(value, after[key], f"{where}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for n, pair in enumerate(zip(before, after)):
            yield from lost(*pair, f"{where}[{n}]")
    elif before != after:
        yield f"{where} = {before}, and then {after}"


def main():
    files, out = Path(sys.argv[1]), Path(sys.argv[2])
    for path in sorted(files.glob("*/*.y*ml")):
        target = out / path.relative_to(files).with_suffix(".json")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(yaml.safe_load(path.read_text())))
    dashboard = json.loads((files / "grafana/pg_lookahead.json").read_text())
    register_default_plugins()
    again = json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))
    for line in lost(dashboard, again):
        print(line)


if __name__ == "__main__":
    main()
