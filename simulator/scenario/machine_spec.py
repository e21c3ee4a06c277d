"""Accelerators and groups of hosts in a scenario: written out, or named from the catalog."""

from typing import Any, Literal

from simulator.errors import InputError
from simulator.hardware import Accelerator, Host, HostGroup, catalog
from simulator.scenario.base import Spec
from simulator.scenario.fields import (
    Bandwidth,
    Bytes,
    Count,
    CountOrZero,
    FlopRate,
    Fraction,
    MoneyRate,
    Power,
    Time,
)
from simulator.scenario.servers_spec import HostSpec
from simulator.units import usd_per_hour


class AcceleratorSpec(Spec):
    """An accelerator written out instead of named from the catalog.

    `name` also says whose laws of matrix products hold (`compute: {kind: kernels}`), scaled by rates: that of
    an accelerator of the catalog finds what was measured on it, any other name the analytic form alone.
    """

    name: str
    kind: Literal["gpu", "npu", "tpu"]
    peak_flops: dict[str, FlopRate]
    hbm_bytes: Bytes
    hbm_bandwidth: Bandwidth
    cache_bytes: Bytes
    launch_time: Time
    matrix_efficiency: Fraction
    memory_efficiency: Fraction
    gather_efficiency: Fraction
    host_link_bandwidth: Bandwidth
    vector_flops: FlopRate | None = None
    sparse_cores: CountOrZero = 0
    tensor_cores: CountOrZero = 0
    price_usd_per_hour: MoneyRate | None = None
    power_watts: Power | None = None

    def build(self) -> Accelerator:
        """Return the accelerator."""
        return Accelerator(**{**dict(self), "price_usd_per_hour": usd_per_hour(self.price_usd_per_hour)})


class GroupSpec(Spec):
    """Hosts that differ from others of the cluster; see `ClusterSpec` for what may be left out."""

    accelerator: str | AcceleratorSpec
    hosts: Count
    host: str | HostSpec | None = None

    def build(self) -> HostGroup:
        """Return the group. Raises InputError on unknown names."""
        return HostGroup(accelerator_of(self.accelerator), host_of(self.host, self.accelerator), self.hosts)


def accelerator_of(named: str | AcceleratorSpec) -> Accelerator:
    """Return an accelerator by its name in the catalog or as written out."""
    return catalog.accelerator(named) if isinstance(named, str) else named.build()


def host_of(named: str | HostSpec | None, accelerator: str | AcceleratorSpec) -> Host:
    """Return a host; None is that of the catalog's machine with this accelerator."""
    if named is None:
        return catalog.machine(machine_with(accelerator, "host")).host
    return catalog.host(named) if isinstance(named, str) else named.build()


def machine_with(accelerator: str | AcceleratorSpec, part: str) -> str:
    """Return the catalog machine that carries this accelerator; it lends its `part`.

    Machines that are there for their prices only lend nothing.
    """
    for name in catalog.names("machine"):
        entry = catalog.entry("machine", name)
        if entry["accelerator"] == accelerator and not entry.get("only_priced"):
            return name
    raise InputError(f"no machine of the catalog has this accelerator, so give its {part}")


def what_follows(data: Any) -> Any:
    """Return the fields of a cluster with those that follow from its groups, as far as they are well written.

    Raises ValueError where such a field is given and says something else.
    """
    groups = data.get("groups") if isinstance(data, dict) else None
    if not (isinstance(groups, list | tuple) and groups and all(isinstance(one, dict) for one in groups)):
        return data
    first, counts = groups[0], [one.get("hosts") for one in groups]
    follows = {name: first.get(name) for name in ("accelerator", "host")}
    if all(isinstance(count, int) or (isinstance(count, float) and count.is_integer()) for count in counts):
        follows["hosts"] = sum(map(int, counts))  # a count may be written 2e3
    for name in follows:
        if data.get(name) not in (None, follows[name]):
            raise ValueError(f"with groups, {name} stands in them alone: leave out cluster.{name}")
    return {**data, **{name: value for name, value in follows.items() if value is not None}}
