"""Which updates the rows of a batch contain, read off timelines that were made by hand."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from simulator.engine import Durations
from simulator.engine.events import run_events
from simulator.pipeline import Access, Buffer, Carry, Pipeline, Stage, compile_pipeline
from simulator.policies import catalog
from simulator.policies.het import Het
from simulator.quantities import AllToAllWork
from simulator.results.key_classes import Reuse, longest_gap
from simulator.results.staleness import Staleness, observe, readers
from simulator.results.timeline import Timeline
from simulator.sharding import RowWise
from simulator.testing import example_steps

TABLE = Access("table", of=None)
PLACE = Access("rows")
MEETING = AllToAllWork(1.0)


def run(pipeline: Pipeline, ns: Mapping[str, object], columns: int = 1, batches: int = 30) -> Timeline:
    graph = compile_pipeline(pipeline)
    nominal = np.array(
        [np.broadcast_to(ns.get(node.name, 1), (columns,)) for node in graph.nodes],  # type: ignore[arg-type]
        dtype=np.int64,
    )
    wide = np.broadcast_to(nominal[:, None, :], (len(nominal), batches // graph.period, columns))
    return run_events(graph, Durations(wide, np.arange(columns), nominal))


def seen(timeline: Timeline, column: int = 0, shared: float = 0.25) -> Staleness | None:
    return observe(timeline, column, range(14, 20), Reuse.alike(shared))


def life(
    ahead: int = 0, copy: bool = False, slots: int | None = None, paced: bool = True, adds: bool = True
) -> Pipeline:
    """retrieve [-> copy of shared rows] -> exchange -> train -> update -> write back, `ahead` batches early.

    With `slots` the row buffers wait for the write-back; when `paced`, so does whoever is issued early,
    for that of batch k - ahead - 1. Otherwise nobody does. What is written back `adds`, or replaces the row.
    """
    retrieve = Stage("retrieve", "lookup", ahead=ahead, reads=(TABLE,), writes=(PLACE,))
    refresh = Stage(
        "refresh", "lookup", after=[retrieve], reads=(Access("rows", keys="shared", of=1),), writes=(PLACE,)
    )
    rows = Stage("exchange", "all_to_all", MEETING, after=[refresh if copy else retrieve], reads=(PLACE,))
    train = Stage("train", "compute", after=[rows])
    update = Stage("update", "compute", after=[train], reads=(PLACE,), writes=(PLACE,))
    back = Stage("back", "lookup", after=[update], reads=(PLACE,), writes=(replace(TABLE, adds=adds),))
    streams = {"host": [retrieve], "network": [rows], "compute": [train, update], "back": [back]}
    if copy:
        streams["copy"] = [refresh]
    carries = [Carry(update, to=refresh)] if copy else []
    carries.append(Carry(back, to=retrieve, lag=6 if ahead else 1))
    buffers = [] if slots is None else [Buffer("rows", slots, retrieve, [back])]
    return Pipeline(streams, carries, buffers, [update, back] if paced else [update])


def test_one_batch_in_flight_is_never_stale() -> None:
    assert seen(run(life(), {"train": 10, "back": 50})) == Staleness(0, 0.0)


def test_rows_read_one_batch_early_lack_the_update_of_the_batch_before() -> None:
    """A quarter of the rows were used by the previous batch, and each of them lacks one update."""
    assert seen(run(life(ahead=1), {"train": 10})) == Staleness(1, 0.25)


def test_rows_read_three_batches_early_lack_three_updates() -> None:
    """Each of the three batches before has used a quarter of a batch's rows."""
    found = seen(run(life(ahead=3), {"train": 10}))
    assert found == Staleness(3, pytest.approx(3 * 0.25, rel=0.1))


def test_a_copy_of_shared_rows_after_the_update_makes_early_reads_fresh() -> None:
    assert seen(run(life(ahead=1, copy=True, slots=2), {"train": 10})) == Staleness(0, 0.0)


def test_the_copy_helps_only_those_rows_that_the_batch_before_used() -> None:
    """Rows of k are read when k - 2 has been updated and is not yet written back.

    A row that k - 3, k - 1 and k use lacks the update of k - 3: it is copied from one that was read too
    early.
    """
    found = seen(run(life(ahead=1, copy=True, paced=False), {"train": 10, "back": 5}))
    assert found == Staleness(2, pytest.approx(0.25 * 0.75 + 0.25 * 0.25 * 0.75, rel=0.05))


def test_staleness_is_what_happened_and_not_what_could_have_happened() -> None:
    """Nobody waits for the write-back, but when it takes no time it is over before the next read."""
    pipeline = life(ahead=1, paced=False)
    assert seen(run(pipeline, {"train": 10, "back": 5})).observed_max == 2
    assert seen(run(pipeline, {"train": 10, "back": 0})).observed_max == 1


def test_the_last_one_to_write_a_place_decides_what_it_contains() -> None:
    """Copied first and then overwritten by what was read before the update: stale again."""
    refresh = Stage("refresh", "lookup", reads=(Access("rows", keys="shared", of=1),), writes=(PLACE,))
    retrieve = Stage("retrieve", "lookup", after=[refresh], reads=(TABLE,), writes=(PLACE,))
    rows = Stage("exchange", "all_to_all", MEETING, after=[retrieve], reads=(PLACE,))
    update = Stage("update", "compute", after=[rows], reads=(PLACE,), writes=(PLACE,))
    back = Stage("back", "lookup", after=[update], reads=(PLACE,), writes=(TABLE,))
    streams = {"copy": [refresh], "host": [retrieve], "network": [rows], "compute": [update], "back": [back]}
    pipeline = Pipeline(
        streams, [Carry(update, to=refresh), Carry(back, to=refresh, lag=2)], updates=[update]
    )
    early = seen(run(pipeline, {"back": 5}))
    assert early.late_max == 1 < early.observed_max  # and what is written back from it is lost
    assert seen(run(pipeline, {"back": 0})).observed_max == 0


def test_updates_that_skip_batches_are_looked_for_where_they_ran() -> None:
    """Written back in every second batch: rows used by the batch before are current, or one step old."""
    retrieve = Stage("retrieve", "lookup", reads=(TABLE,), writes=(PLACE,))
    rows = Stage("exchange", "all_to_all", MEETING, after=[retrieve], reads=(PLACE,))
    update = Stage("update", "compute", after=[rows], reads=(PLACE,), writes=(PLACE,))
    back = Stage("back", "lookup", after=[update], every=2, phase=1, reads=(PLACE,), writes=(TABLE,))
    streams = {"host": [retrieve], "network": [rows], "compute": [update], "back": [back]}
    pipeline = Pipeline(streams, [Carry(update, to=retrieve), Carry(back, to=retrieve)], updates=[update])
    timeline = run(pipeline, {})
    assert timeline.graph.period == 2
    after_write_back = observe(timeline, 0, [14, 16, 18], Reuse.alike(0.25))
    after_none = observe(timeline, 0, [15, 17, 19], Reuse.alike(0.25))
    assert after_write_back.observed_max < after_none.observed_max


def test_each_rank_sees_its_own_staleness() -> None:
    """Only rank 1 writes back so slowly that its next batch reads too early."""
    timeline = run(life(ahead=1, copy=True, paced=False), {"train": 10, "back": [0, 5]}, columns=2)
    assert seen(timeline, 0) == Staleness(0, 0.0)
    assert seen(timeline, 1).observed_max == 2


@pytest.mark.parametrize("bound", [1, 10, 30])
@pytest.mark.parametrize("first", [0, 5])
def test_the_mean_over_a_period_of_bounded_staleness_is_that_of_all_its_batches(
    bound: int, first: int
) -> None:
    """r batches after a meeting with the servers, rows lack what was learned in those r batches."""
    pipeline = Het(bound).plan(next(example_steps(needs=("servers",))))
    timeline = run(pipeline, {}, batches=8 * (bound + 1))
    shares = Reuse.alike(0.25, longest_gap(pipeline))
    missing = [0.25 * behind for behind in range(bound + 1)]
    found = observe(timeline, 0, range(2 * bound + 2 + first, 3 * bound + 3 + first), shares)
    assert found == Staleness(bound, pytest.approx(sum(missing) / len(missing), rel=0.1))


def test_stages_without_duration_are_taken_in_the_order_of_their_dependencies() -> None:
    everything_at_once = dict.fromkeys(("retrieve", "refresh", "exchange", "train", "update", "back"), 0)
    assert seen(run(life(ahead=1, copy=True, slots=2), everything_at_once)) == Staleness(0, 0.0)


def test_only_exchanges_that_read_a_buffer_hand_rows_to_the_model() -> None:
    pipeline = life(ahead=1, copy=True, slots=2)
    assert [stage.name for stage in readers(pipeline)] == ["exchange"]


def test_without_such_an_exchange_nothing_is_observed() -> None:
    timeline = run(Pipeline({"compute": [Stage("train", "compute")]}), {})
    assert seen(timeline) is None


@pytest.mark.parametrize(("tier", "stale"), [("dram", 1), ("hbm", 0)])
def test_rows_in_device_memory_are_as_old_as_their_exchange_not_as_a_prefetch(tier: str, stale: int) -> None:
    """The prefetcher begins to retrieve before the update and ends long after it."""
    step = replace(next(example_steps(ranks=1)), plan=RowWise(tier))
    timeline = run(catalog.build("stale_prefetch").plan(step), {"retrieve": 1000, "forward": 50})
    found = seen(timeline)
    assert found is not None and found.observed_max == stale


def test_an_exchange_of_rows_in_device_memory_beside_the_update_of_the_batch_before_is_stale() -> None:
    step = replace(next(example_steps(ranks=1)), plan=RowWise("hbm"))
    found = seen(run(catalog.build("stale_prefetch").plan(step), {"sparse_update": 1000}))
    assert found is not None and found.observed_max == 1


@pytest.mark.parametrize("name", ["serialized", "dual_buffer", "torchrec_prefetch", "sparse_core"])
def test_what_uses_rows_in_place_touches_no_buffer(name: str) -> None:
    step = replace(next(example_steps(ranks=1)), plan=RowWise("hbm"))
    stages = catalog.build(name).plan(step).stages
    touched = {one.store: one.of for stage in stages for one in (*stage.reads, *stage.writes)}
    assert touched == {"tables on device": None}
