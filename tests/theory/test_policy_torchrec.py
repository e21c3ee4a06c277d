"""What a step of each of TorchRec's pipelines takes, derived by hand, and what each holds in memory.

Letters: D read, I inputs, K route, H retrieve, E exchange, F forward, B backward, G send, U sparse_update,
A reduce, O optimizer, W write_back. Rows are updated before the dense parameters: with all else done the
updates of a batch end max(G + U, A) + O after its backward pass, its write-back G + U + W after it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from simulator.engine.durations import Durations
from simulator.engine.recurrence import run_recurrence
from simulator.errors import InputError
from simulator.pipeline import MarkedGraph, compile_pipeline, critical_cycle
from simulator.policies import catalog
from simulator.policies.base import Policy
from simulator.policies.frozen_window import FrozenWindow
from simulator.policies.gradient_accumulation import GradientAccumulation
from simulator.policies.nested import Nested
from simulator.policies.parts import WholeBatch
from simulator.policies.serialized import Serialized
from simulator.policies.torchrec import Base, Fused, Prefetch, SemiSync, SparseDist
from simulator.policies.two_d_sparse import TwoDSparse
from simulator.quantities import CopyWork, DenseWork, InTurn, leaves
from simulator.results.memory import scheduled_memory
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder
from simulator.sharding import HbmCache, RowWise, TrainStep
from simulator.testing import check_policy, example_steps
from simulator.workload.keys import BoundedZipf, Popularity, Uniform
from simulator.workload.tables import EmbeddingTable

NAMES = {
    "read": "D",
    "inputs": "I",
    "route": "K",
    "retrieve": "H",
    "exchange": "E",
    "forward": "F",
    "backward": "B",
    "send": "G",
    "sparse_update": "U",
    "reduce": "A",
    "optimizer": "O",
    "write_back": "W",
}
times = st.fixed_dictionaries({letter: st.integers(0, 500) for letter in NAMES.values()})
OFTEN = settings(max_examples=examples(100))


def cached_step(ranks: int = 1, share: float = 0.5) -> TrainStep:
    """Return an example step whose tables have a cache, by default with room for two batches."""
    step = next(example_steps(ranks=ranks))
    return replace(step, plan=RowWise(HbmCache(share)))


def graph_of(policy: Policy) -> MarkedGraph:
    step = cached_step()
    return compile_pipeline(policy.plan(replace(step, workload=replace(step.workload, bucket_bytes=1e12))))


def period(policy: Policy, ns: Mapping[str, int]) -> Fraction:
    graph = graph_of(policy)
    taken = [ns.get(NAMES.get(node.name.split(".")[0], ""), 0) for node in graph.nodes]
    return critical_cycle(len(graph.nodes), graph.edges, taken).period_ns(graph)


def ends(ns: Mapping[str, int]) -> int:
    """From the end of the backward pass to the end of both updates."""
    return max(ns["G"] + ns["U"], ns["A"]) + ns["O"]


def over(ns: Mapping[str, int]) -> int:
    """The same with the write-back."""
    return max(ends(ns), ns["G"] + ns["U"] + ns["W"])


def total(ns: Mapping[str, int], letters: str) -> int:
    return sum(ns[letter] for letter in letters)


def base(ns: Mapping[str, int]) -> Fraction:
    """One batch from its keys to its end; copies run beside it."""
    chain = total(ns, "KHEFB") + over(ns)
    early = [Fraction(ns["I"] + chain, 2), Fraction(ns["D"] + ns["I"] + chain, 3)]
    return max(Fraction(chain), Fraction(ns["D"]), Fraction(ns["I"]), *early)


def ahead_of(ns: Mapping[str, int], letters: str, chain: int, first: int) -> list[Fraction]:
    """Each stage that runs early, from its start to the end of its batch, over the batches that spans."""
    counts = range(1, len(letters) + 1)
    return [Fraction(total(ns, letters[-count:]) + chain, first + count) for count in counts]


def sparse_dist(ns: Mapping[str, int]) -> Fraction:
    """One batch from its rows to its end; distribution of keys and copies run beside it."""
    chain = total(ns, "HEFB") + over(ns)
    return max(Fraction(chain), *(Fraction(ns[one]) for one in "DIK"), *ahead_of(ns, "DIK", chain, 1))


def fused(ns: Mapping[str, int]) -> Fraction:
    """Rows wait for rows, passes for passes: the longer of the two."""
    rows, compute = total(ns, "HEFBGUW"), total(ns, "FB") + ends(ns)
    early = ahead_of(ns, "DIK", total(ns, "HEFB") + over(ns), 1)
    return max(Fraction(rows), Fraction(compute), *(Fraction(ns[one]) for one in "DIK"), *early)


def prefetch(ns: Mapping[str, int]) -> Fraction:
    """Rows come to the cache beside the batch before; a batch's place in it is free two batches later."""
    chain = total(ns, "EFB") + ends(ns)
    life = Fraction(total(ns, "HEFBGUW"), 2)
    keys = total(ns, "KH") + chain
    early = [Fraction(keys, 2), *ahead_of(ns, "DI", keys, 2)]
    return max(Fraction(chain), life, *(Fraction(ns[one]) for one in "DIKHW"), *early)


def semi_sync(ns: Mapping[str, int]) -> Fraction:
    """Passes of one batch, or what the network and the rows need beside them: H E of the batch after the
    next can begin when G U W of this one is over, and this G waits for the E before it.
    """
    compute = total(ns, "FB") + ends(ns)
    beside = total(ns, "EGU") + max(ns["W"], ns["O"])
    early = [*ahead_of(ns, "DIKH", total(ns, "EFB") + over(ns), 1), *ahead_of(ns, "DIKH", beside, 0)]
    alone = [Fraction(ns[one]) for one in "DIKHW"]
    return max(Fraction(compute), Fraction(total(ns, "EFBG"), 2), *alone, *early)


FORMS: list[tuple[Policy, Callable[[Mapping[str, int]], Fraction]]] = [
    (Base(), base),
    (SparseDist(), sparse_dist),
    (Fused(), fused),
    (Prefetch(), prefetch),
    (SemiSync(), semi_sync),
]


@pytest.mark.parametrize(("policy", "form"), FORMS, ids=lambda one: getattr(one, "__name__", ""))
@OFTEN
@given(ns=times)
def test_each_pipeline_takes_its_derived_period(
    policy: Policy, form: Callable[[Mapping[str, int]], Fraction], ns: dict[str, int]
) -> None:
    assert period(policy, ns) == form(ns)


COMPUTE_BOUND = dict.fromkeys(NAMES.values(), 10) | {"F": 300, "B": 600, "H": 40, "E": 50}


def test_semi_sync_saves_exactly_the_lookup_and_the_exchange_when_computing_is_longest() -> None:
    saved = period(SparseDist(), COMPUTE_BOUND) - period(SemiSync(), COMPUTE_BOUND)
    assert saved == COMPUTE_BOUND["H"] + COMPUTE_BOUND["E"]


def test_fused_saves_what_the_dense_optimizer_leaves_the_lookup_to_hide_behind() -> None:
    ns = COMPUTE_BOUND | {"O": 70}
    assert period(SparseDist(), ns) - period(Fused(), ns) == 70 - ns["W"]
    long_optimizer = COMPUTE_BOUND | {"O": 500}
    hidden = period(SparseDist(), long_optimizer) - period(Fused(), long_optimizer)
    assert hidden == long_optimizer["H"] + long_optimizer["E"]


def test_prefetch_is_worth_the_lookup_where_fetching_into_the_cache_is_long() -> None:
    ns = COMPUTE_BOUND | {"H": 700}
    assert period(SparseDist(), ns) - period(Prefetch(), ns) >= 700
    assert Fraction(3, 2) < period(SparseDist(), ns) / period(Prefetch(), ns) < 2


def test_each_further_stage_ahead_can_only_help_in_this_order() -> None:
    policies = (Serialized(), Base(), SparseDist(), Fused(), SemiSync())
    steps = [period(policy, COMPUTE_BOUND) for policy in policies]
    assert steps == sorted(steps, reverse=True)
    assert len(set(steps)) > 3


@pytest.mark.parametrize("batches", [1, 2, 5])
def test_accumulation_reduces_and_applies_dense_gradients_once_for_all_its_batches(batches: int) -> None:
    graph = graph_of(Nested(SparseDist(), GradientAccumulation(batches)))
    names = [node.name.partition(" ")[0] for node in graph.nodes]
    stages = [node.stage.name for node in graph.nodes]
    assert graph.period == batches
    assert stages.count("reduce.0") == stages.count("optimizer") == 1, names
    assert stages.count("sparse_update") == stages.count("forward") == batches


@OFTEN
@given(ns=times, batches=st.integers(1, 6))
def test_accumulation_takes_the_dense_update_off_all_steps_but_one(ns: dict[str, int], batches: int) -> None:
    """Compute and rows are long, nothing else: P batches of H E F B G U W, once with A and O."""
    ns = ns | {"D": 0, "I": 0, "K": 0}
    rows = total(ns, "HEFBGUW")
    expected = Fraction((batches - 1) * rows + total(ns, "HEFB") + over(ns), batches)
    assert period(Nested(SparseDist(), GradientAccumulation(batches)), ns) == expected


def test_accumulated_gradients_are_added_to_sums_in_memory() -> None:
    step = next(example_steps())
    moved = {}
    for batches in (1, 2):
        plan = GradientAccumulation(batches).plan(step)
        works = [stage.work for stage in plan.stages if stage.name.startswith("backward")]
        moved[batches] = sum(memory_bytes(work) for work in works)
    parameters = step.workload.model.quantities().parameters
    in_a_window = 2 * (moved[2] - moved[1])  # two batches: the first one's gradients are the sums
    assert in_a_window == pytest.approx(2 * 4 * parameters)


def memory_bytes(work: object) -> float:
    if isinstance(work, InTurn):
        return sum(memory_bytes(part) for part in work.parts)
    return float(work.memory_bytes) if isinstance(work, DenseWork) else 0.0


@pytest.mark.parametrize("outer", [Base(), SparseDist(), Fused(), Prefetch(), SemiSync()])
def test_accumulation_keeps_its_contract_within_every_pipeline(outer: Base) -> None:
    check_policy(Nested(outer, GradientAccumulation(3)), next(example_steps()))


def test_no_batches_make_no_update() -> None:
    with pytest.raises(InputError, match="batches must be at least 1"):
        GradientAccumulation(0)


def test_semi_sync_and_a_frozen_window_would_exchange_rows_twice() -> None:
    with pytest.raises(InputError, match=r"SemiSync cannot be nested around FrozenWindow: .* travel twice"):
        Nested(SemiSync(), FrozenWindow(4))
    with pytest.raises(InputError, match="travel twice"):
        Nested(TwoDSparse(SemiSync()), FrozenWindow(4))
    Nested(SemiSync(), WholeBatch())
    Nested(Prefetch(), FrozenWindow(4))


@pytest.fixture(scope="module")
def shipped() -> Scenario:
    return load(shipped_folder() / "torchrec" / "cached_tables.yaml")


def test_batches_in_flight_are_paid_for_in_memory(shipped: Scenario) -> None:
    """Each pipeline holds what its stages ahead hold: inputs, then exchanged rows.

    Prefetched rows lie in the cache, which all have; without prefetch, rows that miss it take a buffer.
    """
    hbm = {}
    for name in ("base", "sparse_dist", "fused", "prefetch", "semi_sync"):
        run = run_scenario(shipped.with_policy({"kind": f"torchrec_{name}"}))
        hbm[name] = run.report.peak_memory_bytes["hbm"]
    assert hbm["prefetch"] < hbm["base"] < hbm["sparse_dist"] <= hbm["fused"] < hbm["semi_sync"]


def test_prefetch_holds_the_inputs_of_three_batches_and_no_more() -> None:
    """One copied, one with its keys distributed and its rows in the cache, one that trains."""
    step = cached_step()
    plan = Prefetch().plan(step)
    ahead = {stage.name: stage.ahead for stage in plan.stages}
    assert [ahead[name] for name in ("read", "inputs", "route", "retrieve")] == [3, 2, 1, 1]
    graph = compile_pipeline(plan)
    nominal = np.array([[5000 if node.stage.kind == "compute" else 10] for node in graph.nodes])
    ns = np.broadcast_to(nominal[:, None, :], (len(graph.nodes), 40, 1))
    timeline = run_recurrence(graph, Durations(ns, np.zeros(1, dtype=np.int64), nominal))
    held = scheduled_memory(step, timeline, 1).hbm
    assert held["input batches"] == 3 * step.input_bytes
    assert "row buffers" not in held  # rows lie in the cache, which is there anyway


def moved(policy: Policy, step: TrainStep, name: str, path: str = "host_to_device") -> float:
    works = [stage.work for stage in policy.plan(step).stages if stage.name == name]
    copies = [one for work in works for one in leaves(work) if isinstance(one, CopyWork) and one.path == path]
    return sum(float(np.mean(one.bytes)) for one in copies)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.12, 0.15, 0.2, 0.5, 1.0])
def test_prefetch_moves_as_many_rows_as_the_cache_misses_early_or_late(share: float) -> None:
    """No cache filled before a batch's keys are known holds more of independent ones than the hottest."""
    step = cached_step(4, share)
    missed = moved(SparseDist(), step, "retrieve")
    parts = [moved(Prefetch(), step, name) for name in ("retrieve", "retrieve_late")]
    assert sum(parts) == pytest.approx(missed)
    assert moved(Prefetch(), step, "write_back", "device_to_host") == pytest.approx(missed)


@pytest.mark.parametrize("step", [*example_steps(), cached_step(share=0.0), cached_step(share=1e-5)])
def test_prefetch_on_tables_without_a_cache_is_the_pipeline_without_prefetch(step: TrainStep) -> None:
    plain, found = SparseDist().plan(step), Prefetch().plan(step)
    assert [repr(stage) for stage in found.stages] == [repr(stage) for stage in plain.stages]
    assert not found.buffers


def one_table(share: float, keys: Popularity, replacement: str = "hottest") -> TrainStep:
    step = next(example_steps(ranks=2))
    table = EmbeddingTable("rows", 10_000.0, 64, keys)
    tier = HbmCache(share, replacement=replacement)
    return replace(step, workload=replace(step.workload, tables=(table,), batch=4000), plan=RowWise(tier))


@pytest.mark.parametrize("replacement", ["hottest", "lru"])
@pytest.mark.parametrize("keys", [Uniform(10_000), BoundedZipf(10_000, 0.9)], ids=["uniform", "zipf"])
def test_a_cache_smaller_than_one_batch_cannot_hold_two(keys: Popularity, replacement: str) -> None:
    batch = keys.distinct(2 * 4000) / 10_000
    for part in (0.2, 0.7, 0.99):
        step = one_table(part * batch, keys, replacement)
        assert moved(Prefetch(), step, "retrieve_late") == 0.0  # nothing early, so nothing is late
        assert moved(Prefetch(), step, "retrieve") == moved(SparseDist(), step, "retrieve") > 0
        assert [stage.ahead for stage in Prefetch().plan(step).stages if stage.name == "retrieve"] == [0]


def test_what_two_batches_need_beyond_the_room_of_a_cache_is_late() -> None:
    """10,000 equally popular rows, two batches of d distinct ones that share d^2 / 10,000."""
    keys, rows = Uniform(10_000), 10_000
    d = keys.distinct(2 * 4000)
    both = 2 * d - keys.overlap(2 * 4000)
    for share in (0.9 * both / rows, 0.97 * both / rows, both / rows):
        step = one_table(share, keys)
        width, missed = 64 * 4 / 2, d * (1 - share)  # each of two owners brings half
        late = min(missed, both - share * rows)
        assert moved(Prefetch(), step, "retrieve_late") == pytest.approx(late * width, abs=1e-6)
        assert moved(Prefetch(), step, "retrieve") == pytest.approx((missed - late) * width)


def test_late_rows_take_a_buffer_of_their_own_and_nothing_is_stale() -> None:
    keys = Uniform(10_000)
    both = 2 * keys.distinct(2 * 4000) - keys.overlap(2 * 4000)
    step = one_table(0.97 * both / 10_000, keys)
    check_policy(Prefetch(), step)
    graph = compile_pipeline(Prefetch().plan(step))
    ns = np.full((len(graph.nodes), 40, 1), 1000)
    timeline = run_recurrence(graph, Durations(ns, np.zeros(1, dtype=np.int64), ns[:, 0]))
    held = scheduled_memory(step, timeline, 1).hbm["row buffers"]
    late = moved(Prefetch(), step, "retrieve_late")
    assert late > 0
    assert held in (pytest.approx(late), pytest.approx(2 * late))


def test_a_cache_holds_no_more_rows_of_a_batch_than_fit_whatever_its_hit_rate_is_said_to_be() -> None:
    keys = Uniform(10_000)
    step = one_table(0.01, keys)
    told = replace(step, plan=RowWise(HbmCache(0.01, hit_rate=0.9)))
    missed = float(np.mean(told.traffic.bytes_buffered)) / 256 * 2
    assert missed == pytest.approx(keys.distinct(2 * 4000) - 100)


def test_every_pipeline_of_the_catalog_is_here() -> None:
    assert {name for name in catalog.BUILT_IN if name.startswith("torchrec")} == {
        f"torchrec_{name}" for name in ("base", "sparse_dist", "fused", "prefetch", "semi_sync")
    }
