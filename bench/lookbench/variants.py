"""The variants that are compared, and the settings that make each of them.

stock       a plain index scan, pg_lookahead.enable = off
bitmap-*    a bitmap scan at its best settings, pg_lookahead.enable = off:
            before 18 advice (posix_fadvise) with a high effective_io_concurrency,
            18 with io_method = io_uring where that works, and with many I/O workers
again       stock once more: what noise alone makes of a ratio
lookahead   the plan of stock, pg_lookahead.enable = on
adjusted    whole queries: look-ahead, and plans by pg_lookahead.adjust_costs = on
bare        like stock, in a server that has not loaded the library
beside      plain index scans of another server build, with settings of its own (--beside)

Planner settings only forbid the other kinds of scan; whether the plan is the wanted
one is checked by the runner for each cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Container, Mapping, Sequence

from .server import Server

INDEX_SCAN = "Index Scan"
INDEX_ONLY_SCAN = "Index Only Scan"
BITMAP_SCAN = "Bitmap Heap Scan"

_ONLY_INDEX = {"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_indexonlyscan": "off"}
_ONLY_BITMAP = {"enable_seqscan": "off", "enable_indexscan": "off", "enable_indexonlyscan": "off"}

LIBRARY = "pg_lookahead"
ENABLE = "pg_lookahead.enable"
ADJUST_COSTS = "pg_lookahead.adjust_costs"
FORCED = "forced-"


@dataclass(frozen=True)
class Variant:
    name: str
    node: str  # the scan node that its plan must have
    session: Mapping[str, str]
    server: Mapping[str, str] = field(default_factory=dict)
    beside: Path | None = None  # programs of the other server that it is measured on

    @property
    def is_bitmap(self) -> bool:
        """A candidate for the bitmap scan at its best."""
        return self.name.startswith("bitmap-")

    @property
    def is_stock(self) -> bool:
        """It waits for each block."""
        return self.name in ("stock", "again", "bare")

    @property
    def looks_ahead(self) -> bool:
        return self.session.get(ENABLE) == "on"

    @property
    def adjusts_costs(self) -> bool:
        """Its plans may be others than those of stock."""
        return self.session.get(ADJUST_COSTS) == "on"

    @property
    def is_forced(self) -> bool:
        """Kinds of plans are forbidden to it."""
        return self.name.startswith(FORCED)

    def free(self) -> Variant:
        """The same with plans of the planner's choice."""
        session = {k: v for k, v in self.session.items() if k not in _ONLY_INDEX and k not in _ONLY_BITMAP}
        return replace(self, node="", session=session)

    def index_only(self) -> Variant:
        """The same with index-only scans instead of index scans."""
        if self.is_bitmap:
            return self
        return replace(self, node=INDEX_ONLY_SCAN, session=dict(self.session) | {"enable_indexonlyscan": "on"})

    def bitmap(self) -> Variant:
        """The same with bitmap scans instead of index scans; how they read is as the server has it."""
        if self.is_bitmap:
            return self
        session = {k: v for k, v in self.session.items() if k not in _ONLY_INDEX}
        return replace(self, node=BITMAP_SCAN, session=session | _ONLY_BITMAP)


def _preload(library: bool) -> dict[str, str]:
    return {"shared_preload_libraries": LIBRARY if library else ""}


def _off(library: bool) -> dict[str, str]:
    return {ENABLE: "off"} if library else {}


def bitmap_variants(server: Server, library: bool, uring: bool) -> list[Variant]:
    """The candidates for "bitmap scan at its best", best guess first."""

    def variant(method: str, concurrency: int, **settings: str) -> Variant:
        return Variant(
            f"bitmap-{method}-{concurrency}",
            BITMAP_SCAN,
            _ONLY_BITMAP | _off(library) | {"effective_io_concurrency": str(concurrency)},
            _preload(library) | settings,
        )

    if server.major < 18:
        return [variant("advice", 64), variant("advice", 256)]
    workers = variant("worker", 64, io_method="worker", io_workers="32")
    if not uring:
        return [workers]
    return [variant("uring", 64, io_method="io_uring"), workers]


def forced_variant(name: str, planner: Mapping[str, str]) -> Variant:
    """Look-ahead with plans that these settings leave."""
    return Variant(name, "", dict(planner) | {ENABLE: "on"}, _preload(True))


def split_variant(text: str, known: Container[str] = ()) -> tuple[str, dict[str, str]]:
    """Name and settings of "NAME:SETTING=VALUE,...", whose name must be a new one."""
    name, _, settings = text.partition(":")
    pairs = dict(setting.split("=", 1) for setting in settings.split(",") if "=" in setting)
    if not name or not pairs or name in known:
        raise ValueError(f"not NAME:SETTING=VALUE,...: {text}")
    return name, pairs


def beside_variant(text: str, known: Container[str] = ()) -> Variant:
    """A plain index scan on another server: "NAME=PREFIX[,setting=value...]".

    The settings are the server's.  The word "library" is none: then that server preloads the
    library, which must have been installed there, and look-ahead is on.
    """
    name, _, rest = text.partition("=")
    prefix, *settings = rest.split(",")
    pairs = dict(setting.split("=", 1) for setting in settings if "=" in setting)
    library = "library" in settings
    if not name or not prefix or name in known or len(pairs) + library != len(settings):
        raise ValueError(f"not NAME=PREFIX[,SETTING=VALUE...]: {text}")
    programs = Path(prefix).absolute() / "bin"
    if not (programs / "postgres").exists():
        raise ValueError(f"there is no server in {prefix}")
    session = {ENABLE: "on"} if library else {}
    return Variant(name, INDEX_SCAN, _ONLY_INDEX | session, _preload(library) | pairs, programs)


def make_variants(
    names: Sequence[str], extra: Sequence[str], server: Server, library: bool, uring: bool
) -> list[Variant]:
    """The variants of these names ("bitmap" means all of them), then the extra ones.

    An extra variant is look-ahead with other settings: "NAME:SETTING=VALUE,...", the
    prefix pg_lookahead. left out, such as "d16:max_distance=16".  "library" is no setting
    but the file of another build, whose name must contain pg_lookahead.
    """
    bitmaps = bitmap_variants(server, library, uring)
    known: dict[str, list[Variant]] = {
        "stock": [Variant("stock", INDEX_SCAN, _ONLY_INDEX | _off(library), _preload(library))],
        "again": [Variant("again", INDEX_SCAN, _ONLY_INDEX | _off(library), _preload(library))],
        "bare": [Variant("bare", INDEX_SCAN, _ONLY_INDEX, _preload(False))],
        "lookahead": [Variant("lookahead", INDEX_SCAN, _ONLY_INDEX | {ENABLE: "on"}, _preload(True))],
        "adjusted": [Variant("adjusted", INDEX_SCAN, _ONLY_INDEX | {ENABLE: "on", ADJUST_COSTS: "on"}, _preload(True))],
        "bitmap": bitmaps,
    } | {variant.name: [variant] for variant in bitmaps}

    chosen: dict[str, Variant] = {}
    for name in names:
        if name not in known:
            raise ValueError(f"there is no variant {name} (known: {', '.join(known)})")
        chosen |= {variant.name: variant for variant in known[name]}
    for text in extra:
        name, pairs = split_variant(text, known)
        preload = {"shared_preload_libraries": pairs.pop("library")} if "library" in pairs else _preload(True)
        session = {f"{LIBRARY}.{key}": value for key, value in pairs.items()}
        chosen[name] = Variant(name, INDEX_SCAN, _ONLY_INDEX | {ENABLE: "on"} | session, preload)
    return list(chosen.values())
