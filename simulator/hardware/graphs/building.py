"""Build the graph of a wiring: walk over its pods, leaves, domains and hosts, and lay every link."""

from collections.abc import Iterable
from functools import singledispatch
from itertools import chain, count, groupby

from simulator.errors import InputError
from simulator.hardware.graphs.fabric_graph import Cable, FabricGraph, Sketch
from simulator.hardware.graphs.inside import Doors, Site
from simulator.hardware.graphs.networks import FAR_COST, Spot
from simulator.hardware.graphs.wiring import Leaf, Part, Wiring


@singledispatch
def build(plan: object) -> FabricGraph:
    """Return the checked graph of a plan (`Wiring`, `TorusWiring`); one node and link for each there is."""
    raise InputError(f"no graph can be built from a {type(plan).__name__}")


@build.register
def _(plan: Wiring) -> FabricGraph:
    builder = _Builder(plan)
    for pod, parts in groupby(plan.parts, key=lambda part: part.leaf.pod):
        inside = list(parts)
        for _ in range(pod.count):
            builder.pod(pod.label, inside)
    return FabricGraph(builder.sketch.graph, tuple(builder.sketch.ranks), plan=plan)


class _Builder:
    """Counts what it has laid, so that every node has a name of its own."""

    def __init__(self, plan: Wiring) -> None:
        self.plan, self.sketch = plan, Sketch()
        self.pods, self.leaves, self.domains, self.hosts = count(), count(), count(), count()
        self.rails = max(group.rails for group in plan.groups)
        self.networked = any(group.nics for group in plan.groups)

    def pod(self, label: str, parts: list[Part]) -> None:
        name = "" if self.plan.network.pod_leaves is None else f"pod{next(self.pods)}/"
        spot = Spot(name, label)
        tops = self.plan.network.wire_pod(self.sketch, spot, self.rails) if self.networked else ()
        for leaf, below in groupby(parts, key=lambda part: part.leaf):
            inside = list(below)
            for _ in range(leaf.count):
                self.leaf(leaf, inside, tops)

    def leaf(self, leaf: Leaf, parts: Iterable[Part], tops: tuple[str, ...]) -> None:
        spot = Spot(f"leaf{next(self.leaves)}", leaf.label)
        hooks = self.plan.network.wire_leaf(self.sketch, spot, tops, self.rails) if self.networked else ()
        for part in parts:
            for _ in range(part.domains):
                self.domain(part, hooks)

    def domain(self, part: Part, hooks: tuple[str, ...]) -> None:
        hosts = [f"host{next(self.hosts)}" for _ in range(part.hosts)]
        home = hosts[0] if part.group.domain_hosts == 1 else f"domain{next(self.domains)}"
        names = (f"{host}/{local}" for host in hosts for local in range(part.group.per_host))
        ranks = tuple(self.sketch.rank(name) for name in names)
        doors = part.group.inside.wire(self.sketch, Site(home, ranks, part.label, self.plan.network.relays))
        for number, host in enumerate(hosts if part.group.nics else ()):
            self.nics(part, host, _of_host(doors, number, part.group.per_host), hooks)

    def nics(self, part: Part, host: str, doors: Doors, hooks: tuple[str, ...]) -> None:
        nics = part.group.nics
        assert nics is not None
        names = [self.sketch.node(f"{host}/nic{number}", "nic") for number in range(nics.per_host)]
        for number, name in enumerate(names):
            cable = Cable("nic", nics.link, part.label, FAR_COST, ("out", "in"))
            self.sketch.both(name, hooks[number % len(hooks)], cable)
        joints = (_joints(part, local, names, doors) for local in range(part.group.per_host))
        for tail, head in dict.fromkeys(chain.from_iterable(joints)):
            self.sketch.join(tail, head, FAR_COST)


def _of_host(doors: Doors, number: int, size: int) -> Doors:
    span = slice(number * size, (number + 1) * size)
    return Doors(doors.out[span], doors.into[span], doors.ports[span])


def _joints(part: Part, local: int, names: list[str], doors: Doors) -> list[tuple[str, str]]:
    """Return the ways between one accelerator and its NICs, that from its port included."""
    own = [names[number] for number in part.group.nics_of(local)]
    inward = [(name, doors.into[local]) for name in own]
    outward = [(node, name) for node in (doors.out[local], *doors.ports[local : local + 1]) for name in own]
    return inward + outward
