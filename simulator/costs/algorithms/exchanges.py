"""All-to-all, even or not: directly, in pairs one after the other, or by way of a peer in the own domain.

The bytes between two ranks are taken to be in proportion to what one sends and the other receives.
"""

from dataclasses import dataclass, replace

import numpy as np

from simulator.costs.algorithms.algorithm import Plan
from simulator.costs.algorithms.ground import Ground, Load, Peers
from simulator.costs.phases import Phase
from simulator.errors import InputError
from simulator.hardware.crossings import Exchange
from simulator.quantities import IntArray


@dataclass(frozen=True)
class Direct:
    """All messages at once; each link carries those that cross it."""

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return one phase: a start-up, and time for each peer; then a flow to every other rank."""
        level = ground.widest
        seconds = level.latency + level.cable + ground.per_peer * (ground.ranks - 1)
        if load.even:
            part = load.busiest / ground.ranks
            return Plan("direct", (Phase(seconds, tuple(peers.flows(part) for peers in ground.everyone)),))
        return Plan("direct", (ground.phase(seconds, load.exchange(ground.group_of)),))


@dataclass(frozen=True)
class Pairwise:
    """N - 1 rounds; in each a rank exchanges with one other and waits for it before the next.

    A round costs what the smallest exchange of two costs, and lasts as long as its largest message, which
    is taken for all messages of the round, also where they share a link.
    Rounds between ranks alike (in one domain, below one leaf) are put together in one phase.
    """

    def plan(self, ground: Ground, load: Load) -> Plan:
        """Return one phase for each class of peers: a start-up per round, and its messages."""
        part = _mean_of_largest(load, ground)
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
        near, far = _start_up(ground, far=False), _start_up(ground, far=True)
        if load.even:
            inside = tuple(peers.flows(load.busiest / ground.inside) for peers in ground.near.peers)
            between = tuple(peers.flows(load.busiest / ground.domains) for peers in ground.widest.peers)
            return Plan("hierarchical", (Phase(near, inside), Phase(far, between)))
        first, second = _relayed(load.exchange(ground.group_of), ground)
        return Plan(
            "hierarchical", (replace(ground.phase(near, first), finish=None), ground.phase(far, second))
        )


def _start_up(ground: Ground, far: bool) -> float:
    level = ground.widest if far else ground.near
    count = (ground.domains if far else ground.inside) - 1
    return level.latency + level.cable + ground.per_peer * count


def _mean_of_largest(load: Load, ground: Ground) -> float:
    """Return the largest message of a round, the mean over the rounds; rank r meets r + k in round k.

    In groups that of the group for which it is largest.
    """
    if load.even:
        return load.busiest / ground.ranks
    order = _by_group(ground.group_of)
    whole = load.exchange(ground.group_of)
    sent = (whole.sent / whole.totals / load.speed)[order].reshape(-1, ground.ranks)
    received = (whole.received / load.speed)[order].reshape(-1, ground.ranks)
    twice, largest = np.concatenate([received, received], axis=1), np.zeros(len(sent))
    for shift in range(1, ground.ranks):
        largest += (sent * twice[:, shift : shift + ground.ranks]).max(axis=1)
    return float(largest.max()) / (ground.ranks - 1)


def _by_group(group: IntArray) -> IntArray:
    """Return the ranks of one group after the other, each in order."""
    return np.argsort(group, kind="stable")


def _relayed(whole: Exchange, ground: Ground) -> tuple[Exchange, Exchange]:
    """Return the exchange inside domains, by the place that bytes go to, and that between equal places.

    Domains and places are counted among the members of a group. What a rank gets inside, and passes on, is
    that part of what its domain sends which goes to ranks at its place.
    """
    member = np.zeros_like(whole.group)
    member[_by_group(whole.group)] = np.arange(len(member)) % ground.ranks
    domain = whole.group * ground.domains + member // ground.inside
    place = whole.group * ground.inside + member % ground.inside
    wanted = np.bincount(place, whole.received)[place]
    brought = np.bincount(domain, whole.sent)[domain] * wanted / whole.totals
    return Exchange(whole.sent, brought, domain), Exchange(brought, whole.received, place)
