"""Keys replayed: what their rows contain in every store, as stages read and wrote them in a timeline.

A row's value counts, for each update, how often the row contains it. A stage reads when it starts and
writes when it ends; in between it adds the batch's own update if it is one that does. A write replaces what
its place holds, or adds the batch's update to it where its access says so. Nothing is taken from the
policy's word but which stores its stages touch, for which keys, and how. All keys are replayed at once, one
column each, so the cost grows with the stages of the batches looked at and hardly with the keys.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from simulator.pipeline import Access, Stage
from simulator.quantities import IntArray
from simulator.results.timeline import Timeline

Mask = NDArray[np.bool_]
Counts = NDArray[np.uint8]
Place = tuple[str, int | None]
MOST = np.iinfo(np.uint8).max  # times that an update is counted
NEVER = 1 << 30  # batches to a use that does not exist


@dataclass(frozen=True, eq=False)
class Keys:
    """Keys by the batches that use them: `uses[i, key]` for batch `first` + i, shape (batches, keys).

    `single` keys are looked up once by all ranks together, `hot` ones are among the most popular, and of
    `own` ones the rank that is looked at makes the updates itself; shape (keys,) each. `update[i, key]`
    numbers the updates of a key, from 0: which count of its row the update of batch `first` + i goes
    to.
    """

    first: int
    uses: Mask
    single: Mask
    hot: Mask
    own: Mask
    update: IntArray

    @property
    def batches(self) -> int:
        """How many batches they are followed through."""
        return len(self.uses)

    @cached_property
    def before(self) -> IntArray:
        """Batches since the use before, shape as `uses`; NEVER where there is none."""
        return _since(self.uses)

    @cached_property
    def after(self) -> IntArray:
        """Batches to the next use, shape as `uses`; NEVER where there is none."""
        return _since(self.uses[::-1])[::-1]

    def selected(self, access: Access) -> Mask:
        """Return which uses `access` touches, shape as `uses`."""
        return self.uses & SELECTS[access.keys](self, access.within)


def _since(uses: Mask) -> IntArray:
    batch = np.arange(len(uses), dtype=np.int64)[:, None]
    latest = np.maximum.accumulate(np.where(uses, batch, -NEVER), axis=0)
    before = np.concatenate([np.full((1, uses.shape[1]), -NEVER, dtype=np.int64), latest[:-1]])
    gaps: IntArray = np.minimum(batch - before, NEVER)
    return gaps


SELECTS: Mapping[str, Callable[[Keys, int], Mask]] = {
    "all": lambda keys, within: keys.uses,
    "shared": lambda keys, within: keys.before == 1,
    "missing": lambda keys, within: keys.before > within,
    "next": lambda keys, within: keys.after == 1,
    "later": lambda keys, within: (keys.after != 1) & ~(keys.single & (keys.after > within)),
    "single": lambda keys, within: keys.single & (keys.after > within),
    "expired": lambda keys, within: keys.after > within,
    "hot": lambda keys, within: keys.hot & keys.uses,
    "cold": lambda keys, within: ~keys.hot & keys.uses,
    "own": lambda keys, within: keys.own & keys.uses,
}


@dataclass(frozen=True, eq=False)
class _Touch:
    """One access of a run: for the keys of which batch (from the first), where, which of them, and how."""

    batch: int
    place: Place
    keys: Mask
    adds: bool


@dataclass(frozen=True, eq=False)
class _Held:
    """What a place holds: counts of updates, shape (keys, updates), and for which keys it has been filled."""

    counts: Counts
    filled: Mask


@dataclass(eq=False)
class _Run:
    """One run of a stage: what it reads and writes, and what it has read. `updates`: it makes updates."""

    updates: bool
    start: int
    end: int
    place: int
    reads: list[_Touch] = field(default_factory=list)
    writes: list[_Touch] = field(default_factory=list)
    seen_by: list[tuple[int, int]] = field(default_factory=list)
    value: Counts | None = None
    filled: Mask | None = None


class Replay:
    """Replays `keys` in one timeline on one column, for `readers` that hand rows to the dense model."""

    def __init__(self, timeline: Timeline, column: int, readers: Sequence[Stage], keys: Keys) -> None:
        """Prepare to replay; nothing is done yet."""
        self.timeline, self.column, self.graph = timeline, column, timeline.graph
        self.readers, self.keys = readers, keys
        self._node = {(id(node.stage), node.residue): index for index, node in enumerate(self.graph.nodes)}
        self._updates = {id(stage) for stage in self.graph.pipeline.row_updates}
        self._shape = keys.uses.shape[1], int(keys.update.max(initial=0)) + 1
        self._held: dict[Place, _Held] = {}

    def read_in(self, batches: Collection[int]) -> Mapping[tuple[int, int], Counts]:
        """Return by (place of the reader, batch) what it read in each of `batches`, shape (keys, updates)."""
        runs = self._runs(set(batches))
        self._held = {}
        self._play(runs)
        blank = np.zeros(self._shape, dtype=np.uint8)
        return {at: blank if run.value is None else run.value for run in runs for at in run.seen_by}

    def _runs(self, wanted: set[int]) -> list[_Run]:
        """Return the runs that touch a key; readers that write nothing only where they are asked for."""
        runs: dict[tuple[int, int], _Run] = {}
        for stage in self.graph.pipeline.stages:
            reader = next((i for i, one in enumerate(self.readers) if one is stage), None)
            for access, writes in _accesses(stage):
                chosen = self.keys.selected(access)
                for batch in np.flatnonzero(chosen.any(axis=1)).tolist():
                    number = self.keys.first + batch
                    if reader is not None and not stage.writes and number not in wanted:
                        continue
                    run = self._run_of(runs, stage, number + access.late)
                    if run is None:
                        continue
                    place = (access.store, None if access.of is None else number - access.of)
                    (run.writes if writes else run.reads).append(
                        _Touch(batch, place, chosen[batch], access.adds)
                    )
                    if reader is not None and number in wanted and (reader, number) not in run.seen_by:
                        run.seen_by.append((reader, number))
        return list(runs.values())

    def _run_of(self, runs: dict[tuple[int, int], _Run], stage: Stage, batch: int) -> _Run | None:
        """Return the run of `stage` that serves `batch`; None if it lies outside of the timeline."""
        served = batch - (batch - stage.phase) % stage.every
        cycle, residue = divmod(served, self.graph.period)
        if served < 0 or cycle >= self.timeline.cycles:
            return None
        node = self._node[id(stage), residue]
        if (node, cycle) not in runs:
            start, end = self.timeline.start_ns, self.timeline.end_ns
            times = int(start[node, cycle, self.column]), int(end[node, cycle, self.column])
            runs[node, cycle] = _Run(id(stage) in self._updates, *times, self.graph.place(node, cycle))
            if not stage.reads:
                runs[node, cycle].filled = np.ones(self._shape[0], dtype=np.bool_)
        return runs[node, cycle]

    def _play(self, runs: Sequence[_Run]) -> None:
        """Let all runs read and write in order of time.

        What ends when another one starts is seen by it; what takes no time follows the graph's order.
        """
        events = [((run.start, 1, run.place, 0), run) for run in runs]
        events += [((run.end, int(run.start == run.end), run.place, 1), run) for run in runs]
        for (_, _, _, ends), run in sorted(events, key=lambda event: event[0]):
            if ends:
                self._write(run)
            else:
                self._read(run)

    def _at(self, place: Place) -> _Held:
        """Return what a place holds; at first a buffer nothing, a store that persists no update."""
        if place not in self._held:
            persists = np.full(self._shape[0], place[1] is None, dtype=np.bool_)
            self._held[place] = _Held(np.zeros(self._shape, dtype=np.uint8), persists)
        return self._held[place]

    def _read(self, run: _Run) -> None:
        """Take what any of the places holds: each update as often as the copy that has it most often."""
        for touch in run.reads:
            held = self._at(touch.place)
            there = touch.keys & held.filled
            counts = held.counts if there.all() else held.counts * there[:, None]
            run.value = counts if run.value is None else np.maximum(run.value, counts)
            run.filled = there if run.filled is None else run.filled | there

    def _write(self, run: _Run) -> None:
        """Write what was read, with the run's own updates; a run that found nothing filled writes nothing."""
        if not run.writes or run.filled is None:
            return
        value = np.zeros(self._shape, dtype=np.uint8) if run.value is None else run.value
        carried = self._with_updates(run, value) if run.updates else value
        for touch in run.writes:
            keys, held = touch.keys & run.filled, self._at(touch.place)
            if touch.adds:
                counts = self._added(held.counts, touch.batch, keys, None if run.updates else value)
            else:
                counts = carried if keys.all() else np.where(keys[:, None], carried, held.counts)
            self._held[touch.place] = _Held(counts, held.filled | keys)

    def _with_updates(self, run: _Run, value: Counts) -> Counts:
        """Return `value` with the update of each batch for which the run writes, once."""
        made: dict[int, Mask] = {}
        for touch in run.writes:
            made[touch.batch] = made.get(touch.batch, False) | touch.keys
        for batch, keys in made.items():
            value = self._added(value, batch, keys, None)
        return value

    def _added(self, counts: Counts, batch: int, keys: Mask, carried: Counts | None) -> Counts:
        """Return `counts` with a batch's update added for `keys`: once, or as often as `carried` has it."""
        rows, counts = np.flatnonzero(keys), counts.copy()
        at = self.keys.update[batch, rows]
        more = np.uint8(1) if carried is None else carried[rows, at]
        counts[rows, at] += np.minimum(
            more, MOST - counts[rows, at]
        )  # an update that doubles never wraps to none
        return counts


def _accesses(stage: Stage) -> Iterator[tuple[Access, bool]]:
    yield from ((read, False) for read in stage.reads)
    yield from ((write, True) for write in stage.writes)
