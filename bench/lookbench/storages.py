"""The storages that can be measured.

local       the disk that holds the data directory
cloud-*     a simulated cloud volume (dev/slowdisk): milliseconds of latency of each read,
            and reads per second at most (none: no limit).  Its tables are smaller, and
            only cold cells are measured on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Mapping

LOCAL = "local"


@dataclass(frozen=True)
class Volume:
    latency_us: int  # that the volume adds to each read
    iops: int  # 0: no limit


# about 150 us are the way through the kernel and back
VOLUMES: Mapping[str, Volume] = {
    "cloud-1ms-16k": Volume(850, 16_000),
    "cloud-1ms-5k": Volume(850, 5_000),
    "cloud-0.25ms": Volume(100, 0),
    "cloud-10ms-10k": Volume(9_850, 10_000),
}
STORAGES = (LOCAL, *VOLUMES)


class Speed:
    """The speed of the volume under the server: full while tables are made, its own while measured.

    Without a control file (a disk is as fast as it is) nothing happens.
    """

    def __init__(self, storage: str, control: Path | None) -> None:
        self._volume = VOLUMES.get(storage)
        self._control = control if self._volume else None

    def full(self) -> None:
        self._set(Volume(0, 0))

    def own(self) -> None:
        if self._volume:
            self._set(self._volume)

    def counters(self) -> dict[str, str]:
        """What the volume has counted since its speed was set."""
        if self._control is None:
            return {}
        return dict(word.split("=", 1) for word in self._control.read_text().split() if "=" in word)

    def _set(self, volume: Volume) -> None:
        if self._control is not None:
            self._control.write_text(f"latency_us={volume.latency_us} iops={volume.iops}\n")
