"""How many rows an exchange carries when a batch is split: distinct keys per micro-batch."""

import numpy as np

from simulator.errors import InputError
from simulator.quantities import IntArray
from simulator.workload.clustering.samples import SampleKeys, starts


def in_order(samples: int, parts: int) -> IntArray:
    """Return the micro-batch of each sample when the batch is cut as it comes; shape (samples,).

    Raises InputError when `parts` does not divide the batch.
    """
    if parts < 1 or samples % parts:
        raise InputError(f"{samples} samples cannot be split into {parts} equal micro-batches")
    return np.repeat(np.arange(parts, dtype=np.int64), samples // parts)


def distinct_per_part(batch: SampleKeys, part_of: IntArray) -> IntArray:
    """Return the distinct keys that each micro-batch asks for; `part_of` has shape (samples,)."""
    numbers, samples = batch.pairs
    parts = int(part_of.max()) + 1
    asked = np.sort(numbers * parts + part_of[samples])
    return np.bincount(asked[starts(asked)] % parts, minlength=parts)


def split_growth(batch: SampleKeys, part_of: IntArray) -> float:
    """Return the rows exchanged by all micro-batches, over those of the undivided batch: 1 or more."""
    return float(distinct_per_part(batch, part_of).sum() / max(batch.distinct, 1))
