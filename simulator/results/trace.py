"""Timelines as Chrome JSON, for Perfetto and for Holistic Trace Analysis (HTA).

A process is a rank, a thread is a stream; times are microseconds with whole nanoseconds in the
decimals. HTA reads one rank per file: write such files with `ranks=[rank]`.
"""

import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from simulator.errors import InputError
from simulator.pipeline.compiled import Edge
from simulator.results.profiled import profiled_category, profiled_name
from simulator.results.timeline import Timeline

Event = dict[str, Any]

STEPS_THREAD = 0
ARROWS = ("needs", "carry")


def write_chrome_trace(
    timeline: Timeline,
    path: Path,
    name: str,
    batches: range | None = None,
    ranks: Sequence[int] | None = None,
) -> None:
    """Write the stages of `batches` (default: all) on `ranks` (default: `sampled_ranks`) to `path`.

    A slice lasts from the stage's last input to its end, as a profiler sees it. In its arguments,
    `wait_us` is the part in which a collective waited for other ranks, and `slowed_us` what sharing
    with other stages cost beyond the time that the stage takes alone (negative where a rank used what
    others of its host left idle). Slices of a thread never overlap. Arrows join producers and consumers
    on different streams. Compressed when `path` ends in `.gz`; same timeline, same bytes. Raises
    InputError for batches or ranks that were not run.
    """
    import orjson

    sampled = sampled_ranks(timeline) if ranks is None else dict.fromkeys(ranks, "")
    covered = range(timeline.batches) if batches is None else batches
    _check(timeline, covered, sampled)
    tracks = [_Rank(timeline, rank, place, covered) for place, rank in enumerate(sampled)]
    events = chain.from_iterable(track.events(sampled[track.rank]) for track in tracks)
    with _opened(path) as file:
        head = orjson.dumps(_header(timeline, name, tracks[0].rank), option=orjson.OPT_INDENT_2)
        file.write(head.removesuffix(b"\n}") + b',\n  "traceEvents": [')
        for place, event in enumerate(events):
            file.write((b",\n" if place else b"\n") + orjson.dumps(event))
        file.write(b"\n]}\n")


def sampled_ranks(timeline: Timeline) -> dict[int, str]:
    """Return the slowest, the median and the fastest rank, each once, and which of them it is.

    Ranks are ordered by their last update, then by the time of their own work (collectives left out).
    """
    meets = np.array([node.stage.work.rendezvous for node in timeline.graph.nodes])
    own = timeline.duration_ns[~meets].sum(axis=(0, 1))
    order = np.lexsort((-own, -timeline.update_ns[-1]))
    half = np.searchsorted(np.cumsum(timeline.ranks_in[order]), (timeline.ranks + 1) // 2)
    chosen = {timeline.slowest_column: "slowest"}
    chosen.setdefault(int(order[half]), "median")
    chosen.setdefault(int(order[-1]), "fastest")
    return {timeline.rank_of(column): label for column, label in chosen.items()}


def _check(timeline: Timeline, batches: range, ranks: dict[int, str]) -> None:
    if not batches or min(batches) < 0 or max(batches) >= timeline.batches:
        raise InputError(f"the run has batches 0 to {timeline.batches - 1}; {batches} are not among them")
    if not ranks or min(ranks) < 0 or max(ranks) >= timeline.ranks:
        raise InputError(f"the run has ranks 0 to {timeline.ranks - 1}; {list(ranks)} are not among them")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open `path` for writing; a compressed file holds neither its name nor the time of day."""
    with open(path, "wb") as raw:
        if path.suffix != ".gz":
            yield raw
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
            yield cast(IO[bytes], packed)


def _header(timeline: Timeline, name: str, rank: int) -> Event:
    """Return the file's own facts. HTA searches it for `"rank": ` with the space, so it is indented."""
    return {
        "schemaVersion": 1,
        "traceName": name,
        "displayTimeUnit": "ms",
        "distributedInfo": {"rank": rank, "world_size": timeline.ranks},
    }


@dataclass(frozen=True, eq=False)
class _Rank:
    """The events of one rank; `place` is its place in the file."""

    timeline: Timeline
    rank: int
    place: int
    batches: range

    @cached_property
    def column(self) -> int:
        return int(self.timeline.column_of[self.rank])

    def events(self, label: str) -> Iterator[Event]:
        """Yield names, steps, then one stream after the other in order of time."""
        yield from self._names(label)
        yield from self._steps()
        for thread in range(len(self._streams)):
            yield from self._stream(thread + 1)

    @cached_property
    def _streams(self) -> list[str]:
        return list(self.timeline.graph.pipeline.streams)

    @cached_property
    def _thread_of(self) -> list[int]:
        return [self._streams.index(node.stream) + 1 for node in self.timeline.graph.nodes]

    def _names(self, label: str) -> Iterator[Event]:
        alike = int(self.timeline.ranks_in[self.column])
        facts = [label] * bool(label) + [f"{alike} ranks alike"] * (alike > 1)
        title = f"rank {self.rank}" + (f" ({', '.join(facts)})" if facts else "")
        yield self._meta("process_name", STEPS_THREAD, name=title)
        yield self._meta("process_sort_index", STEPS_THREAD, sort_index=self.place)
        for thread, stream in enumerate(["steps", *self._streams]):
            yield self._meta("thread_name", thread, name=stream)
            yield self._meta("thread_sort_index", thread, sort_index=thread)

    def _meta(self, what: str, thread: int, **args: object) -> Event:
        return {"ph": "M", "name": what, "pid": self.rank, "tid": thread, "args": args}

    def _steps(self) -> Iterator[Event]:
        """Yield one slice per step, from one completed update to the next."""
        updates = self.timeline.update_ns[:, self.column]
        for batch in self.batches:
            begin, end = int(updates[batch - 1]) if batch else 0, int(updates[batch])
            if end > begin:
                span = {"ts": begin / 1e3, "dur": (end - begin) / 1e3}
                at = {"ph": "X", "cat": "user_annotation", "pid": self.rank, "tid": STEPS_THREAD}
                yield {**at, "name": f"step {batch}", **span, "args": {"batch": batch}}

    def _stream(self, thread: int) -> Iterator[Event]:
        """Yield slices and arrows in stream order: by (batch - ahead, position)."""
        nodes = self.timeline.graph.nodes
        on_it = [index for index, other in enumerate(self._thread_of) if other == thread]
        found = [(node, cycle) for node in on_it for cycle in range(self.timeline.cycles)]
        batch = self.timeline.graph.batch_of
        found = [at for at in found if batch(*at) in self.batches]
        found.sort(key=lambda at: (batch(*at) - nodes[at[0]].stage.ahead, nodes[at[0]].position))
        for node, cycle in found:
            yield self._slice(node, cycle)
            yield from self._arrows(node, cycle)

    def _slice(self, node: int, cycle: int) -> Event:
        stage, thread = self.timeline.graph.nodes[node].stage, self._thread_of[node]
        start, end = self._span(node, cycle)
        args: Event = {"stage": stage.name, "batch": self.timeline.graph.batch_of(node, cycle)}
        args |= {"kind": stage.kind, **self._lost(node, cycle)}
        category = profiled_category(stage)
        if category != "cpu_op":
            args |= {"stream": thread, "correlation": cycle * len(self._thread_of) + node + 1}
        at = {"ph": "X", "cat": category, "pid": self.rank, "tid": thread, "name": profiled_name(stage)}
        return {**at, "ts": start / 1e3, "dur": (end - start) / 1e3, "args": args}

    def _lost(self, node: int, cycle: int) -> Event:
        (start, end), began = self._span(node, cycle), self._began[node][cycle]
        alone = int(self.timeline.duration_ns[node, cycle, self.column])
        return {"wait_us": (began - start) / 1e3, "slowed_us": (end - began - alone) / 1e3}

    @cached_property
    def _began(self) -> list[list[int]]:
        nodes = range(len(self._thread_of))
        return [self.timeline.began_ns[node, :, self.column].tolist() for node in nodes]

    def _span(self, node: int, cycle: int) -> tuple[int, int]:
        at = node, cycle, self.column
        return int(self.timeline.start_ns[at]), int(self.timeline.end_ns[at])

    def _arrows(self, node: int, cycle: int) -> Iterator[Event]:
        """Yield the ends of arrows at one slice; a viewer finds the slice by a time within it."""
        graph = self.timeline.graph
        for edge in graph.incoming[node]:
            if self._drawn(edge, cycle - edge.lag):
                yield self._arrow("f", edge, cycle - edge.lag, node, cycle)
        for edge in graph.outgoing[node]:
            if self._drawn(edge, cycle):
                yield self._arrow("s", edge, cycle, node, cycle)

    def _drawn(self, edge: Edge, cycle: int) -> bool:
        """Whether the edge out of `cycle` joins two streams, and two slices that are in the file."""
        ends = ((edge.source, cycle), (edge.target, cycle + edge.lag))
        apart = self._thread_of[edge.source] != self._thread_of[edge.target]
        return edge.reason in ARROWS and apart and all(self._seen(*end) for end in ends)

    def _seen(self, node: int, cycle: int) -> bool:
        if not 0 <= cycle < self.timeline.cycles:
            return False
        start, end = self._span(node, cycle)
        return end > start and self.timeline.graph.batch_of(node, cycle) in self.batches

    def _arrow(self, phase: str, edge: Edge, source_cycle: int, node: int, cycle: int) -> Event:
        edges = self.timeline.graph.edges
        place = (self.place * self.timeline.cycles + source_cycle) * len(edges) + self._number[id(edge)]
        at = {"ph": phase, "id": place, "cat": "flow", "name": edge.reason, "pid": self.rank}
        at |= {"tid": self._thread_of[node], "ts": self._span(node, cycle)[0] / 1e3}
        return at | {"bp": "e"} if phase == "f" else at

    @cached_property
    def _number(self) -> dict[int, int]:
        return {id(edge): place for place, edge in enumerate(self.timeline.graph.edges)}
