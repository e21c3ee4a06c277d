"""Peak memory of one rank, item by item, and what is said when it does not fit."""

from dataclasses import replace

import numpy as np
import pytest

from simulator.engine import Durations
from simulator.engine.recurrence import run_recurrence
from simulator.errors import InfeasibleError
from simulator.hardware import Cluster, TwoLevel, catalog
from simulator.pipeline import compile_pipeline
from simulator.policies import catalog as policies
from simulator.policies.base import Policy
from simulator.policies.dual_buffer import DualBuffer
from simulator.policies.frozen_window import FrozenWindow
from simulator.policies.serialized import Serialized
from simulator.policies.stale_prefetch import StalePrefetch
from simulator.results.memory import Memory, check_fits, scheduled_memory
from simulator.sharding import RowWise, TrainStep
from simulator.testing import example_steps

TABLES = "embedding tables and their optimizer state"


@pytest.fixture
def step() -> TrainStep:
    return next(example_steps(ranks=4))


def memory_of(step: TrainStep, policy: Policy, parts: int = 1) -> Memory:
    """Where passes take so long that all that can be prepared before them is."""
    graph = compile_pipeline(policy.plan(step))
    slow = [node.name.startswith(("forward", "backward")) for node in graph.nodes]
    nominal = np.where(slow, 10_000, 10)[:, None]
    ns = np.broadcast_to(nominal[:, None, :], (len(nominal), 20, 1))
    timeline = run_recurrence(graph, Durations(ns, np.zeros(1, dtype=np.int64), nominal))
    return scheduled_memory(step, timeline, parts)


def test_tables_lie_where_the_plan_puts_them_and_are_spread_over_all_ranks(step: TrainStep) -> None:
    """Row-wise Adagrad keeps one 4-byte value per row beside its 64 or 32 of them."""
    bytes_of_tables = 1e6 * (64 * 4 + 4) + 1e5 * (32 * 4 + 4)
    dram = memory_of(replace(step, plan=RowWise("dram")), Serialized())
    hbm = memory_of(replace(step, plan=RowWise("hbm")), Serialized())
    assert dram.host[TABLES] == hbm.hbm[TABLES] == bytes_of_tables / 4
    assert TABLES not in dram.hbm
    assert TABLES not in hbm.host


def test_dense_parameters_count_with_gradient_and_two_moments(step: TrainStep) -> None:
    parameters = (96 + 1) * 512 + (512 + 1) * 256 + (256 + 1) * 1
    item = memory_of(step, Serialized()).hbm["dense parameters, gradients, optimizer state"]
    assert item == 4 * 4 * parameters


def test_micro_batches_divide_the_activations_and_what_travels_and_nothing_else(step: TrainStep) -> None:
    whole, parts = memory_of(step, FrozenWindow(1), 1), memory_of(step, FrozenWindow(8), 8)
    assert parts.hbm["activations"] == whole.hbm["activations"] / 8
    assert parts.host == whole.host
    part, batch = (step.micro_batch(count).traffic.row_bytes_received for count in (8, 1))
    assert whole.hbm["exchanged rows"] == batch > parts.hbm["exchanged rows"] == pytest.approx(2 * part)
    travelling = {"activations", "exchanged rows", "rows on their way out", "row gradients"}
    assert len(whole.hbm.keys() - travelling) >= 3
    for item in whole.hbm.keys() - travelling:
        assert parts.hbm[item] == whole.hbm[item]


def test_row_buffers_count_once_per_slot(step: TrainStep) -> None:
    one, two = memory_of(step, DualBuffer(1)), memory_of(step, DualBuffer(2))
    assert two.hbm["row buffers"] == 2 * one.hbm["row buffers"] == 2 * step.traffic.bytes_owned


def test_rows_that_are_read_early_need_a_place_each(step: TrainStep) -> None:
    owned = step.traffic.bytes_owned
    assert memory_of(step, Serialized()).hbm["row buffers"] == owned
    assert memory_of(step, StalePrefetch()).hbm["row buffers"] == 2 * owned


def test_inputs_count_for_all_batches_that_have_been_read_and_not_trained(step: TrainStep) -> None:
    one = step.workload.batch * step.workload.input_bytes_per_sample
    deep = memory_of(step, DualBuffer(2))
    assert deep.host["input batches"] == 2 * one  # the next one is read while this one is copied
    assert deep.hbm["input batches"] == 4 * one
    assert memory_of(step, Serialized()).host["input batches"] == one


def test_totals_are_the_sums_of_their_items(step: TrainStep) -> None:
    found = memory_of(step, policies.build("nestpipe", micro_batches=8), 8)
    assert found.totals() == {"hbm": sum(found.hbm.values()), "host": sum(found.host.values())}
    assert all(size > 0 for size in found.hbm.values())


def small_cluster(hbm_bytes: float, dram_bytes: float) -> Cluster:
    machine = catalog.machine(catalog.names("machine")[0])
    return Cluster(
        replace(machine.accelerator, hbm_bytes=hbm_bytes),
        replace(machine.host, dram_bytes=dram_bytes),
        TwoLevel(1e9, 1e9),
        per_host=2,
        hosts=2,
    )


GIB = 2.0**30


def test_what_fits_to_the_last_byte_fits() -> None:
    memory = Memory({"activations": 3 * GIB, "row buffers": GIB}, {"input batches": 2 * GIB})
    check_fits(memory, small_cluster(4 * GIB, 2 * 2 * GIB))
    with pytest.raises(InfeasibleError):
        check_fits(memory, small_cluster(4 * GIB - 1, 2 * 2 * GIB))
    with pytest.raises(InfeasibleError):
        check_fits(memory, small_cluster(4 * GIB, 2 * 2 * GIB - 2))


def test_a_shortage_names_the_memory_the_bytes_the_largest_item_and_a_way_out() -> None:
    memory = Memory({"activations": 3 * GIB, "row buffers": GIB}, {})
    with pytest.raises(InfeasibleError) as refusal:
        check_fits(memory, small_cluster(2.5 * GIB, GIB))
    assert refusal.value.problem == (
        "does not fit in device memory: every rank needs 4.0 GiB and has 2.5 GiB, 1.5 GiB short; the largest "
        "item is activations with 3.0 GiB: recompute layers, use more micro-batches or a smaller batch"
    )


def test_host_memory_is_the_share_of_one_rank() -> None:
    memory = Memory({}, {TABLES: 3 * GIB})
    with pytest.raises(
        InfeasibleError, match=r"host memory per rank: every rank needs 3.0 GiB and has 2.0 GiB"
    ):
        check_fits(memory, small_cluster(GIB, 4 * GIB))
