"""What may be expected of a candidate before it is run event by event: an estimate of its step, and a bound.

The estimate (nothing shared, nominal durations) only says what to run first. What a candidate is ruled out
by is the bound: no run on the event engine has a shorter step.
"""

from analysis.sweep.points import Record, Task, recorded
from simulator.engine.recurrence import run_recurrence
from simulator.results.copies import declared_steps
from simulator.scenario import Run, Scenario
from simulator.scenario.bounds import cycles_of
from simulator.scenario.memory import checked_memory
from simulator.scenario.reporting import cost
from simulator.scenario.simulate import check_window, tabulated

CERTAIN = 1.0 - 1e-9  # what is left of a bound when all that was rounded on the way is taken off
LEAST = 1e-9  # of the estimate: a bound of nothing would make a throughput without end
SCALED = ("step_mean_ms", "usd_per_million_samples", "joules_per_sample")


def expect_task(task: Task) -> list[Record]:
    """Return one record per point, in order, with its estimated step; one that cannot run has its reason."""
    return [recorded(task.base, point, expected) for point in task.points]


def expected(scenario: Scenario) -> Record:
    """Return the estimated step, what follows from it, and `least_share`: the share of it a run must take.

    Raises what running the scenario raises, but for what only a schedule shows: peaks of memory.
    """
    memory = checked_memory(scenario)
    check_window(scenario)
    durations = tabulated(scenario, cycles_of(scenario))
    run = Run(scenario, run_recurrence(scenario.graph, durations), durations, memory)
    step_ns = run.breakdown.step_ns
    costs = cost(scenario, step_ns / 1e9) or {}
    own = scenario.policy.staleness_steps
    return {
        "step_mean_ms": step_ns / 1e6,
        "least_share": max(LEAST, run.least_step_ns / step_ns * CERTAIN),
        "throughput_samples_per_s": scenario.cluster.ranks * scenario.workload.batch / (step_ns / 1e9),
        "staleness_declared_steps": declared_steps(own, scenario.step, scenario.graph.pipeline),
        "usd_per_million_samples": costs.get("usd_per_million_samples"),
        "joules_per_sample": costs.get("joules_per_sample"),
    }


def at_best(record: Record) -> Record:
    """Return an expected record with the least step that a run can have."""
    share = record["least_share"]
    scaled = {name: record[name] and record[name] * share for name in SCALED}
    return {**record, **scaled, "throughput_samples_per_s": record["throughput_samples_per_s"] / share}
