"""What clustering costs the host: operations counted, times what one of each was measured to take."""

import math

from simulator.errors import InputError

# Seconds of one core of an AMD EPYC with AVX-512 and 2 MiB of L2 per core, shared with other jobs,
# for `cluster` as it stands here (numpy): medians and a least-squares fit over 14 batches of 64 to
# 4,096 samples and 0.1 to 2 million keys, each met within 15 %. The benchmark measures them again.
SORT_SECONDS = 72e-9  # per lookup: two sorts of whole numbers and the passes around them
VISIT_SECONDS = 14.6e-9  # per holder whose score a key raises
PICK_SECONDS = 22e-6  # per sample put into a group: the calls, whatever their length
SCAN_SECONDS = 1.15e-9  # per sample looked at to find the best one

# Holders visited per lookup and square root of the micro-batches, for keys of Zipf exponent 0.75
# with groups as in the NestPipe fit: 0.04 to 0.13 in the same batches. At exponent 0.87 it is 0.4.
VISITS_PER_LOOKUP = 0.1


def clustering_cpu_seconds(batch: int, keys_per_sample: float, micro_batches: int) -> float:
    """Return the core seconds that clustering one batch takes; per sample divide by `batch`.

    `keys_per_sample` counts lookups over all tables. It belongs to the input pipeline, where it runs
    on host cores ahead of the step. Raises InputError unless all three are positive.
    """
    if not (batch > 0 and keys_per_sample > 0 and micro_batches > 0):
        raise InputError("batch, keys per sample and micro-batches must be positive")
    lookups = batch * keys_per_sample
    visits = VISITS_PER_LOOKUP * math.sqrt(micro_batches) * lookups
    picking = batch * (PICK_SECONDS + SCAN_SECONDS * batch)
    return lookups * SORT_SECONDS + visits * VISIT_SECONDS + picking
