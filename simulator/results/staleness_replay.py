"""One key replayed: what its row contains in every store, as stages read and wrote it in a timeline.

A row's value is the set of batches whose updates it contains. A stage reads when it starts and writes
when it ends; in between it adds the batch's own update if it is one that does. Nothing is taken from
the policy's word but which stores its stages touch, and for which keys.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from simulator.pipeline import Access, Stage
from simulator.results.timeline import Timeline

Place = tuple[str, int | None]
Value = frozenset[int]
NOTHING: Value = frozenset()
Contents = tuple[dict[int, Value], ...]


@dataclass(frozen=True)
class Key:
    """A key by the batches that use it, in order.

    `single` if they look it up once, all ranks together; `hot` if it is one of the most popular.
    """

    uses: Sequence[int]
    single: bool = False
    hot: bool = False


@dataclass(frozen=True)
class _Use:
    """One use of a key: by which batch, and the uses before and after it (None: none)."""

    batch: int
    before: int | None
    after: int | None
    single: bool
    hot: bool

    def within(self, batches: int) -> bool:
        """Whether it is used again within so many batches."""
        return self.after is not None and self.after - self.batch <= batches


SELECTS: Mapping[str, Callable[[_Use, int], bool]] = {
    "all": lambda use, within: True,
    "shared": lambda use, within: use.before == use.batch - 1,
    "missing": lambda use, within: use.before is None or use.batch - use.before > within,
    "next": lambda use, within: use.after == use.batch + 1,
    "later": lambda use, within: use.after != use.batch + 1 and not (use.single and not use.within(within)),
    "single": lambda use, within: use.single and not use.within(within),
    "expired": lambda use, within: not use.within(within),
    "hot": lambda use, within: use.hot,
    "cold": lambda use, within: not use.hot,
}


@dataclass(eq=False)
class _Run:
    """One run of a stage that touches the key: the places it reads and writes, and updates it adds."""

    stage: Stage
    batch: int
    start: int
    end: int
    place: int
    reads: list[Place] = field(default_factory=list)
    writes: list[Place] = field(default_factory=list)
    adds: set[int] = field(default_factory=set)
    value: Value = NOTHING
    filled: bool = True


class Replay:
    """Replays keys in one timeline on one column, for `readers` that hand rows to the dense model."""

    def __init__(self, timeline: Timeline, column: int, readers: Sequence[Stage]) -> None:
        """Prepare to replay; nothing is done yet."""
        self.timeline, self.column, self.graph = timeline, column, timeline.graph
        self.readers = readers
        self._known: dict[Key, Contents] = {}
        self._node = {(id(node.stage), node.residue): index for index, node in enumerate(self.graph.nodes)}
        pipeline = self.graph.pipeline
        self._touching = [
            (stage, access, writes) for stage in pipeline.stages for access, writes in _accesses(stage)
        ]
        self._updates = {id(stage) for stage in pipeline.row_updates}

    def contents(self, key: Key) -> Contents:
        """Return for each reader what it read for each batch that uses the key: updates by their batch."""
        if key not in self._known:
            runs = self._runs(key)
            self._play(list(runs.values()))
            self._known[key] = tuple(
                {run.batch: run.value for run in runs.values() if run.stage is reader}
                for reader in self.readers
            )
        return self._known[key]

    def _runs(self, key: Key) -> dict[tuple[int, int], _Run]:
        runs: dict[tuple[int, int], _Run] = {}
        for use in _uses(key):
            for stage, access, writes in self._touching:
                if SELECTS[access.keys](use, access.within):
                    self._touch(runs, stage, access, (use.batch, writes))
        return {at: run for at, run in runs.items() if not run.stage.reads or run.reads}

    def _touch(
        self, runs: dict[tuple[int, int], _Run], stage: Stage, access: Access, by: tuple[int, bool]
    ) -> None:
        batch, writes = by
        run = self._run_of(runs, stage, batch + access.late)
        if run is None:
            return
        place = (access.store, None if access.of is None else batch - access.of)
        (run.writes if writes else run.reads).append(place)
        if writes and id(stage) in self._updates:
            run.adds.add(batch)

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
            runs[node, cycle] = _Run(stage, batch, *times, self.graph.place(node, cycle))
        return runs[node, cycle]

    def _play(self, runs: Sequence[_Run]) -> None:
        """Let all runs read and write in order of time.

        What ends when another one starts is seen by it; what takes no time follows the graph's order. A
        run that finds only buffers that nobody has filled yet has nothing to write.
        """
        events = [((run.start, 1, run.place, 0), run) for run in runs]
        events += [((run.end, int(run.start == run.end), run.place, 1), run) for run in runs]
        held: dict[Place, Value] = {}
        for (_, _, _, ends), run in sorted(events, key=lambda event: event[0]):
            if not ends:
                run.value = NOTHING.union(*(held.get(place, NOTHING) for place in run.reads))
                run.filled = not run.reads or any(at in held or at[1] is None for at in run.reads)
            elif run.filled:
                held.update(dict.fromkeys(run.writes, run.value | run.adds))


def _uses(key: Key) -> Iterator[_Use]:
    ends = [None, *key.uses, None]
    for before, batch, after in zip(ends, key.uses, ends[2:], strict=False):
        yield _Use(batch, before, after, key.single, key.hot)


def _accesses(stage: Stage) -> Iterator[tuple[Access, bool]]:
    yield from ((read, False) for read in stage.reads)
    yield from ((write, True) for write in stage.writes)
