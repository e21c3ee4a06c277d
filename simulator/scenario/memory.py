"""Whether a scenario fits in memory, by its schedule; where it does not, the smallest change that does."""

from simulator.engine.durations import Variation, tabulate
from simulator.engine.recurrence import run_recurrence
from simulator.errors import RecscaleError
from simulator.results.memory import Memory, check_fits, general_advice, scheduled_memory, shortage
from simulator.results.timeline import Timeline
from simulator.scenario.scenario import Scenario
from simulator.scenario.ways_out import what_fits

SETTLED = 8  # batches after the deepest lookahead until all buffers are in use


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
        found = what_fits(scenario, _fits)
        way_out = f"; it fits {' or '.join(found)}" if found else ""
        advice = f"{general_advice(memory, scenario.cluster)}{way_out}"
        scenario.at("cluster", lambda: check_fits(memory, scenario.cluster, advice))
    return memory


def _fits(scenario: Scenario, settings: list[str]) -> bool:
    try:
        changed = scenario.with_overrides(settings)
        return shortage(planned_memory(changed), changed.cluster) <= 0
    except RecscaleError:  # a number of workers that the plan or the fabric refuses is no way out
        return False
