"""Training with parameter servers: rows are fetched over RPC, gradients pushed back."""

from dataclasses import dataclass

import numpy as np

from simulator.calibration.measure.channel import Array
from simulator.calibration.measure.kernels import distinct
from simulator.calibration.train.executor import Operation
from simulator.calibration.train.row_client import Calls, RowClient
from simulator.calibration.train.settings import Settings
from simulator.calibration.train.shards import by_owner, codes, places
from simulator.calibration.train.trainer import Micro, Trainer
from simulator.quantities import IntArray

ALL_IN = "all_"  # such stages wait until servers have what all workers sent


def calls_of(settings: Settings) -> Calls:
    """Return how the policy of a run asks its servers."""
    if settings.policy != "rpc_per_table":
        return Calls.coalesced
    return Calls.at_once if settings.parameters.get("asynchronous") else Calls.in_turn


@dataclass(eq=False)
class ServedTrainer(Trainer):
    """A worker of the policies `rpc_per_table` and `rpc_coalesced`; as many servers as workers."""

    client: RowClient | None = None

    @property
    def _servers(self) -> RowClient:
        assert self.client is not None
        return self.client

    def _operation(self, name: str, stream: str) -> Operation:
        own: dict[str, Operation] = {"collect": self.collect, "fetch": self.fetch, "push": self.push}
        if name.startswith(ALL_IN):
            return lambda batch: self.channels[stream].barrier()
        return own[name] if name in own else super()._operation(name, stream)

    def collect(self, number: int) -> None:
        """Remove duplicates and sort keys by server."""
        batch = self.batches[number]
        asked = distinct(codes(batch.keys.reshape(-1), self.ranks))
        cuts = by_owner(asked.values, self.ranks)
        batch.micros = [Micro(slice(0, len(batch.keys)), asked, cuts)]

    def fetch(self, number: int) -> None:
        """Bring the batch's rows."""
        micro = self.batches[number].micros[0]
        micro.rows = np.concatenate(self._servers.fetch(self._places_of(micro)))

    def push(self, number: int) -> None:
        """Send the gradients."""
        micro = self.batches[number].micros[0]
        self._servers.push(number, self._places_of(micro), self._gradients(micro))

    def _gradients(self, micro: Micro) -> list[Array]:
        assert micro.gradient is not None
        cuts = micro.cuts
        return [micro.gradient[cuts[server] : cuts[server + 1]] for server in range(self.ranks)]

    def _places_of(self, micro: Micro) -> list[IntArray]:
        cuts, at = micro.cuts, places(micro.asked.values)
        return [at[cuts[server] : cuts[server + 1]] for server in range(self.ranks)]

    def final_rows(self) -> Array:
        """Return this rank's share of the tables as the servers have it now."""
        rank = self._servers.sender
        held = np.arange(len(self.shard.arrays[0]), dtype=np.int64)
        empty = np.empty(0, dtype=np.int64)
        return self._servers.fetch_with_state([held if r == rank else empty for r in range(self.ranks)])[
            rank
        ][0]
