"""The `cluster.fabric` part of a scenario: levels, a torus, wired networks, or a graph from a file."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import Field

from simulator.hardware import Fabric, Torus, TwoLevel
from simulator.scenario.base import Spec
from simulator.scenario.fields import Bandwidth, Count, Flag, Fraction, PositiveFloat, Time
from simulator.scenario.places import inside
from simulator.scenario.wiring_spec import InsideSpec, NicsSpec, TierSpec

if TYPE_CHECKING:  # graphs bring networkx along, which only wired fabrics need
    from simulator.hardware.graphs.networks import Network


@dataclass(frozen=True)
class Shape:
    """What a fabric must fit: ranks per host, hosts; and the folder that its files are in."""

    per_host: int
    hosts: int
    folder: Path


class FabricPart(Spec):
    """What all kinds of fabric share."""

    @classmethod
    def written_out(cls, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return an entry of the hardware catalog as a scenario writes it: the same numbers, by name."""
        numbers = {name: one["value"] for name, one in entry.items() if isinstance(one, Mapping)}
        return {name: entry[name] for name in ("kind", "wrap") if name in entry} | numbers

    @property
    def is_perfect(self) -> bool:
        """Whether some level reaches its nominal rate because nothing else was said."""
        stated = {name: value for name, value in self if name.endswith("efficiency")}
        return any(value == 1.0 and name not in self.model_fields_set for name, value in stated.items())

    @abstractmethod
    def build(self, shape: Shape) -> Fabric:
        """Return the fabric for a cluster of this shape."""


class TwoLevelSpec(FabricPart):
    """A fast level in a domain (default: the host) and a slower one between domains.

    Rates are per accelerator and direction. `latency` holds for both levels unless
    `within_latency` gives the fast one its own. `decay_workers`: the number of workers at which
    the rate between domains has halved.
    """

    kind: Literal["two_level"]
    within: Bandwidth
    between: Bandwidth
    latency: Time
    within_latency: Time | None = None
    domain: Count | None = None
    within_efficiency: Fraction = 1.0
    between_efficiency: Fraction = 1.0
    decay_workers: PositiveFloat | None = None

    @classmethod
    def written_out(cls, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return an entry of the catalog as a scenario writes it: `latency` there holds between domains."""
        found = super().written_out(entry)
        latency = found.pop("between_latency", "0 s")
        return {"within_latency": "0 s", **found, "latency": latency}

    def build(self, shape: Shape) -> Fabric:
        """Return the fabric."""
        within = self.latency if self.within_latency is None else self.within_latency
        return TwoLevel(
            self.within,
            self.between,
            within_latency=within,
            between_latency=self.latency,
            domain=self.domain,
            within_efficiency=self.within_efficiency,
            between_efficiency=self.between_efficiency,
            decay_workers=self.decay_workers,
        )


class TorusSpec(FabricPart):
    """A 1-, 2- or 3-dimensional torus of accelerators."""

    kind: Literal["torus"]
    dims: Annotated[tuple[Count, ...], Field(min_length=1, max_length=3)]
    link_bandwidth: Bandwidth
    hop_latency: Time
    wrap: Flag = True
    efficiency: Fraction = 1.0

    def build(self, shape: Shape) -> Fabric:
        """Return the fabric."""
        return Torus(self.dims, self.link_bandwidth, self.hop_latency, self.wrap, self.efficiency)


class WiredSpec(FabricPart):
    """What wired networks share: the inside of a fast domain of `domain_hosts` hosts, and the cards.

    `start_up` is the fixed time of a collective as software sees it; `efficiency` the share of
    nominal rates that large transfers reach.
    """

    inside: InsideSpec
    nics: NicsSpec | None = None
    domain_hosts: Count = 1
    start_up: Time
    efficiency: Fraction = 1.0

    @abstractmethod
    def network(self) -> "Network":
        """Return what joins the hosts."""

    def build(self, shape: Shape) -> Fabric:
        """Return the fabric. Raises InputError when the counts do not fit each other."""
        from simulator.hardware.graphs import Group, Wiring
        from simulator.hardware.wired import Wired

        nics = self.nics.wire() if self.nics else None
        group = Group(shape.hosts, shape.per_host, self.inside.wire(), nics, self.domain_hosts)
        return Wired(Wiring((group,), self.network()), self.start_up, self.efficiency)


class FlatSpec(WiredSpec):
    """Cards on one switch that never blocks."""

    kind: Literal["flat"]

    def network(self) -> "Network":
        """Return the switch."""
        from simulator.hardware.graphs import Flat

        return Flat()


class FatTreeSpec(WiredSpec):
    """Leaves for `leaf_hosts` hosts below `spines`; with `pod_leaves` and `cores`, three levels."""

    kind: Literal["fat_tree"]
    leaf_hosts: Count
    spines: TierSpec
    pod_leaves: Count | None = None
    cores: TierSpec | None = None

    def network(self) -> "Network":
        """Return the tree."""
        from simulator.hardware.graphs import FatTree

        cores = self.cores.wire() if self.cores else None
        return FatTree(self.leaf_hosts, self.spines.wire(), self.pod_leaves, cores)


class RailsSpec(WiredSpec):
    """Card i of each host of a unit of `unit_hosts` on leaf i; `relays`: through peers to other rails."""

    kind: Literal["rails"]
    unit_hosts: Count
    spines: TierSpec | None = None
    relays: Flag = False

    def network(self) -> "Network":
        """Return the rails."""
        from simulator.hardware.graphs import Rails

        return Rails(self.unit_hosts, self.spines.wire() if self.spines else None, self.relays)


class CustomSpec(FabricPart):
    """A graph of nodes and links from `file`, in the scenario's folder or below; at most 512 ranks."""

    kind: Literal["custom"]
    file: str
    start_up: Time
    efficiency: Fraction = 1.0

    def build(self, shape: Shape) -> Fabric:
        """Return the fabric. Raises InputError for whatever is wrong with the file."""
        from simulator.hardware.graphs import from_file
        from simulator.hardware.wired import CustomFabric

        return CustomFabric(from_file(inside(shape.folder, self.file)), self.start_up, self.efficiency)


FabricSpec = Annotated[
    TwoLevelSpec | TorusSpec | FlatSpec | FatTreeSpec | RailsSpec | CustomSpec, Field(discriminator="kind")
]


def fabric_part(kind: str) -> type[FabricPart]:
    """Return the class of a kind of fabric."""
    every: tuple[type[FabricPart], ...] = get_args(get_args(FabricSpec)[0])
    return next(one for one in every if kind in get_args(one.model_fields["kind"].annotation))
