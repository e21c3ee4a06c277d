"""Work for which ranks meet: collectives over all ranks or a group of them."""

from dataclasses import dataclass

from simulator.quantities.work import Amount, Work


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
class PartsWork(Work):
    """Each rank of a `group` (default: all ranks) has an equal part of a vector of `bytes`, before or after.

    `rounds` as in an all-to-all.
    """

    bytes: Amount
    group: Group | None = None
    rounds: int = 1

    @property
    def rendezvous(self) -> bool:
        """Return true: every rank has a part of the whole."""
        return True


class ReduceScatterWork(PartsWork):
    """Vectors of `bytes` on every rank of the group are added up; each rank keeps its part."""


class AllGatherWork(PartsWork):
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


Collective = AllToAllWork | AllReduceWork | PartsWork | BroadcastWork | PointToPointWork
