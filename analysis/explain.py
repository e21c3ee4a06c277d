"""Why a step takes as long as it does: the cycle of stages that sets the pace, and what would change it.

The scenario is run on the event engine. The critical cycle over the durations that stages had there names
what sets the pace; what a parameter is worth follows by running the scenario with it halved and doubled.
The bound comes from the shortest durations that ranks can get, and so holds whatever is shared.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from analysis.effects import Effects
from analysis.sensitivity import Sensitivity, sensitivities
from simulator.costs import CostModel
from simulator.costs.occupancy import occupancy
from simulator.quantities import HoldWork, InTurn, Together, Work
from simulator.results.bottleneck import Bottleneck, Link
from simulator.scenario import Scenario, run_scenario

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
    """What sets the pace of a scenario: the cycle in order of time, by resource, and what would move it.

    `step_ms` is the mean step of the run, which takes at least `lower_bound_ms`. The cycle takes `cycle_ms`
    and spans `batches` batches. Sensitivities are to be compared with `without_jitter_ms`, the step when
    every stage takes its mean time; `left_out` names what they leave out.
    """

    scenario: str
    policy: str
    workers: int
    step_ms: float
    lower_bound_ms: float
    cycle_ms: float
    batches: int
    resources: dict[str, float]
    cycle: list[CycleStep]
    without_jitter_ms: float
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
    """Return what sets the pace of `scenario`. Raises what running the scenario raises."""
    run, effects = run_scenario(scenario), Effects(scenario)
    pace = run.pace
    total = sum(link.duration_ns for link in pace.links)
    return Explanation(
        scenario=scenario.name,
        policy=scenario.spec.policy.kind,
        workers=scenario.cluster.ranks,
        step_ms=run.breakdown.step_ns / 1e6,
        lower_bound_ms=run.lower_bound_ns / 1e6,
        cycle_ms=total / 1e6,
        batches=round(total / float(pace.period_ns)) if total else 1,
        resources=resource_shares(scenario, pace),
        cycle=list(_cycle(pace.links)),
        without_jitter_ms=effects.step_ns / 1e6,
        sensitivities=sensitivities(effects),
        left_out=[] if scenario.spec.run.variation().none else ["jitter"],
    )


def resource_shares(scenario: Scenario, pace: Bottleneck) -> dict[str, float]:
    """Return the share of the critical cycle that each resource sets, largest first."""
    works = {node.stage.name: node.stage.work for node in scenario.graph.nodes}
    spent: Counter[str] = Counter()
    for link in pace.links:
        spent.update(_spent(works[link.stage], link.duration_ns / 1e9, scenario.costs))
    total = sum(spent.values())
    return {name: seconds / total for name, seconds in spent.most_common()} if total else {"nothing": 1.0}


def _spent(work: Work, seconds: float, costs: CostModel) -> dict[str, float]:
    """Return `seconds` that a stage took by the resources that set them.

    What it took beyond its nominal time, it waited for the resource that sets most of that. Where it was
    faster, its neighbours left it more than an even part of the host: it is as far from what sets its time
    with the host to itself as it is from its time there.
    """
    even = occupied(work, costs)
    nominal = sum(even.values())
    if seconds >= nominal:
        waited = {max(even, key=lambda name: even[name]): seconds - nominal} if nominal else {}
        return dict(Counter(even) + Counter(waited))
    idle = occupied(work, replace(costs, cluster=costs.cluster.with_host_to_itself))
    least = sum(idle.values())
    even_share = max(0.0, seconds - least) / (nominal - least) if nominal > least else 1.0
    mixed = Counter({name: part * even_share for name, part in even.items()})
    mixed.update({name: part * (1.0 - even_share) for name, part in idle.items()})
    scale = seconds / total if (total := sum(mixed.values())) else 0.0
    return {name: part * scale for name, part in mixed.items()}


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
