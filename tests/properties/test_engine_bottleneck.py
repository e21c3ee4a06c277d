"""The bottleneck of ranks that differ: exact for up to eight kinds of ranks, a lower bound beyond."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiers import examples

from simulator.engine import Durations
from simulator.engine.recurrence import run_recurrence
from simulator.pipeline import Carry, MarkedGraph, Pipeline, Stage, compile_pipeline
from simulator.policies import catalog
from simulator.quantities import NOTHING, AllReduceWork, IntArray
from simulator.results.bottleneck import MOST_COLUMNS, find_bottleneck
from simulator.testing import example_steps

FEW = settings(max_examples=examples(50), suppress_health_check=list(HealthCheck))
NAMES = ("serialized", "stale_prefetch", "dual_buffer")


def graph_of(name: str) -> MarkedGraph:
    step = next(example_steps(ranks=1))
    step = replace(step, workload=replace(step.workload, bucket_bytes=1e12))
    return compile_pipeline(catalog.build(name).plan(step))


def measured_period(graph: MarkedGraph, nominal_ns: IntArray) -> Fraction:
    """Nanoseconds per batch once all stages of all columns advance alike."""
    count, columns = nominal_ns.shape
    for cycles in (200, 2000):
        wide = np.broadcast_to(nominal_ns[:, None, :], (count, cycles, columns))
        end = run_recurrence(graph, Durations(wide, np.arange(columns), nominal_ns)).end_ns[:, :-20]
        for c in range(1, 31):
            gained = end[:, -60:] - end[:, -60 - c : -c]
            if (gained == gained[0, 0, 0]).all():
                return Fraction(int(gained[0, 0, 0]), c * graph.period)
    raise AssertionError("never became periodic")


@st.composite
def stragglers(draw: Callable[..., int], columns: st.SearchStrategy[int]) -> tuple[MarkedGraph, IntArray]:
    """A policy, and for each stage its own time on every column: someone is slow at each of them."""
    graph = graph_of(draw(st.sampled_from(NAMES)))  # type: ignore[arg-type]
    seed, width = draw(st.integers(0, 2**32)), draw(columns)
    random = np.random.default_rng(seed)
    nominal = random.integers(0, 60, (len(graph.nodes), width))
    nominal[random.random(nominal.shape) < 0.1] *= 5
    return graph, nominal


@FEW
@given(stragglers(st.integers(2, MOST_COLUMNS)))
def test_up_to_eight_kinds_of_ranks_the_bottleneck_is_the_measured_period(
    case: tuple[MarkedGraph, IntArray],
) -> None:
    graph, nominal = case
    assert find_bottleneck(graph, nominal).period_ns == measured_period(graph, nominal)


@FEW
@given(stragglers(st.integers(MOST_COLUMNS + 1, 40)))
def test_beyond_eight_kinds_of_ranks_it_is_a_lower_bound(case: tuple[MarkedGraph, IntArray]) -> None:
    graph, nominal = case
    assert find_bottleneck(graph, nominal).period_ns <= measured_period(graph, nominal)


@FEW
@given(stragglers(st.integers(2, MOST_COLUMNS)), st.integers(2, 50))
def test_many_ranks_of_few_kinds_count_as_few(case: tuple[MarkedGraph, IntArray], copies: int) -> None:
    graph, nominal = case
    crowd = np.tile(nominal, copies)
    assert find_bottleneck(graph, crowd).period_ns == find_bottleneck(graph, nominal).period_ns


def test_a_rank_that_is_never_the_slowest_can_still_be_the_bottleneck() -> None:
    """Ranks take 10 + 0, 0 + 10 and 9 + 9 for the two computations between which nobody meets."""
    first = Stage("first", "compute", NOTHING)
    second = Stage("second", "compute", NOTHING, after=[first])
    look = Stage("look", "lookup", NOTHING, ahead=1)
    meet = Stage("meet", "all_reduce", AllReduceWork(1.0), after=[second, look])
    streams = {"host": [look], "compute": [first, second], "network": [meet]}
    graph = compile_pipeline(Pipeline(streams, [Carry(meet, to=first)], updates=[meet]))
    at = {"first": [10, 0, 9], "second": [0, 10, 9], "look": [15, 15, 0], "meet": [1, 1, 1]}
    nominal = np.array([at[node.name] for node in graph.nodes])
    assert find_bottleneck(graph, nominal).period_ns == 19 == measured_period(graph, nominal)


def test_the_links_of_the_bottleneck_add_up_to_its_period() -> None:
    graph = graph_of("dual_buffer")
    random = np.random.default_rng(3)
    nominal = random.integers(1, 1000, (len(graph.nodes), 4))
    found = find_bottleneck(graph, nominal)
    lags = sum(link.lag for link in found.links)
    assert Fraction(sum(link.duration_ns for link in found.links), lags) == found.period_ns
    assert set(found.stages) <= {node.name for node in graph.nodes}


@pytest.mark.parametrize("slow", ["read", "route", "retrieve", "forward", "exchange", "write_back"])
@pytest.mark.parametrize("name", NAMES)
def test_a_stage_that_is_far_slower_on_one_rank_is_named(name: str, slow: str) -> None:
    graph = graph_of(name)
    nominal = np.ones((len(graph.nodes), 3), dtype=np.int64)
    nominal[[node.name for node in graph.nodes].index(slow), 1] = 10_000
    assert slow in find_bottleneck(graph, nominal).stages
