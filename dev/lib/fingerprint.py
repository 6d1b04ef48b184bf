"""Definitions of PostgreSQL's sources, and their fingerprints.

A source file is taken apart into its macros, types, functions, declarations and
variables.  Comments and white space do not count; everything else does.  What has a
name has a hash: several definitions of one name (branches of an #if) have one together.

No C parser: PostgreSQL's layout is relied on, in which a function's or a struct's last
brace, and no other, stands in the first column.

Used by dev/fingerprint.
"""

import hashlib
import io
import re
import subprocess
import tarfile
from pathlib import Path

# What is looked at.  A change here changes every total: begin anew then, from a
# git repository that has all minors.
SCOPE = (
    "src/include",
    "src/backend/access",
    "src/backend/catalog/index.c",
    "src/backend/commands/explain.c",
    "src/backend/commands/indexcmds.c",
    "src/backend/executor",
    "src/backend/lib",
    "src/backend/nodes",
    "src/backend/optimizer/util/plancat.c",
    "src/backend/storage",
    "src/backend/utils/cache",
    "src/backend/utils/mmgr",
    "src/backend/utils/resowner",
    "src/backend/utils/sort",
)

# Files that are made during the build, and which tarballs of some majors have.
GENERATED = re.compile(
    r"/(fmgroids|fmgrprotos|errcodes|nodetags|header-stamp|probes|lwlocknames"
    r"|wait_event_types|pg_config|pg_config_ext|pg_config_os|stamp-\w+"
    r"|(copy|equal|out|read|query\w+)funcs\.(funcs|switch)"
    r"|schemapg|system_fk_info|syscache_ids|syscache_info|\w+_d)\.[ch]$"
    r"|\.(funcs|switch|meta)\.c$|/(bootparse|bootscanner|wait_event_funcs_data)\.c$"
)

TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*|\d[\w.]*'
    r"|->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|##|\S"
)
COMMENT = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S
)
ATTRIBUTE = re.compile(r"pg_attribute_\w+|__attribute__|__declspec")


def is_word(token):
    return re.match(r"[A-Za-z_]", token) is not None


def without_comments(text):
    def blank(match):
        if match[0][0] in "\"'":
            return match[0]
        return "\n" if "\n" in match[0] else " "

    return COMMENT.sub(blank, text.replace("\\\n", " "))


def head_of(chunk):
    return chunk[: chunk.index("{")] if "{" in chunk else chunk


def is_function(chunk):
    head = head_of(chunk)
    return "{" in chunk and "(" in head and "=" not in head and head[0] != "typedef"


def called_name(head):
    """The word before the first parenthesis that is not an attribute's."""
    depth = 0
    for i, token in enumerate(head):
        if token == "(" and depth == 0 and i > 0:
            if is_word(head[i - 1]) and not ATTRIBUTE.match(head[i - 1]):
                return head[i - 1]
        depth += (token == "(") - (token == ")")
    return None


def typedef_names(chunk):
    if "{" in chunk:
        head = head_of(chunk)
        names = head[2:3]  # the tag
        end = len(chunk) - chunk[::-1].index("}")
        names += [token for token in chunk[end:] if is_word(token)][:1]
        return [name for name in names if not ATTRIBUTE.match(name)]
    match = re.search(r"\( \* (\w+)", " ".join(chunk))
    if match:
        return [match[1]]
    if "[" in chunk:
        return [chunk[chunk.index("[") - 1]]
    return [token for token in chunk if is_word(token)][-1:]


def classify(chunk):
    """(kind, names) of what ends at a semicolon or at a last brace, or None."""
    head = head_of(chunk)
    if chunk[0] == "typedef":
        return "type", dict.fromkeys(typedef_names(chunk))
    if is_function(chunk):
        name = called_name(head)
        return ("function", [name]) if name else None
    if head[0] in ("struct", "union", "enum") and len(head) == 2 and "{" in chunk:
        return "type", [head[1]]
    if head[0] in ("struct", "union", "enum") and len(chunk) == 3:
        return None  # known by name only
    if "(" in head and "=" not in head and "{" not in chunk:
        name = called_name(head)
        return ("declaration", [name]) if name else None
    for stop in ("=", "["):
        if stop in head:
            head = head[: head.index(stop)]
    words = [token for token in head if is_word(token)]
    return ("variable", words[-1:]) if words else None


def definitions(text):
    """Yield (kind, name, tokens) for everything in a file that has a name."""
    chunk = []
    depth = 0

    def end():
        found = classify(chunk)
        if found:
            for name in found[1]:
                yield found[0], name, chunk

    for line in without_comments(text).split("\n"):
        tokens = TOKEN.findall(line)
        if line.lstrip().startswith("#"):
            if len(tokens) > 2 and tokens[1] == "define":
                yield "macro", tokens[2], tokens
            if chunk:
                chunk += tokens
            continue
        if line.startswith("}"):
            depth = 1
        for token in tokens:
            chunk.append(token)
            if token == "{":
                depth += 1
                if chunk[:2] == ["extern", '"C"']:
                    chunk = []
                    depth = 0
            elif token == "}":
                depth = max(depth - 1, 0)
                if chunk == ["}"]:
                    chunk = []
                elif depth == 0 and is_function(chunk):
                    yield from end()
                    chunk = []
            elif token == ";" and depth == 0:
                yield from end()
                chunk = []


def hashes(text):
    """{(kind, name): hash} of a file."""
    found = {}
    for kind, name, tokens in definitions(text):
        found.setdefault((kind, name), []).append(" ".join(tokens))
    return {
        key: hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
        for key, texts in found.items()
    }


# ---- sources ----------------------------------------------------------------


def in_scope(path):
    return (
        path.endswith((".c", ".h"))
        and any(path == s or path.startswith(s + "/") for s in SCOPE)
        and not GENERATED.search(path)
    )


class Source:
    """The files of one minor: texts, hashes, and where they come from."""

    def __init__(self, texts, version, origin):
        self.texts = texts
        self.major, self.minor = version
        self.origin = origin
        self.found = None

    def items(self):
        """{(path, kind, name): hash}"""
        if self.found is None:
            self.found = {
                (path, *key): value
                for path, text in self.texts.items()
                for key, value in hashes(text).items()
            }
        return self.found

    def total(self):
        lines = sorted(" ".join((*key, value)) for key, value in self.items().items())
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def version_of(configure):
    match = re.search(r"AC_INIT\(\[PostgreSQL\], \[(\d+)\.(\d+)\]", configure)
    return (int(match[1]), int(match[2])) if match else None


def decode(data):
    return data.decode("utf-8", "replace")


def tree_source(tree):
    """An unpacked source tree, or None if it is not one of a released minor."""
    tree = Path(tree)
    configure = tree / "configure.ac"
    version = version_of(decode(configure.read_bytes())) if configure.exists() else None
    if version is None:
        return None
    texts = {}
    for path in tree.rglob("src/**/*.[ch]"):
        name = path.relative_to(tree).as_posix()
        if in_scope(name) and path.is_file() and not path.is_symlink():
            texts[name] = decode(path.read_bytes())
    return Source(texts, version, "tarball")


def git(repository, *arguments):
    return subprocess.run(
        ["git", "-C", str(repository), *arguments], capture_output=True, check=True
    ).stdout


def commit_source(repository, version, commit):
    present = git(repository, "ls-tree", "-r", "--name-only", commit).decode().split("\n")
    names = set(present)
    wanted = [s for s in SCOPE if s in names or any(n.startswith(s + "/") for n in names)]
    data = git(repository, "archive", commit, *wanted)
    texts = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            if member.isfile() and in_scope(member.name):
                texts[member.name] = decode(archive.extractfile(member).read())
    return Source(texts, version, "commit " + commit[:12])


def git_sources(repository, majors):
    """Yield the minors of a repository: its tags, else the commits that stamp them."""
    commits = {}
    log = git(
        repository, "log", "--all", "--format=%H %s", "-E", "--grep", r"^Stamp [0-9]+\.[0-9]+\.$"
    )
    for line in log.decode().split("\n"):
        match = re.match(r"(\w+) Stamp (\d+)\.(\d+)\.$", line)
        if match:
            commits[int(match[2]), int(match[3])] = match[1]
    tags = git(repository, "for-each-ref", "--format=%(objectname) %(refname:short)", "refs/tags")
    for line in tags.decode().split("\n"):
        match = re.match(r"(\w+) REL_(\d+)_(\d+)$", line)
        if match:
            commits[int(match[2]), int(match[3])] = match[1]
    for version, commit in sorted(commits.items()):
        if version[0] not in majors:
            continue
        configure = git(repository, "show", commit + ":configure.ac")
        if version_of(decode(configure)) == version:
            yield commit_source(repository, version, commit)


def sources(place, majors):
    """Yield the sources at a place: an unpacked tree, or a git repository."""
    source = tree_source(place)
    if source is not None:
        if source.major in majors:
            yield source
    else:
        yield from git_sources(place, majors)
