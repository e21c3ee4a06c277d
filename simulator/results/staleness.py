"""Staleness observed: which updates the rows contain that a batch trains on, read off the timeline.

Stages declare what they read and write. For a key that batch k uses and that batch k - gap used
last, a synchronous run would have read the version after k - gap's update. Whether this run did
follows from who wrote the row, when, and from what: nothing is taken from the policy's word.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from simulator.pipeline import Access, Stage
from simulator.results.timeline import Timeline

GAPS = range(1, 6)


@dataclass(frozen=True)
class Staleness:
    """How many updates are missing from the rows that batches train on.

    `observed_max` is for a key that every batch uses; `observed_mean` is over the rows of a batch.
    """

    observed_max: int
    observed_mean: float


def observe(timeline: Timeline, column: int, batches: Sequence[int], shared: float) -> Staleness:
    """Return the staleness seen in `batches` on `column`.

    `shared` is the share of a batch's rows that the previous batch used too; rows last used `gap`
    batches ago are taken to be shared * (1 - shared) ** (gap - 1) of them.
    """
    versions = _Versions(timeline, column)
    readers = [
        s for s in timeline.graph.pipeline.stages if any(a.of is not None for a in s.reads) and not s.writes
    ]
    readers = [s for s in readers if s.kind == "all_to_all"]
    seen = [(reader, batch) for reader in readers for batch in batches]
    worst = max((versions.behind(reader, batch) for reader, batch in seen), default=0)
    missing = [
        sum(_weight(shared, gap) * versions.misses(reader, batch, gap) for gap in GAPS)
        for reader, batch in seen
    ]
    return Staleness(worst, sum(missing) / len(missing) if missing else 0.0)


def _weight(shared: float, gap: int) -> float:
    return shared * (1.0 - shared) ** (gap - 1)


class _Versions:
    """Answers whether what a stage of some batch reads contains the update of an earlier batch."""

    def __init__(self, timeline: Timeline, column: int) -> None:
        self.timeline = timeline
        self.column = column
        self.stages = timeline.graph.pipeline.stages
        self.node = {id(node.stage): index for index, node in enumerate(timeline.graph.nodes)}
        self.updates = {id(stage) for stage in timeline.graph.pipeline.updates}

    def behind(self, reader: Stage, batch: int) -> int:
        """Return how many of the latest updates are missing from a key that every batch uses."""
        return next(
            (gap - 1 for gap in range(1, batch + 1) if self._reads(reader, batch, batch - gap, 1)), batch
        )

    def misses(self, reader: Stage, batch: int, gap: int) -> bool:
        """Whether a key that was last used `gap` batches ago lacks that batch's update."""
        return batch >= gap and not self._reads(reader, batch, batch - gap, gap)

    def _reads(self, reader: Stage, batch: int, wanted: int, gap: int) -> bool:
        """Whether what `reader` of `batch` reads contains the update of batch `wanted`."""
        return any(self._delivers(access, reader, batch, wanted, gap) for access in reader.reads)

    def _delivers(self, access: Access, reader: Stage, batch: int, wanted: int, gap: int) -> bool:
        content = wanted if access.of is None else batch - access.of
        if content < wanted or (access.keys == "shared" and gap > 1):
            return False
        started = self._time(self.timeline.start_ns, reader, batch)
        return any(
            self._time(self.timeline.end_ns, writer, content) <= started
            and self._carries(writer, content, wanted, gap)
            for writer in self.stages
            if writer is not reader and any(write.store == access.store for write in writer.writes)
        )

    def _carries(self, writer: Stage, batch: int, wanted: int, gap: int) -> bool:
        """A stage that ends the step and rewrites what it reads is the update; others pass rows on."""
        rewrites = {a.store for a in writer.writes} <= {a.store for a in writer.reads}
        if batch == wanted and rewrites and id(writer) in self.updates:
            return True
        return self._reads(writer, batch, wanted, gap)

    def _time(self, times: object, stage: Stage, batch: int) -> int:
        cycle = batch // self.timeline.graph.period
        return int(times[self.node[id(stage)], cycle, self.column])  # type: ignore[index]
