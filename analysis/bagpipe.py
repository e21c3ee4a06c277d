"""Bagpipe's published figures as quantities of the shipped scenario. Nothing of it is fitted on them.

What the authors compare with is not one system: their scripts run a baseline without a cache over Gloo, and
TorchRec over Gloo, while Bagpipe itself uses NCCL. Ours is `no_cache`, in which every worker fetches all rows
of a batch as in their script, on the same network as Bagpipe.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from simulator.scenario import Scenario, run_scenario

FILE = "bagpipe/criteo_kaggle.yaml"
BASELINE = {"kind": "no_cache"}
SWEEP = (20, 40, 60, 80, 100, 200, 300)


@dataclass(frozen=True)
class Shares:
    """Per cent of a step: forward and backward passes; rows and the synchronisation of the model."""

    passes: float
    moving: float


def shares(scenario: Scenario) -> Shares:
    """Return what part of a step under the scenario's own policy is passes, and what is moving rows."""
    run = run_scenario(scenario)
    step = run.report.step_ms["mean"]
    names = ("forward", "backward")
    nodes = [i for i, node in enumerate(run.timeline.graph.nodes) if node.stage.name.split(".")[0] in names]
    passes = float(run.durations.nominal_ns[nodes].max(axis=1).sum()) / 1e6 / run.timeline.graph.period
    moving = sum(run.report.exposed_ms[kind] for kind in ("parameter_server", "all_reduce", "all_to_all"))
    return Shares(100 * passes / step, 100 * moving / step)


def passes_share(scenario: Scenario) -> float:
    """Return the share of forward and backward in a step without a cache, per cent."""
    return shares(scenario.with_policy(BASELINE)).passes


def speedup(scenario: Scenario, lookahead: int = 200) -> float:
    """Return the step without a cache over Bagpipe's."""
    steps = [_step(scenario, BASELINE), _step(scenario, {"kind": "bagpipe", "lookahead": lookahead})]
    return steps[0] / steps[1]


def _step(scenario: Scenario, policy: Mapping[str, object]) -> float:
    return run_scenario(scenario.with_policy(dict(policy))).report.step_ms["mean"]


def prefetched(scenario: Scenario, lookahead: int) -> float:
    """Return the rows that enter the cache per batch."""
    return sum(scenario.step.lookahead(lookahead).prefetched.values())


def cached(scenario: Scenario, lookahead: int) -> float:
    """Return the rows in one worker's cache when it is fullest."""
    return sum(scenario.step.lookahead(lookahead).cached.values())


def hottest_accesses(scenario: Scenario, share: float = 0.01) -> float:
    """Return the per cent of accesses that go to the hottest `share` of the rows of all tables together."""
    import numpy as np

    from simulator.workload.keys.popularity import Independent

    chances, rows = [], []
    for table in scenario.workload.tables:
        assert isinstance(table.popularity, Independent)
        chances.append(table.popularity.classes.probability * table.pooling)
        rows.append(table.popularity.classes.keys)
    each, count = np.concatenate(chances), np.concatenate(rows)
    order = np.argsort(-each, kind="stable")
    ends, reached = np.cumsum(count[order]), np.cumsum((each * count)[order])
    return float(100 * np.interp(share * ends[-1], ends, reached) / reached[-1])


def staleness(scenario: Scenario) -> float:
    """Return the oldest update that any row lacks that a batch trains on, batches."""
    seen = run_scenario(scenario).staleness
    assert seen is not None
    return float(seen.observed_max)


QUANTITIES: Mapping[str, Callable[[Scenario], float]] = {
    "passes_share": passes_share,
    "moving_share": lambda scenario: shares(scenario.with_policy(BASELINE)).moving,
    "caching_gain": speedup,
    "hottest_accesses": hottest_accesses,
    "staleness_at_most": staleness,
    "cached_200_at_most": lambda scenario: cached(scenario, 200) / 1e6,
    "cached_300_at_most": lambda scenario: cached(scenario, 300) / 1e6,
    "prefetched_at_most": lambda scenario: max(
        prefetched(scenario, after) / prefetched(scenario, before) for before, after in pairwise(SWEEP)
    ),
}


def of(scenario: Scenario, quantity: str) -> float:
    """Return a quantity of the shipped scenario."""
    return QUANTITIES[quantity](scenario)
