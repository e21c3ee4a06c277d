"""Training as Bagpipe does it: rows prefetched into a cache on each worker, gradients summed in two parts."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from simulator.calibration.measure.channel import Array, Channel
from simulator.calibration.measure.kernels import distinct, gather, scatter
from simulator.calibration.train.executor import Operation
from simulator.calibration.train.oracle import Schedule
from simulator.calibration.train.plans import policy_of
from simulator.calibration.train.served_trainer import ServedTrainer
from simulator.calibration.train.settings import Settings
from simulator.calibration.train.shards import by_owner, codes, places
from simulator.calibration.train.trainer import Micro
from simulator.errors import InfeasibleError
from simulator.policies.bagpipe import Bagpipe
from simulator.quantities import IntArray

NOTHING: IntArray = np.empty(0, dtype=np.int64)


def bagpipe_of(settings: Settings) -> Bagpipe:
    """Return the policy of a run with a cache. Raises InputError on parameters that it does not take."""
    policy = policy_of(settings)
    assert isinstance(policy, Bagpipe)
    return policy


@dataclass(eq=False)
class Due:
    """Gradients of one batch that have been added up, or not yet: where their rows are, and the sums."""

    rows: IntArray
    gradient: Array


@dataclass(eq=False)
class CachedTrainer(ServedTrainer):
    """A worker of the policy `bagpipe`; `schedule` is what its oracle has found out."""

    schedule: Schedule = field(default_factory=lambda: Schedule({}, {}, [], NOTHING))

    def __post_init__(self) -> None:
        """Start with an empty cache: what was never fetched is not a number, and would spoil every loss."""
        super().__post_init__()
        model = self.settings.model
        shape = (model.tables * model.rows, model.dimension)
        self.cache = tuple(np.full(shape, np.nan, dtype=np.float32) for _ in self.shard.arrays)
        self.now: dict[int, Due] = {}
        self.later: dict[int, Due] = {}

    def _operation(self, name: str, stream: str) -> Operation:
        own: dict[str, Operation] = {
            "look_ahead": self.read,
            "fetch": self.fetch,
            "apply": self.apply,
            "write_back": self.write_rows_back,
        }
        if name in own:
            return own[name]
        over: dict[str, Callable[[int, Channel], None]] = {
            "sync_now": self.sync_now,
            "sync_later": self.sync_later,
        }
        if name in over:
            return lambda batch: over[name](batch, self.channels[stream])
        return super()._operation(name, stream)

    @property
    def kept(self) -> int:
        """As many batches as the oracle sees, and some."""
        return bagpipe_of(self.settings).lookahead + super().kept

    def read(self, number: int) -> None:
        """Take the batch out of the samples and remove duplicates among its keys."""
        super().read(number)
        keys = self.batches[number].keys
        self.batches[number].micros = [Micro(slice(0, len(keys)), distinct(keys.reshape(-1)), NOTHING)]

    def fetch(self, number: int) -> None:
        """Bring all rows that enter the cache in this period, with their optimizer state."""
        rows = self.schedule.fetched.get(number, NOTHING)
        order, at = self._by_server(rows)
        for server, arrays in enumerate(self._servers.fetch_with_state(at)):
            here = order[self._cuts(order)[server] : self._cuts(order)[server + 1]]
            for cache, values in zip(self.cache, arrays, strict=True):
                scatter(cache, self._row_numbers(here), values)

    def forward(self, number: int, part: int) -> None:
        """Take the batch's rows out of the cache. Raises InfeasibleError if one was never fetched."""
        micro = self.batches[number].micros[0]
        micro.rows = gather(self.cache[0], micro.asked.values)
        if np.isnan(micro.rows[:, 0]).any():
            raise InfeasibleError(f"batch {number} uses rows that its oracle never fetched")
        super().forward(number, part)

    def sync_now(self, number: int, channel: Channel) -> None:
        """Add up, over all workers, the gradients of rows that the next batch uses."""
        micro, used = self.batches[number].micros[0], self.schedule.used[number]
        assert micro.gradient is not None
        whole = np.zeros((len(used), self.settings.model.dimension), dtype=np.float32)
        whole[np.searchsorted(used, micro.asked.values)] = micro.gradient
        urgent = self.schedule.urgent(number)
        patient = np.setdiff1d(np.arange(len(used)), urgent, assume_unique=True)
        self.now[number] = Due(used[urgent], _summed(whole[urgent], channel))
        self.later[number] = Due(used[patient], whole[patient])

    def sync_later(self, number: int, channel: Channel) -> None:
        """Add up the others, while the next batch computes."""
        due = self.later[number]
        due.gradient = _summed(due.gradient, channel)

    def apply(self, number: int) -> None:
        """Update the urgent rows of this batch and the others of the batch before."""
        self._update(self.now.pop(number))
        if number - 1 in self.later:
            self._update(self.later.pop(number - 1))

    def _update(self, due: Due) -> None:
        rows = tuple(gather(array, due.rows) for array in self.cache)
        self.shard.update(rows, due.gradient)
        for array, updated in zip(self.cache, rows, strict=True):
            scatter(array, due.rows, updated)

    def write_rows_back(self, number: int) -> None:
        """Each worker writes an even part of the rows that have left the cache."""
        gone = self.schedule.written.get(number, NOTHING)
        self._write(gone)
        for array in self.cache:
            array[gone] = np.nan

    def _write(self, rows: IntArray) -> None:
        order, at = self._by_server(rows[self._servers.sender :: self.ranks])
        cuts, numbers = self._cuts(order), self._row_numbers(order)
        parts = [numbers[cuts[server] : cuts[server + 1]] for server in range(self.ranks)]
        self._servers.write(at, [np.stack([gather(array, part) for array in self.cache]) for part in parts])

    def final_rows(self) -> Array:
        """Apply what is still due, write everything back, and return this rank's share of the tables."""
        for number in sorted(self.later):
            self._update(self.later.pop(number))
        self._write(self.schedule.left)
        next(iter(self.channels.values())).barrier()
        return super().final_rows()

    def _by_server(self, rows: IntArray) -> tuple[IntArray, list[IntArray]]:
        """Return the codes of rows in the order of servers, and the places at each server."""
        order = np.sort(codes(rows, self.ranks))
        cuts, at = self._cuts(order), places(order)
        return order, [at[cuts[server] : cuts[server + 1]] for server in range(self.ranks)]

    def _cuts(self, order: IntArray) -> IntArray:
        return by_owner(order, self.ranks)

    def _row_numbers(self, order: IntArray) -> IntArray:
        return places(order) * self.ranks + (order >> 40)


def _summed(values: Array, channel: Channel) -> Array:
    return channel.all_reduce(values.reshape(-1)).reshape(values.shape)


def used_rows(keys: list[Array]) -> list[IntArray]:
    """Return the distinct rows of each batch over all workers; `keys` are (batches, samples, tables) each."""
    batches = len(keys[0])
    return [
        np.unique(np.concatenate([k[b].reshape(-1) for k in keys])).astype(np.int64) for b in range(batches)
    ]
