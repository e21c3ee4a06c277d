"""Remote procedure calls: the client's part, the queue at the busiest server, and what a host does for all.

The parameters are the software's (`simulator.hardware.servers.Rpc`), not a network's: bytes on wires are
costed apart, as rows, and stream through the calls.
"""

import numpy as np

from simulator.costs.queueing import departures_of_cores
from simulator.costs.rows import servers_of
from simulator.hardware import Cluster
from simulator.hardware.servers import Rpc, Servers
from simulator.quantities import RpcWork, ServerWork

MOST_CUSTOMERS = 200_000  # of one queue; more are served as a fluid


def rpc_seconds(work: RpcWork, cluster: Cluster) -> float:
    """Return the time from the first call of all ranks to the last answer, seconds."""
    if cluster.servers is None or not work.calls:
        return 0.0
    rpc = cluster.servers.rpc
    client = client_seconds(work, rpc)
    return max(client, _in_turn(work, cluster.servers) if work.in_turn else _at_once(work, cluster.servers))


def client_seconds(work: RpcWork, rpc: Rpc) -> float:
    """Return what the calls take when no server keeps anybody waiting."""
    handled = rpc.per_byte * work.bytes
    if work.in_turn:
        return rpc.in_turn * work.calls * work.servers + handled
    return rpc.first + rpc.pipelined * (work.calls - 1) * work.servers + handled


def service_seconds(work: RpcWork, rpc: Rpc) -> float:
    """Return what one call takes on one core of the busiest server."""
    share = work.bytes / (work.calls * work.servers)
    return rpc.server_call + rpc.server_per_byte * share * work.hottest


def busy_seconds(work: RpcWork, servers: Servers) -> float:
    """Return how long the busiest server works on the calls of all ranks with all of its cores."""
    return work.ranks * work.calls * service_seconds(work, servers.rpc) / servers.host.cores


def _in_turn(work: RpcWork, servers: Servers) -> float:
    """Return the time when each of ranks/servers clients waits for an answer before it calls again.

    Clients go round the servers one call apart. A round takes the client's time, or, where that is
    longer, the service of all clients that are at one server (our derivation: a closed queue of equal
    customers, whose throughput is the smaller of the two).
    """
    at_one = max(1.0, work.ranks / work.servers)
    service = service_seconds(work, servers.rpc) * at_one / servers.host.cores
    return service * work.calls * work.servers


def _at_once(work: RpcWork, servers: Servers) -> float:
    """Return when the busiest server has answered the last call; calls leave a client evenly spaced."""
    customers = work.ranks * work.calls
    if customers > MOST_CUSTOMERS:
        return busy_seconds(work, servers)
    service = service_seconds(work, servers.rpc)
    sent = np.repeat(np.arange(max(1, round(work.calls))) * servers.rpc.pipelined * work.servers, work.ranks)
    return float(departures_of_cores(sent, service, servers.host.cores)[-1])


def server_seconds(work: ServerWork, cluster: Cluster) -> float:
    """Return the time of a host that works for all ranks: cores and network card at the same time."""
    servers = servers_of(cluster)
    spent = work.core_seconds + servers.key_time * work.keys
    return max(spent / servers.host.cores, work.sent_bytes / servers.bandwidth)
