"""One physical parameter: its value, and what any work would take if it were larger or smaller by a factor.

Cores scale as the speed of all of them together, since a host has no tenth of a core.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from analysis.rescaled_works import Change, longer_cpu, longer_service, rebuilt
from simulator.costs import CostModel
from simulator.hardware import Cluster
from simulator.quantities import Amount, Work
from simulator.scenario import Scenario
from simulator.units import format_bandwidth, format_rate, format_time

TEXT: dict[str, Callable[[float], str]] = {
    "rate": format_rate,
    "bandwidth": format_bandwidth,
    "time": format_time,
    "fraction": lambda share: f"{100 * share:.4g} %",
    "count": lambda number: f"{number:,.6g}",
}
_COUNTS = ("cores", "decay_workers")  # the counts that set a speed; the others change what is computed


@dataclass(frozen=True)
class Scaled:
    """A scenario with a parameter changed: what work costs then, and how much of it there is."""

    costs: CostModel
    change: Callable[[Work], Work] = lambda work: work

    def __call__(self, work: Work) -> Amount:
        """Return the time of what is `work` without the change: a float, or one per rank."""
        return self.costs.seconds(self.change(work))


@dataclass(frozen=True)
class Parameter:
    """One parameter: its path, its value as text, how much it can grow, and the scenario with it scaled."""

    path: str
    text: str
    largest_factor: float
    scaled: Callable[[float], Scaled]


def is_speed(name: str, dimension: str | None) -> bool:
    """Return whether a number of this name and dimension sets a speed."""
    return dimension in ("rate", "bandwidth", "time", "fraction") or name in _COUNTS


def limit(dimension: str, value: float) -> float:
    """Return by how much a value can grow: a share to all of it, anything else without end."""
    return 1.0 / value if dimension == "fraction" and value else float("inf")


def scaled_on(scenario: Scenario, cluster: Cluster) -> Scaled:
    """Return the scenario on another cluster."""
    return Scaled(replace(scenario.costs, cluster=cluster))


def of_works(scenario: Scenario, path: str, text: str, change: Change) -> Parameter:
    """Return a parameter that is an amount of work: `change` makes it larger by a factor."""

    def scaled(factor: float) -> Scaled:
        return Scaled(scenario.costs, lambda work: rebuilt(work, change, factor))

    return Parameter(path, text, float("inf"), scaled)


def of_cores(scenario: Scenario, path: str, value: float, place: int) -> Parameter:
    """Return the cores of the hosts of the group at `place`."""

    def change(work: Work, factor: float) -> Work:
        kinds = scenario.cluster.kind_of
        return longer_cpu(
            work, 1.0 / factor if kinds is None else np.where(kinds == place, 1.0 / factor, 1.0)
        )

    return of_works(scenario, path, TEXT["count"](value), change)


def of_server_cores(scenario: Scenario, path: str, value: float) -> Parameter:
    """Return the cores of parameter servers: whole ones, which take what is left as speed."""

    def scaled(factor: float) -> Scaled:
        servers = scenario.cluster.servers
        assert servers is not None  # the path says so
        cores = max(1, int(value * factor))
        slower = cores / (value * factor)
        calls = servers.rpc.server_call * slower, servers.rpc.server_per_byte * slower
        rpc = replace(servers.rpc, server_call=calls[0], server_per_byte=calls[1])
        key_time, host = servers.key_time * slower, replace(servers.host, cores=cores)
        other = replace(servers, host=host, rpc=rpc, key_time=key_time)
        costs = scaled_on(scenario, replace(scenario.cluster, servers=other)).costs
        return Scaled(costs, lambda work: rebuilt(work, longer_service, slower))

    return Parameter(path, TEXT["count"](value), float("inf"), scaled)
