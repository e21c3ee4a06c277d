"""All-to-all, even or not: directly, in pairs one after the other, or by way of a peer in the own domain.

The bytes between two ranks are taken to be in proportion to what one sends and the other receives.
"""

from dataclasses import dataclass

import numpy as np

from simulator.costs.algorithms.algorithm import Plan
from simulator.costs.algorithms.ground import Ground, Load, Peers
from simulator.costs.phases import Phase
from simulator.errors import InputError
from simulator.quantities import Amount, FloatArray


@dataclass(frozen=True)
class Direct:
    """All messages at once. Everybody gets something from the busiest rank, which sets the time of all."""

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return one phase: a start-up, and time for each peer; then a flow to every other rank."""
        level, part = ground.widest, load.busiest / ground.ranks
        seconds = level.latency + level.cable + ground.per_peer * (ground.ranks - 1)
        return Plan("direct", (Phase(seconds, tuple(peers.flows(part) for peers in ground.everyone)),))


@dataclass(frozen=True)
class Pairwise:
    """N - 1 rounds; in each a rank exchanges with one other and waits for it before the next.

    A round costs what the smallest exchange of two costs, and lasts as long as its largest message.
    Rounds between ranks alike (in one domain, below one leaf) are put together in one phase.
    """

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return one phase for each class of peers: a start-up per round, and its messages."""
        part = _mean_of_largest(load, ground.ranks)
        return Plan("pairwise", tuple(self._rounds(ground, peers, part) for peers in ground.everyone))

    def _rounds(self, ground: Ground, peers: Peers, part: float) -> Phase:
        level = ground.widest if peers.far else ground.near
        seconds = peers.count * (level.latency + level.cable + ground.per_peer)
        return Phase(seconds, (peers.flows(part),))


@dataclass(frozen=True)
class HierarchicalExchange:
    """First inside domains, to the rank that stands where the receiver does in its domain; then between.

    Fewer and larger messages: each rank has inside - 1 + domains - 1 peers instead of ranks - 1. What
    a busy rank sends leaves through all links of its domain; what a busy rank receives does not.
    """

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return the two phases; within one domain a direct exchange.

        Raises InputError on a torus, which has no domains.
        """
        if ground.grid:
            raise InputError("all_to_all: hierarchical is not known on a torus, which has no domains: direct")
        if ground.far is None or ground.inside == 1:
            return Direct().plan(ground, load)
        near, far = _relayed(load, ground)
        return Plan(
            "hierarchical",
            (
                _one_level(ground, far=False, part=near / ground.inside),
                _one_level(ground, far=True, part=far / ground.domains),
            ),
        )


def _one_level(ground: Ground, far: bool, part: float) -> Phase:
    level = ground.widest if far else ground.near
    count = (ground.domains if far else ground.inside) - 1
    seconds = level.latency + level.cable + ground.per_peer * count
    return Phase(seconds, tuple(peers.flows(part) for peers in level.peers))


def _mean_of_largest(load: Load, ranks: int) -> float:
    """Return the largest message of a round, the mean over the rounds; rank r meets r + k in round k."""
    sent, received = _all(load.sent, ranks), _all(load.received, ranks)
    total = received.sum()
    if not total or _even(sent) or _even(received):
        return load.busiest / ranks
    twice = np.concatenate([received, received])
    largest = sum(float((sent * twice[shift : shift + ranks]).max()) for shift in range(1, ranks))
    return largest / float(total) / (ranks - 1)


def _relayed(load: Load, ground: Ground) -> tuple[float, float]:
    """Return the bytes, own share included, of the busiest rank inside its domain and between domains."""
    if isinstance(load.sent, float) and isinstance(load.received, float):
        return load.busiest, load.busiest
    ranks = ground.inside * ground.domains
    sent, received = (np.resize(_all(one, ground.ranks), ranks) for one in (load.sent, load.received))
    domains, places = sent.reshape(-1, ground.inside), received.reshape(-1, ground.inside)
    passed_on = domains.mean(axis=1).max()
    popular = places.sum(axis=0).max() / max(received.sum(), np.finfo(float).tiny) * ground.inside
    return float(max(sent.max(), passed_on * popular)), float(max(passed_on, received.max()))


def _all(amount: Amount, ranks: int) -> FloatArray:
    return np.broadcast_to(np.asarray(amount, dtype=float), ranks)


def _even(amount: FloatArray) -> bool:
    return bool(np.ptp(amount) == 0.0)
