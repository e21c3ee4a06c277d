"""Which plan of the network does which kind of collective."""

from functools import singledispatch

from simulator.costs.algorithms import Plan
from simulator.costs.collectives import Network
from simulator.errors import InputError
from simulator.quantities import (
    AllGatherWork,
    AllReduceWork,
    AllToAllWork,
    BroadcastWork,
    PointToPointWork,
    ReduceScatterWork,
    Work,
)


@singledispatch
def plan(work: Work, network: Network) -> Plan:
    """Return how a collective is done once: the algorithm and its phases. InputError for other work."""
    raise InputError(f"no algorithm is known for {type(work).__name__}")


@plan.register
def _(work: AllToAllWork, network: Network) -> Plan:
    received = work.bytes if work.received_bytes is None else work.received_bytes
    return network.all_to_all(work.bytes, received, work.group)


@plan.register
def _(work: AllReduceWork, network: Network) -> Plan:
    return network.all_reduce(work.bytes, work.group)


@plan.register
def _(work: ReduceScatterWork, network: Network) -> Plan:
    return network.reduce_scatter(work.bytes, work.group)


@plan.register
def _(work: AllGatherWork, network: Network) -> Plan:
    return network.all_gather(work.bytes, work.group)


@plan.register
def _(work: BroadcastWork, network: Network) -> Plan:
    return network.broadcast(work.bytes, work.group)


@plan.register
def _(work: PointToPointWork, network: Network) -> Plan:
    return network.point_to_point(work.bytes, work.distance)
