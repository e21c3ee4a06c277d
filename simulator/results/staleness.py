"""Staleness observed: which updates the rows contain that a batch trains on, read off the timeline.

Stages declare what they read and write. For a key that batch k uses and that batch k - gap used
last, a synchronous run would have read the version after k - gap's update. Whether this run did
follows from who wrote the row, when, and from what (`staleness_replay`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from simulator.pipeline import Pipeline, Stage
from simulator.results.staleness_replay import Key, Replay
from simulator.results.timeline import Timeline

ALL_GAPS = 8  # up to here every gap between two uses is looked at, beyond only some
MOST_BATCHES = 16  # looked at in one run
TELL_SINGLE = ("single", "later")


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
    pipeline, looked_at = timeline.graph.pipeline, _spread(batches)
    seen = readers(pipeline)
    if not seen or not looked_at:
        return None
    keys = _Keys(Replay(timeline, column, seen), list(_sampled(pipeline, shares)), _single_from(pipeline))
    found = [one for place in range(len(seen)) for one in keys.read_by(place, looked_at)]
    worst = max(found, key=lambda one: one.observed_max)
    return Staleness(worst.observed_max, sum(one.observed_mean for one in found) / len(found), worst.where)


def _spread(batches: Sequence[int]) -> Sequence[int]:
    """Return all batches, or so many of them from the first to the last."""
    if len(batches) <= MOST_BATCHES:
        return batches
    steps = range(MOST_BATCHES)
    return [batches[step * (len(batches) - 1) // (MOST_BATCHES - 1)] for step in steps]


def geometric(shared: float, gaps: int = 5) -> list[float]:
    """Return shares by gap when each row of a batch is in the one before with probability `shared`."""
    return [shared * (1.0 - shared) ** gap for gap in range(gaps)]


def readers(pipeline: Pipeline) -> list[Stage]:
    """Return the stages that hand rows to the dense model.

    They are the exchanges that read a row buffer; without any, the compute stages that read rows and
    write none.
    """
    exchanges = [
        stage
        for stage in pipeline.stages
        if stage.kind == "all_to_all"
        and not stage.writes
        and any(read.of is not None for read in stage.reads)
    ]
    passes = [s for s in pipeline.stages if s.kind == "compute" and s.reads and not s.writes]
    return exchanges or passes


def _sampled(pipeline: Pipeline, shares: Sequence[float]) -> Iterator[tuple[int, float]]:
    """Yield gaps with their shares: every short one, longer ones where a selector changes its mind.

    A gap beyond the short ones stands for those up to the next that is looked at.
    """
    accesses = [one for stage in pipeline.stages for one in (*stage.reads, *stage.writes)]
    edges = {edge for one in accesses for edge in (one.within, one.late)} | {s.every for s in pipeline.stages}
    near = {edge + step for edge in edges for step in (-1, 0, 1, 2)}
    doubled = {ALL_GAPS * 2**power for power in range(12)}
    wanted = {*range(1, ALL_GAPS + 1), *near, *doubled, len(shares)}
    gaps = sorted(gap for gap in wanted if 1 <= gap <= len(shares))
    for gap, following in zip(gaps, [*gaps[1:], len(shares) + 1], strict=True):
        yield gap, sum(shares[gap - 1 : following - 1])


def _single_from(pipeline: Pipeline) -> float:
    """Return the shortest gap from which on a stage may treat keys apart that were looked up once."""
    accesses = (one for stage in pipeline.stages for one in (*stage.reads, *stage.writes))
    return min((one.within + 1.0 for one in accesses if one.keys in TELL_SINGLE), default=float("inf"))


@dataclass(frozen=True, eq=False)
class _Keys:
    """Keys of which it is looked up what each reader saw: one that every batch uses, others used twice.

    `gaps` are those between the two uses, with their shares; `single_from` is the gap from which on a key
    is looked at also as one that was looked up once.
    """

    replay: Replay
    gaps: Sequence[tuple[int, float]]
    single_from: float

    def read_by(self, reader: int, batches: Sequence[int]) -> Iterator[Staleness]:
        """Yield what the reader at this place of the replay saw in each batch."""
        steady = self.replay.contents(Key(range(max(batches) + 2)))[reader]
        for batch in batches:
            ages, missing = (
                [(_behind(steady[batch], batch), f"batch {batch}, keys that every batch uses")],
                0.0,
            )
            for gap, share in self.gaps:
                kind = self._missed(reader, batch, gap) if gap > 1 else _or_none(batch - 1 in steady[batch])
                if gap <= batch and kind is not None:
                    missing += share
                    ages.append((gap, f"batch {batch}, {kind}keys last used by batch {batch - gap}"))
            oldest, where = max(ages, key=lambda age: age[0])
            yield Staleness(oldest, missing, where if oldest else "")

    def _missed(self, reader: int, batch: int, gap: int) -> str | None:
        """Return the class of keys that lack the update of `gap` batches ago; None if none does."""
        for single in (False, True) if gap >= self.single_from else (False,):
            if gap <= batch:
                held = self.replay.contents(Key((batch - gap, batch), single))[reader][batch]
                if batch - gap not in held:
                    return "single-use " if single else ""
        return None


def _or_none(fresh: bool) -> str | None:
    return None if fresh else ""


def _behind(held: frozenset[int], batch: int) -> int:
    """Return how many of the latest updates a key lacks that every batch uses."""
    return next((gap - 1 for gap in range(1, batch + 1) if batch - gap in held), batch)
