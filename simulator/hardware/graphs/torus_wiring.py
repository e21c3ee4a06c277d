"""A torus or mesh of chips as a graph and folded: dimension-order routes, links by axis and cut."""

from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from simulator.errors import InputError
from simulator.hardware import checks
from simulator.hardware.fabric import Link
from simulator.hardware.graphs.building import build
from simulator.hardware.graphs.fabric_graph import FabricGraph, Sketch
from simulator.hardware.graphs.folding import FoldedRoutes, LinkClass, PairClass, fold, gathered
from simulator.hardware.graphs.routing import DimensionOrder, is_ring
from simulator.hardware.torus import Torus
from simulator.quantities import FloatArray

AXES = "xyz"


@dataclass(frozen=True)
class TorusWiring:
    """`dims` chips along 1 to 3 axes, a `link` each way to each neighbour; `wrap` by axis closes rings.

    Ranks count in row-major order, the last axis fastest. Raises InputError on impossible counts.
    """

    dims: tuple[int, ...]
    link: Link
    wrap: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        """Check the axes; without `wrap` all of them are rings."""
        if not 1 <= len(self.dims) <= len(AXES):
            raise InputError(f"torus: dims must name 1 to 3 axes, not {len(self.dims)}")
        checks.counts("torus", **{f"dims[{axis}]": length for axis, length in enumerate(self.dims)})
        object.__setattr__(self, "wrap", self.wrap or (True,) * len(self.dims))
        if len(self.wrap) != len(self.dims):
            raise InputError(f"torus: wrap must be given for {len(self.dims)} axes, not {len(self.wrap)}")

    @property
    def ranks(self) -> int:
        """The number of chips."""
        return prod(self.dims)

    def resized(self, ranks: int) -> "TorusWiring":
        """Return a torus of `ranks` chips shaped as `Torus.resized` does; all axes must wrap alike."""
        if ranks == self.ranks:
            return self
        if len(set(self.wrap)) > 1:
            raise InputError("torus: axes that wrap differently cannot be resized")
        shape = Torus(self.dims, self.link.bandwidth).resized(ranks).dims
        return TorusWiring(shape, self.link, self.wrap)

    def steps(self, axis: int) -> list[tuple[int, int, str]]:
        """Return the links up an axis: the coordinate they leave, the one they reach, their class."""
        length = self.dims[axis]
        if is_ring(length, self.wrap[axis]):
            return [(at, (at + 1) % length, AXES[axis]) for at in range(length)]
        return [(at, at + 1, _cut_name(axis, length, at + 1)) for at in range(length - 1)]


def _cut_name(axis: int, length: int, cut: int) -> str:
    """Name the links across a cut by its distance from the nearer end: those two are alike."""
    return f"{AXES[axis]} cut {min(cut, length - cut)}"


@build.register
def _(plan: TorusWiring) -> FabricGraph:
    sketch = Sketch()
    for chip in product(*map(range, plan.dims)):
        sketch.rank(_name(chip), forwards=True)
    for axis in range(len(plan.dims)):
        others = [range(length) if other != axis else (0,) for other, length in enumerate(plan.dims)]
        for place, (low, high, kind) in product(product(*others), plan.steps(axis)):
            ends = [_name((*place[:axis], at, *place[axis + 1 :])) for at in (low, high)]
            sketch.wire(ends[0], ends[1], kind, plan.link)
            sketch.wire(ends[1], ends[0], kind, plan.link)
    routing = DimensionOrder(plan.dims, plan.wrap)
    return FabricGraph(sketch.graph, tuple(sketch.ranks), "torus", routing, plan)


def _name(chip: tuple[int, ...]) -> str:
    return "chip" + ".".join(map(str, chip))


@fold.register
def _(fabric: TorusWiring, ranks: int | None = None) -> FoldedRoutes:
    """Count pairs by hops, and the links they cross by class, as products of polynomials per axis.

    The number of ordered pairs h hops apart is the coefficient of h in the product of the axes'; with
    the factor of one axis replaced by that of its pairs that cross a cut, it counts the crossings.
    """
    torus = fabric if ranks is None else fabric.resized(ranks)
    axes = range(len(torus.dims))
    counts = [_pairs(torus, axis) for axis in axes]
    total = _product(counts)
    links, crossed = [], []
    for axis in axes:
        for name, (count, crossing) in _crossings(torus, axis).items():
            links.append(LinkClass(name, count, torus.link.rate, torus.link.latency))
            crossed.append(_product([*counts[:axis], crossing, *counts[axis + 1 :]]))
    hops = [hop for hop in range(1, len(total)) if total[hop]]
    pairs = [_pair_class(torus, hop, float(total[hop])) for hop in hops]
    names = [link.name for link in links]
    rows = [dict(zip(names, (each[hop] / total[hop] for each in crossed), strict=True)) for hop in hops]
    return gathered(torus.ranks, links, list(zip(pairs, rows, strict=True)))


def _pair_class(torus: TorusWiring, hops: int, pairs: float) -> PairClass:
    name = "1 hop" if hops == 1 else f"{hops} hops"
    return PairClass(name, torus.ranks, pairs / torus.ranks, hops * torus.link.latency)


def _product(polynomials: list[FloatArray]) -> FloatArray:
    whole = np.ones(1)
    for polynomial in polynomials:
        whole = np.convolve(whole, polynomial)
    return np.asarray(whole, np.float64)


def _pairs(torus: TorusWiring, axis: int) -> FloatArray:
    """Return how many ordered pairs of coordinates lie 0, 1, ... hops apart."""
    length = torus.dims[axis]
    away = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    if is_ring(length, torus.wrap[axis]):
        away = np.minimum(away, length - away)
    return np.bincount(away.ravel()).astype(float)


def _crossings(torus: TorusWiring, axis: int) -> dict[str, tuple[int, FloatArray]]:
    """Return, by link class: its links, and how often pairs 0, 1, ... hops apart cross one of them."""
    length, pairs = torus.dims[axis], _pairs(torus, axis)
    if is_ring(length, torus.wrap[axis]):
        return {AXES[axis]: (2 * torus.ranks, np.arange(len(pairs)) * pairs)}
    found: dict[str, tuple[int, FloatArray]] = {}
    for cut in range(1, length):
        name = _cut_name(axis, length, cut)
        count, crossing = found.get(name, (0, np.zeros(length)))
        found[name] = count + 2 * torus.ranks // length, crossing + _across(length, cut)
    return found


def _across(length: int, cut: int) -> FloatArray:
    """Return how many ordered pairs of a line, by distance, have a cut between them."""
    away = np.subtract.outer(np.arange(cut, length), np.arange(cut))
    return np.asarray(2.0 * np.bincount(away.ravel(), minlength=length), np.float64)
