"""How the rows of a workload's batches come back, from the popularity of its keys."""

from math import fsum

import numpy as np

from simulator.results.key_classes import Reuse
from simulator.workload.job import Workload

PARTS = 2048  # of a batch's rows, as many of each chance to be used


def reuse_of(workload: Workload, ranks: int, longest: int) -> Reuse:
    """Return the reuse of rows, by gaps up to `longest` batches, where all ranks together are a batch."""
    asked = [(t.popularity, t.draws(workload.batch) * ranks) for t in workload.tables]
    rows = [popularity.distinct(lookups) for popularity, lookups in asked]
    shares = [
        fsum(
            count * popularity.gap_share(lookups, gap)
            for count, (popularity, lookups) in zip(rows, asked, strict=True)
        )
        / fsum(rows)
        for gap in range(1, longest + 1)
    ]
    chances, keys = (np.concatenate(one) for one in zip(*(p.use_chances(m) for p, m in asked), strict=True))
    order = np.argsort(chances, kind="stable")
    ends = np.cumsum(keys[order]) / keys.sum()
    at = np.minimum(np.searchsorted(ends, (np.arange(PARTS) + 0.5) / PARTS), len(ends) - 1)
    return Reuse(shares, chances[order][at])
