"""Clusters: equal hosts full of equal accelerators on one fabric, and the servers they are made of."""

from dataclasses import dataclass, replace

from simulator.errors import InputError
from simulator.hardware import checks
from simulator.hardware.fabric import Fabric
from simulator.hardware.parts import Accelerator, Host
from simulator.hardware.slowdown import Slowdown, speed
from simulator.quantities import Amount


@dataclass(frozen=True)
class Cluster:
    """`hosts` hosts with `per_host` accelerators each; one rank drives one accelerator.

    Raises InputError on counts below one and on a fabric that cannot wire so many.
    """

    accelerator: Accelerator
    host: Host
    fabric: Fabric
    per_host: int
    hosts: int
    slow: tuple[Slowdown, ...] = ()

    def __post_init__(self) -> None:
        """Check the counts against each other and against the fabric."""
        checks.counts("cluster", per_host=self.per_host, hosts=self.hosts)
        self.fabric.check(self.ranks, self.per_host)

    @property
    def ranks(self) -> int:
        """The number of accelerators."""
        return self.per_host * self.hosts

    def speed(self, resource: str) -> Amount:
        """Return each rank's share of its nominal speed at `resource` (see `Slowdown`)."""
        return speed(self.slow, resource, self.ranks)

    @property
    def cores_per_rank(self) -> float:
        """The host cores that each rank has when all share evenly."""
        return self.host.cores / self.per_host

    @property
    def dram_bytes_per_rank(self) -> float:
        """The bytes of host memory that each rank has when all share evenly."""
        return self.host.dram_bytes / self.per_host

    @property
    def dram_bandwidth_per_rank(self) -> float:
        """The nominal bytes/s of host memory that each rank has when all share evenly."""
        return self.host.dram_bandwidth / self.per_host

    @property
    def power_watts(self) -> float | None:
        """The watts of all accelerators and hosts at full load; None if a part is unknown."""
        if self.accelerator.power_watts is None or self.host.power_watts is None:
            return None
        return self.ranks * self.accelerator.power_watts + self.hosts * self.host.power_watts

    @property
    def price_usd_per_hour(self) -> float | None:
        """The price of the whole cluster in USD per hour; None if that of the accelerator is unknown.

        A host without a price of its own is paid with its accelerators, as clouds sell it.
        """
        if self.accelerator.price_usd_per_hour is None:
            return None
        hosts = self.hosts * (self.host.price_usd_per_hour or 0.0)
        return self.ranks * self.accelerator.price_usd_per_hour + hosts

    def with_workers(self, workers: int) -> "Cluster":
        """Return the cluster with `workers` ranks: `per_host` stays, `hosts` changes.

        Raises InputError when `workers` does not fill whole hosts.
        """
        hosts, left = divmod(workers, self.per_host)
        if left or hosts < 1:
            raise InputError(f"{workers} workers do not fill hosts of {self.per_host}: {self._near(hosts)}")
        return replace(self, hosts=hosts, fabric=self.fabric.resized(workers))

    def _near(self, hosts: int) -> str:
        below, above = hosts * self.per_host, (max(hosts, 0) + 1) * self.per_host
        return f"take {below} or {above}" if below > 0 else f"take {above}"


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
