"""How many peers of each kind a rank has in a group of every s-th rank: counted from the ranks' places.

With g groups and places p (domains, leaves, ...), c(g, p) members of a group at a place, a rank shares
its place with sum c^2 / ranks - 1 others of its group on average (our derivation).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.hardware.graphs.inside import Pcie
from simulator.hardware.graphs.wiring import Wiring
from simulator.quantities import Group, IntArray


@dataclass(frozen=True)
class Places:
    """Where the ranks of `wiring` stand and how many others of their `group` stand there too."""

    wiring: Wiring
    group: Group

    @cached_property
    def domain(self) -> float:
        """The mean number of others of the group in a rank's fast domain."""
        return self._sharing(self._blocks(self._domains))

    @cached_property
    def peers(self) -> Mapping[str, float]:
        """The mean number of peers by the kind of pair, as folded routes name it."""
        return {**self._inside(), **(self._rails() if self.wiring.network.in_rails else self._tree())}

    def _inside(self) -> dict[str, float]:
        switch = 0.0
        if any(isinstance(group.inside, Pcie) and not group.inside.memory for group in self.wiring.groups):
            switch = self._sharing(self._blocks(self._switches))
        rest = self.domain - switch
        return {"same PCIe switch": switch, "same host": rest, "same domain": rest}

    def _tree(self) -> dict[str, float]:
        apart = self.group.size - 1
        if self.wiring.network.leaf_hosts is None:
            return {"across": apart - self.domain}
        leaf = self._sharing(self._leaves)
        pod = leaf if self.wiring.network.pod_leaves is None else self._sharing(self._pods)
        return {"same leaf": leaf - self.domain, "same pod": pod - leaf, "across": apart - pod}

    def _rails(self) -> dict[str, float]:
        """Ranks at the same rail of a unit hang at one leaf."""
        rail, unit = self._rail, self._leaves
        rails = int(rail.max()) + 1
        at_leaf = self._sharing(unit * rails + rail)
        in_domain = self._sharing(self._blocks(self._domains) * rails + rail)
        on_rail, in_unit = self._sharing(rail), self._sharing(unit)
        apart = self.group.size - 1 - in_unit
        found = {"same leaf": at_leaf - in_domain, "same rail": on_rail - at_leaf}
        crossed = in_unit - self.domain - found["same leaf"]
        return {**found, "same unit, other rail": crossed, "other rail": apart - found["same rail"]}

    def _sharing(self, place: IntArray) -> float:
        key = place * (int(self._group_of.max()) + 1) + self._group_of
        counts = np.bincount(np.unique(key, return_inverse=True)[1]).astype(float)
        return float((counts**2).sum() / len(place) - 1)

    @cached_property
    def _group_of(self) -> IntArray:
        """The number of each rank's group."""
        rank = np.arange(self.wiring.ranks)
        size, stride = self.group.size, self.group.stride
        return rank // (size * stride) * stride + rank % stride

    @cached_property
    def _rail(self) -> IntArray:
        """The rail of each rank; where it uses all cards it is on every rail, so none tells ranks apart."""
        of_group = [
            np.tile([one.nics_of(local).start for local in range(one.per_host)], one.hosts)
            for one in self.wiring.groups
        ]
        pinned = all(one.inside.pins_nics for one in self.wiring.groups)
        return np.concatenate(of_group) * int(pinned)

    @property
    def _switches(self) -> list[int]:
        return [getattr(one.inside, "per_switch", 1) for one in self.wiring.groups]

    @property
    def _domains(self) -> list[int]:
        return [one.per_host * one.domain_hosts for one in self.wiring.groups]

    @property
    def _leaves(self) -> IntArray:
        hosts = self.wiring.network.leaf_hosts or self.wiring.hosts
        return self._blocks([one.per_host * hosts for one in self.wiring.groups])

    @property
    def _pods(self) -> IntArray:
        hosts = (self.wiring.network.leaf_hosts or 1) * (self.wiring.network.pod_leaves or self.wiring.hosts)
        return self._blocks([one.per_host * hosts for one in self.wiring.groups])

    def _blocks(self, sizes: list[int]) -> IntArray:
        """Number the blocks of so many ranks, anew for each group of hosts; the last may be smaller."""
        found, first = [], 0
        for one, size in zip(self.wiring.groups, sizes, strict=True):
            found.append(first + np.arange(one.hosts * one.per_host) // size)
            first = int(found[-1][-1]) + 1
        return np.concatenate(found)
