"""Tables of a run, column by column, for Parquet and pandas: one of its steps, one of its stages."""

from typing import Any

import numpy as np

from simulator.quantities import IntArray
from simulator.results.timeline import Timeline

Columns = dict[str, Any]


def steps_table(timeline: Timeline, column: int, first: int, last: int) -> Columns:
    """Return one entry per batch `first` .. `last` - 1 on one column: when it was done, and how long it took.

    `step_ms` is the time since the update of the batch before, `latency_ms` the time since the
    batch's own first stage began.
    """
    updates = timeline.update_ns[first - 1 : last, column]
    begun = first_start_ns(timeline, column)[first:last]
    return {
        "batch": np.arange(first, last, dtype=np.int64),
        "updated_ms": updates[1:] / 1e6,
        "step_ms": np.diff(updates) / 1e6,
        "latency_ms": (updates[1:] - begun) / 1e6,
    }


def first_start_ns(timeline: Timeline, column: int) -> IntArray:
    """Return when the first stage of each batch began on one column, ns, shape (batches,)."""
    begun = np.full(timeline.batches, np.iinfo(np.int64).max)
    for index, node in enumerate(timeline.graph.nodes):
        rows = slice(node.residue, None, timeline.graph.period)
        np.minimum(begun[rows], timeline.start_ns[index, :, column], out=begun[rows])
    return begun


def stages_table(timeline: Timeline, column: int, first: int, last: int) -> Columns:
    """Return one entry per stage (per run of it in a cycle) on one column, means over the counted batches.

    From when this rank has all that a stage waits for to its end are `wait_ms`, in which a collective
    waits for the slowest rank, `duration_ms`, what it takes alone, and `slowed_ms`, what sharing costs it.
    """
    window, nodes = counted_cycles(timeline, first, last), timeline.graph.nodes
    waiting = timeline.began_ns - timeline.start_ns
    lasting, waited, slowed = (
        times[:, window, column].mean(axis=1) / 1e6
        for times in (timeline.duration_ns, waiting, timeline.slowed_ns)
    )
    return {
        "stage": [node.stage.name for node in nodes],
        "kind": [node.stage.kind for node in nodes],
        "stream": [node.stream for node in nodes],
        "batch_of_cycle": [node.residue for node in nodes],
        "batches_ahead": [node.stage.ahead for node in nodes],
        "duration_ms": lasting,
        "wait_ms": waited,
        "slowed_ms": slowed,
    }


def counted_cycles(timeline: Timeline, first: int, last: int) -> slice:
    """Return the cycles of batches `first` .. `last` - 1, from the one that `first` is in; one at least."""
    period = timeline.graph.period
    return slice(first // period, max(last // period, first // period + 1))
