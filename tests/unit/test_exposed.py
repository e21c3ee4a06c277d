"""Where a step's time goes, on pipelines small enough to be taken apart by hand."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from simulator.engine import Durations
from simulator.engine.events import run_events
from simulator.pipeline import Carry, Pipeline, Stage, compile_pipeline
from simulator.quantities import NOTHING, AllToAllWork
from simulator.results.exposed import Breakdown, break_down
from simulator.results.timeline import Timeline

MEETING = AllToAllWork(1.0)


def run(pipeline: Pipeline, ns: Mapping[str, int | Sequence[int]], columns: int = 1) -> Timeline:
    graph = compile_pipeline(pipeline)
    nominal = np.array([np.broadcast_to(ns[node.name], (columns,)) for node in graph.nodes], dtype=np.int64)
    wide = np.broadcast_to(nominal[:, None, :], (len(nominal), 24 // graph.period, columns))
    return run_events(graph, Durations(wide, np.arange(columns), nominal))


def parts(timeline: Timeline, column: int = 0) -> Breakdown:
    return break_down(timeline, column, 12, 18)


def chain(*stages: tuple[str, str, object], ahead: int = 0) -> Pipeline:
    """Stages in line, each on a stream of its own, except compute; the next batch follows the last."""
    made: list[Stage] = []
    streams: dict[str, list[Stage]] = {}
    for name, kind, work in stages:
        made.append(Stage(name, kind, work, after=made[-1:], ahead=0 if kind == "compute" else ahead))  # type: ignore[arg-type]
        streams.setdefault("compute" if kind == "compute" else name, []).append(made[-1])
    return Pipeline(streams, [] if ahead else [Carry(made[-1], to=made[0])])


def test_each_cause_of_a_wait_is_charged_for_the_time_in_which_it_ran() -> None:
    pipeline = chain(
        ("read", "input", NOTHING),
        ("look", "lookup", NOTHING),
        ("rows", "all_to_all", MEETING),
        ("train", "compute", NOTHING),
    )
    found = parts(run(pipeline, {"read": 7, "look": 11, "rows": 13, "train": 20}))
    assert found == Breakdown(51, 20, {"all_to_all": 13, "input": 7, "lookup": 11})


def test_only_what_sticks_out_behind_compute_is_charged() -> None:
    """look(k + 1) starts with train(k) (pace: it waits for train(k - 1)) and ends 15 ns after it."""
    found = parts(
        run(
            chain(("look", "lookup", NOTHING), ("train", "compute", NOTHING), ahead=1),
            {"look": 40, "train": 25},
        )
    )
    assert found == Breakdown(40, 25, {"lookup": 15})


def test_what_is_hidden_altogether_is_not_charged() -> None:
    found = parts(
        run(
            chain(("look", "lookup", NOTHING), ("train", "compute", NOTHING), ahead=1),
            {"look": 10, "train": 25},
        )
    )
    assert found == Breakdown(25, 25, {})


def test_a_wait_across_two_causes_is_cut_where_compute_ended() -> None:
    """read and look of the next batch run beside train: 30 of their 20 + 25 are behind it."""
    pipeline = chain(
        ("read", "input", NOTHING), ("look", "lookup", NOTHING), ("train", "compute", NOTHING), ahead=1
    )
    found = parts(run(pipeline, {"read": 20, "look": 25, "train": 5}))
    assert found.step_ns == 25
    assert found.compute_ns == 5
    assert found.exposed_ns == {"lookup": 20}


def test_waiting_for_a_slower_rank_is_other_and_the_exchange_itself_is_not() -> None:
    """Rank 0 computes 10 and waits 20 for rank 1, then both exchange for 5."""
    train = Stage("train", "compute")
    swap = Stage("swap", "all_to_all", MEETING, after=[train])
    pipeline = Pipeline({"compute": [train], "network": [swap]}, [Carry(swap, to=train)], updates=[swap])
    timeline = run(pipeline, {"train": [10, 30], "swap": 5}, columns=2)
    assert parts(timeline, 0) == Breakdown(35, 10, {"all_to_all": 5, "other": 20})
    assert parts(timeline, 1) == Breakdown(35, 30, {"all_to_all": 5})


def test_waiting_for_the_lookup_of_another_rank_is_a_lookup() -> None:
    """Rank 1 owns hot rows: rank 0 waits for them as much as rank 1 does, in the exchange of both."""
    look = Stage("look", "lookup")
    swap = Stage("swap", "all_to_all", MEETING, after=[look])
    train = Stage("train", "compute", after=[swap])
    pipeline = Pipeline({"host": [look], "network": [swap], "compute": [train]}, [Carry(train, to=look)])
    timeline = run(pipeline, {"look": [4, 40], "swap": 5, "train": 10}, columns=2)
    for column in (0, 1):
        assert parts(timeline, column) == Breakdown(55, 10, {"all_to_all": 5, "lookup": 40})


def test_a_rank_that_leaves_an_exchange_early_waits_for_the_computation_of_those_that_leave_late() -> None:
    """Jitter: the exchange takes 5 here and 9 there; the computation there runs 4 behind the one here."""
    train = Stage("train", "compute")
    swap = Stage("swap", "all_to_all", MEETING, after=[train])
    pipeline = Pipeline({"compute": [train], "network": [swap]}, [Carry(swap, to=train)], updates=[swap])
    timeline = run(pipeline, {"train": 10, "swap": [5, 9]}, columns=2)
    assert parts(timeline, 1) == Breakdown(19, 10, {"all_to_all": 9})
    assert parts(timeline, 0) == Breakdown(19, 10, {"all_to_all": 5, "other": 4})


def test_a_stage_on_the_compute_stream_that_is_not_compute_is_exposed_as_its_kind() -> None:
    look = Stage("look", "lookup")
    train = Stage("train", "compute", after=[look])
    found = parts(run(Pipeline({"compute": [look, train]}), {"look": 8, "train": 20}))
    assert found == Breakdown(28, 20, {"lookup": 8})


def test_an_exchange_on_the_compute_stream_counts_from_when_all_ranks_have_come() -> None:
    swap = Stage("swap", "all_to_all", MEETING)
    train = Stage("train", "compute", after=[swap])
    timeline = run(Pipeline({"compute": [swap, train]}), {"swap": 6, "train": [10, 25]}, columns=2)
    assert parts(timeline, 0) == Breakdown(31, 10, {"all_to_all": 6, "other": 15})
    assert parts(timeline, 1) == Breakdown(31, 25, {"all_to_all": 6})


def test_stages_without_duration_neither_hide_nor_break_the_walk() -> None:
    pipeline = chain(
        ("read", "input", NOTHING),
        ("nothing", "lookup", NOTHING),
        ("rows", "all_to_all", MEETING),
        ("train", "compute", NOTHING),
        ("update", "compute", NOTHING),
    )
    found = parts(run(pipeline, {"read": 9, "nothing": 0, "rows": 0, "train": 4, "update": 0}))
    assert found == Breakdown(13, 4, {"input": 9})


def test_computation_on_another_stream_is_charged_as_other() -> None:
    """Something computes for the compute stream elsewhere: a wait, but not one for moving data."""
    sparse = Stage("scatter", "compute")
    dense = Stage("dense", "compute", after=[sparse])
    pipeline = Pipeline({"sparse": [sparse], "compute": [dense]}, [Carry(dense, to=sparse)])
    found = parts(run(pipeline, {"scatter": 12, "dense": 30}))
    assert found == Breakdown(42, 30, {"other": 12})


def test_accumulated_batches_share_the_cost_of_their_one_update() -> None:
    train = Stage("train", "compute")
    sync = Stage("sync", "all_reduce", MEETING, after=[train], every=3, phase=2)
    update = Stage("update", "compute", after=[sync], every=3, phase=2)
    pipeline = Pipeline({"compute": [train, update], "network": [sync]}, updates=[update])
    found = parts(run(pipeline, {"train": 10, "sync": 6, "update": 3}))
    assert found == Breakdown(13, 11, {"all_reduce": 2})


@pytest.mark.parametrize("column", [0, 1, 2])
def test_the_parts_add_up_on_every_rank_of_a_ragged_job(column: int) -> None:
    random = np.random.default_rng(7)
    pipeline = chain(
        ("read", "input", NOTHING),
        ("look", "lookup", NOTHING),
        ("rows", "all_to_all", MEETING),
        ("train", "compute", NOTHING),
        ahead=2,
    )
    graph = compile_pipeline(pipeline)
    ns = random.integers(0, 100, (len(graph.nodes), 24, 3))
    timeline = run_events(graph, Durations(ns, np.arange(3), ns[:, 0]))
    found = parts(timeline, column)
    assert found.compute_ns + sum(found.exposed_ns.values()) == pytest.approx(found.step_ns)
    train = next(index for index, node in enumerate(graph.nodes) if node.name == "train")
    assert found.compute_ns == pytest.approx(ns[train, 12:18, column].mean())
