"""Where each rank of a wiring stands: its domain, leaf, pod, rail and card, as arrays in rank order."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from simulator.hardware.graphs.wiring import Part, Wiring
from simulator.quantities import IntArray


@dataclass(frozen=True, eq=False)
class Seats:
    """Where each rank of a wiring stands: all numbers have one entry per rank, in rank order."""

    wiring: Wiring

    @cached_property
    def _table(self) -> tuple[list[Part], IntArray]:
        parts, rows = [], []
        for part, leaf, pod, domain in _domains(self.wiring):
            parts += [part] * part.domain_ranks
            rows += [(pod, leaf, domain, place) for place in range(part.domain_ranks)]
        return parts, np.array(rows, dtype=np.int64).T

    def _numbers(self, row: int) -> IntArray:
        return np.asarray(self._table[1][row], np.int64)

    @property
    def parts(self) -> list[Part]:
        """The part of the wiring that each rank belongs to."""
        return self._table[0]

    @cached_property
    def rank(self) -> IntArray:
        """The ranks themselves."""
        return np.arange(len(self.parts), dtype=np.int64)

    @property
    def pod(self) -> IntArray:
        """The pod of each rank."""
        return self._numbers(0)

    @property
    def leaf(self) -> IntArray:
        """The leaf of each rank; with rails, the unit of leaves."""
        return self._numbers(1)

    @property
    def domain(self) -> IntArray:
        """The fast domain of each rank."""
        return self._numbers(2)

    @property
    def place(self) -> IntArray:
        """The place of each rank in its domain."""
        return self._numbers(3)

    @cached_property
    def rail(self) -> IntArray:
        """The rail of each rank; 0 where there are none or it is on all of them."""
        pinned = all(group.inside.pins_nics for group in self.wiring.groups)
        if not (self.wiring.network.in_rails and pinned):
            return np.zeros_like(self.rank)
        return np.array([part.group.nics_of(local).start for part, local in self._locals], dtype=np.int64)

    @property
    def plane(self) -> IntArray:
        """The leaf switch of each rank."""
        return self.leaf * (int(self.rail.max()) + 1) + self.rail

    @property
    def _locals(self) -> Iterator[tuple[Part, int]]:
        for part, place in zip(self.parts, self.place, strict=True):
            yield part, int(place) % part.group.per_host

    @cached_property
    def card(self) -> IntArray:
        """A number for the card, or the cards, that each rank uses."""
        most = max(group.rails for group in self.wiring.groups)
        found, host, before = [], -1, -1
        for domain, (part, local) in zip(self.domain, self._locals, strict=True):
            if local == 0 or domain != before:
                host, before = host + 1, domain
            found.append(host * most + part.group.nics_of(local).start)
        return np.array(found, dtype=np.int64)


def _domains(wiring: Wiring) -> Iterator[tuple[Part, int, int, int]]:
    """Yield the part, leaf, pod and number of each fast domain, in rank order."""
    leaf, pod, domain = -1, -1, -1
    for top, of_pod in groupby(wiring.parts, key=lambda part: part.leaf.pod):
        inside = list(of_pod)
        for _ in range(top.count):
            pod += 1
            for middle, of_leaf in groupby(inside, key=lambda part: part.leaf):
                below = list(of_leaf)
                for _ in range(middle.count):
                    leaf += 1
                    for part in below:
                        for _ in range(part.domains):
                            domain += 1
                            yield part, leaf, pod, domain
