"""A scenario's critical cycle over nominal durations: its lower bound, without running it."""

from collections.abc import Callable

from simulator.engine.durations import Variation, tabulate
from simulator.quantities import Amount, IntArray, Work
from simulator.results.bottleneck import Bottleneck, find_bottleneck
from simulator.scenario.scenario import Scenario


def nominal_ns(scenario: Scenario, seconds: Callable[[Work], Amount] | None = None) -> IntArray:
    """Return how long each stage takes, whole ns, shape (nodes, columns of alike ranks).

    `seconds` gives the time of any work (default: the scenario's own costs).
    """
    given = seconds or scenario.costs.seconds
    return tabulate(scenario.graph, given, scenario.cluster.ranks, 1, Variation()).nominal_ns


def nominal_bottleneck(scenario: Scenario) -> Bottleneck:
    """Return the critical cycle of `scenario`."""
    return find_bottleneck(scenario.graph, nominal_ns(scenario))
