"""The vocabulary of a policy: what a stage, a buffer and a pipeline refuse, and what they compile to."""

import pytest

from simulator.errors import InfeasibleError, InputError
from simulator.pipeline import Buffer, Carry, MarkedGraph, Pipeline, Stage, compile_pipeline, critical_cycle
from simulator.pipeline.compiled import Edge


def stage(name: str, *after: Stage, **settings: int) -> Stage:
    return Stage(name, "compute", after=after, **settings)


def edges(graph: MarkedGraph) -> set[tuple[str, str, int, str]]:
    """(waited for, waiting, lag, reason) by name."""
    return {
        (graph.nodes[edge.source].name, graph.nodes[edge.target].name, edge.lag, edge.reason)
        for edge in graph.edges
    }


def test_an_unknown_kind_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(
        InputError, match=r'stage "x": unknown kind "all_to_al" \(did you mean "all_to_all"\?\)'
    ):
        Stage("x", "all_to_al")


@pytest.mark.parametrize(
    "wrong", [{"ahead": -1}, {"every": 0}, {"every": 2, "phase": 2}, {"phase": 1}, {"every": 2, "phase": -1}]
)
def test_impossible_periods_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="needs ahead >= 0, every >= 1 and 0 <= phase < every"):
        stage("x", **wrong)


def test_a_pipeline_without_computation_is_refused() -> None:
    with pytest.raises(InputError, match='no stage on its compute stream "compute"'):
        Pipeline({"network": [stage("x")]})
    with pytest.raises(InputError, match='no stage on its compute stream "tensor"'):
        Pipeline({"compute": [stage("x")], "tensor": []}, compute="tensor")


def test_one_name_for_two_stages_and_one_stage_on_two_streams_are_refused() -> None:
    one = stage("x")
    with pytest.raises(InputError, match='stage "x" stands twice'):
        Pipeline({"compute": [one, stage("x")]})
    with pytest.raises(InputError, match='stage "x" stands twice'):
        Pipeline({"compute": [one], "network": [one]})


def test_whoever_is_waited_for_must_stand_on_a_stream() -> None:
    absent, one = stage("absent"), stage("one")
    for pipeline in (
        lambda: Pipeline({"compute": [stage("two", absent)]}),
        lambda: Pipeline({"compute": [one]}, [Carry(absent, to=one)]),
        lambda: Pipeline({"compute": [one]}, [Carry(one, to=absent)]),
        lambda: Pipeline({"compute": [one]}, [], [Buffer("b", 1, absent, [one])]),
        lambda: Pipeline({"compute": [one]}, [], [Buffer("b", 1, one, [(absent, 1)])]),
        lambda: Pipeline({"compute": [one]}, updates=[absent]),
    ):
        with pytest.raises(InputError, match='stage "absent" is waited for but stands on no stream'):
            pipeline()


def test_the_last_compute_stage_ends_the_step_unless_others_are_named() -> None:
    first, last = stage("first"), stage("last")
    assert Pipeline({"compute": [first, last]}).updates == (last,)
    assert Pipeline({"compute": [first, last]}, updates=[first]).updates == [first]


def test_a_stage_finds_its_stream() -> None:
    first, last = stage("first"), stage("last")
    pipeline = Pipeline({"compute": [first], "network": [last]})
    assert pipeline.stream_of(last) == "network"


def test_a_buffer_makes_its_taker_wait_for_those_who_free_it() -> None:
    """With two slots batch k waits for k - 2; what is freed by the next batch's stage, for k - 1."""
    take = stage("take")
    use = stage("use", take)
    buffer = Buffer("rows", 2, take, [use, (use, 1)])
    graph = compile_pipeline(Pipeline({"in": [take], "compute": [use]}, [], [buffer]))
    assert {edge for edge in edges(graph) if edge[3] == 'buffer "rows"'} == {
        ("use", "take", 2, 'buffer "rows"'),
        ("use", "take", 1, 'buffer "rows"'),
    }


def test_who_is_issued_early_waits_for_the_update_before_the_batches_in_between() -> None:
    early = stage("early", ahead=3)
    train = stage("train", early)
    graph = compile_pipeline(Pipeline({"in": [early], "compute": [train]}))
    assert ("train", "early", 4, "pace") in edges(graph)
    assert not any(target == "train" and reason == "pace" for _, target, _, reason in edges(graph))


def test_a_lone_stage_waits_for_itself() -> None:
    graph = compile_pipeline(Pipeline({"compute": [stage("x")]}))
    assert edges(graph) == {("x", "x", 1, 'stream "compute"')}


def test_equally_early_stages_of_a_stream_are_chained_once() -> None:
    a, b, c = stage("a"), stage("b"), stage("c")
    graph = compile_pipeline(Pipeline({"compute": [a, b, c]}))
    assert {edge[:3] for edge in edges(graph)} == {("a", "b", 0), ("b", "c", 0), ("c", "a", 1)}


def test_nodes_of_a_periodic_stage_know_their_batches() -> None:
    train, sync = stage("train"), stage("sync", every=3, phase=1)
    graph = compile_pipeline(Pipeline({"compute": [train, sync]}, updates=[train]))
    assert graph.period == 3
    (at,) = (index for index, node in enumerate(graph.nodes) if node.stage is sync)
    assert [graph.batch_of(at, cycle) for cycle in range(3)] == [1, 4, 7]
    assert len(graph.updates) == 3


def test_the_order_of_evaluation_respects_every_edge() -> None:
    early, slow = stage("early", ahead=2), stage("slow", every=2)
    train = stage("train", early, slow)
    graph = compile_pipeline(
        Pipeline({"compute": [train], "host": [early], "sync": [slow]}, [Carry(train, to=slow, lag=3)])
    )
    order = {instance: place for place, instance in enumerate(graph.schedule(6))}
    assert len(order) == 6 * len(graph.nodes)
    for (node, cycle), place in order.items():
        for edge in graph.incoming[node]:
            assert order.get((edge.source, cycle - edge.lag), -1) < place
    for index, edge in enumerate(graph.edges):
        assert edge in graph.incoming[edge.target], index
        assert edge in graph.outgoing[edge.source], index


def test_a_pipeline_that_repeats_too_rarely_is_refused() -> None:
    stages = [stage("a", every=16), stage("b", every=17)]
    with pytest.raises(InputError, match="repeat together only every 272 batches; at most 256"):
        compile_pipeline(Pipeline({"compute": stages}))


def test_a_stage_that_waits_for_its_own_later_self_is_a_deadlock() -> None:
    one = stage("x")
    for lag in (0, -1):
        with pytest.raises(InfeasibleError, match="deadlock: x waits for x"):
            compile_pipeline(Pipeline({"compute": [one]}, [Carry(one, to=one, lag=lag)]))


def test_a_graph_without_a_cycle_has_no_period() -> None:
    with pytest.raises(ValueError, match="no cycle"):
        critical_cycle(2, [Edge(0, 1, 0, "needs")], [3, 4])


def test_a_pipeline_in_which_nothing_takes_time_has_period_zero() -> None:
    graph = compile_pipeline(Pipeline({"compute": [stage("a"), stage("b")]}))
    assert critical_cycle(2, graph.edges, [0, 0]).ratio == 0
