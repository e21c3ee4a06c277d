"""HET: caches of rows with bounded staleness. A worker trains on its copy until it is too old.

Rows that the worker has not used lately are fetched when a batch needs them. Its own updates are added to
its cache, so it sees them at once; every `staleness` + 1 batches it pushes them and, when all workers have,
fetches what it keeps anew. Between, it does not see what others have learned. HET (arXiv 2112.07221) keeps
a clock for each row; here all rows of all caches meet the servers together, which moves as many rows (our
simplification).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from annotated_types import Ge, Le

from simulator.errors import InputError
from simulator.pipeline import Access, Carry, Pipeline, Stage
from simulator.policies.parts import HOST, copy_inputs, read_inputs
from simulator.policies.server_parts import CACHE, all_in, dense, moved
from simulator.sharding.lookahead import Lookahead
from simulator.sharding.moves import width_total
from simulator.sharding.step import TrainStep

PENDING = Access("updates not yet pushed", of=None)


@dataclass(frozen=True)
class Het:
    """A cached row lacks at most the `staleness` latest updates of others.

    Raises InputError for a staleness below 1: that is synchronous, and `rpc_coalesced`.
    """

    staleness: Annotated[int, Ge(1), Le(200)] = 10
    consistency: ClassVar[str] = "stale"
    needs: ClassVar[tuple[str, ...]] = ("servers",)

    def __post_init__(self) -> None:
        """Refuse a bound that leaves nothing to be stale."""
        if self.staleness < 1:
            given = self.staleness
            raise InputError(f"het lets rows be 1 update old or more, not {given}: take rpc_coalesced")

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
        """Return read+2, inputs+1, collect+1; now and then push, all_pushed and refresh; fetch, update."""
        rows = step.lookahead(self.staleness, ranks=1)
        read = read_inputs(step, ahead=2)
        inputs = copy_inputs(step, read, ahead=1)
        collect = Stage("collect", "lookup", step.served.collect, after=[inputs], ahead=1)
        meeting = self._meet_servers(step, rows, collect)
        push, *_, refresh = meeting
        fetch = self._fetch(step, rows, [collect, refresh])
        passes = dense(step, [fetch], [CACHE])
        work = rows.update(rows.distinct)
        mine = (replace(PENDING, adds=True), replace(CACHE, keys="own", adds=True))
        update = Stage("update", "compute", work, [passes.optimizer], reads=(CACHE, PENDING), writes=mine)
        streams = {
            "loader": [read],
            "copy": [inputs],
            "client": [collect],
            "server": [*meeting, fetch],
            "all_reduce": passes.back.reduces,
            "compute": [*passes.computes, update],
        }
        carries, updates = [Carry(update, to=push)], [passes.optimizer, update]
        return Pipeline(streams, carries, updates=updates, caches=self._kept(rows))

    def _kept(self, rows: Lookahead) -> dict[str, float]:
        """Rows of all batches between two meetings, and a gradient for each of them that nobody else has."""
        used = rows.used
        return {CACHE.store: rows.bytes_with_state(used), PENDING.store: float(width_total(used))}

    def _meet_servers(self, step: TrainStep, rows: Lookahead, collect: Stage) -> tuple[Stage, ...]:
        """Push what was learned since the last time; once all have, fetch anew what stays in the cache."""
        every, served = self.staleness + 1, step.served
        mine, theirs = (replace(store, late=every) for store in (PENDING, HOST))
        push = Stage("push", "parameter_server", served.push(rows.used), [collect], every=every)
        done = all_in(step, "all_pushed", push, (mine, replace(theirs, adds=True)))
        refresh = Stage(
            "refresh", "parameter_server", served.fetch(rows.kept), [done], every=every,
            reads=(HOST,), writes=(CACHE,),
        )  # fmt: skip
        return push, done, refresh

    def _fetch(self, step: TrainStep, rows: Lookahead, after: Sequence[Stage]) -> Stage:
        there, here = (replace(store, keys="missing", within=self.staleness) for store in (HOST, CACHE))
        work = step.served.fetch(rows.prefetched)
        return Stage("fetch", "parameter_server", work, after, reads=(there,), writes=(here,))
