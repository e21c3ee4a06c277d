"""What a Gantt chart shows: the bars of a few steady steps on one rank, clipped to their window."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from simulator.errors import InputError
from simulator.scenario import Run


@dataclass(frozen=True)
class Bar:
    """One run of a stage, ms from the start of the window.

    It has its inputs at `arrives`, works from `begins` (later in a collective that waits for other
    ranks) to `ends`. `arrives` and `ends` are cut at the window.
    """

    stage: str
    kind: str
    stream: str
    batch: int
    arrives: float
    begins: float
    ends: float


@dataclass(frozen=True)
class Schedule:
    """`steps` consecutive steps of `run` on its slowest rank, from the first that counts.

    Fewer when the run has fewer. Raises InputError when `steps` is not positive.
    """

    run: Run
    steps: int = 3

    def __post_init__(self) -> None:
        """Refuse a chart of nothing."""
        if self.steps < 1:
            raise InputError(f"a chart needs at least one step, not {self.steps}")

    @cached_property
    def batches(self) -> range:
        """The batches whose steps are shown."""
        return range(self.run.first, min(self.run.first + self.steps, self.run.last))

    @cached_property
    def _window_ns(self) -> tuple[int, int]:
        return self._updated_ns(self.batches[0] - 1), self._updated_ns(self.batches[-1])

    def _updated_ns(self, batch: int) -> int:
        return int(self.run.timeline.update_ns[batch, self.run.column])

    @property
    def length(self) -> float:
        """Length of the window, ms."""
        return self._ms(self._window_ns[1])

    def _ms(self, ns: int) -> float:
        return (ns - self._window_ns[0]) / 1e6

    @cached_property
    def updates(self) -> dict[int, float]:
        """When each batch was complete, ms, from the one before the first."""
        shown = range(self.batches[0] - 1, self.batches[-1] + 1)
        return {batch: self._ms(self._updated_ns(batch)) for batch in shown}

    @cached_property
    def streams(self) -> list[str]:
        """Streams from top to bottom: as the policy lists them, the compute stream last."""
        pipeline = self.run.timeline.graph.pipeline
        return [name for name in pipeline.streams if name != pipeline.compute] + [pipeline.compute]

    @cached_property
    def bars(self) -> tuple[Bar, ...]:
        """All bars that lie within the window, or reach into it, in stream order."""
        return tuple(bar for node in range(len(self.run.timeline.graph.nodes)) for bar in self._bars(node))

    def _bars(self, node: int) -> Iterator[Bar]:
        timeline, column, (low, high) = self.run.timeline, self.run.column, self._window_ns
        stage, stream = timeline.graph.nodes[node].stage, timeline.graph.nodes[node].stream
        starts, ends = timeline.start_ns[node, :, column], timeline.end_ns[node, :, column]
        began = timeline.began_ns[node, :, column]
        for cycle in ((ends > low) & (starts < high) & (ends > starts)).nonzero()[0].tolist():
            exact = max(low, int(starts[cycle])), max(low, int(began[cycle])), min(high, int(ends[cycle]))
            times = (self._ms(ns) for ns in exact)
            yield Bar(stage.name, stage.kind, stream, timeline.graph.batch_of(node, cycle), *times)

    def on(self, stream: str) -> list[Bar]:
        """Return the bars of one stream in order of time."""
        return sorted((bar for bar in self.bars if bar.stream == stream), key=lambda bar: bar.begins)

    @cached_property
    def waits(self) -> list[tuple[float, float]]:
        """When the compute stream does nothing, as (from, to) in ms, parted at updates."""
        ends = [(time, time) for time in self.updates.values()]
        busy = [(min(bar.begins, self.length), bar.ends) for bar in self.on(self.streams[-1])]
        return [(a, b) for (_, a), (b, _) in pairwise(sorted([*busy, *ends])) if b > a]
