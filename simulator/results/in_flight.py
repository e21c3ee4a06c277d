"""Peak memory read off the timeline: which buffers of which batches are held at the same moment.

A buffer is taken when the stage that fills it starts and freed when the last stage that needs it
ends, in the same batch or later ones. Stages are known by the names of `policies.parts`; stages of
other names hold nothing of their own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.pipeline import Pipeline, Stage
from simulator.quantities import Amount, IntArray
from simulator.results.timeline import Timeline
from simulator.sharding import MicroStep, TrainStep

ROW_BUFFERS = "row buffers"
INPUTS = "input batches"
ACTIVATIONS = "activations"
RECEIVED = "exchanged rows"
SENDING = "rows on their way out"
GRADIENTS = "row gradients"
FOREVER = np.iinfo(np.int64).max
Freed = tuple[tuple[Stage, int], ...]


@dataclass(frozen=True, eq=False)
class Holding:
    """`bytes` of `item` in `memory`, from the start of `taken_by` to the end of the last of `freed_by`.

    An entry (stage, n) of `freed_by` is that stage of the batch n later.
    """

    item: str
    memory: str
    bytes: Amount
    taken_by: Stage
    freed_by: Freed


def holdings(step: TrainStep, pipeline: Pipeline, micro_batches: int) -> tuple[Holding, ...]:
    """Return everything that a batch holds for a while when it is computed in so many parts."""
    named = {stage.name: stage for stage in pipeline.stages}
    micro = step.micro_batch(micro_batches)
    found = [*_inputs(step, named), *_rows(step, pipeline, named)]
    for name, stage in named.items():
        if name.startswith("forward"):
            found += _part(micro, named, name.removeprefix("forward"), stage)
    return tuple(found)


def _inputs(step: TrainStep, named: dict[str, Stage]) -> Iterator[Holding]:
    """Samples wait on the host until they are copied, then on the device until the batch is trained."""
    size = step.workload.batch * step.workload.input_bytes_per_sample
    read, copied = named.get("read"), named.get("inputs")
    trained = _ends(named, "backward", "")
    if read and copied:
        yield Holding(INPUTS, "host", size, read, ((copied, 0),))
    if copied and trained:
        yield Holding(INPUTS, "hbm", size, copied, trained)


def _rows(step: TrainStep, pipeline: Pipeline, named: dict[str, Stage]) -> Iterator[Holding]:
    """Owned rows wait in a buffer from their retrieval until nobody reads it any more."""
    retrieve = named.get("retrieve")
    if retrieve is None or all(home.in_place for home in step.traffic.by_tier):
        return
    buffers = [buffer for buffer in pipeline.buffers if buffer.taken_by is retrieve]
    if buffers:
        freed: Freed = tuple((stage, buffers[0].slots - lag) for stage, lag in buffers[0].releases())
    else:
        stores = {write.store for write in retrieve.writes}
        freed = tuple(
            (stage, read.of or 0)
            for stage in pipeline.stages
            for read in stage.reads
            if read.store in stores and read.of is not None
        )
    yield Holding(ROW_BUFFERS, "hbm", step.traffic.bytes_owned, retrieve, freed)


def _part(micro: MicroStep, named: dict[str, Stage], label: str, forward: Stage) -> Iterator[Holding]:
    """A micro-batch: rows out and in, activations, gradients out and in."""
    traffic, dense = micro.traffic, micro.workload.model.quantities()
    trained, updated = _ends(named, "backward", label), named.get("sparse_update")
    if not trained:
        return
    kept = traffic.samples * (dense.activation_bytes + dense.peak_layer_bytes)
    yield Holding(ACTIVATIONS, "hbm", kept, forward, trained)
    exchange, send = named.get(f"exchange{label}"), named.get(f"send{label}")
    if exchange:
        yield Holding(RECEIVED, "hbm", traffic.row_bytes_received, exchange, trained)
        yield Holding(SENDING, "hbm", traffic.row_bytes_sent, exchange, ((exchange, 0),))
    if send and updated:
        first = trained[0][0]
        yield Holding(GRADIENTS, "hbm", traffic.row_bytes_received, first, ((send, 0),))
        yield Holding(GRADIENTS, "hbm", traffic.row_bytes_sent, send, ((updated, 0),))


def _ends(named: dict[str, Stage], start: str, label: str) -> Freed:
    """Return the stages of a pass over a micro-batch, in order."""
    exact, longer = f"{start}{label}", f"{start}{label}."
    return tuple((stage, 0) for name, stage in named.items() if name == exact or name.startswith(longer))


@dataclass(frozen=True)
class Peak:
    """The most that is held at once: bytes by item at that moment, and how many batches they are of."""

    items: dict[str, float]
    batches: int


def peak(timeline: Timeline, held: Sequence[Holding], rank: int) -> Peak:
    """Return the moment at which the `held` buffers of `rank` take most."""
    column = int(timeline.column_of[min(rank, timeline.ranks - 1)])
    taken = [_starts(timeline, one.taken_by, column) for one in held]
    freed = [_ends_at(timeline, one.freed_by, column) for one in held]
    sizes = [_of_rank(one.bytes, rank) for one in held]
    if not held:
        return Peak({}, 0)
    moment = _fullest(taken, freed, sizes)
    alive = [np.flatnonzero((t <= moment) & (moment < f)) for t, f in zip(taken, freed, strict=True)]
    items: dict[str, float] = {}
    for one, size, batches in zip(held, sizes, alive, strict=True):
        items[one.item] = items.get(one.item, 0.0) + size * len(batches)
    return Peak(items, len(set(np.concatenate(alive).tolist())))


def _fullest(taken: list[IntArray], freed: list[IntArray], sizes: list[float]) -> int:
    """Return the moment with the largest sum; what ends at a moment is gone by then."""
    at = np.concatenate([*freed, *taken])
    change = [
        np.full(len(times), sign * size)
        for sign, group in ((-1, freed), (1, taken))
        for times, size in zip(group, sizes, strict=True)
    ]
    order = np.argsort(at, kind="stable")
    level = np.cumsum(np.concatenate(change)[order])
    return int(at[order][int(np.argmax(level))])


def _of_rank(size: Amount, rank: int) -> float:
    return float(size) if np.ndim(size) == 0 else float(np.asarray(size)[rank])


def _starts(timeline: Timeline, stage: Stage, column: int) -> IntArray:
    return _by_batch(timeline, stage, timeline.start_ns[:, :, column])


def _ends_at(timeline: Timeline, freed: Freed, column: int) -> IntArray:
    """Return when the last of `freed` ends, by batch; what nobody frees within the run stays."""
    last = np.zeros(timeline.batches, dtype=np.int64)
    for stage, later in freed:
        ends = _by_batch(timeline, stage, timeline.end_ns[:, :, column])
        shifted = np.append(ends[later:], np.full(min(later, len(ends)), FOREVER)) if later else ends
        np.maximum(last, shifted, out=last)
    return last if freed else np.full(timeline.batches, FOREVER)


def _by_batch(timeline: Timeline, stage: Stage, times: IntArray) -> IntArray:
    """Return the time of a stage for each batch; where it does not run, of the run that serves the batch."""
    found = np.zeros(timeline.batches, dtype=np.int64)
    for index, node in enumerate(timeline.graph.nodes):
        if node.stage is stage:
            found[node.residue :: timeline.graph.period] = times[index]
    return found if stage.every == 1 else np.maximum.accumulate(found)
