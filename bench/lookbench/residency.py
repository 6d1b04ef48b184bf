"""Keep files in the operating system's page cache, and prove that they are there.

A page cache is not a safe place: memory pressure, and on some machines a reclaimer,
drops pages that were not touched for some seconds.  So a helper process maps the
files and locks them (mlock); where the limit on locked memory forbids that, it
touches a byte of every page again and again.

    with Resident(files) as resident:
        ...measure...
        resident.share()        # 1.0: every page is in the cache (mincore)

The helper is this file itself: python residency.py FILE...  It prints "ready" and
stays until its standard input ends, hence also when the parent dies.
"""

from __future__ import annotations

import ctypes
import mmap
import select
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Sequence

PAGE = mmap.PAGESIZE
TOUCH_SECONDS = 1.0

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def _map(path: Path) -> mmap.mmap | None:
    """A mapping of the whole file; an empty file has none."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return None
        # private and writable, only because ctypes cannot take the address otherwise;
        # nothing is ever written, so the pages stay those of the page cache
        return mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)


def _address(mapping: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(mapping))


class Resident:
    def __init__(self, files: Sequence[Path]) -> None:
        self.files = list(files)

    def __enter__(self) -> Resident:
        self.helper = subprocess.Popen(
            [sys.executable, __file__, *map(str, self.files)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )
        assert self.helper.stdout is not None
        if self.helper.stdout.readline() != b"ready\n":
            raise OSError("the helper that keeps files in the page cache has failed")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.helper.stdin is not None
        self.helper.stdin.close()
        self.helper.wait()

    def share(self) -> float:
        """The share of the files' pages that are in the page cache now."""
        pages = resident = 0
        for path in self.files:
            mapping = _map(path)
            if mapping is None:
                continue
            count = (len(mapping) + PAGE - 1) // PAGE
            flags = ctypes.create_string_buffer(count)
            if _libc.mincore(_address(mapping), len(mapping), flags) != 0:
                raise OSError(ctypes.get_errno(), "mincore")
            pages += count
            resident += sum(byte & 1 for byte in flags.raw)
        return resident / pages if pages else 1.0


def _read(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def main() -> None:
    files = [Path(name) for name in sys.argv[1:]]
    mappings = []
    locked = True
    for path in files:
        _read(path)
        mapping = _map(path)
        if mapping is not None:
            mappings.append(mapping)
            # a private mapping that is only read shares the page cache's pages; mlock
            # of a writable one would copy them, so write permission goes first
            address = _address(mapping)
            _libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(len(mapping)), mmap.PROT_READ)
            locked = _libc.mlock(address, len(mapping)) == 0 and locked
    print("ready", flush=True)
    # a readable standard input is its end
    while not select.select([sys.stdin], [], [], None if locked else TOUCH_SECONDS)[0]:
        for mapping in mappings:
            for offset in range(0, len(mapping), PAGE):
                mapping[offset]


if __name__ == "__main__":
    main()
