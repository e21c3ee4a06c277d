"""What must hold between the run of a scenario and that of the same scenario, changed."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from random import Random

import numpy as np

from simulator.scenario.simulate import Run

from .clusters import Part
from .resources import MORE, more_of

Change = Callable[[Part, Random], Part | None]
Verdict = Callable[[Run, Run], str | None]
ROUNDING = 1e-6  # of a step; beside it, every stage of a batch may be a nanosecond late


@dataclass(frozen=True)
class Relation:
    """`change` makes the other scenario (None: not applicable), `violation` says what is wrong."""

    name: str
    change: Change
    violation: Verdict


def step_ms(run: Run) -> float:
    """Return the mean step."""
    return run.report.step_ms["mean"]


def rounding_ms(run: Run) -> float:
    """Return by how much clocks of whole nanoseconds may move a step."""
    return step_ms(run) * ROUNDING + 2e-6 * len(run.timeline.graph.nodes)


def slower(before: Run, after: Run) -> str | None:
    """Complain when `after` has more of something, and takes longer."""
    found = step_ms(after) - step_ms(before)
    if found <= rounding_ms(before):
        return None
    return f"{found / step_ms(before):+.4%} slower: {step_ms(before):.6f} to {step_ms(after):.6f} ms"


def differs(before: Run, after: Run) -> str | None:
    """Complain when two ways to say the same take unequally long."""
    found = step_ms(after) - step_ms(before)
    if abs(found) <= rounding_ms(before):
        return None
    return f"{found / step_ms(before):+.4%}: {step_ms(before):.6f} against {step_ms(after):.6f} ms"


def ends_differ(before: Run, after: Run) -> str | None:
    """Complain unless every stage of every batch ends at the same nanosecond on every rank."""
    ours, theirs = (one.timeline.end_ns[:, :, one.timeline.column_of] for one in (before, after))
    if np.array_equal(ours, theirs):
        return None
    return f"ends differ by up to {np.abs(ours - theirs).max()} ns"


def unfolded(data: Part, rng: Random) -> Part | None:
    """Carry each rank on its own."""
    return data | {"run": data["run"] | {"fold": "off"}}


def tables_permuted(data: Part, rng: Random) -> Part | None:
    """Write the tables in another order."""
    changed = deepcopy(data)
    rng.shuffle(changed["workload"]["tables"])
    return changed if changed != data else None


def ranks_permuted(data: Part, rng: Random) -> Part | None:
    """Let other ranks be the slow ones, as many per host as before; all of them have the same to do."""
    slow, shard, size = data["cluster"].get("slow"), data["sharding"], data["cluster"]["per_host"]
    alike = shard["kind"] == "row_wise" and not {"owners", "shares", "replicas"} & shard.keys()
    if not slow or not alike or "jitter" in data["run"] or "groups" in data["cluster"]:
        return None
    place, hosts = list(range(size)), list(range(data["cluster"]["hosts"]))
    rng.shuffle(place)
    rng.shuffle(hosts)
    changed = deepcopy(data)
    for one in changed["cluster"]["slow"]:
        one["ranks"] = sorted(hosts[rank // size] * size + place[rank % size] for rank in one["ranks"])
    return changed


def split_in_groups(data: Part, rng: Random) -> Part | None:
    """Say of one kind of host that it is two, which happen to be the same."""
    cluster = data["cluster"]
    if "groups" in cluster or cluster["hosts"] < 2:
        return None
    changed = deepcopy(data)
    kind = {name: changed["cluster"].pop(name) for name in ("accelerator", "host")}
    hosts = changed["cluster"].pop("hosts")
    changed["cluster"]["groups"] = [{**kind, "hosts": 1}, {**deepcopy(kind), "hosts": hosts - 1}]
    return changed


EQUAL = [
    Relation("carried one by one, ranks end when they end folded", unfolded, ends_differ),
    Relation("the order of tables changes nothing", tables_permuted, differs),
    Relation("which of equal ranks are the slow ones changes nothing", ranks_permuted, differs),
    Relation("two groups of the same hosts are one cluster", split_in_groups, ends_differ),
]
MONOTONE = [Relation(f"more {name} is never slower", more_of(name), slower) for name in MORE]
