"""Fabrics as graphs: built from a plan or read from a file, checked, routed into arrays, folded, drawn.

plan = Wiring((Group(16, 8, FullMesh(hccs), Nics(port, 8)),), FatTree(4, Tier(4, trunk)))
fabric = build(plan)                    # a FabricGraph: every node and link, checked
route(fabric).all_to_all_seconds(1e9)   # every pair, up to 512 ranks
fold(plan, ranks=16384).flows           # classes of links and pairs, any number of ranks
print(draw(plan))
"""

from simulator.hardware.graphs.adopting import wiring
from simulator.hardware.graphs.building import build
from simulator.hardware.graphs.custom import from_file, from_mapping
from simulator.hardware.graphs.cuts import cut_bandwidth
from simulator.hardware.graphs.drawing import draw
from simulator.hardware.graphs.fabric_graph import FabricGraph
from simulator.hardware.graphs.folding import FoldedRoutes, LinkClass, PairClass, fold
from simulator.hardware.graphs.inside import FullMesh, Pcie, Switched
from simulator.hardware.graphs.links import Links
from simulator.hardware.graphs.networks import Flat, Nics, Tier
from simulator.hardware.graphs.routes import Routes, route
from simulator.hardware.graphs.routing import DimensionOrder, ShortestPaths
from simulator.hardware.graphs.torus_wiring import TorusWiring
from simulator.hardware.graphs.trees import FatTree, Rails, oversubscribed
from simulator.hardware.graphs.wiring import Group, Wiring

__all__ = [
    "DimensionOrder",
    "FabricGraph",
    "FatTree",
    "Flat",
    "FoldedRoutes",
    "FullMesh",
    "Group",
    "LinkClass",
    "Links",
    "Nics",
    "PairClass",
    "Pcie",
    "Rails",
    "Routes",
    "ShortestPaths",
    "Switched",
    "Tier",
    "TorusWiring",
    "Wiring",
    "build",
    "cut_bandwidth",
    "draw",
    "fold",
    "from_file",
    "from_mapping",
    "oversubscribed",
    "route",
    "wiring",
]
