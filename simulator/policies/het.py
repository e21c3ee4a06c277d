"""HET: caches of rows with bounded staleness. A worker trains on its copy until it is too old.

Rows that the worker has not used lately are fetched when a batch needs them. Its own updates stay in its
cache; every `staleness` + 1 batches it pushes them and fetches what it keeps anew. Between, it does not see
what others have learned. HET keeps a clock for each row; here all rows of a cache meet the servers together,
which moves as many rows (our simplification).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from annotated_types import Le

from simulator.pipeline import Access, Carry, Pipeline, Stage
from simulator.policies.parts import HOST, copy_inputs, read_inputs
from simulator.policies.server_parts import CACHE, dense, moved
from simulator.sharding.lookahead import Lookahead
from simulator.sharding.step import TrainStep

PENDING = Access("updates not yet pushed", of=None)


@dataclass(frozen=True)
class Het:
    """A cached row lacks at most the `staleness` latest updates of others."""

    staleness: Annotated[int, Le(200)] = 10
    consistency: ClassVar[str] = "stale"
    needs: ClassVar[tuple[str, ...]] = ("servers",)

    @property
    def staleness_steps(self) -> int:
        """As many as are allowed."""
        return self.staleness

    def moves(self, step: TrainStep) -> tuple[float, float]:
        """Return the bytes of rows that a worker fetches per batch, and those that it gives back."""
        rows, share = step.lookahead(self.staleness, ranks=1), 1.0 / (self.staleness + 1)
        fetched, again = moved(rows.prefetched, rows.kept)
        return fetched + share * again, share * moved(rows.used, rows.used)[1]

    def plan(self, step: TrainStep) -> Pipeline:
        """Return read+2, inputs+1, collect+1; push and refresh now and then; fetch, the passes, update."""
        rows = step.lookahead(self.staleness, ranks=1)
        read = read_inputs(step, ahead=2)
        inputs = copy_inputs(step, read, ahead=1)
        collect = Stage("collect", "lookup", step.served.collect, after=[inputs], ahead=1)
        push, refresh = self._meet_servers(step, rows, collect)
        fetch = self._fetch(step, rows, [collect, refresh])
        passes = dense(step, [fetch], [CACHE])
        work = rows.update(rows.distinct)
        update = Stage("update", "compute", work, [passes.optimizer], reads=(PENDING,), writes=(PENDING,))
        streams = {
            "loader": [read],
            "copy": [inputs],
            "client": [collect],
            "server": [push, refresh, fetch],
            "all_reduce": passes.back.reduces,
            "compute": [*passes.computes, update],
        }
        carries, kept = [Carry(update, to=push)], {CACHE.store: rows.cached_bytes}
        return Pipeline(streams, carries, updates=[passes.optimizer, update], caches=kept)

    def _meet_servers(self, step: TrainStep, rows: Lookahead, collect: Stage) -> tuple[Stage, Stage]:
        """Push what was learned since the last time, then fetch anew what stays in the cache."""
        every, served = self.staleness + 1, step.served
        mine, theirs = (replace(store, late=every) for store in (PENDING, HOST))
        push = Stage(
            "push", "parameter_server", served.push(rows.used), [collect], every=every,
            reads=(mine, theirs), writes=(theirs,),
        )  # fmt: skip
        refresh = Stage(
            "refresh", "parameter_server", served.fetch(rows.kept), [push], every=every,
            reads=(HOST,), writes=(CACHE,),
        )  # fmt: skip
        return push, refresh

    def _fetch(self, step: TrainStep, rows: Lookahead, after: Sequence[Stage]) -> Stage:
        there, here = (replace(store, keys="missing", within=self.staleness) for store in (HOST, CACHE))
        work = step.served.fetch(rows.prefetched)
        return Stage("fetch", "parameter_server", work, after, reads=(there,), writes=(here,))
