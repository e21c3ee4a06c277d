"""Sharing inside a rank: stages of different streams that need the same engine, memory or copy path.

What is shared max-min is the fraction of its uncontended speed at which each stage runs, so flops
and bytes never meet in one unit: a stage that runs at fraction s takes s times its need of every
resource, and no resource gives more than 1 (progressive filling, as for flows on links; Bertsekas
and Gallager, Data Networks, section 6.5.2).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

import simpy

from simulator.pipeline import MarkedGraph

Need = Mapping[str, float]
FULL = 1.0 + 1e-9


@dataclass(frozen=True, eq=False)
class Needs:
    """What each node needs of its rank's resources at full speed (share of each, 0 to 1).

    `shared[node]` is false where no resource can be asked for more than it has: such a stage never
    slows down, and the engine spends no events on it.
    """

    by_node: Sequence[Need]
    shared: Sequence[bool]
    _known: dict[tuple[int, ...], tuple[float, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: MarkedGraph, by_node: Sequence[Need]) -> "Needs":
        """Find the resources that stages of different streams can ask for too much of together."""
        most: dict[tuple[str, str], float] = {}
        for node, need in zip(graph.nodes, by_node, strict=True):
            for resource, share in need.items():
                key = (resource, node.stream)
                most[key] = max(most.get(key, 0.0), share)
        asked: dict[str, float] = {}
        for (resource, _), share in most.items():
            asked[resource] = asked.get(resource, 0.0) + share
        scarce = {resource for resource, share in asked.items() if share > FULL}
        return cls(by_node, [not scarce.isdisjoint(need) for need in by_node])

    @classmethod
    def none(cls, graph: MarkedGraph) -> "Needs":
        """Return the needs of stages that share nothing."""
        return cls([{}] * len(graph.nodes), [False] * len(graph.nodes))

    def speeds(self, nodes: tuple[int, ...]) -> tuple[float, ...]:
        """Return the fraction of full speed at which each of `nodes` runs when they run together."""
        known = self._known.get(nodes)
        if known is None:
            known = self._known[nodes] = fill([self.by_node[node] for node in nodes])
        return known


def fill(needs: Sequence[Need]) -> tuple[float, ...]:
    """Return max-min speeds (0 to 1) of activities that need these shares of each resource."""
    speeds = [1.0] * len(needs)
    rising = set(range(len(needs)))
    while rising:
        level, full = _next_level(needs, speeds, rising)
        frozen = rising if full is None else {i for i in rising if needs[i].get(full, 0.0) > 0.0}
        for index in frozen:
            speeds[index] = level
        rising = rising - frozen
    return tuple(speeds)


def _next_level(needs: Sequence[Need], speeds: Sequence[float], rising: set[int]) -> tuple[float, str | None]:
    """Return how far the rising speeds can go together, and the resource that is full then, if any."""
    level, full = 1.0, None
    for resource in sorted({name for index in rising for name in needs[index]}):
        asked = sum(needs[i].get(resource, 0.0) for i in rising)
        taken = sum(speeds[i] * need.get(resource, 0.0) for i, need in enumerate(needs) if i not in rising)
        if asked > 0.0 and asked * level + taken > FULL:
            level, full = max(0.0, (1.0 - taken) / asked), resource
    return level, full


class _Running:
    """One stage that runs: how much of its uncontended time is left, and how fast it goes."""

    __slots__ = ("instance", "left_ns", "node", "speed")

    def __init__(self, instance: int, node: int, left_ns: float) -> None:
        self.instance = instance
        self.node = node
        self.left_ns = left_ns
        self.speed = 1.0


NEVER = 2**63


class SharedRank:
    """The stages that run on one rank now. `done(instance)` is called when one of them ends.

    One wake-up is pending at a time. Where an end moves away from it, it is left to pass in vain:
    that is cheaper than a second one.
    """

    def __init__(self, env: simpy.Environment, needs: Needs, done: Callable[[int], None]) -> None:
        """Start with an idle rank."""
        self.env = env
        self.needs = needs
        self.events = 0
        self._done = done
        self._running: list[_Running] = []
        self._since: float = 0
        self._wake_at: float = NEVER

    def begin(self, instance: int, node: int, duration_ns: int) -> None:
        """Start `instance` now; alone it takes `duration_ns`."""
        started = _Running(instance, node, duration_ns)
        if self._running or duration_ns == 0:
            self._advance()
            self._running.append(started)
            self._settle()
        else:  # alone: most stages are, and need no more than this
            self._since = self.env.now
            self._running.append(started)
            self._wake_in(duration_ns)

    def _advance(self) -> None:
        """Let the running stages proceed to the present."""
        now = self.env.now
        passed = now - self._since
        if passed:
            for one in self._running:
                one.left_ns -= one.speed * passed
            self._since = now

    def _settle(self) -> None:
        """End what is over, set speeds anew, and see to it that somebody wakes up at the next end."""
        over = [one for one in self._running if one.left_ns < 0.5]
        if over:
            self._running = [one for one in self._running if one.left_ns >= 0.5]
        if self._running:
            self._set_speeds()
        for one in over:
            self._done(one.instance)

    def _set_speeds(self) -> None:
        running = self._running
        if len(running) == 1:  # a stage needs at most all of a resource
            running[0].speed = 1.0
        else:
            speeds = self.needs.speeds(tuple(one.node for one in running))
            for one, speed in zip(running, speeds, strict=True):
                one.speed = speed
        self._wake_in(min(ceil(one.left_ns / one.speed - 1e-6) for one in running))

    def _wake_in(self, wait: int) -> None:
        moment = self._since + wait
        if moment < self._wake_at:
            self._wake_at = moment
            event = self.env.timeout(wait, value=moment)
            event.callbacks.append(self._wake)
            self.events += 1

    def _wake(self, event: simpy.Event) -> None:
        if event.value != self._wake_at:
            return
        self._wake_at = NEVER
        self._advance()
        running = self._running
        if len(running) == 1 and running[0].left_ns < 0.5:
            self._running = []
            self._done(running[0].instance)
        else:
            self._settle()
