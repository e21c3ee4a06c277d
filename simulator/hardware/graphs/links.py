"""The links of a fabric graph as arrays, and tables of next hops: what routing works on."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simulator.quantities import FloatArray, IntArray

if TYPE_CHECKING:
    from networkx import MultiDiGraph


@dataclass(frozen=True, eq=False)
class Links:
    """L directed links between V nodes, in the order of the graph's edges.

    `names` ("a -> b", parallel ones numbered) and `kinds` have L entries; `tails` and `heads` (L,) are
    node indices; `capacity` (L,) is bytes/s (infinite inside a box), `latency` (L,) seconds, `cost` (L,)
    what routing adds up. `nodes` has V names and `forwards` (V,) says which nodes pass traffic on.
    """

    nodes: tuple[str, ...]
    forwards: NDArray[np.bool_]
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    tails: IntArray
    heads: IntArray
    capacity: FloatArray
    latency: FloatArray
    cost: FloatArray

    @classmethod
    def of(cls, graph: "MultiDiGraph[str]") -> "Links":
        """Return the links of a graph whose nodes and edges carry the attributes of `Sketch`."""
        place = {name: index for index, name in enumerate(graph)}
        edges = list(graph.edges(keys=True, data=True))
        numbers = {field: np.array([edge[3][field] for edge in edges], float) for field in _NUMBERS}
        return cls(
            nodes=tuple(place),
            forwards=np.array([data["forwards"] for _, data in graph.nodes(data=True)], bool),
            names=tuple(f"{a} -> {b}" + (f" #{key + 1}" if key else "") for a, b, key, _ in edges),
            kinds=tuple(edge[3]["kind"] for edge in edges),
            tails=np.array([place[edge[0]] for edge in edges], np.int64),
            heads=np.array([place[edge[1]] for edge in edges], np.int64),
            capacity=numbers["bandwidth"],
            latency=numbers["latency"],
            cost=numbers["cost"],
        )

    def __len__(self) -> int:
        """Return the number of directed links."""
        return len(self.names)

    @cached_property
    def place(self) -> dict[str, int]:
        """The index of each node by name."""
        return {name: index for index, name in enumerate(self.nodes)}


_NUMBERS = ("bandwidth", "latency", "cost")


@dataclass(frozen=True, eq=False)
class NextHops:
    """The forwarding tables of all nodes: which links lead on to which of R destinations.

    Row `node * R + destination` holds `link[start[row] : start[row + 1]]`; traffic is split equally
    over them, as a switch does that hashes flows onto equal-cost links. An empty row: no way there.
    """

    start: IntArray
    link: IntArray

    @classmethod
    def of(cls, rows: IntArray, links: IntArray, size: int) -> "NextHops":
        """Return the tables with `links[i]` in row `rows[i]`; `size` is the number of rows."""
        counts = np.bincount(rows, minlength=size)
        start = np.concatenate([[0], np.cumsum(counts)])
        return cls(start, links[np.argsort(rows, kind="stable")])
