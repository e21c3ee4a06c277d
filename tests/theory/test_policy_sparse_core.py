"""SparseCore and TensorCore: what a step takes, derived by hand, and what stacks and limits of ids cost.

Letters: D read, I inputs; the gather: K route, H retrieve, Q gather, E exchange, N unpack; F forward,
B backward, A reduce, O optimizer; the scatter: P pack, G send, U sparse_update, W write_back.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from simulator.costs import CostModel
from simulator.engine import Durations
from simulator.engine.events import run_events
from simulator.errors import InfeasibleError, InputError
from simulator.hardware import Cluster, catalog
from simulator.pipeline import MarkedGraph, compile_pipeline, critical_cycle
from simulator.policies.base import Policy
from simulator.policies.sparse_core import SparseCore, SparseCorePipelined
from simulator.quantities import AllToAllWork, InTurn, ReduceScatterWork, RowWork, Together, Work
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder
from simulator.sharding import RowWise, ShardingPlan, Stacks, TrainStep
from simulator.testing import check_policy, example_steps

NAMES = {
    "read": "D",
    "inputs": "I",
    "route": "K",
    "retrieve": "H",
    "gather": "Q",
    "exchange": "E",
    "unpack": "N",
    "forward": "F",
    "backward": "B",
    "reduce": "A",
    "optimizer": "O",
    "pack": "P",
    "send": "G",
    "sparse_update": "U",
    "write_back": "W",
}
GATHER, SCATTER = "KHQEN", "PGUW"
times = st.fixed_dictionaries({letter: st.integers(0, 500) for letter in NAMES.values()})
OFTEN = settings(max_examples=examples(100))


def graph_of(policy: Policy) -> MarkedGraph:
    step = next(example_steps(ranks=1))
    return compile_pipeline(policy.plan(replace(step, workload=replace(step.workload, bucket_bytes=1e12))))


def taken(graph: MarkedGraph, ns: Mapping[str, int]) -> list[int]:
    return [ns.get(NAMES[node.name.split(".")[0]], 0) for node in graph.nodes]


def period(policy: Policy, ns: Mapping[str, int]) -> Fraction:
    graph = graph_of(policy)
    return critical_cycle(len(graph.nodes), graph.edges, taken(graph, ns)).ratio


def total(ns: Mapping[str, int], letters: str) -> int:
    return sum(ns[letter] for letter in letters)


def early(ns: Mapping[str, int], first: int) -> Fraction:
    """Reading and copying that far ahead, to the end of both updates."""
    chain = total(ns, GATHER + "FB") + max(total(ns, "PGU"), total(ns, "AO"))
    alone = max(Fraction(ns["D"]), Fraction(ns["I"]))
    return max(alone, Fraction(ns["I"] + chain, first), Fraction(total(ns, "DI") + chain, first + 1))


@OFTEN
@given(times)
def test_one_engine_after_the_other_takes_the_sum(ns: dict[str, int]) -> None:
    chain = total(ns, GATHER + "FB") + max(total(ns, SCATTER), total(ns, "AO"))
    assert period(SparseCore(), ns) == max(Fraction(chain), early(ns, 2))


@OFTEN
@given(times)
def test_pipelined_takes_exactly_the_longer_of_the_two_engines(ns: dict[str, int]) -> None:
    sparse, dense = total(ns, GATHER + SCATTER), total(ns, "FBAO")
    assert period(SparseCorePipelined(), ns) == max(Fraction(sparse), Fraction(dense), early(ns, 4))


@OFTEN
@given(times)
def test_pipelining_never_makes_a_step_more_than_twice_as_fast(ns: dict[str, int]) -> None:
    fed = ns | {"D": 0, "I": 0}
    serial, both = period(SparseCore(), fed), period(SparseCorePipelined(), fed)
    assert both <= serial <= 2 * both


def test_engines_that_are_alike_gain_all_of_two_and_a_long_dense_part_next_to_nothing() -> None:
    alike = dict.fromkeys(NAMES.values(), 0) | {"E": 60, "G": 40, "F": 30, "B": 70}
    assert period(SparseCore(), alike) == 2 * period(SparseCorePipelined(), alike)
    bound = alike | {"B": 970}
    assert period(SparseCore(), bound) / period(SparseCorePipelined(), bound) == Fraction(11, 10)


@pytest.mark.parametrize("batches", [3, 10, 25])
def test_so_many_batches_take_two_cycles_more(batches: int) -> None:
    """The first cycle gathers only, the last one scatters only: S_f + n T + S_b."""
    ns = dict.fromkeys(NAMES.values(), 0) | {"E": 40, "G": 60, "F": 30, "B": 70}
    graph = graph_of(SparseCorePipelined())
    nominal = np.array([[one] for one in taken(graph, ns)], dtype=np.int64)
    shape = (len(nominal), batches, 1)
    durations = Durations(np.broadcast_to(nominal[:, None, :], shape), np.zeros(1, np.int64), nominal)
    assert int(run_events(graph, durations).end_ns.max()) == 40 + batches * 100 + 60


def test_the_dependencies_are_those_of_the_public_implementation() -> None:
    """In cycle i: the scatter of i - 2, then the gather of i, beside the dense passes of i - 1."""
    graph = graph_of(SparseCorePipelined())
    waits = {(graph.nodes[e.target].name, graph.nodes[e.source].name, e.lag, e.reason) for e in graph.edges}
    assert ("route", "write_back", 2, "carry") in waits
    assert ("route", "write_back", 2, 'stream "sparse"') in waits
    assert ("forward", "sparse_update", 2, "pace") in waits
    ahead = {node.stage.name: node.stage.ahead for node in graph.nodes}
    assert {ahead[name] for name in ("route", "retrieve", "gather", "exchange", "unpack")} == {2}
    assert {ahead[name] for name in ("forward", "backward.0", "reduce.0", "optimizer")} == {1}
    assert {ahead[name] for name in ("pack", "send", "sparse_update", "write_back")} == {0}


@pytest.mark.parametrize("policy", [SparseCore(), SparseCorePipelined()])
def test_both_keep_their_contract_with_copies_of_the_tables_too(policy: Policy) -> None:
    from simulator.sharding import Replicas

    step = next(example_steps())
    check_policy(policy, step)
    check_policy(policy, replace(step, plan=ShardingPlan(RowWise("hbm"), replicas=Replicas(2, every=3))))


# ---------------------------------------------------------------- on chips


@pytest.fixture(scope="module")
def shipped() -> Scenario:
    return load(shipped_folder() / "google" / "host_tables.yaml")


def test_rows_keep_the_sparse_engine_busy_and_share_the_memory_with_dense_passes(shipped: Scenario) -> None:
    report = run_scenario(shipped.with_policy({"kind": "sparse_core_pipelined"})).report
    assert 0 < report.busy_share["sparse"] < 1
    assert report.interference_ms > 0
    alone = run_scenario(shipped.with_policy({"kind": "sparse_core_pipelined"}), "vector").report
    assert alone.step_ms["mean"] < report.step_ms["mean"]


def test_neither_runs_on_chips_without_sparse_cores() -> None:
    for name in ("sparse_core", "sparse_core_pipelined"):
        scenario = load(shipped_folder() / "quickstart.yaml", [f"policy.kind={name}"])
        with pytest.raises(InfeasibleError, match=r"not applicable here: .* accelerators with sparse cores"):
            run_scenario(scenario)


def test_an_accelerator_written_out_may_have_sparse_cores(shipped: Scenario) -> None:
    chip = shipped.cluster.accelerator
    written = {
        "name": "mine",
        "kind": "tpu",
        "peak_flops": {"bf16": "275 TFLOP/s"},
        "hbm_bytes": "32 GiB",
        "hbm_bandwidth": "1200 GB/s",
        "cache_bytes": "10 MiB",
        "launch_time": "1.5 us",
        "matrix_efficiency": 0.7,
        "memory_efficiency": 0.9,
        "gather_efficiency": 0.8,
        "host_link_bandwidth": "16 GB/s",
        "sparse_cores": chip.sparse_cores,
        "tensor_cores": chip.tensor_cores,
    }
    import json

    named = ["cluster.host=tpu_v4_host", "cluster.fabric=tpu_v4_pod"]
    ours = shipped.with_overrides([f"cluster.accelerator={json.dumps(written)}", *named])
    assert run_scenario(ours).report.step_ms == run_scenario(shipped).report.step_ms


# ---------------------------------------------------------------- stacks and limits of ids


def stacked(count: int, limit: int | None = None) -> TrainStep:
    step = next(example_steps())
    return replace(step, plan=ShardingPlan(RowWise("hbm"), stacks=Stacks(count, limit)))


def parts(work: Work) -> list[Work]:
    if isinstance(work, InTurn | Together):
        return [leaf for part in work.parts for leaf in parts(part)]
    return [work]


def test_a_stage_starts_its_engine_and_its_exchange_once_per_stack() -> None:
    plain = replace(next(example_steps()), plan=RowWise("hbm")).micro_batch(1)
    micro = stacked(20).micro_batch(1)
    for once, often in zip(parts(plain.exchange_rows), parts(micro.exchange_rows), strict=True):
        if isinstance(often, RowWork):
            assert (often.launches, often.rows) == (20, once.rows)  # type: ignore[union-attr]
        if isinstance(often, AllToAllWork):
            assert (often.rounds, often.bytes) == (20, once.bytes)  # type: ignore[union-attr]


def test_what_stacks_cost_is_their_starts() -> None:
    machine = catalog.machine("tpu_v4")
    costs = CostModel(Cluster(machine.accelerator, machine.host, machine.fabric.resized(64), 4, 16))
    rows, exchange = RowWork(1e4, 512, "hbm"), AllToAllWork(1e6)
    more = costs.seconds(replace(rows, launches=7.0)) - costs.seconds(rows)
    assert more == pytest.approx(7 * machine.accelerator.launch_time)
    start = sum(phase.seconds for phase in costs.phases(exchange))
    assert start > 0
    assert costs.seconds(replace(exchange, rounds=5)) == pytest.approx(costs.seconds(exchange) + 4 * start)
    scattered = ReduceScatterWork(1e6)
    start = sum(phase.seconds for phase in costs.phases(scattered))
    assert costs.seconds(replace(scattered, rounds=3)) == pytest.approx(costs.seconds(scattered) + 2 * start)


@pytest.mark.parametrize(("limit", "minibatches"), [(10**9, 1), (100, None), (10, None)])
def test_a_batch_is_split_so_that_no_chip_sends_another_more_ids_than_the_limit(
    limit: int, minibatches: int | None
) -> None:
    step = stacked(2, limit)
    ids = float(np.max(step.traffic.requests)) / step.ranks / 2
    found = Stacks(2, limit).minibatches(step.traffic)
    assert (found - 1) * limit < ids <= found * limit
    assert minibatches is None or found == minibatches
    moved = [leaf for leaf in parts(step.micro_batch(1).send_gradients) if isinstance(leaf, AllToAllWork)]
    assert [one.rounds for one in moved] == [2 * found]


def test_ids_that_64_minibatches_cannot_hold_are_refused() -> None:
    with pytest.raises(InfeasibleError, match="times the limit of 1; a batch is split into at most 64"):
        Stacks(1, 1).rounds(stacked(1, 1).traffic)
    with pytest.raises(InputError, match="at least 1"):
        Stacks(0)


def test_a_scenario_with_too_many_ids_is_refused_at_its_sharding(shipped: Scenario) -> None:
    tight = shipped.with_overrides(["sharding.stacks={count: 5, ids_per_partition: 1}"])
    with pytest.raises(InfeasibleError, match="minibatches") as refused:
        run_scenario(tight)
    assert "sharding" in str(refused.value)


def test_more_stacks_than_tables_are_refused(shipped: Scenario) -> None:
    tables = len(shipped.workload.tables)
    assert shipped.with_overrides([f"sharding.stacks.count={tables}"]).step
    with pytest.raises(InputError, match=f"only {tables} tables to stack") as refused:
        _ = shipped.with_overrides([f"sharding.stacks.count={tables + 1}"]).step
    assert "sharding.stacks.count" in str(refused.value)


def test_more_stacks_take_longer_and_never_less(shipped: Scenario) -> None:
    steps = [
        run_scenario(shipped.with_overrides([f"sharding.stacks={{count: {count}}}"]), "vector").report
        for count in (5, 20, 100)
    ]
    means = [one.step_ms["mean"] for one in steps]
    assert means == sorted(means) and means[0] < means[-1]
