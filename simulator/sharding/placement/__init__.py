"""Placement: which chip holds which table, or which piece of it."""

from simulator.sharding.placement.cuts import WHOLE_TABLES, ColumnCut, CutRules, RowCut, Whole
from simulator.sharding.placement.exact import optimized
from simulator.sharding.placement.feedback import Feedback, judged, replanned
from simulator.sharding.placement.greedy import greedy
from simulator.sharding.placement.placed import Chips, Placement, imbalance
from simulator.sharding.placement.profile import Profile, TableKeys
from simulator.sharding.placement.shard import Demand, Shard, Span

__all__ = [
    "WHOLE_TABLES",
    "Chips",
    "ColumnCut",
    "CutRules",
    "Demand",
    "Feedback",
    "Placement",
    "Profile",
    "RowCut",
    "Shard",
    "Span",
    "TableKeys",
    "Whole",
    "greedy",
    "imbalance",
    "judged",
    "optimized",
    "replanned",
]
