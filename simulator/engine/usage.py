"""What a run took of each resource between two moments: the ledger by which nothing gives more than it has.

A stage uses what it needs at nominal speed for as long as its nominal time, however long it runs. Where it
is under way at an end of the window, its use is spread evenly over its run; that is exact where it ran
undisturbed, and in all where steps repeat. `least` counts of such stages only what is certain.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum

import numpy as np

from simulator.costs import Phase
from simulator.costs.occupancy import OF_HOST
from simulator.costs.phases import flow_seconds
from simulator.engine.contention import Contention
from simulator.quantities import FloatArray
from simulator.results.timeline import Timeline

Shares = dict[str, float]
LINK = "link "  # before the name of a class of links, so that none is taken for a resource of a rank


@dataclass(frozen=True)
class Used:
    """Shares of a window in which each resource was in use: `even`, and what is certain, `least`.

    Where the window `repeats`, so that what is under way at its ends is the same, `even` is certain, too.
    """

    even: Mapping[str, float]
    least: Mapping[str, float]
    repeats: bool

    @property
    def certain(self) -> Mapping[str, float]:
        """What is in use for certain: no more than there is, whatever shares it."""
        return self.even if self.repeats else self.least


@dataclass(frozen=True, eq=False)
class Usage:
    """What the stages of `timeline` used of a rank, its host and its links, as `contention` has it."""

    timeline: Timeline
    contention: Contention

    def between(self, column: int, begin_ns: int, end_ns: int) -> Used:
        """Return what a rank of `column` used from one time to another, and its host by all its ranks."""
        window, ranks = (begin_ns, end_ns), self._host_of(column)
        each = {other: self._of(other, window) for other in ranks}
        found = []
        for place, own in enumerate(each[column]):
            parts = [(each[other][place], count) for other, count in ranks.items()]
            found.append({name: self._of_whole(parts, name, used) for name, used in _all(parts, own).items()})
        even, least = found
        return Used(even, least, all(self._repeats(other, window) for other in ranks))

    def _repeats(self, column: int, window: tuple[int, int]) -> bool:
        """Whether what is under way at the beginning of a window is as far as what is at its end."""
        began, end = self.timeline.began_ns[:, :, column], self.timeline.end_ns[:, :, column]
        cut = []
        for edge in window:
            which = np.nonzero((began < edge) & (end > edge))
            cut.append(np.stack([which[0], began[which] - edge, end[which] - edge]))
        return np.array_equal(cut[0], cut[1])

    def _of_whole(self, parts: Sequence[tuple[Shares, int]], name: str, own: float) -> float:
        """Return the use of a rank's own resource, or by all ranks of what their host has.

        It is rounded once, so that ranks carried together use as much as the same ranks one by one.
        """
        if name not in OF_HOST:
            return own
        each = [used for part, count in parts for used in [part.get(name, 0.0)] * count]
        return fsum(each) / self.contention.per_host

    def _host_of(self, column: int) -> Mapping[int, int]:
        """Return the columns on the host of a rank of `column`, each with its number of ranks there."""
        columns, per_host = self.timeline.column_of, self.contention.per_host
        first = self.timeline.rank_of(column) // per_host * per_host
        return Counter(columns[first : first + per_host].tolist())

    def _of(self, column: int, window: tuple[int, int]) -> tuple[Shares, Shares]:
        """Return the shares of the window for which a rank used each resource, evenly and at least."""
        kind_of, span = self.contention.kind_of, window[1] - window[0]
        kind = 0 if kind_of is None else int(kind_of[self.timeline.rank_of(column)])
        even, least = self._worked_ns(column, window)
        return _weighted(self._needs[kind], even / span), _weighted(self._needs[kind], least / span)

    def _apart(self, node: int) -> bool:
        """Whether some ranks are done with a collective before others, jitter aside."""
        return any(_spread(phase) for phase in self.contention.phases[node])

    @cached_property
    def _needs(self) -> list[list[dict[str, float]]]:
        """What each node uses while it runs, by kind of rank."""
        nodes, kinds = range(len(self.timeline.graph.nodes)), range(len(self.contention.kinds))
        return [[used(self.contention, kind, node) for node in nodes] for kind in kinds]

    def _worked_ns(self, column: int, window: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
        """Return the nominal ns that each node was at work within the window, evenly and at least."""
        began, end = self.timeline.began_ns[:, :, column], self.timeline.end_ns[:, :, column]
        nominal = self.timeline.duration_ns[:, :, column].astype(np.float64)
        meets = np.array([node.stage.work.rendezvous for node in self.timeline.graph.nodes])
        for node in np.flatnonzero(meets).tolist():  # links are in use until the last rank is done
            each = self.timeline.duration_ns[node]
            nominal[node] = each.max(axis=1) if self._apart(node) else each.min(axis=1)
        inside = np.clip(np.minimum(end, window[1]) - np.maximum(began, window[0]), 0, None)
        ran = np.maximum(end - began, 1)
        steady = (ran == nominal) & ~meets[:, None] & (len(self._host_of(column)) == 1)
        worked = nominal * inside / ran
        return worked.sum(axis=1), np.where(steady | (inside == ran), worked, 0.0).sum(axis=1)


def _all(parts: Sequence[tuple[Shares, int]], own: Shares) -> Shares:
    """Return what a rank uses, and what its host has and other ranks alone use there (0)."""
    return {name: 0.0 for part, _ in parts for name in part if name in OF_HOST} | own


def _spread(phase: Phase) -> float:
    return 0.0 if phase.finish is None else float(np.ptp(phase.finish))


def used(contention: Contention, kind: int, node: int) -> dict[str, float]:
    """Return the share of each resource and link that a node uses while it runs on ranks of a kind."""
    needs, phases = contention.kinds[kind], contention.phases[node]
    if not phases:
        return dict(needs.by_node[node])
    total, seconds = Counter[str](), 0.0
    for place, phase in enumerate(phases):
        links = _seconds_on_links(phase, contention.rates)
        longest = flow_seconds(phase.flows, contention.rates) if phase.flows else 0.0
        total.update({LINK + name: on for name, on in links.items()})
        for need, span in ((needs.ends[node][place], phase.seconds), (needs.flows[node], longest)):
            total.update({name: share * span for name, share in need.items()})
        seconds += phase.seconds + longest
    return {name: on / seconds for name, on in total.items()} if seconds else {}


def _seconds_on_links(phase: Phase, rates: Mapping[str, float]) -> dict[str, float]:
    """Return how long the flows of a phase use a link of each class at its full rate."""
    found = Counter[str]()
    for flow in phase.flows:
        found.update({link: flow.bytes * count / rates[link] for link, count in flow.crossing.items()})
    return dict(found)


def _weighted(needs: list[dict[str, float]], spans: FloatArray) -> dict[str, float]:
    total = Counter[str]()
    for need, span in zip(needs, spans.tolist(), strict=True):
        total.update({name: share * span for name, share in need.items()})
    return dict(total)
