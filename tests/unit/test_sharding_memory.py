"""Peak memory from the schedule: what is held when, who is fullest, and the smallest change that fits."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simulator.costs.software import Software
from simulator.engine.durations import Durations
from simulator.engine.recurrence import run_recurrence
from simulator.errors import InfeasibleError, InputError
from simulator.pipeline import Buffer, Carry, Pipeline, Stage, compile_pipeline
from simulator.policies import catalog
from simulator.quantities import CopyWork
from simulator.results.in_flight import Holding, holdings, peak
from simulator.results.memory import Memory, scheduled_memory
from simulator.results.resident import CACHE, COPIES, TABLES, largest_table
from simulator.results.timeline import Timeline
from simulator.scenario import load, run_scenario
from simulator.scenario.memory import planned_memory
from simulator.sharding import DataParallel, HbmCache, Kind, RowWise, Rule, ShardingPlan, TableWise, TrainStep
from simulator.testing import example_steps

CYCLES = 16
QUICKSTART = Path(__file__).resolve().parents[2] / "scenarios" / "quickstart.yaml"


@pytest.fixture
def step() -> TrainStep:
    return next(example_steps(ranks=4))


def timeline_of(
    step: TrainStep, policy: str, slow: dict[str, int] | None = None, **parameters: int
) -> Timeline:
    """Every stage takes 10 ns, those in `slow` what stands there."""
    graph = compile_pipeline(catalog.build(policy, **parameters).plan(step))
    nominal = np.array([[(slow or {}).get(node.name, 10)] for node in graph.nodes])
    ns = np.broadcast_to(nominal[:, None, :], (len(graph.nodes), CYCLES, 1))
    return run_recurrence(graph, Durations(ns, np.zeros(step.ranks, dtype=np.int64), nominal))


def memory_of(step: TrainStep, policy: str, slow: dict[str, int] | None = None, **parameters: int) -> Memory:
    parts = parameters.get("micro_batches", 8 if policy == "nestpipe" else 1)
    return scheduled_memory(step, timeline_of(step, policy, slow, **parameters), parts)


def test_with_one_batch_in_flight_there_is_one_of_everything(step: TrainStep) -> None:
    found, micro = memory_of(step, "serialized"), step.micro_batch(1)
    dense, batch = step.workload.model.quantities(), step.workload.batch
    assert found.hbm["row buffers"] == step.traffic.bytes_owned
    assert found.hbm["activations"] == batch * (dense.activation_bytes + dense.peak_layer_bytes)
    assert found.hbm["exchanged rows"] == micro.traffic.row_bytes_received
    assert found.hbm["row gradients"] == micro.traffic.row_bytes_received
    assert found.batches["hbm"] == 1


def test_a_second_row_buffer_counts_only_where_the_schedule_uses_it(step: TrainStep) -> None:
    owned = step.traffic.bytes_owned
    assert memory_of(step, "dual_buffer").hbm["row buffers"] == 2 * owned
    assert memory_of(step, "dual_buffer", buffers=1).hbm["row buffers"] == owned
    assert memory_of(step, "stale_prefetch").hbm["row buffers"] == 2 * owned


def test_inputs_wait_on_the_device_while_the_model_is_slow_and_do_not_while_reading_is(
    step: TrainStep,
) -> None:
    one = step.workload.batch * step.workload.input_bytes_per_sample
    quick = memory_of(step, "dual_buffer", {"read": 100_000})
    slow = memory_of(step, "dual_buffer", {"forward": 100_000})
    assert quick.hbm["input batches"] == one
    assert slow.hbm["input batches"] == 4 * one
    assert quick.host["input batches"] == 2 * one  # the next one is read while this one is copied


def test_micro_batches_hold_one_parts_activations_and_what_is_fetched_ahead(step: TrainStep) -> None:
    whole, parts = memory_of(step, "serialized"), memory_of(step, "frozen_window", micro_batches=8)
    assert parts.hbm["activations"] == whole.hbm["activations"] / 8
    micro = step.micro_batch(8).traffic.row_bytes_received
    assert parts.hbm["exchanged rows"] == pytest.approx(2 * micro)


def test_the_peak_is_that_of_all_moments(step: TrainStep) -> None:
    """Random durations; the sweep against a sum at every start."""
    graph = compile_pipeline(catalog.build("nestpipe", micro_batches=8).plan(step))
    random = np.random.default_rng(3)
    ns = random.integers(1, 1000, (len(graph.nodes), CYCLES, 1))
    timeline = run_recurrence(graph, Durations(ns, np.zeros(4, dtype=np.int64), ns[:, 0]))
    held = [one for one in holdings(step, graph.pipeline, 8) if one.memory == "hbm"]
    found = peak(timeline, held, rank=0)
    spans = [span for one in held for span in spans_of(timeline, one)]
    moments = [sum(size for a, b, size in spans if a <= moment < b) for moment, _, _ in spans]
    assert sum(found.items.values()) == pytest.approx(max(moments), rel=1e-12)


def spans_of(timeline: Timeline, held: Holding) -> list[tuple[int, int, float]]:
    node = {id(node.stage): index for index, node in enumerate(timeline.graph.nodes)}
    starts, ends = timeline.start_ns[:, :, 0], timeline.end_ns[:, :, 0]
    spans = []
    for batch in range(CYCLES):
        freed = [
            int(ends[node[id(stage)], batch + later]) if batch + later < CYCLES else 2**62
            for stage, later in held.freed_by
        ]
        spans.append((int(starts[node[id(held.taken_by)], batch]), max(freed), float(np.max(held.bytes))))
    return spans


def renamed(pipeline: Pipeline) -> Pipeline:
    """The same pipeline with names that say nothing."""
    made: dict[int, Stage] = {}

    def of(stage: Stage) -> Stage:
        if id(stage) not in made:
            after = [of(before) for before in stage.after]
            made[id(stage)] = replace(stage, name=f"s{len(made)}", after=after)
        return made[id(stage)]

    buffers = [
        Buffer(one.name, one.slots, of(one.taken_by), [(of(s), one.slots - lag) for s, lag in one.releases()])
        for one in pipeline.buffers
    ]
    carries = [Carry(of(one.source), of(one.to), one.lag) for one in pipeline.carries]
    streams = {name: [of(stage) for stage in stages] for name, stages in pipeline.streams.items()}
    return Pipeline(streams, carries, buffers, [of(stage) for stage in pipeline.updates])


@pytest.mark.parametrize(
    "plan", [RowWise("dram"), RowWise("hbm"), DataParallel()], ids=["dram", "hbm", "copies"]
)
@pytest.mark.parametrize(
    "policy", ["serialized", "stale_prefetch", "dual_buffer", "frozen_window", "nestpipe"]
)
def test_names_of_stages_make_no_difference(step: TrainStep, plan: Kind, policy: str) -> None:
    step = replace(step, plan=plan)
    parts = 8 if "micro_batches" in catalog.taken_by(policy) else 1
    given = catalog.build(policy, **({"micro_batches": parts} if parts > 1 else {})).plan(step)

    def shape(pipeline: Pipeline) -> list[tuple[object, ...]]:
        place = {id(stage): index for index, stage in enumerate(pipeline.stages)}
        return [
            (
                one.item,
                one.memory,
                one.bytes,
                place[id(one.taken_by)],
                {(place[id(s)], n) for s, n in one.freed_by},
            )
            for one in holdings(step, pipeline, parts)
        ]

    assert shape(renamed(given)) == shape(given)
    assert sum(row[0] == "activations" for row in shape(given)) == parts


def without(pipeline: Pipeline, name: str, **changes: object) -> Pipeline:
    """The pipeline with what `changes` say about one stage."""
    (stage,) = [one for one in pipeline.stages if one.name == name]
    for field, value in changes.items():
        object.__setattr__(stage, field, value)
    return pipeline


def test_rows_that_come_to_the_device_without_a_buffer_are_refused(step: TrainStep) -> None:
    pipeline = without(catalog.build("serialized").plan(step), "retrieve", writes=())
    with pytest.raises(
        InputError, match='stage "retrieve" brings rows to the device but writes no row buffer'
    ):
        holdings(step, pipeline, 1)


def test_a_pass_that_waits_for_no_exchange_holds_its_rows_and_activations_all_the_same(
    step: TrainStep,
) -> None:
    train = Stage("train", "compute", step.micro_batch(1).forward)
    held = {one.item: one for one in holdings(step, Pipeline({"compute": [train]}), 1)}
    dense, batch = step.workload.model.quantities(), step.workload.batch
    assert held["activations"].bytes == batch * (dense.activation_bytes + dense.peak_layer_bytes)
    assert held["exchanged rows"].bytes == step.traffic.row_bytes_received
    assert all(one.freed_by == ((train, 0),) for one in held.values())


def test_a_row_buffer_that_nobody_writes_is_refused(step: TrainStep) -> None:
    pipeline = catalog.build("serialized").plan(step)
    without(pipeline, "retrieve", kind="input", writes=())
    without(pipeline, "sparse_update", writes=())
    with pytest.raises(InputError, match='reads "rows on device", which no stage writes'):
        holdings(step, pipeline, 1)


def test_only_rows_that_are_not_in_device_memory_wait_in_a_buffer(step: TrainStep) -> None:
    def buffered(tier: str | HbmCache) -> float:
        return memory_of(replace(step, plan=RowWise(tier)), "serialized").hbm.get("row buffers", 0.0)

    assert buffered("hbm") == 0
    assert buffered(HbmCache(0.1, hit_rate=0.75)) == pytest.approx(buffered("dram") / 4)


def test_the_fullest_rank_counts_and_is_named(step: TrainStep) -> None:
    uneven = replace(step, plan=TableWise("hbm"))
    found = memory_of(uneven, "serialized")
    assert found.hbm[TABLES] == 1e6 * (64 * 4 + 4)
    assert found.table["hbm"] == ("users", 1e6 * (64 * 4 + 4))
    [users] = [shard for shard in uneven.placed.shards if shard.piece.table.name == "users"]
    assert found.rank["hbm"] == users.first
    assert "hbm" not in memory_of(replace(step, plan=RowWise("hbm")), "serialized").rank


def test_uneven_shards_take_memory_by_their_shares(step: TrainStep) -> None:
    found = memory_of(replace(step, plan=RowWise("dram", shares=(0.6, 0.3, 0.2, 0.1))), "serialized")
    assert found.host[TABLES] == pytest.approx((1e6 * (64 * 4 + 4) + 1e5 * (32 * 4 + 4)) / 2)
    assert found.rank["host"] == 0


def test_a_cache_takes_its_share_on_the_device_and_the_tables_stay_on_the_host(step: TrainStep) -> None:
    found = memory_of(replace(step, plan=RowWise(HbmCache(0.1))), "serialized")
    whole = memory_of(step, "serialized").host[TABLES]
    assert found.hbm[CACHE] == pytest.approx(0.1 * whole)
    assert found.host[TABLES] == whole


def test_copies_count_whole_with_their_gradients(step: TrainStep) -> None:
    plan = ShardingPlan(RowWise("dram"), (Rule(("items",), DataParallel()),))
    found = memory_of(replace(step, plan=plan), "serialized")
    assert found.hbm[COPIES] == 1e5 * (32 * 4 + 4) + 1e5 * 32 * 4
    assert largest_table(replace(step, plan=plan), "hbm", 2) == ("items", 1e5 * (32 * 4 + 4))


def refusal(*settings: str) -> str:
    with pytest.raises(InfeasibleError) as refused:
        run_scenario(load(QUICKSTART, list(settings)), "vector")
    assert "\n" not in str(refused.value)
    return refused.value.problem


def fits(*settings: str) -> bool:
    scenario = load(QUICKSTART, list(settings))
    return sum(planned_memory(scenario).hbm.values()) <= scenario.cluster.accelerator.hbm_bytes


BIG = "workload.tables=[{name: a, rows: 100000, dimension: 64}, {name: big, rows: 2000e6, dimension: 128}]"


def test_a_shortage_of_table_memory_names_the_table_and_the_fewest_workers() -> None:
    told = refusal(BIG, "sharding={kind: row_wise, tier: hbm}")
    assert 'table "big": 119.2 GiB' in told
    workers = int(re.search(r"it fits with (\d+) workers", told)[1])  # type: ignore[index]
    hosts = workers // 8
    assert fits(BIG, "sharding={kind: row_wise, tier: hbm}", f"cluster.hosts={hosts}")
    assert not fits(BIG, "sharding={kind: row_wise, tier: hbm}", f"cluster.hosts={hosts - 1}")


def test_a_shortage_of_room_for_activations_names_the_largest_batch() -> None:
    told = refusal("workload.batch=4_000_000")
    batch = int(re.search(r"with a batch of ([\d,]+)", told)[1].replace(",", ""))  # type: ignore[index]
    assert fits(f"workload.batch={batch}")
    assert not fits(f"workload.batch={batch + 1}")


def test_a_table_that_is_too_large_for_its_rank_names_the_rank_and_no_number_of_workers() -> None:
    for hosts in (2, 8):
        told = refusal(BIG, "sharding={kind: table_wise, tier: hbm}", f"cluster.hosts={hosts}")
        assert re.search(r'rank \d+ needs .* \(table "big"', told)
        assert "workers" not in told


def test_every_way_out_of_a_shortage_fits() -> None:
    """A table whole on one rank never fits by more workers: it is cut, or put in host memory."""
    whole = "sharding={kind: table_wise, tier: hbm}"
    told = refusal(BIG, whole, "cluster.hosts=2")
    ways = told.partition("; it fits ")[2].split(" or ")
    assert ways[0] == "with sharding.kind=row_wise"
    assert "sharding.kind=column_wise and sharding.shards=" in ways[1]
    for way in ways:
        settings = way.removeprefix("with ").split(" and ")
        assert fits(BIG, whole, "cluster.hosts=2", *settings)
    assert not fits(BIG, whole, "cluster.hosts=2")


def test_full_batches_of_keys_wait_as_long_as_other_inputs(step: TrainStep) -> None:
    """With `full_batch` every rank copies the keys of all ranks, and holds them."""
    full = replace(step, software=Software(key_distribution="full_batch"))
    assert isinstance(full.copy_inputs, CopyWork)
    assert full.copy_inputs.bytes == full.input_bytes > step.input_bytes
    every = holdings(full, catalog.build("serialized").plan(full), 1)
    held = {one.memory: one.bytes for one in every if one.item == "input batches"}
    assert held == {"hbm": full.input_bytes, "host": full.input_bytes}


def test_rows_unpacked_for_the_next_batch_take_room_beside_the_batch_that_trains(step: TrainStep) -> None:
    """The sparse engine makes rows as the model reads them while the tensor engine is at the batch before."""
    slow = {"forward": 9000}
    serial, pipelined = (memory_of(step, name, slow).hbm for name in ("sparse_core", "sparse_core_pipelined"))
    read = step.micro_batch(1).model_row_bytes
    assert serial["rows as the model reads them"] == 2 * read  # and their gradients, at the last bucket
    assert pipelined["rows as the model reads them"] == 3 * read
    dense, batch = step.workload.model.quantities(), step.workload.batch
    kept = batch * (dense.activation_bytes + dense.peak_layer_bytes)
    assert serial.get("activations", 0.0) == max(0.0, kept - read)  # they contain the rows that it read


def test_gradients_wait_as_the_model_made_them_until_they_are_packed(step: TrainStep) -> None:
    plan = catalog.build("sparse_core").plan(step)
    waiting = [one for one in holdings(step, plan, 1) if one.item == "rows as the model reads them"]
    assert [(one.taken_by.name, one.freed_by[-1][0].name) for one in waiting][1][1] == "pack"
    packed = [one for one in holdings(step, plan, 1) if one.item == "row gradients"]
    assert [one.taken_by.name for one in packed] == ["pack", "send"]
