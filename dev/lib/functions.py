"""Which of the server's functions do more than compute.

The server's C sources are read as text: each function, macro and initialized variable with the
names in its body.  A name of another function, macro or variable in a body counts as a call,
whether it is called there or its address is taken, which covers most function pointers.  So the
graph has rather too many calls than too few.  What a function calls by the catalog (fmgr) is not
in it: src/attach/ finds that by types and operators.

From the functions that pg_proc.dat names, the graph is followed to

  notices    ereport() or elog() at a level below ERROR that clients see, or at a variable one
  state      a variable of a setting (guc_tables.c, guc_parameters.dat), or a name of
             dev/functions.d/state
  raises     ereport(ERROR), or an error that a caller may have asked to be given
  holds      a name of dev/functions.d/holds

and not beyond the names in dev/functions.d/cuts, each of which has its reason there.

No C parser: as in fingerprint.py, PostgreSQL's layout is relied on.

Used by dev/functions.
"""

import fnmatch
import re
from pathlib import Path

KINDS = ("notices", "state", "raises", "holds")
LISTS = KINDS + ("stable",)

DIRECTORIES = ("src/backend", "src/common", "src/port", "src/timezone", "src/include")
# what SQL does not reach, or what is for tools
LEFT_OUT = re.compile(
    r"^src/(backend/(jit/llvm|port/win32|snowball/libstemmer)|port/win32"
    r"|include/(snowball|pch|port/win32|common/fe_)|timezone/(zic|tznames))"
)

TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.S)
WORD = re.compile(r"[A-Za-z_]\w*")
HEAD = re.compile(r"(?:^|\n)(?:[^\n;{}()]*[ *\t])?([A-Za-z_]\w*)[ \t]*\([^;{}]*\)[^;{}()=]*$")
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\((?:[^()]*)\))?((?:\\\n|[^\n])*)", re.M)
INITIALIZED = re.compile(r"(?:^|\n)[^\n;{}()#]*?\b(\w+)(?:\s*\[[^\]]*\])*\s*=\s*$")
REPORT = re.compile(r"\b(ereport_domain|ereport|elog)\s*\(\s*([^,]*),")
SOFT = re.compile(r"\b(?:ereturn|errsave|ereturn_domain|errsave_domain)\s*\(")
QUIET = re.compile(r"^(?:ERROR|FATAL|PANIC|DEBUG\d?|LOG|LOG_SERVER_ONLY|COMMERROR|DEBUG_elog_output)$")
# for a caller that wants no zone, this does not ask for the session's
ZONELESS = re.compile(r"\b(timestamp2tm)\s*\(\s*[^,;]*,\s*NULL\b")
# with this, a function that may shorten an identifier does so without a word
SILENT = re.compile(r"\b(truncate_identifier|downcase_truncate_identifier|downcase_identifier)\s*\([^;]*?,\s*false\s*(?:,[^;,]*)?\)\s*;")


def plain(text):
    """Without comments, and with strings emptied; lines keep their places."""
    def replace(match):
        s = match[0]
        if s[0] == '"':
            return '""'
        if s[0] == "'":
            return "' '"
        return ("\\\n" if "\\\n" in s else "\n") * s.count("\n") or " "
    return TOKEN.sub(replace, text)


# a local variable or a parameter, which hides a function of its name
LOCAL = re.compile(r"\b(?!(?:return|case|goto|else|do)\b)\w+[ \t]+\**(\w+)[ \t]*(?=[;,=\[)])")
MEMBER = re.compile(r"(?:->|\.)\s*[A-Za-z_]\w*")


def names_in(body):
    """The names that may stand for functions, macros or variables of a file."""
    body = MEMBER.sub("", body)
    local = set(LOCAL.findall(body))
    for statement in body.split(";")[:-1]:
        statement = statement[max(statement.rfind("{"), statement.rfind("}")) + 1:]
        if "," in statement and "(" not in statement and "=" not in statement:
            local |= set(WORD.findall(statement))
    called = set(re.findall(r"\b([A-Za-z_]\w*)\s*\(", body))
    return called | (set(WORD.findall(body)) - local)


class Unit:
    """A function, macro or variable: where it is, the names in it, what it does itself."""

    __slots__ = ("name", "file", "is_static", "names", "does")

    def __init__(self, name, file, is_static, body):
        self.name = name
        self.file = file
        self.is_static = is_static
        silent = SILENT.findall(body) + ZONELESS.findall(body)
        for name_ in set(silent):
            if len(re.findall(r"\b%s\s*\(" % name_, body)) == silent.count(name_):
                body = re.sub(r"\b%s\b" % name_, "", body)
        self.names = names_in(body)
        self.does = set()
        for kind, level in REPORT.findall(body):
            level = level.strip()
            if level == "ERROR":
                if kind != "elog":
                    self.does.add("raises")
            elif not QUIET.match(level):
                self.does.add("notices")
                if not level.isupper():
                    self.does.add("raises")
        if SOFT.search(body):
            self.does.add("raises")


def bodies(text):
    """(name, is static, body) of the functions and initialized variables of a file.

    Functions and aggregates begin with a brace and end with the next one in the first column.
    """
    out = []
    at = 0
    for match in re.finditer(r"^\{|=\s*\{|=\s*\n\{", text, re.M):
        if match.start() < at:
            continue
        start = match.start()
        head = text[max(at, start - 1500):start]
        if match[0] == "{":
            cut = max(head.rfind(";"), head.rfind("}"), head.rfind("\n#"))
            head = head[cut + 1:] if cut < 0 or head[cut] != "\n" else head[head.find("\n", cut + 1):]
            found = HEAD.search(head.strip())
            if not found:
                continue
            end = text.find("\n}", start)
            if end < 0:
                end = len(text)
            out.append((found[1], bool(re.search(r"\bstatic\b", head)), found[0] + text[start:end]))
            at = end + 2
        else:
            line = text.rfind("\n", 0, start) + 1
            if line < at or text[line:line + 1] in (" ", "\t", "#"):
                continue
            found = INITIALIZED.search("\n" + text[line:start] + "= ")
            end = text.find("};", start)
            if not found or end < 0:
                continue
            out.append((found[1], "static" in text[line:start].split(), text[start:end]))
            at = end + 2
    return out


def macros(text):
    for match in DEFINE.finditer(text):
        body = match[3].replace("\\\n", "\n")
        for parameter in WORD.findall(match[2] or ""):
            body = re.sub(rf"\b{parameter}\b", "", body)
        yield match[1], body


def read_file(path, file):
    text = plain(path.read_text(errors="replace"))
    units = [Unit(name, file, False, body) for name, body in macros(text)]
    for unit in units:
        unit.is_static = path.suffix != ".h"
    code = DEFINE.sub("", text)
    found = bodies(code)
    units += [Unit(name, file, static or path.suffix == ".h" and static, body)
              for name, static, body in found]
    if path.suffix in (".y", ".l"):
        prefix = re.search(r"(?:prefix=\"?|prefix[ \t]+\"?|name-prefix=)(\w+)", path.read_text())
        for name in ("parse", "lex"):
            units.append(Unit((prefix[1] if prefix else "yy") + name, file, False, code))
    return units


class Graph:
    def __init__(self, tree):
        self.tree = Path(tree)
        self.by_name = {}
        self.by_file = {}
        for directory in DIRECTORIES:
            for path in sorted((self.tree / directory).rglob("*")):
                file = str(path.relative_to(self.tree))
                if path.suffix not in (".c", ".h", ".y", ".l") or LEFT_OUT.match(file):
                    continue
                for unit in read_file(path, file):
                    self.by_name.setdefault(unit.name, []).append(unit)
                    self.by_file.setdefault((file, unit.name), []).append(unit)

    def called(self, unit, name):
        """What a name in a unit stands for: something of its own file, or what is visible to all."""
        own = self.by_file.get((unit.file, name))
        if own:
            return own
        return [u for u in self.by_name.get(name, ()) if not u.is_static or u.file.endswith(".h")]


def settings_of(tree):
    """The C variables of settings."""
    out = set()
    for path in (tree / "src/backend/utils/misc").glob("guc*.c"):
        out |= set(re.findall(r"^\s+&(\w+),\s*$", plain(path.read_text()), re.M))
        # two on a line: the variable, and its default
        out |= set(re.findall(r"^\t\t&(\w+),", plain(path.read_text()), re.M))
    for path in (tree / "src/backend/utils/misc").glob("guc_parameters.dat"):
        out |= set(re.findall(r"variable => '(\w+)'", path.read_text()))
    return out


def catalog(tree, name):
    """The entries of a .dat file, each a dict."""
    text = re.sub(r"^\s*#.*$", "", (tree / "src/include/catalog" / name).read_text(), flags=re.M)
    out = []
    for entry in re.findall(r"\{(.*?)\}(?=,\s*(?:\{|\]|$))", text, re.S):
        out.append(dict(re.findall(r"(\w+)\s*=>\s*'((?:\\.|[^'\\])*)'", entry)))
    return out


def support_functions(tree):
    """Names or signatures that pg_amproc.dat has, without those of pg_proc that are handlers."""
    return {entry["amproc"].split("(")[0] for entry in catalog(tree, "pg_amproc.dat")}


class Rules:
    """The files of dev/functions.d, read."""

    def __init__(self, directory):
        self.cuts = {}
        self.state = {}
        self.settings = {}
        self.holds = {}
        for name, target in (("cuts", self.cuts), ("state", self.state), ("settings", self.settings),
                             ("holds", self.holds)):
            reason = None
            for number, line in enumerate((directory / name).read_text().split("\n"), 1):
                if line.startswith("#"):
                    continue
                if not line.strip():
                    reason = None
                elif line[0] not in " \t":
                    reason = line.strip()
                elif reason is None:
                    raise SystemExit(f"{directory / name}:{number}: names without a reason")
                else:
                    for word in line.split():
                        target[word] = reason


class Finder:
    """Which units of a graph reach what."""

    def __init__(self, graph, variables, rules):
        self.graph = graph
        self.variables = (variables - set(rules.settings)) | set(rules.state)
        self.holders = set(rules.holds)
        self.cuts = self.expanded(rules.cuts)
        self.callers = {}
        self.met = set()
        for units in graph.by_name.values():
            for unit in units:
                self.add_calls(unit)
        self.next = {kind: self.search(kind) for kind in KINDS}

    def expanded(self, cuts):
        """With the names that patterns stand for."""
        out = {cut: cut for cut in cuts if "*" not in cut}
        for pattern in cuts:
            if "*" in pattern:
                out |= {name: pattern for name in fnmatch.filter(self.graph.by_name, pattern)}
        return out

    def idle(self):
        """Cuts that nothing comes to."""
        return set(self.cuts.values()) - self.met

    def add_calls(self, unit):
        if unit.name in self.cuts:
            return
        for name in unit.names:
            if name not in self.graph.by_name:
                continue
            if name in self.cuts:
                self.met.add(self.cuts[name])
                continue
            for other in self.graph.called(unit, name):
                self.callers.setdefault(id(other), []).append(unit)

    def does(self, unit, kind):
        if f"{unit.name}!{kind}" in self.cuts:
            self.met.add(f"{unit.name}!{kind}")
            return False
        if kind == "state" and unit.names & self.variables:
            return True
        if kind == "holds":
            return bool(unit.names & self.holders)
        return kind in unit.does

    def search(self, kind):
        """{id of each unit that reaches it: the unit that it calls for that, or None}."""
        todo = [unit for units in self.graph.by_name.values() for unit in units
                if unit.name not in self.cuts and self.does(unit, kind)]
        found = {id(unit): None for unit in todo}
        while todo:
            following = []
            for unit in todo:
                for caller in self.callers.get(id(unit), ()):
                    if id(caller) not in found:
                        found[id(caller)] = unit
                        following.append(caller)
            todo = following
        return found

    def way(self, name, kind):
        """Names from a function to what it does, or None."""
        for unit in self.graph.by_name.get(name, ()):
            if unit.file.startswith("src/include") or id(unit) not in self.next[kind]:
                continue
            way = []
            while unit is not None:
                way.append(unit.name)
                last = unit
                unit = self.next[kind][id(unit)]
            if kind in ("state", "holds"):
                way += sorted(last.names & (self.variables if kind == "state" else self.holders))[:1]
            return way
        return None


def found_in(tree, rules):
    """({list: {oid: name}}, {oid} of all functions, cuts that are idle) for the sources of one major.

    Of notices, functions that are not volatile; of state, those that are declared immutable; of
    errors, support functions of the server's access methods; of what holds, and of "stable", those that
    are declared stable.  A function that is not found in the sources, as it is made by a macro
    of its own, does all of it.
    """
    tree = Path(tree)
    finder = Finder(Graph(tree), settings_of(tree), rules)
    support = support_functions(tree)
    found = {kind: {} for kind in LISTS}
    known = set()
    for proc in catalog(tree, "pg_proc.dat"):
        volatility = proc.get("provolatile", "i")
        known.add(int(proc["oid"]))
        if proc.get("prolang", "internal") not in ("internal", "c") or proc["prosrc"] == "aggregate_dummy":
            continue
        wanted = {
            "notices": volatility != "v",
            "state": volatility == "i",
            "raises": proc["proname"] in support,
            "holds": volatility == "s",
        }
        there = proc["prosrc"] in finder.graph.by_name
        for kind in wanted:
            if wanted[kind] and (not there or finder.way(proc["prosrc"], kind)):
                found[kind][int(proc["oid"])] = proc["prosrc"]
        if volatility == "s":
            found["stable"][int(proc["oid"])] = proc["prosrc"]
    return found, known, finder.idle()
