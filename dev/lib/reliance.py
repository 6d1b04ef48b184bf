"""Which definitions of the server a room of src/ relies on.

Two kinds:
  - What dev/fingerprint.d/rooms names: code that the room does in the server's place, or
    whose state it takes over.
  - What is compiled into the room.  Its sources name types, macros and functions of the
    server's headers; macros and inline functions name others; a structure contains others.
    Where a structure points to another, that is followed only by a room that names the
    member, or everything would be reached.

The second is found by names only, without a compiler: rather too much, which costs
look-ahead between two minors that would have got on, than too little.
"""

import fnmatch
import re

from fingerprint import TOKEN, definitions, is_word, without_comments

# the server does not have these
FRONTEND = re.compile(r"^src/include/(fe_utils/|common/fe_memutils\.h|port/win32)")

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
MEMBER = re.compile(r"(?:->|\.)\s*([A-Za-z_]\w*)")
NOT_TYPES = {"struct", "union", "enum", "const", "volatile", "unsigned", "signed", "static"}


class Rooms:
    """dev/fingerprint.d/rooms, read."""

    def __init__(self, path):
        self.files = {}  # room -> patterns of its files
        self.listed = {}  # room -> [(path pattern, name pattern)]
        self.public = []  # patterns of headers
        room = None
        for number, line in enumerate(path.read_text().split("\n"), 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] == "room":
                room = words[1]
                self.files[room] = words[2:]
                self.listed[room] = []
            elif words[0] == "public":
                self.public += words[1:]
            elif room is None or len(words) < 2:
                raise SystemExit(f"{path}:{number}: not understood")
            else:
                self.listed[room] += [(words[0], name) for name in words[1:]]


def room_files(src, patterns):
    """The room's files, and what they include of ours."""
    found = set()
    todo = [path for pattern in patterns for path in src.glob(pattern)]
    while todo:
        path = todo.pop()
        if path in found or path.suffix not in (".c", ".h") or not path.exists():
            continue
        found.add(path)
        for name in INCLUDE.findall(path.read_text()):
            header = src / name
            if header.exists():
                todo += [header, header.with_suffix(".c")]
            # the header of a room stands for all of its files
            if header.exists() and header.stem in (header.parent.name, header.parent.name + "_int"):
                todo += header.parent.glob("*.c")
    return sorted(found)


def names_in(files):
    """All words of these files, and those that are a member's name somewhere."""
    words = set()
    members = set()
    for path in files:
        text = without_comments(path.read_text())
        words |= {token for token in TOKEN.findall(text) if is_word(token)}
        members |= set(MEMBER.findall(text))
    return words, members


class Headers:
    """Everything that the server's headers define, by name."""

    def __init__(self, source, public):
        self.by_name = {}
        for path, text in source.texts.items():
            if not path.startswith("src/include/") or FRONTEND.match(path):
                continue
            is_public = any(fnmatch.fnmatch(path, pattern) for pattern in public)
            for kind, name, tokens in definitions(text):
                if kind == "type" or not is_public:
                    self.by_name.setdefault(name, []).append((path, kind, tokens))


def is_pointer_type(headers, name):
    return any(
        kind == "type" and "*" in tokens and "{" not in tokens
        for _, kind, tokens in headers.by_name.get(name, ())
    )


def member_declarations(tokens):
    """Yield (words, is a pointer) for what a structure is made of."""
    inside = tokens[tokens.index("{") + 1 :]
    declaration = []
    for token in inside:
        if token in (";", "{", "}"):
            words = [t for t in declaration if is_word(t) and t not in NOT_TYPES]
            if words:
                yield words, "*" in declaration
            declaration = []
        else:
            declaration.append(token)


def reached(headers, words, members):
    """The (path, kind, name) of headers that code with these words has compiled in."""
    members = set(members)
    found = set()
    passed = set()
    waiting = []  # (members, what they point to): until somebody names the member
    todo = {word for word in words if word in headers.by_name}
    while todo:
        name = todo.pop()
        passed.add(name)
        for path, kind, tokens in headers.by_name[name]:
            found.add((path, kind, name))
            if kind == "type" and "{" in tokens:
                if "enum" in tokens[:2]:
                    continue
                for names, pointer in member_declarations(tokens):
                    if pointer or is_pointer_type(headers, names[0]):
                        waiting.append((set(names[1:]), names[0]))
                    else:
                        todo.add(names[0])
            elif kind in ("macro", "function", "type"):
                todo |= set(tokens)
                members |= set(MEMBER.findall(" ".join(tokens)))
        todo |= {target for names, target in waiting if names & members}
        todo = {word for word in todo - passed if word in headers.by_name}
    return found


def relied_on(rooms, room, src, sources):
    """(keys of definitions, patterns that match nothing in these sources)."""
    files = room_files(src, rooms.files[room])
    words, members = names_in(files)
    listed = list(rooms.listed[room])
    directories = {path.parent.name for path in files}
    for other, directory in (("shared", "attach"), ("window", "window")):
        if directory in directories:
            listed += rooms.listed[other]
    keys = set()
    idle = set(listed)
    for source in sources:
        keys |= reached(Headers(source, rooms.public), words, members)
        for key in source.items():
            for path, name in listed:
                if fnmatch.fnmatch(key[0], path) and fnmatch.fnmatch(key[2], name):
                    keys.add(key)
                    idle.discard((path, name))
    return keys, idle
