"""What is measured: cells by family, how large they are, and the variants.

A cell of `replay` is a data directory as a crash left it and the log of what was done before; the
size is the number of transactions, or of rows inserted.  One of `apply` is a stream of changes that a
publisher has for a subscriber; the size is the number of rows that are changed, of `live` cells the
seconds for which writers are at work while the subscriber applies.  One of `promotion` is a standby that is
promoted, or a server that starts after a crash; the size is the number of transactions of their logs.

Variants of `replay`:

  stock          the server's defaults, without the library
  again          the same once more: what noise alone makes of a ratio
  off            recovery_prefetch = off
  tuned-N-SIZE   maintenance_io_concurrency = N, wal_decode_buffer_size = SIZE: candidates for the best
                 that the server reaches by settings.  The first repetition measures all of them, others
                 the BEST that came out first
  tuned-N        maintenance_io_concurrency alone, of `munro`; in the first repetition only
  lookahead      the library is preloaded, and nothing set
  lookahead-off  preloaded, pg_lookahead.enable_replay = off

Variants of `apply`: stock, again, lookahead, lookahead-off (pg_lookahead.enable_apply), and

  cached         stock, with all files of the subscriber in the operating system's cache: what there is to gain

Variants of `promotion`: stock, again, lookahead, lookahead-off (pg_lookahead.enable_replay).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Mapping, Sequence

from ..storages import LOCAL
from ..variants import split_variant
from ..workloads.base import CACHED, COLD, Cell

REPLAY = "replay"
APPLY = "apply"
PROMOTION = "promotion"
# for the headings of the summary and the report
SOURCES: Mapping[str, str] = {
    REPLAY: "Munro, PGCon 2020; our own",
    APPLY: "Knizhnik, pgsql-hackers, 2025; our own",
    PROMOTION: "our own",
}
SIZES: Mapping[str, str] = {REPLAY: "transactions", APPLY: "rows or seconds", PROMOTION: "transactions"}

MUNRO_STORAGE = "cloud-1ms-5k"
CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
TUNED = (32, 64, 128, 256)
DECODE_BUFFERS = ("512kB", "4MB")
BEST = 2  # candidates that are measured in each repetition
TUNED_PREFIX = "tuned-"
CACHED_VARIANT = "cached"

LIBRARY = "pg_lookahead"
PRELOAD = "shared_preload_libraries"
_STOCK = {PRELOAD: ""}
_AHEAD = {PRELOAD: LIBRARY}


@dataclass(frozen=True)
class Variant:
    name: str
    settings: Mapping[str, str]
    once: bool = False  # only in the first repetition

    @property
    def is_tuned(self) -> bool:
        return self.name.startswith(TUNED_PREFIX)

    @property
    def is_cached(self) -> bool:
        return self.name == CACHED_VARIANT

    @property
    def has_library(self) -> bool:
        return LIBRARY in self.settings[PRELOAD]


@dataclass(frozen=True)
class Crash:
    """A cell of `replay`.  The load runs on tables that are as large as thousands says: rows, or pgbench_accounts."""

    cell: Cell
    thousands: int
    buffers: str  # shared_buffers of the recovery, fewer than the blocks that are changed
    full_pages: bool = False
    munro: bool = False
    seconds: float = 0.0  # that stock's redo takes, roughly

    @property
    def is_pgbench(self) -> bool:
        return self.cell.data == "pgbench"


@dataclass(frozen=True)
class Stream:
    """A cell of `apply`."""

    cell: Cell
    number: int  # from 1 to 15, another one for each cell: rows that it inserts have keys of their own
    writers: int
    one_transaction: bool = False  # sent while it is still open, and applied by a parallel worker
    live: bool = False  # the subscriber applies while writers are at work
    seconds: float = 0.0


@dataclass(frozen=True)
class Promotion:
    """A cell of `promotion`."""

    cell: Cell
    scale: int  # of pgbench's tables
    buffers: str  # shared_buffers of the standby
    behind: bool = False  # it has replayed nothing
    restarts: bool = False  # it is no standby, but was killed
    seconds: float = 0.0


@dataclass(frozen=True)
class Tables:
    """How large the tables of publisher and subscriber are."""

    thousands: int
    buffers: str  # shared_buffers of the subscriber


@dataclass(frozen=True)
class Scope:
    storage: str
    quick: bool
    seconds: int  # of live cells

    @property
    def level(self) -> int:
        """Of the tuples below."""
        return 2 if self.quick else 0 if self.storage == LOCAL else 1


# shape -> for the local disk, for volumes, quick: thousands of rows, size, shared_buffers
_Sizes = Sequence["tuple[int, int, str]"]
_FPW_OFF: _Sizes = ((6_000, 120_000, "256MB"), (2_500, 20_000, "64MB"), (1_000, 6_000, "32MB"))
# four updates of each page between two checkpoints: scale 300 and 1,000 transactions/s for 30 minutes
_FPW_30: _Sizes = ((2_500, 150_000, "128MB"), (500, 30_000, "32MB"), (300, 18_000, "16MB"))
_THREE: _Sizes = ((1_000, 50_000, "256MB"), (400, 8_000, "64MB"), (100, 3_000, "16MB"))
_MUNRO: _Sizes = ((5_000, 40_000, "128MB"), (5_000, 40_000, "128MB"), (1_000, 8_000, "32MB"))

_TABLES: Sequence[Tables] = (Tables(1_500, "512MB"), Tables(400, "128MB"), Tables(100, "64MB"))
# data -> rows changed by one writer, for the local disk, for volumes, quick; and a third of them by ten
_CHANGES: Mapping[str, Sequence[int]] = {
    "update": (60_000, 8_000, 1_500),
    "insert-one": (30_000, 8_000, 1_500),
    "insert-two": (30_000, 8_000, 1_500),
    "delete": (30_000, 8_000, 1_500),
}
_MANY = 10
LIVE_WRITERS = 8
# seconds that stock takes for a row of `apply`, and a transaction of `replay`
_PER_ROW = {LOCAL: 2.5e-4}
_PER_ROW_VOLUME = 3e-3
_PER_TRANSACTION = {LOCAL: 4e-5}
_PER_TRANSACTION_VOLUME = 3e-4


def crashes(scope: Scope) -> list[Crash]:
    each = _PER_TRANSACTION.get(scope.storage, _PER_TRANSACTION_VOLUME)

    def crash(data: str, shape: str, sizes: _Sizes, **kind: bool) -> Crash:
        thousands, size, buffers = sizes[scope.level]
        return Crash(Cell(REPLAY, data, shape, size, COLD), thousands, buffers, seconds=size * each, **kind)

    found = [
        crash("pgbench", "update", _FPW_OFF),
        crash("pgbench", "update-fpw", _FPW_30, full_pages=True),
        crash("three", "insert", _THREE),
    ]
    if scope.storage == MUNRO_STORAGE:
        found.append(crash("pgbench", "munro", _MUNRO, munro=True))
    return found


def streams(scope: Scope) -> list[Stream]:
    each = _PER_ROW.get(scope.storage, _PER_ROW_VOLUME)
    found: list[Stream] = []

    def stream(data: str, shape: str, size: int, **kind: object) -> None:
        seconds = size * (1.5 if kind.get("live") else each)
        found.append(Stream(Cell(APPLY, data, shape, size, COLD), len(found) + 1, seconds=seconds, **kind))  # type: ignore[arg-type]

    for data, sizes in _CHANGES.items():
        size = sizes[scope.level]
        stream(data, "writers-1", size, writers=1)
        if data != "delete":
            stream(data, f"writers-{_MANY}", size // 3 // _MANY * _MANY, writers=_MANY)
    stream("update", "streamed", _CHANGES["insert-one"][scope.level], writers=1, one_transaction=True)
    stream("update", f"live-{LIVE_WRITERS}", scope.seconds, writers=LIVE_WRITERS, live=True)
    return found


def promotions(scope: Scope) -> list[Promotion]:
    """On the local disk only."""
    if scope.storage != LOCAL:
        return []
    size, few, scale, buffers = (2_000, 200, 2, "16MB") if scope.quick else (20_000, 200, 10, "64MB")
    return [
        Promotion(Cell(PROMOTION, "standby", "caught-up", size, CACHED), scale, buffers, seconds=3),
        Promotion(Cell(PROMOTION, "standby", "behind", size, COLD), scale, buffers, behind=True, seconds=3),
        *(Promotion(Cell(PROMOTION, "crash", "restart", few, state), scale, buffers, restarts=True, seconds=1) for state in (CACHED, COLD)),
    ]


def tables(scope: Scope) -> Tables:
    return _TABLES[scope.level]


def _stock_and_ahead(switch: str, *between: Variant) -> list[Variant]:
    """switch: the setting without which the library does not look ahead here."""
    stock = Variant("stock", _STOCK)
    return [
        stock,
        replace(stock, name="again"),
        *between,
        Variant("lookahead", _AHEAD),
        Variant("lookahead-off", _AHEAD | {f"{LIBRARY}.{switch}": "off"}),
    ]


def replay_variants(crash: Crash, scope: Scope) -> list[Variant]:
    def tuned(concurrency: int, **others: str) -> dict[str, str]:
        return _STOCK | {"maintenance_io_concurrency": str(concurrency)} | others

    if crash.munro:
        candidates = [Variant(f"{TUNED_PREFIX}{n}", tuned(n), once=True) for n in CONCURRENCIES]
    else:
        candidates = [
            Variant(f"{TUNED_PREFIX}{n}-{size}", tuned(n, wal_decode_buffer_size=size)) for size in DECODE_BUFFERS for n in TUNED
        ]
    # on a volume it takes many times as long as the others, and nobody doubts it
    off = Variant("off", _STOCK | {"recovery_prefetch": "off"}, once=scope.storage != LOCAL)
    return _stock_and_ahead("enable_replay", off, *candidates)


def apply_variants() -> list[Variant]:
    return [*_stock_and_ahead("enable_apply"), Variant(CACHED_VARIANT, _STOCK)]


def promotion_variants() -> list[Variant]:
    return _stock_and_ahead("enable_replay")


DEFAULT_VARIANTS: Mapping[str, Sequence[str]] = {
    REPLAY: ("stock", "off", "tuned", "lookahead", "lookahead-off"),
    APPLY: ("stock", "lookahead", "cached"),
    PROMOTION: ("stock", "lookahead"),
}


@dataclass
class Chosen:
    """The variants of a family that are wanted."""

    names: Sequence[str]
    extra: Sequence[Variant] = field(default_factory=tuple)

    def of(self, all_variants: Sequence[Variant]) -> list[Variant]:
        return [v for v in all_variants if v.name in self.names or (v.is_tuned and "tuned" in self.names)] + list(self.extra)


def extra_variant(text: str) -> Variant:
    """Look-ahead with other settings: "NAME:SETTING=VALUE,...", as bench/run has it.

    A setting is the library's if the server's have no such name: those of the server are written with
    a leading dot, such as ".maintenance_io_concurrency=100".  "library" is the file of another build.
    """
    name, pairs = split_variant(text)
    settings = dict(_AHEAD)
    if "library" in pairs:
        path = Path(pairs.pop("library")).resolve()
        settings = {PRELOAD: str(path), "dynamic_library_path": f"{path.parent}:$libdir"}
    return Variant(name, settings | {key[1:] if key.startswith(".") else f"{LIBRARY}.{key}": value for key, value in pairs.items()})
