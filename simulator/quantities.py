"""Work: how much there is to do. Amounts in SI units, never seconds of wall time.

An amount is a float when all ranks are alike, or an array with one entry per rank. How fast the
work is done is the business of `simulator.costs`; the two meet in `CostModel.seconds(work)`.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Amount = float | FloatArray


@dataclass(frozen=True, eq=False)
class Work:
    """The base of every kind of work; compared by identity because amounts may be arrays."""

    @property
    def rendezvous(self) -> bool:
        """Whether ranks must meet to do it: true for collectives."""
        return False


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
    """

    rows: Amount
    row_bytes: float
    tier: str
    passes: float = 1.0
    reuse: Reuse | None = None
    launches: float = 0.0


@dataclass(frozen=True, eq=False)
class CopyWork(Work):
    """`bytes` over one copy path: `host_to_device`, `device_to_host` or `device` (HBM to HBM)."""

    bytes: Amount
    path: str


@dataclass(frozen=True)
class Group:
    """The ranks of one collective: `size` of them, `stride` apart; all ranks are in some group alike.

    Stride 1 is neighbours; with stride s the members are r, r + s, r + 2 s, ...
    """

    size: int
    stride: int = 1


@dataclass(frozen=True, eq=False)
class AllToAllWork(Work):
    """One exchange in which each rank sends `bytes` in all, its own share included.

    `received_bytes` (default: the same) is what each rank gets; a hot owner sends or receives more.
    `group` (default: all ranks) says who exchanges with whom. In several `rounds`, one after the other,
    each has its own start-up.
    """

    bytes: Amount
    received_bytes: Amount | None = None
    group: Group | None = None
    rounds: int = 1

    @property
    def rendezvous(self) -> bool:
        """Return true: nobody has all rows before everybody has sent."""
        return True


@dataclass(frozen=True, eq=False)
class AllReduceWork(Work):
    """One all-reduce of a vector of `bytes` held by every rank of a `group` (default: all ranks)."""

    bytes: float
    group: Group | None = None

    @property
    def rendezvous(self) -> bool:
        """Return true: the sum needs every rank."""
        return True


@dataclass(frozen=True, eq=False)
class ReduceScatterWork(Work):
    """Vectors of `bytes` on every rank of a `group` are added up; each rank keeps an equal part.

    `rounds` as in an all-to-all.
    """

    bytes: Amount
    group: Group | None = None
    rounds: int = 1

    @property
    def rendezvous(self) -> bool:
        """Return true: the sum needs every rank."""
        return True


class AllGatherWork(ReduceScatterWork):
    """The way back: each rank's part of a vector of `bytes` goes to all ranks of the group."""


@dataclass(frozen=True, eq=False)
class BroadcastWork(Work):
    """One rank of a `group` (default: all ranks) sends the same `bytes` to all others of it."""

    bytes: Amount
    group: Group | None = None

    @property
    def rendezvous(self) -> bool:
        """Return true: nobody has the bytes before they were sent."""
        return True


@dataclass(frozen=True, eq=False)
class PointToPointWork(Work):
    """Every rank sends `bytes` to the one `distance` further on; after the last comes the first."""

    bytes: Amount
    distance: int = 1

    @property
    def rendezvous(self) -> bool:
        """Return true: a rank needs what another one sends."""
        return True


@dataclass(frozen=True, eq=False)
class RpcWork(Work):
    """Calls of this rank to parameter servers: `calls` to each of `servers`, `bytes` to and from all of them.

    Calls are made one after the other (`in_turn`), or all at once. As many are made by `ranks` ranks at
    the same time. The busiest server has `hottest` times the mean load. With `meets`, servers answer
    when all ranks have called.
    """

    calls: float
    bytes: float
    servers: int = 1
    ranks: int = 1
    in_turn: bool = False
    hottest: float = 1.0
    meets: bool = False

    @property
    def rendezvous(self) -> bool:
        """Whether servers wait for all ranks."""
        return self.meets


@dataclass(frozen=True, eq=False)
class ServerWork(Work):
    """Work of one host of the servers' kind for all ranks.

    `core_seconds` and the decisions on `keys` go over its cores, `sent_bytes` out of its network card.
    """

    core_seconds: float
    sent_bytes: float = 0.0
    keys: float = 0.0


@dataclass(frozen=True, eq=False)
class HoldWork(Work):
    """`seconds` measured on a real system, held without using any resource; `why` says what it is.

    The one exception to "never seconds": quantities that were measured as times and that no
    resource of ours explains. Every report flags the stages that contain it.
    """

    seconds: Amount
    why: str


@dataclass(frozen=True, eq=False)
class InTurn(Work):
    """Parts done one after the other within one stage."""

    parts: tuple[Work, ...]

    @property
    def rendezvous(self) -> bool:
        """Whether any part is a collective."""
        return any(part.rendezvous for part in self.parts)


@dataclass(frozen=True, eq=False)
class Together(Work):
    """Parts that stream through each other in chunks: the slowest sets the time."""

    parts: tuple[Work, ...]

    @property
    def rendezvous(self) -> bool:
        """Whether any part is a collective."""
        return any(part.rendezvous for part in self.parts)


NOTHING = InTurn(())
