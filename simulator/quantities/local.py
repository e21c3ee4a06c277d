"""Work that one rank does by itself: arithmetic, host cores, rows and copies."""

from dataclasses import dataclass
from typing import Protocol

from simulator.quantities.work import Amount, FloatArray, Work


@dataclass(frozen=True, eq=False)
class DenseWork(Work):
    """Matrix products of `flops` (multiply-adds are two), `memory_bytes` of element-wise passes, `kernels`.

    `precision` is that of products; `products`: rows, columns, depth, batch of known ones, a `share` of each.
    """

    flops: Amount
    memory_bytes: Amount = 0.0
    kernels: float = 0.0
    precision: str = "fp32"
    products: FloatArray | None = None
    share: float = 1.0


@dataclass(frozen=True, eq=False)
class CpuWork(Work):
    """Work on host cores: `core_seconds` of one core; `memory_bytes` through host DRAM."""

    core_seconds: Amount
    memory_bytes: Amount = 0.0


class Reuse(Protocol):
    """How often the same rows come again among accesses to rows."""

    def share_on_hottest(self, rows: float) -> float:
        """Return the share (0 to 1) of the accesses that go to the `rows` hottest rows."""

    @property
    def distinct(self) -> float:
        """How many different rows are accessed: that many must come from memory once."""


@dataclass(frozen=True, eq=False)
class RowWork(Work):
    """Random access to `rows` rows of `row_bytes` each in one memory tier.

    `tier` is `hbm`, `dram`, `ssd`, `remote` (over this rank's connection to parameter servers) or
    `server` (in one such server); `passes` counts how often each row crosses the memory bus
    (1 for a read, 2 for read-modify-write, more with optimizer state). `reuse` tells how skewed the
    accesses are (None: unknown, every one reaches the memory), `launches` counts starts of a sparse engine.
    `wire_bytes` is what a row and its key put on a network card in the busier direction (None: the row).
    """

    rows: Amount
    row_bytes: float
    tier: str
    passes: float = 1.0
    reuse: Reuse | None = None
    launches: float = 0.0
    wire_bytes: float | None = None

    @property
    def on_wire(self) -> float:
        """Bytes of a row on a network card, in the busier direction."""
        return self.row_bytes if self.wire_bytes is None else self.wire_bytes


@dataclass(frozen=True, eq=False)
class CopyWork(Work):
    """`bytes` over one copy path: `host_to_device`, `device_to_host` or `device` (HBM to HBM)."""

    bytes: Amount
    path: str
