"""Primitives through torch: matrix products, networks, element-wise passes, rows, copies, collectives.

On GPUs and NPUs they are timed by events of the device's stream and called `device_...`, on a CPU by the
clock and called `torch_...`. Rows are read by torch's own operator, and by FBGEMM's as well where that is
installed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from simulator.calibration.measure.clock import Point
from simulator.calibration.measure.device_clock import Operation, Timer, timer_of
from simulator.calibration.measure.grids import Grid
from simulator.calibration.measure.primitives import Curve
from simulator.calibration.measure.torch_collectives import GroupBench

REPEATS, WARM_UP = 15, 3


@dataclass(frozen=True)
class DeviceBench:
    """Measures the primitives of `grid` on `device`; `own_timer` takes the place of the device's.

    Local ones are this rank's alone. Collectives follow if torch.distributed runs: then all ranks must take
    part.
    """

    device: Any
    grid: Grid
    own_timer: Timer | None = None

    @cached_property
    def timer(self) -> Timer:
        """What takes the times."""
        return self.own_timer or timer_of(self.device)

    @property
    def place(self) -> str:
        """How names of curves begin: on a CPU there is no device to speak of."""
        return "torch" if self.device.type == "cpu" else "device"

    def curves(self) -> Iterator[Curve]:
        """Yield a curve for each primitive, then for each collective."""
        yield from self._products()
        yield from self._networks()
        yield from self._passes()
        yield from self._rows()
        if self.device.type != "cpu":
            yield from self._copies()
        yield from self._collectives()

    def _collectives(self) -> Iterator[Curve]:
        import torch.distributed as dist

        if dist.is_available() and dist.is_initialized():
            yield from GroupBench(dist.get_backend(), self.device, self.timer).curves(self.grid)

    def _products(self) -> Iterator[Curve]:
        import torch

        for m, n, k in self.grid.matrices:
            left, right = self._random(m, k), self._random(k, n)
            point = self._point(2.0 * m * n * k, partial(torch.matmul, left, right))
            yield Curve(f"{self.place}_gemm", "flops", (point,), 0.0, (m, n, k))

    def _networks(self) -> Iterator[Curve]:
        for widths in self.grid.networks:
            network = self._network(widths)
            forward, both = [], []
            for size in self.grid.samples:
                inputs = self._random(size, widths[0]).requires_grad_()
                forward.append(self._point(size, partial(network, inputs)))
                both.append(self._point(size, partial(_both_ways, network, inputs)))
            yield Curve(f"{self.place}_mlp_forward", "samples", tuple(forward), 0.0, widths)
            yield Curve(f"{self.place}_mlp_both", "samples", tuple(both), 0.0, widths)

    def _network(self, widths: tuple[int, ...]) -> Any:
        from torch import nn

        layers: list[Any] = []
        for i, o in pairwise(widths):
            layers += [nn.Linear(i, o), nn.ReLU()]
        return nn.Sequential(*layers[:-1]).to(self.device)

    def _passes(self) -> Iterator[Curve]:
        points = []
        for size in self.grid.values:
            rows, gradient = self._random(size), self._random(size)
            points.append(self._point(size, partial(rows.sub_, gradient, alpha=1e-6)))
        yield Curve(f"{self.place}_sgd", "values", tuple(points))

    def _rows(self) -> Iterator[Curve]:
        """Yield reads by each operator that is installed, and sums into rows."""
        for rows in self.grid.tables:
            table, width = self._random(rows, self.grid.dimension), self.grid.dimension
            drawn = [(size, self._places(rows, size)) for size in self.grid.rows]
            for name, read in readers().items():
                points = tuple(self._point(size, partial(read, table, places)) for size, places in drawn)
                yield Curve(f"{self.place}_{name}", "rows", points, float(rows), (width,))
            adds = [
                self._point(size, partial(table.index_add_, 0, places, self._random(size, width)))
                for size, places in drawn
            ]
            yield Curve(f"{self.place}_index_add", "rows", tuple(adds), float(rows), (width,))

    def _places(self, rows: int, size: int) -> Any:
        import torch

        return torch.randint(rows, (size,), device=self.device)

    def _copies(self) -> Iterator[Curve]:
        import torch

        there, back, pinned = [], [], True
        for size in self.grid.copies:
            host, pinned = _pinned(torch.empty(max(1, size // 4), dtype=torch.float32))
            near = torch.empty_like(host, device=self.device)
            there.append(self._point(size, partial(near.copy_, host, non_blocking=True)))
            back.append(self._point(size, partial(host.copy_, near, non_blocking=True)))
        how = "" if pinned else "_pageable"
        yield Curve(f"host_to_device{how}", "bytes", tuple(there))
        yield Curve(f"device_to_host{how}", "bytes", tuple(back))

    def _random(self, *shape: int) -> Any:
        import torch

        return torch.rand(*shape, device=self.device)

    def _point(self, size: float, operation: Operation) -> Point:
        for _ in range(WARM_UP):
            operation()
        taken = self.timer.timed(operation, REPEATS)
        median = float(np.median(taken.seconds))
        spread = float(np.quantile(taken.seconds, 0.9)) / median
        return Point(size, median, spread, float(np.median(taken.cpu)), REPEATS)


def readers() -> dict[str, Callable[[Any, Any], Any]]:
    """Return what reads rows of a table, one for each place, by the name of its curve."""
    import torch

    found: dict[str, Callable[[Any, Any], Any]] = {"gather": _select}
    try:
        import fbgemm_gpu  # type: ignore[import-not-found] # noqa: F401
    except (ImportError, OSError):  # an OSError where it is installed for another device
        return found
    return {**found, "gather_fbgemm": torch.ops.fbgemm.index_select_dim0}


def _select(table: Any, places: Any) -> Any:
    return table.index_select(0, places)


def _pinned(host: Any) -> tuple[Any, bool]:
    """Return memory of the host that a device copies from by itself, and whether torch could pin it."""
    try:
        return host.pin_memory(), True
    except (RuntimeError, NotImplementedError):
        return host, False


def _both_ways(network: Any, inputs: Any) -> None:
    network(inputs).sum().backward()
