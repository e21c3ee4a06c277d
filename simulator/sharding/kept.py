"""Traffic of a batch when rows of the batch before are kept on the device until it has taken them over."""

from dataclasses import dataclass

import numpy as np

from simulator.quantities import Amount
from simulator.sharding.moves import Moved
from simulator.sharding.traffic import Flow, Traffic


@dataclass(frozen=True, eq=False)
class KeptTraffic(Traffic):
    """The same batch, but rows that the previous one has brought to the device are there already.

    As many as come new to the device leave it: rows that the next batch does not use.
    """

    def _moved(self, flows: tuple[Flow, ...]) -> Moved:
        rows = self.by_width(_new, flows)
        return Moved(rows, rows, self.world.ranks)


def _new(flow: Flow) -> Amount:
    return flow.missed - np.minimum(flow.shared, flow.missed)
