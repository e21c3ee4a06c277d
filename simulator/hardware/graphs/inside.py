"""How the accelerators of one fast domain reach each other: full mesh, switch, PCIe with or without peers.

A `Link` here is one cable in one direction, its latency that of the cable: a way is the sum of its links.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Protocol

from simulator.errors import InputError
from simulator.hardware import checks
from simulator.hardware.fabric import Link
from simulator.hardware.graphs.fabric_graph import Sketch, labelled

Counted = Mapping[str, tuple[int, Link]]
"""Link classes by name: how many links each has, and what one of them is."""


@dataclass(frozen=True)
class Near:
    """Pairs that meet inside a domain: peers of one rank, and the link classes that a flow crosses.

    The name is None for pairs that have nothing closer in common than the domain.
    """

    name: str | None
    peers: int
    crossings: tuple[str, ...]


@dataclass(frozen=True)
class Site:
    """One domain to be wired: its name, its ranks in order, the label of its links.

    With `doors`, peers may pass traffic to a rank's NIC through a port before the rank.
    """

    home: str
    ranks: tuple[str, ...]
    label: str = ""
    doors: bool = False


@dataclass(frozen=True)
class Doors:
    """Where NICs attach: for each rank the nodes that lead out, that lead in, and its port if any."""

    out: tuple[str, ...]
    into: tuple[str, ...]
    ports: tuple[str, ...] = ()


class Inside(Protocol):
    """What each kind of domain says about itself; `size` counts its accelerators."""

    @property
    def pins_nics(self) -> bool:
        """Whether each accelerator keeps to NICs of its own; otherwise all use all of the host's."""

    @property
    def on_host_links(self) -> bool:
        """Whether peers are reached over the links that also lead to the host."""

    @property
    def out(self) -> tuple[str, ...]:
        """The link classes between an accelerator and a NIC, outwards."""

    @property
    def into(self) -> tuple[str, ...]:
        """The link classes between a NIC and an accelerator, inwards."""

    def check(self, size: int, hosts: int) -> None:
        """Raise InputError if so many accelerators over so many hosts cannot be wired like this."""

    def near(self, size: int) -> tuple[Near, ...]:
        """Return the classes of pairs inside, the widest last."""

    def links(self, size: int) -> Counted:
        """Return the link classes of one domain."""

    def wire(self, sketch: Sketch, site: Site) -> Doors:
        """Lay the links of one domain whose ranks are nodes already."""


class _Pinned:
    """Kinds whose accelerators have NICs of their own right beside them."""

    pins_nics = True
    on_host_links = False
    out: tuple[str, ...] = ()
    into: tuple[str, ...] = ()


@dataclass(frozen=True)
class FullMesh(_Pinned):
    """A link from each accelerator to each other one of the host (NVLink pairs, HCCS)."""

    link: Link

    def check(self, size: int, hosts: int) -> None:
        """Raise InputError if the domain is more than one host."""
        if hosts > 1:
            raise InputError(f"a full mesh ends at the host; a fast domain of {hosts} hosts needs a switch")

    def near(self, size: int) -> tuple[Near, ...]:
        """Return all pairs: one link."""
        return (Near(None, size - 1, ("mesh",)),)

    def links(self, size: int) -> Counted:
        """Return a link for each ordered pair."""
        return {"mesh": (size * (size - 1), self.link)}

    def wire(self, sketch: Sketch, site: Site) -> Doors:
        """Link all pairs."""
        ports, inlets = _ports(sketch, site)
        for (tail, _), (_, inlet) in permutations(zip(site.ranks, inlets, strict=True), 2):
            sketch.wire(tail, inlet, labelled("mesh", site.label), self.link)
        return Doors(site.ranks, site.ranks, ports)


@dataclass(frozen=True)
class Switched(_Pinned):
    """A link from each accelerator to a switch that never limits, and one back (NVSwitch, NVL72, UB)."""

    link: Link

    def check(self, size: int, hosts: int) -> None:
        """Accept any size: a switch may span hosts."""

    def near(self, size: int) -> tuple[Near, ...]:
        """Return all pairs: to the switch and back."""
        return (Near(None, size - 1, ("switch up", "switch down")),)

    def links(self, size: int) -> Counted:
        """Return a link each way for each accelerator."""
        return {"switch up": (size, self.link), "switch down": (size, self.link)}

    def wire(self, sketch: Sketch, site: Site) -> Doors:
        """Link all ranks to one switch."""
        ports, inlets = _ports(sketch, site)
        switch = sketch.node(f"{site.home}/switch", "domain switch")
        for rank, inlet in zip(site.ranks, inlets, strict=True):
            sketch.wire(rank, switch, labelled("switch up", site.label), self.link)
            sketch.wire(switch, inlet, labelled("switch down", site.label), self.link)
        return Doors(site.ranks, site.ranks, ports)


@dataclass(frozen=True)
class Pcie:
    """Accelerators below PCIe switches of `per_switch` (cable `lane`), these below the host (`trunk`).

    With `memory` None, peers have access: traffic turns at the first switch it can. Otherwise all of
    it is staged in host memory, also to and from NICs: written once and read once, so half of the
    `memory` bandwidth is left for it (our derivation). The NICs hang at the host and serve all.
    """

    lane: Link
    per_switch: int
    trunk: Link
    memory: Link | None = None
    pins_nics = False
    on_host_links = True

    def __post_init__(self) -> None:
        """Raise InputError on an impossible count."""
        checks.counts("pcie", per_switch=self.per_switch)

    @property
    def out(self) -> tuple[str, ...]:
        """Up to the host, through its memory if staged."""
        return ("lane up", "trunk up", *self._staged)

    @property
    def into(self) -> tuple[str, ...]:
        """From the host down, through its memory if staged."""
        return (*self._staged, "trunk down", "lane down")

    @property
    def _staged(self) -> tuple[str, ...]:
        return () if self.memory is None else ("host memory",)

    def check(self, size: int, hosts: int) -> None:
        """Raise InputError unless one host holds whole PCIe switches."""
        if hosts > 1:
            raise InputError(f"PCIe ends at the host; a fast domain of {hosts} hosts needs a switch")
        if size % self.per_switch:
            raise InputError(f"{size} accelerators do not fill PCIe switches of {self.per_switch}")

    def near(self, size: int) -> tuple[Near, ...]:
        """Return pairs below one switch, which turn there if they may, and pairs across the host."""
        around = ("lane up", "trunk up", *self._staged, "trunk down", "lane down")
        if self.memory is not None:
            return (Near(None, size - 1, around),)
        turned = Near("same PCIe switch", self.per_switch - 1, ("lane up", "lane down"))
        return turned, Near(None, size - self.per_switch, around)

    def links(self, size: int) -> Counted:
        """Return lanes, trunks and, if staged, the memory."""
        lanes, trunks = (size, self.lane), (size // self.per_switch, self.trunk)
        both = {"lane up": lanes, "lane down": lanes, "trunk up": trunks, "trunk down": trunks}
        return both if self.memory is None else {**both, "host memory": (1, _half(self.memory))}

    def wire(self, sketch: Sketch, site: Site) -> Doors:
        """Build one tree for peers, or one up and one down with the memory between them."""
        top, bottom = self._switch(sketch, f"{site.home}/pcie")
        if self.memory is not None:
            sketch.wire(top, bottom, labelled("host memory", site.label), _half(self.memory))
        for first in range(0, len(site.ranks), self.per_switch):
            up, down = self._switch(sketch, f"{site.home}/pcie{first // self.per_switch}")
            sketch.wire(up, top, labelled("trunk up", site.label), self.trunk)
            sketch.wire(bottom, down, labelled("trunk down", site.label), self.trunk)
            for rank in site.ranks[first : first + self.per_switch]:
                sketch.wire(rank, up, labelled("lane up", site.label), self.lane)
                sketch.wire(down, rank, labelled("lane down", site.label), self.lane)
        return Doors((bottom,) * len(site.ranks), (top,) * len(site.ranks))

    def _switch(self, sketch: Sketch, name: str) -> tuple[str, str]:
        """Add a switch and return it as seen going up and going down: two nodes where none may turn."""
        if self.memory is None:
            return (sketch.node(name, "pcie switch"),) * 2
        return sketch.node(f"{name}_up", "pcie switch"), sketch.node(f"{name}_down", "pcie switch")


def _half(memory: Link) -> Link:
    return Link(memory.bandwidth / 2, memory.latency, memory.efficiency)


def _ports(sketch: Sketch, site: Site) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ports of a site, if it has doors, and what takes in traffic for each rank."""
    if not site.doors:
        return (), site.ranks
    ports = tuple(sketch.node(f"{rank}/port", "port") for rank in site.ranks)
    for port, rank in zip(ports, site.ranks, strict=True):
        sketch.join(port, rank)
    return ports, ports
