"""Which algorithm does which operation: by name, or the fastest at hand (`auto`)."""

from collections.abc import Mapping
from dataclasses import dataclass

from simulator.costs.algorithms.algorithm import Algorithm, Auto
from simulator.costs.algorithms.exchanges import Direct, HierarchicalExchange, Pairwise
from simulator.costs.algorithms.reductions import Half, HalfRing, Hierarchical, Ring, Tree
from simulator.costs.algorithms.spreading import RingBroadcast, TreeBroadcast
from simulator.errors import InputError, did_you_mean

AUTO = "auto"
KNOWN: Mapping[str, Mapping[str, Algorithm]] = {
    "all_to_all": {"direct": Direct(), "pairwise": Pairwise(), "hierarchical": HierarchicalExchange()},
    "all_reduce": {"hierarchical": Hierarchical(), "ring": Ring(), "tree": Tree()},
    "all_gather": {"hierarchical": Half(), "ring": HalfRing()},
    "reduce_scatter": {"hierarchical": Half(), "ring": HalfRing()},
    "broadcast": {"ring": RingBroadcast(), "tree": TreeBroadcast()},
}
"""The algorithms of each operation, the one that is taken when none is named first."""


@dataclass(frozen=True)
class Choice:
    """The name of the algorithm of each operation, a key of `KNOWN` or `auto`."""

    all_to_all: str = "direct"
    all_reduce: str = "hierarchical"
    all_gather: str = "hierarchical"
    reduce_scatter: str = "hierarchical"
    broadcast: str = "ring"

    def __post_init__(self) -> None:
        """Refuse an algorithm that its operation does not have."""
        for operation in KNOWN:
            self.algorithm(operation)

    def algorithm(self, operation: str) -> Algorithm:
        """Return the algorithm of `operation`; raise InputError for an unknown name."""
        named, known = getattr(self, operation), KNOWN[operation]
        if named == AUTO:
            return Auto(tuple(known.values()))
        if named not in known:
            nearest = did_you_mean(named, (*known, AUTO))
            raise InputError(f'{operation}: no algorithm is called "{named}"{nearest}')
        return known[named]


AS_TUNED = Choice()
