"""What is measured: each primitive as a function that times one size, grouped into curves."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from simulator.calibration.measure import inputs, kernels
from simulator.calibration.measure.channel import Array, Channel
from simulator.calibration.measure.clock import Point, Stopwatch, merged
from simulator.calibration.measure.grids import Grid
from simulator.quantities import IntArray

VARIANTS = 4  # inputs that take turns, so that no branch or cache line is learned by heart
COLLECTIVES = frozenset({"all_to_all", "all_reduce", "all_gather", "reduce_scatter", "broadcast"})
BATCHES, FEWEST = 24, 6  # sets of rows that take turns: between two batches of a run, others use the caches
TOGETHER = 400_000  # rows of all sets, enough to leave no cache alone


@dataclass(frozen=True)
class Curve:
    """Points of one operation by size in `unit`; `context` is a second measure that was held fixed.

    `shape` says for which widths or dimensions it holds.
    """

    operation: str
    unit: str
    points: tuple[Point, ...] = ()
    context: float = 0.0
    shape: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Task:
    """One point of a curve: `operation(i)` is the i-th of `size` in the curve `head`, which has no points.

    A task is prepared once and timed in several sweeps. `parts` is of how many equal parts it consists:
    the time of one of them is what counts.
    """

    head: Curve
    size: float
    operation: Callable[[int], object]
    parts: int = 1

    def timed(self, watch: Stopwatch) -> Point:
        """Return what it takes."""
        if self.head.operation in COLLECTIVES:
            return watch.collective(self.size, self.operation)
        point = watch.compute(self.size, self.operation)
        if self.parts == 1:
            return point
        each = (
            point.seconds / self.parts
        )  # in threads of their own, so that the caller's CPU time says nothing
        return replace(point, seconds=each, cpu_seconds=each)


def curves(tasks: Sequence[Task], sweeps: Sequence[Sequence[Point]]) -> list[Curve]:
    """Return the curves of `tasks`, each point the median of what the `sweeps` over all tasks gave."""
    points = [merged(of_task) for of_task in zip(*sweeps, strict=True)]
    found: dict[int, list[Point]] = {}
    heads = {id(task.head): task.head for task in tasks}
    for task, point in zip(tasks, points, strict=True):
        found.setdefault(id(task.head), []).append(point)
    return [replace(heads[key], points=tuple(group)) for key, group in found.items()]


@dataclass(frozen=True)
class Bench:
    """The primitives of `grid` as tasks for `channel`."""

    channel: Channel
    grid: Grid

    def tasks(self) -> Iterator[Task]:
        """Yield all of them, local ones first."""
        yield from self._copies()
        yield from self._sorting()
        yield from self._rows()
        yield from self._sums()
        yield from self._updates()
        yield from self._networks()
        yield from self._products()
        yield from self._collectives()

    def _collectives(self) -> Iterator[Task]:
        """Yield collectives; sizes are bytes of the larger of a rank's two buffers."""
        for name in self.grid.collectives:
            yield from _tasks(Curve(name, "bytes"), self.grid.bytes_, partial(self._collective, name))

    def _collective(self, name: str, size: int) -> Callable[[int], object]:
        channel = self.channel
        whole = np.zeros(max(channel.size, size // 4), dtype=np.float32)
        part = whole[: max(1, len(whole) // channel.size)]
        calls: dict[str, Callable[[int], object]] = {
            "all_to_all": lambda _: channel.all_to_all([part] * channel.size),
            "all_reduce": lambda _: channel.all_reduce(whole),
            "all_gather": lambda _: channel.all_gather(part),
            "reduce_scatter": lambda _: channel.reduce_scatter(whole),
            "broadcast": lambda _: channel.broadcast(whole),
        }
        return calls[name]

    def _copies(self) -> Iterator[Task]:
        def copies(size: int) -> Callable[[int], object]:
            sources = [np.zeros(size // 4, dtype=np.float32) for _ in range(VARIANTS)]
            return lambda turn: sources[turn % VARIANTS].copy()

        yield from _tasks(Curve("copy", "bytes"), self.grid.copies, copies)

    def _sorting(self) -> Iterator[Task]:
        def sorting(size: int) -> Callable[[int], object]:
            codes = [inputs.codes(size, turn) for turn in range(VARIANTS)]
            return lambda turn: kernels.distinct(codes[turn % VARIANTS])

        def matching(size: int) -> Callable[[int], object]:
            sets = [np.unique(inputs.codes(4 * size, turn))[:size] for turn in range(VARIANTS)]
            return lambda turn: kernels.shared(sets[turn % VARIANTS], sets[(turn + 1) % VARIANTS])

        yield from _tasks(Curve("distinct", "keys"), self.grid.keys, sorting)
        yield from _tasks(Curve("shared", "rows"), self.grid.rows, matching)

    def _rows(self) -> Iterator[Task]:
        for rows in self.grid.tables:
            table = np.zeros((rows, self.grid.dimension), dtype=np.float32)
            table += 1.0  # every page has to be there
            sizes = [size for size in self.grid.rows if size <= 8 * rows]
            shape = (self.grid.dimension,)
            yield from _tasks(Curve("gather", "rows", (), rows, shape), sizes, _reading(table))
            fitting = [size for size in sizes if size <= rows]
            yield from _tasks(Curve("scatter", "rows", (), rows, shape), fitting, _writing(table))

    def _sums(self) -> Iterator[Task]:
        for repetition in self.grid.repetition:
            head = Curve("segment_sum", "rows", (), repetition, (self.grid.dimension,))
            yield from _tasks(head, self.grid.rows, self._adding(repetition))

    def _adding(self, repetition: float) -> Callable[[int], Callable[[int], object]]:
        def adding(size: int) -> Callable[[int], object]:
            random = np.random.default_rng(size)
            into = [
                kernels.distinct(random.integers(0, inputs.urns(size, repetition), size))
                for _ in range(VARIANTS)
            ]
            values = [inputs.floats((size, self.grid.dimension), turn) for turn in range(VARIANTS)]
            return lambda turn: kernels.segment_sum(values[turn % VARIANTS], into[turn % VARIANTS])

        return adding

    def _updates(self) -> Iterator[Task]:
        def plain(size: int) -> Callable[[int], object]:
            rows, gradient = inputs.floats((size,), 0), inputs.floats((size,), 1)
            return lambda turn: kernels.sgd(rows, gradient, 1e-6)

        def adaptive(size: int) -> Callable[[int], object]:
            rows, state, gradient = (
                inputs.floats((size,), 0),
                np.ones(size, np.float32),
                inputs.floats((size,), 1),
            )
            return lambda turn: kernels.adagrad(rows, state, gradient, 1e-6)

        yield from _tasks(Curve("sgd", "values"), self.grid.values, plain)
        yield from _tasks(Curve("adagrad", "values"), self.grid.values, adaptive)

    def _networks(self) -> Iterator[Task]:
        for widths in self.grid.networks:
            network = kernels.Mlp.seeded(widths, 0)
            forward = Curve("mlp_forward", "samples", (), 0.0, widths)
            backward = Curve("mlp_backward", "samples", (), 0.0, widths)
            yield from _tasks(forward, self.grid.samples, _forward(network))
            yield from _tasks(backward, self.grid.samples, _backward(network))

    def _products(self) -> Iterator[Task]:
        for m, n, k in self.grid.matrices:
            left, right = inputs.floats((m, k), 0), inputs.floats((k, n), 1)
            yield Task(Curve("gemm", "flops", (), 0.0, (m, n, k)), 2.0 * m * n * k, _product(left, right))


def _tasks(
    head: Curve, sizes: Sequence[int], prepare: Callable[[int], Callable[[int], object]]
) -> Iterator[Task]:
    """Yield a task for each size; `prepare(size)` makes its operation."""
    for size in sizes:
        yield Task(head, size, prepare(size))


def _product(left: Array, right: Array) -> Callable[[int], object]:
    return lambda turn: left @ right


def _sets(rows: int, size: int) -> list[IntArray]:
    """Return sets of `size` rows of a table of `rows`, fewer of large ones."""
    return [inputs.places(rows, size, turn) for turn in range(max(FEWEST, min(BATCHES, TOGETHER // size)))]


def _reading(table: Array) -> Callable[[int], Callable[[int], object]]:
    def reading(size: int) -> Callable[[int], object]:
        places = _sets(len(table), size)
        return lambda turn: kernels.gather(table, places[turn % len(places)])

    return reading


def _writing(table: Array) -> Callable[[int], Callable[[int], object]]:
    def writing(size: int) -> Callable[[int], object]:
        places = _sets(len(table), size)
        values = [table[place] for place in places[:VARIANTS]]
        lengths = {len(place) for place in places}
        assert len(lengths) == 1, lengths
        return lambda turn: kernels.scatter(table, places[turn % len(places)], values[turn % VARIANTS])

    return writing


def _forward(network: kernels.Mlp) -> Callable[[int], Callable[[int], object]]:
    def forward(size: int) -> Callable[[int], object]:
        batches = [inputs.floats((size, network.widths[0]), turn) for turn in range(VARIANTS)]
        labels = np.zeros((size, 1), dtype=np.float32)
        return lambda turn: kernels.logistic(network.forward(batches[turn % VARIANTS])[-1], labels)

    return forward


def _backward(network: kernels.Mlp) -> Callable[[int], Callable[[int], object]]:
    def backward(size: int) -> Callable[[int], object]:
        values = [network.forward(inputs.floats((size, network.widths[0]), turn)) for turn in range(VARIANTS)]
        slope, gradient = inputs.floats((size, 1), 9), np.zeros_like(network.parameters)
        return lambda turn: network.backward(values[turn % VARIANTS], slope, gradient)

    return backward
