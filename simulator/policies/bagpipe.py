"""Bagpipe: an oracle looks ahead, rows wait in caches on the workers, and most gradients can take their time.

Rows that a batch within the lookahead uses are prefetched, one request for a part of it, and stay until
their last known use; what leaves is written back first. Gradients of rows that the next batch uses are
added up at once, the others while the next batch computes, those that nobody else needs not at all.
Sources: arXiv 2202.12429 and the authors' code, github.com/uw-mad-dash/bagpipe, revision 2b50967, where the
lookahead is 200 batches and caches are seen to every 0.25 of it.
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from annotated_types import Ge, Le

from simulator.errors import InputError
from simulator.pipeline import Access, Carry, Pipeline, Stage
from simulator.policies.parts import HOST, copy_inputs
from simulator.policies.server_parts import CACHE, GRADIENTS, Dense, all_in, dense, look_ahead, moved
from simulator.quantities import AllReduceWork, InTurn
from simulator.sharding.lookahead import Lookahead
from simulator.sharding.moves import width_total
from simulator.sharding.served import Rows
from simulator.sharding.step import TrainStep


@dataclass(frozen=True)
class Bagpipe:
    """The oracle knows `lookahead` batches; without `delayed` sync, all gradients are added up at once.

    `refresh` is the share of the lookahead after which rows are written back and fetched (default: that of
    the authors' code). Raises InputError for a lookahead below 2: that is `no_cache`; and for a share that
    is not in (0, 0.5]: the next window must be there before this one has been trained on.
    """

    lookahead: Annotated[int, Ge(2), Le(1000)] = 200
    delayed: bool = True
    refresh: Annotated[float, Ge(0.001), Le(0.5)] = 0.25
    consistency: ClassVar[str] = "synchronous"
    staleness_steps: ClassVar[int] = 0
    needs: ClassVar[tuple[str, ...]] = ("servers",)

    def __post_init__(self) -> None:
        """Refuse a lookahead that leaves nothing to keep."""
        if self.lookahead < 2:
            raise InputError(f"bagpipe looks at least 2 batches ahead, not {self.lookahead}: take no_cache")
        if not 0 < self.refresh <= 0.5:
            given = self.refresh
            raise InputError(f"bagpipe refreshes after a share of the lookahead up to 0.5, not {given}")

    @property
    def period(self) -> int:
        """Batches from one prefetch to the next."""
        return max(1, int(self.refresh * self.lookahead))

    def moves(self, step: TrainStep) -> tuple[float, float]:
        """Return the bytes of rows that a worker fetches per batch, and those that it gives back."""
        rows = step.lookahead(self.lookahead)
        return moved(rows.fetched, rows.written)

    def plan(self, step: TrainStep) -> Pipeline:
        """Return look_ahead+L, inputs+1, fetch+L-P, the passes, sync now and later, apply, write_back.

        P is the period of fetch and write_back.
        """
        rows = step.lookahead(self.lookahead)
        oracle = look_ahead(step, self.lookahead)
        inputs = copy_inputs(step, oracle, ahead=1)
        fetch = self._fetch(step, rows, oracle)
        passes = dense(step, [inputs, fetch], [CACHE])
        now, later, apply = self._synchronize(rows, passes)
        back, done = self._write_back(step, rows, apply)
        streams = {
            "oracle": [oracle],
            "copy": [inputs],
            "server": [back, done, fetch],
            "network": [now],
            "background": [later],
            "all_reduce": passes.back.reduces,
            "compute": [*passes.computes, apply],
        }
        decided = Carry(oracle, to=fetch, lag=1 - self.period)  # on the last batch that a fetch serves
        carries = [Carry(later, to=now), Carry(done, to=fetch, lag=fetch.ahead), decided]
        updates = [passes.optimizer, apply]
        kept = {CACHE.store: rows.cached_bytes, GRADIENTS: _bytes(rows.synchronized)}
        return Pipeline(streams, carries, updates=updates, row_updates=[apply], caches=kept)

    def _fetch(self, step: TrainStep, rows: Lookahead, oracle: Stage) -> Stage:
        """One request for all rows that enter the cache in a period, as early as all of it is known."""
        work = step.served.fetch(_times(self.period, rows.fetched))
        ahead = (self.lookahead // self.period - 1) * self.period
        there, here = (replace(store, keys="missing", within=self.lookahead) for store in (HOST, CACHE))
        return Stage(
            "fetch", "parameter_server", work, [oracle], ahead, self.period, reads=(there,), writes=(here,)
        )

    def _synchronize(self, rows: Lookahead, passes: Dense) -> tuple[Stage, Stage, Stage]:
        """Return sync now, sync later (beside the next batch), and what applies the gradients of both."""
        urgent, patient = rows.sync_now, rows.sync_later
        if not self.delayed:
            urgent, patient = rows.synchronized, {}
        after = [passes.last, passes.optimizer]
        now = Stage("sync_now", "all_reduce", AllReduceWork(_bytes(urgent)), after=after)
        both = rows.synchronized
        used = InTurn((rows.taken_apart(both), rows.update(both), rows.update(rows.no_sync_of_one)))
        updated = tuple(replace(one, adds=True) for one in self._applied)
        apply = Stage("apply", "compute", used, after=[now], reads=self._applied, writes=updated)
        later = Stage("sync_later", "all_reduce", AllReduceWork(_bytes(patient)), after=[apply])
        return now, later, apply

    @property
    def _applied(self) -> tuple[Access, ...]:
        """Urgent gradients and those that stay at one worker at once, the others one batch later."""
        sets = (("next", 0), ("single", 0), ("later", 1 if self.delayed else 0))
        return tuple(Access(CACHE.store, keys, None, self.lookahead, late) for keys, late in sets)

    def _write_back(self, step: TrainStep, rows: Lookahead, apply: Stage) -> tuple[Stage, Stage]:
        """Each worker writes an even part of what has left the cache; servers wait for all of them."""
        work = step.served.write(_times(self.period, rows.written))
        late = self.period
        here, there = (
            replace(store, keys="expired", within=self.lookahead, late=late) for store in (CACHE, HOST)
        )
        back = Stage("write_back", "parameter_server", work, [apply], every=late)
        return back, all_in(step, "all_written", back, (here, there))


def _times(batches: int, rows: Rows) -> Rows:
    return {width: batches * count for width, count in rows.items()}


def _bytes(rows: Rows) -> float:
    return float(width_total(rows))
