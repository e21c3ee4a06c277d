"""Regrouping the samples of a batch so that those that share keys meet in one micro-batch."""

from simulator.workload.clustering.cost import clustering_cpu_seconds
from simulator.workload.clustering.from_log import RegroupedLog
from simulator.workload.clustering.grouping import cluster
from simulator.workload.clustering.histories import Histories, SharedHistories
from simulator.workload.clustering.samples import SampleKeys
from simulator.workload.clustering.sharing import InOrder, Regrouped, Sharing, Unshared
from simulator.workload.clustering.volume import distinct_per_part, in_order, split_growth

__all__ = [
    "Histories",
    "InOrder",
    "Regrouped",
    "RegroupedLog",
    "SampleKeys",
    "SharedHistories",
    "Sharing",
    "Unshared",
    "cluster",
    "clustering_cpu_seconds",
    "distinct_per_part",
    "in_order",
    "split_growth",
]
