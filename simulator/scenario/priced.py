"""What a price of the catalog buys, and what the cluster has beyond that: prices are those of one machine."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from simulator.hardware import Cluster, TwoLevel, catalog
from simulator.scenario.cluster_spec import ClusterSpec
from simulator.units import format_bandwidth, format_bytes

PRICE_OF = "price of "  # how each line begins
MORE = 1.05  # what is larger by no more than that counts as the same


@dataclass(frozen=True)
class _Trait:
    """A quantity of a cluster, per accelerator: zero where nothing can be said, or nothing is used."""

    words: str
    of: Callable[[Cluster], float]
    text: Callable[[float], str] = "{:,.4g}".format


def _out(cluster: Cluster) -> float:
    """Return the nominal bytes/s that leave the fast domain, of a cluster that is larger than one."""
    if cluster.ranks <= cluster.fabric.domain_size(cluster.per_host):
        return 0.0
    return cluster.fabric.between if isinstance(cluster.fabric, TwoLevel) else _cards(cluster)


def _cards(cluster: Cluster) -> float:
    """Return the nominal bytes/s of an accelerator's part of the network cards of a wired fabric."""
    groups = getattr(getattr(cluster.fabric, "plan", None), "groups", ())
    nics = groups[0].nics if groups else None
    return float(nics.link.bandwidth * nics.per_host / cluster.per_host) if nics else 0.0


def _within(cluster: Cluster) -> float:
    """Return the nominal bytes/s inside the fast domain."""
    fabric = cluster.fabric
    if isinstance(fabric, TwoLevel):
        return fabric.within
    return fabric.injection_bandwidth() / float(getattr(fabric, "efficiency", 1.0))


def _domain(cluster: Cluster) -> float:
    return min(cluster.ranks, cluster.fabric.domain_size(cluster.per_host))


_TRAITS = (
    _Trait("out of the fast domain", _out, format_bandwidth),
    _Trait("within it", _within, format_bandwidth),
    _Trait("accelerators in it", _domain),
    _Trait("of device memory", lambda cluster: cluster.accelerator.hbm_bytes, format_bytes),
    _Trait("accelerators per host", lambda cluster: cluster.per_host),
    _Trait("host cores", lambda cluster: cluster.host.cores / cluster.per_host),
    _Trait("of host memory", lambda cluster: cluster.host.dram_bytes / cluster.per_host, format_bytes),
)


def unlike_priced(spec: ClusterSpec, cluster: Cluster) -> list[str]:
    """Return one line for each accelerator whose price is that of a machine with less than `cluster` has.

    `spec` is what the cluster was built from. Compared is what one accelerator has: nominal rates of its
    network, the fast domain, its memory and its part of the host. Accelerators that are written out bring
    their own price and are not judged.
    """
    named = [group.accelerator for group in spec.groups or (spec,)]
    lines = (
        _line(name, one)
        for name, one in zip(named, cluster.by_group, strict=True)
        if isinstance(name, str) and cluster.price_usd_per_hour is not None
    )
    return list(dict.fromkeys(line for line in lines if line))


def _line(name: str, cluster: Cluster) -> str:
    machine = catalog.entry("accelerator", name)["price_usd_per_hour"]["of"]
    found = list(_beyond(cluster, _priced(machine, cluster)))
    if not found:
        return ""
    bought = ", ".join(f"{text} {words}" for words, text, _ in found)
    has = ", ".join(text for _, _, text in found)
    return f"{PRICE_OF}{name} is that of {machine} (per accelerator {bought}), and this cluster has {has}"


def _priced(machine: str, like: Cluster) -> Cluster:
    """Return as many hosts of the machine as `like` needs for its accelerators."""
    sold = catalog.machine(machine)
    return sold.cluster(-(-like.ranks // sold.per_host))


def _beyond(cluster: Cluster, priced: Cluster) -> Iterator[tuple[str, str, str]]:
    """Yield in which respect the cluster has more, and what both have, in words."""
    for trait in _TRAITS:
        bought, has = trait.of(priced), trait.of(cluster)
        if bought and has > MORE * bought:
            yield trait.words, trait.text(bought), trait.text(has)
