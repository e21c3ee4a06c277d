"""Staleness between copies of the tables: which averagings the rows of a batch lack.

What the ranks of one copy do to a row is replayed key by key (`staleness`). The updates of the other copies
reach a row by an averaging alone, so a batch's rows contain those that were averaged before its rows were
read from the tables. A row that the batch before used too may be refreshed later; others are not.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from simulator.pipeline import Access, Pipeline, Stage
from simulator.quantities import IntArray
from simulator.results.in_flight import by_batch
from simulator.results.staleness import Staleness
from simulator.results.timeline import Timeline
from simulator.sharding import TrainStep


def declared_steps(own: int, step: TrainStep, pipeline: Pipeline) -> int:
    """Return how many updates rows may lack: of a policy that declares `own`, on the copies of `step`.

    Rows read before the step before has ended lack its averaging: one update of the other copies more than
    the plan allows, or as many as the policy declares anyway.
    """
    if not step.synchronize_every:
        return own
    early = any(stage.ahead for stage in _table_readers(pipeline))
    return max(own, int(early)) + step.staleness_steps


def with_copies(
    seen: Staleness | None, timeline: Timeline, column: int, batches: Sequence[int]
) -> Staleness | None:
    """Return `seen` with the oldest update of other copies that `batches` lack; its mean stays as it is."""
    pipeline = timeline.graph.pipeline
    averages, readers = _averages(pipeline), _table_readers(pipeline)
    if seen is None or not averages or not readers:
        return seen
    done = np.concatenate([_runs(timeline, stage, column) for stage in averages])
    begun = np.min([by_batch(timeline, one, timeline.start_ns[:, :, column]) for one in readers], axis=0)
    lacking = {batch: _lacking(done, int(begun[batch]), batch) for batch in batches}
    batch = max(lacking, key=lambda one: lacking[one])
    if lacking[batch] <= seen.observed_max:
        return seen
    where = f"batch {batch}, keys last used by batch {batch - lacking[batch]} at another copy"
    return replace(seen, observed_max=lacking[batch], where=where)


def _lacking(done: IntArray, begun: int, batch: int) -> int:
    """Return how many of the latest updates no averaging had brought when the batch's rows were read."""
    averaged = done[done[:, 1] <= begun, 0]
    return batch - 1 - min(batch - 1, int(averaged.max(initial=-1)))


def _averages(pipeline: Pipeline) -> list[Stage]:
    return [stage for stage in pipeline.stages if stage.kind == "all_reduce" and stage.writes]


def _table_readers(pipeline: Pipeline) -> list[Stage]:
    """Return the stages that take a batch's rows from the tables that are averaged."""
    tables = {write.store for stage in _averages(pipeline) for write in stage.writes if write.of is None}
    return [
        stage
        for stage in pipeline.stages
        if _touches(stage.reads, tables) and not _touches(stage.writes, tables)
    ]


def _touches(accesses: Sequence[Access], tables: set[str]) -> bool:
    return any(one.store in tables for one in accesses)


def _runs(timeline: Timeline, stage: Stage, column: int) -> IntArray:
    """Return (batch, end) of each run of a stage, shape (runs, 2)."""
    nodes = [(at, node.residue) for at, node in enumerate(timeline.graph.nodes) if node.stage is stage]
    ends = timeline.end_ns[:, :, column]
    batches = timeline.graph.period * np.arange(ends.shape[1])
    return np.concatenate([np.stack([residue + batches, ends[at]], axis=1) for at, residue in nodes])
