"""Primitives on a device through torch: matrix products, networks, element-wise passes, rows, copies.

On GPUs and NPUs they are timed by events of the device's stream, on a CPU by the clock. Rows are pooled by
FBGEMM's operators where they are installed, else by torch's own.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

from simulator.calibration.measure.clock import Point
from simulator.calibration.measure.grids import Grid
from simulator.calibration.measure.primitives import Curve
from simulator.quantities import FloatArray

REPEATS, WARM_UP = 15, 3


@dataclass(frozen=True)
class DeviceBench:
    """Measures the primitives of `grid` on `device`, this rank alone by its own clock."""

    device: Any
    grid: Grid

    def curves(self) -> Iterator[Curve]:
        """Yield a curve for each primitive."""
        yield from self._products()
        yield from self._networks()
        yield from self._passes()
        yield from self._rows()
        yield from self._copies()

    def _products(self) -> Iterator[Curve]:
        import torch

        for m, n, k in self.grid.matrices:
            left, right = self._random(m, k), self._random(k, n)
            point = self._point(2.0 * m * n * k, partial(torch.matmul, left, right))
            yield Curve("device_gemm", "flops", (point,), 0.0, (m, n, k))

    def _networks(self) -> Iterator[Curve]:
        for widths in self.grid.networks:
            network = self._network(widths)
            forward, both = [], []
            for size in self.grid.samples:
                inputs = self._random(size, widths[0]).requires_grad_()
                forward.append(self._point(size, partial(network, inputs)))
                both.append(self._point(size, partial(_both_ways, network, inputs)))
            yield Curve("device_mlp_forward", "samples", tuple(forward), 0.0, widths)
            yield Curve("device_mlp_both", "samples", tuple(both), 0.0, widths)

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
        yield Curve("device_sgd", "values", tuple(points))

    def _rows(self) -> Iterator[Curve]:
        import torch

        for rows in self.grid.tables:
            table = self._random(rows, self.grid.dimension)
            shape, reads, adds = (self.grid.dimension,), [], []
            for size in self.grid.rows:
                places = torch.randint(rows, (size,), device=self.device)
                values = self._random(size, self.grid.dimension)
                reads.append(self._point(size, self._lookup(table, places)))
                adds.append(self._point(size, partial(table.index_add_, 0, places, values)))
            yield Curve("device_gather", "rows", tuple(reads), float(rows), shape)
            yield Curve("device_index_add", "rows", tuple(adds), float(rows), shape)

    def _lookup(self, table: Any, places: Any) -> Callable[[], Any]:
        """Return a lookup of one row per place: FBGEMM's where it is installed."""
        import torch

        if self.device.type != "cpu" and find_spec("fbgemm_gpu") is not None:
            import fbgemm_gpu  # type: ignore[import-not-found] # noqa: F401

            return partial(torch.ops.fbgemm.index_select_dim0, table, places)
        return partial(table.index_select, 0, places)

    def _copies(self) -> Iterator[Curve]:
        import torch

        there, back = [], []
        for size in self.grid.copies:
            host = torch.empty(max(1, size // 4), dtype=torch.float32)
            host = host.pin_memory() if self.device.type == "cuda" else host
            near = torch.empty_like(host, device=self.device)
            there.append(self._point(size, partial(near.copy_, host, non_blocking=True)))
            back.append(self._point(size, partial(host.copy_, near, non_blocking=True)))
        yield Curve("host_to_device", "bytes", tuple(there))
        yield Curve("device_to_host", "bytes", tuple(back))

    def _random(self, *shape: int) -> Any:
        import torch

        return torch.rand(*shape, device=self.device)

    def _point(self, size: float, operation: Callable[[], Any]) -> Point:
        for _ in range(WARM_UP):
            operation()
        taken = self._on_device(operation) if self.device.type != "cpu" else _by_clock(operation)
        median = float(np.median(taken))
        return Point(size, median, float(np.quantile(taken, 0.9)) / median, 0.0, len(taken))

    def _on_device(self, operation: Callable[[], Any]) -> FloatArray:
        """Return seconds between events on the device's stream."""
        import torch

        kind = getattr(torch, self.device.type)
        pairs = [(kind.Event(enable_timing=True), kind.Event(enable_timing=True)) for _ in range(REPEATS)]
        for start, end in pairs:
            start.record()
            operation()
            end.record()
        kind.synchronize()
        return np.array([start.elapsed_time(end) for start, end in pairs]) / 1e3


def _both_ways(network: Any, inputs: Any) -> None:
    network(inputs).sum().backward()


def _by_clock(operation: Callable[[], Any]) -> FloatArray:
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        operation()
        taken.append(max(1e-9, time.perf_counter() - start))
    return np.array(taken)
