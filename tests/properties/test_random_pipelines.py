"""Random pipelines: the compiler, both engines and the critical cycle against definitions, naively applied.

The naive side never sees a marked graph. It lists the runs of every stage, sorts each stream by
(batch - ahead, position), looks up what a run waits for as the words of the vocabulary say it, and
adds up durations in the order that `graphlib` finds.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from graphlib import TopologicalSorter
from itertools import pairwise

import networkx
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tiers import examples

from simulator.costs import Flows, Phase
from simulator.engine import Durations, Variation, tabulate
from simulator.engine.contention import Contention
from simulator.engine.events import run_events
from simulator.engine.needs import Needs
from simulator.engine.recurrence import run_recurrence
from simulator.errors import InfeasibleError
from simulator.pipeline import Buffer, Carry, MarkedGraph, Pipeline, Stage, compile_pipeline, critical_cycle
from simulator.quantities import Amount, IntArray, Work
from simulator.results.bottleneck import find_bottleneck

Run = tuple[int, int]  # (stage, batch)
Draw = Callable[..., int]


@dataclass(frozen=True, eq=False)
class Lasting(Work):
    """Whole nanoseconds per rank; ranks meet for it when `meets`."""

    ns: tuple[int, ...]
    meets: bool = False

    @property
    def rendezvous(self) -> bool:
        return self.meets


def seconds(work: Work) -> Amount:
    assert isinstance(work, Lasting)
    return np.array(work.ns) * 1e-9


@dataclass(frozen=True)
class Recipe:
    """One stage in plain numbers: `after` holds indices of stages."""

    stream: str
    ahead: int
    every: int
    phase: int
    after: tuple[int, ...]
    work: Lasting

    def runs_in(self, batch: int) -> bool:
        return batch % self.every == self.phase


@dataclass(frozen=True)
class Plan:
    """A pipeline in plain numbers. Buffers are (slots, taken by, ((freed by, batches later), ...))."""

    stages: tuple[Recipe, ...]
    order: tuple[int, ...]
    carries: tuple[tuple[int, int, int], ...]
    buffers: tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...]
    updates: tuple[int, ...]
    ranks: int

    def pipeline(self) -> Pipeline:
        built: list[Stage] = []
        for index, one in enumerate(self.stages):
            after = [built[before] for before in one.after]
            built.append(Stage(f"s{index}", "compute", one.work, after, one.ahead, one.every, one.phase))
        streams: dict[str, list[Stage]] = {}
        for index in self.order:
            streams.setdefault(self.stages[index].stream, []).append(built[index])
        carries = [Carry(built[u], to=built[v], lag=lag) for u, v, lag in self.carries]
        buffers = [
            Buffer(f"b{index}", slots, built[taken], [(built[stage], later) for stage, later in freed])
            for index, (slots, taken, freed) in enumerate(self.buffers)
        ]
        return Pipeline(streams, carries, buffers, [built[update] for update in self.updates])


# ---------------------------------------------------------------- how they are drawn


@st.composite
def recipes(draw: Draw, index: int, ranks: int, periodic: bool) -> Recipe:
    every = draw(st.sampled_from((1, 1, 1, 2, 3))) if periodic else 1
    after = draw(st.sets(st.integers(0, index - 1), max_size=2)) if index else ()
    times = draw(st.tuples(*[st.integers(0, 30)] * ranks))
    return Recipe(
        stream="compute" if index == 0 else draw(st.sampled_from(("compute", "network", "host"))),
        ahead=draw(st.sampled_from((0, 0, 1, 2, 3))),
        every=every,
        phase=draw(st.integers(0, every - 1)),
        after=tuple(sorted(after)),
        work=Lasting(times, meets=draw(st.integers(0, 3)) == 0),
    )


@st.composite
def plans(draw: Draw, closed: bool | None = None) -> Plan:
    """`closed` pipelines are held back everywhere by the update, so that most of them live."""
    ranks, count = draw(st.integers(1, 3)), draw(st.integers(1, 7))
    closed = draw(st.integers(0, 2)) > 0 if closed is None else closed
    periodic = draw(st.integers(0, 2)) == 0
    stages = tuple(draw(recipes(index, ranks, periodic)) for index in range(count))
    some = st.integers(0, count - 1)
    held = [(0, index, one.ahead + draw(st.integers(1, 2))) for index, one in enumerate(stages) if closed]
    carries = draw(st.lists(st.tuples(some, some, st.integers(-3, 4)), max_size=2))
    freed = st.lists(st.tuples(some, st.integers(-1, 1)), min_size=1, max_size=2).map(tuple)
    buffers = draw(st.lists(st.tuples(st.integers(1, 4), some, freed), max_size=2))
    shuffled = draw(st.integers(0, 3)) == 0
    return Plan(
        stages,
        tuple(draw(st.permutations(range(count)))) if shuffled else tuple(range(count)),
        tuple(held + carries),
        tuple(buffers),
        tuple(sorted({0, draw(some)})),
        ranks,
    )


# ---------------------------------------------------------------- the naive side


def run_serving(one: Recipe, batch: int) -> int:
    """The latest batch at or before `batch` in which the stage runs; negative when there is none."""
    while batch >= 0 and not one.runs_in(batch):
        batch -= 1
    return batch


def runs_on_stream(plan: Plan, stream: str, batches: int) -> list[Run]:
    """Every run of a stream in the order in which the stream takes them."""
    position = {stage: place for place, stage in enumerate(plan.order)}
    runs = [
        (stage, batch)
        for stage, one in enumerate(plan.stages)
        for batch in range(batches)
        if one.stream == stream and one.runs_in(batch)
    ]
    return sorted(runs, key=lambda run: (run[1] - plan.stages[run[0]].ahead, position[run[0]]))


def asked_of(plan: Plan, stage: int, batch: int) -> Iterator[Run]:
    """What a run waits for beside its stream, each as (stage, the batch whose run is meant)."""
    one = plan.stages[stage]
    yield from ((before, batch) for before in one.after)
    yield from ((source, batch - lag) for source, to, lag in plan.carries if to == stage)
    for slots, taken, freed in plan.buffers:
        if taken == stage:
            yield from ((by, batch - slots + later) for by, later in freed)
    if one.ahead > 0:
        yield from ((update, batch - one.ahead - 1) for update in plan.updates)


def waiting_lists(plan: Plan, batches: int) -> dict[Run, set[Run]]:
    """For each run of the first `batches` batches, the runs it waits for (later batches included)."""
    waits: dict[Run, set[Run]] = {}
    for stream in {one.stream for one in plan.stages}:
        runs = runs_on_stream(plan, stream, batches)
        waits |= {run: set() for run in runs}
        for before, run in pairwise(runs):
            waits[run].add(before)
    for stage, batch in waits:
        for other, wanted in asked_of(plan, stage, batch):
            served = run_serving(plan.stages[other], wanted)
            if served >= 0:
                waits[stage, batch].add((other, served))
    return waits


def naive_times(plan: Plan, batches: int) -> dict[Run, list[int]]:
    """Completion times per rank, ns; what lies beyond the last batch of the run is not waited for."""
    waits = waiting_lists(plan, batches)
    inside = {run: {other for other in others if other in waits} for run, others in waits.items()}
    end: dict[Run, list[int]] = {}
    for run in TopologicalSorter(inside).static_order():
        work = plan.stages[run[0]].work
        ready = [max([0, *(end[other][rank] for other in inside[run])]) for rank in range(plan.ranks)]
        if work.meets:
            ready = [max(ready)] * plan.ranks
        end[run] = [at + taken for at, taken in zip(ready, work.ns, strict=True)]
    return end


def runs_that_finish(plan: Plan, horizon: int) -> set[Run]:
    """Play the pipeline with nobody stopping it: runs beyond `horizon` batches never come."""
    waits = {run: others for run, others in waiting_lists(plan, horizon + 8).items() if run[1] < horizon}
    done: set[Run] = set()
    moved = True
    while moved:
        ready = {run for run, others in waits.items() if run not in done and others <= done}
        done |= ready
        moved = bool(ready)
    return done


def first_half(plan: Plan, horizon: int) -> set[Run]:
    return {run for run in waiting_lists(plan, horizon) if run[1] < horizon // 2}


def source_component(plan: Plan) -> set[int] | None:
    """Stages that wait for nobody else, when some other stage does not hold them back; else None."""
    waits = waiting_lists(plan, 48)
    arrows = {(other, run[0]) for run, others in waits.items() if 24 <= run[1] < 36 for other, _ in others}
    graph = networkx.DiGraph(arrows)
    graph.add_nodes_from(range(len(plan.stages)))
    if networkx.is_strongly_connected(graph):
        return None
    condensed = networkx.condensation(graph)
    first = next(node for node in condensed if condensed.in_degree(node) == 0)
    return set(condensed.nodes[first]["members"])


def slow_outside(plan: Plan, fast: set[int]) -> Plan:
    """The same pipeline: 1 ns within `fast`, 1 us elsewhere."""
    lasting = [Lasting((1 if index in fast else 1000,), meets=False) for index in range(len(plan.stages))]
    stages = [replace(one, work=work) for one, work in zip(plan.stages, lasting, strict=True)]
    return replace(plan, stages=tuple(stages), ranks=1)


# ---------------------------------------------------------------- the comparison


def durations_of(graph: MarkedGraph, plan: Plan, cycles: int) -> Durations:
    return tabulate(graph, seconds, plan.ranks, cycles, Variation())


def by_rank(graph: MarkedGraph, times: IntArray, column_of: IntArray) -> dict[Run, list[int]]:
    """Completion times of a timeline in the form of `naive_times`."""
    return {
        (int(node.name[1:]), graph.batch_of(index, cycle)): times[index, cycle, column_of].tolist()
        for index, node in enumerate(graph.nodes)
        for cycle in range(times.shape[1])
    }


def check_live(plan: Plan, graph: MarkedGraph, cycles: int) -> None:
    durations = durations_of(graph, plan, cycles)
    folded, unfolded = run_events(graph, durations), run_events(graph, durations, folded=False)
    recurrence = run_recurrence(graph, durations)
    expected = naive_times(plan, cycles * graph.period)
    for timeline in (folded, unfolded, recurrence):
        assert by_rank(graph, timeline.end_ns, timeline.column_of) == expected


def check_deadlock(plan: Plan) -> None:
    horizon = 80
    assert not first_half(plan, horizon) <= runs_that_finish(plan, horizon)


def check_unbounded(plan: Plan) -> None:
    """Beyond the graph: with the right stage slow, the distance grows with every batch."""
    fast = source_component(plan)
    assert fast is not None
    batches = 48
    end = naive_times(slow_outside(plan, fast), batches)
    slow = {run: times[0] for run, times in end.items() if run[0] not in fast and run[1] < batches - 12}
    lead = [
        max(at for (_, when), at in slow.items() if when <= batch)
        - max(times[0] for (stage, when), times in end.items() if stage in fast and when <= batch)
        for batch in (12, 24, 35)
    ]
    assert lead[1] - lead[0] >= 2_000
    assert lead[2] - lead[1] >= 2_000


def outcome(plan: Plan) -> str:
    try:
        graph = compile_pipeline(plan.pipeline())
    except InfeasibleError as refusal:
        if refusal.problem.startswith("deadlock"):
            check_deadlock(plan)
            return "deadlock"
        check_unbounded(plan)
        return "unbounded"
    for cycles in (1, 2, max(3, 12 // graph.period)):
        check_live(plan, graph, cycles)
    return "live"


def test_every_live_pipeline_takes_the_times_that_its_definitions_give_and_every_other_is_foretold() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(1500), suppress_health_check=list(HealthCheck))
    @given(plans())
    def check(plan: Plan) -> None:
        found = outcome(plan)
        seen[found] += 1
        if found == "live":
            seen["periodic"] += any(one.every > 1 for one in plan.stages)
            seen["ranks meet"] += plan.ranks > 1 and any(one.work.meets for one in plan.stages)

    check()
    part = examples(1500) / 1500
    assert seen["live"] >= part * 300, seen
    assert seen["deadlock"] >= part * 300, seen
    assert seen["unbounded"] >= part * 150, seen
    assert seen["periodic"] >= part * 50, seen
    assert seen["ranks meet"] >= part * 50, seen


@settings(max_examples=examples(150))
@given(plans())
def test_an_accepted_pipeline_always_finishes_and_holds_every_stage_back(plan: Plan) -> None:
    try:
        compile_pipeline(plan.pipeline())
    except InfeasibleError:
        return
    assert first_half(plan, 80) <= runs_that_finish(plan, 80)
    assert source_component(plan) is None


# ---------------------------------------------------------------- the critical cycle


def compiled(plan: Plan) -> MarkedGraph:
    """The graph, or no example at all when it is refused."""
    try:
        return compile_pipeline(plan.pipeline())
    except InfeasibleError:
        assume(False)
        raise


def ratios(graph: MarkedGraph, nominal_ns: IntArray) -> list[Fraction]:
    """Nanoseconds per cycle of batches that the critical cycle promises to each column."""
    if any(node.stage.work.rendezvous for node in graph.nodes):
        shared = find_bottleneck(graph, nominal_ns).period_ns * graph.period
        return [shared] * nominal_ns.shape[1]
    return [critical_cycle(len(graph.nodes), graph.edges, column.tolist()).ratio for column in nominal_ns.T]


def steady_state(graph: MarkedGraph, plan: Plan) -> tuple[int, list[int]]:
    """Run until all stages advance alike: return c and, per column, x(k + c) - x(k) in ns."""
    for cycles in (128, 1024, 8192):
        end = run_recurrence(graph, durations_of(graph, plan, cycles)).end_ns[:, : cycles - 24]
        for c in range(1, 25):
            gained = end[:, -48:] - end[:, -48 - c : -c]
            if (gained == gained[:1, :1]).all():
                return c, gained[0, 0].tolist()
    raise AssertionError("never became periodic")


@settings(max_examples=examples(250), suppress_health_check=list(HealthCheck))
@given(plans(closed=True))
def test_once_periodic_every_completion_time_advances_by_the_critical_cycle(plan: Plan) -> None:
    graph = compiled(plan)
    c, gained = steady_state(graph, plan)
    promised = ratios(graph, durations_of(graph, plan, 1).nominal_ns)
    assert [Fraction(ns) for ns in gained] == [c * ratio for ratio in promised]


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(plans(closed=True))
def test_the_edges_of_the_critical_cycle_form_a_cycle_of_the_graph_with_its_ratio(plan: Plan) -> None:
    graph = compiled(plan)
    duration = durations_of(graph, plan, 1).nominal_ns[:, 0].tolist()
    found = critical_cycle(len(graph.nodes), graph.edges, duration)
    assert set(found.edges) <= set(graph.edges)
    assert [edge.target for edge in found.edges] == [
        edge.source for edge in (*found.edges[1:], found.edges[0])
    ]
    work, lags = sum(duration[edge.target] for edge in found.edges), sum(edge.lag for edge in found.edges)
    assert found.ratio == Fraction(work, lags)
    assert found.ratio == heaviest_ratio(graph, duration)


def heaviest_ratio(graph: MarkedGraph, duration: list[int]) -> Fraction:
    """The largest work over lags by enumerating every simple cycle (one edge of least lag per pair)."""
    least: dict[tuple[int, int], int] = {}
    for edge in graph.edges:
        pair = edge.source, edge.target
        least[pair] = min(edge.lag, least.get(pair, edge.lag))
    if len(least) > 40:
        assume(False)
    cycles = networkx.simple_cycles(networkx.DiGraph(least.keys()))
    return max(
        Fraction(
            sum(duration[node] for node in cycle),
            sum(least[pair] for pair in zip(cycle, [*cycle[1:], cycle[0]], strict=True)),
        )
        for cycle in cycles
    )


# ---------------------------------------------------------------- what must not change anything, or only help


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(plans(closed=True), st.data())
def test_a_slot_more_never_slows_a_pipeline(plan: Plan, data: st.DataObject) -> None:
    assume(plan.buffers)
    graph = compiled(plan)
    at = data.draw(st.integers(0, len(plan.buffers) - 1))
    slots, taken, freed = plan.buffers[at]
    wider = replace(plan, buffers=(*plan.buffers[:at], (slots + 1, taken, freed), *plan.buffers[at + 1 :]))
    try:
        roomy = compile_pipeline(wider.pipeline())
    except InfeasibleError as refusal:  # the buffer was all that held some stage back
        assert refusal.problem.startswith("unbounded")
        return
    before = run_recurrence(graph, durations_of(graph, plan, 12)).end_ns
    after = run_recurrence(roomy, durations_of(roomy, wider, 12)).end_ns
    assert (after <= before).all()


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(plans(closed=True), st.data())
def test_renumbering_the_ranks_only_renumbers_the_times(plan: Plan, data: st.DataObject) -> None:
    graph = compiled(plan)
    new_to_old = data.draw(st.permutations(range(plan.ranks)))
    moved = [
        replace(one, work=Lasting(tuple(one.work.ns[old] for old in new_to_old), one.work.meets))
        for one in plan.stages
    ]
    other = compiled(replace(plan, stages=tuple(moved)))
    first = run_events(graph, durations_of(graph, plan, 8))
    second = run_events(other, durations_of(other, replace(plan, stages=tuple(moved)), 8))
    expected = first.end_ns[:, :, first.column_of][:, :, new_to_old]
    assert (second.end_ns[:, :, second.column_of] == expected).all()


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(plans(closed=True), st.integers(2, 5))
def test_more_ranks_of_the_same_kinds_change_no_time(plan: Plan, copies: int) -> None:
    graph = compiled(plan)
    many = [replace(one, work=Lasting(one.work.ns * copies, one.work.meets)) for one in plan.stages]
    crowd = replace(plan, stages=tuple(many), ranks=plan.ranks * copies)
    large = compile_pipeline(crowd.pipeline())
    few = run_events(graph, durations_of(graph, plan, 6))
    for folded in (True, False):
        lot = run_events(large, durations_of(large, crowd, 6), folded)
        expected = np.tile(few.end_ns[:, :, few.column_of], copies)
        assert (lot.end_ns[:, :, lot.column_of] == expected).all()
    assert durations_of(large, crowd, 6).ns.shape[2] <= plan.ranks


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(plans(closed=True))
def test_a_rank_spends_at_most_one_event_per_collective_and_none_on_local_stages(plan: Plan) -> None:
    graph = compiled(plan)
    durations = durations_of(graph, plan, 6)
    collectives = 6 * sum(node.stage.work.rendezvous for node in graph.nodes)
    assert run_events(graph, durations).events == collectives
    # a collective is settled once for all of its ranks, however many there are
    assert run_events(graph, durations, folded=False).events == collectives


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(plans(closed=True))
def test_a_stream_does_one_thing_at_a_time(plan: Plan) -> None:
    graph = compiled(plan)
    cycles = max(2, 12 // graph.period)
    timeline = run_events(graph, durations_of(graph, plan, cycles))
    starts = by_rank(graph, timeline.start_ns, timeline.column_of)
    ends = by_rank(graph, timeline.end_ns, timeline.column_of)
    for stream in {one.stream for one in plan.stages}:
        for before, run in pairwise(runs_on_stream(plan, stream, cycles * graph.period)):
            assert all(start >= end for start, end in zip(starts[run], ends[before], strict=True))


def contention_of(graph: MarkedGraph, draw: Callable[..., float]) -> Contention:
    """Local stages need shares of three engines; collectives start up, then fill one of two links."""
    shares, links = st.sampled_from((0.0, 0.1, 0.5, 1.0)), st.sampled_from(("near", "far"))
    needs, phases = [], []
    for node in graph.nodes:
        meets = node.stage.work.rendezvous
        needs.append({} if meets else {engine: draw(shares) for engine in ("tensor", "hbm", "copy")})
        assert isinstance(node.stage.work, Lasting)
        ns = max(node.stage.work.ns)
        flows = Flows(ns / 2, {draw(links): 1.0})  # type: ignore[dict-item]
        phases.append((Phase(ns / 2 * 1e-9), Phase(0.0, (flows,))) if meets else ())
    return Contention(Needs.of(graph, needs), phases, {"near": 1e9, "far": 1e9})


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(plans(closed=True), st.data())
def test_sharing_delays_and_never_hurries_and_does_not_depend_on_folding(
    plan: Plan, data: st.DataObject
) -> None:
    graph = compiled(plan)
    durations = durations_of(graph, plan, 8)
    shared = contention_of(graph, data.draw)
    alone = run_recurrence(graph, durations)
    folded, unfolded = (run_events(graph, durations, fold, shared) for fold in (True, False))
    ends = [one.end_ns[:, :, one.column_of] for one in (alone, folded, unfolded)]
    assert (ends[1] == ends[2]).all()
    assert (ends[1] >= ends[0]).all()


def test_stages_that_cannot_be_compiled_name_the_longest_period() -> None:
    recipes_ = [Recipe("compute", 0, every, 0, (), Lasting((1,))) for every in (7, 11, 13)]
    plan = Plan(tuple(recipes_), (0, 1, 2), (), (), (0,), 1)
    with pytest.raises(Exception, match="only every 1001 batches; at most 256"):
        compile_pipeline(plan.pipeline())
