"""Sharing inside ranks and hosts: how fast stages run that need the same engine, memory, core or copy path.

What is shared max-min is the fraction of its uncontended speed at which each stage runs, so flops
and bytes never meet in one unit: a stage that runs at fraction s takes s times its need of every
resource, and no resource gives more than 1 (progressive filling, as for flows on links; Bertsekas
and Gallager, Data Networks, section 6.5.2).

Where the ranks of a host differ, they share the host's cores, memory, disks and PCIe switch as well.
The unit of speed there is that of an even part of the host; what the others leave idle lets a stage
run faster, up to its `cap`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.costs.occupancy import OF_HOST
from simulator.engine.precedence import Precedence
from simulator.pipeline import MarkedGraph
from simulator.quantities import FloatArray

Need = Mapping[str, float]
Lane = tuple[int, ...]  # the parts of stages that run on one rank
Lanes = tuple[Lane, ...]  # those of all busy ranks of a host, sorted
Felt = tuple[tuple[int, int], ...]  # collectives whose flows pass: node, and per cent of its own rate
FULL = 1.0 + 1e-9
Speeds = tuple[tuple[float, ...], tuple[tuple[int, float], ...]]
"""Speeds of the parts of a lane; then, of the flows that lose time there, place and share of it."""
REMEMBERED = 100_000


@dataclass(frozen=True)
class Part:
    """A part of a stage that takes `share` of its nominal time and needs `need` at nominal speed.

    With a host to itself it runs at `cap` times that speed.
    """

    share: float
    need: Need
    cap: float = 1.0


@dataclass(frozen=True, eq=False)
class Needs:
    """What each node needs of its rank's resources at nominal speed (share of each, 0 to 1).

    `shared[node]` is false where no resource can be asked for more than it has: such a stage never
    slows down, and the engine spends no events on it. `flows[node]` is what the flows of a collective
    ask of each rank while they pass at their own rate. `parts[node]` is what a stage consists of where
    unlike ranks share a host; `hosted[node]` is what `shared` is there: all that uses a host, and more,
    because stages may run faster.
    """

    by_node: Sequence[Need]
    shared: Sequence[bool]
    flows: Sequence[Need] = ()
    parts: Sequence[tuple[Part, ...]] = ()
    hosted: Sequence[bool] = ()

    @classmethod
    def of(
        cls,
        graph: MarkedGraph,
        by_node: Sequence[Need],
        flows: Sequence[Need] = (),
        parts: Sequence[tuple[Part, ...]] = (),
    ) -> "Needs":
        """Find the stages that can meet others on a resource which is then asked for too much."""
        count = len(by_node)
        fastest = [_hastiest(stage) for stage in parts or [()] * count]
        table = _table([*by_node, *(flows or [{}] * count), *fastest]).reshape(3, count, -1)
        scarce = _scarce(graph, table[0], table[:2].max(axis=0))
        met = _scarce(graph, table.max(axis=0), table.max(axis=0)) if parts else scarce
        hosted = [one or bool(OF_HOST & need.keys()) for one, need in zip(met, fastest, strict=True)]
        return cls(by_node, scarce, flows, parts, hosted)

    @classmethod
    def none(cls, graph: MarkedGraph) -> "Needs":
        """Return the needs of stages that share nothing."""
        return cls([{}] * len(graph.nodes), [False] * len(graph.nodes))


def _hastiest(parts: Sequence[Part]) -> Need:
    """Return the most that a stage asks of each resource when it has its host to itself."""
    names = {name for part in parts for name in part.need}
    return {name: max(part.need.get(name, 0.0) * part.cap for part in parts) for name in names}


def _scarce(graph: MarkedGraph, own: FloatArray, most: FloatArray) -> list[bool]:
    """Return which nodes need something that may be asked for too much; needs are (nodes, resources).

    At the worst a stage meets, of each other stream, the largest need among the stages that the order
    of the graph lets overlap with it.
    """
    overlap, asked = Precedence(graph).may_overlap, own.copy()
    streams = np.array([node.stream for node in graph.nodes])
    for stream in np.unique(streams):
        members = np.flatnonzero(streams == stream)
        for node in np.flatnonzero(streams != stream):
            asked[node] += np.where(overlap[node, members, None], most[members], 0.0).max(axis=0)
    return [bool(row.any()) for row in (asked > FULL) & (own > 0.0)]


def _table(by_node: Sequence[Need]) -> FloatArray:
    """Return what each node needs of each resource, (nodes, resources)."""
    resources = sorted({name for need in by_node for name in need})
    return np.array([[need.get(name, 0.0) for name in resources] for need in by_node])


class Law:
    """How fast the stages on the ranks of one host run together; what was found is remembered.

    `kinds` holds the needs of each kind of rank. `members` ranks share a host, of which each can use
    `limit` even parts at most; 1 stands for a rank that keeps an even part of its host to itself. Parts
    of stages are known by number, see `parts_of`.
    """

    def __init__(self, kinds: Sequence[Needs], members: int = 1, limit: float | None = None) -> None:
        """Number the parts of all stages of all kinds."""
        self.members = members
        self._limit = members if limit is None else min(limit, members)
        self.parts: list[Part] = []
        self._numbers: list[list[range]] = []
        self._flows: list[Sequence[Need]] = []
        self._known: dict[tuple[Lanes, Felt], dict[Lane, Speeds]] = {}
        self._minded: dict[tuple[Lanes, Felt, Felt], bool] = {}
        for needs in kinds:
            stages = needs.parts if members > 1 else [(Part(1.0, need),) for need in needs.by_node]
            self._numbers.append([self._numbered(parts, needs) for parts in stages])

    def _numbered(self, parts: Sequence[Part], needs: Needs) -> range:
        first = len(self.parts)
        self.parts += parts
        self._flows += [needs.flows] * len(parts)
        return range(first, len(self.parts))

    def parts_of(self, kind: int, node: int) -> range:
        """Return the numbers of the parts of `node` on ranks of a kind."""
        return self._numbers[kind][node]

    def speeds(self, lanes: Lanes, felt: Felt) -> dict[Lane, Speeds]:
        """Return for each different lane the speed of its parts, and what flows lose on its rank.

        `lanes` lists the busy ranks of the host, sorted.
        """
        known = self._known.get((lanes, felt))
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = self._known[lanes, felt] = self._solve(Counter(lanes), felt)
        return known

    def minds(self, lanes: Lanes, before: Felt, after: Felt) -> bool:
        """Return whether flows `after` instead of `before` change a speed, or lose time under either."""
        minded = self._minded.get((lanes, before, after))
        if minded is None:
            if len(self._minded) >= REMEMBERED:
                self._minded.clear()
            old, new = self.speeds(lanes, before), self.speeds(lanes, after)
            lost = any(own[1] for found in (old, new) for own in found.values())
            minded = self._minded[lanes, before, after] = lost or old != new
        return minded

    def _solve(self, lanes: Counter[Lane], felt: Felt) -> dict[Lane, Speeds]:
        """Fill all lanes together; alike lanes are one, whose use of the host counts that often."""
        needs: list[Need] = []
        caps: list[float] = []
        for place, (lane, count) in enumerate(lanes.items()):
            asked = [(self.parts[number].need, self.parts[number].cap) for number in lane]
            asked += [(_scaled(self._flows[lane[0]][node], rate), 1.0) for node, rate in felt]
            needs += [self._on(place, count, need) for need, _ in asked]
            caps += [cap for _, cap in asked]
        speeds = iter(fill(needs, caps))
        found: dict[Lane, Speeds] = {}
        for lane in lanes:
            own = tuple([next(speeds) for _ in lane])
            flows = [1.0 - next(speeds) for _ in felt]
            found[lane] = own, tuple([(place, lost) for place, lost in enumerate(flows) if lost > 0.0])
        return found

    def _on(self, place: int, count: int, need: Need) -> Need:
        """Return a need in which resources of different ranks have different names."""
        if self.members == 1:
            return need
        own = {
            f"{name} {place}": share / (self._limit if name in OF_HOST else 1) for name, share in need.items()
        }
        hosts = {name: share * count / self.members for name, share in need.items() if name in OF_HOST}
        return own | hosts


def _scaled(need: Need, per_cent: int) -> Need:
    return {name: min(1.0, share * per_cent / 100) for name, share in need.items()}


def fill(needs: Sequence[Need], caps: Sequence[float] = ()) -> tuple[float, ...]:
    """Return max-min speeds of activities that need these shares of each resource, at most `caps` (1)."""
    limits = list(caps) or [1.0] * len(needs)
    speeds = limits.copy()
    rising = set(range(len(needs)))
    while rising:
        level, full = _next_level(needs, speeds, rising)
        least = min(limits[i] for i in rising)
        if full is None or least <= level:
            level, frozen = least, {i for i in rising if limits[i] <= least}
        else:
            frozen = {i for i in rising if needs[i].get(full, 0.0) > 0.0}
        for index in frozen:
            speeds[index] = level
        rising = rising - frozen
    return tuple(speeds)


def _next_level(needs: Sequence[Need], speeds: Sequence[float], rising: set[int]) -> tuple[float, str | None]:
    """Return how far the rising speeds can go together, and the resource that is full then, if any."""
    level, full = np.inf, None
    for resource in sorted({name for index in rising for name in needs[index]}):
        asked = sum(needs[i].get(resource, 0.0) for i in rising)
        taken = sum(speeds[i] * need.get(resource, 0.0) for i, need in enumerate(needs) if i not in rising)
        if asked > 0.0 and asked * level + taken > FULL:
            level, full = max(0.0, (1.0 - taken) / asked), resource
    return level, full
