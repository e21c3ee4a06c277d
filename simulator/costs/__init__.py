"""How fast it is done: seconds from amounts, given a cluster and measured efficiencies."""

from simulator.costs.collectives import Network
from simulator.costs.dense import DenseSpeed, Roofline, Utilization
from simulator.costs.model import CostModel
from simulator.costs.phases import Flows, Phase

__all__ = ["CostModel", "DenseSpeed", "Flows", "Network", "Phase", "Roofline", "Utilization"]
