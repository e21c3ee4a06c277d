"""What an algorithm of a collective needs to know of the ranks that take part and of the links between them.

Ranks sit in domains with fast links. Each level, inside domains (`near`) and between them (`far`), has a
start-up and knows which links a flow to a peer crosses. The fabrics are taken apart in `grounds`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simulator.costs.lanes import Lanes
from simulator.costs.phases import Flows, Phase
from simulator.hardware.crossings import Exchange, members
from simulator.quantities import Amount, IntArray

Crossing = Mapping[str, float]


@dataclass(frozen=True)
class Peers:
    """Alike peers: each rank has `count` of them (a mean), inside its domain or not (`far`).

    `crossing` says how many flows cross one link of a class when every rank sends one to each of them.
    """

    count: float
    far: bool
    crossing: Crossing

    def flows(self, part: float) -> Flows:
        """Return a flow of `part` bytes from each rank to each of these peers."""
        near, far = (0.0, self.count) if self.far else (self.count, 0.0)
        return Flows(part, self.crossing, near=near, far=far)


@dataclass(frozen=True)
class Level:
    """The ranks of one domain, or the ranks of all domains that stand at the same place.

    `latency` is the start-up (s) of the smallest collective between two, which is a message there and
    one back; `per_message` what each further message costs that must be waited for; `cable` the time of
    any message on its way, on top. `tuned` is the start-up of a reduction as a tuned library does it on
    the whole level. `neighbour`: one flow from each rank to the next on the level; `peers`: one to each.
    `outside`: the level joins domains.
    """

    latency: float
    per_message: float
    cable: float
    tuned: float
    neighbour: Crossing
    peers: tuple[Peers, ...]
    outside: bool = False

    def seconds(self, messages: float) -> float:
        """Return the start-up of so many messages one after the other."""
        return self.latency + self.per_message * max(0.0, messages - 2) + self.cable * messages

    def to_next(self, moved: float, times: float = 1.0) -> Flows:
        """Return `times` flows of `moved` bytes from each rank to the next on the level."""
        crossing = {link: count * times for link, count in self.neighbour.items()}
        near, far = (0.0, times) if self.outside else (times, 0.0)
        return Flows(moved, crossing, near=near, far=far)


@dataclass(frozen=True)
class Ground:
    """`ranks` that take part, `inside` of them in each of `domains` domains; both levels, and all peers.

    `far` is None where there is one domain. `grid`: links run along the axes of a torus, and rings
    along all of them at once. `per_peer` is the time (s) that each peer costs a rank in an exchange.
    `rates` are those of one link of a class, bytes/s. Unlike loads are put on the links of `lanes`.
    """

    ranks: int
    inside: int
    domains: int
    near: Level
    far: Level | None
    everyone: tuple[Peers, ...]
    rates: Mapping[str, float]
    per_peer: float = 0.0
    grid: bool = False
    lanes: Lanes | None = None

    @property
    def widest(self) -> Level:
        """The level that joins all ranks."""
        return self.near if self.far is None else self.far

    @property
    def leaving(self) -> float:
        """The share of a rank's bytes in an exchange, own share included, that goes out of its domain."""
        return sum(peers.count for peers in self.everyone if peers.far) / self.ranks

    @property
    def staying(self) -> float:
        """The share that goes to others in its domain."""
        return sum(peers.count for peers in self.everyone if not peers.far) / self.ranks

    @property
    def group_of(self) -> IntArray:
        """The number of the group of each rank of the job."""
        assert self.lanes is not None
        return members(self.lanes.ranks, self.lanes.group)

    def phase(self, seconds: float, exchange: Exchange) -> Phase:
        """Return a start-up of so many seconds, then an uneven exchange, each link with its own bytes."""
        assert self.lanes is not None
        crossed = self.lanes.crossed(exchange, self.rates)
        return Phase(seconds, crossed.flows, crossed.finish)


@dataclass(frozen=True)
class Load:
    """Bytes that each rank of the job sends and receives, its own share included: alike, or one for each.

    `speed` is the share of its nominal rate that each rank's own links reach.
    """

    sent: Amount
    received: Amount
    speed: Amount = 1.0

    @classmethod
    def of(cls, size: float) -> "Load":
        """Return the load of ranks that all carry `size` bytes."""
        return cls(size, size)

    @property
    def even(self) -> bool:
        """Whether all ranks have the same to send and to receive, and links as fast."""
        return all(float(np.ptp(amount)) == 0.0 for amount in (self.sent, self.received, self.speed))

    @property
    def busiest(self) -> float:
        """The bytes of the busiest rank, at the pace of the slowest where links are not nominal."""
        return float(np.max(np.maximum(self.sent, self.received) / self.speed))

    def halved(self) -> "Load":
        """Return half of it."""
        return Load(self.sent / 2, self.received / 2, self.speed)

    def exchange(self, group: IntArray) -> Exchange:
        """Return the exchange of ranks in groups of these numbers, (ranks,)."""
        sent, received = (
            np.broadcast_to(np.asarray(one, float), group.shape) for one in (self.sent, self.received)
        )
        return Exchange(sent, received, group)
