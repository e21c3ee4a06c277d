"""Algorithms of collectives: how many messages one after the other, and which bytes over which links.

    here = ground(cluster, None, Overheads())
    Choice(all_reduce="auto").algorithm("all_reduce").plan(here, Load.of(4e6))

Each algorithm is a class with a method `plan`; what a fabric looks like to it is a `Ground`.
"""

from simulator.costs.algorithms.algorithm import Algorithm, Auto, Plan
from simulator.costs.algorithms.choice import AS_TUNED, AUTO, KNOWN, Choice
from simulator.costs.algorithms.exchanges import Direct, HierarchicalExchange, Pairwise
from simulator.costs.algorithms.ground import Ground, Level, Load, Peers
from simulator.costs.algorithms.grounds import PLAIN, Overheads, ground, link_rates
from simulator.costs.algorithms.reductions import Half, HalfRing, Hierarchical, Ring, Tree
from simulator.costs.algorithms.spreading import PointToPoint, RingBroadcast, TreeBroadcast

__all__ = [
    "AS_TUNED",
    "AUTO",
    "KNOWN",
    "PLAIN",
    "Algorithm",
    "Auto",
    "Choice",
    "Direct",
    "Ground",
    "Half",
    "HalfRing",
    "Hierarchical",
    "HierarchicalExchange",
    "Level",
    "Load",
    "Overheads",
    "Pairwise",
    "Peers",
    "Plan",
    "PointToPoint",
    "Ring",
    "RingBroadcast",
    "Tree",
    "TreeBroadcast",
    "ground",
    "link_rates",
]
