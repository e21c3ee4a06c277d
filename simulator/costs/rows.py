"""Random access to embedding rows: what narrow rows, cache lines, pages and repeated rows change.

A gather moves rows * width bytes at the share of the bandwidth that random rows reach. Three things
make it dearer or cheaper, each with its own source:

- narrow rows on an accelerator: TorchRec's planner multiplies by 1.15 below 128 values of 4 bytes and
  by 1.75 below 64 (`planner/constants.py`, half and quarter block penalty);
- memories are read in lines of 64 bytes, disks in pages of 4 KiB: a smaller row costs a whole one;
- rows that are asked for again may still be on the chip (`OnChip`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from simulator.errors import InputError, did_you_mean
from simulator.hardware import Cluster
from simulator.hardware.servers import Servers
from simulator.quantities import Amount, RowWork

LINE_BYTES = 64
PAGE_BYTES = 4096
WIDE_ROW, HALF_ROW = 512.0, 256.0  # 128 and 64 values of 4 bytes
HALF_PENALTY, QUARTER_PENALTY = 1.15, 1.75


class RowSpeed(Protocol):
    """Which part of the accesses to rows reaches the memory behind the cache."""

    def equivalent_rows(self, work: RowWork, cache_bytes: float) -> Amount:
        """Return the rows that would take as long if each came from memory."""


@dataclass(frozen=True)
class FromMemory:
    """Every access reaches the memory: no reuse on the chip."""

    def equivalent_rows(self, work: RowWork, cache_bytes: float) -> Amount:
        """Return all rows."""
        return work.rows


FROM_MEMORY = FromMemory()


@dataclass(frozen=True)
class OnChip:
    """The hottest rows that fit in the cache stay there; each comes from memory once.

    `speedup` is the bandwidth of the cache over that of the memory. The default of 3 lies between the
    2.7 of an H100 (8,986 over 3,352 GB/s) and the 3.5 of a V100 (3,133 over 900) in table 3 of
    doi:10.1016/j.ultsonch.2023.106546; rows of 256 bytes from the L3 of a server came 4 times as
    fast as from its memory. That a cache keeps the hottest rows is the best that a cache can do.
    """

    speedup: float = 3.0

    def __post_init__(self) -> None:
        """Raise InputError unless a cache is at least as fast as its memory."""
        if not self.speedup >= 1.0:
            raise InputError(f"the speedup of a cache must be at least 1, not {self.speedup}")

    def equivalent_rows(self, work: RowWork, cache_bytes: float) -> Amount:
        """Return misses, and hits at the cache's speed (our derivation).

        Of A accesses to d different rows, with s of them on the C hottest: C' = min(C, d) rows are
        fetched once, and A s - C' hit.
        """
        if work.reuse is None or cache_bytes <= 0 or work.row_bytes <= 0:
            return work.rows
        slots = min(cache_bytes / work.row_bytes, work.reuse.distinct)
        again = np.maximum(work.rows * work.reuse.share_on_hottest(slots) - slots, 0.0)
        rows: Amount = work.rows - again * (1.0 - 1.0 / self.speedup)
        return rows


def row_seconds(work: RowWork, cluster: Cluster, speed: RowSpeed) -> Amount:
    """Return the time of `work` on each rank when nothing is shared, seconds.

    Raises InputError for an unknown tier, and for a tier that the cluster does not have.
    """
    cost = _TIERS.get(work.tier)
    if cost is None:
        raise InputError(f'no memory is called "{work.tier}"{did_you_mean(work.tier, _TIERS)}')
    return cost(work, cluster, speed)


def narrow_row_penalty(row_bytes: float) -> float:
    """Return by how much longer a byte of a narrow row takes on an accelerator."""
    if row_bytes >= WIDE_ROW:
        return 1.0
    return HALF_PENALTY if row_bytes >= HALF_ROW else QUARTER_PENALTY


def whole_units(row_bytes: float, unit: int) -> float:
    """Return `row_bytes` rounded up to whole lines or pages of `unit` bytes."""
    return float(np.ceil(row_bytes / unit) * unit)


def _hbm(work: RowWork, cluster: Cluster, speed: RowSpeed) -> Amount:
    chip = cluster.accelerator
    moved = speed.equivalent_rows(work, chip.cache_bytes) * work.row_bytes * work.passes
    rate = chip.hbm_bandwidth * chip.gather_efficiency
    gathered = moved * narrow_row_penalty(work.row_bytes) / rate / cluster.speed("memory")
    return gathered + work.launches * chip.launch_time


def _dram(work: RowWork, cluster: Cluster, speed: RowSpeed) -> Amount:
    rows = speed.equivalent_rows(work, cluster.host.cache_bytes / cluster.per_host)
    moved = rows * whole_units(work.row_bytes, LINE_BYTES) * work.passes
    rate = cluster.dram_bandwidth_per_rank * cluster.host.dram_efficiency
    return moved / rate / cluster.speed("host")


def _ssd(work: RowWork, cluster: Cluster, speed: RowSpeed) -> Amount:
    """Pages at the disk's random bandwidth, which a host's ranks share evenly."""
    rate = cluster.ssd_bandwidth_per_rank
    if rate is None:
        raise InputError(f"{cluster.host.name} has no ssd_bandwidth, so rows cannot live on its disk")
    moved = work.rows * whole_units(work.row_bytes, PAGE_BYTES) * work.passes
    return moved / rate / cluster.speed("host")


def _remote(work: RowWork, cluster: Cluster, speed: RowSpeed) -> Amount:
    """Rows over this rank's connection out of its domain, at its full rate whatever the size of the job."""
    moved = work.rows * work.on_wire * work.passes
    return moved / connection(cluster) / cluster.speed("network")


def _server(work: RowWork, cluster: Cluster, speed: RowSpeed) -> Amount:
    """The memory of a server or its network card binds; each row, and its key, crosses the card once."""
    servers = servers_of(cluster)
    memory = servers.host.dram_bandwidth * servers.host.dram_efficiency
    read = work.rows * whole_units(work.row_bytes, LINE_BYTES) * work.passes / memory
    return np.maximum(read, work.rows * work.on_wire / servers.bandwidth)


def servers_of(cluster: Cluster) -> Servers:
    """Return the parameter servers: those described, or hosts of the cluster without their accelerators."""
    if cluster.servers is not None:
        return cluster.servers
    return Servers(cluster.host, connection(cluster) * cluster.per_host)


def connection(cluster: Cluster) -> float:
    """Bytes/s of one rank out of its fast domain. Raises InputError on a fabric that nothing leads out of."""
    return cluster.fabric.way_out(cluster.per_host).rate


_TIERS: Mapping[str, Callable[[RowWork, Cluster, RowSpeed], Amount]] = {
    "hbm": _hbm,
    "dram": _dram,
    "ssd": _ssd,
    "remote": _remote,
    "server": _server,
}
