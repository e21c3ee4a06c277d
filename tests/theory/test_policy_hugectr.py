"""HugeCTR: what its step takes, derived by hand; rows travel beside the bottom network, both ways.

Letters: E exchange, Fb and Bb bottom forward and backward, Ft and Bt those from the rows on, G send,
U sparse_update, At and Ab the all-reduces, O optimizer.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from simulator.pipeline import MarkedGraph, compile_pipeline, critical_cycle
from simulator.policies.hugectr import HugeCtr
from simulator.quantities import DenseWork, InTurn, Work
from simulator.results.in_flight import holdings
from simulator.sharding import TrainStep
from simulator.testing import check_policy, example_steps
from simulator.workload.dense import Dlrm, Mlp

NAMES = {
    "D": "read",
    "I": "inputs",
    "K": "route",
    "H": "retrieve",
    "E": "exchange",
    "Fb": "bottom_forward",
    "Ft": "forward",
    "Bt": "backward.0",
    "Bb": "bottom_backward.0",
    "At": "reduce.0",
    "Ab": "bottom_reduce.0",
    "G": "send",
    "U": "sparse_update",
    "O": "optimizer",
    "W": "write_back",
}
times = st.fixed_dictionaries({letter: st.integers(0, 500) for letter in NAMES})


def step_of_a_dlrm() -> TrainStep:
    step = next(example_steps())
    model = Dlrm(13, 2, 64, bottom=(512, 64), top=(256, 1), value_bytes=4)
    return replace(step, workload=replace(step.workload, model=model, bucket_bytes=1e12))


def graph_of(step: TrainStep, captured: bool = False) -> MarkedGraph:
    return compile_pipeline(HugeCtr(captured).plan(step))


def period(ns: Mapping[str, int]) -> Fraction:
    graph, by_name = graph_of(step_of_a_dlrm()), {name: ns.get(letter, 0) for letter, name in NAMES.items()}
    return critical_cycle(len(graph.nodes), graph.edges, [by_name[node.name] for node in graph.nodes]).ratio


@settings(max_examples=examples(200))
@given(times)
def test_the_step_is_the_longest_of_rows_compute_and_reading_ahead(ns: dict[str, int]) -> None:
    """Cycles, one batch each unless said:

    - reading, copying and routing, each on its own; each of them with what it prepares, over as many
      batches as it is ahead plus one: to the end of the updates;
    - rows: H E Ft Bt G U W, and to the end of the step instead of W where that is longer;
    - compute: Fb Ft Bt, then Bb U O, where U waits for G, and O for the all-reduces.
    """
    front = ns["H"] + ns["E"]
    middle = ns["Ft"] + ns["Bt"]
    rows = max(ns["Bb"], ns["G"]) + ns["U"]
    reduced = max(ns["At"], ns["Bb"]) + ns["Ab"]
    behind = max(rows, reduced) + ns["O"]
    to_end = lambda start: start + middle + behind  # noqa: E731
    ahead = [
        Fraction(to_end(max(ns["K"] + front, 0)), 2),
        Fraction(max(to_end(ns["I"] + ns["K"] + front), to_end(ns["I"] + ns["Fb"])), 3),
        Fraction(max(to_end(ns["D"] + ns["I"] + ns["K"] + front), to_end(ns["D"] + ns["I"] + ns["Fb"])), 4),
    ]
    expected = max(
        *(Fraction(ns[letter]) for letter in "DIK"),
        Fraction(front + middle + rows + ns["W"]),
        Fraction(ns["Fb"] + middle + behind),
        Fraction(ns["E"] + middle + ns["G"]),
        *ahead,
    )
    assert period(ns) == expected


def test_the_bottom_hides_behind_the_exchange_or_the_exchange_behind_the_bottom() -> None:
    ns = {"Fb": 30, "E": 80, "Ft": 100, "Bt": 200, "Bb": 60, "G": 50, "U": 10}
    assert period(ns) == 80 + 100 + 200 + 60 + 10
    assert period(ns | {"E": 20, "G": 90}) == 30 + 100 + 200 + 90 + 10


def test_gradients_of_the_top_are_reduced_while_the_bottom_goes_backward() -> None:
    ns = {"Ft": 100, "Bt": 200, "Bb": 60, "At": 60, "Ab": 5, "O": 7}
    assert period(ns) == 100 + 200 + 60 + 5 + 7


def kernels(work: Work) -> float:
    if isinstance(work, InTurn):
        return sum(kernels(part) for part in work.parts)
    return work.kernels if isinstance(work, DenseWork) else 0.0


def flops(work: Work) -> float:
    if isinstance(work, InTurn):
        return sum(flops(part) for part in work.parts)
    return float(work.flops) if isinstance(work, DenseWork) else 0.0


def test_a_captured_graph_launches_each_pass_once_and_computes_the_same() -> None:
    step = step_of_a_dlrm()
    plain, graph = (graph_of(step, captured).nodes for captured in (False, True))
    for before, after in zip(plain, graph, strict=True):
        assert flops(before.stage.work) == flops(after.stage.work)
        assert kernels(after.stage.work) <= min(1, kernels(before.stage.work))
    assert sum(kernels(node.stage.work) for node in plain) > 20


def test_a_model_without_a_bottom_reduces_nothing_for_it() -> None:
    step = next(example_steps())
    assert isinstance(step.workload.model, Mlp)
    names = {node.name for node in graph_of(step).nodes}
    assert not {"bottom_reduce.0", "bottom_backward.0"} & names


def test_the_bottom_and_the_rest_together_compute_and_reduce_what_the_whole_model_does() -> None:
    step = step_of_a_dlrm()
    micro = step.micro_batch(1)
    stages = {node.name: node.stage for node in graph_of(step).nodes}
    passes = [stages[name].work for name in ("bottom_forward", "forward", "backward.0", "bottom_backward.0")]
    assert sum(map(flops, passes)) == pytest.approx(flops(micro.forward) + flops(micro.backward))
    reduced = stages["reduce.0"].work.bytes + stages["bottom_reduce.0"].work.bytes  # type: ignore[attr-defined]
    assert reduced == micro.gradient_bytes


def test_activations_are_held_once_from_the_bottom_on_and_row_gradients_from_the_way_back_on() -> None:
    step = step_of_a_dlrm()
    held = holdings(step, HugeCtr().plan(step), 1)
    assert [one.taken_by.name for one in held if one.item == "activations"] == ["bottom_forward"]
    assert [one.taken_by.name for one in held if one.item == "row gradients"] == ["backward.0", "send"]


@pytest.mark.parametrize("captured", [False, True])
def test_hugectr_keeps_its_contract_with_a_bottom(captured: bool) -> None:
    check_policy(HugeCtr(captured), step_of_a_dlrm())
