"""Clusters: hosts full of accelerators on one fabric, and the servers they are made of."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.errors import InputError
from simulator.hardware import checks
from simulator.hardware.fabric import Fabric
from simulator.hardware.parts import Accelerator, Host
from simulator.hardware.servers import Servers
from simulator.hardware.slowdown import Slowdown, speed
from simulator.quantities import Amount, IntArray


@dataclass(frozen=True)
class HostGroup:
    """`hosts` equal hosts that follow one another in a cluster.

    Raises InputError on a count below one.
    """

    accelerator: Accelerator
    host: Host
    hosts: int

    def __post_init__(self) -> None:
        """Check the count."""
        checks.counts("group", hosts=self.hosts)


@dataclass(frozen=True)
class Cluster:
    """`hosts` hosts with `per_host` accelerators each; one rank drives one accelerator.

    `host_limit` is the most that one rank can use of its host while the others leave it idle, in even
    parts (None: all of it). `cards_on_host_link` says whether what leaves the fast domain passes the
    accelerator's host link. Rates per rank are those of `even_parts` parts of a host. `servers` describes
    parameter servers (None: hosts like the others, whose calls cost nothing). The last hosts are those of
    `others`, where hosts or accelerators differ; rates here are those of the first group, sizes the
    smallest of all.

    Raises InputError on counts below one and on a fabric that cannot wire so many.
    """

    accelerator: Accelerator
    host: Host
    fabric: Fabric
    per_host: int
    hosts: int
    slow: tuple[Slowdown, ...] = ()
    host_limit: float | None = None
    cards_on_host_link: bool = True
    even_parts: float = 1.0
    servers: Servers | None = None
    others: tuple[HostGroup, ...] = ()

    def __post_init__(self) -> None:
        """Check the counts against each other and against the fabric."""
        checks.counts("cluster", per_host=self.per_host, hosts=self.hosts)
        self.fabric.check(self.ranks, self.per_host)
        if self.host_limit is not None and not self.host_limit >= 1.0:
            raise InputError(f"host_limit must be at least one even part, not {self.host_limit:g}")
        if self.others:
            checks.counts("the first group of hosts", hosts=self.groups[0].hosts)

    @property
    def ranks(self) -> int:
        """The number of accelerators."""
        return self.per_host * self.hosts

    @property
    def groups(self) -> tuple[HostGroup, ...]:
        """All hosts, in groups of equal ones."""
        first = self.hosts - sum(group.hosts for group in self.others)
        return (HostGroup(self.accelerator, self.host, first), *self.others)

    def with_groups(self, groups: Sequence[HostGroup]) -> "Cluster":
        """Return the cluster with other groups, as many hosts in all."""
        first, *others = groups
        return replace(self, accelerator=first.accelerator, host=first.host, others=tuple(others))

    @property
    def accelerators(self) -> str:
        """How many of which accelerators, in words."""
        each = [(group.hosts * self.per_host, group.accelerator.name) for group in self.groups]
        return " and ".join(f"{count:,} x {name}" for count, name in each)

    @property
    def by_group(self) -> "tuple[Cluster, ...]":
        """For each group, the cluster as if all its hosts were of that group."""
        return tuple(
            replace(self, accelerator=group.accelerator, host=group.host, others=()) for group in self.groups
        )

    @property
    def kind_of(self) -> IntArray | None:
        """The group that each rank is in, where there are several."""
        if not self.others:
            return None
        sizes = [group.hosts * self.per_host for group in self.groups]
        return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)

    @property
    def hbm_bytes(self) -> float:
        """The bytes of device memory that every rank has."""
        return min(group.accelerator.hbm_bytes for group in self.groups)

    @property
    def ssd_bytes_per_rank(self) -> float:
        """The bytes of disk that every rank has when all share evenly."""
        return min((group.host.ssd_bytes or 0.0) / self.per_host for group in self.groups)

    def speed(self, resource: str) -> Amount:
        """Return each rank's share of its nominal speed at `resource` (see `Slowdown`)."""
        return speed(self.slow, resource, self.ranks)

    @property
    def cores_per_rank(self) -> float:
        """The host cores that each rank has when all share evenly."""
        return self.host.cores * self._part

    @property
    def dram_bytes_per_rank(self) -> float:
        """The bytes of host memory that each rank has when all share evenly."""
        return min(group.host.dram_bytes for group in self.groups) / self.per_host

    @property
    def dram_bandwidth_per_rank(self) -> float:
        """The nominal bytes/s of host memory that each rank has when all share evenly."""
        return self.host.dram_bandwidth * self._part

    @property
    def ssd_bandwidth_per_rank(self) -> float | None:
        """The bytes/s of the host's disks that each rank has when all share evenly; None without disks."""
        return self.host.ssd_bandwidth and self.host.ssd_bandwidth * self._part

    @property
    def pcie_bandwidth_per_rank(self) -> float | None:
        """The bytes/s through the host's PCIe switch when all share evenly; None where nothing is shared."""
        return self.host.pcie_bandwidth and self.host.pcie_bandwidth * self._part

    @property
    def copy_bandwidth(self) -> float:
        """The bytes/s of a copy between host and device, in each direction."""
        link, switch = self.accelerator.host_link_bandwidth, self.pcie_bandwidth_per_rank
        return min(link, switch) if switch else link

    @property
    def _part(self) -> float:
        return self.even_parts / self.per_host

    @property
    def with_host_to_itself(self) -> "Cluster":
        """The cluster as a rank sees it that is alone on its host, as far as it can make use of that."""
        most = self.per_host if self.host_limit is None else min(self.host_limit, self.per_host)
        return replace(self, even_parts=float(most))

    @property
    def power_watts(self) -> float | None:
        """The watts of all accelerators and hosts at full load; None if a part is unknown."""
        return _sum(
            (group.hosts * (self.per_host * group.accelerator.power_watts + group.host.power_watts))
            if group.accelerator.power_watts is not None and group.host.power_watts is not None
            else None
            for group in self.groups
        )

    @property
    def price_usd_per_hour(self) -> float | None:
        """The price of the whole cluster in USD per hour; None if that of an accelerator is unknown.

        A host without a price of its own is paid with its accelerators, as clouds sell it.
        """
        return _sum(
            group.hosts
            * (self.per_host * group.accelerator.price_usd_per_hour + (group.host.price_usd_per_hour or 0.0))
            if group.accelerator.price_usd_per_hour is not None
            else None
            for group in self.groups
        )

    def with_workers(self, workers: int) -> "Cluster":
        """Return the cluster with `workers` ranks: `per_host` stays, `hosts` changes.

        Raises InputError when `workers` does not fill whole hosts, or are too many.
        """
        checks.ranks(workers)
        if self.others and workers != self.ranks:
            raise InputError(f"a cluster of several groups has {self.ranks} workers: change cluster.groups")
        hosts, left = divmod(workers, self.per_host)
        if left or hosts < 1:
            raise InputError(f"{workers} workers do not fill hosts of {self.per_host}: {self._near(hosts)}")
        return replace(self, hosts=hosts, fabric=self.fabric.resized(workers))

    def _near(self, hosts: int) -> str:
        below, above = hosts * self.per_host, (max(hosts, 0) + 1) * self.per_host
        return f"take {below} or {above}" if below > 0 else f"take {above}"


def _sum(amounts: Iterable[float | None]) -> float | None:
    """Return the sum, or None where one is unknown."""
    known = list(amounts)
    return None if None in known else sum(amount for amount in known if amount is not None)


@dataclass(frozen=True)
class Machine:
    """One server model: which accelerators, how many, in which host, on which fabric."""

    name: str
    accelerator: Accelerator
    host: Host
    fabric: Fabric
    per_host: int

    def __post_init__(self) -> None:
        """Raise InputError on a count below one."""
        checks.counts(self.name, per_host=self.per_host)

    def cluster(self, hosts: int) -> Cluster:
        """Return a cluster of `hosts` such servers, the fabric resized to fit."""
        checks.counts(self.name, hosts=hosts)
        fabric = self.fabric.resized(hosts * self.per_host)
        return Cluster(self.accelerator, self.host, fabric, self.per_host, hosts)
