"""A fabric as a checked networkx graph: nodes, directed links with rates, and which nodes are ranks."""

from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from simulator.hardware.fabric import Link
from simulator.hardware.graphs import soundness
from simulator.hardware.graphs.links import Links, NextHops
from simulator.hardware.graphs.routing import Routing, ShortestPaths
from simulator.quantities import IntArray

if TYPE_CHECKING:
    from networkx import MultiDiGraph


@dataclass(frozen=True, eq=False)
class FabricGraph:
    """A directed multigraph of links and, in rank order, the nodes that are accelerators.

    Edges carry `bandwidth` (bytes/s), `latency` (seconds), `kind` (the class of alike links) and `cost`
    (what routing minimises); nodes carry `kind` and `forwards` (whether traffic of others may pass).
    `plan` is the description the graph was built from, if any; only that can be folded.
    Raises InputError, by name: no or unknown or repeated ranks, a rank or node without a link, a link to
    itself, an impossible rate, latency or cost, a pair of ranks that cannot reach each other. Up to
    `soundness.EVERY_PAIR` ranks each ordered pair is checked, above that only that nothing lies apart.
    """

    graph: "MultiDiGraph[str]"
    ranks: tuple[str, ...]
    name: str = "fabric"
    routing: Routing = field(default_factory=ShortestPaths)
    plan: object | None = None

    def __post_init__(self) -> None:
        """Check the graph: first its parts, then who reaches whom."""
        soundness.check_parts(self.name, self.graph, self.ranks)
        if len(self.ranks) <= soundness.EVERY_PAIR:
            soundness.check_pairs(self.name, self.links, self.rank_nodes, self.next_hops)
        else:
            soundness.check_whole(self.name, self.graph)

    @cached_property
    def links(self) -> Links:
        """The links as arrays, in the order of the graph's edges."""
        return Links.of(self.graph)

    @cached_property
    def rank_nodes(self) -> IntArray:
        """The node index of each rank, (R,)."""
        return np.array([self.links.place[rank] for rank in self.ranks], np.int64)

    @cached_property
    def next_hops(self) -> NextHops:
        """The forwarding tables of all nodes towards all ranks."""
        return self.routing.next_hops(self.links, self.rank_nodes)


@dataclass(frozen=True)
class Cable:
    """What `Sketch.both` lays: a link each way, named `kind` + way + label, with a routing cost."""

    kind: str
    link: Link
    label: str = ""
    cost: int = 1
    ways: tuple[str, str] = ("up", "down")


class Sketch:
    """A graph in the making: nodes, links one way, cables both ways, joints inside a box."""

    def __init__(self) -> None:
        """Begin with nothing."""
        from networkx import MultiDiGraph

        self.graph: MultiDiGraph[str] = MultiDiGraph()
        self.ranks: list[str] = []

    def node(self, name: str, kind: str, forwards: bool = True) -> str:
        """Add a node and return its name."""
        self.graph.add_node(name, kind=kind, forwards=forwards)
        return name

    def rank(self, name: str, forwards: bool = False) -> str:
        """Add an accelerator, the next rank, and return its name."""
        self.ranks.append(name)
        return self.node(name, "accelerator", forwards)

    def wire(self, tail: str, head: str, kind: str, link: Link, cost: int = 1) -> None:
        """Add one link in one direction."""
        self.graph.add_edge(tail, head, kind=kind, bandwidth=link.rate, latency=link.latency, cost=cost)

    def both(self, low: str, high: str, cable: Cable) -> None:
        """Add a link from `low` to `high` and one back."""
        up, down = (labelled(f"{cable.kind} {way}", cable.label) for way in cable.ways)
        self.wire(low, high, up, cable.link, cable.cost)
        self.wire(high, low, down, cable.link, cable.cost)

    def join(self, tail: str, head: str, cost: int = 1) -> None:
        """Add a way inside a box, which never limits: infinitely fast, without latency."""
        self.graph.add_edge(tail, head, kind=INTERNAL, bandwidth=inf, latency=0.0, cost=cost)


INTERNAL = "internal"


def labelled(name: str, label: str) -> str:
    """Return `name`, followed by the label in parentheses if there is one."""
    return f"{name} ({label})" if label else name
