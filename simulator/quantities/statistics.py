"""What is said about errors everywhere: the share that bands hold, and two quantiles."""

import numpy as np
from numpy.typing import ArrayLike

COVERAGE = 0.8  # of cases, in every printed interval and band


def median_and_p90(errors: ArrayLike) -> tuple[float, float, int]:
    """Return median and 90th percentile of |error| and how many there are; nan where there are none."""
    sizes = np.abs(np.asarray(errors, dtype=float))
    if not sizes.size:
        return float("nan"), float("nan"), 0
    return float(np.median(sizes)), float(np.quantile(sizes, 0.9)), int(sizes.size)
