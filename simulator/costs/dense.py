"""How fast an accelerator does dense work: a roofline, or a measured share of the peak."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from simulator.hardware import Accelerator
from simulator.quantities import Amount, DenseWork


class DenseSpeed(Protocol):
    """How fast an accelerator does dense work."""

    def seconds(self, work: DenseWork, accelerator: Accelerator) -> Amount:
        """Return the time of `work` on `accelerator`, seconds."""


@dataclass(frozen=True)
class Roofline:
    """Matrix products at their measured share of the peak, then element-wise passes, then launches.

    They are added: a product does not overlap the element-wise kernel that needs its result.
    """

    def seconds(self, work: DenseWork, accelerator: Accelerator) -> Amount:
        """Return flops / achieved rate + bytes / achieved bandwidth + launches."""
        others = _passes_and_launches(work, accelerator)
        if not np.any(work.flops):  # passes alone need no matrix engine, and no peak rate of one
            return others
        return work.flops / (accelerator.peak(work.precision) * accelerator.matrix_efficiency) + others


ROOFLINE = Roofline()


@dataclass(frozen=True)
class Utilization:
    """A measured share of the peak for the whole model: it contains passes, launches and idle gaps.

    `share` is executed flops (recomputation included) over peak flops. Work without flops, such as
    an optimizer's passes, is timed by its memory traffic.
    """

    share: float

    def seconds(self, work: DenseWork, accelerator: Accelerator) -> Amount:
        """Return flops / (peak * share), or the time of the passes when there are no flops."""
        if not np.any(work.flops):
            return _passes_and_launches(work, accelerator)
        return work.flops / (accelerator.peak(work.precision) * self.share)


def _passes_and_launches(work: DenseWork, accelerator: Accelerator) -> Amount:
    return work.memory_bytes / accelerator.streaming_bandwidth + work.kernels * accelerator.launch_time
