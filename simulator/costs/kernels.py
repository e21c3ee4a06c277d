"""Dense work kernel by kernel: matrix products by their shapes, the rest of the arithmetic by its kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from simulator.costs.gemm import GemmTime, Shapes
from simulator.costs.gemm_catalog import attention_share, gemm_time
from simulator.errors import InputError
from simulator.hardware import Accelerator
from simulator.quantities import Amount, DenseWork, value_bytes


@dataclass(frozen=True)
class Kernels:
    """Matrix products by the law of the device, then element-wise passes, then launches.

    Flops of no known product are those of fused kernels, such as attention, at their own share of the
    peak. A model without any known product runs at the device's matrix efficiency. `laws`, by precision,
    take the place of those of the catalog.
    """

    laws: Mapping[str, GemmTime] = field(default_factory=dict, hash=False)

    def seconds(self, work: DenseWork, accelerator: Accelerator) -> Amount:
        """Return the time of `work` on `accelerator`, seconds. Raises InputError for an unknown precision."""
        passes = work.memory_bytes / accelerator.streaming_bandwidth
        others = passes + work.kernels * accelerator.launch_time
        return self._arithmetic(work, accelerator) + others if np.any(work.flops) else others

    def _arithmetic(self, work: DenseWork, accelerator: Accelerator) -> Amount:
        peak = accelerator.peak(work.precision)
        if work.products is None or not len(work.products):
            return work.flops / (peak * accelerator.matrix_efficiency)
        width = float(value_bytes(work.precision))
        shapes = Shapes.of(work.products, width, width)
        products = self._time(work.precision, accelerator).busy(shapes)
        fused = np.maximum(work.flops - work.share * float(shapes.flops.sum()), 0.0)
        return work.share * float(products.sum()) + fused / (peak * attention_share())

    def _time(self, precision: str, accelerator: Accelerator) -> GemmTime:
        if not self.laws:
            return gemm_time(accelerator, precision)
        if precision not in self.laws:
            raise InputError(
                f"the named law of matrix products is for {', '.join(self.laws)}, not {precision}"
            )
        return self.laws[precision]
