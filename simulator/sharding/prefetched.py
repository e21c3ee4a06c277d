"""Traffic of a batch whose rows come to a cache beside the batch before: what has room there or not."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from simulator.sharding.moves import Moved
from simulator.sharding.traffic import Flow, Traffic


@dataclass(frozen=True, eq=False)
class MissedTraffic(Traffic):
    """The batch of `whole`, of which only one `part` of the rows that miss the cache is moved.

    `early`: rows that find room beside those of the batch in use. `late`: the others, whose turn comes
    when that batch is done. Rows that are in device memory already are in neither part.
    """

    whole: Traffic | None = None
    part: Literal["early", "late"] = "early"

    @classmethod
    def of(cls, whole: Traffic, part: Literal["early", "late"]) -> "MissedTraffic":
        """Return one part of what `whole` moves."""
        return cls(whole.placed, whole.samples, whole.seed, whole, part)

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """The flows of the whole batch with the part's misses."""
        flows = self.whole.flows if self.whole is not None else ()
        return tuple(replace(flow, missed=self._of(flow)) for flow in flows)

    def _of(self, flow: Flow) -> float | np.ndarray:
        return flow.late if self.part == "late" else flow.missed - flow.late

    def _moved(self, flows: tuple[Flow, ...]) -> Moved:
        rows = self.by_width(lambda flow: flow.missed, flows)
        return Moved(rows, rows, self.world.ranks)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to move."""
        return not np.any(self.bytes_buffered)
