"""What a collective does in time: phases, each a start-up and then flows that begin together.

Links come in classes, one link of each class per rank and direction (a wired fabric: as many as it has).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Flows:
    """Equal flows of `bytes` each; `crossing` says how many of them cross one link of a class.

    A rank sends `near` of them to ranks of its fast domain and `far` of them out of it (means).
    """

    bytes: float
    crossing: Mapping[str, float]
    near: float = 0.0
    far: float = 0.0

    def stretched(self, factor: float) -> "Flows":
        """Return flows that take `factor` times as long."""
        return replace(self, bytes=self.bytes * factor)


@dataclass(frozen=True)
class Phase:
    """`seconds` that use no link (start-up, local work), then all `flows` at once."""

    seconds: float
    flows: tuple[Flows, ...] = ()

    def stretched(self, factor: float) -> "Phase":
        """Return a phase that takes `factor` times as long."""
        return Phase(self.seconds * factor, tuple(flow.stretched(factor) for flow in self.flows))


def in_rounds(phases: tuple[Phase, ...], rounds: int) -> tuple[Phase, ...]:
    """Return the same flows in so many rounds: what is paid again is the start-up."""
    again = (rounds - 1) * sum(phase.seconds for phase in phases)
    return (Phase(again), *phases) if again else phases


def alone(phases: Iterable[Phase], rates: Mapping[str, float]) -> float:
    """Return the seconds of `phases` on links of these `rates` (bytes/s), nobody else on them.

    In each phase the busiest link sets the time.
    """
    return sum(phase.seconds + _busiest_link(phase.flows, rates) for phase in phases)


def _busiest_link(flows: Iterable[Flows], rates: Mapping[str, float]) -> float:
    load = dict.fromkeys(rates, 0.0)
    for flow in flows:
        for link, crossing in flow.crossing.items():
            load[link] += flow.bytes * crossing
    return max(load[link] / rates[link] for link in load)
