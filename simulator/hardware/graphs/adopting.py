"""The wiring of the plain fabrics: what a `TwoLevel` or a `Torus` of a cluster looks like link by link."""

from functools import singledispatch

from simulator.errors import InputError
from simulator.hardware.cluster import Cluster
from simulator.hardware.fabric import Fabric, Link, TwoLevel
from simulator.hardware.graphs.inside import Switched
from simulator.hardware.graphs.networks import Nics
from simulator.hardware.graphs.torus_wiring import TorusWiring
from simulator.hardware.graphs.wiring import Group, Wiring
from simulator.hardware.torus import Torus


def wiring(cluster: Cluster) -> Wiring | TorusWiring:
    """Return the wiring of a cluster; `build`, `fold` and `draw` take it from there.

    Raises InputError for a kind of fabric that has no known wiring.
    """
    return _wiring(cluster.fabric, cluster)


@singledispatch
def _wiring(fabric: Fabric, cluster: Cluster) -> Wiring | TorusWiring:
    raise InputError(f"the wiring of a {type(fabric).__name__} fabric is not known")


@_wiring.register
def _(fabric: TwoLevel, cluster: Cluster) -> Wiring:
    """A switch in each domain, a NIC for each accelerator, and nothing else that limits.

    A latency from accelerator to accelerator is spread evenly over the two links of the way.
    """
    domain = min(fabric.domain_size(cluster.per_host), cluster.ranks)
    per_host = min(domain, cluster.per_host)
    inside, nics = Switched(_half_way(fabric.fast)), Nics(_half_way(fabric.slow(cluster.ranks)), per_host)
    hosts = cluster.ranks // per_host
    return Wiring((Group(hosts, per_host, inside, nics, domain_hosts=domain // per_host),))


def _half_way(link: Link) -> Link:
    return Link(link.bandwidth, link.latency / 2, link.efficiency)


@_wiring.register
def _(fabric: Torus, cluster: Cluster) -> TorusWiring:
    link = Link(fabric.link_bandwidth, fabric.hop_latency, fabric.efficiency)
    return TorusWiring(fabric.dims, link, (fabric.wrap,) * len(fabric.dims))
