"""Bagpipe's baseline without a cache: every batch's rows are fetched, trained on, and written back.

Each worker fetches all rows of the global batch, gradients of all of them are added up over all workers, and
each writes back an even part. So do the scripts of the authors (github.com/uw-mad-dash/bagpipe, revision
2b50967, `distributed_trainer_emb_bag_no_cache_no_prefetch.py`; arXiv 2202.12429), but there the workers take
turns in writing everything back.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from simulator.pipeline import Carry, Pipeline, Stage
from simulator.policies.parts import HOST, ROWS, copy_inputs
from simulator.policies.server_parts import GRADIENTS, all_in, dense, look_ahead, moved
from simulator.quantities import AllReduceWork, InTurn
from simulator.sharding.lookahead import Lookahead
from simulator.sharding.moves import width_total
from simulator.sharding.served import Rows
from simulator.sharding.step import TrainStep


@dataclass(frozen=True)
class NoCache:
    """No cache and no prefetching. Without `all_rows`, workers leave out what another one alone looks up."""

    all_rows: bool = True
    consistency: ClassVar[str] = "synchronous"
    staleness_steps: ClassVar[int] = 0
    needs: ClassVar[tuple[str, ...]] = ("servers",)

    def moves(self, step: TrainStep) -> tuple[float, float]:
        """Return the bytes of rows that a worker fetches per batch, and those that it gives back."""
        rows = step.lookahead(0)
        return moved(self._fetched(rows), rows.written)

    def _fetched(self, rows: Lookahead) -> Rows:
        return rows.distinct if self.all_rows else rows.fetched

    def plan(self, step: TrainStep) -> Pipeline:
        """Return look_ahead+2, inputs+1, fetch, the passes, sync, apply, write_back."""
        rows, served = step.lookahead(0), step.served
        both = rows.distinct if self.all_rows else rows.synchronized
        size = float(width_total(both))
        oracle = look_ahead(step, 0)
        inputs = copy_inputs(step, oracle, ahead=1)
        work = served.fetch(self._fetched(rows))
        fetch = Stage("fetch", "parameter_server", work, after=[inputs], reads=(HOST,), writes=(ROWS,))
        passes = dense(step, [fetch], [ROWS])
        sync = Stage("sync", "all_reduce", AllReduceWork(size), after=[passes.last, passes.optimizer])
        used = InTurn((rows.taken_apart(both), rows.update(self._fetched(rows))))
        updated = (replace(ROWS, adds=True),)
        apply = Stage("apply", "compute", used, after=[sync], reads=(ROWS,), writes=updated)
        work = served.write(rows.written)
        back = Stage("write_back", "parameter_server", work, after=[apply])
        done = all_in(step, "all_written", back, (ROWS, HOST))
        streams = {
            "oracle": [oracle],
            "copy": [inputs],
            "server": [fetch, back, done],
            "network": [sync],
            "all_reduce": passes.back.reduces,
            "compute": [*passes.computes, apply],
        }
        updates = [passes.optimizer, apply, done]
        return Pipeline(streams, [Carry(done, to=fetch)], updates=updates, caches={GRADIENTS: size})
