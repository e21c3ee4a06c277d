"""Settings of a scenario that change nothing in its run: what a report says of them."""

from collections.abc import Iterator

from simulator.quantities import (
    AllToAllWork,
    Collective,
    HoldWork,
    RowWork,
    RpcWork,
    ServerWork,
    Work,
    leaves,
)
from simulator.scenario.collective_rows import operation
from simulator.scenario.collectives_spec import MEASURED, AlgorithmsSpec, CollectivesSpec
from simulator.scenario.scenario import Scenario

HELD_NOWHERE = (
    "cluster.unexplained_host_time is not used: it is held while workers route keys and retrieve rows among "
    "each other, and under this policy they do neither"
)


def unused(scenario: Scenario) -> list[str]:
    """Return what the scenario says of its cluster and its run does not use, in words."""
    works = [part for stage in scenario.graph.pipeline.stages for part in leaves(stage.work)]
    told, cluster = [], scenario.spec.cluster
    if cluster.servers is not None and not any(map(_served, works)):
        told.append("cluster.servers is not used: no table is on parameter servers (sharding.tier)")
    held = {one.setting for one in works if isinstance(one, HoldWork)}
    if cluster.unexplained_host_time and "cluster.unexplained_host_time" not in held:
        told.append(HELD_NOWHERE)
    if cluster.collectives is not None:
        told += _of_collectives(cluster.collectives, [one for one in works if isinstance(one, Collective)])
    return told


def _served(work: Work) -> bool:
    return isinstance(work, RpcWork | ServerWork) or (isinstance(work, RowWork) and work.tier == "server")


def _of_collectives(spec: CollectivesSpec, works: list[Collective]) -> Iterator[str]:
    """Yield the curves and algorithms of operations that are not done, or only among some of the ranks."""
    whole = {operation(one) for one in works if getattr(one, "group", None) is None}
    done, usual = {operation(one) for one in works}, AlgorithmsSpec()
    for name in MEASURED:
        if getattr(spec, name) is not None and name not in whole:
            yield f"the measured curve of collectives.{name} is not used: no such collective joins all ranks"
    for name, algorithm in spec.algorithms:
        if algorithm != getattr(usual, name) and name not in done:
            yield f"collectives.algorithms.{name} is not used: there is no such collective"
    if spec.per_peer and not any(isinstance(one, AllToAllWork) for one in works):
        yield "collectives.per_peer is not used: there is no all-to-all"
