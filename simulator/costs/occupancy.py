"""What a piece of work occupies: seconds of full use of each resource of a rank.

Resources: `tensor` and `hbm` of the accelerator, `host_to_device` and `device_to_host` copy paths,
this rank's even part of host `cores`, `dram`, `ssd` and of the PCIe switch in each direction
(`pcie_down`, `pcie_up`), the `network`, and for rows on parameter servers this rank's connection to
them (`remote`) and one of them (`server`). Occupancy over duration is the share of a resource that
the work needs to run at its full speed; at most 1.
"""

from collections.abc import Iterable
from functools import singledispatch

from simulator.costs.model import CostModel
from simulator.costs.rows import connection
from simulator.costs.rpc import busy_seconds, client_seconds
from simulator.quantities import (
    AllReduceWork,
    AllToAllWork,
    BroadcastWork,
    Collective,
    CopyWork,
    CpuWork,
    DenseWork,
    InTurn,
    PartsWork,
    PointToPointWork,
    RowWork,
    RpcWork,
    ServerWork,
    Together,
    Work,
    busiest,
)

Occupancy = dict[str, float]
OF_HOST = frozenset({"cores", "dram", "ssd", "pcie_down", "pcie_up"})  # what the ranks of a host share
THROUGH_SWITCH = {"host_to_device": "pcie_down", "device_to_host": "pcie_up"}


@singledispatch
def occupancy(work: Work, costs: CostModel) -> Occupancy:
    """Return seconds of full use by resource, on the busiest rank.

    Work that was measured as a time occupies nothing.
    """
    return {}


@occupancy.register
def _(work: DenseWork, costs: CostModel) -> Occupancy:
    """The engine is held for the whole time, gaps between launches included; passes also use HBM."""
    total = busiest(costs.seconds(work))
    accelerator = costs.cluster.accelerator
    passes = busiest(work.memory_bytes) / accelerator.streaming_bandwidth
    return {"tensor": total, "hbm": min(total, passes)}


@occupancy.register
def _(work: CpuWork, costs: CostModel) -> Occupancy:
    cluster = costs.cluster
    traffic = busiest(work.memory_bytes) / cluster.dram_bandwidth_per_rank
    return {"cores": busiest(work.core_seconds) / cluster.cores_per_rank, "dram": traffic}


@occupancy.register
def _(work: RowWork, costs: CostModel) -> Occupancy:
    """Random rows keep their memory busy all the time, at the share of its rate that they reach.

    In device memory it is the sparse engine that asks for them, where a chip has one.
    """
    total = busiest(costs.seconds(work))
    own = work.tier == "hbm" and costs.cluster.accelerator.sparse_cores > 0
    return {work.tier: total, "sparse": total} if own else {work.tier: total}


@occupancy.register
def _(work: RpcWork, costs: CostModel) -> Occupancy:
    """A client makes its calls on one core, one stage after the other; the busiest server answers all."""
    servers = costs.cluster.servers
    if servers is None or not work.calls:
        return {}
    mine = client_seconds(work, servers.rpc)
    return {
        "cores": mine / costs.cluster.cores_per_rank,
        "calls": mine,
        "server": busy_seconds(work, servers),
    }


@occupancy.register
def _(work: ServerWork, costs: CostModel) -> Occupancy:
    """A host of its own, which no rank shares."""
    return {"oracle": busiest(costs.seconds(work))}


@occupancy.register
def _(work: CopyWork, costs: CostModel) -> Occupancy:
    """A copy between host and device also passes through both memories, at their full rates."""
    total = busiest(costs.seconds(work))
    if work.path == "device":
        return {"hbm": total}
    size, cluster = busiest(work.bytes), costs.cluster
    near, far = size / cluster.accelerator.hbm_bandwidth, size / cluster.dram_bandwidth_per_rank
    found = {work.path: size / cluster.accelerator.host_link_bandwidth, "hbm": near, "dram": far}
    switch = cluster.pcie_bandwidth_per_rank
    return found | ({THROUGH_SWITCH[work.path]: size / switch} if switch else {})


@occupancy.register(AllToAllWork)
@occupancy.register(AllReduceWork)
@occupancy.register(PartsWork)
@occupancy.register(BroadcastWork)
@occupancy.register(PointToPointWork)
def _(work: Collective, costs: CostModel) -> Occupancy:
    return {"network": busiest(costs.seconds(work))}


@occupancy.register
def _(work: InTurn, costs: CostModel) -> Occupancy:
    return _added(occupancy(part, costs) for part in work.parts)


@occupancy.register
def _(work: Together, costs: CostModel) -> Occupancy:
    """A chunk that one part hands to the next passes their memory once: it is still in the host's cache.

    So the part that uses a resource most occupies it, and no resource for longer than the work takes.
    """
    most: Occupancy = {}
    for part in work.parts:
        for resource, seconds in occupancy(part, costs).items():
            most[resource] = max(most.get(resource, 0.0), seconds)
    return most


def on_links(work: Work, costs: CostModel) -> Occupancy:
    """Return seconds of full use by class of network link: bytes over its rate, start-ups left out."""
    if not work.rendezvous:
        return {}
    rates = costs.network.rates
    return _added(
        {link: flow.bytes * count / rates[link]}
        for phase in costs.phases(work)
        for flow in phase.flows
        for link, count in flow.crossing.items()
    )


def _added(parts: Iterable[Occupancy]) -> Occupancy:
    total: Occupancy = {}
    for part in parts:
        for resource, seconds in part.items():
            total[resource] = total.get(resource, 0.0) + seconds
    return total


@singledispatch
def passing(work: Work, costs: CostModel) -> Occupancy:
    """Return seconds of full use by resource of what the flows of a collective pass through on a rank.

    What is sent is read from device memory, what is received is written there. Flows out of the fast
    domain also pass the accelerator's host link where its network card is behind the same switch, and the
    card that leads to parameter servers; over PCIe, those within the domain pass the host link, too.
    """
    return {}


@passing.register(AllToAllWork)
@passing.register(AllReduceWork)
@passing.register(PartsWork)
@passing.register(BroadcastWork)
@passing.register(PointToPointWork)
def _(work: Collective, costs: CostModel) -> Occupancy:
    near, far = moved(work, costs)
    cluster, chip = costs.cluster, costs.cluster.accelerator
    found = {"hbm": 2 * (near + far) / chip.hbm_bandwidth}
    if far:
        found["remote"] = far / connection(cluster)  # the card that also leads to the servers
    pcie = cluster.fabric.on_host_links
    over = (near if pcie else 0.0) + (far if pcie or cluster.cards_on_host_link else 0.0)
    return found | {path: over / chip.host_link_bandwidth for path in THROUGH_SWITCH if over}


@passing.register
def _(work: InTurn, costs: CostModel) -> Occupancy:
    return _added(passing(part, costs) for part in work.parts)


def moved(work: Collective, costs: CostModel) -> tuple[float, float]:
    """Return the bytes that the busiest rank sends, and receives, within its fast domain and out of it."""
    flows = [flow for phase in costs.plan(work).phases for flow in phase.flows]
    near, far = (sum(flow.bytes * getattr(flow, way) for flow in flows) for way in ("near", "far"))
    if near or far or not flows:
        return near, far
    group = None if isinstance(work, PointToPointWork) else work.group
    here, size = costs.network.ground(group), busiest(work.bytes)  # flows between unlike ranks do not say it
    if isinstance(work, AllToAllWork) and work.received_bytes is not None:
        size = max(size, busiest(work.received_bytes))
    return size * here.staying, size * here.leaving
