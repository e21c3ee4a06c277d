"""Policies on parameter servers keep their contract; those broken on purpose are caught and located."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from simulator.engine import Durations
from simulator.engine.events import run_events
from simulator.errors import InputError
from simulator.pipeline import Access, Carry, Pipeline, Stage, compile_pipeline
from simulator.policies import catalog
from simulator.policies.bagpipe import Bagpipe
from simulator.policies.base import Policy
from simulator.policies.dual_buffer import DualBuffer
from simulator.policies.fae import Fae
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
        Bagpipe(8, refresh=0.5),
        Bagpipe(12, refresh=0.1),
        Fae(hot=0.1),
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
        (no_copy_on_intersection, r"\d+ batches old \(batch \d+, keys that every batch uses\)"),
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


@pytest.mark.parametrize(("bound", "declared"), [(3, 2), (30, 28), (30, 29)])
def test_a_cache_with_bounded_staleness_that_meets_servers_too_seldom_is_caught(
    bound: int, declared: int
) -> None:
    class Later(Het):
        staleness_steps = declared

    found = f"lack an update {bound} batches old.*declares a staleness of {declared}"
    with pytest.raises(PolicyError, match=found):
        check_policy(Later(bound), server_step())


def test_a_long_bound_is_kept() -> None:
    check_policy(Het(30), server_step())


def test_a_cache_that_gives_back_only_what_the_next_batch_uses_is_caught() -> None:
    """Keys that come back after ten batches or more tell: shorter gaps are within the bound."""

    def only_next(pipeline: Pipeline) -> Pipeline:
        done = stage(pipeline, "all_pushed")
        reads, writes = (tuple(replace(o, keys="next") for o in some) for some in (done.reads, done.writes))
        return rebuilt(pipeline, done, reads=reads, writes=writes)

    with pytest.raises(PolicyError, match=r"1\d batches old \(batch \d+, keys last used by batch \d+\)"):
        check_policy(Broken(Het(10), only_next), server_step())


def a_batch_ahead(pipeline: Pipeline) -> Pipeline:
    """Cold rows are fetched before the batch before has pushed its gradients."""
    ahead, known = {"read": 3, "inputs": 2, "collect": 2, "fetch": 1}, dict[int, Stage]()

    def new(one: Stage) -> Stage:
        if id(one) not in known:
            after = tuple(new(before) for before in one.after)
            known[id(one)] = replace(one, after=after, ahead=ahead.get(one.name, one.ahead))
        return known[id(one)]

    return Pipeline(
        {name: [new(one) for one in stream] for name, stream in pipeline.streams.items()},
        [Carry(new(one.source), new(one.to), one.lag + 1) for one in pipeline.carries],
        updates=[new(one) for one in pipeline.updates],
        caches=pipeline.caches,
    )


def hot_rows_never_updated(pipeline: Pipeline) -> Pipeline:
    return rebuilt(pipeline, stage(pipeline, "apply"), reads=(), writes=())


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (a_batch_ahead, r"1 batches old \(batch \d+, cold keys that every batch uses\)"),
        (hot_rows_never_updated, r"\(batch \d+, hot keys that every batch uses\)"),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_a_broken_fae_is_caught_with_the_class_of_its_keys(change: Change, where: str) -> None:
    with pytest.raises(PolicyError, match=where):
        check_policy(Broken(Fae(), change), server_step())


@pytest.mark.parametrize(
    ("policy", "sends", "gets"),
    [
        (RpcCoalesced(), "push", "fetch"),
        (NoCache(), "write_back", "fetch"),
        (Fae(), "push", "fetch"),
        (Het(3), "push", "refresh"),
    ],
    ids=repr,
)
def test_no_worker_gets_rows_from_servers_before_the_slowest_has_sent_its_own(
    policy: Policy, sends: str, gets: str
) -> None:
    graph = compile_pipeline(policy.plan(server_step()))
    ns = {sends: (10, 500)}
    nominal = np.array([ns.get(node.name, (10, 10)) for node in graph.nodes])
    cycles = 8 * 4 // graph.period
    wide = np.broadcast_to(nominal[:, None, :], (len(nominal), cycles, 2))
    timeline = run_events(graph, Durations(wide, np.arange(2), nominal))
    (sent,), (got,) = ([i for i, n in enumerate(graph.nodes) if n.name == name] for name in (sends, gets))
    lag = 0 if policy == Het(3) else 1  # HET gets rows at the same meeting, others for the next batch
    begun, ended = timeline.start_ns[got, lag:], timeline.end_ns[sent, : cycles - lag]
    assert (begun.min(axis=1) >= ended.max(axis=1)).all()


@pytest.mark.parametrize(("lookahead", "refresh"), [(8, 0.25), (12, 0.5), (2, 0.25)])
def test_a_fetch_waits_until_the_oracle_has_decided_on_every_batch_that_it_serves(
    lookahead: int, refresh: float
) -> None:
    policy = Bagpipe(lookahead, refresh=refresh)
    graph = compile_pipeline(policy.plan(server_step()))
    nominal = np.array([[5000 if node.name == "look_ahead" else 10] for node in graph.nodes])
    cycles = 8 * lookahead // graph.period
    wide = np.broadcast_to(nominal[:, None, :], (len(nominal), cycles, 1))
    timeline = run_events(graph, Durations(wide, np.zeros(1, dtype=np.int64), nominal))
    decided = [timeline.end_ns[i, :, 0] for i, n in enumerate(graph.nodes) if n.name == "look_ahead"]
    fetch = next(i for i, node in enumerate(graph.nodes) if node.name == "fetch")
    assert graph.period == policy.period == len(decided)
    for ends in decided:
        assert (timeline.start_ns[fetch, :, 0] >= ends).all()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Het(0), "1 update old or more, not 0: take rpc_coalesced"),
        (lambda: Het(-1), "1 update old or more, not -1"),
        (lambda: Bagpipe(200, refresh=0.6), "a share of the lookahead up to 0.5, not 0.6"),
        (lambda: Bagpipe(200, refresh=0.0), "a share of the lookahead up to 0.5, not 0"),
    ],
)
def test_numbers_that_make_another_policy_or_none_are_refused(make: Callable[[], Policy], why: str) -> None:
    with pytest.raises(InputError, match=why):
        make()


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
    with pytest.raises(InputError, match='did you mean "expired"'):
        Access("rows", keys="expird")
