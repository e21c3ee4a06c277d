"""What a collective does in time: phases, each a start-up and then flows that begin together.

Links come in classes, one link of each class per rank and direction (a wired fabric: as many as it has).
Where links of a class carry different bytes, the busiest of them stands for the class.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from simulator.quantities import Amount, FloatArray


@dataclass(frozen=True)
class Flows:
    """Equal flows of `bytes` each; `crossing` says how many of them cross one link of a class.

    A rank sends `near` of them to ranks of its fast domain and `far` of them out of it (means).
    Where ranks differ that is not said. Flows take `least` seconds at least, even alone: messages that
    wait for each other on several links can take longer than any one link is busy.
    """

    bytes: float
    crossing: Mapping[str, float]
    near: float = 0.0
    far: float = 0.0
    least: float = 0.0

    def stretched(self, factor: float) -> "Flows":
        """Return flows that take `factor` times as long."""
        return replace(self, bytes=self.bytes * factor, least=self.least * factor)


@dataclass(frozen=True)
class Phase:
    """`seconds` that use no link (start-up, local work), then all `flows` at once.

    `finish` is the share of the time of the flows after which each rank is done, (ranks,); None: all are
    done at the end.
    """

    seconds: float
    flows: tuple[Flows, ...] = ()
    finish: FloatArray | None = field(default=None, compare=False)

    def stretched(self, factor: float) -> "Phase":
        """Return a phase that takes `factor` times as long."""
        flows = tuple(flow.stretched(factor) for flow in self.flows)
        return Phase(self.seconds * factor, flows, self.finish)


def in_rounds(phases: tuple[Phase, ...], rounds: int) -> tuple[Phase, ...]:
    """Return the same flows in so many rounds: what is paid again is the start-up."""
    again = (rounds - 1) * sum(phase.seconds for phase in phases)
    return (Phase(again), *phases) if again else phases


def alone(phases: Iterable[Phase], rates: Mapping[str, float]) -> float:
    """Return the seconds of `phases` on links of these `rates` (bytes/s), nobody else on them.

    In each phase the busiest link sets the time, or the last message where that comes later.
    """
    return sum(phase.seconds + flow_seconds(phase.flows, rates) for phase in phases)


def ends(phases: Sequence[Phase], rates: Mapping[str, float]) -> Amount:
    """Return the same for each rank: a float while all are done together, else (ranks,)."""
    if all(phase.finish is None for phase in phases):
        return alone(phases, rates)
    total: Amount = 0.0
    for phase in phases:
        share: Amount = 1.0 if phase.finish is None else phase.finish
        total = total + phase.seconds + flow_seconds(phase.flows, rates) * share
    return np.asarray(total)


def flow_seconds(flows: Iterable[Flows], rates: Mapping[str, float]) -> float:
    """Return the seconds that flows take on links of these `rates`, nobody else on them; 0 without links."""
    load, least = dict.fromkeys(rates, 0.0), 0.0
    for flow in flows:
        least = max(least, flow.least)
        for link, crossing in flow.crossing.items():
            load[link] += flow.bytes * crossing
    return max(
        least, max((load[link] / rates[link] for link in load), default=0.0)
    )  # one worker has no links
