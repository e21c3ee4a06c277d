"""What a report and a check say about parameter servers: the busiest one, and whether tables fit on them."""

from simulator.errors import InfeasibleError
from simulator.hardware import Cluster
from simulator.pipeline import MarkedGraph
from simulator.quantities import RpcWork, leaves
from simulator.sharding import TrainStep
from simulator.sharding.tiers import Remote

GIB = 2.0**30
WORTH_SAYING = 1.005


def busiest_server(graph: MarkedGraph) -> list[str]:
    """Return a line about the busiest server where it has more to do than the others."""
    calls = [one for stage in graph.pipeline.stages for one in leaves(stage.work) if isinstance(one, RpcWork)]
    busiest = max(calls, key=lambda call: call.hottest, default=None)
    if busiest is None or busiest.hottest < WORTH_SAYING:
        return []
    return [
        f"the busiest of {busiest.servers} parameter servers has {busiest.hottest:.3g} times the mean load "
        "and sets the time of all calls"
    ]


def check_servers_hold(cluster: Cluster, step: TrainStep) -> None:
    """Raise InfeasibleError when the tables on described servers, with optimizer state, do not fit there."""
    homes = {table: step.placed.plan.kind_of(table).home for table in step.placed.exchanged}
    fleets = {table: home for table, home in homes.items() if isinstance(home, Remote)}
    if cluster.servers is None or not fleets:
        return
    optimizer, servers = step.workload.optimizer, max(home.servers for home in fleets.values())
    total = sum(table.bytes + table.rows * optimizer.row_state_bytes(table.dimension) for table in fleets)
    have = cluster.servers.host.dram_bytes
    if total > servers * have:
        raise InfeasibleError(
            f"the tables do not fit on the parameter servers: each of {servers} needs "
            f"{total / servers / GIB:.1f} GiB and has {have / GIB:.1f} GiB; it fits with "
            f"{-(-total // have):.0f} servers"
        )
