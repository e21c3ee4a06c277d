"""How long the stages of a scenario take, as they stand and at the very least, without running it."""

from simulator.costs.model import Seconds
from simulator.engine.durations import Durations, Variation, tabulate
from simulator.engine.shortest import shortest
from simulator.pipeline import MarkedGraph
from simulator.results.bottleneck import Bottleneck, find_bottleneck
from simulator.results.least import least_ns
from simulator.scenario.run_spec import RunSpec
from simulator.scenario.scenario import Scenario

STILL = Variation()


def every_rank(
    scenario: Scenario, cycles: int, variation: Variation | None = None, seconds: Seconds | None = None
) -> Durations:
    """Return how long each stage takes on each rank with an even part of its host and all of its links.

    Durations vary as the scenario says, or by `variation`; `seconds` gives the time of any work (default:
    the scenario's own costs). Raises InputError when a stage has no finite time.
    """
    asked = scenario.spec.run.variation() if variation is None else variation
    given, ranks = seconds or scenario.costs.seconds, scenario.cluster.ranks
    return scenario.at("cluster", lambda: tabulate(scenario.graph, given, ranks, cycles, asked))


def shortest_of(scenario: Scenario, durations: Durations) -> Durations:
    """Return the shortest durations that each rank can get in any run of `scenario` on the event engine."""
    if not scenario.spec.run.contention:
        return durations
    return shortest(scenario.graph, durations, scenario.costs)


def cycles_of(scenario: Scenario) -> int:
    """Return how many cycles of the pipeline's period are run."""
    return -(-scenario.spec.run.batches // scenario.graph.period)


def counted(graph: MarkedGraph, settings: RunSpec, batches: int) -> tuple[int, int]:
    """Return the first batch whose step counts and one past the last.

    Whole periods are counted, from the end of the warm-up on, as long as the pipeline is full.
    """
    deepest = max(stage.ahead for stage in graph.pipeline.stages)
    end = batches - deepest - graph.period
    return settings.warm_up, end - (end - settings.warm_up) % graph.period


def least_step_ns(scenario: Scenario) -> float:
    """Return what the mean step of a run on the event engine cannot be below, ns, without running it.

    It is the longest path through the counted batches over the shortest durations that ranks can get.
    """
    graph, cycles = scenario.graph, cycles_of(scenario)
    durations = shortest_of(scenario, every_rank(scenario, cycles))
    first, last = counted(graph, scenario.spec.run, cycles * graph.period)
    return least_ns(graph, durations.ns, first, last) / (last - first)


def nominal_bottleneck(scenario: Scenario) -> Bottleneck:
    """Return the critical cycle over nominal durations: an estimate of the pace, and no bound."""
    return find_bottleneck(scenario.graph, every_rank(scenario, 1, STILL).nominal_ns)
