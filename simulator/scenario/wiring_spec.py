"""The parts of wired fabrics: cables, insides of fast domains, network cards, tiers of switches."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from simulator.hardware import Link
from simulator.scenario.base import Spec
from simulator.scenario.fields import Bandwidth, Count, Time

if TYPE_CHECKING:  # graphs bring networkx along, which only wired fabrics need
    from simulator.hardware.graphs import Nics, Tier
    from simulator.hardware.graphs.inside import Inside


class LinkSpec(Spec):
    """One cable in one direction, or one card's port."""

    bandwidth: Bandwidth
    latency: Time = 0.0

    def build(self) -> Link:
        """Return the link."""
        return Link(self.bandwidth, self.latency)


class FullMeshSpec(LinkSpec):
    """A link from each accelerator of a domain to each other one."""

    kind: Literal["full_mesh"]

    def wire(self) -> "Inside":
        """Return the inside of a domain."""
        from simulator.hardware.graphs import FullMesh

        return FullMesh(self.build())


class SwitchSpec(LinkSpec):
    """A link from each accelerator of a domain to one switch."""

    kind: Literal["switch"]

    def wire(self) -> "Inside":
        """Return the inside of a domain."""
        from simulator.hardware.graphs import Switched

        return Switched(self.build())


class PcieSpec(Spec):
    """PCIe: `lane` per accelerator, `per_switch` of them on a switch, a `trunk` to the host.

    With `memory` (bytes/s), accelerators have no peer access: traffic goes through host memory.
    """

    kind: Literal["pcie"]
    lane: LinkSpec
    per_switch: Count
    trunk: LinkSpec
    memory: LinkSpec | None = None

    def wire(self) -> "Inside":
        """Return the inside of a domain."""
        from simulator.hardware.graphs import Pcie

        memory = self.memory.build() if self.memory else None
        return Pcie(self.lane.build(), self.per_switch, self.trunk.build(), memory)


class NicsSpec(LinkSpec):
    """`per_host` network cards in each host."""

    per_host: Count

    def wire(self) -> "Nics":
        """Return the cards."""
        from simulator.hardware.graphs import Nics

        return Nics(self.build(), self.per_host)


class TierSpec(LinkSpec):
    """`switches` equal switches; each switch below has one link to each of them."""

    switches: Count

    def wire(self) -> "Tier":
        """Return the tier."""
        from simulator.hardware.graphs import Tier

        return Tier(self.switches, self.build())


InsideSpec = Annotated[FullMeshSpec | SwitchSpec | PcieSpec, Field(discriminator="kind")]
