"""Draw a fabric as text: its levels from the top down, how many there are, and what their links carry."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import singledispatch
from math import isinf
from textwrap import wrap

from simulator.errors import InputError
from simulator.hardware.graphs.fabric_graph import FabricGraph
from simulator.hardware.graphs.folding import FoldedRoutes, LinkClass, fold
from simulator.hardware.graphs.networks import Flat, Network
from simulator.hardware.graphs.routing import is_ring
from simulator.hardware.graphs.torus_wiring import AXES, TorusWiring
from simulator.hardware.graphs.trees import FatTree, Rails
from simulator.hardware.graphs.wiring import Wiring
from simulator.units import format_bandwidth, format_time

WIDTH = 80
_INSIDE = ("host memory", "trunk up", "lane up", "switch up", "mesh")
_Level = tuple[str, tuple[str, ...]]  # what stands there, and the link classes that lead up to it


@singledispatch
def draw(fabric: object) -> str:
    """Return a drawing of a `Wiring`, a `TorusWiring` or a `FabricGraph`, in lines of at most 80 columns.

    Rates and latencies are those of one link in one direction. Raises InputError for anything else.
    """
    raise InputError(f"a {type(fabric).__name__} cannot be drawn")


@draw.register
def _(fabric: Wiring) -> str:
    folded = fold(fabric)
    lines = [f"{fabric.ranks:,} accelerators in {fabric.hosts:,} hosts"]
    for depth, (noun, names) in enumerate(_levels(fabric)):
        lines.append(f"{'   ' * depth}└─ {noun}")
        lines += [f"{'   ' * (depth + 1)}│  {text}" for text in _cables(folded, names)]
    return _page(lines + _partners(folded))


@draw.register
def _(fabric: TorusWiring) -> str:
    lines = [f"{' x '.join(map(str, fabric.dims))} chips, {fabric.ranks:,} in all"]
    for axis, length in enumerate(fabric.dims):
        shape = "ring" if is_ring(length, fabric.wrap[axis]) else "line"
        count = 2 * len(fabric.steps(axis)) * fabric.ranks // length
        links = _rate(count, fabric.link.rate, fabric.link.latency)
        lines.append(f"└─ {AXES[axis]}: {shape} of {length}, {links}")
    return _page(lines)


@draw.register
def _(fabric: FabricGraph) -> str:
    if fabric.plan is not None:
        return draw(fabric.plan)
    kinds = Counter(data["kind"] for _, data in fabric.graph.nodes(data=True))
    lines = [f"{fabric.name}: {len(fabric.ranks):,} accelerators"]
    lines += [f"└─ {kind}: {count:,}" for kind, count in kinds.items() if kind != "accelerator"]
    links = fabric.links
    alike = Counter(zip(links.kinds, links.capacity.tolist(), links.latency.tolist(), strict=True))
    lines += [f"│  {kind}: {_rate(count, *numbers)}" for (kind, *numbers), count in alike.items()]
    return _page(lines)


def _levels(wiring: Wiring) -> Iterator[_Level]:
    """Yield the levels from the top: the network's, the domains, the accelerators."""
    if any(group.nics for group in wiring.groups):
        yield from _network(wiring.network, wiring)
    domains = sum(part.ranks // part.domain_ranks for part in wiring.parts)
    wide = any(group.domain_hosts > 1 for group in wiring.groups)
    yield f"{domains:,} {'fast domains' if wide else 'hosts'}", _INSIDE
    yield f"{wiring.ranks:,} accelerators", ()


@singledispatch
def _network(network: Network, wiring: Wiring) -> list[_Level]:
    raise InputError(f"a {type(network).__name__} network cannot be drawn")


@_network.register
def _(network: Flat, wiring: Wiring) -> list[_Level]:
    return [("network that never limits", ("nic out",))]


@_network.register
def _(network: FatTree, wiring: Wiring) -> list[_Level]:
    pods, leaves = _counts(wiring)
    each = network.spines.switches
    top = [] if network.cores is None else [(f"{each * network.cores.switches:,} core switches", ("pod up",))]
    where = "" if network.cores is None else f" in {pods:,} pods"
    return [*top, (f"{pods * each:,} spines{where}", ("leaf up",)), (f"{leaves:,} leaves", ("nic out",))]


@_network.register
def _(network: Rails, wiring: Wiring) -> list[_Level]:
    rails, (_, units) = wiring.groups[0].rails, _counts(wiring)
    leaf = (f"{units * rails:,} leaves: {units:,} units of {rails} rails", ("nic out",))
    if network.spines is None:
        return [leaf]
    spines = network.spines.switches
    whose = f"{rails * spines:,} spines, {spines} for each rail" if network.relays else f"{spines} spines"
    return [(whose, ("leaf up",)), leaf]


def _counts(wiring: Wiring) -> tuple[int, int]:
    """Return the pods and the leaves (with rails: units) of all parts."""
    leaves = {part.leaf for part in wiring.parts}
    pods = {leaf.pod for leaf in leaves}
    return sum(pod.count for pod in pods), sum(leaf.pod.count * leaf.count for leaf in leaves)


_BELOW = {"pod up": "leaf up", "leaf up": "nic out"}


def _cables(folded: FoldedRoutes, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        links = _called(folded, name)
        alike: Counter[tuple[float, float]] = Counter()
        for link in links:
            alike[link.capacity, link.latency] += link.count
        for (capacity, latency), count in alike.items():
            yield f"{name}: {_rate(count, capacity, latency)}"
        ratio = _total(_called(folded, _BELOW.get(name, ""))) / (_total(links) or 1.0)
        if ratio > 1.0 + 1e-9:
            yield f"oversubscribed {ratio:.3g} : 1"


def _called(folded: FoldedRoutes, name: str) -> list[LinkClass]:
    return [link for link in folded.links if link.name.split(" (")[0] == name]


def _total(links: Iterable[LinkClass]) -> float:
    return sum(link.count * link.capacity for link in links)


def _rate(count: int, capacity: float, latency: float) -> str:
    speed = "no limit" if isinf(capacity) else format_bandwidth(capacity)
    return f"{count:,} x {speed}" + (f", {format_time(latency)}" if latency else "")


def _partners(folded: FoldedRoutes) -> list[str]:
    """Say whom an accelerator talks to, where all accelerators are in the same position."""
    if not folded.pairs or any(pair.sources != folded.ranks for pair in folded.pairs):
        return []
    text = ", ".join(f"{pair.peers:,.6g} {pair.name}" for pair in folded.pairs)
    return wrap(f"partners of each: {text}", WIDTH, subsequent_indent="   ")


def _page(lines: list[str]) -> str:
    return "\n".join(line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…" for line in lines)
