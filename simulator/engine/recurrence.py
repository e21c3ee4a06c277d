"""The vector engine: the max-plus recurrence of a marked graph, evaluated on vectors of ranks.

x_v(m) = d_v(m) + max over edges (u, v, lag) of x_u(m - lag); at a collective the maximum is also
taken over all ranks. It shares no code with the event engine and is its oracle.
"""

import numpy as np

from simulator.engine.durations import Durations
from simulator.pipeline import MarkedGraph
from simulator.results.timeline import Timeline


def run_recurrence(graph: MarkedGraph, durations: Durations) -> Timeline:
    """Return the completion times of all instances. Exact where no resource is shared."""
    _, cycles, _ = durations.ns.shape
    end = np.zeros(durations.ns.shape, dtype=np.int64)
    for node, cycle in graph.schedule(cycles):
        ready = end[node, cycle]
        for edge in graph.incoming[node]:
            if 0 <= cycle - edge.lag < cycles:
                np.maximum(ready, end[edge.source, cycle - edge.lag], out=ready)
        if graph.nodes[node].stage.work.rendezvous:
            ready[:] = ready.max()
        ready += durations.ns[node, cycle]
    return Timeline(graph, durations.ns, end, durations.column_of, engine="vector")
