"""Durations of all instances in whole nanoseconds, with alike ranks folded into one column."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator.errors import InputError
from simulator.pipeline import MarkedGraph
from simulator.quantities import Amount, FloatArray, IntArray, Work
from simulator.workload.draws import lognormal, uniforms

LONGEST_NS = 2.0**62
LONGEST_RUN_S = 2.0**63 / 1e9
MOST_INSTANCES = 100_000_000  # completion times held in memory: 0.8 GB


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
    """Whole nanoseconds `ns`, shape (nodes, cycles, columns), and the column of each rank.

    Without jitter the cycles axis is a broadcast view: it costs no memory. `nominal_ns`, shape
    (nodes, columns), is what stages take when nothing varies. Where a column stands for nearly alike ranks
    (`buckets`), its durations are too long by the share `longer` at most; None where all are alike.
    """

    ns: IntArray
    column_of: IntArray
    nominal_ns: IntArray
    longer: float | None = None


def tabulate(
    graph: MarkedGraph, seconds: Callable[[Work], Amount], ranks: int, cycles: int, variation: Variation
) -> Durations:
    """Return the durations of `cycles` cycles on `ranks` ranks, `seconds` giving each work's time.

    Ranks whose stages all take equally long share a column, unless durations are drawn at random.
    """
    amounts = [seconds(node.stage.work) for node in graph.nodes]
    if variation.none:
        columns, column_of = _alike(graph, amounts, ranks)
        refuse_oversized(len(graph.nodes), cycles, columns.shape[1])
        shape = (len(graph.nodes), cycles, columns.shape[1])
        return _within_clock(Durations(np.broadcast_to(columns[:, None, :], shape), column_of, columns))
    refuse_oversized(len(graph.nodes), cycles, ranks)
    nominal = _stacked(amounts, ranks)
    varied = _to_ns(graph, _vary(graph, nominal, cycles, variation))
    return _within_clock(Durations(varied, np.arange(ranks, dtype=np.int64), _to_ns(graph, nominal)))


def refuse_oversized(nodes: int, cycles: int, columns: int) -> None:
    """Raise InputError when the run would hold more completion times than fit in memory."""
    if nodes * cycles * columns > MOST_INSTANCES:
        raise InputError(
            f"the run is too large: {nodes} stages x {cycles} batches x {columns} ranks kept apart; "
            f"at most {MOST_INSTANCES:,} together: take fewer batches, or alike ranks (no jitter, fold: auto)"
        )


def _within_clock(durations: Durations) -> Durations:
    """Raise InputError when the run may last longer than a clock of 63 bits counts, all in turn."""
    total_s = float(durations.ns.max(axis=2).sum(dtype=np.float64)) / 1e9
    if total_s >= LONGEST_RUN_S:
        raise InputError(
            f"the run may last {total_s:.3g} s; at most {LONGEST_RUN_S:.3g} s (292 years) are allowed"
        )
    return durations


def _alike(graph: MarkedGraph, amounts: Sequence[Amount], ranks: int) -> tuple[IntArray, IntArray]:
    """Return the distinct columns and each rank's; amounts without a rank axis need only one."""
    if all(np.ndim(amount) == 0 for amount in amounts):
        return _to_ns(graph, _stacked(amounts, 1)), np.zeros(ranks, dtype=np.int64)
    return _fold(_to_ns(graph, _stacked(amounts, ranks)))


def _stacked(amounts: Sequence[Amount], ranks: int) -> FloatArray:
    return np.stack([np.broadcast_to(np.asarray(amount, dtype=np.float64), (ranks,)) for amount in amounts])


def _to_ns(graph: MarkedGraph, seconds: FloatArray) -> IntArray:
    """Round to whole ns. Raises InputError naming a stage whose time is no time."""
    ns = np.rint(seconds * 1e9)
    wrong = ~((ns >= 0) & (ns < LONGEST_NS)).reshape(len(ns), -1).all(axis=1)
    if wrong.any():
        stage = graph.nodes[int(np.argmax(wrong))].name
        raise InputError(
            f"stage {stage} would take {seconds[np.argmax(wrong)].max():g} s; at most 146 years are allowed"
        )
    return ns.astype(np.int64)


def _fold(ns: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct columns of (nodes, ranks), in order of first rank, and each rank's column."""
    _, first, inverse = np.unique(ns, axis=1, return_index=True, return_inverse=True)
    by_first = np.argsort(first, kind="stable")
    place = np.empty_like(by_first)
    place[by_first] = np.arange(len(by_first))
    return ns[:, first[by_first]], place[inverse.reshape(-1)].astype(np.int64)


def _vary(graph: MarkedGraph, nominal: FloatArray, cycles: int, variation: Variation) -> FloatArray:
    ranks = np.arange(nominal.shape[1], dtype=np.int64)
    varied = np.repeat(nominal[:, None, :], cycles, axis=1)
    for index, node in enumerate(graph.nodes):
        spread = variation.spread.get(node.stage.kind, 0.0)
        for cycle in range(cycles) if spread else ():
            draw = uniforms(variation.seed, node.name, graph.batch_of(index, cycle), ranks)
            varied[index, cycle] *= lognormal(draw, spread)
    return varied
