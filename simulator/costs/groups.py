"""Collectives among groups of ranks: all groups at once, each like a job of its own size.

A group of neighbours, or of every s-th rank, spans fewer domains or sits in more of them than the
whole job; what it sends near and far follows from how many of its members share a domain. All
groups are alike and use different links, so one stands for all. Where a rate falls with scale
(`decay_workers`), the scale is that of the group: congestion comes from the peers a rank talks to
(our assumption; published grouped exchanges fall as it predicts).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from simulator.costs.collectives import Flows, Network, Phase
from simulator.errors import InputError
from simulator.hardware import Cluster, TwoLevel
from simulator.quantities import Amount, Group


@dataclass(frozen=True)
class Members:
    """Collectives among the members of each `group` (None: all ranks) of `network`'s cluster."""

    network: Network
    group: Group | None = None

    def all_to_all(self, sent: Amount, received: Amount) -> tuple[Phase, ...]:
        """Return the phases in which each member sends and receives so many bytes, own share included."""
        if self.group is None:
            return self.network.all_to_all(sent, received)
        load = np.maximum(sent, received) / self.network.cluster.speed("network")
        busiest = float(np.max(load))
        return self._translated(self._alone.all_to_all(busiest, busiest))

    def all_reduce(self, size: float) -> tuple[Phase, ...]:
        """Return the phases that add up a vector of `size` bytes over the members."""
        if self.group is None:
            return self.network.all_reduce(size)
        slowest = float(np.min(self.network.cluster.speed("network")))
        return self._translated(self._alone.all_reduce(size / slowest))

    def reduce_scatter(self, size: Amount) -> tuple[Phase, ...]:
        """Return the phases of one half of a ring all-reduce, which is a reduce-scatter and an all-gather."""
        return self.all_reduce(float(np.max(size)) / 2)

    @cached_property
    def _alone(self) -> Network:
        """The network as one group sees it."""
        assert self.group is not None
        return Network(_cluster_of(self.network.cluster, self.group))

    def _translated(self, phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
        """Express flows on the group's links as flows on the job's, whose rates may differ."""
        return tuple(Phase(phase.seconds, tuple(map(self._on_job, phase.flows))) for phase in phases)

    def _on_job(self, flow: Flows) -> Flows:
        ours, job = self._alone.rates, self.network.rates
        return Flows(flow.bytes, {link: n * job[link] / ours[link] for link, n in flow.crossing.items()})


def _cluster_of(cluster: Cluster, group: Group) -> Cluster:
    """Return a cluster in which the members of one group are all there is, with the domains they share."""
    fabric = cluster.fabric
    if not isinstance(fabric, TwoLevel):
        raise InputError(
            f"groups of ranks are known on two_level fabrics only, not on {type(fabric).__name__}"
        )
    together = max(1, fabric.domain_size(cluster.per_host) // group.stride)
    inside = min(together, group.size)
    return replace(cluster, fabric=replace(fabric, domain=inside), per_host=1, hosts=group.size, slow=())
