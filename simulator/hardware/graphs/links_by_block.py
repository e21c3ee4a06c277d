"""The links of a wiring one by one, by the blocks of ranks that they belong to, without a graph.

The same ways as the routed graph takes. Links that always carry equal parts of the same messages (those
from a leaf to its spines, all cards of a host that serves them to everybody) are one link as fast as all.
"""

from dataclasses import dataclass, field

import numpy as np

from simulator.hardware.crossings import Blocks, Book, Rule
from simulator.hardware.fabric import Link
from simulator.hardware.graphs.fabric_graph import labelled
from simulator.hardware.graphs.inside import Inside
from simulator.hardware.graphs.seats import Seats
from simulator.hardware.graphs.wiring import Part, Wiring
from simulator.quantities import FloatArray, IntArray


def links_by_block(wiring: Wiring, efficiency: float) -> Blocks:
    """Return the links of `wiring` at `efficiency` of their rates, and who crosses them."""
    seats, book = Seats(wiring), Book()
    wires = _Wires(seats, book, efficiency)
    for name in dict.fromkeys(name for part in wiring.parts for name in _links_of(part)):
        wires.inside(name)
    if any(group.nics for group in wiring.groups):
        if wiring.network.relays:
            wires.relayed()
        else:
            wires.cards()
        wires.climb("leaf", seats.plane)
        if wiring.network.pod_leaves is not None:
            wires.climb("pod", seats.pod)
    return book.close()


def _links_of(part: Part) -> dict[str, tuple[int, Link]]:
    return dict(part.group.inside.links(part.domain_ranks))


def _turn(inside: Inside, size: int) -> int:
    """Return how many neighbours meet before the widest way inside a domain."""
    classes = inside.near(size)
    return classes[0].peers + 1 if len(classes) > 1 else 1


@dataclass(frozen=True, eq=False)
class _Wires:
    """Enters the links of a wiring into a book."""

    seats: Seats
    book: Book
    efficiency: float
    laid: dict[str, IntArray] = field(default_factory=dict)

    def inside(self, name: str) -> None:
        """Enter the links of that name inside domains; where a domain has none, nothing limits."""
        found = [_links_of(part).get(name) for part in self.seats.parts]
        rate = np.array([one[1].rate * self.efficiency if one and one[0] else np.inf for one in found])
        if self._in_pairs(name):
            self._mesh(name, rate)
            return
        sharing = [self._sharing(name, part) for part in self.seats.parts]
        key = self.seats.domain * (int(self.seats.place.max()) + 1) + self.seats.place // np.array(sharing)
        link = self.laid[name] = self.book.links(key, self._named(name), rate)
        self.book.beside(self.seats.rank, link)
        self._crossed(name, link)

    def _in_pairs(self, name: str) -> bool:
        sizes = [(part.domain_ranks, _links_of(part).get(name)) for part in self.seats.wiring.parts]
        return any(found and size > 2 and found[0] == size * (size - 1) for size, found in sizes)

    def _sharing(self, name: str, part: Part) -> int:
        """Return how many ranks share one link of that name."""
        count, _ = _links_of(part).get(name, (part.domain_ranks, None))
        return max(1, part.domain_ranks // max(1, count))

    def _crossed(self, name: str, link: IntArray) -> None:
        """Enter who crosses a link inside: neighbours, and what comes from outside or goes there."""
        seats, down = self.seats, name.endswith("down")
        source, target = (None, link) if down else (link, None)
        turn = np.array([_turn(part.group.inside, part.domain_ranks) for part in seats.parts])
        always = {
            part: all(name in near.crossings for near in part.group.inside.near(part.domain_ranks))
            for part in seats.wiring.parts
        }
        block = seats.domain * (int(seats.place.max()) + 1) + seats.place // turn
        apart = np.where([always[part] for part in seats.parts], seats.rank, block)
        self.book.rule(Rule(seats.domain, (apart,), source, target))
        insides = [part.group.inside for part in seats.wiring.parts]
        if any(name in inside.out for inside in insides):
            self.book.rule(Rule(None, (seats.domain,), source=link, far=True))
        if any(name in inside.into for inside in insides):
            self.book.rule(Rule(None, (seats.domain,), target=link, far=True))

    def _mesh(self, name: str, rate: FloatArray) -> None:
        """Enter a link from each rank to each place of its domain."""
        seats, width = self.seats, int(self.seats.place.max()) + 1
        first = self.laid[name] = self.book.links(seats.rank, self._named(name), rate, width)
        self.book.rule(Rule(seats.domain, (seats.rank,), first, seats.place, width))
        start = seats.rank - seats.place
        for place in range(width):
            self.book.beside(seats.rank, first + place)
            there = start + place
            whole = (there < len(start)) & (seats.domain[np.minimum(there, len(start) - 1)] == seats.domain)
            self.book.beside(there[whole], (first + place)[whole])

    def _named(self, name: str) -> list[str]:
        return [labelled(name, part.label) for part in self.seats.parts]

    def _nic_rate(self) -> FloatArray:
        """Return the bytes/s of all cards that one rank uses."""
        rates = []
        for part in self.seats.parts:
            nics, local = part.group.nics, 0
            rates.append(nics.link.rate * len(part.group.nics_of(local)) if nics else np.inf)
        return np.array(rates) * self.efficiency

    def cards(self) -> None:
        """Enter network cards: each rank uses its own, or shares them."""
        seats, rate = self.seats, self._nic_rate()
        out, into = (self.book.links(seats.card, self._named(f"nic {way}"), rate) for way in ("out", "in"))
        for link in (out, into):
            self.book.beside(seats.rank, link)
        self.book.rule(Rule(None, (seats.domain,), source=out, far=True))
        self.book.rule(Rule(None, (seats.domain,), target=into, far=True))

    def climb(self, level: str, key: IntArray) -> None:
        """Enter the links above leaves or pods; relayed messages leave by the rail that they go to."""
        seats, network = self.seats, self.seats.wiring.network
        counted = {
            part: (network.leaf_links(part.group.rails) if level == "leaf" else network.pod_links())
            for part in seats.wiring.parts
        }
        if not any(counted.values()):
            return
        planes = int(seats.rail.max()) + 1 if level == "leaf" else 1
        for way in ("up", "down"):
            name = f"{level} {way}"
            each = {part: links[name] for part, links in counted.items() if name in links}
            rate = np.array([each[p][0] * each[p][1].rate / planes for p in seats.parts]) * self.efficiency
            names = [
                labelled(name, part.leaf.label if level == "leaf" else part.leaf.pod.label)
                for part in seats.parts
            ]
            self._above(way, key, self.book.links(key, names, rate))

    def _above(self, way: str, key: IntArray, link: IntArray) -> None:
        seats, relays = self.seats, self.seats.wiring.network.relays
        if way == "down":
            apart = (seats.domain, seats.leaf if relays else key)
            self.book.rule(Rule(None, apart, target=link, far=True))
        elif not relays:
            self.book.rule(Rule(None, (seats.domain, key), source=link, far=True))
        else:
            first = link - seats.rail  # links of one unit stand in order of their rails
            width = int(seats.rail.max()) + 1
            self.book.rule(Rule(None, (seats.leaf,), first, seats.rail, width, far=True))

    def relayed(self) -> None:
        """Enter cards that carry what goes to their rail, from all ranks of their domain."""
        seats, rate = self.seats, self._nic_rate()
        out = self.book.links(seats.rank, self._named("nic out"), rate)
        into = self.book.links(seats.rank, self._named("nic in"), rate)
        for link in (out, into):
            self.book.beside(seats.rank, link)
        across = (seats.domain,)
        self.book.rule(Rule(None, across, target=into, far=True))
        self.book.rule(Rule(seats.rail, across, source=out, far=True))
        rails, start = int(seats.rail.max()) + 1, seats.rank - seats.place
        hosts = np.array([part.domain_ranks for part in seats.parts]) // rails
        for host in range(int(hosts.max())):
            self._aside(start, host % hosts * rails, 1 / float(hosts.max()), out)
        for name in self._ways_aside():
            if name.endswith("up"):
                apart = (seats.domain, seats.rail)
                self.book.rule(Rule(None, apart, source=self.laid[name], far=True))

    def _aside(self, start: IntArray, first: IntArray, share: float, out: IntArray) -> None:
        """Enter the part that goes by way of the peers of one host of the own domain, `first` places on."""
        seats, apart, rails = self.seats, (self.seats.domain, self.seats.rail), int(self.seats.rail.max()) + 1
        ways = [out[start + first]]
        for name in self._ways_aside():
            if self._in_pairs(name):
                ways.append(self.laid[name] + first)
            elif name.endswith("down"):
                ways.append(self.laid[name][start + first])
        for source in ways:
            self.book.rule(Rule(None, apart, source, seats.rail, rails, share, far=True))

    def _ways_aside(self) -> dict[str, None]:
        """Return the links by which a rank reaches the peers of its domain, in order."""
        widest = [part.group.inside.near(part.domain_ranks)[-1] for part in self.seats.wiring.parts]
        return dict.fromkeys(name for near in widest for name in near.crossings)
