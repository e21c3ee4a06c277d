"""Staleness observed: which updates the rows contain that a batch trains on, read off the timeline.

Stages declare what they read and write. For a key that batch k uses and that batch k - gap used
last, a synchronous run would have read the version after k - gap's update. Whether this run did
follows from who wrote the row, when, and from what (`staleness_replay`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from simulator.pipeline import Access, Pipeline, Stage
from simulator.results.staleness_replay import Key, Replay, Value
from simulator.results.timeline import Timeline

ALL_GAPS = 32  # up to here every gap between two uses is looked at, beyond only some
TELL_SINGLE = ("single", "later")
TELL_HOT = ("hot", "cold")


@dataclass(frozen=True)
class Staleness:
    """How many updates are missing from the rows that batches train on.

    `observed_max` is the age, in batches, of the oldest update that is missing from a key that uses
    it; `observed_mean` counts missing updates per row over the rows of a batch. `where` says which batch
    reads which keys too early (empty: none does).
    """

    observed_max: int
    observed_mean: float
    where: str = field(default="", compare=False)


def observe(
    timeline: Timeline, column: int, batches: Sequence[int], shares: Sequence[float]
) -> Staleness | None:
    """Return the staleness seen in `batches` on `column`, or None where no stage says what it reads.

    `shares[gap - 1]` is the share of a batch's rows that were last used `gap` batches ago; keys that
    have not been used for longer than that are not looked at.
    """
    pipeline = timeline.graph.pipeline
    seen = readers(pipeline)
    if not seen or not batches:
        return None
    keys = _Keys(Replay(timeline, column, seen), list(_sampled(pipeline, shares)), _Classes.of(pipeline))
    found = [one for place in range(len(seen)) for one in keys.read_by(place, batches)]
    worst = max(found, key=lambda one: one.observed_max)
    return Staleness(worst.observed_max, sum(one.observed_mean for one in found) / len(found), worst.where)


def longest_gap(pipeline: Pipeline) -> int:
    """Return how many batches back an update can lie that a stage of `pipeline` may treat unlike older ones.

    That is as far as a stage works ahead, as seldom as one runs, as far as a selector looks, or as late as
    one touches what it selects; and one batch more on either side.
    """
    reach = [number for stage in pipeline.stages for number in (stage.ahead, stage.every)]
    reach += [number for one in _accesses(pipeline) for number in (one.within, one.late)]
    return max(reach, default=0) + 2


def _accesses(pipeline: Pipeline) -> Iterator[Access]:
    return (one for stage in pipeline.stages for one in (*stage.reads, *stage.writes))


def geometric(shared: float, gaps: int = 5) -> list[float]:
    """Return shares by gap when each row of a batch is in the one before with probability `shared`."""
    return [shared * (1.0 - shared) ** gap for gap in range(gaps)]


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
    accesses = _accesses(pipeline)
    edges = {edge for one in accesses for edge in (one.within, one.late)} | {s.every for s in pipeline.stages}
    near = {edge + step for edge in edges for step in (-1, 0, 1, 2)}
    doubled = {ALL_GAPS * 2**power for power in range(12)}
    wanted = {*range(1, ALL_GAPS + 1), *near, *doubled, len(shares)}
    gaps = sorted(gap for gap in wanted if 1 <= gap <= len(shares))
    for gap, following in zip(gaps, [*gaps[1:], len(shares) + 1], strict=True):
        yield gap, sum(shares[gap - 1 : following - 1])


@dataclass(frozen=True)
class _Classes:
    """The classes of keys that some stage treats apart.

    `single_from` is the shortest gap from which on that may be keys which were looked up once; `hot`: whether
    the most popular keys are.
    """

    single_from: float
    hot: bool

    @classmethod
    def of(cls, pipeline: Pipeline) -> "_Classes":
        single = [one.within + 1.0 for one in _accesses(pipeline) if one.keys in TELL_SINGLE]
        return cls(min(single, default=float("inf")), any(o.keys in TELL_HOT for o in _accesses(pipeline)))

    def names(self, gap: float = 0) -> Iterator[tuple[str, bool, bool]]:
        """Yield each class of keys used `gap` batches apart: what they are called, single, hot."""
        for single in (False, True) if gap >= self.single_from else (False,):
            for hot in (False, True) if self.hot else (False,):
                popular = ("cold ", "hot ")[hot] if self.hot else ""
                yield f"{'single-use ' if single else ''}{popular}", single, hot


@dataclass(frozen=True, eq=False)
class _Keys:
    """Keys of which it is looked up what each reader saw: one that every batch uses, others used twice.

    `gaps` are those between the two uses, with their shares; each is looked at in all `classes` of keys.
    """

    replay: Replay
    gaps: Sequence[tuple[int, float]]
    classes: _Classes

    def read_by(self, reader: int, batches: Sequence[int]) -> Iterator[Staleness]:
        """Yield what the reader at this place of the replay saw in each batch."""
        uses = range(max(batches) + 2)
        steady = {
            name: self.replay.contents(Key(uses, single, hot))[reader]
            for name, single, hot in self.classes.names()
        }
        for batch in batches:
            ages = [
                (_behind(held[batch], batch), f"batch {batch}, {name}keys that every batch uses")
                for name, held in steady.items()
            ]
            missing = 0.0
            for gap, share in self.gaps:
                held_by = self._held(reader, batch, gap, steady)
                if missed := [name for name, held in held_by if batch - gap not in held]:
                    missing += share
                    ages.append((gap, f"batch {batch}, {missed[0]}keys last used by batch {batch - gap}"))
            oldest, where = max(ages, key=lambda age: age[0])
            yield Staleness(oldest, missing, where if oldest else "")

    def _held(
        self, reader: int, batch: int, gap: int, steady: Mapping[str, Mapping[int, Value]]
    ) -> Iterator[tuple[str, Value]]:
        """Yield each class of keys used `gap` batches ago, with the updates in its row."""
        if gap == 1:
            yield from ((name, held[batch]) for name, held in steady.items())
        elif gap <= batch:
            for name, single, hot in self.classes.names(gap):
                yield name, self.replay.contents(Key((batch - gap, batch), single, hot))[reader][batch]


def _behind(held: frozenset[int], batch: int) -> int:
    """Return how many of the latest updates a key lacks that every batch uses."""
    return next((gap - 1 for gap in range(1, batch + 1) if batch - gap in held), batch)
