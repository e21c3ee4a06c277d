"""Memory tiers: where the rows of a shard live, and what moving them to the device and back takes."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from simulator.errors import InputError, did_you_mean
from simulator.quantities import CopyWork, RpcWork, Work
from simulator.sharding.moves import Moved, access, over_wire, width_total
from simulator.workload.caches import REPLACEMENTS
from simulator.workload.tables import KEY_BYTES, EmbeddingTable


class Tier(ABC):
    """A memory for rows. `read` and `write` return parts that stream through each other."""

    @abstractmethod
    def read(self, moved: Moved) -> tuple[Work, ...]:
        """Return what brings the rows to the device."""

    @abstractmethod
    def write(self, moved: Moved) -> tuple[Work, ...]:
        """Return what takes updated rows back; nothing where they are updated in place."""

    @property
    @abstractmethod
    def homes(self) -> Mapping[str, float]:
        """The share of a shard's bytes that lies in `hbm`, `host` and `ssd` memory of its owner."""

    @property
    @abstractmethod
    def noun(self) -> str:
        """What people call it."""

    @property
    def in_place(self) -> bool:
        """Whether rows can be used where they live."""
        return False

    @property
    def stage_kind(self) -> str:
        """The kind of a stage that moves rows from here or back."""
        return "lookup"

    def missed(self, table: EmbeddingTable, lookups: float, distinct: float) -> float:
        """Return how many of the `distinct` rows among `lookups` lookups must come to the device."""
        return distinct

    def room(self, table: EmbeddingTable) -> float:
        """Return how many of the table's rows device memory always has room for."""
        return self.homes.get("hbm", 0.0) * table.rows


@dataclass(frozen=True)
class Hbm(Tier):
    """Device memory of the owner."""

    def read(self, moved: Moved) -> tuple[Work, ...]:
        """Return nothing: the exchange reads rows where they live."""
        return ()

    def write(self, moved: Moved) -> tuple[Work, ...]:
        """Return nothing: rows are updated in place."""
        return ()

    @property
    def homes(self) -> Mapping[str, float]:
        """All of a shard."""
        return {"hbm": 1.0}

    @property
    def noun(self) -> str:
        """Device memory."""
        return "device memory"

    @property
    def in_place(self) -> bool:
        """Yes."""
        return True

    def missed(self, table: EmbeddingTable, lookups: float, distinct: float) -> float:
        """Return 0: all are there."""
        return 0.0


@dataclass(frozen=True)
class _OverHostLink(Tier):
    """Rows that cross the host link after they were read from `memory`."""

    def read(self, moved: Moved) -> tuple[Work, ...]:
        """Return the reads and the copy to the device."""
        return (*self._access(moved, back=True), CopyWork(width_total(moved.rows), "host_to_device"))

    def write(self, moved: Moved) -> tuple[Work, ...]:
        """Return the writes and the copy from the device."""
        return (*self._access(moved, back=False), CopyWork(width_total(moved.rows), "device_to_host"))

    @abstractmethod
    def _access(self, moved: Moved, back: bool) -> tuple[Work, ...]:
        """Return what reads the rows in their memory and brings them `back`, or takes them there."""


@dataclass(frozen=True)
class Dram(_OverHostLink):
    """Memory of the owner's host."""

    def _access(self, moved: Moved, back: bool) -> tuple[Work, ...]:
        return (access(moved.rows, "dram"),)

    @property
    def homes(self) -> Mapping[str, float]:
        """All of a shard."""
        return {"host": 1.0}

    @property
    def noun(self) -> str:
        """Host memory."""
        return "host memory"


@dataclass(frozen=True)
class Ssd(_OverHostLink):
    """Disks of the owner's host; rows pass through a host buffer, whose traffic is small beside."""

    def _access(self, moved: Moved, back: bool) -> tuple[Work, ...]:
        return (access(moved.rows, "ssd"),)

    @property
    def homes(self) -> Mapping[str, float]:
        """All of a shard."""
        return {"ssd": 1.0}

    @property
    def noun(self) -> str:
        """Disks."""
        return "disks of the hosts"


@dataclass(frozen=True)
class Remote(_OverHostLink):
    """Parameter servers: `servers` hosts like those of the cluster, each with 1/servers of all rows.

    Rows cross the rank's connection, on the way there with their keys, each server serves ranks/servers of
    them, and the slowest of network, server, host link and one call to each server sets the time. Raises
    InputError below one server.
    """

    servers: int = 1

    def __post_init__(self) -> None:
        """Refuse an empty server fleet."""
        if self.servers < 1:
            raise InputError(f"at least one parameter server is needed, not {self.servers}")

    def _access(self, moved: Moved, back: bool) -> tuple[Work, ...]:
        served = {
            width: float(np.mean(rows)) * moved.ranks / self.servers for width, rows in moved.rows.items()
        }
        handled = width_total(moved.rows) + KEY_BYTES * sum(moved.rows.values())
        call = RpcWork(1.0, float(np.mean(handled)), self.servers, moved.ranks)
        return (over_wire(moved.rows, "remote", back), over_wire(served, "server", back), call)

    @property
    def stage_kind(self) -> str:
        """Parameter servers have a kind of their own."""
        return "parameter_server"

    @property
    def homes(self) -> Mapping[str, float]:
        """Nothing at the ranks."""
        return {}

    @property
    def noun(self) -> str:
        """Parameter servers."""
        return "1 parameter server" if self.servers == 1 else f"{self.servers} parameter servers"


@dataclass(frozen=True)
class HbmCache(Tier):
    """Device memory holds `share` of each table's rows, the hottest; the others live in `below`.

    `hit_rate` (None: from the table's keys) is the share of the rows that a batch needs which it holds, at
    most as many as fit. With `replacement` `hottest` the same rows stay there, the best for its size while
    popularity stays; with `lru` the least recently used make room. Raises InputError on impossible values.
    """

    share: float
    hit_rate: float | None = None
    below: Tier = field(default_factory=Dram)
    replacement: str = "hottest"

    def __post_init__(self) -> None:
        """Refuse shares that are none."""
        for name, value in (("share", self.share), ("hit_rate", self.hit_rate)):
            if value is not None and not 0.0 <= value <= 1.0:
                raise InputError(f"{name} of a cache must lie between 0 and 1, not {value}")
        if self.replacement not in REPLACEMENTS:
            raise InputError(
                f'unknown value "{self.replacement}"{did_you_mean(self.replacement, REPLACEMENTS)}'
            )
        if isinstance(self.below, HbmCache | Hbm):
            raise InputError("a cache in device memory stands before a slower memory: dram, ssd or remote")

    def read(self, moved: Moved) -> tuple[Work, ...]:
        """Return the way of the misses; the exchange reads hits where they are cached."""
        return self.below.read(self._misses(moved))

    def write(self, moved: Moved) -> tuple[Work, ...]:
        """Return the way back of the misses; rows in the cache are updated in place."""
        return self.below.write(self._misses(moved))

    def _misses(self, moved: Moved) -> Moved:
        return Moved(moved.missed, moved.missed, moved.ranks)

    @property
    def stage_kind(self) -> str:
        """That of the memory below."""
        return self.below.stage_kind

    @property
    def homes(self) -> Mapping[str, float]:
        """The whole shard below, and the cached share of it in device memory."""
        return {**self.below.homes, "hbm": self.share}

    @property
    def noun(self) -> str:
        """The memory of all rows, and how many of them are cached."""
        return f"{self.below.noun} ({self.share:.3g} of the rows cached in device memory)"

    def missed(self, table: EmbeddingTable, lookups: float, distinct: float) -> float:
        """Return the rows outside of the cache, which never holds more of them than it has room for."""
        missing = 1.0 - (self.hit_rate or 0.0)
        if self.hit_rate is None:
            missing = REPLACEMENTS[self.replacement](table.popularity, lookups, self.share, table.rows)
        return max(distinct * missing, distinct - self.room(table))


NAMED: Mapping[str, Tier] = {"dram": Dram(), "hbm": Hbm(), "ssd": Ssd()}


def tier(named: "str | Tier") -> Tier:
    """Return the tier of that name. Raises InputError on an unknown one."""
    if isinstance(named, Tier):
        return named
    if named not in NAMED:
        raise InputError(f'unknown value "{named}"{did_you_mean(named, NAMED)}')
    return NAMED[named]
