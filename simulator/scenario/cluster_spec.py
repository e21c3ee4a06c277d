"""The `cluster` part of a scenario: catalog names or written-out hardware, and what was measured of it."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from simulator.costs import CostModel
from simulator.costs.rows import FromMemory, OnChip, RowSpeed
from simulator.errors import InputError
from simulator.hardware import Cluster, Fabric, Slowdown, catalog, checks, slowest
from simulator.scenario.base import Spec
from simulator.scenario.collectives_spec import CollectivesSpec
from simulator.scenario.compute_spec import ComputeSpec, RooflineSpec
from simulator.scenario.fabric_spec import FabricSpec, Shape
from simulator.scenario.fields import Count, CountOrZero, Flag, Fraction, Number, PositiveFloat, Time
from simulator.scenario.machine_spec import (
    AcceleratorSpec,
    GroupSpec,
    accelerator_of,
    host_of,
    machine_with,
    what_follows,
)
from simulator.scenario.measured_spec import MeasuredSpec
from simulator.scenario.servers_spec import HostSpec, ServersSpec

MOST_GROUPS = 16
SHARES = ("compute", "memory", "host", "copy_links", "network")


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

    @model_validator(mode="after")
    def _slow_at_something(self) -> "SlowSpec":
        """Refuse an entry that slows nothing down, or stops it."""
        if not (self.hosts or self.ranks):
            raise ValueError("names no hosts or ranks")
        shares = {name: share for name, share in self if name in SHARES}
        if not shares.keys() & self.model_fields_set:
            raise ValueError(f"says no share: give one of {', '.join(SHARES)}")
        for name, share in shares.items():
            if share <= 0:
                raise ValueError(f"{name} must be above 0")
        return self

    def build(self, per_host: int, hosts: int) -> Slowdown:
        """Return the slowdown of all ranks named, those of named hosts included.

        Raises InputError for a host or a rank that the cluster does not have.
        """
        for noun, named, count in (("host", self.hosts, hosts), ("rank", self.ranks, per_host * hosts)):
            if max(named, default=0) >= count:
                raise InputError(
                    f"{noun} {max(named)} of slow is not in a cluster of {count} {noun}{'s' * (count > 1)}, "
                    "counted from 0"
                )
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


class ClusterSpec(Spec):
    """Hosts of accelerators on a fabric.

    `host` and `fabric` default to those of the catalog's machine with the same accelerator and
    `per_host`. `unexplained_host_time` is per worker of the job, held half in route, half in
    retrieve; it stands for measured time that no resource explains and is flagged in every table.
    Outside of `fitted_at`, reports are marked as extrapolated. `groups` writes out hosts that differ;
    `accelerator`, `host` and `hosts` then follow from them: those of the first, and the number of all.
    """

    accelerator: str | AcceleratorSpec
    per_host: Annotated[int, Number(1, 4096, whole=True)]
    hosts: Count
    host: str | HostSpec | None = None
    fabric: str | FabricSpec | None = None
    compute: ComputeSpec = RooflineSpec(kind="roofline")
    rows: RowsSpec = RowsFromMemorySpec(kind="from_memory")
    unexplained_host_time: Time | None = None
    fitted_at: FittedAtSpec | None = None
    collectives: CollectivesSpec | None = None
    slow: Annotated[tuple[SlowSpec, ...], Field(max_length=1000)] = ()
    host_limit: Annotated[float, Number(1, 1e30)] | None = None
    cards_on_host_link: Flag = True
    servers: ServersSpec | None = None
    groups: Annotated[tuple[GroupSpec, ...], Field(max_length=MOST_GROUPS)] = ()
    measured: MeasuredSpec | None = None

    @model_validator(mode="after")
    def _measured_on_one_kind(self) -> "ClusterSpec":
        """Refuse measured numbers for hosts that differ: they were measured on one machine."""
        if self.groups and self.measured is not None:
            raise ValueError("measured: the numbers of one machine cannot hold for groups that differ")
        return self

    @model_validator(mode="before")
    @classmethod
    def _of_groups(cls, data: Any) -> Any:
        return what_follows(data)

    def build(self, folder: Path) -> Cluster:
        """Return the cluster; files are looked for in `folder`.

        Raises InputError on unknown names and on parts that do not fit.
        """
        workers = self.per_host * self.hosts
        checks.ranks(workers)
        accelerator = accelerator_of(self.accelerator)  # first: an unknown name has no machine either
        accelerator = self.measured.applied(accelerator, folder) if self.measured else accelerator
        fabric = self._fabric(Shape(self.per_host, self.hosts, folder)).resized(workers)
        return Cluster(
            accelerator,
            host_of(self.host, self.accelerator),
            fabric,
            self.per_host,
            self.hosts,
            tuple(one.build(self.per_host, self.hosts) for one in self.slow),
            self.host_limit,
            self.cards_on_host_link,
            others=tuple(group.build() for group in self.groups[1:]),
            servers=self.servers.build() if self.servers else None,
        )

    def costs(self, cluster: Cluster, folder: Path) -> CostModel:
        """Return how fast work goes on `cluster`; files are looked for in `folder`."""
        of = self.collectives or CollectivesSpec()
        return CostModel(
            cluster,
            self.compute.build(folder),
            self.rows.build(),
            of.curves(folder),
            algorithms=of.algorithms.build(),
            overheads=of.overheads(),
        )

    def _fabric(self, shape: Shape) -> Fabric:
        if self.fabric is None:
            named = [group.accelerator for group in self.groups] or [self.accelerator]
            return slowest([catalog.machine(machine_with(one, "fabric")).fabric for one in named])
        return catalog.fabric(self.fabric) if isinstance(self.fabric, str) else self.fabric.build(shape)
