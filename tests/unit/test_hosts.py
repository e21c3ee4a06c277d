"""Ranks that share a host: by hand, folded, with a limit; nearly alike ranks as one class; mixed hosts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simpy

from simulator.costs import CostModel
from simulator.engine import Durations
from simulator.engine.agenda import Agenda
from simulator.engine.buckets import bucketed
from simulator.engine.host import SharedHost, SharedRank
from simulator.engine.hosts import hosted
from simulator.engine.needs import Needs, Part
from simulator.engine.sharing import Law, fill
from simulator.engine.traffic import Traffic
from simulator.errors import InputError
from simulator.hardware import TwoLevel, catalog, slowest
from simulator.scenario import load, run_scenario
from simulator.scenario.shipped_files import shipped_folder
from simulator.scenario.simulate import Run

READ = (Part(1.0, {"dram": 1.0}, cap=4.0),)
LINKED = (
    Part(1.0, {"dram": 1.0, "host_to_device": 0.5}, cap=2.0),
)  # its own link lets it read twice as fast
BURST = (Part(0.5, {"dram": 1.0}, cap=4.0), Part(0.5, {}))
NEEDS = Needs([{}] * 3, [True] * 3, parts=[READ, LINKED, BURST])


def ends_of(jobs: list[list[tuple[int, int, int]]], limit: float | None = None) -> list[list[int]]:
    """By rank of a host of four: when each (begin, node, ns at nominal speed) ends."""
    agenda, traffic, law = Agenda(simpy.Environment()), Traffic(), Law([NEEDS], 4, limit)
    ends: list[dict[int, int]] = [{} for _ in jobs]
    ranks = [SharedRank(agenda, law, own.__setitem__) for own in ends]
    SharedHost.of(agenda, law, [(rank, 1) for rank in ranks], traffic)
    for rank, own in zip(ranks, jobs, strict=True):
        for number, (begin, node, ns) in enumerate(own):
            agenda.at(begin, lambda what: what[0].begin(*what[1:]), (rank, number, node, ns))
    agenda.env.run()
    return [[own[number] for number in sorted(own)] for own in ends]


@pytest.mark.parametrize(
    ("jobs", "ends"),
    [
        ([[(0, 0, 400)]] * 4, [[400]] * 4),  # all alike: an even part for each
        ([[(0, 0, 400)], [], [], []], [[100], [], [], []]),  # alone: all of the host
        ([[(0, 1, 400)], [], [], []], [[200], [], [], []]),  # alone, but for its own link
        ([[(0, 0, 400)], [(0, 0, 400)], [], []], [[200], [200], [], []]),
        ([[(0, 0, 400)], [(100, 0, 400)], [], []], [[100], [200], [], []]),  # they take turns
        ([[(0, 0, 400)], [(0, 1, 400)], [], []], [[200], [200], [], []]),
        ([[(0, 0, 600)], [(0, 1, 400)], [(0, 1, 400)], []], [[350], [300], [300], []]),  # 4/3 each, then 4
        (
            [[(0, 2, 400)], [], [], []],
            [[250], [], [], []],
        ),  # 200 of reading at four times the speed, 200 of waiting
    ],
)
def test_ranks_of_a_host_share_it_as_found_by_hand(jobs: Any, ends: list[list[int]]) -> None:
    assert ends_of(jobs) == ends


@pytest.mark.parametrize(("limit", "end"), [(None, 100), (4, 100), (2, 200), (1.6, 250), (1, 400)])
def test_a_rank_uses_no_more_of_its_host_than_the_limit(limit: float | None, end: int) -> None:
    assert ends_of([[(0, 0, 400)], [], [], []], limit) == [[end], [], [], []]


def test_the_limit_holds_for_all_stages_of_a_rank_together() -> None:
    assert ends_of([[(0, 0, 400), (0, 0, 400)], [], [], []], 1) == [[800, 800], [], [], []]


def test_speeds_rise_together_up_to_their_caps() -> None:
    assert fill([{"a": 0.25}] * 3, [4.0, 1.0, 4.0]) == pytest.approx([1.5, 1.0, 1.5])


# ---------------------------------------------------------------- folding


def durations_of(ranks: list[int]) -> Durations:
    """One stage; rank r takes `ranks[r]` ns, and alike ranks share a column."""
    values, column_of = np.unique(ranks, return_inverse=True)
    ns = np.array(values, dtype=np.int64)[None, None, :]
    return Durations(ns, column_of.astype(np.int64), ns[:, 0])


def test_hosts_with_the_same_ranks_in_any_order_are_one_class() -> None:
    found = hosted(durations_of([5, 5, 5, 7, 7, 5, 5, 5, 7, 7]), 2, None, folded=True)
    assert found.durations.column_of.tolist() == [0, 0, 1, 2, 2, 1, 0, 0, 3, 3]
    assert found.durations.ns[0, 0].tolist() == [5, 5, 7, 7]
    assert found.together == [[(1, 1), (2, 1)]]


def test_unfolded_every_host_of_unlike_ranks_is_one_of_its_own() -> None:
    found = hosted(durations_of([5, 5, 5, 7, 7, 5]), 2, None, folded=False)
    assert found.durations.column_of.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.together == [[(2, 1), (3, 1)], [(4, 1), (5, 1)]]


def test_ranks_of_two_kinds_are_kept_apart_even_where_they_take_equally_long() -> None:
    found = hosted(durations_of([5, 5, 5, 5]), 2, np.array([0, 0, 1, 1]), folded=True)
    assert found.kind_of.tolist() == [0, 1] and found.together == []


SLOW = "cluster.slow=[{ranks: [3], host: 50 %}]"
SETTINGS = [
    "policy={kind: dual_buffer}",
    "cluster.hosts=8",
    "cluster.unexplained_host_time=0.1 ms",
    "run.batches=40",
]


def of_kind(policy: str) -> dict[str, Any]:
    return {"kind": policy, **({"micro_batches": 2} if policy == "nestpipe" else {})}


def npu(*settings: str) -> Run:
    table = "workload.tables=[{name: items, rows: 1e8, dimension: 512}]"
    return run_scenario(load(shipped_folder() / "nestpipe/npu.yaml", [*SETTINGS, table, *settings]))


def test_one_slow_rank_costs_two_columns_and_folded_and_unfolded_agree() -> None:
    folded, apart = npu(SLOW), npu(SLOW, "run.fold=off")
    assert folded.timeline.end_ns.shape[2] == 3  # good ranks, the slow one, and those beside it
    assert "unlike ranks their host" in folded.report.fidelity
    ends = folded.timeline.end_ns[:, :, folded.timeline.column_of]
    assert np.array_equal(ends, apart.timeline.end_ns)


def test_ranks_that_take_turns_gain_by_what_others_leave_idle() -> None:
    """Reading dominates this step; under jitter the last reader of a host has it to itself."""
    heavy = ["policy={kind: serialized}", "run.jitter.lookup=30 %"]
    shared, split = npu(*heavy), npu(*heavy, "cluster.host_limit=1")
    assert shared.report.step_ms["mean"] < split.report.step_ms["mean"]
    assert shared.report.lower_bound_ms < split.report.lower_bound_ms
    assert shared.report.step_ms["mean"] >= shared.report.lower_bound_ms


def test_a_limit_below_an_even_part_is_refused() -> None:
    with pytest.raises(InputError, match="host_limit"):
        npu("cluster.host_limit=0.5")


def test_a_pcie_switch_is_shared_by_copies_and_divided_where_all_copy_at_once() -> None:
    alone, behind = (
        npu("policy={kind: serialized}"),
        npu("policy={kind: serialized}", "cluster.host.pcie_bandwidth=63 GB/s"),
    )
    copies = [node.name for node in alone.timeline.graph.nodes].index("inputs")
    ratio = behind.timeline.duration_ns[copies] / alone.timeline.duration_ns[copies]
    link = alone.scenario.cluster.accelerator.host_link_bandwidth
    assert ratio == pytest.approx(link / (63e9 / 8), rel=1e-4)


# ---------------------------------------------------------------- nearly alike ranks


DRAWN = ["sharding.owners=drawn", "run.contention=false", "run.batches=30", "run.warm_up=8"]


@pytest.mark.parametrize("within", [0.05, 0.01, 0.002])
@pytest.mark.parametrize("policy", ["serialized", "dual_buffer", "nestpipe"])
def test_classes_of_nearly_alike_ranks_keep_their_stated_error(policy: str, within: float) -> None:
    base = load(shipped_folder() / "quickstart.yaml", [*DRAWN, "workload.batch=256", "cluster.hosts=8"])
    base = base.with_policy(of_kind(policy))
    exact, classes = run_scenario(base), run_scenario(base.with_overrides([f"run.fold={{within: {within}}}"]))
    longer = classes.durations.longer
    assert longer is not None and longer <= within + 1e-9
    assert classes.timeline.end_ns.shape[2] < exact.timeline.end_ns.shape[2]
    ends = exact.timeline.end_ns[:, :, exact.timeline.column_of]
    held = classes.timeline.end_ns[:, :, classes.timeline.column_of]
    assert (held >= ends).all() and (held <= ends * (1 + longer) + 1).all()
    assert f"{longer:.2%}" in classes.report.fidelity


def test_classes_of_nearly_alike_ranks_share_no_host_and_the_report_says_so() -> None:
    shared, classes = npu(SLOW), npu(SLOW, "run.fold={within: 1 %}")
    assert shared.hosts_shared and not classes.hosts_shared
    assert "no host" in classes.report.fidelity and "no host" not in shared.report.fidelity


@pytest.mark.parametrize("seed", range(20))
def test_durations_of_a_class_are_the_longest_and_differ_by_no_more_than_said(seed: int) -> None:
    """Two stages of 60 ranks, each within 20 % of the others or next to nothing: a few rungs of 10 % each."""
    draw = np.random.default_rng(seed)
    ns = np.where(
        draw.random((2, 60)) < 0.2, draw.integers(0, 3, (2, 60)), draw.integers(1000, 1200, (2, 60))
    )
    durations = Durations(np.broadcast_to(ns[:, None], (2, 3, 60)), np.arange(60), ns)
    found = bucketed(durations, 0.1)
    classes = range(found.nominal_ns.shape[1])
    assert len(classes) < 30
    longest = [ns[:, found.column_of == one].max(axis=1) for one in classes]
    assert np.array_equal(found.nominal_ns, np.transpose(longest))
    assert np.array_equal(found.ns, np.broadcast_to(found.nominal_ns[:, None], found.ns.shape))
    too_long = found.nominal_ns[:, found.column_of] / np.maximum(ns, 1) - 1
    assert 0 < too_long.max() <= 0.1
    assert found.longer == too_long.max()


def test_classes_are_refused_where_durations_are_drawn() -> None:
    with pytest.raises(InputError, match=r"run\.jitter"):
        npu("run.fold={within: 1 %}", "run.jitter.compute=1 %")


# ---------------------------------------------------------------- mixed hosts


MIXED = shipped_folder() / "fabrics/mixed.yaml"


def mixed(*settings: str, policy: str = "dual_buffer") -> Run:
    return run_scenario(load(MIXED, list(settings)).with_policy(of_kind(policy)))


@pytest.mark.parametrize("policy", ["serialized", "nestpipe"])
def test_two_equal_groups_are_one_cluster(policy: str, tmp_path: Path) -> None:
    equal = mixed(
        "cluster.groups=[{accelerator: a100_80, hosts: 8}, {accelerator: a100_80, hosts: 4}]", policy=policy
    )
    text = MIXED.read_text()
    begin, end = text.index("  groups:"), text.index("workload:")
    alone = tmp_path / "alone.yaml"
    alone.write_text(text[:begin] + "  accelerator: a100_80\n  hosts: 12\n\n" + text[end:])
    one = run_scenario(load(alone).with_policy(of_kind(policy)))
    ends = [run.timeline.end_ns[:, :, run.timeline.column_of] for run in (equal, one)]
    assert np.array_equal(*ends)
    assert equal.report.step_ms == one.report.step_ms and equal.report.cost == one.report.cost


def test_the_step_of_a_serialized_job_is_that_of_its_slower_group() -> None:
    """Links are those of the slower group anyway, and it computes and reads longer."""
    both = mixed(policy="serialized")
    old = mixed("cluster.groups=[{accelerator: a100_80, hosts: 12}]", policy="serialized")
    assert both.report.step_ms["mean"] == pytest.approx(old.report.step_ms["mean"], rel=1e-3)
    assert any("groups[0] (8 with a100_80) end a step last" in note for note in both.report.notes)
    new = mixed("cluster.groups=[{accelerator: h100, hosts: 12}]", policy="serialized")
    assert new.report.step_ms["mean"] < both.report.step_ms["mean"]


def test_each_group_computes_at_its_own_speed() -> None:
    run = mixed()
    forward = next(node for node in run.timeline.graph.nodes if node.name.startswith("forward"))
    seconds = run.scenario.costs.seconds(forward.stage.work)
    assert isinstance(seconds, np.ndarray) and seconds.shape == (96,)
    for place, costs in enumerate(run.scenario.costs.by_kind):
        assert isinstance(costs, CostModel)
        alone = costs.seconds(forward.stage.work)
        assert (seconds[slice(0, 64) if place == 0 else slice(64, 96)] == alone).all()


@pytest.mark.parametrize("speed", [0.5, 0.1])
def test_slow_ranks_of_a_group_are_slower_than_the_rest_of_it(speed: float) -> None:
    """The newer accelerator updates rows faster even on them, so the older one ends each step."""
    run = mixed(f"cluster.slow=[{{hosts: [11], compute: {speed}}}]", policy="serialized")
    assert any("groups[0] (8 with a100_80) end a step last" in note for note in run.report.notes)
    column_of = run.timeline.column_of
    assert [column_of[rank] for rank in (0, 63, 64, 87, 88, 95)] == [0, 0, 1, 1, 2, 2]
    nominal = {
        node.name: ns for node, ns in zip(run.timeline.graph.nodes, run.durations.nominal_ns, strict=True)
    }
    assert nominal["optimizer"][2] == pytest.approx(nominal["optimizer"][1] / speed, rel=1e-4)
    assert nominal["read"][2] == nominal["read"][1]


def test_what_does_not_fit_the_smallest_memory_is_refused() -> None:
    smaller = (
        "cluster.groups=[{accelerator: h100, hosts: 8}, {accelerator: a100_40, hosts: 4, host: dgx_a100}]"
    )
    have = load(MIXED, [smaller, "cluster.fabric=dgx_a100"]).cluster
    assert have.hbm_bytes == catalog.accelerator("a100_40").hbm_bytes


def test_groups_and_a_cluster_of_its_own_contradict_each_other() -> None:
    with pytest.raises(InputError, match=r"leave out cluster\.hosts"):
        load(MIXED, ["cluster.hosts=3"])
    with pytest.raises(InputError, match=r"cluster\.groups"):
        load(MIXED).with_workers(192)


def test_mixed_fabrics_go_at_the_slowest_rates() -> None:
    fast, slow = TwoLevel(400e9, 50e9, 1e-6, 9e-6), TwoLevel(300e9, 60e9, 2e-6, 8e-6)
    both = slowest([fast, slow])
    assert isinstance(both, TwoLevel)
    assert (both.within, both.between, both.within_latency, both.between_latency) == (300e9, 50e9, 2e-6, 9e-6)
    assert slowest([fast, fast]) is fast
    with pytest.raises(InputError, match="shape"):
        slowest([fast, TwoLevel(1e9, 1e9, domain=72)])
