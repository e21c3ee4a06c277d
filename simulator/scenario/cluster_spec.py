"""The `cluster` part of a scenario: catalog names or written-out hardware, and what was measured of it."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from simulator.costs import CostModel, DenseSpeed, Roofline, Utilization
from simulator.costs.curves import Curve
from simulator.costs.rows import FromMemory, OnChip, RowSpeed
from simulator.errors import InputError
from simulator.hardware import Accelerator, Cluster, Fabric, Host, Slowdown, catalog
from simulator.scenario.base import Spec
from simulator.scenario.fabric_spec import FabricSpec, Shape
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
    cache_bytes: Bytes = 0.0
    ssd_bytes: Bytes | None = None
    ssd_bandwidth: Bandwidth | None = None

    def build(self) -> Host:
        """Return the host."""
        return Host(**dict(self))


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
        """Return the utilization. Raises InputError for a share of nothing."""
        if self.share <= 0:
            raise InputError("compute.share must be above 0")
        return Utilization(self.share)


ComputeSpec = Annotated[RooflineSpec | UtilizationSpec, Field(discriminator="kind")]


class RowsFromMemorySpec(Spec):
    """Every access to a row reaches its memory."""

    kind: Literal["from_memory"]

    def build(self) -> RowSpeed:
        """Return the speed of rows."""
        return FromMemory()


class RowsOnChipSpec(Spec):
    """The hottest rows stay in the caches of accelerator and host, `speedup` times as fast."""

    kind: Literal["on_chip"]
    speedup: PositiveFloat = 3.0

    def build(self) -> RowSpeed:
        """Return the speed of rows. Raises InputError for a speedup below 1."""
        return OnChip(self.speedup)


RowsSpec = Annotated[RowsFromMemorySpec | RowsOnChipSpec, Field(discriminator="kind")]


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
        hosted = [host * per_host + place for host in set(self.hosts) for place in range(per_host)]
        ranks = tuple(sorted({*hosted, *self.ranks}))
        return Slowdown(ranks, self.compute, self.memory, self.host, self.copy_links, self.network)


class FittedAtSpec(Spec):
    """Where the fitted numbers of the cluster come from: the batches and workers of the measurements."""

    batch: Annotated[tuple[Count, ...], Field(min_length=1)]
    workers: Annotated[tuple[Count, ...], Field(min_length=1)]

    def outside(self, batch: int, workers: int) -> list[str]:
        """Return what lies outside of the measurements, in words."""
        asked = (("batch", batch, self.batch), ("workers", workers, self.workers))
        return [
            f"{name} {value:,} (the cluster's numbers were fitted at {_span(known)})"
            for name, value, known in asked
            if not min(known) <= value <= max(known)
        ]


def _span(known: tuple[int, ...]) -> str:
    low, high = min(known), max(known)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


class CollectivesSpec(Spec):
    """Measured collectives of the catalog (`recscale catalog list collective`) in place of links."""

    all_to_all: str | None = None
    all_reduce: str | None = None

    def build(self) -> dict[str, Curve]:
        """Return the curves by operation. Raises InputError on unknown names and other operations."""
        from simulator.costs.curve_catalog import curve

        found = {operation: curve(name) for operation, name in self if name is not None}
        for operation, one in found.items():
            if one.operation != operation:
                raise InputError(f"collectives.{operation}: that curve was measured for {one.operation}")
        return found


class ClusterSpec(Spec):
    """Hosts of accelerators on a fabric.

    `host` and `fabric` default to those of the catalog's machine with the same accelerator and
    `per_host`. `unexplained_host_time` is per worker of the job, held half in route, half in
    retrieve; it stands for measured time that no resource explains and is flagged in every table.
    Outside of `fitted_at`, reports are marked as extrapolated.
    """

    accelerator: str | AcceleratorSpec
    per_host: Annotated[Count, Field(le=4096)]
    hosts: Count
    host: str | HostSpec | None = None
    fabric: str | FabricSpec | None = None
    compute: ComputeSpec = RooflineSpec(kind="roofline")
    rows: RowsSpec = RowsFromMemorySpec(kind="from_memory")
    unexplained_host_time: Time | None = None
    fitted_at: FittedAtSpec | None = None
    collectives: CollectivesSpec | None = None
    slow: Annotated[tuple[SlowSpec, ...], Field(max_length=1000)] = ()

    def build(self, folder: Path) -> Cluster:
        """Return the cluster; files are looked for in `folder`.

        Raises InputError on unknown names and on parts that do not fit.
        """
        workers = self.per_host * self.hosts
        if workers > MOST_RANKS:
            raise InputError(f"{workers:,} workers are too many; at most {MOST_RANKS:,} are allowed")
        accelerator = self._accelerator()  # first: an unknown name has no machine either
        fabric = self._fabric(Shape(self.per_host, self.hosts, folder)).resized(workers)
        slow = tuple(one.build(self.per_host) for one in self.slow)
        return Cluster(accelerator, self._host(), fabric, self.per_host, self.hosts, slow)

    def costs(self, cluster: Cluster) -> CostModel:
        """Return how fast work goes on `cluster`."""
        curves = self.collectives.build() if self.collectives else {}
        return CostModel(cluster, self.compute.build(), self.rows.build(), curves)

    def _accelerator(self) -> Accelerator:
        named = self.accelerator
        return catalog.accelerator(named) if isinstance(named, str) else named.build()

    def _host(self) -> Host:
        if self.host is None:
            return catalog.machine(self._machine("host")).host
        return catalog.host(self.host) if isinstance(self.host, str) else self.host.build()

    def _fabric(self, shape: Shape) -> Fabric:
        if self.fabric is None:
            return catalog.machine(self._machine("fabric")).fabric
        return catalog.fabric(self.fabric) if isinstance(self.fabric, str) else self.fabric.build(shape)

    def _machine(self, part: str) -> str:
        """Return the catalog machine that carries this accelerator; it lends its `part`."""
        for name in catalog.names("machine"):
            if catalog.entry("machine", name)["accelerator"] == self.accelerator:
                return name
        raise InputError(f"no machine of the catalog has this accelerator, so give its {part}")
