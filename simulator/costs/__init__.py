"""How fast it is done: seconds from amounts, given a cluster and measured efficiencies."""

from simulator.costs.collectives import Flows, Network, Phase
from simulator.costs.model import CostModel, DenseSpeed, Roofline, Utilization

__all__ = ["CostModel", "DenseSpeed", "Flows", "Network", "Phase", "Roofline", "Utilization"]
