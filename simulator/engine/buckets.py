"""Nearly alike ranks carried as one, with a stated error.

A class takes the longest durations of its ranks. Completion times of a max-plus recurrence do not fall
when durations rise, and rise by no more than the factor by which all of them do: where nothing is
shared, every step ends no earlier, and at most by the largest relative difference later, than with
all ranks apart (Baccelli, Cohen, Olsder and Quadrat, Synchronization and Linearity, section 4.3).
"""

from dataclasses import replace

import numpy as np

from simulator.engine.durations import Durations
from simulator.quantities import FloatArray, IntArray


def bucketed(durations: Durations, within: float) -> Durations:
    """Return classes of columns whose durations differ by at most the share `within`, stage by stage.

    `longer` of the result is the largest share by which any duration became too long. For durations
    that are the same in every cycle.
    """
    ns = durations.ns[:, 0]
    _, first, classes = np.unique(_places(ns, within), axis=1, return_index=True, return_inverse=True)
    classes = classes.reshape(-1).astype(np.int64)
    longest = _longest_of_classes(ns, classes, len(first))
    spread = longest[:, classes] / np.maximum(ns, 1) - 1.0
    wide = np.broadcast_to(longest[:, None, :], (len(ns), durations.ns.shape[1], len(first)))
    return replace(
        durations,
        ns=wide,
        column_of=classes[durations.column_of],
        nominal_ns=longest,
        longer=max(0.0, float(spread.max())),
    )


def _places(ns: IntArray, within: float) -> IntArray:
    """Return the place of each duration on a ladder of steps of `within` that starts at the least."""
    floor = np.maximum(ns.min(axis=1, keepdims=True), 1)
    rungs: FloatArray = np.log(np.maximum(ns, 1) / floor) / np.log1p(within)
    return np.floor(np.maximum(rungs, 0.0)).astype(np.int64)


def _longest_of_classes(ns: IntArray, classes: IntArray, count: int) -> IntArray:
    """Return the longest duration of each node in each class, (nodes, classes)."""
    longest = np.zeros((len(ns), count), dtype=np.int64)
    for node, row in enumerate(ns):
        np.maximum.at(longest[node], classes, row)
    return longest
