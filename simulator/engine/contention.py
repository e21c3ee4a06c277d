"""What may be shared in a run: needs of stages inside ranks and hosts, flows on the network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from simulator.costs import CostModel, Phase
from simulator.costs.occupancy import OF_HOST, occupancy, passing
from simulator.engine.needs import Need, Needs, Part
from simulator.engine.weights import PER_COLLECTIVE, WeightRule
from simulator.pipeline import MarkedGraph
from simulator.quantities import FloatArray, IntArray, InTurn, Work, busiest


@dataclass(frozen=True, eq=False)
class Contention:
    """`needs` of each node inside its rank; `phases` of each node on links with `rates` (bytes/s).

    `weights` says how the flows of collectives that meet on a link compete. Where ranks are of several
    kinds, `others` are the needs of the further ones and `kind_of` the kind of each rank. Unlike ranks
    of a host of `per_host` share it, each up to `host_limit` even parts; with 1, each keeps its own.
    """

    needs: Needs
    phases: Sequence[tuple[Phase, ...]]
    rates: Mapping[str, float]
    weights: WeightRule = PER_COLLECTIVE
    others: tuple[Needs, ...] = ()
    kind_of: IntArray | None = None
    per_host: int = 1
    host_limit: float | None = None

    @classmethod
    def of(
        cls,
        graph: MarkedGraph,
        costs: CostModel,
        weights: WeightRule = PER_COLLECTIVE,
        works: Sequence[Work] | None = None,
    ) -> "Contention":
        """Work out what the stages of `graph` share on the cluster of `costs`; `works` may replace theirs."""
        works = [node.stage.work for node in graph.nodes] if works is None else works
        phases = [costs.phases(work) if work.rendezvous else () for work in works]
        first, *others = [_Rank(one).needs(graph, works, phases) for one in costs.by_kind]
        cluster, rates = costs.cluster, costs.network.rates
        hosts = (cluster.kind_of, cluster.per_host, cluster.host_limit)
        return cls(first, phases, rates, weights, tuple(others), *hosts)

    @property
    def kinds(self) -> tuple[Needs, ...]:
        """The needs of all kinds of ranks."""
        return (self.needs, *self.others)

    def shared(self, hosted: bool) -> list[bool]:
        """Return whether a local stage may slow down on ranks of any kind, some of which share their host."""
        flags = [needs.hosted if hosted else needs.shared for needs in self.kinds]
        met = [bool(phases) for phases in self.phases]
        return [any(own) and not meets for *own, meets in zip(*flags, met, strict=True)]

    @cached_property
    def shared_ends(self) -> frozenset[tuple[int, int]]:
        """The collectives and phases before whose flows ranks work, and may slow down or slow others."""
        return frozenset(
            (node, place)
            for needs in self.kinds
            for node, ends in enumerate(needs.ends)
            for place, need in enumerate(ends)
            if need and (needs.shared[node] or needs.hosted[node])
        )

    @cached_property
    def felt(self) -> frozenset[int]:
        """The collectives whose flows are felt inside ranks."""
        return frozenset(node for needs in self.kinds for node, need in enumerate(needs.flows) if need)


def least_shares(graph: MarkedGraph, costs: CostModel) -> FloatArray:
    """Return the share of its nominal time that each stage takes on an idle host, (kinds, nodes)."""
    ranks = [_Rank(one) for one in costs.by_kind]
    works = [node.stage.work for node in graph.nodes]
    return np.array([[sum(p.share / p.cap for p in rank.parts(work)) for work in works] for rank in ranks])


class _Rank:
    """One rank at its nominal speed, on the cluster of `costs`."""

    def __init__(self, costs: CostModel) -> None:
        self.costs = replace(costs, cluster=replace(costs.cluster, slow=()))
        self.idle = replace(self.costs, cluster=self.costs.cluster.with_host_to_itself)

    def needs(self, graph: MarkedGraph, works: Sequence[Work], phases: Sequence[tuple[Phase, ...]]) -> Needs:
        """Return what stages need, what flows ask, and what stages consist of."""
        by_node = [{} if work.rendezvous else self.need(work) for work in works]
        local = {name for need in by_node for name in need}  # what flows alone use, the network shares
        ends = [self.ends(work) if work.rendezvous else () for work in works]
        local |= {name for node in ends for need in node for name in need}
        asked = [self.asked(work, legs) for work, legs in zip(works, phases, strict=True)]
        flows = [{name: share for name, share in need.items() if name in local} for need in asked]
        return Needs.of(graph, by_node, flows, [self.parts(work) for work in works], ends)

    def need(self, work: Work) -> Need:
        """Return how much of each resource is needed to run at full speed."""
        return _shares(occupancy(work, self.costs), busiest(self.costs.seconds(work)))

    def asked(self, work: Work, phases: Sequence[Phase]) -> Need:
        """Return the share of each resource that a collective's flows take while they pass."""
        flows = [replace(phase, seconds=0.0) for phase in phases]
        return _shares(passing(work, self.costs), self.costs.network.alone(flows))

    def ends(self, work: Work) -> tuple[Need, ...]:
        """Return what a collective's local work needs before the flows of each of its phases.

        Start-ups need nothing: they are waits for messages.
        """
        if isinstance(work, InTurn):
            return tuple(need for part in work.parts for need in self.ends(part))
        return ({},) * len(self.costs.phases(work)) if work.rendezvous else (self.need(work),)

    def parts(self, work: Work) -> tuple[Part, ...]:
        """Return what a local stage does in turn: what uses the host, then all the rest as one."""
        if work.rendezvous:
            return (Part(1.0, {}),)
        found = [part for part in map(self._part, _in_turn(work)) if part.share > 0.0]
        total = sum(part.share for part in found)
        hosted = [part for part in found if OF_HOST & part.need.keys()]
        rest = _as_one([part for part in found if not OF_HOST & part.need.keys()])
        parts = hosted + ([rest] if rest.share > 0.0 else [])
        return tuple(replace(part, share=part.share / total) for part in parts) or (Part(1.0, {}),)

    def _part(self, work: Work) -> Part:
        seconds = busiest(self.costs.seconds(work))
        cap = seconds / busiest(self.idle.seconds(work)) if seconds else 1.0
        return Part(seconds, self.need(work), max(1.0, cap))


def _as_one(parts: Sequence[Part]) -> Part:
    """Return one part that takes as long as all and needs of each resource what they need on average."""
    total = sum(part.share for part in parts)
    names = {name for part in parts for name in part.need}
    busy = {name: sum(part.share * part.need.get(name, 0.0) for part in parts) for name in sorted(names)}
    return Part(total, {name: seconds / total for name, seconds in busy.items()})


def _in_turn(work: Work) -> list[Work]:
    if isinstance(work, InTurn):
        return [leaf for part in work.parts for leaf in _in_turn(part)]
    return [work]


def _shares(occupied: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Return what is occupied over the time that it takes."""
    if not seconds:
        return {}
    return {name: min(1.0, busy / seconds) for name, busy in occupied.items() if busy > 0.0}
