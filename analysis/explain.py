"""Why a step takes as long as it does, before anything has run: the critical cycle and what would change it.

The critical cycle over nominal durations is a lower bound on the step, exact where nothing varies
and nothing is shared. What a parameter is worth follows by halving and doubling it and looking for
the critical cycle again.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from analysis.sensitivity import Sensitivity, sensitivities
from simulator.costs import CostModel
from simulator.costs.occupancy import occupancy
from simulator.quantities import HoldWork, InTurn, Together, Work
from simulator.results.bottleneck import Bottleneck, Link
from simulator.scenario import Scenario
from simulator.scenario.nominal import nominal_bottleneck

UNEXPLAINED = "unexplained host time"
HELD = {"software.loader_rate": "loader"}  # the rest of the software is the framework's
RESOURCES = {
    "tensor": "compute",
    "hbm": "device memory",
    "dram": "host memory",
    "cores": "host cores",
    "host_to_device": "host link",
    "device_to_host": "host link",
    "network": "network",
    "remote": "network",
    "calls": "remote calls",
    "server": "parameter servers",
    "oracle": "parameter servers",
}


@dataclass(frozen=True)
class CycleStep:
    """One step of the critical cycle: its stage, how long it takes, and why the next one waits for it."""

    stage: str
    duration_ms: float
    share: float
    why_the_next_waits: str


@dataclass(frozen=True)
class Explanation:
    """The bottleneck of a scenario: the cycle in order of time, by resource, and what would move it.

    `lower_bound_ms` is the time per batch; the cycle takes `cycle_ms` and spans `batches` batches.
    `left_out` names what the scenario has and nominal durations have not.
    """

    scenario: str
    policy: str
    workers: int
    lower_bound_ms: float
    cycle_ms: float
    batches: int
    resources: dict[str, float]
    cycle: list[CycleStep]
    sensitivities: list[Sensitivity]
    left_out: list[str]

    @property
    def binds(self) -> str:
        """The resource that takes the largest part of the cycle."""
        return max(self.resources, key=lambda name: self.resources[name])

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data."""
        return {**asdict(self), "binds": self.binds}


def explain(scenario: Scenario) -> Explanation:
    """Return why `scenario` cannot be faster than it is. Raises what building the scenario raises."""
    bottleneck = nominal_bottleneck(scenario)
    total = sum(link.duration_ns for link in bottleneck.links)
    shares = resource_shares(scenario, bottleneck)
    return Explanation(
        scenario.name,
        scenario.spec.policy.kind,
        scenario.cluster.ranks,
        float(bottleneck.period_ns) / 1e6,
        total / 1e6,
        round(total / float(bottleneck.period_ns)) if total else 1,
        shares,
        list(_cycle(bottleneck.links)),
        sensitivities(scenario, bottleneck),
        list(_left_out(scenario)),
    )


def _left_out(scenario: Scenario) -> Iterator[str]:
    settings = scenario.spec.run
    if settings.contention:
        yield "contention"
    if any(spread for _, spread in settings.jitter):
        yield "jitter"


def resource_shares(scenario: Scenario, bottleneck: Bottleneck) -> dict[str, float]:
    """Return the share of the critical cycle that each resource works, largest first."""
    works = {node.stage.name: node.stage.work for node in scenario.graph.nodes}
    spent: Counter[str] = Counter()
    for link in bottleneck.links:
        spent.update(occupied(works[link.stage], scenario.costs))
    total = sum(spent.values())
    return {name: seconds / total for name, seconds in spent.most_common()} if total else {"nothing": 1.0}


def occupied(work: Work, costs: CostModel) -> dict[str, float]:
    """Return the seconds that each resource sets the time of `work`: of parts that stream, the slowest."""
    if isinstance(work, Together):
        return max((occupied(part, costs) for part in work.parts), key=lambda parts: sum(parts.values()))
    if isinstance(work, InTurn):
        return dict(sum((Counter(occupied(part, costs)) for part in work.parts), Counter()))
    return {_setting(work, costs): float(np.max(costs.seconds(work)))}


def _setting(work: Work, costs: CostModel) -> str:
    """Return the resource that sets the time of work in one part; passes without arithmetic are memory's."""
    if isinstance(work, HoldWork):
        return HELD.get(work.setting, "framework" if work.setting.startswith("software.") else UNEXPLAINED)
    needs = [*reversed(occupancy(work, costs).items())]
    name = max(needs, key=lambda need: need[1])[0] if needs else "other"
    return RESOURCES.get(name, name)


def _cycle(links: Sequence[Link]) -> Iterator[CycleStep]:
    """Yield the steps of the cycle, each with what comes after it and why."""
    total = sum(link.duration_ns for link in links)
    for link, following in zip(links, [*links[1:], *links[:1]], strict=True):
        share = link.duration_ns / total if total else 0.0
        yield CycleStep(link.stage, link.duration_ns / 1e6, share, reason(link, following.stage))


def reason(link: Link, following: str) -> str:
    """Return in words why the stage `following`, the next of the cycle, waits for that of `link`."""
    stream, buffer = (re.fullmatch(rf'{kind} "(.*)"', link.reason) for kind in ("stream", "buffer"))
    who = following + _which_batch(link.lag)
    if stream:
        return f"{who} queues behind it ({stream[1]})"
    if buffer:
        return f"{who} needs its place in the buffer {buffer[1]}"
    return f"{who} {_BECAUSE.get(link.reason, 'waits for it')}"


_BECAUSE = {
    "needs": "needs its result",
    "carry": "must see its update",
    "pace": "is issued no earlier",
    "meets": "meets all other workers",
}


def _which_batch(lag: int) -> str:
    if lag == 0:
        return ""
    if abs(lag) == 1:
        return " of the next batch" if lag > 0 else " of the batch before"
    return f" {abs(lag)} batches {'later' if lag > 0 else 'before'}"
