"""The shortest durations that ranks can get: all of their host up to its limit, all of their links.

With contention a stage takes no less than its nominal time, but for one case: where the ranks of a host
differ they share it, and a stage whose neighbours are idle runs up to `Part.cap` times as fast as on an
even part. Collectives take at least their nominal time always, since that is what they take alone.
"""

from dataclasses import replace

import numpy as np

from simulator.costs import CostModel
from simulator.engine.contention import least_shares
from simulator.engine.durations import Durations
from simulator.engine.hosts import hosted
from simulator.pipeline import MarkedGraph
from simulator.quantities import FloatArray, IntArray

ROUNDING_NS = 1e-3  # far more than what the engine rounds off in the parts of one stage


def shortest(graph: MarkedGraph, durations: Durations, costs: CostModel) -> Durations:
    """Return `durations` (nominal or drawn, each rank's own) as short as sharing can make them.

    No schedule of the event engine has a shorter stage. Columns are those of ranks that share alike.
    """
    cluster = costs.cluster
    ranks = hosted(durations, cluster.per_host, cluster.kind_of, folded=True)
    if not ranks.together:
        return durations
    sharing = np.zeros(len(ranks.kind_of), dtype=bool)
    sharing[[column for host in ranks.together for column, _ in host]] = True
    shares = np.where(sharing, least_shares(graph, costs)[ranks.kind_of].T, 1.0)
    cycles = 1 if ranks.durations.ns.strides[1] == 0 else durations.ns.shape[1]
    ns = _shorter(ranks.durations.ns[:, :cycles], shares[:, None])
    first = np.unique(ranks.durations.column_of, return_index=True)[1]
    nominal_ns = _shorter(durations.nominal_ns[:, durations.column_of[first]], shares)
    return replace(ranks.durations, ns=np.broadcast_to(ns, ranks.durations.ns.shape), nominal_ns=nominal_ns)


def _shorter(ns: IntArray, shares: FloatArray) -> IntArray:
    """Return these shares of durations in whole ns, rounded down; all of one stays as it is."""
    less = np.maximum(0.0, np.floor(ns * shares - ROUNDING_NS)).astype(np.int64)
    return np.where(shares < 1.0, less, ns)
