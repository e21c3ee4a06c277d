"""A plain sum: what all stages of a batch take together, nothing overlapped, shared, held or waited for."""

import numpy as np

from simulator.quantities import HoldWork, leaves
from simulator.scenario import Run


def stage_sum_ms(run: Run) -> float:
    """Return the sum of all stages of a batch on the busiest rank of a simulated run, nothing held, ms."""
    nodes = run.timeline.graph.nodes
    stages = [float(np.max(run.durations.nominal_ns[node])) for node in range(len(nodes))]
    held = sum(
        float(np.max(part.seconds))
        for node in nodes
        for part in leaves(node.stage.work)
        if isinstance(part, HoldWork)
    )
    return sum(stages) / 1e6 - held * 1e3
