"""Staleness observed: which updates the rows contain that a batch trains on, read off the timeline.

Stages declare what they read and write. For a key that batch k uses and that batch k - gap used
last, a synchronous run would have read the version after k - gap's update. Whether this run did
follows from who wrote the row, when, and from what: nothing is taken from the policy's word.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from simulator.pipeline import Access, Pipeline, Stage
from simulator.results.timeline import Timeline


@dataclass(frozen=True)
class Staleness:
    """How many updates are missing from the rows that batches train on.

    `observed_max` is the age, in batches, of the oldest update that is missing from a key that uses
    it; `observed_mean` counts missing updates per row over the rows of a batch.
    """

    observed_max: int
    observed_mean: float


def observe(
    timeline: Timeline, column: int, batches: Sequence[int], shares: Sequence[float]
) -> Staleness | None:
    """Return the staleness seen in `batches` on `column`, or None where no stage says what it reads.

    `shares[gap - 1]` is the share of a batch's rows that were last used `gap` batches ago; keys that
    have not been used for longer than that are not looked at.
    """
    versions = _Versions(timeline, column, len(shares))
    seen = [(reader, batch) for reader in readers(timeline.graph.pipeline) for batch in batches]
    if not seen:
        return None
    worst = max(versions.oldest_missing(reader, batch) for reader, batch in seen)
    missing = [
        sum(share * versions.misses(reader, batch, gap) for gap, share in enumerate(shares, start=1))
        for reader, batch in seen
    ]
    return Staleness(worst, sum(missing) / len(missing))


def geometric(shared: float, gaps: int = 5) -> list[float]:
    """Return shares by gap when each row of a batch is in the one before with probability `shared`."""
    return [shared * (1.0 - shared) ** gap for gap in range(gaps)]


def readers(pipeline: Pipeline) -> list[Stage]:
    """Return the stages that hand rows to the dense model: exchanges that read a row buffer."""
    return [
        stage
        for stage in pipeline.stages
        if stage.kind == "all_to_all"
        and not stage.writes
        and any(read.of is not None for read in stage.reads)
    ]


class _Versions:
    """Answers whether what a stage of some batch reads contains the update of an earlier batch.

    A key is either used by every batch (`steady`), or by the two batches in question only.
    """

    def __init__(self, timeline: Timeline, column: int, gaps: int) -> None:
        self.timeline = timeline
        self.column = column
        self.gaps = range(1, gaps + 1)
        self.graph = timeline.graph
        self.node = {(id(node.stage), node.residue): index for index, node in enumerate(self.graph.nodes)}
        self.updates = {id(stage) for stage in self.graph.pipeline.updates}
        self._reads = cache(self._find_reads)
        self._writers = cache(self._find_writers)

    def oldest_missing(self, reader: Stage, batch: int) -> int:
        """Return how many batches ago an update was made that a key should contain and does not."""
        missed = [gap for gap in self.gaps if self.misses(reader, batch, gap)]
        return max([self._behind(reader, batch), *missed])

    def _behind(self, reader: Stage, batch: int) -> int:
        """Return how many of the latest updates are missing from a key that every batch uses."""
        return next(
            (gap - 1 for gap in range(1, batch + 1) if self._reads(reader, batch, batch - gap, True)), batch
        )

    def misses(self, reader: Stage, batch: int, gap: int) -> bool:
        """Whether a key that was last used `gap` batches ago lacks that batch's update."""
        return batch >= gap and not self._reads(reader, batch, batch - gap, gap == 1)

    def _find_reads(self, reader: Stage, batch: int, wanted: int, steady: bool) -> bool:
        """Whether what `reader` of `batch` reads contains the update of batch `wanted`."""
        touched = [access for access in reader.reads if _touches(access, steady)]
        return any(self._delivers(access, (reader, batch), wanted, steady) for access in touched)

    def _delivers(self, access: Access, reading: tuple[Stage, int], wanted: int, steady: bool) -> bool:
        """The last one to have written the place before it is read decides what it contains."""
        started = self._span(*reading)[0]
        before = [
            (self._last_first(writer, content), writer, content)
            for content in _contents(access, reading[1], wanted, steady)
            for writer in self._writers(access.store, steady)
            if (writer, content) != reading
            and _served(writer, content) >= 0
            and self._span(writer, content)[1] <= started
        ]
        if not before:
            return False
        _, writer, content = max(before, key=lambda found: found[0])
        return self._carries(writer, content, wanted, steady)

    def _find_writers(self, store: str, steady: bool) -> list[Stage]:
        """Return the stages that write such a key into `store`."""
        return [
            stage
            for stage in self.graph.pipeline.stages
            if any(write.store == store and _touches(write, steady) for write in stage.writes)
            and (not stage.reads or any(_touches(read, steady) for read in stage.reads))
        ]

    def _carries(self, writer: Stage, batch: int, wanted: int, steady: bool) -> bool:
        """A stage that ends the step and rewrites what it reads is the update; others pass rows on."""
        rewrites = {a.store for a in writer.writes} <= {a.store for a in writer.reads}
        if batch == wanted and rewrites and id(writer) in self.updates:
            return True
        return self._reads(writer, batch, wanted, steady)

    def _at(self, stage: Stage, batch: int) -> tuple[int, int]:
        """Return (node, cycle) of the run of `stage` that serves `batch`."""
        cycle, residue = divmod(_served(stage, batch), self.graph.period)
        return self.node[id(stage), residue], cycle

    def _span(self, stage: Stage, batch: int) -> tuple[int, int]:
        node, cycle = self._at(stage, batch)
        start, end = self.timeline.start_ns, self.timeline.end_ns
        return int(start[node, cycle, self.column]), int(end[node, cycle, self.column])

    def _last_first(self, stage: Stage, batch: int) -> tuple[int, int, int]:
        """A key that is larger for what is written later; stages that take no time by their order."""
        node, cycle = self._at(stage, batch)
        start, end = self._span(stage, batch)
        return end, start, self.graph.place(node, cycle)


def _served(stage: Stage, batch: int) -> int:
    """Return the batch of the latest run of `stage` at or before `batch`; negative if there is none."""
    return batch - (batch - stage.phase) % stage.every


def _touches(access: Access, steady: bool) -> bool:
    return access.keys != "shared" or steady


def _contents(access: Access, batch: int, wanted: int, steady: bool) -> Sequence[int]:
    """Return the batches that may have written the place: one for a buffer, all users for a table."""
    if access.of is not None:
        return [batch - access.of] if batch - access.of >= wanted else []
    return range(wanted, batch + 1) if steady else [wanted]
