"""Where a step's time goes: what the compute stream does, and what it waits for.

A wait is partitioned by walking back along the predecessors that arrived last: each is charged,
by its kind, for the part of the wait in which it ran. Compute and exposed time add up to the step,
which is checked.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simulator.results.timeline import Timeline

OTHER = "other"


@dataclass(frozen=True)
class Breakdown:
    """Mean nanoseconds per step on one column: compute, and exposed time by kind of its cause."""

    step_ns: float
    compute_ns: float
    exposed_ns: dict[str, float]


@dataclass(frozen=True)
class _Instance:
    node: int
    cycle: int
    column: int


class _Walk:
    """Finds last-arriving predecessors in one timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.graph = timeline.graph
        self.meets = [node.stage.work.rendezvous for node in self.graph.nodes]

    def start(self, at: _Instance) -> int:
        """When `at` had all that its own rank owed it, ns."""
        return int(self.timeline.start_ns[at.node, at.cycle, at.column])

    def end(self, at: _Instance) -> int:
        """When `at` was complete, ns."""
        return int(self.timeline.end_ns[at.node, at.cycle, at.column])

    def begins(self, at: _Instance) -> "tuple[_Instance, int]":
        """Return when `at` really began to run, and on which column the last to arrive was."""
        if not self.meets[at.node]:
            return at, self.start(at)
        arrivals = self.timeline.start_ns[at.node, at.cycle]
        last = _Instance(at.node, at.cycle, int(np.argmax(arrivals)))
        return last, self.start(last)

    def last_input(self, at: _Instance) -> _Instance | None:
        """Return the predecessor on the same column that ended last, or None at the start of the run."""
        begin = self.start(at)
        for edge in self.graph.incoming[at.node]:
            before = _Instance(edge.source, at.cycle - edge.lag, at.column)
            if 0 <= before.cycle < self.timeline.cycles and self.end(before) == begin:
                return before
        return None

    def charge(self, waiting: _Instance, since: int, until: int) -> Counter[str]:
        """Partition the wait of `waiting` between `since` and `until` (its start or earlier) by kind, ns."""
        charged: Counter[str] = Counter()
        at, now = self.begins(waiting)
        while now > since:
            before = self.last_input(at)
            if before is None:
                charged[OTHER] += min(now, until) - since
                break
            at, began = self.begins(before)
            charged[self._kind(before)] += max(0, min(now, until) - max(began, since))
            now = began
        return charged

    def _kind(self, at: _Instance) -> str:
        """Waiting for someone else's computation (a slower rank) is not a kind of data movement."""
        kind = self.graph.nodes[at.node].stage.kind
        return OTHER if kind == "compute" else kind


def break_down(timeline: Timeline, column: int, first: int, last: int) -> Breakdown:
    """Return the mean breakdown of the steps of batches `first` .. `last` - 1 on `column`.

    A step lasts from one batch's completed update to the next one's. Raises AssertionError if compute
    and exposed time do not add up to the step exactly.
    """
    updates = timeline.update_ns[:, column]
    begin, finish = int(updates[first - 1]), int(updates[last - 1])
    spent = _spend(timeline, column, begin, finish)
    if sum(spent.values()) != finish - begin:
        raise AssertionError("compute and exposed time do not add up to the step")
    steps = last - first
    exposed = {kind: ns / steps for kind, ns in sorted(spent.items()) if kind != "compute"}
    return Breakdown((finish - begin) / steps, spent["compute"] / steps, exposed)


def _spend(timeline: Timeline, column: int, begin: int, finish: int) -> Counter[str]:
    """Partition the time from `begin` to `finish` on one column's compute stream, ns by kind."""
    walk, spent, now = _Walk(timeline), Counter[str](), begin
    for at in _compute_instances(timeline, column):
        start, end = walk.begins(at)[1], walk.end(at)
        if end <= now and start < begin:
            continue
        if start > now:
            spent.update(walk.charge(at, now, min(start, finish)))
            now = min(start, finish)
        spent[timeline.graph.nodes[at.node].stage.kind] += max(0, min(end, finish) - now)
        now = max(now, min(end, finish))
        if now >= finish:
            break
    spent[OTHER] += finish - now
    return +spent


def _compute_instances(timeline: Timeline, column: int) -> Iterator[_Instance]:
    """Yield the instances of the compute stream in the order in which they ran."""
    graph = timeline.graph
    on_compute = [i for i, node in enumerate(graph.nodes) if node.stream == graph.pipeline.compute]
    found = [_Instance(node, cycle, column) for node in on_compute for cycle in range(timeline.cycles)]
    order = {index: place for place, index in enumerate(on_compute)}
    starts, ends = timeline.start_ns, timeline.end_ns
    key = lambda at: (starts[at.node, at.cycle, column], ends[at.node, at.cycle, column], order[at.node])  # noqa: E731
    yield from sorted(found, key=key)
