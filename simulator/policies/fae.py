"""FAE: the hottest rows stay on every accelerator, the others on parameter servers.

Gradients of hot rows are added up over all workers, cold rows are fetched and their gradients pushed. FAE
(arXiv 2103.00686) sorts samples into hot and cold batches, so that hot ones need no server; here each batch
has its average part of both.
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from annotated_types import Ge, Le

from simulator.pipeline import Carry, Pipeline, Stage
from simulator.policies.parts import HOST, ROWS, copy_inputs, read_inputs
from simulator.policies.server_parts import CACHE, GRADIENTS, all_in, dense, moved
from simulator.quantities import AllReduceWork
from simulator.sharding.hot_cold import HotCold
from simulator.sharding.moves import width_total
from simulator.sharding.step import TrainStep

COLD, BROUGHT, HOT = (
    replace(store, keys=keys) for store, keys in ((HOST, "cold"), (ROWS, "cold"), (CACHE, "hot"))
)


@dataclass(frozen=True)
class Fae:
    """`hot`: the share of each table's rows, the most popular ones, that every accelerator holds."""

    hot: Annotated[float, Ge(0.0), Le(1.0)] = 0.01
    consistency: ClassVar[str] = "synchronous"
    staleness_steps: ClassVar[int] = 0
    needs: ClassVar[tuple[str, ...]] = ("servers",)

    def moves(self, step: TrainStep) -> tuple[float, float]:
        """Return the bytes of rows that a worker fetches per batch, and those that it gives back."""
        rows = HotCold(step.served, self.hot)
        return moved(rows.cold, rows.cold)

    def plan(self, step: TrainStep) -> Pipeline:
        """Return read+2, inputs+1, collect+1, fetch of cold rows, the passes, sync of hot rows, push."""
        rows, served = HotCold(step.served, self.hot), step.served
        read = read_inputs(step, ahead=2)
        inputs = copy_inputs(step, read, ahead=1)
        collect = Stage("collect", "lookup", served.collect, after=[inputs], ahead=1)
        work = served.fetch(rows.cold)
        fetch = Stage("fetch", "parameter_server", work, after=[collect], reads=(COLD,), writes=(BROUGHT,))
        passes = dense(step, [fetch], [BROUGHT, HOT])
        size = float(width_total(rows.hot))
        sync = Stage("sync_hot", "all_reduce", AllReduceWork(size), after=[passes.last, passes.optimizer])
        updated = (replace(HOT, adds=True),)
        apply = Stage("apply", "compute", rows.update, after=[sync], reads=(HOT,), writes=updated)
        work = served.push(rows.cold)
        push = Stage("push", "parameter_server", work, after=[passes.last])
        done = all_in(step, "all_pushed", push, (COLD, replace(COLD, adds=True)))
        streams = {
            "loader": [read],
            "copy": [inputs],
            "client": [collect],
            "server": [fetch, push, done],
            "network": [sync],
            "all_reduce": passes.back.reduces,
            "compute": [*passes.computes, apply],
        }
        updates, kept = [passes.optimizer, apply, done], {CACHE.store: rows.held_bytes, GRADIENTS: size}
        return Pipeline(streams, [Carry(done, to=fetch)], updates=updates, caches=kept)
