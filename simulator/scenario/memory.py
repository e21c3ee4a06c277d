"""Whether a scenario fits in memory, by its schedule; where it does not, the smallest change that does."""

from collections.abc import Callable
from dataclasses import dataclass

from simulator.engine.durations import Variation, tabulate
from simulator.engine.recurrence import run_recurrence
from simulator.errors import RecscaleError
from simulator.results.memory import Memory, check_fits, general_advice, scheduled_memory, shortage
from simulator.results.timeline import Timeline
from simulator.scenario.scenario import Scenario

FEWEST_TRIES = 4
SETTLED = 8  # batches after the deepest lookahead until all buffers are in use
MOST_WORKERS = 1 << 17
MOST_BUILT = 10_000  # tables and products built to find what fits; beyond that the answer may be less tight


def checked_memory(scenario: Scenario) -> Memory:
    """Return the peak memory of the fullest rank when every stage takes its nominal time.

    Raises InfeasibleError when it does not fit, with the smallest change that does.
    """
    return _checked(scenario, planned_memory(scenario))


def fitting_memory(scenario: Scenario, timeline: Timeline) -> Memory:
    """Return the peak memory of a run. Raises InfeasibleError when it does not fit."""
    return _checked(scenario, scheduled_memory(scenario.step, timeline, _parts(scenario)))


def planned_memory(scenario: Scenario) -> Memory:
    """Return the peak of some batches run with nominal durations, whether it fits or not."""
    graph, ranks = scenario.graph, scenario.cluster.ranks
    deepest = max(stage.ahead for stage in graph.pipeline.stages)
    cycles = -(-(2 * deepest + SETTLED) // graph.period) + 1
    durations = scenario.at(
        "cluster", lambda: tabulate(graph, scenario.costs.seconds, ranks, cycles, Variation())
    )
    return scheduled_memory(scenario.step, run_recurrence(graph, durations), _parts(scenario))


def _parts(scenario: Scenario) -> int:
    return int(getattr(scenario.policy, "micro_batches", 1))


def _checked(scenario: Scenario, memory: Memory) -> Memory:
    if shortage(memory, scenario.cluster) > 0:
        advice = f"{general_advice(memory, scenario.cluster)}{_what_fits(scenario)}"
        scenario.at("cluster", lambda: check_fits(memory, scenario.cluster, advice))
    return memory


def _what_fits(scenario: Scenario) -> str:
    """Say the smallest number of workers and the largest batch that fit, where there are such.

    Of a scenario that takes long to build few are tried: what is said fits, but may not be the smallest.
    """
    hosts, batch = scenario.cluster.hosts, scenario.workload.batch
    per_host = scenario.cluster.per_host
    tries = max(FEWEST_TRIES, MOST_BUILT // _parts_built(scenario))
    more = _least(hosts, MOST_WORKERS // per_host, _Tries(scenario, "cluster.hosts", tries))
    less = _most(batch, _Tries(scenario, "workload.batch", tries))
    found = [f"with {more * per_host:,} workers"] if more else []
    found += [f"with a batch of {less:,}"] if less else []
    return f"; it fits {' or '.join(found)}" if found else ""


def _parts_built(scenario: Scenario) -> int:
    """Return how many tables and products of matrices a build of the scenario goes through."""
    workload = scenario.workload
    return len(workload.tables) + len(workload.model.quantities().products)


@dataclass
class _Tries:
    """Whether the scenario fits with a value at `path`; after `left` tries nothing is found to fit."""

    scenario: Scenario
    path: str
    left: int

    def __call__(self, value: int) -> bool:
        self.left -= 1
        return self.left >= 0 and _fits(self.scenario, f"{self.path}={value}")


def _fits(scenario: Scenario, setting: str) -> bool:
    try:
        changed = scenario.with_overrides([setting])
        return shortage(planned_memory(changed), changed.cluster) <= 0
    except RecscaleError:  # a number of workers that the plan or the fabric refuses is no way out
        return False


def _least(start: int, end: int, good: Callable[[int], bool]) -> int | None:
    """Return the least n in (start, end] found good by doubling, then halving the gap."""
    bad = start
    while bad < end:
        tried = min(2 * bad, end)
        if good(tried):
            return _narrowed(bad, tried, good)
        bad = tried
    return None


def _most(start: int, good: Callable[[int], bool]) -> int | None:
    """Return the largest n in [1, start) found good by halving, then halving the gap."""
    bad = start
    while bad > 1:
        tried = bad // 2
        if good(tried):
            return _narrowed(bad, tried, good)
        bad = tried
    return None


def _narrowed(bad: int, best: int, good: Callable[[int], bool]) -> int:
    while abs(bad - best) > 1:
        middle = (bad + best) // 2
        bad, best = (bad, middle) if good(middle) else (middle, best)
    return best
