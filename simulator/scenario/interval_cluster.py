"""The hardware of a sample: what the catalog has doubts about, replaced by drawn values, group by group."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from simulator.hardware import Cluster, Fabric, HostGroup, catalog, slowest
from simulator.scenario.cluster_spec import ClusterSpec
from simulator.scenario.interval_doubts import CatalogDoubt, Sample
from simulator.scenario.machine_spec import machine_with

Drawn = TypeVar("Drawn")


def drawn_cluster(
    spec: ClusterSpec, cluster: Cluster, doubts: Sequence[CatalogDoubt], sample: Sample
) -> Cluster:
    """Return `cluster`, which was built from `spec`, with the doubtful numbers of a sample.

    The same entry of the catalog is drawn alike wherever it is named.
    """

    def drawn(part: str, place: int, known: Drawn) -> Drawn:
        mine = [doubt for doubt in doubts if doubt.part == part and place in doubt.places]
        return replace(known, **_fields(known, mine, sample)) if mine else known  # type: ignore[type-var]

    groups = [
        HostGroup(
            drawn("accelerator", place, group.accelerator), drawn("host", place, group.host), group.hosts
        )
        for place, group in enumerate(cluster.groups)
    ]
    fabrics = [drawn("fabric", place, fabric) for place, fabric in enumerate(_fabrics(spec, cluster))]
    return replace(cluster.with_groups(groups), fabric=slowest(fabrics).resized(cluster.ranks))


def _fabrics(spec: ClusterSpec, cluster: Cluster) -> list[Fabric]:
    """Return the fabric, or those of the groups' machines where it is put together from them."""
    if spec.fabric is not None or not spec.groups:
        return [cluster.fabric]
    return [catalog.machine(machine_with(group.accelerator, "fabric")).fabric for group in spec.groups]


def _fields(known: Any, doubts: Sequence[CatalogDoubt], sample: Sample) -> Mapping[str, Any]:
    """Return the drawn fields of a part."""
    fields: dict[str, Any] = {}
    for doubt in doubts:
        before = fields.get(doubt.field, getattr(known, doubt.field))
        drawn = doubt.stretched(before[doubt.key] if doubt.key else before, sample)
        fields[doubt.field] = {**before, doubt.key: drawn} if doubt.key else drawn
    return fields
