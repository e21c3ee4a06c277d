"""Fabrics of clusters whose hosts differ: everybody waits for the group with the slowest links."""

from collections.abc import Sequence

from simulator.errors import InputError
from simulator.hardware.fabric import Fabric, TwoLevel


def slowest(fabrics: Sequence[Fabric]) -> Fabric:
    """Return a fabric with the slowest links of all: a collective ends when its slowest rank has sent.

    Each rank of a collective sends and receives as much as the others, so the group with the slowest
    links of a level sets the time of that level. Raises InputError on fabrics that differ in shape.
    """
    first = fabrics[0]
    if all(fabric == first for fabric in fabrics):
        return first
    levels = [fabric for fabric in fabrics if isinstance(fabric, TwoLevel)]
    shapes = {(fabric.domain, fabric.decay_workers) for fabric in levels}
    if len(levels) < len(fabrics) or len(shapes) > 1:
        raise InputError("the groups' machines come with fabrics of different shape, so give the fabric")
    domain, decay = shapes.pop()
    return TwoLevel(
        within=min(fabric.fast.rate for fabric in levels),
        between=min(fabric.between * fabric.between_efficiency for fabric in levels),
        within_latency=max(fabric.within_latency for fabric in levels),
        between_latency=max(fabric.between_latency for fabric in levels),
        domain=domain,
        decay_workers=decay,
    )
