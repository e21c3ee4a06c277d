"""Fabrics: how accelerators reach each other. Each kind is a class; `Fabric` is what they share.

Bandwidths are bytes/s per accelerator and direction. A latency is the fixed time, in seconds, of the
smallest exchange on that level as software sees it; how it grows with the number of ranks is the
business of the cost model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from simulator.errors import InputError
from simulator.hardware import checks
from simulator.hardware.crossings import Crossings, two_levels
from simulator.quantities import Group


@dataclass(frozen=True)
class Link:
    """One level as an accelerator sees it: nominal bytes/s and direction, seconds, share reached."""

    bandwidth: float
    latency: float = 0.0
    efficiency: float = 1.0

    def __post_init__(self) -> None:
        """Raise InputError on an impossible value."""
        checks.positive("link", bandwidth=self.bandwidth)
        checks.not_negative("link", latency=self.latency)
        checks.shares("link", efficiency=self.efficiency)

    @property
    def rate(self) -> float:
        """The bytes/s that large transfers reach."""
        return self.bandwidth * self.efficiency


@dataclass(frozen=True)
class WayOut:
    """How a rank reaches what lies outside of its fast domain: its part of the cards, in bytes/s.

    `links` are the classes of links that such traffic crosses once.
    """

    rate: float
    links: tuple[str, ...]


class Fabric(Protocol):
    """What every fabric can say about itself, whatever its shape."""

    @property
    def on_host_links(self) -> bool:
        """Whether traffic inside a fast domain passes the accelerators' host links, as over PCIe."""

    def way_out(self, per_host: int) -> WayOut:
        """Return how a rank reaches parameter servers. Raises InputError where no card leads out."""

    def domain_size(self, per_host: int) -> int:
        """Return how many accelerators reach each other at the fast rate, for hosts of `per_host`."""

    def check(self, ranks: int, per_host: int) -> None:
        """Raise InputError if `ranks` accelerators in hosts of `per_host` cannot be wired like this."""

    def resized(self, ranks: int) -> "Fabric":
        """Return the same kind of fabric for another number of accelerators."""

    def injection_bandwidth(self) -> float:
        """Return the bytes/s that one accelerator can send on all its fast links together."""

    def bisection_bandwidth(self, ranks: int, per_host: int) -> float:
        """Return the bytes/s, in one direction, between two halves of `ranks` accelerators."""

    def crossings(self, ranks: int, per_host: int, group: Group | None = None) -> Crossings:
        """Return the links between all ranks one by one, at the rates that messages in a `group` find."""


Crossing = Mapping[str, float]
"""How many flows cross one link of each class."""


@dataclass(frozen=True)
class PeerClass:
    """Alike peers: each rank has `count` (a mean), in its fast domain (`near`) or outside of it.

    `latency` is the time of a message on the cables, s. `crossing` holds for one flow from each rank to
    each of these peers. `elsewhere`: they hang at another rail, so they stand at another place.
    """

    count: float
    near: bool
    latency: float
    crossing: Crossing
    elsewhere: bool = False


def no_way_out(kind: str) -> InputError:
    """Return the refusal of parameter servers on a fabric from which no card leads out."""
    return InputError(
        f"no network card leads out of a {kind} fabric, so parameter servers cannot be reached: "
        "take two_level, or flat, fat_tree or rails with nics"
    )


@runtime_checkable
class Ways(Protocol):
    """What collectives need to know of a fabric's links and ways; a `group` of None is all ranks.

    All groups communicate at once.
    """

    @property
    def rates(self) -> Mapping[str, float]:
        """Bytes/s that one link of each class reaches."""

    @property
    def start_up(self) -> float:
        """Seconds before the first byte of a collective moves, cables not included."""

    def together(self, group: Group | None) -> int:
        """Return how many members of a group share a fast domain."""

    def peers(self, group: Group | None) -> tuple[PeerClass, ...]:
        """Return the classes of peers that a rank has in its group."""

    def to_neighbour(self, near: bool, group: Group | None) -> Crossing:
        """Return how many flows cross a link when each rank sends one to the next, near or far."""


@dataclass(frozen=True)
class TwoLevel:
    """A fast level inside a domain and a slower one between domains, both without oversubscription.

    `domain` counts the accelerators of a fast domain (None: those of one host; 72 for an NVL72 rack).
    With `decay_workers` = d the rate between domains falls with scale as 1 / (1 + workers / d): an
    empirical form of ours for what congestion, uneven routes and slow links take together.
    """

    within: float
    between: float
    within_latency: float = 0.0
    between_latency: float = 0.0
    domain: int | None = None
    within_efficiency: float = 1.0
    between_efficiency: float = 1.0
    decay_workers: float | None = None

    def __post_init__(self) -> None:
        """Raise InputError on an impossible value."""
        checks.positive("two_level", within=self.within, between=self.between)
        checks.not_negative("two_level", within_latency=self.within_latency)
        checks.not_negative("two_level", between_latency=self.between_latency)
        checks.shares("two_level", within_efficiency=self.within_efficiency)
        checks.shares("two_level", between_efficiency=self.between_efficiency)
        if self.domain is not None:
            checks.counts("two_level", domain=self.domain)
        if self.decay_workers is not None:
            checks.positive("two_level", decay_workers=self.decay_workers)

    @property
    def on_host_links(self) -> bool:
        """No: the links inside a domain are apart."""
        return False

    def way_out(self, per_host: int) -> WayOut:
        """Return the link between domains, at its full rate whatever the size of the job."""
        return WayOut(self.slow(0).rate, ("far out", "far in"))

    @property
    def fast(self) -> Link:
        """The link of one accelerator inside its domain."""
        return Link(self.within, self.within_latency, self.within_efficiency)

    def slow(self, workers: int) -> Link:
        """Return the link of one accelerator to other domains when `workers` ranks use the fabric."""
        decay = 1.0 if self.decay_workers is None else 1.0 / (1.0 + workers / self.decay_workers)
        return Link(self.between, self.between_latency, self.between_efficiency * decay)

    def domain_size(self, per_host: int) -> int:
        """Return the accelerators of one fast domain: the host's, unless `domain` says otherwise."""
        return per_host if self.domain is None else self.domain

    def check(self, ranks: int, per_host: int) -> None:
        """Raise InputError unless domains hold whole hosts or hosts hold whole domains."""
        domain = self.domain_size(per_host)
        if domain % per_host and per_host % domain:
            raise InputError(f"a fast domain of {domain} accelerators does not fit hosts of {per_host}")

    def resized(self, ranks: int) -> "TwoLevel":
        """Return itself: the rates are per accelerator and do not depend on the count."""
        return self

    def injection_bandwidth(self) -> float:
        """Return what one accelerator can send inside its domain, bytes/s."""
        return self.fast.rate

    def bisection_bandwidth(self, ranks: int, per_host: int) -> float:
        """Return half the ranks times the rate of the level that the cut crosses, bytes/s."""
        link = self.fast if ranks <= self.domain_size(per_host) else self.slow(ranks)
        return ranks / 2 * link.rate

    def crossings(self, ranks: int, per_host: int, group: Group | None = None) -> Crossings:
        """Return one link each way for each rank, into its domain and out of it."""
        domain = np.arange(ranks, dtype=np.int64) // self.domain_size(per_host)
        return two_levels(domain, self.fast.rate, self.slow(group.size if group else ranks).rate)
