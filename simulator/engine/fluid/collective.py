"""One collective under way, and how its ends are told."""

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simulator.engine.fluid.flows import FlowClasses
from simulator.quantities import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Finished:
    """Classes of the collective `tag` whose end is settled: their numbers and end times, whole ns, (K,).

    Times ascend. `last` tells that no other class of the collective is under way.
    """

    tag: Hashable
    classes: IntArray
    times_ns: IntArray
    last: bool


@dataclass(eq=False)
class Collective:
    """A collective under way, with the state of its flows when the pool last handed it over.

    `members` are the classes that are still listed in `flows`, as numbered at the start; `alive` the
    places in that list of those that have not ended, and `left` (as long as `alive`) their bytes left.
    `told` (one for each class at the start) marks ends that are settled; `untold` counts the others;
    `born_ns` is when it started, on the pool's own clock.
    """

    tag: Hashable
    flows: FlowClasses
    members: IntArray
    alive: IntArray
    left: FloatArray
    told: NDArray[np.bool_]
    untold: int
    born_ns: float

    @classmethod
    def of(cls, tag: Hashable, flows: FlowClasses, born_ns: float) -> "Collective":
        """Return a collective that starts at `born_ns`."""
        every, count = np.arange(len(flows), dtype=np.int64), len(flows)
        return cls(tag, flows, every, every, flows.bytes, np.zeros(count, dtype=np.bool_), count, born_ns)

    def clear_away(self) -> None:
        """Forget the classes that have ended."""
        if len(self.alive) < len(self.members):
            self.flows, self.members = self.flows.take(self.alive), self.members[self.alive]
            self.alive = np.arange(len(self.members), dtype=np.int64)

    def cap(self, cap: FloatArray) -> None:
        """Give the flows new caps, one for each class that the collective started with."""
        if cap.shape != self.told.shape:
            raise ValueError(f"{self.tag!r} has {len(self.told)} classes but was given {cap.shape} caps")
        self.flows = replace(self.flows, cap=cap[self.members])

    def tell(self, places: IntArray, times_ns: IntArray) -> Finished | None:
        """Settle the ends of the flows at these places of the list; None when all were told before."""
        classes = self.members[places]
        fresh = ~self.told[classes]
        if not fresh.all():
            classes, times_ns = classes[fresh], times_ns[fresh]
        self.told[classes] = True
        self.untold -= len(classes)
        return Finished(self.tag, classes, times_ns, self.untold == 0) if len(classes) else None
