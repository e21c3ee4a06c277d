"""The parts of real training: samples, the executor, the oracle, messages, servers."""

import itertools
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.calibration.measure.kernels import Mlp, distinct
from simulator.calibration.train.executor import Executor
from simulator.calibration.train.messages import Message, by_table, unpacked
from simulator.calibration.train.oracle import Schedule
from simulator.calibration.train.plans import graph_of, planned
from simulator.calibration.train.row_server import RowServer
from simulator.calibration.train.samples import samples
from simulator.calibration.train.settings import Model, Settings
from simulator.calibration.train.shards import Shard, by_owner, codes, places
from simulator.calibration.train.trainer import Batch, Micro, Trainer
from simulator.errors import InputError
from simulator.workload.keys.zipf import BoundedZipf

pytestmark = pytest.mark.slow

PARTS = {"micro_batches": 3}
POLICIES = [
    Settings("serialized"), Settings("stale_prefetch"), Settings("dual_buffer"),
    Settings("frozen_window", PARTS), Settings("nestpipe", PARTS), Settings("bagpipe", {"lookahead": 8}),
    Settings("rpc_coalesced"),
]  # fmt: skip


def test_samples_are_the_same_every_time_and_different_on_every_rank() -> None:
    settings = Settings(batch=16, steps=5)
    first, again, other = samples(settings, 0, 2), samples(settings, 0, 2), samples(settings, 1, 2)
    np.testing.assert_array_equal(first.keys, again.keys)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert (first.keys != other.keys).any()


def test_keys_are_as_often_distinct_as_the_simulator_says() -> None:
    model = Model(tables=4, rows=3_000, exponent=1.05)
    keys = samples(Settings(model=model, batch=500, steps=40), 0, 1).keys
    found = [len(np.unique(batch[:, table])) for batch in keys for table in range(model.tables)]
    assert np.mean(found) == pytest.approx(BoundedZipf(3_000, 1.05).distinct(500), rel=0.01)


def test_keys_of_a_table_are_rows_of_that_table() -> None:
    model = Model(tables=3, rows=70)
    keys = samples(Settings(model=model, batch=64, steps=8), 0, 1).keys
    for table in range(3):
        assert keys[..., table].min() >= 70 * table and keys[..., table].max() < 70 * (table + 1)


def test_a_recorded_log_gives_the_keys(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("a,b\n" + "".join(f"{i % 5},{i % 3}\n" for i in range(40)))
    settings = Settings(model=Model(tables=2, rows=50), batch=4, steps=5, keys=str(log))
    keys = samples(settings, 1, 2).keys
    assert len(np.unique(keys[..., 0])) == 5 and len(np.unique(keys[..., 1])) == 3
    with pytest.raises(InputError, match="has 2 key columns"):
        samples(Settings(model=Model(tables=3), batch=4, steps=5, keys=str(log)), 0, 1)
    with pytest.raises(InputError, match="64 are needed"):
        samples(Settings(model=Model(tables=2), batch=64, steps=5, keys=str(log)), 0, 1)


@pytest.mark.parametrize("settings", POLICIES, ids=lambda one: one.title)
def test_a_stage_runs_only_once_all_that_it_waits_for_is_done(settings: Settings) -> None:
    graph, batches, lock = graph_of(settings, 2), 24, threading.Lock()
    order: list[tuple[str, int]] = []

    def noted(name: str, batch: int) -> None:
        with lock:
            order.append((name, batch))

    names = {node.name for node in graph.nodes}
    done = Executor(graph, {n: lambda b, n=n: noted(n, b) for n in names}, batches).run()
    assert len(order) == sum(
        batches // node.stage.every for node in {id(n.stage): n for n in graph.nodes}.values()
    )
    for edge, cycle in itertools.product(graph.edges, range(batches // graph.period)):
        if 0 <= cycle - edge.lag < batches // graph.period:
            assert done.end_ns[edge.source, cycle - edge.lag] <= done.start_ns[edge.target, cycle]


def test_a_stage_that_fails_ends_the_run_with_its_error() -> None:
    graph = graph_of(Settings("dual_buffer"), 2)

    def fail(batch: int) -> None:
        if batch == 3:
            raise ZeroDivisionError

    operations = {node.name: (fail if node.name == "forward" else lambda batch: None) for node in graph.nodes}
    with pytest.raises(ZeroDivisionError):
        Executor(graph, operations, 12).run()


def test_a_stage_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be executed"):
        Executor(graph_of(Settings(), 2), {}, 4)


def test_a_stale_policy_writes_back_in_a_fixed_order() -> None:
    pipeline = planned(Settings("stale_prefetch"), 2)
    assert any(carry.to.name == "write_back" and carry.lag == -1 for carry in pipeline.carries)


@pytest.mark.parametrize(("write_back", "kept"), [("add", 2), ("overwrite", 1)])
def test_two_batches_that_read_a_row_before_either_is_written_back_both_leave_their_update(
    write_back: str, kept: int
) -> None:
    """Gradients of one at a rate of 1: a row that keeps both updates has gone down by two."""
    settings = Settings("stale_prefetch", {"write_back": write_back}, rate=1.0)
    shard, alone = Shard((np.zeros((4, 32), dtype=np.float32),), 1.0), SimpleNamespace(size=1)
    network, channels = Mlp.seeded((2, 1), 0), dict.fromkeys(("prefetch", "network", "all_reduce"), alone)
    trainer = Trainer(settings, None, shard, network, channels, 1)  # type: ignore[arg-type]
    trainer.operations(graph_of(settings, 2))
    rows = np.array([1, 3], dtype=np.int64)
    for number in (0, 1):
        trainer.batches[number] = Batch(rows, rows, rows, requests=[rows])
        trainer.retrieve(number)
    for number in (0, 1):
        micro = Micro(slice(0, 2), distinct(rows), rows, received=[np.ones((2, 32), dtype=np.float32)])
        trainer.batches[number].micros = [micro]
        trainer.sparse_update(number)
        trainer.write_back(number)
    assert shard.arrays[0][:, 0].tolist() == [0.0, -kept, 0.0, -kept]


@given(st.integers(1, 5), st.lists(st.integers(0, 10_000), min_size=1, max_size=50))
def test_codes_keep_owner_and_place_of_every_row(ranks: int, rows: list[int]) -> None:
    numbers = np.array(sorted(set(rows)), dtype=np.int64)
    ordered = np.sort(codes(numbers, ranks))
    cuts = by_owner(ordered, ranks)
    back = [places(ordered[cuts[r] : cuts[r + 1]]) * ranks + r for r in range(ranks)]
    assert sorted(np.concatenate(back).tolist()) == numbers.tolist()


batches_of_rows = st.lists(st.sets(st.integers(0, 12), min_size=1, max_size=6), min_size=12, max_size=60)


@given(batches_of_rows, st.sampled_from([4, 8, 16]))
def test_the_oracle_has_every_row_in_the_cache_when_it_is_used(used: list[set[int]], lookahead: int) -> None:
    """Play the schedule in the order of the pipeline: a fetch comes three periods before its batches."""
    period = lookahead // 4
    rows = [np.array(sorted(batch), dtype=np.int64) for batch in used]
    plan = Schedule.of(rows, lookahead, period)
    cached: set[int] = set()
    for batch in range(len(rows)):
        if batch % period == 0:
            fetched = set(plan.fetched.get(batch, np.empty(0)).tolist())
            assert not fetched & cached, "a row is fetched over the newer one in the cache"
            cached |= fetched
        assert used[batch] <= cached
        if batch % period == 0:  # written once this batch is trained
            gone = set(plan.written.get(batch, np.empty(0)).tolist())
            served = range(batch + 1, min(batch + 3 * period + 1, len(rows)))
            assert not any(gone & used[later] for later in served), "written back, and needed before a fetch"
            cached -= gone


def test_the_urgent_rows_of_a_batch_are_those_that_the_next_one_uses() -> None:
    plan = Schedule.of([np.array([1, 4, 6]), np.array([2, 4, 6]), np.array([1])], 4, 1)
    assert plan.urgent(0).tolist() == [1, 2]
    assert plan.urgent(1).tolist() == []
    assert plan.urgent(2).tolist() == [0]


@given(st.lists(st.lists(st.integers(0, 2**40), max_size=5), max_size=4), st.integers(0, 3))
def test_a_message_comes_back_as_it_was_packed(parts: list[list[int]], width: int) -> None:
    arrays = tuple(np.array(part, dtype=np.int64) for part in parts)
    values = np.arange(width * sum(map(len, parts)), dtype=np.float32)
    back = unpacked(Message(7, 1, -1, arrays, values).packed())
    assert (back.step, back.sender, back.group) == (7, 1, -1)
    assert [part.tolist() for part in back.parts] == parts
    assert ([] if back.values is None else back.values.tolist()) == values.tolist()


def test_places_are_split_by_table() -> None:
    rows, servers, server = 10, 2, 1
    numbers = np.array([1, 3, 9, 11, 25, 27], dtype=np.int64)  # of server 1: tables 0, 0, 0, 1, 2, 2
    found = by_table(numbers // servers, server, servers, rows)
    assert [(table, part.stop - part.start) for table, part in found] == [(0, 3), (1, 1), (2, 2)]


def test_a_server_updates_a_row_once_all_workers_have_pushed_in_the_order_of_workers() -> None:
    import orjson

    server = RowServer(0, 1)
    settings = Settings(model=Model(tables=1, rows=6, dimension=2), rate=1.0)
    server.reset(orjson.dumps({"settings": settings.to_dict(), "workers": 2}))
    wanted = (np.array([2, 4], dtype=np.int64),)
    before = np.frombuffer(server.fetch(Message(0, 0, -1, wanted).packed()), dtype=np.float32)
    ones = np.ones(4, dtype=np.float32)
    server.push(Message(0, 1, -1, wanted, ones).packed())
    assert server.fetch(Message(0, 0, -1, wanted).packed()) == before.tobytes()
    server.push(Message(0, 0, -1, (wanted[0][:1],), 2 * ones[:2]).packed())
    after = np.frombuffer(server.fetch(Message(0, 0, -1, wanted).packed()), dtype=np.float32)
    np.testing.assert_allclose(before - after, [3, 3, 1, 1], rtol=1e-5)


@pytest.mark.parametrize(
    "wrong", [{"batch": 0}, {"steps": 1}, {"optimizer": "adam"}, {"model": {"rows": 0}}, {"nonsense": 1}]
)
def test_impossible_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Settings.of(wrong)


def test_settings_come_back_from_plain_data() -> None:
    settings = Settings("nestpipe", PARTS, Model(tables=3, hidden=(7,)), 5, 9, "adagrad", 0.1, 4)
    assert Settings.of(settings.to_dict()) == settings
