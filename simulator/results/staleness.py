"""Staleness observed: which updates are missing from the rows that a batch trains on, read off the timeline.

Stages declare what they read and write. For a key that batch k uses and that batch k - gap used
last, a synchronous run would have read the version after k - gap's update. Whether this run did
follows from who wrote the row, when, and from what (`staleness_replay`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator.pipeline import Pipeline, Stage
from simulator.results.key_classes import (
    KeyClass,
    Reuse,
    accesses,
    always_used,
    classes,
    drawn_keys,
    longest_gap,
    used_twice,
)
from simulator.results.staleness_replay import Counts, Keys, Replay
from simulator.results.timeline import Timeline

ALL_GAPS = 32  # up to here every gap between two uses is looked at, beyond only some
BEFORE = 24  # batches that a key which all batches use is followed through, beyond the longest gap


@dataclass(frozen=True)
class Staleness:
    """How many updates are missing from the rows that batches train on.

    `observed_max` is the age, in batches, of the oldest update that is missing from a key that uses
    it, as far back as is looked; `observed_mean` counts missing updates per row over the rows of a batch.
    `where` says which batch reads which keys too early (empty: none does). `late_max` is the same age for
    keys that were used once before: those lack what comes late, but nothing that is lost for good.
    """

    observed_max: int
    observed_mean: float
    where: str = field(default="", compare=False)
    late_max: int = field(default=0, compare=False)


def observe(timeline: Timeline, column: int, batches: Sequence[int], reuse: Reuse) -> Staleness | None:
    """Return the staleness seen in `batches` on `column`, or None where no stage says what it reads.

    Keys that have not been used for longer than `reuse` has shares of gaps are not looked at.
    """
    seen = readers(timeline.graph.pipeline)
    if not seen or not batches:
        return None
    return _Observer(timeline, column, seen, batches, reuse).staleness()


def readers(pipeline: Pipeline) -> list[Stage]:
    """Return the stages that hand rows to the dense model.

    They are the exchanges that read rows; without any, the compute stages that read rows and
    write none.
    """
    exchanges = [
        stage for stage in pipeline.stages if stage.kind == "all_to_all" and stage.reads and not stage.writes
    ]
    passes = [s for s in pipeline.stages if s.kind == "compute" and s.reads and not s.writes]
    return exchanges or passes


def _sampled(pipeline: Pipeline, shares: Sequence[float]) -> Iterator[tuple[int, float]]:
    """Yield gaps with their shares: every short one, longer ones where a selector changes its mind.

    A gap beyond the short ones stands for those up to the next that is looked at.
    """
    touched = list(accesses(pipeline))
    edges = {edge for one in touched for edge in (one.within, one.late)} | {s.every for s in pipeline.stages}
    near = {edge + step for edge in edges for step in (-1, 0, 1, 2)}
    doubled = {ALL_GAPS * 2**power for power in range(12)}
    wanted = {*range(1, ALL_GAPS + 1), *near, *doubled, len(shares)}
    gaps = sorted(gap for gap in wanted if 1 <= gap <= len(shares))
    for gap, following in zip(gaps, [*gaps[1:], len(shares) + 1], strict=True):
        yield gap, sum(shares[gap - 1 : following - 1])


@dataclass(frozen=True)
class _Miss:
    """An update that a reader missed in a batch: how old, of keys of which `kind`, with which `uses`.

    `last`: it is the update of their last use.
    """

    reader: int
    batch: int
    age: int
    kind: KeyClass
    uses: str
    last: bool


@dataclass(frozen=True, eq=False)
class _Observer:
    """Looks up what each reader saw in `batches`: of keys that every batch uses, and of keys used twice."""

    timeline: Timeline
    column: int
    seen: Sequence[Stage]
    batches: Sequence[int]
    reuse: Reuse

    def staleness(self) -> Staleness:
        """Return the oldest miss, and misses per row: of a row's last use, and of its uses before that."""
        gaps = dict(_sampled(self.timeline.graph.pipeline, self.reuse.shares))
        found = [*self._always(), *self._twice([gap for gap in gaps if gap > 1])]
        if not found:
            return Staleness(0, 0.0)
        worst = max(found, key=lambda miss: miss.age)
        last = {(miss.reader, miss.batch, miss.age) for miss in found if miss.last}
        missing = sum(gaps.get(age, 0.0) for _, _, age in sorted(last)) / len(self.batches) / len(self.seen)
        missed = list(dict.fromkeys(miss.kind for miss in found if miss.age > 1))
        older = self._older(missed) if missed else 0.0
        where = f"batch {worst.batch}, {worst.kind.name}keys {worst.uses}"
        return Staleness(worst.age, missing + older, where, max((age for _, _, age in last), default=0))

    @property
    def _first(self) -> int:
        """The batch from which on keys that are used often are followed."""
        return max(0, min(self.batches) - longest_gap(self.timeline.graph.pipeline) - BEFORE)

    def _always(self) -> Iterator[_Miss]:
        """Yield, of each class of keys that every batch uses, the oldest miss, and that of the last use."""
        kinds = classes(self.timeline.graph.pipeline, 1)
        read = self._read(always_used(self._first, max(self.batches), kinds), self.batches)
        for (reader, batch), counts in read.items():
            for key, kind in enumerate(kinds):
                missed = np.flatnonzero(counts[key, : batch - self._first] == 0)
                if len(missed):
                    ages = {batch - self._first - int(missed[at]) for at in (0, -1)}
                    for age in sorted(ages):
                        yield _Miss(reader, batch, age, kind, "that every batch uses", age == 1)

    def _twice(self, gaps: Sequence[int]) -> Iterator[_Miss]:
        """Yield the misses of keys that were used once before, so many batches ago."""
        pipeline = self.timeline.graph.pipeline
        twice = [
            (batch, gap, kind)
            for batch in self.batches
            for gap in gaps
            if gap <= batch
            for kind in classes(pipeline, gap)
        ]
        read = self._read(used_twice(twice), self.batches) if twice else {}
        for reader in range(len(self.seen)):
            for key, (batch, gap, kind) in enumerate(twice):
                if not read[reader, batch][key, 0]:
                    yield _Miss(reader, batch, gap, kind, f"last used by batch {batch - gap}", True)

    def _older(self, kinds: Sequence[KeyClass]) -> float:
        """Return how many updates beside that of its last use a row lacks, on average of drawn rows."""
        followed = range(self._first, max(self.batches) + 1)
        keys = drawn_keys(followed, self.reuse, self.batches, kinds)
        read = self._read(keys, self.batches)
        lacking = 0
        for (_, batch), counts in read.items():
            mine = np.arange(self.batches.index(batch), len(counts), len(self.batches))
            used = keys.uses[: batch - self._first, mine].T
            missing = used & (counts[mine, : batch - self._first] == 0)
            last = used & (np.cumsum(used[:, ::-1], axis=1)[:, ::-1] == 1)
            lacking += int(missing.sum()) - int((missing & last).sum())
        return lacking / (len(self.seen) * len(keys.single))

    def _read(self, keys: Keys, batches: Sequence[int]) -> Mapping[tuple[int, int], Counts]:
        return Replay(self.timeline, self.column, self.seen, keys).read_in(batches)
