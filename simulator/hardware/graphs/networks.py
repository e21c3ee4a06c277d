"""What connects fast domains: the protocol of networks, their NICs and tiers, and one that never limits."""

from dataclasses import dataclass
from typing import Protocol

from simulator.hardware import checks
from simulator.hardware.fabric import Link
from simulator.hardware.graphs.fabric_graph import Cable, Sketch
from simulator.hardware.graphs.inside import Counted

FAR_COST = 10
"""The routing cost of links outside a domain: above that of any way inside, so that no pair leaves it."""

SAME_LEAF, SAME_POD, APART = 1, 2, 3
"""The least that two ranks of different domains have in common."""


@dataclass(frozen=True)
class Nics:
    """`per_host` network cards in each host, each with a `link` out and one in."""

    link: Link
    per_host: int

    def __post_init__(self) -> None:
        """Raise InputError on an impossible count."""
        checks.counts("nics", per_host=self.per_host)


@dataclass(frozen=True)
class Tier:
    """`switches` equal switches; each switch below has one `link` up to each of them and one down."""

    switches: int
    link: Link

    def __post_init__(self) -> None:
        """Raise InputError on an impossible count."""
        checks.counts("tier", switches=self.switches)

    def lay(self, sketch: Sketch, below: str, tops: tuple[str, ...], cable: tuple[str, str]) -> None:
        """Lay the links of one switch below; `cable` is their kind and label."""
        kind, label = cable
        for top in tops:
            sketch.both(below, top, Cable(kind, self.link, label, FAR_COST))


@dataclass(frozen=True)
class Spot:
    """A pod or leaf to be wired: how its name begins, and the label of the links above it."""

    name: str
    label: str = ""


@dataclass(frozen=True)
class Far:
    """Pairs of different domains: the part of such pairs, and the levels that their flows climb.

    A flow that is `relayed` first goes to a peer in its own domain and leaves from that one's NIC.
    """

    name: str
    part: float
    climbs: tuple[str, ...] = ()
    relayed: bool = False


class Network(Protocol):
    """What each kind of network says about itself; `rails` counts the NICs of a host."""

    @property
    def leaf_hosts(self) -> int | None:
        """The hosts below one leaf (with rails: one leaf of each rail); None: all."""

    @property
    def pod_leaves(self) -> int | None:
        """The leaves of one pod; None: all."""

    @property
    def in_rails(self) -> bool:
        """Whether NIC i of each host hangs at the leaf of rail i."""

    @property
    def relays(self) -> bool:
        """Whether peers pass traffic on to their NICs."""

    def check(self, hosts: int, groups: int) -> None:
        """Raise InputError if so many hosts in so many groups cannot be joined."""

    def far(self, level: int, rails: int) -> tuple[Far, ...]:
        """Return the classes of the pairs that have `level` in common."""

    def leaf_links(self, rails: int) -> Counted:
        """Return the links above one leaf (with rails: of all rails together)."""

    def pod_links(self) -> Counted:
        """Return the links above one pod."""

    def wire_pod(self, sketch: Sketch, pod: Spot, rails: int) -> tuple[str, ...]:
        """Add the switches on top of a pod, and what is above them; return them."""

    def wire_leaf(self, sketch: Sketch, leaf: Spot, tops: tuple[str, ...], rails: int) -> tuple[str, ...]:
        """Add a leaf and return where its NICs hang: NIC i at entry i, modulo their number."""


class Boundless:
    """Kinds that join any number of hosts."""

    def check(self, hosts: int, groups: int) -> None:
        """Accept any number."""


@dataclass(frozen=True)
class Flat(Boundless):
    """A network that never limits: only the NICs do."""

    leaf_hosts = None
    pod_leaves = None
    in_rails = False
    relays = False

    def far(self, level: int, rails: int) -> tuple[Far, ...]:
        """Return all pairs as one class."""
        return (Far("across", 1.0),)

    def leaf_links(self, rails: int) -> Counted:
        """Return none."""
        return {}

    def pod_links(self) -> Counted:
        """Return none."""
        return {}

    def wire_pod(self, sketch: Sketch, pod: Spot, rails: int) -> tuple[str, ...]:
        """Add one switch for all."""
        return (sketch.node("network", "network"),)

    def wire_leaf(self, sketch: Sketch, leaf: Spot, tops: tuple[str, ...], rails: int) -> tuple[str, ...]:
        """Hang all NICs at that switch."""
        return tops


FLAT = Flat()
