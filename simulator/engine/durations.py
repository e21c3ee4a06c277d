"""Durations of all instances in whole nanoseconds, with alike ranks folded into one column."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from simulator.pipeline import MarkedGraph
from simulator.quantities import Amount, IntArray, Work
from simulator.workload.draws import lognormal, uniforms

LONGEST_NS = 2.0**62


@dataclass(frozen=True)
class Variation:
    """Random spread of durations: standard deviation over mean by stage kind, and the seed."""

    spread: dict[str, float] = field(default_factory=dict)
    seed: int = 0

    @property
    def none(self) -> bool:
        """Whether every stage always takes its nominal time."""
        return not any(self.spread.values())


@dataclass(frozen=True, eq=False)
class Durations:
    """Whole nanoseconds, shape (nodes, cycles, columns), and the column of each rank.

    Without jitter the cycles axis is a broadcast view: it costs no memory.
    """

    ns: IntArray
    column_of: IntArray

    @property
    def nominal_ns(self) -> IntArray:
        """Durations of the first cycle, shape (nodes, columns)."""
        return self.ns[:, 0, :]


def tabulate(
    graph: MarkedGraph, seconds: Callable[[Work], Amount], ranks: int, cycles: int, variation: Variation
) -> Durations:
    """Return the durations of `cycles` cycles on `ranks` ranks, `seconds` giving each work's time.

    Ranks whose stages all take equally long share a column, unless durations are drawn at random.
    """
    nominal = np.stack([_per_rank(seconds(node.stage.work), ranks) for node in graph.nodes])
    if variation.none:
        columns, column_of = _fold(_to_ns(nominal))
        shape = (len(graph.nodes), cycles, columns.shape[1])
        return Durations(np.broadcast_to(columns[:, None, :], shape), column_of)
    return Durations(_to_ns(_vary(graph, nominal, cycles, variation)), np.arange(ranks, dtype=np.int64))


def _per_rank(amount: Amount, ranks: int) -> np.ndarray:
    return np.broadcast_to(np.asarray(amount, dtype=np.float64), (ranks,))


def _to_ns(seconds: np.ndarray) -> IntArray:
    ns = np.rint(seconds * 1e9)
    if not np.all((ns >= 0) & (ns < LONGEST_NS)):
        raise ValueError("a stage's duration is negative, not a number or beyond 146 years")
    return ns.astype(np.int64)


def _fold(ns: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct columns of (nodes, ranks), in order of first rank, and each rank's column."""
    _, first, inverse = np.unique(ns, axis=1, return_index=True, return_inverse=True)
    by_first = np.argsort(first, kind="stable")
    place = np.empty_like(by_first)
    place[by_first] = np.arange(len(by_first))
    return ns[:, first[by_first]], place[inverse.reshape(-1)].astype(np.int64)


def _vary(graph: MarkedGraph, nominal: np.ndarray, cycles: int, variation: Variation) -> np.ndarray:
    ranks = np.arange(nominal.shape[1], dtype=np.int64)
    varied = np.repeat(nominal[:, None, :], cycles, axis=1)
    for index, node in enumerate(graph.nodes):
        spread = variation.spread.get(node.stage.kind, 0.0)
        for cycle in range(cycles) if spread else ():
            draw = uniforms(variation.seed, node.name, graph.batch_of(index, cycle), ranks)
            varied[index, cycle] *= lognormal(draw, spread)
    return varied
