"""Collectives of torch.distributed as the library makes them: tensors that lie on the device, its own events.

No copy to or from the host, no exchange of lengths and no clock of the host is part of a time. Curves are
called after the backend, such as `nccl_all_reduce`. gloo, on CPU tensors by the clock, goes the same way.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from simulator.calibration.measure.clock import Point
from simulator.calibration.measure.device_clock import Operation, Timer
from simulator.calibration.measure.grids import Grid
from simulator.calibration.measure.primitives import Curve
from simulator.quantities import FloatArray

REPEATS, WARM_UP, IN_A_ROW = 15, 3, 10
# What gloo's reduce-scatter is inside (ProcessGroupGloo of torch 2.13): all-reduces, of which a part is kept.
BY_ALL_REDUCE = "reduce_scatter_by_all_reduce"
_WIDTH = 4  # bytes of a value


@dataclass(frozen=True)
class GroupBench:
    """Collectives among all ranks of the job (its default process group), tensors on `device`.

    All ranks must call it at the same point of their programs. `backend` is the group's name for itself.
    """

    backend: str
    device: Any
    timer: Timer
    repeats: int = REPEATS

    def curves(self, grid: Grid) -> Iterator[Curve]:
        """Yield a curve for each collective of `grid`; sizes are bytes of the larger of a rank's buffers."""
        for name in grid.collectives:
            points = tuple(self._point(size, self.operation(name, size)) for size in grid.bytes_)
            yield Curve(self.name_of(name), "bytes", points)

    def name_of(self, collective: str) -> str:
        """Return what the curve of a collective is called."""
        made = BY_ALL_REDUCE if (self.backend, collective) == ("gloo", "reduce_scatter") else collective
        return f"{self.backend}_{made}"

    def operation(self, name: str, size: int) -> Operation:
        """Return a collective on tensors that are there already, of about `size` bytes (whole shares)."""
        import torch
        import torch.distributed as dist

        ranks = dist.get_world_size()
        share = max(1, size // (_WIDTH * ranks))
        part = torch.zeros(share, device=self.device)
        whole, other = (torch.zeros(share * ranks, device=self.device) for _ in range(2))
        calls: dict[str, Operation] = {
            "all_to_all": partial(dist.all_to_all_single, other, whole),
            "all_reduce": partial(dist.all_reduce, whole),
            "all_gather": partial(into_all, whole, part),
            "reduce_scatter": partial(into_part, part, whole),
            "broadcast": partial(dist.broadcast, whole, 0),
        }
        return calls[name]

    def _point(self, size: int, operation: Operation) -> Point:
        """Time a collective, each after all ranks have met, and several in a row."""
        for _ in range(WARM_UP):
            operation()
        taken = self.timer.timed(operation, self.repeats, self._meeting)
        row = self.timer.timed(lambda: [operation() for _ in range(IN_A_ROW)], 1, self._meeting)
        seconds, in_a_row = self._longest(taken.seconds), self._longest(row.seconds) / IN_A_ROW
        median = float(np.median(seconds))
        spread = float(np.quantile(seconds, 0.9)) / median
        cpu = float(np.median(taken.cpu))
        return Point(size, median, spread, cpu, len(seconds), back_to_back=float(in_a_row[0]))

    def _meeting(self) -> None:
        """Wait for all on the device's own stream: the host goes on."""
        import torch
        import torch.distributed as dist

        dist.all_reduce(torch.zeros(1, device=self.device))

    def _longest(self, seconds: FloatArray) -> FloatArray:
        """Return the longest time of any rank, for each repetition: clocks of devices cannot be compared."""
        import torch
        import torch.distributed as dist

        everybody = torch.tensor(seconds, dtype=torch.float32, device=self.device)
        dist.all_reduce(everybody, op=dist.ReduceOp.MAX)
        return np.asarray(everybody.cpu().numpy(), dtype=float)


def into_all(whole: Any, part: Any, group: Any = None) -> None:
    """Gather everybody's `part` into `whole`, in the order of ranks."""
    _called("all_gather_single", "all_gather_into_tensor")(whole, part, group=group)


def into_part(part: Any, whole: Any, group: Any = None) -> None:
    """Add up everybody's `whole`; keep this rank's `part` of it."""
    _called("reduce_scatter_single", "reduce_scatter_tensor")(part, whole, group=group)


def _called(name: str, before: str) -> Any:
    """Return a function of torch.distributed by its name since torch 2.13, or by the one `before`."""
    import torch.distributed as dist

    return getattr(dist, name, None) or getattr(dist, before)
