"""The `cluster` part of a scenario: catalog names or written-out hardware, and what was measured of it."""

from typing import Annotated, Literal

from pydantic import Field

from simulator.costs import CostModel, DenseSpeed, Roofline, Utilization
from simulator.errors import InputError
from simulator.hardware import Accelerator, Cluster, Fabric, Host, Slowdown, Torus, TwoLevel, catalog
from simulator.scenario.base import Spec
from simulator.scenario.fields import (
    Bandwidth,
    Bytes,
    Count,
    CountOrZero,
    FlopRate,
    Fraction,
    MoneyRate,
    PositiveFloat,
    Power,
    Time,
)

MOST_RANKS = 1 << 20


class AcceleratorSpec(Spec):
    """An accelerator written out instead of named from the catalog."""

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
    price_usd_per_hour: MoneyRate | None = None
    power_watts: Power | None = None

    def build(self) -> Accelerator:
        """Return the accelerator."""
        return Accelerator(**dict(self))


class HostSpec(Spec):
    """A host written out instead of named from the catalog."""

    name: str
    cores: Count
    dram_bytes: Bytes
    dram_bandwidth: Bandwidth
    dram_efficiency: Fraction
    power_watts: Power | None = None
    price_usd_per_hour: MoneyRate | None = None

    def build(self) -> Host:
        """Return the host."""
        return Host(**dict(self))


class TwoLevelSpec(Spec):
    """A fast level in a domain (default: the host) and a slower one between domains.

    Rates are per accelerator and direction. `latency` holds for both levels unless
    `within_latency` gives the fast one its own. `decay_workers`: the number of workers at which
    the rate between domains has halved.
    """

    kind: Literal["two_level"]
    within: Bandwidth
    between: Bandwidth
    latency: Time
    within_latency: Time | None = None
    domain: Count | None = None
    within_efficiency: Fraction = 1.0
    between_efficiency: Fraction = 1.0
    decay_workers: PositiveFloat | None = None

    def build(self) -> Fabric:
        """Return the fabric."""
        within = self.latency if self.within_latency is None else self.within_latency
        return TwoLevel(
            self.within,
            self.between,
            within_latency=within,
            between_latency=self.latency,
            domain=self.domain,
            within_efficiency=self.within_efficiency,
            between_efficiency=self.between_efficiency,
            decay_workers=self.decay_workers,
        )


class TorusSpec(Spec):
    """A 1-, 2- or 3-dimensional torus of accelerators."""

    kind: Literal["torus"]
    dims: Annotated[tuple[Count, ...], Field(min_length=1, max_length=3)]
    link_bandwidth: Bandwidth
    hop_latency: Time
    wrap: bool = True
    efficiency: Fraction = 1.0

    def build(self) -> Fabric:
        """Return the fabric."""
        return Torus(self.dims, self.link_bandwidth, self.hop_latency, self.wrap, self.efficiency)


FabricSpec = Annotated[TwoLevelSpec | TorusSpec, Field(discriminator="kind")]


class RooflineSpec(Spec):
    """Dense work by matrix rate, memory passes and launches."""

    kind: Literal["roofline"]

    def build(self) -> DenseSpeed:
        """Return the roofline."""
        return Roofline()


class UtilizationSpec(Spec):
    """Dense work by a measured share of the peak for the whole model."""

    kind: Literal["utilization"]
    share: Fraction
    source: str

    def build(self) -> DenseSpeed:
        """Return the utilization."""
        return Utilization(self.share)


ComputeSpec = Annotated[RooflineSpec | UtilizationSpec, Field(discriminator="kind")]


class SlowSpec(Spec):
    """Hosts or ranks (numbered from 0) that reach only a share of their nominal speed."""

    hosts: Annotated[tuple[CountOrZero, ...], Field(max_length=100_000)] = ()
    ranks: Annotated[tuple[CountOrZero, ...], Field(max_length=100_000)] = ()
    compute: Fraction = 1.0
    memory: Fraction = 1.0
    host: Fraction = 1.0
    copy_links: Fraction = 1.0
    network: Fraction = 1.0

    def build(self, per_host: int) -> Slowdown:
        """Return the slowdown of all ranks named, those of named hosts included."""
        hosted = [host * per_host + place for host in self.hosts for place in range(per_host)]
        ranks = tuple(sorted({*hosted, *self.ranks}))
        return Slowdown(ranks, self.compute, self.memory, self.host, self.copy_links, self.network)


class ClusterSpec(Spec):
    """Hosts of accelerators on a fabric.

    `host` and `fabric` default to those of the catalog's machine with the same accelerator and
    `per_host`. `unexplained_host_time` is per worker of the job, held half in route, half in
    retrieve; it stands for measured time that no resource explains and is flagged in every table.
    """

    accelerator: str | AcceleratorSpec
    per_host: Count
    hosts: Count
    host: str | HostSpec | None = None
    fabric: str | FabricSpec | None = None
    compute: ComputeSpec = RooflineSpec(kind="roofline")
    unexplained_host_time: Time | None = None
    slow: Annotated[tuple[SlowSpec, ...], Field(max_length=1000)] = ()

    def build(self) -> Cluster:
        """Return the cluster. Raises InputError on unknown names and on parts that do not fit."""
        if self.per_host * self.hosts > MOST_RANKS:
            raise InputError(
                f"{self.per_host * self.hosts:,} workers are too many; at most {MOST_RANKS:,} are allowed"
            )
        accelerator = self._accelerator()
        fabric = self._fabric().resized(self.per_host * self.hosts)
        slow = tuple(one.build(self.per_host) for one in self.slow)
        return Cluster(accelerator, self._host(), fabric, self.per_host, self.hosts, slow)

    def costs(self, cluster: Cluster) -> CostModel:
        """Return how fast work goes on `cluster`."""
        return CostModel(cluster, self.compute.build())

    def _accelerator(self) -> Accelerator:
        named = self.accelerator
        return catalog.accelerator(named) if isinstance(named, str) else named.build()

    def _host(self) -> Host:
        if self.host is None:
            return catalog.machine(self._machine("host")).host
        return catalog.host(self.host) if isinstance(self.host, str) else self.host.build()

    def _fabric(self) -> Fabric:
        if self.fabric is None:
            return catalog.machine(self._machine("fabric")).fabric
        return catalog.fabric(self.fabric) if isinstance(self.fabric, str) else self.fabric.build()

    def _machine(self, part: str) -> str:
        """Return the catalog machine that carries this accelerator; it lends its `part`."""
        for name in catalog.names("machine"):
            if catalog.entry("machine", name)["accelerator"] == self.accelerator:
                return name
        raise InputError(f"cluster: no machine of the catalog has this accelerator, so give its {part}")
