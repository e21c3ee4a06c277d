"""Networks of switches: fat trees of two and three levels, and rails."""

from dataclasses import dataclass

from simulator.errors import InputError
from simulator.hardware import checks
from simulator.hardware.fabric import Link
from simulator.hardware.graphs.fabric_graph import Sketch
from simulator.hardware.graphs.inside import Counted
from simulator.hardware.graphs.networks import APART, SAME_LEAF, SAME_POD, Boundless, Far, Nics, Spot, Tier


@dataclass(frozen=True)
class FatTree(Boundless):
    """Leaves for `leaf_hosts` hosts below `spines`: two levels, or three with pods and `cores`.

    With `pod_leaves`, each pod has its own spines, and spine i of every pod one link to each switch of
    core group i, which has `cores.switches` of them (Al-Fares et al., 2008). Flows are split equally
    over all ways up (ECMP). What is oversubscribed follows from the links; `oversubscribed` sets it.
    """

    leaf_hosts: int
    spines: Tier
    pod_leaves: int | None = None
    cores: Tier | None = None
    in_rails = False
    relays = False

    def __post_init__(self) -> None:
        """Raise InputError on an impossible count, or on pods without cores and cores without pods."""
        checks.counts("fat tree", leaf_hosts=self.leaf_hosts)
        if (self.pod_leaves is None) != (self.cores is None):
            raise InputError(
                "fat tree: pod_leaves and cores go together: three levels need both, two neither"
            )
        if self.pod_leaves is not None:
            checks.counts("fat tree", pod_leaves=self.pod_leaves)

    def far(self, level: int, rails: int) -> tuple[Far, ...]:
        """Return the pairs as one class: below one leaf, in one pod, or apart."""
        top = "same pod" if self.cores else "across"
        known = {SAME_LEAF: ("same leaf", ()), SAME_POD: (top, ("leaf",)), APART: ("across", ("leaf", "pod"))}
        name, climbs = known[level]
        return (Far(name, 1.0, climbs),)

    def leaf_links(self, rails: int) -> Counted:
        """Return one link each way for each spine."""
        return {f"leaf {way}": (self.spines.switches, self.spines.link) for way in ("up", "down")}

    def pod_links(self) -> Counted:
        """Return one link each way for each core switch of each spine."""
        if self.cores is None:
            return {}
        count = self.spines.switches * self.cores.switches
        return {f"pod {way}": (count, self.cores.link) for way in ("up", "down")}

    def wire_pod(self, sketch: Sketch, pod: Spot, rails: int) -> tuple[str, ...]:
        """Add spines, below their core groups if there are any."""
        spines = _switches(sketch, f"{pod.name}spine", self.spines.switches, "spine")
        if self.cores is not None:
            for group, spine in enumerate(spines):
                cores = _switches(sketch, f"core{group}.", self.cores.switches, "core")
                self.cores.lay(sketch, spine, cores, ("pod", pod.label))
        return spines

    def wire_leaf(self, sketch: Sketch, leaf: Spot, tops: tuple[str, ...], rails: int) -> tuple[str, ...]:
        """Add one leaf below all spines of its pod."""
        self.spines.lay(sketch, sketch.node(leaf.name, "leaf"), tops, ("leaf", leaf.label))
        return (leaf.name,)


def oversubscribed(ratio: float, leaf_hosts: int, nics: Nics, spines: int = 4) -> FatTree:
    """Return a two-level tree whose leaves have 1/`ratio` of the bandwidth up that their NICs have down."""
    checks.positive("fat tree", ratio=ratio)
    up = leaf_hosts * nics.per_host * nics.link.bandwidth / ratio / spines
    return FatTree(leaf_hosts, Tier(spines, Link(up, nics.link.latency, nics.link.efficiency)))


@dataclass(frozen=True)
class Rails:
    """NIC i of each host hangs at leaf i of its unit of `unit_hosts` hosts; `spines` join the leaves.

    Without `relays`, all leaves share the spines, and flows between rails climb to them. With it, each
    rail has spines of its own, and a flow to another rail first goes to the peer in its own domain
    that sits on that rail (as NCCL's PXN does). Rails without spines are one unit that relays.
    """

    unit_hosts: int
    spines: Tier | None
    relays: bool = False
    pod_leaves = None
    in_rails = True

    def __post_init__(self) -> None:
        """Raise InputError on an impossible count, or if nothing joins the rails."""
        checks.counts("rails", unit_hosts=self.unit_hosts)
        if self.spines is None and not self.relays:
            raise InputError("rails: without spines only relays through peers can join the rails")

    @property
    def leaf_hosts(self) -> int:
        """The hosts of one unit."""
        return self.unit_hosts

    def check(self, hosts: int, groups: int) -> None:
        """Raise InputError if there are several units and no spines."""
        if self.spines is None and (hosts > self.unit_hosts or groups > 1):
            one = f"one unit of {self.unit_hosts} hosts"
            raise InputError(f"rails without spines join {one}, not {hosts} hosts in {groups} groups")

    def far(self, level: int, rails: int) -> tuple[Far, ...]:
        """Return pairs on one rail and on two; `rails` is 1 where a host uses all of them for any pair."""
        same, climbs = 1 / rails, ("leaf",)
        if level == SAME_LEAF:
            between = Far("same unit, other rail", 1 - same, () if self.relays else climbs, self.relays)
            return Far("same leaf", same), between
        return Far("same rail", same, climbs), Far("other rail", 1 - same, climbs, self.relays)

    def leaf_links(self, rails: int) -> Counted:
        """Return, for each rail of a unit, one link each way for each spine it sees."""
        if self.spines is None:
            return {}
        return {f"leaf {way}": (rails * self.spines.switches, self.spines.link) for way in ("up", "down")}

    def pod_links(self) -> Counted:
        """Return none: spines are the top."""
        return {}

    def wire_pod(self, sketch: Sketch, pod: Spot, rails: int) -> tuple[str, ...]:
        """Add the spines: shared ones, or those of rail 0, then of rail 1, and so on."""
        if self.spines is None:
            return ()
        planes = [f"rail{rail}/spine" for rail in range(rails)] if self.relays else ["spine"]
        each = self.spines.switches
        return tuple(spine for plane in planes for spine in _switches(sketch, plane, each, "spine"))

    def wire_leaf(self, sketch: Sketch, leaf: Spot, tops: tuple[str, ...], rails: int) -> tuple[str, ...]:
        """Add a leaf for each rail, below all spines or below those of its rail."""
        names = _switches(sketch, f"{leaf.name}/rail", rails, "leaf")
        if self.spines is not None:
            for rail, name in enumerate(names):
                self.spines.lay(sketch, name, self._above(rail, tops), ("leaf", leaf.label))
        return names

    def _above(self, rail: int, tops: tuple[str, ...]) -> tuple[str, ...]:
        if self.spines is None or not self.relays:
            return tops
        each = self.spines.switches
        return tops[rail * each : (rail + 1) * each]


def _switches(sketch: Sketch, begin: str, count: int, kind: str) -> tuple[str, ...]:
    return tuple(sketch.node(f"{begin}{number}", kind) for number in range(count))
