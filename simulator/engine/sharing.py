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
from collections.abc import Sequence

import numpy as np

from simulator.costs.occupancy import OF_HOST
from simulator.engine.needs import FULL, Need, Needs, Part

Lane = tuple[int, ...]  # the parts of stages that run on one rank
Lanes = tuple[Lane, ...]  # those of all busy ranks of a host, sorted
Felt = tuple[tuple[int, int], ...]  # collectives whose flows pass: node, and per cent of its own rate
Speeds = tuple[tuple[float, ...], tuple[tuple[int, float], ...]]
"""Speeds of the parts of a lane; then, of the flows that lose time there, place and ns lost per ns."""
REMEMBERED = 100_000


class Law:
    """How fast the stages on the ranks of one host run together; what was found is remembered.

    `kinds` holds the needs of each kind of rank. `members` ranks share a host, of which each can use
    `limit` even parts at most; 1 stands for a rank that keeps an even part of its host to itself. Parts
    of stages are known by number, see `parts_of`, `end_of` and `flows_of`.
    """

    def __init__(self, kinds: Sequence[Needs], members: int = 1, limit: float | None = None) -> None:
        """Number the parts of all stages of all kinds."""
        self.members = members
        self._limit = members if limit is None else min(limit, members)
        self.parts: list[Part] = []
        self._numbers: list[list[range]] = []
        self._ends: list[list[range]] = []
        self._passing: list[range] = []
        self._flows: list[Sequence[Need]] = []
        self._known: dict[tuple[Lanes, Felt], dict[Lane, Speeds]] = {}
        self._hosted: dict[Lane, bool] = {}
        self._minded: dict[tuple[Lanes, Felt, Felt], bool] = {}
        for needs in kinds:
            stages = needs.parts if members > 1 else [(Part(1.0, need),) for need in needs.by_node]
            self._numbers.append([self._numbered(parts, needs) for parts in stages])
            self._ends.append([self._as_parts(phases, needs) for phases in needs.ends])
            self._passing.append(self._as_parts(needs.flows, needs))

    def _as_parts(self, asked: Sequence[Need], needs: Needs) -> range:
        return self._numbered([Part(1.0, need) for need in asked], needs)

    def _numbered(self, parts: Sequence[Part], needs: Needs) -> range:
        first = len(self.parts)
        self.parts += parts
        self._flows += [needs.flows] * len(parts)
        return range(first, len(self.parts))

    def parts_of(self, kind: int, node: int) -> range:
        """Return the numbers of the parts of `node` on ranks of a kind."""
        return self._numbers[kind][node]

    def end_of(self, kind: int, node: int, phase: int) -> range:
        """Return the number of the local work of a collective before the flows of one of its phases."""
        return self._ends[kind][node][phase : phase + 1]

    def flows_of(self, kind: int, node: int) -> range:
        """Return the number of what the flows of a collective do on a rank, where they are made up for."""
        return self._passing[kind][node : node + 1]

    def on_host(self, lane: Lane) -> bool:
        """Return whether a rank on which these parts run uses anything of its host."""
        known = self._hosted.get(lane)
        if known is None:
            flows = self._flows[lane[0]] if lane else ()
            asked = [*(self.parts[number].need for number in lane), *flows]
            known = self._hosted[lane] = any(OF_HOST & need.keys() for need in asked)
        return known

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
            flows = [(1.0 - next(speeds)) * rate / 100 for _, rate in felt]
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
    return {name: share * per_cent / 100 for name, share in need.items()}


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
