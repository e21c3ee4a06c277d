"""Collectives over the ranks of a cluster: what they send over which links, and how long that takes alone.

A collective is a sequence of phases: a start-up, then flows that begin together. Which phases follows
from its algorithm (`simulator.costs.algorithms`). Links come in classes, one link of each class per rank:
on a `TwoLevel` fabric out and in within the fast domain (`near out`, `near in`) and between domains (`far
out`, `far in`); on a torus the share of the narrowest cut (`cut`) and all links of a chip together (`chip`);
on wired fabrics those that the wiring names. Nothing is said here of other collectives that use the
links at the same time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from simulator.costs.algorithms import (
    AS_TUNED,
    PLAIN,
    Choice,
    Ground,
    Load,
    Overheads,
    Plan,
    PointToPoint,
    ground,
    link_rates,
)
from simulator.costs.phases import Phase, alone, ends
from simulator.hardware import Cluster
from simulator.hardware.crossings import members
from simulator.quantities import Amount, Group


@dataclass(frozen=True)
class Network:
    """Collectives among the ranks of `cluster`, each under the algorithm of `choice`."""

    cluster: Cluster
    choice: Choice = AS_TUNED
    overheads: Overheads = PLAIN
    _grounds: dict[Group | None, Ground] = field(default_factory=dict, compare=False, repr=False)

    def all_to_all(self, sent: Amount, received: Amount, group: Group | None = None) -> Plan:
        """Return the plan by which each member sends and receives so many bytes, own share included."""
        return self._plan("all_to_all", Load(sent, received, self.cluster.speed("network")), group)

    def all_reduce(self, size: Amount, group: Group | None = None) -> Plan:
        """Return the plan that adds up a vector of `size` bytes over the members."""
        return self._plan("all_reduce", self._even(size), group)

    def reduce_scatter(self, size: Amount, group: Group | None = None) -> Plan:
        """Return the plan that adds up vectors of `size` bytes and leaves each member a part of the sum."""
        return self._in_parts("reduce_scatter", size, group)

    def all_gather(self, size: Amount, group: Group | None = None) -> Plan:
        """Return the plan that brings the parts of a vector of `size` bytes to all members."""
        return self._in_parts("all_gather", size, group)

    def broadcast(self, size: Amount, group: Group | None = None) -> Plan:
        """Return the plan that brings one member's `size` bytes to all others."""
        return self._plan("broadcast", self._even(size), group)

    def point_to_point(self, size: Amount, distance: int = 1) -> Plan:
        """Return the plan by which every rank sends `size` bytes to the one `distance` further on."""
        here = self.ground(None)
        return PointToPoint(distance).plan(here, self._even(size)) if here.ranks > 1 else NOTHING_TO_DO

    def ground(self, group: Group | None) -> Ground:
        """Return what the members of a group stand on. Raises InputError where that is not known."""
        if group not in self._grounds:
            self._grounds[group] = ground(self.cluster, group, self.overheads)
        return self._grounds[group]

    @cached_property
    def rates(self) -> Mapping[str, float]:
        """Bytes/s of one link of each class."""
        return link_rates(self.cluster)

    def alone(self, phases: Sequence[Phase]) -> float:
        """Return the seconds of `phases` with the network to themselves: the busiest link sets each."""
        return alone(phases, self.rates)

    def ends(self, phases: Sequence[Phase]) -> Amount:
        """Return the same for each rank: a float while all are done together, else (ranks,)."""
        return ends(phases, self.rates)

    def _even(self, size: Amount) -> Load:
        """Everybody goes at the pace of the slowest link, as in a ring."""
        return Load.of(float(np.max(size)) / float(np.min(self.cluster.speed("network"))))

    def _in_parts(self, operation: str, size: Amount, group: Group | None) -> Plan:
        """Return the plan for vectors whose sizes differ between groups: each is done when its own is.

        A group that shares links with larger ones has as much of them as each of these, until it is done.
        """
        plan = self._plan(operation, self._even(size), group)
        if group is None or np.ndim(size) == 0 or not np.ptp(size):
            return plan
        number = members(self.cluster.ranks, group)
        largest = np.zeros(int(number.max()) + 1)
        np.maximum.at(largest, number, size)
        share = (largest / largest.max())[number]
        return replace(plan, phases=tuple(replace(phase, finish=share) for phase in plan.phases))

    def _plan(self, operation: str, load: Load, group: Group | None) -> Plan:
        if (self.cluster.ranks if group is None else group.size) == 1:
            return NOTHING_TO_DO
        return self.choice.algorithm(operation).plan(self.ground(group), load)


NOTHING_TO_DO = Plan("none", ())
