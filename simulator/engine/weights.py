"""By which weight the flows of a collective compete with those of others, where links are shared."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from simulator.costs import Flows


class WeightRule(Protocol):
    """Weighs the flows of one collective. Shares of a full link are in proportion to weights."""

    def weights(self, flows: Sequence[Flows], rates: Mapping[str, float]) -> list[float]:
        """Return the weight of one flow of each class of `flows`, all of the same collective and phase.

        `rates` are those of all classes of links, bytes/s.
        """


@dataclass(frozen=True)
class PerFlow:
    """Every flow counts once, as in SimGrid: an all-to-all of many ranks pushes a ring aside."""

    def weights(self, flows: Sequence[Flows], rates: Mapping[str, float]) -> list[float]:
        """Return ones."""
        return [1.0] * len(flows)


@dataclass(frozen=True)
class PerCollective:
    """A collective counts once on the link that its flows fill most, for the link's rate.

    Links that never limit, as those above leaves that are not oversubscribed, so change no share.
    Flows that share links, directly or by way of others, weigh the same, so that a collective divides
    links among its own flows as it does alone; flows that share none (inside hosts and between them)
    are weighed apart.
    """

    def weights(self, flows: Sequence[Flows], rates: Mapping[str, float]) -> list[float]:
        """Return one over the flows of its group on the fullest link of the group, for each class.

        They are counted by the time that they take there, in that of one flow on the fastest link: which of
        two equally full links counts then makes no difference.
        """
        weights, fastest = [0.0] * len(flows), max(rates.values())
        for group in _groups(flows):
            crossing: Counter[str] = Counter()
            for index in group:
                crossing.update(flows[index].crossing)
            fullest = max(count * fastest / rates[link] for link, count in crossing.items())
            for index in group:
                weights[index] = float(f"{1.0 / fullest:.12g}")  # equal wires, equal weights
        return weights


def _groups(flows: Sequence[Flows]) -> list[list[int]]:
    """Put together, by their numbers, the classes that are connected by links."""
    groups: list[tuple[set[str], list[int]]] = []
    for index, flow in enumerate(flows):
        links, members = set(flow.crossing), [index]
        for group in [group for group in groups if not links.isdisjoint(group[0])]:
            groups.remove(group)
            links, members = links | group[0], group[1] + members
        groups.append((links, members))
    return [members for _, members in groups]


PER_COLLECTIVE = PerCollective()
