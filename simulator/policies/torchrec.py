"""The training pipelines of TorchRec: how many batches are in flight, and what of the next one runs early.

All share one order of updates: a fused row optimizer updates rows as soon as their gradients are back,
before the dense optimizer. They differ in how far ahead a batch is copied, its keys are distributed, its
rows are brought to the device and exchanged, and each step further ahead holds one more batch on
the device. Schedules as in the docstrings of `torchrec/distributed/train_pipeline/train_pipelines.py`
(https://github.com/meta-pytorch/torchrec).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from annotated_types import Ge

from simulator.pipeline import Access, Buffer, Carry, Pipeline, Stage
from simulator.policies.base import Fragment, InterBatch, IntraBatch
from simulator.policies.parts import (
    HOST,
    ROWS,
    Ahead,
    add_back,
    copy_inputs,
    read_inputs,
    retrieve_rows,
    route_keys,
    settled,
    write_back,
)
from simulator.sharding.step import TrainStep

STASH = "stashed dense gradients"


@dataclass(frozen=True, eq=False)
class _Early:
    """The stages before a batch's rows, `copied`, `routed` and `retrieved` so many batches ahead."""

    read: Stage
    inputs: Stage
    route: Stage
    retrieve: Stage

    @classmethod
    def of(cls, step: TrainStep, parts: int, copied: int, routed: int = 0, retrieved: int = 0) -> "_Early":
        """A data loader works one batch ahead of the copy."""
        read = read_inputs(step, ahead=copied + 1, parts=parts)
        inputs = copy_inputs(step, read, ahead=copied)
        route = route_keys(step, inputs, ahead=routed)
        return cls(read, inputs, route, retrieve_rows(step, route, ahead=retrieved))

    def beside(self, part: Fragment, back: Stage) -> dict[str, Sequence[Stage]]:
        """Return the streams around `part`, whose rows are updated before its dense parameters."""
        dense = part.updates[-1]
        computes = [*(stage for stage in part.streams["compute"] if stage is not dense), dense]
        return {
            "loader": [self.read],
            "copy": [self.inputs],
            "input dist": [self.route],
            "prefetch": [self.retrieve],
            "write back": [back],
            **part.streams,
            "compute": computes,
        }


def _exchanged_ahead(part: Fragment) -> Fragment:
    """Return `part` with its rows exchanged a batch ahead."""
    at = Ahead(dict.fromkeys(part.rows_in, 1))
    streams = {name: [at(stage) for stage in stages] for name, stages in part.streams.items()}
    rows_in, updates = (tuple(map(at, stages)) for stages in (part.rows_in, part.updates))
    return Fragment(streams, rows_in, at(part.rows_updated), updates)


@dataclass(frozen=True)
class Base(InterBatch):
    """Two streams: the next batch is copied to the device beside everything else of this one."""

    def embed(self, step: TrainStep, intra_batch: IntraBatch) -> Pipeline:
        """Return read+2, inputs+1; keys are distributed when the batch before is done."""
        early = _Early.of(step, intra_batch.micro_batches, copied=1)
        part = intra_batch.fragment(step, early.retrieve)
        back = write_back(step, [part.rows_updated])
        behind = [Carry(stage, to=early.route) for stage in (back, part.updates[-1])]
        return Pipeline(early.beside(part, back), behind, updates=[*part.updates, back])


@dataclass(frozen=True)
class SparseDist(InterBatch):
    """Three streams: copy two batches ahead, distribution of keys one ahead, everything else in turn."""

    def embed(self, step: TrainStep, intra_batch: IntraBatch) -> Pipeline:
        """Return read+3, inputs+2, route+1; the lookup begins when the step before is over."""
        early = _Early.of(step, intra_batch.micro_batches, copied=2, routed=1)
        part = intra_batch.fragment(step, early.retrieve)
        back = write_back(step, [part.rows_updated])
        behind = [Carry(stage, to=early.retrieve) for stage in (back, part.updates[-1])]
        return Pipeline(early.beside(part, back), behind, updates=[*part.updates, back])


@dataclass(frozen=True)
class Fused(InterBatch):
    """SparseDist, but the next lookup and exchange begin with the row update, beside the dense optimizer."""

    def embed(self, step: TrainStep, intra_batch: IntraBatch) -> Pipeline:
        """Return read+3, inputs+2, route+1; the lookup waits for rows, not for the dense optimizer."""
        early = _Early.of(step, intra_batch.micro_batches, copied=2, routed=1)
        part = intra_batch.fragment(step, early.retrieve)
        back = write_back(step, [part.rows_updated])
        behind = [Carry(back, to=early.retrieve)]
        return Pipeline(early.beside(part, back), behind, updates=[*part.updates, back])


@dataclass(frozen=True)
class Prefetch(InterBatch):
    """SparseDist, but the next batch's rows come to the tables' cache beside this one, as far as it has room.

    The cache is that of the tier (`hbm_cache`); the policy brings none. Rows of this batch stay in it until
    their update, so what the rows of both batches need beyond its room is retrieved when this batch is done;
    tables without a cache are not prefetched. Rows that both use are updated in place, so nothing is stale.
    """

    def embed(self, step: TrainStep, intra_batch: IntraBatch) -> Pipeline:
        """Return read+3, inputs+2, route+1, retrieve+1, late rows, then `intra_batch`."""
        if not step.prefetches:
            return SparseDist().embed(step, intra_batch)
        early = _prefetched(step, _Early.of(step, intra_batch.micro_batches, copied=2, routed=1, retrieved=1))
        shared = Access(ROWS.store, keys="shared", of=1)
        cached = Stage("cached", "lookup", after=[early.retrieve], ahead=1, reads=(shared,), writes=(ROWS,))
        late = _late_rows(step, cached)
        part = intra_batch.fragment(step, late)
        back = write_back(step, [part.rows_updated])
        back = back if late.reads else _of(back, keys="expired")
        kept = Buffer("cache", 2, early.retrieve, [back, (cached, 1)], in_cache=True)
        # Late rows first: their batch is the one that everything waits for.
        streams = {**early.beside(part, back), "prefetch": [late, early.retrieve], "cache": [cached]}
        done = [Carry(stage, to=cached) for stage in (part.rows_updated, part.updates[-1])]
        done += [Carry(back, to=late)] if late.reads else []
        return Pipeline(streams, [*done, *settled(back, part)], [kept], part.updates)


def _prefetched(step: TrainStep, early: _Early) -> _Early:
    """Retrieve what has room, and of that nothing that the batch before uses: it is there."""
    retrieve = replace(_of(early.retrieve, keys="missing"), work=step.prefetch_rows)
    return replace(early, retrieve=retrieve)


def _late_rows(step: TrainStep, cached: Stage) -> Stage:
    """Retrieve the others, if any, once all rows of the batch before have returned."""
    late = Stage("retrieve_late", step.lookup_kind, step.retrieve_late_rows, [cached])
    return late if step.late.empty else replace(late, reads=(HOST,), writes=(ROWS,))


def _of(stage: Stage, keys: str) -> Stage:
    """Return `stage` moving only keys that the batch before it, or after it, does not use."""
    reads, writes = (
        tuple(replace(access, keys=keys, within=1) for access in accesses)
        for accesses in (stage.reads, stage.writes)
    )
    return replace(stage, reads=reads, writes=writes)


@dataclass(frozen=True)
class SemiSync(InterBatch):
    """Rows are looked up and exchanged one batch ahead: each batch trains on rows one update old.

    The fused row optimizer updates tables where they live: updates are added to what is there, and none is
    lost. With `stash_gradients` dense parameters are as late as rows: a batch's optimizer applies the dense
    gradients of the batch before, and does not wait for its own all-reduces. The first `start_batch` batches
    train synchronously before that begins; a run shows the steps after them, so it changes no number here.
    """

    stash_gradients: bool = False
    start_batch: Annotated[int, Ge(0)] = 0
    consistency: ClassVar[str] = "stale"
    staleness_steps: ClassVar[int] = 1
    arranges_exchange: ClassVar[bool] = True

    def embed(self, step: TrainStep, intra_batch: IntraBatch) -> Pipeline:
        """Return read+4, inputs+3, route+2, retrieve+1 and the fragment's exchange a batch ahead."""
        early = _Early.of(step, intra_batch.micro_batches, copied=3, routed=2, retrieved=1)
        part = _exchanged_ahead(intra_batch.fragment(step, early.retrieve))
        part, stashed = _stashed(part) if self.stash_gradients else (part, [])
        back = add_back(step, [part.rows_updated])
        carries = [Carry(back, to=early.retrieve, lag=2), *settled(back, part), *stashed]
        caches = {STASH: step.dense_gradient_bytes} if self.stash_gradients else {}
        return Pipeline(early.beside(part, back), carries, updates=[*part.updates, back], caches=caches)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Say what the run does not show."""
        if not self.start_batch:
            return ()
        return (f"the first {self.start_batch} batches train synchronously; the steps shown come after them",)


def _stashed(part: Fragment) -> tuple[Fragment, list[Carry]]:
    """Return `part` with its dense update a batch late, and what that waits for in the batch before."""
    dense = part.updates[-1]
    reduces = [stage for stage in dense.after if stage.kind == "all_reduce"]
    late = replace(dense, after=[stage for stage in dense.after if stage.kind != "all_reduce"])
    streams = {
        name: [late if one is dense else one for one in stages] for name, stages in part.streams.items()
    }
    part = replace(part, streams=streams, updates=(*part.updates[:-1], late))
    return part, [Carry(reduce, to=late) for reduce in reduces]
