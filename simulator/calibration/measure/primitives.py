"""What is measured: each primitive as a function that times one size, grouped into curves."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from simulator.calibration.measure import kernels
from simulator.calibration.measure.channel import Array
from simulator.calibration.measure.clock import Point, Stopwatch
from simulator.calibration.measure.grids import Grid
from simulator.quantities import IntArray

VARIANTS = 4  # inputs that take turns, so that no branch or cache line is learned by heart
BATCHES = 24  # sets of rows that take turns: between two batches of a run, others use the caches


@dataclass(frozen=True)
class Curve:
    """Points of one operation by size in `unit`; `context` is a second measure that was held fixed.

    `shape` says for which widths or dimensions it holds.
    """

    operation: str
    unit: str
    points: tuple[Point, ...]
    context: float = 0.0
    shape: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Bench:
    """Measures the primitives of `grid` with `watch` on all ranks at once."""

    watch: Stopwatch
    grid: Grid

    def local(self) -> Iterator[Curve]:
        """Yield the curves of local operations."""
        yield from self._copies()
        yield from self._sorting()
        yield from self._rows()
        yield from self._sums()
        yield from self._updates()
        yield from self._networks()
        yield from self._products()

    def collectives(self) -> Iterator[Curve]:
        """Yield the curves of collectives; sizes are bytes of the larger of a rank's two buffers."""
        for name in self.grid.collectives:
            sizes = self.grid.bytes_
            points = [self.watch.collective(size, self._collective(name, size)) for size in sizes]
            yield Curve(name, "bytes", tuple(points))

    def _collective(self, name: str, size: int) -> Callable[[int], object]:
        channel = self.watch.channel
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

    def _curve(
        self, head: Curve, sizes: Sequence[int], prepare: Callable[[int], Callable[[int], object]]
    ) -> Curve:
        """Return `head` with a point for each size; `prepare(size)` makes the operation."""
        points = tuple(self.watch.compute(size, prepare(size)) for size in sizes)
        return Curve(head.operation, head.unit, points, head.context, head.shape)

    def _copies(self) -> Iterator[Curve]:
        def copies(size: int) -> Callable[[int], object]:
            sources = [np.zeros(size // 4, dtype=np.float32) for _ in range(VARIANTS)]
            return lambda turn: sources[turn % VARIANTS].copy()

        yield self._curve(Curve("copy", "bytes", ()), self.grid.copies, copies)

    def _sorting(self) -> Iterator[Curve]:
        def sorting(size: int) -> Callable[[int], object]:
            codes = [_codes(size, turn) for turn in range(VARIANTS)]
            return lambda turn: kernels.distinct(codes[turn % VARIANTS])

        def matching(size: int) -> Callable[[int], object]:
            sets = [np.unique(_codes(4 * size, turn))[:size] for turn in range(VARIANTS)]
            return lambda turn: kernels.shared(sets[turn % VARIANTS], sets[(turn + 1) % VARIANTS])

        yield self._curve(Curve("distinct", "keys", ()), self.grid.keys, sorting)
        yield self._curve(Curve("shared", "rows", ()), self.grid.rows, matching)

    def _rows(self) -> Iterator[Curve]:
        for rows in self.grid.tables:
            table = np.zeros((rows, self.grid.dimension), dtype=np.float32)
            table += 1.0  # every page has to be there
            sizes = [size for size in self.grid.rows if size <= 8 * rows]
            shape = (self.grid.dimension,)
            read = self._curve(Curve("gather", "rows", (), rows, shape), sizes, _reading(table))
            yield read
            fitting = [size for size in sizes if size <= rows]
            if fitting:
                yield self._curve(Curve("scatter", "rows", (), rows, shape), fitting, _writing(table))

    def _sums(self) -> Iterator[Curve]:
        for repetition in self.grid.repetition:
            head = Curve("segment_sum", "rows", (), repetition, (self.grid.dimension,))
            yield self._curve(head, self.grid.rows, self._adding(repetition))

    def _adding(self, repetition: float) -> Callable[[int], Callable[[int], object]]:
        def adding(size: int) -> Callable[[int], object]:
            random = np.random.default_rng(size)
            into = [
                kernels.distinct(random.integers(0, _urns(size, repetition), size)) for _ in range(VARIANTS)
            ]
            values = [_floats((size, self.grid.dimension), turn) for turn in range(VARIANTS)]
            return lambda turn: kernels.segment_sum(values[turn % VARIANTS], into[turn % VARIANTS])

        return adding

    def _updates(self) -> Iterator[Curve]:
        def plain(size: int) -> Callable[[int], object]:
            rows, gradient = _floats((size,), 0), _floats((size,), 1)
            return lambda turn: kernels.sgd(rows, gradient, 1e-6)

        def adaptive(size: int) -> Callable[[int], object]:
            rows, state, gradient = _floats((size,), 0), np.ones(size, np.float32), _floats((size,), 1)
            return lambda turn: kernels.adagrad(rows, state, gradient, 1e-6)

        yield self._curve(Curve("sgd", "values", ()), self.grid.values, plain)
        yield self._curve(Curve("adagrad", "values", ()), self.grid.values, adaptive)

    def _networks(self) -> Iterator[Curve]:
        for widths in self.grid.networks:
            network = kernels.Mlp.seeded(widths, 0)
            forward = Curve("mlp_forward", "samples", (), 0.0, widths)
            backward = Curve("mlp_backward", "samples", (), 0.0, widths)
            yield self._curve(forward, self.grid.samples, _forward(network))
            yield self._curve(backward, self.grid.samples, _backward(network))

    def _products(self) -> Iterator[Curve]:
        for m, n, k in self.grid.matrices:
            left, right = _floats((m, k), 0), _floats((k, n), 1)
            point = self.watch.compute(2.0 * m * n * k, _product(left, right))
            yield Curve("gemm", "flops", (point,), 0.0, (m, n, k))


def _product(left: Array, right: Array) -> Callable[[int], object]:
    return lambda turn: left @ right


def _floats(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def _codes(size: int, turn: int) -> IntArray:
    """Return keys as a batch has them: Zipf over many rows, scattered."""
    uniform = np.random.default_rng([size, turn]).random(size)
    ranks = np.exp(uniform * np.log(200_000.0)).astype(np.int64)  # Zipf with exponent 1, by inversion
    return np.asarray((ranks * 2654435761) % (1 << 31), dtype=np.int64)


def _urns(size: int, repetition: float) -> int:
    """Return among how many values `size` draws leave size / repetition distinct ones (bisection)."""
    low, high = 1.0, 1e4 * size
    for _ in range(60):
        middle = (low * high) ** 0.5
        found = middle * -np.expm1(-size / middle)
        low, high = (middle, high) if found < size / repetition else (low, middle)
    return max(1, round(low))


def _places(rows: int, size: int, turn: int) -> IntArray:
    """Return `size` rows of a table of `rows`: rising, and skewed as a batch's rows are."""
    random = np.random.default_rng([rows, size, turn])
    if size > rows // 2:
        return np.sort(random.integers(0, rows, size))
    drawn = np.unique(np.exp(random.random(6 * size) * np.log(rows)).astype(np.int64) * 2654435761 % rows)
    more = np.setdiff1d(random.integers(0, rows, 3 * size), drawn)
    chosen = np.concatenate([random.permutation(drawn), random.permutation(more)])[:size]
    return np.sort(chosen)


def _reading(table: Array) -> Callable[[int], Callable[[int], object]]:
    def reading(size: int) -> Callable[[int], object]:
        places = [_places(len(table), size, turn) for turn in range(BATCHES)]
        return lambda turn: kernels.gather(table, places[turn % BATCHES])

    return reading


def _writing(table: Array) -> Callable[[int], Callable[[int], object]]:
    def writing(size: int) -> Callable[[int], object]:
        places = [_places(len(table), size, turn) for turn in range(BATCHES)]
        values = [table[place] for place in places[:VARIANTS]]
        lengths = {len(place) for place in places}
        assert len(lengths) == 1, lengths
        return lambda turn: kernels.scatter(table, places[turn % BATCHES], values[turn % VARIANTS])

    return writing


def _forward(network: kernels.Mlp) -> Callable[[int], Callable[[int], object]]:
    def forward(size: int) -> Callable[[int], object]:
        inputs = [_floats((size, network.widths[0]), turn) for turn in range(VARIANTS)]
        labels = np.zeros((size, 1), dtype=np.float32)
        return lambda turn: kernels.logistic(network.forward(inputs[turn % VARIANTS])[-1], labels)

    return forward


def _backward(network: kernels.Mlp) -> Callable[[int], Callable[[int], object]]:
    def backward(size: int) -> Callable[[int], object]:
        values = [network.forward(_floats((size, network.widths[0]), turn)) for turn in range(VARIANTS)]
        slope, gradient = _floats((size, 1), 9), np.zeros_like(network.parameters)
        return lambda turn: network.backward(values[turn % VARIANTS], slope, gradient)

    return backward
