"""How well a scenario scales from one host to all of its own."""

from dataclasses import dataclass

from analysis.ratios import efficiency
from simulator.engine.events import Progress
from simulator.errors import InfeasibleError, RecscaleError
from simulator.scenario import Run, run_scenario


@dataclass(frozen=True)
class OneHost:
    """Throughput per worker over that on a single host, or why there is no such number."""

    efficiency: float | None
    missing: str = ""


def against_one_host(run: Run, progress: Progress | None = None) -> OneHost | None:
    """Simulate the scenario of `run` on one host, with the same engine and run settings, and compare.

    Returns None when `run` itself is on one host. There is no baseline when the job needs the memory of
    more hosts, or when the cluster has no smaller form (some tori).
    """
    scenario = run.scenario
    if scenario.cluster.hosts == 1:
        return None
    try:
        alone = run_scenario(
            scenario.with_workers(scenario.cluster.per_host), run.timeline.engine, progress
        ).report
    except InfeasibleError:
        return OneHost(None, "does not fit on one host")
    except RecscaleError as error:
        return OneHost(None, error.problem)
    mine = run.report
    return OneHost(
        efficiency(mine.throughput_samples_per_s, mine.ranks, alone.throughput_samples_per_s, alone.ranks)
    )
