"""Peak memory read off the timeline: which buffers of which batches are held at the same moment.

A buffer is taken when the stage that fills it starts and freed when the last stage that needs it
ends, in the same batch or later ones. Which stages those are is told by `roles`, not by their names.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.pipeline import Pipeline, Stage
from simulator.quantities import Amount, CopyWork, IntArray, leaves
from simulator.results.roles import Part, Roles
from simulator.results.timeline import Timeline
from simulator.sharding import MicroStep, TrainStep

ROW_BUFFERS = "row buffers"
INPUTS = "input batches"
ACTIVATIONS = "activations"
RECEIVED = "exchanged rows"
SENDING = "rows on their way out"
EXPANDED = "rows as the model reads them"
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
    """Return everything that a batch holds for a while when it is computed in so many parts.

    Raises InputError naming a stage of which it cannot be told what it holds.
    """
    roles, micro = Roles.of(pipeline), step.micro_batch(micro_batches)
    found = [*_inputs(step, roles), *_rows(step, roles)]
    for part in roles.parts:
        found += [*_forward(micro, part), *_gradients(micro, part, roles)]
    return tuple(found)


def _now(stages: Sequence[Stage]) -> Freed:
    return tuple((stage, 0) for stage in stages)


def _inputs(step: TrainStep, roles: Roles) -> Iterator[Holding]:
    """Samples wait on the host until they are copied, then on the device until the batch is trained."""
    size = step.input_bytes
    first, passes = (*roles.loads, *roles.copies)[:1], roles.passes
    for stage in first:
        yield Holding(INPUTS, "host", size, stage, _now(roles.copies or passes))
    for stage in roles.copies[:1]:
        yield Holding(INPUTS, "hbm", size, stage, _now(passes))


def _rows(step: TrainStep, roles: Roles) -> Iterator[Holding]:
    """Owned rows wait in a buffer from their retrieval until nobody reads it any more."""
    cached = {buffer.taken_by for buffer in roles.pipeline.buffers if buffer.in_cache}
    for store, first in roles.fills:
        filled = {first: _buffered(step, roles, first)}
        if first in cached:  # what has no room there waits in memory of its own
            filled = {stage: _fetched(stage) for stage in roles.writers(store) if stage not in cached}
        for stage, size in filled.items():
            if np.any(size):
                yield Holding(ROW_BUFFERS, "hbm", size, stage, _row_users(roles.pipeline, store, stage))


def _buffered(step: TrainStep, roles: Roles, fill: Stage) -> Amount:
    """Return an owner's rows, or what a rank brings from servers that it deals with itself."""
    if any(part.exchanges for part in roles.parts):
        return step.traffic.bytes_buffered
    return _fetched(fill)


def _fetched(stage: Stage) -> Amount:
    """Return the bytes that a stage brings to the device."""
    copies = [leaf for leaf in leaves(stage.work) if isinstance(leaf, CopyWork)]
    return sum((copy.bytes for copy in copies if copy.path == "host_to_device"), start=0.0)


def _row_users(pipeline: Pipeline, store: str, fill: Stage) -> Freed:
    """Return what frees the policy's own buffer; without one, every stage that reads the rows."""
    buffers = [buffer for buffer in pipeline.buffers if buffer.taken_by is fill]
    if buffers:
        return tuple((stage, buffers[0].slots - lag) for stage, lag in buffers[0].releases())
    reads = [(stage, read) for stage in pipeline.stages for read in stage.reads if read.store == store]
    return tuple((stage, read.of) for stage, read in reads if read.of is not None)


def _forward(micro: MicroStep, part: Part) -> Iterator[Holding]:
    """What a micro-batch holds until its last pass is over; rows on their way until they have left."""
    traffic, dense, trained = micro.traffic, micro.workload.model.quantities(), _now(part.passes)
    kept = traffic.samples * (dense.activation_bytes + dense.peak_layer_bytes)
    apart = part.expands
    if apart is not None:  # activations count what the model reads only once it does
        yield Holding(EXPANDED, "hbm", micro.model_row_bytes, apart, trained)
        kept = max(0.0, kept - micro.model_row_bytes)
    yield Holding(ACTIVATIONS, "hbm", kept, part.begins, trained)
    brought = part.exchanges or [stage for stage in part.passes[:1] if not stage.reads]
    for stage in brought:
        yield Holding(RECEIVED, "hbm", traffic.row_bytes_received / len(brought), stage, trained)
    for exchange in part.exchanges:
        share = 1 / len(part.exchanges)
        yield Holding(SENDING, "hbm", share * traffic.row_bytes_sent, exchange, _now([exchange]))


def _gradients(micro: MicroStep, part: Part, roles: Roles) -> Iterator[Holding]:
    """Row gradients from the second pass on, at their sources until sent, at their owners until used."""
    first, traffic = part.turns_back, micro.traffic
    for send in part.sends:
        share, packs = 1 / len(part.sends), part.packs(send)
        made = packs[0] if packs else first
        yield Holding(GRADIENTS, "hbm", share * traffic.row_bytes_received, made, _now([send]))
        used = _now(roles.followers(send))
        for pack in packs[:1]:
            yield Holding(EXPANDED, "hbm", share * micro.model_row_bytes, part.passes[-1], _now([pack]))
        if send.kind != "all_to_all":  # its owners are servers
            continue
        yield Holding(GRADIENTS, "hbm", share * traffic.row_bytes_sent, send, used)


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
    return by_batch(timeline, stage, timeline.start_ns[:, :, column])


def _ends_at(timeline: Timeline, freed: Freed, column: int) -> IntArray:
    """Return when the last of `freed` ends, by batch; what nobody frees within the run stays."""
    last = np.zeros(timeline.batches, dtype=np.int64)
    for stage, later in freed:
        ends = by_batch(timeline, stage, timeline.end_ns[:, :, column])
        shifted = np.append(ends[later:], np.full(min(later, len(ends)), FOREVER)) if later else ends
        np.maximum(last, shifted, out=last)
    return last if freed else np.full(timeline.batches, FOREVER)


def by_batch(timeline: Timeline, stage: Stage, times: IntArray) -> IntArray:
    """Return the time of a stage for each batch; where it does not run, of the run that serves the batch."""
    found = np.zeros(timeline.batches, dtype=np.int64)
    for index, node in enumerate(timeline.graph.nodes):
        if node.stage is stage:
            found[node.residue :: timeline.graph.period] = times[index]
    return found if stage.every == 1 else np.maximum.accumulate(found)
