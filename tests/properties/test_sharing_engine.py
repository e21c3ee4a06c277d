"""Runs with sharing, drawn at random over the pipelines of all policies: what always holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiers import examples

from simulator.costs import Flows, Phase
from simulator.engine import Durations
from simulator.engine.contention import Contention
from simulator.engine.events import run_events
from simulator.engine.needs import Needs
from simulator.engine.precedence import Precedence
from simulator.engine.recurrence import run_recurrence
from simulator.engine.weights import PerCollective, PerFlow
from simulator.pipeline import Carry, MarkedGraph, Pipeline, Stage, compile_pipeline
from simulator.results.timeline import Timeline
from simulator.scenario import Scenario, load
from simulator.scenario.shipped_files import shipped_folder
from simulator.scenario.simulate import tabulated

POLICIES: list[dict[str, Any]] = [
    {"kind": "serialized"},
    {"kind": "stale_prefetch"},
    {"kind": "dual_buffer"},
    {"kind": "frozen_window", "micro_batches": 3},
    {"kind": "nestpipe", "micro_batches": 2, "buffers": 1},
    {"kind": "nestpipe", "micro_batches": 3},
]
LINKS = ("near", "far")
RESOURCES = ("tensor", "hbm", "copy")


@cache
def graph_of(policy: int) -> MarkedGraph:
    return load(shipped_folder() / "quickstart.yaml").with_policy(POLICIES[policy]).graph


@dataclass(frozen=True)
class Drawn:
    """A pipeline with durations, needs and flows drawn from a seed."""

    policy: int
    seed: int
    ranks: int
    cycles: int = 8
    alike: bool = False

    @property
    def graph(self) -> MarkedGraph:
        return graph_of(self.policy)

    def durations(self) -> Durations:
        """Some stages take no time at all, others as long as all the rest; a collective as long on all."""
        draw = np.random.default_rng(self.seed)
        shape = (len(self.graph.nodes), 1 if self.alike else self.cycles, 1 if self.alike else self.ranks)
        ns = (draw.lognormal(6, 1.5, shape) * (draw.random(shape) > 0.1)).astype(np.int64)
        ns = np.array(np.broadcast_to(ns, (len(ns), self.cycles, self.ranks)))
        return Durations(ns, np.arange(self.ranks), ns[:, 0])

    def shared(self) -> Contention:
        draw = np.random.default_rng(self.seed + 1)
        needs, phases = [], []
        for node in self.graph.nodes:
            meets = node.stage.work.rendezvous
            needs.append({} if meets else {name: draw.choice((0.1, 0.5, 1.0)) for name in self._some(draw)})
            flows = [Flows(draw.uniform(1, 1e3), {str(draw.choice(LINKS)): draw.choice((1.0, 7.0))})]
            phases.append((Phase(draw.uniform(0, 3e-7), tuple(flows)),) if meets else ())
        rule = PerFlow() if draw.random() < 0.5 else PerCollective()
        return Contention(Needs.of(self.graph, needs), phases, dict.fromkeys(LINKS, 1e9), rule)

    def _some(self, draw: np.random.Generator) -> list[str]:
        return [name for name in RESOURCES if draw.random() < 0.5]

    def run(self, shared: Contention | None = None, folded: bool = True) -> Timeline:
        return run_events(self.graph, self.durations(), folded, shared or self.shared())


drawn = st.builds(Drawn, st.integers(0, len(POLICIES) - 1), st.integers(0, 10**6), st.integers(1, 5))
MANY = settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))


def all_of_them(graph: MarkedGraph, by_node: list[Mapping[str, float]]) -> Needs:
    """Needs with which the engine watches every local stage, whether it can meet others or not."""
    return Needs(by_node, [not node.stage.work.rendezvous for node in graph.nodes])


# ---------------------------------------------------------------- against the recurrence


@MANY
@given(drawn)
def test_sharing_delays_and_never_hurries(one: Drawn) -> None:
    timeline, alone = one.run(), run_recurrence(one.graph, one.durations())
    assert (timeline.end_ns >= alone.end_ns).all()
    assert (timeline.slowed_ns >= 0).all()


@MANY
@given(drawn)
def test_where_nobody_asks_for_what_another_needs_times_are_those_of_the_recurrence(one: Drawn) -> None:
    """Every local stage goes through sharing, every collective through the network; each has its own."""
    count = len(one.graph.nodes)
    needs = all_of_them(one.graph, [{f"engine {node}": 1.0} for node in range(count)])
    phases = [
        (Phase(1e-7, (Flows(50.0, {f"link {index}": 1.0}),)),) if node.stage.work.rendezvous else ()
        for index, node in enumerate(one.graph.nodes)
    ]
    shared = Contention(needs, phases, {f"link {index}": 1e9 for index in range(count)})
    assert np.array_equal(one.run(shared).end_ns, run_recurrence(one.graph, one.durations()).end_ns)


@MANY
@given(st.integers(2, 6), st.integers(0, 10**6))
def test_where_nothing_overlaps_times_are_those_of_the_recurrence(count: int, seed: int) -> None:
    """One stage after the other, each on a stream of its own and in need of all there is."""
    chain = [Stage("s0", "compute")]
    for number in range(1, count):
        chain.append(Stage(f"s{number}", "compute", after=(chain[-1],)))
    streams = {"compute": [chain[0]], **{f"stream {stage.name}": [stage] for stage in chain[1:]}}
    graph = compile_pipeline(Pipeline(streams, [Carry(chain[-1], chain[0], 1)]))
    by_node: list[Mapping[str, float]] = [dict.fromkeys(RESOURCES, 1.0) for _ in chain]
    assert not any(Needs.of(graph, by_node).shared)
    ns = np.random.default_rng(seed).integers(0, 1000, (count, 8, 3))
    durations = Durations(ns, np.arange(3), ns[:, 0])
    shared = Contention(all_of_them(graph, by_node), [()] * count, {"link": 1.0})
    alone = run_recurrence(graph, durations).end_ns
    assert np.array_equal(run_events(graph, durations, contention=shared).end_ns, alone)


# ---------------------------------------------------------------- what the graph tells beforehand


@MANY
@given(drawn)
def test_stages_that_cannot_overlap_never_do(one: Drawn) -> None:
    timeline, apart = one.run(), ~Precedence(one.graph).may_overlap
    assert apart.any()
    for u, v in np.argwhere(np.triu(apart)).tolist():
        for rank in range(one.ranks):
            begun = np.concatenate([timeline.start_ns[node, :, rank] for node in {u, v}])
            ended = np.concatenate([timeline.end_ns[node, :, rank] for node in {u, v}])
            order = np.lexsort((ended, begun))
            assert (begun[order][1:] >= ended[order][:-1]).all()


@MANY
@given(drawn)
def test_events_are_spared_only_where_they_change_nothing(one: Drawn) -> None:
    """Told to watch every stage, and not only those that can meet others, the engine finds the same."""
    shared = one.shared()
    watchful = replace(shared, needs=all_of_them(one.graph, list(shared.needs.by_node)))
    assert np.abs(one.run(watchful).end_ns - one.run(shared).end_ns).max() <= 1


# ---------------------------------------------------------------- folding, order, causality


@MANY
@given(drawn)
def test_folded_and_unfolded_runs_agree_and_repeat_to_the_nanosecond(one: Drawn) -> None:
    first = one.run()
    for other in (one.run(folded=False), one.run()):
        assert np.array_equal(first.end_ns, other.end_ns)
        assert first.events == other.events


@MANY
@given(drawn, st.integers(2, 6))
def test_alike_ranks_cost_no_more_events_than_one(one: Drawn, copies: int) -> None:
    few, many = replace(one, ranks=1, alike=True), replace(one, ranks=copies, alike=True)
    assert few.run().events == many.run(folded=False).events
    assert np.array_equal(
        np.broadcast_to(few.run().end_ns, many.run().end_ns.shape), many.run(folded=False).end_ns
    )


@MANY
@given(drawn)
def test_no_rank_leaves_a_collective_before_the_last_has_come(one: Drawn) -> None:
    """Each rank takes its own time from a common begin, the last arrival or later, or all end together.

    The latter where ranks have unlike loads and something held up the collective on its way.
    """
    timeline = one.run()
    for index, node in enumerate(one.graph.nodes):
        if node.stage.work.rendezvous:
            end = timeline.end_ns[index]
            since = end - timeline.duration_ns[index]
            assert ((since == since[:, :1]).all(axis=1) | (end == end[:, :1]).all(axis=1)).all()
            assert (since.min(axis=1) >= timeline.start_ns[index].max(axis=1)).all()


@MANY
@given(drawn)
def test_a_stream_does_one_thing_at_a_time_also_where_its_stages_are_slowed(one: Drawn) -> None:
    timeline = one.run()
    for node in range(len(one.graph.nodes)):
        for before, after in pairwise(range(one.cycles)):
            assert (timeline.start_ns[node, after] >= timeline.end_ns[node, before]).all()


# ---------------------------------------------------------------- events


@pytest.fixture(scope="module")
def nestpipe() -> Scenario:
    scenario = load(shipped_folder() / "nestpipe" / "npu.yaml", ["run.contention=true"]).with_workers(64)
    return scenario.with_policy({"kind": "nestpipe", "micro_batches": 8})


def counted(scenario: Scenario, cycles: int, shared: Contention | None) -> tuple[Timeline, int]:
    """The run, and how many collectives it settled."""
    timeline = run_events(scenario.graph, tabulated(scenario, cycles), contention=shared)
    return timeline, cycles * sum(node.stage.work.rendezvous for node in scenario.graph.nodes)


def test_without_sharing_a_collective_costs_one_event_however_many_ranks_meet(nestpipe: Scenario) -> None:
    for settings_ in ([], ["run.jitter.compute=0.1"], ["run.fold=off"], ["sharding.owners=drawn"]):
        timeline, collectives = counted(nestpipe.with_overrides(settings_), 12, None)
        assert timeline.events == collectives == 12 * 19


def test_ranks_that_all_differ_stay_within_the_budget_of_events(
    nestpipe: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    """One event for the begin of a shared stage, one for its end, one for each begin or end beside it."""
    scenario, cycles = nestpipe.with_overrides(["run.jitter={compute: 10 %, input: 10 %, lookup: 10 %}"]), 12
    shared = Contention.of(scenario.graph, scenario.costs)
    timeline, collectives = counted(scenario, cycles, shared)
    ends = {node for node, _ in shared.shared_ends}  # collectives with local work before their flows
    stages = sum(shared.shared(hosted=False)) + len(ends)
    of_network = counted(nestpipe, cycles, replace(shared, needs=Needs.none(scenario.graph)))[0].events
    of_ranks = timeline.events - of_network
    with capsys.disabled():
        print(
            f"\n  {stages} of {len(scenario.graph.nodes)} stages shared; per worker and step "
            f"{of_ranks / cycles / 64:.1f} events for them and {collectives / cycles / 64:.2f} collectives; "
            f"{of_network / cycles:.0f} events per step for the network, whatever the number of workers"
        )
    assert stages == 33  # 24 of them because they can meet what gathers rows for an exchange
    assert of_network <= 6 * collectives
    assert of_ranks <= 2 * stages * cycles * 64 + met(timeline, shared.needs.shared)
    assert of_ranks <= 1.5 * stages * cycles * 64


def met(timeline: Timeline, shared: Sequence[bool]) -> int:
    """Begins and ends of shared stages that fall within others on their rank, over the whole run."""
    nodes = np.flatnonzero(shared)
    begin, end = (times[nodes].reshape(-1, timeline.ranks) for times in (timeline.began_ns, timeline.end_ns))
    return sum(
        int(((begin[:, rank] < moment) & (moment < end[:, rank])).sum())
        for times in (begin, end)
        for rank in range(timeline.ranks)
        for moment in times[:, rank]
    )


def test_a_longer_run_or_more_alike_ranks_cost_in_proportion_and_nothing(nestpipe: Scenario) -> None:
    shared = Contention.of(nestpipe.graph, nestpipe.costs)
    short, long = (counted(nestpipe, cycles, shared)[0].events for cycles in (12, 24))
    assert long <= 2.1 * short
    many = nestpipe.with_workers(1536)
    folded = counted(many, 12, Contention.of(many.graph, many.costs))[0].events
    assert folded <= 1.2 * short
