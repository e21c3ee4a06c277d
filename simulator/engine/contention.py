"""What may be shared in a run: needs of stages inside a rank, flows of collectives on the network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.costs import CostModel, Phase
from simulator.costs.occupancy import occupancy
from simulator.engine.sharing import Needs
from simulator.engine.weights import PER_COLLECTIVE, WeightRule
from simulator.pipeline import MarkedGraph


@dataclass(frozen=True, eq=False)
class Contention:
    """`needs` of each node inside its rank; `phases` of each node on links with `rates` (bytes/s).

    `weights` says how the flows of collectives that meet on a link compete.
    """

    needs: Needs
    phases: Sequence[tuple[Phase, ...]]
    rates: Mapping[str, float]
    weights: WeightRule = PER_COLLECTIVE

    @classmethod
    def of(cls, graph: MarkedGraph, costs: CostModel, weights: WeightRule = PER_COLLECTIVE) -> "Contention":
        """Work out what the stages of `graph` share on the cluster of `costs`."""
        works = [node.stage.work for node in graph.nodes]
        alone = [float(np.max(costs.seconds(work))) for work in works]
        needs = [
            {} if work.rendezvous else _shares(occupancy(work, costs), seconds)
            for work, seconds in zip(works, alone, strict=True)
        ]
        phases = [costs.phases(work) if work.rendezvous else () for work in works]
        return cls(Needs.of(graph, needs), phases, costs.network.rates, weights)


def _shares(occupied: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Return how much of each resource is needed to run at full speed."""
    if not seconds:
        return {}
    return {name: min(1.0, busy / seconds) for name, busy in occupied.items() if busy > 0.0}
