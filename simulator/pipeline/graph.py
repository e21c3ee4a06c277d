"""From a pipeline to its marked graph: stream order, dependencies, carries, buffers and pace.

All of them are one kind of edge: stage v of batch k waits for stage u of batch k - lag. Stages
that run in every P-th batch are unrolled over the least common multiple of all periods.
"""

import itertools
import math
from collections.abc import Iterable, Iterator

from simulator.errors import InfeasibleError, InputError
from simulator.pipeline.compiled import Edge, MarkedGraph, Node
from simulator.pipeline.order import negative_cycle_or_potential
from simulator.pipeline.stage import Pipeline, Stage

LONGEST_PERIOD = 256


def compile_pipeline(pipeline: Pipeline) -> MarkedGraph:
    """Return the marked graph of `pipeline`.

    Raises InfeasibleError naming the cycle when it deadlocks (a cycle whose lags sum to <= 0), or
    naming the queue when some stage may run away (the graph is not strongly connected).
    """
    period = _period(pipeline)
    nodes = tuple(_nodes(pipeline, period))
    edges = tuple(
        sorted(set(_edges(pipeline, nodes, period)), key=lambda e: (e.target, e.source, e.lag, e.reason))
    )
    found = negative_cycle_or_potential(len(nodes), edges)
    if found.cycle:
        raise InfeasibleError(f"deadlock: {_cycle_in_words(nodes, found.cycle)}")
    _refuse_unbounded(nodes, edges)
    return MarkedGraph(pipeline, nodes, edges, period, found.potential)


def _period(pipeline: Pipeline) -> int:
    period = math.lcm(*(stage.every for stage in pipeline.stages))
    if period > LONGEST_PERIOD:
        raise InputError(
            f"the stages repeat together only every {period} batches; at most {LONGEST_PERIOD} are allowed"
        )
    return period


def _nodes(pipeline: Pipeline, period: int) -> Iterator[Node]:
    for stream, stages in pipeline.streams.items():
        for position, stage in enumerate(stages):
            for residue in range(stage.phase, period, stage.every):
                yield Node(stage, residue, stream, position)


class _Runs:
    """Finds the node that serves a batch, and the cycles between two batches."""

    def __init__(self, nodes: tuple[Node, ...], period: int) -> None:
        self.period = period
        self.by_stage: dict[tuple[int, int], int] = {(id(n.stage), n.residue): i for i, n in enumerate(nodes)}
        self.nodes = nodes

    def of(self, stage: Stage) -> Iterator[int]:
        """Yield the nodes of `stage`, one for each of its runs in a cycle."""
        for residue in range(stage.phase, self.period, stage.every):
            yield self.by_stage[id(stage), residue]

    def edge(self, source: Stage, target: int, lag: int, reason: str) -> Edge:
        """Node `target` waits for the run of `source` that serves the batch `lag` earlier.

        A stage that runs every P batches serves its own batch and the next P - 1, so that run is
        the latest one at or before the batch asked for.
        """
        batch = self.nodes[target].residue - lag
        served = batch - (batch - source.phase) % source.every
        cycle, residue = divmod(served, self.period)
        return Edge(self.by_stage[id(source), residue], target, -cycle, reason)

    def edges(self, source: Stage, target: Stage, lag: int, reason: str) -> Iterator[Edge]:
        """Yield one edge for each run of `target`."""
        return (self.edge(source, node, lag, reason) for node in self.of(target))


def _edges(pipeline: Pipeline, nodes: tuple[Node, ...], period: int) -> Iterator[Edge]:
    runs = _Runs(nodes, period)
    yield from _stream_edges(nodes, period)
    for stage in pipeline.stages:
        for before in stage.after:
            yield from runs.edges(before, stage, 0, "needs")
        yield from _pace_edges(runs, pipeline, stage)
    for carry in pipeline.carries:
        yield from runs.edges(carry.source, carry.to, carry.lag, "carry")
    yield from _buffer_edges(runs, pipeline)


def _pace_edges(runs: _Runs, pipeline: Pipeline, stage: Stage) -> Iterator[Edge]:
    """A stage issued a batches early also waits for the update of batch k - a - 1."""
    if stage.ahead:
        for update in pipeline.updates:
            yield from runs.edges(update, stage, stage.ahead + 1, "pace")


def _buffer_edges(runs: _Runs, pipeline: Pipeline) -> Iterator[Edge]:
    for buffer in pipeline.buffers:
        for stage, lag in buffer.releases():
            yield from runs.edges(stage, buffer.taken_by, lag, f'buffer "{buffer.name}"')


def _stream_edges(nodes: tuple[Node, ...], period: int) -> Iterator[Edge]:
    for stream in dict.fromkeys(node.stream for node in nodes):
        yield from _one_stream(stream, nodes, period)


def _one_stream(stream: str, nodes: tuple[Node, ...], period: int) -> Iterator[Edge]:
    """Chain the runs of one stream by (batch - ahead, position), the last back to the first.

    With slot = (batch - ahead) split into cycles and rest, instance m of a node is issued in cycle
    m + early, where early = floor((residue - ahead) / period); neighbours share the issue cycle.
    """
    issued = sorted(
        (
            ((node.residue - node.stage.ahead) % period, node.position, index)
            for index, node in enumerate(nodes)
            if node.stream == stream
        )
    )
    order = [index for _, _, index in issued]
    early = {i: (nodes[i].residue - nodes[i].stage.ahead) // period for i in order}
    for place, target in enumerate(order):
        for source, wrap in _in_any_run(order, place, early):
            yield Edge(source, target, early[source] - early[target] + wrap, f'stream "{stream}"')


def _in_any_run(order: list[int], place: int, early: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Walk back along a stream from `place`; yield (node, laps) of those that a run of any length needs.

    The one just before is enough except where its run lies before the first or after the last cycle,
    which happens when stages of one stream differ in `ahead`: there the order must hold as well.
    """
    nearest = {True: math.inf, False: math.inf}
    for back in itertools.count(1):
        node, laps = order[(place - back) % len(order)], -((place - back) // len(order))
        lag = early[node] - early[order[place]] + laps
        if abs(lag) < nearest[lag > 0]:
            nearest[lag > 0] = abs(lag)
            yield node, laps
        if lag == 0 or (back >= len(order) and nearest[False] == math.inf):
            return


def _cycle_in_words(nodes: tuple[Node, ...], cycle: Iterable[Edge]) -> str:
    steps = [f"{nodes[e.target].name} waits for {nodes[e.source].name} ({_lag_in_words(e)})" for e in cycle]
    return "; ".join(steps)


def _lag_in_words(edge: Edge) -> str:
    where = "same batch" if edge.lag == 0 else f"{abs(edge.lag)} {'earlier' if edge.lag > 0 else 'later'}"
    return f"{edge.reason}, {where}"


def _refuse_unbounded(nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> None:
    """Raise InfeasibleError unless every stage is held back, in the end, by every other."""
    held = _reachable(0, [(e.source, e.target) for e in edges])
    holding = _reachable(0, [(e.target, e.source) for e in edges])
    for edge in edges:
        if (edge.target in held) > (edge.source in held) or (edge.source in holding) > (
            edge.target in holding
        ):
            ahead, behind = nodes[edge.source].name, nodes[edge.target].name
            raise InfeasibleError(
                f"unbounded queue: nothing holds {ahead} back when {behind} is slower; "
                f"add a buffer or a carry that makes {ahead} wait"
            )
    apart = [node.name for i, node in enumerate(nodes) if i not in held & holding]
    if apart:
        raise InfeasibleError(
            f"{apart[0]} and {nodes[0].name} never wait for each other: the pipeline falls apart"
        )


def _reachable(start: int, arrows: Iterable[tuple[int, int]]) -> set[int]:
    following: dict[int, list[int]] = {}
    for source, target in arrows:
        following.setdefault(source, []).append(target)
    found, waiting = {start}, [start]
    while waiting:
        fresh = set(following.get(waiting.pop(), ())) - found
        found |= fresh
        waiting.extend(fresh)
    return found
