"""Policies on parameter servers keep their contract; those broken on purpose are caught and located."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from simulator.pipeline import Access, Carry, Pipeline, Stage
from simulator.policies import catalog
from simulator.policies.bagpipe import Bagpipe
from simulator.policies.base import Policy
from simulator.policies.dual_buffer import DualBuffer
from simulator.policies.het import Het
from simulator.policies.no_cache import NoCache
from simulator.policies.parts import HOST
from simulator.policies.rpc import RpcCoalesced, RpcPerTable
from simulator.policies.server_parts import CACHE
from simulator.sharding import TrainStep
from simulator.testing import PolicyError, check_policy, example_steps

ON_SERVERS = ("servers",)


def server_step() -> TrainStep:
    return next(example_steps(needs=ON_SERVERS))


@pytest.mark.parametrize(
    "policy",
    [
        RpcPerTable(asynchronous=True),
        RpcCoalesced(reference_counted=False),
        NoCache(all_rows=True),
        Het(1),
        Het(3),
        Bagpipe(2),
        Bagpipe(3),
        Bagpipe(11),
        Bagpipe(13, delayed=False),
    ],
    ids=repr,
)
def test_variants_keep_their_contract(policy: Policy) -> None:
    check_policy(policy, server_step())


def test_a_long_lookahead_is_as_fresh_as_a_short_one() -> None:
    check_policy(Bagpipe(64), server_step())


# ---------------------------------------------------------------- broken on purpose

Change = Callable[[Pipeline], Pipeline]


@dataclass(frozen=True)
class Broken:
    """A policy whose plan is changed afterwards; it still promises what the original does."""

    whole: Policy
    change: Change
    needs: tuple[str, ...] = ON_SERVERS

    @property
    def consistency(self) -> str:
        return self.whole.consistency

    @property
    def staleness_steps(self) -> int:
        return self.whole.staleness_steps

    def moves(self, step: TrainStep) -> tuple[float, float]:
        return self.whole.moves(step)  # type: ignore[attr-defined, no-any-return]

    def plan(self, step: TrainStep) -> Pipeline:
        return self.change(self.whole.plan(step))


def stage(pipeline: Pipeline, name: str) -> Stage:
    return next(one for one in pipeline.stages if one.name == name)


def rebuilt(pipeline: Pipeline, old: Stage, **changes: object) -> Pipeline:
    """The pipeline with one stage changed, and all that names it."""
    known: dict[int, Stage] = {}

    def new(one: Stage) -> Stage:
        if id(one) not in known:
            made = replace(one, **changes) if one is old else one  # type: ignore[arg-type]
            known[id(one)] = replace(made, after=tuple(new(before) for before in made.after))
        return known[id(one)]

    return Pipeline(
        {name: [new(one) for one in stream] for name, stream in pipeline.streams.items()},
        [Carry(new(one.source), new(one.to), one.lag) for one in pipeline.carries],
        [
            replace(
                one,
                taken_by=new(one.taken_by),
                freed_by=[(new(freed), -lag + one.slots) for freed, lag in one.releases()],
            )
            for one in pipeline.buffers
        ],
        [new(one) for one in pipeline.updates],
        row_updates=[new(one) for one in pipeline.row_updates],
        caches=pipeline.caches,
    )


def without_sync_now(pipeline: Pipeline) -> Pipeline:
    """Gradients of rows that the next batch uses are applied one batch late, as all others are."""
    apply = stage(pipeline, "apply")
    late = tuple(replace(one, late=1) if one.keys == "next" else one for one in apply.reads)
    return rebuilt(pipeline, apply, reads=late, writes=late)


def fetch_before_write_back(pipeline: Pipeline) -> Pipeline:
    """The request for a window does not wait until all have written back."""
    fetch = stage(pipeline, "fetch")
    carries = [one for one in pipeline.carries if one.to is not fetch]
    carries.append(Carry(stage(pipeline, "all_written"), to=stage(pipeline, "apply"), lag=16))
    apart = {name: list(stages) for name, stages in pipeline.streams.items()}
    apart["server"] = [one for one in apart["server"] if one is not fetch]
    apart["fetch"] = [fetch]
    return Pipeline(
        apart, carries, updates=pipeline.updates, row_updates=pipeline.row_updates, caches=pipeline.caches
    )


def never_written_back(pipeline: Pipeline) -> Pipeline:
    back = stage(pipeline, "all_written")
    nowhere = (replace(CACHE, keys="expired", within=8),)
    return rebuilt(pipeline, back, writes=nowhere)


def single_use_rows_dropped(pipeline: Pipeline) -> Pipeline:
    """Rows that one worker alone needs are never updated."""
    apply = stage(pipeline, "apply")
    kept = tuple(one for one in apply.reads if one.keys != "single")
    return rebuilt(pipeline, apply, reads=kept, writes=kept)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (without_sync_now, r"1 batches old \(batch \d+, keys that every batch uses\)"),
        (fetch_before_write_back, r"\(batch \d+, (single-use )?keys last used by batch \d+\)"),
        (never_written_back, r"\(batch \d+, (single-use )?keys last used by batch \d+\)"),
        (single_use_rows_dropped, r"\(batch \d+, single-use keys last used by batch \d+\)"),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_a_broken_bagpipe_is_caught_with_batch_and_keys(change: Change, where: str) -> None:
    with pytest.raises(PolicyError, match=where):
        check_policy(Broken(Bagpipe(8), change), server_step())


def no_copy_on_intersection(pipeline: Pipeline) -> Pipeline:
    return rebuilt(pipeline, stage(pipeline, "refresh"), reads=(), writes=())


def write_back_too_late(pipeline: Pipeline) -> Pipeline:
    """The buffer of batch k is free before batch k - 2 has been written back, on a stream of its own."""
    back, refresh = stage(pipeline, "write_back"), stage(pipeline, "refresh")
    apart = {name: [one for one in stages if one is not back] for name, stages in pipeline.streams.items()}
    apart["write back"] = [back]
    loose = [replace(one, slots=8, freed_by=[back, (refresh, 1)]) for one in pipeline.buffers]
    return Pipeline(apart, pipeline.carries, loose, pipeline.updates)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (no_copy_on_intersection, r"1 batches old \(batch \d+, keys that every batch uses\)"),
        (write_back_too_late, r"2 batches old \(batch (\d+), keys last used by batch \d+\)"),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_a_broken_dual_buffer_is_caught_with_batch_and_keys(change: Change, where: str) -> None:
    with pytest.raises(PolicyError, match=where):
        check_policy(Broken(DualBuffer(), change, needs=()), next(example_steps()))


def test_a_lone_unchanged_rebuild_is_not_caught() -> None:
    """The changes above are what is found, not the way they are made."""
    check_policy(
        Broken(Bagpipe(8), lambda pipeline: rebuilt(pipeline, stage(pipeline, "fetch"))), server_step()
    )


def test_a_cache_with_bounded_staleness_that_meets_servers_too_seldom_is_caught() -> None:
    class Later(Het):
        staleness_steps = 2

    with pytest.raises(PolicyError, match="declares a staleness of 2"):
        check_policy(Later(3), server_step())


def test_an_amount_for_one_batch_where_a_period_is_fetched_is_caught() -> None:
    def short(pipeline: Pipeline) -> Pipeline:
        rows = server_step().lookahead(8)
        fetch = stage(pipeline, "fetch")
        return rebuilt(pipeline, fetch, work=server_step().served.fetch(rows.fetched))

    with pytest.raises(PolicyError, match="bytes host_to_device per rank and batch; the policy declares"):
        check_policy(Broken(Bagpipe(8), short), server_step())


def test_all_rows_live_at_the_servers_so_a_lost_worker_takes_no_table_along() -> None:
    """Every store that rows persist in beside the tables is written to the tables before it is read anew."""
    for name in ("rpc_per_table", "rpc_coalesced", "no_cache"):
        pipeline = catalog.build(name).plan(server_step())
        kept = {write.store for one in pipeline.stages for write in one.writes if write.of is None}
        assert kept == {HOST.store}
    pipeline = Bagpipe(8).plan(server_step())
    back = stage(pipeline, "all_written")
    assert [one.store for one in back.reads] == [CACHE.store]
    assert [one.store for one in back.writes] == [HOST.store]
    assert {read.store for read in stage(pipeline, "fetch").reads} == {HOST.store}


def test_a_selector_that_nobody_knows_is_refused_with_the_nearest() -> None:
    from simulator.errors import InputError

    with pytest.raises(InputError, match='did you mean "expired"'):
        Access("rows", keys="expird")
