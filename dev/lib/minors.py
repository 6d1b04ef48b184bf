"""What is known of the minors of one major: a file of dev/fingerprint.d.

    minor 18 54e9fd92a0be06d6 commit 005c1971f2bc
    src/backend/access/nbtree/nbtutils.c function _bt_killitems 0:cc09... 14:492b... 15:3418...

A line "minor" has the total of all definitions of that minor, and where its sources came
from.  The others are the definitions that are not the same in all known minors: the first
minor with each hash, "-" where there is no such definition.  So the file is small, and says
nothing of what never changed.  For a new minor, the sources of a known one are needed at the
same time, which has all that; its total shows that it is the same.
"""

NONE = "-"


class Minors:
    def __init__(self, path):
        self.path = path
        self.totals = {}  # minor -> (total, origin)
        self.changed = {}  # (path, kind, name) -> {minor: hash}, of all minors
        self.reference = None  # a Source of a known minor
        if path.exists():
            self.read()

    def read(self):
        rows = []
        for line in self.path.read_text().split("\n"):
            words = line.split()
            if not words or words[0] == "#":
                continue
            if words[0] == "minor":
                self.totals[int(words[1])] = (words[2], " ".join(words[3:]))
            else:
                rows.append(words)
        for words in rows:
            steps = dict(step.split(":") for step in words[3:])
            value = NONE
            values = {}
            for minor in sorted(self.totals):
                value = steps.get(str(minor), value)
                values[minor] = value
            self.changed[tuple(words[:3])] = values

    def write(self):
        major = self.path.name
        lines = [
            f"# PostgreSQL {major}: known minors, and what differs between them.",
            "# Made by dev/fingerprint; dev/lib/minors.py describes it.",
        ]
        for minor in sorted(self.totals):
            lines.append(" ".join(("minor", str(minor), *self.totals[minor])))
        for key in sorted(self.changed):
            steps = []
            last = NONE
            for minor, value in sorted(self.changed[key].items()):
                if value != last or not steps:
                    steps.append(f"{minor}:{value}")
                last = value
            lines.append(" ".join((*key, *steps)))
        self.path.write_text("\n".join(lines) + "\n")

    def learn(self, source):
        """Add a minor, or compare a known one.  Returns what is wrong, or None."""
        version = f"{source.major}.{source.minor}"
        if source.minor in self.totals:
            if self.totals[source.minor][0] != source.total():
                return f"{version}: the sources are not those of {self.path}"
            self.reference = self.reference or source
            return None
        if self.totals and self.reference is None:
            known = ", ".join(f"{source.major}.{m}" for m in sorted(self.totals))
            return f"{version}: the sources of a known minor are needed as well: {known}"
        items = source.items()
        before = self.reference.items() if self.reference else items
        for key in set(items) | set(before):
            if key not in self.changed and items.get(key) != before.get(key):
                self.changed[key] = {m: before.get(key, NONE) for m in self.totals}
        for key, values in self.changed.items():
            values[source.minor] = items.get(key, NONE)
        self.totals[source.minor] = (source.total(), source.origin)
        self.reference = self.reference or source
        return None
