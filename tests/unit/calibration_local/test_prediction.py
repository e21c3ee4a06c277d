"""From measured curves to predicted steps: interpolation, stages taken apart, sharing of core and link."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simulator.calibration.local.costs import Handling, Program, Wire, split
from simulator.calibration.local.curves import CurveSet
from simulator.calibration.local.predicting import LocalMachine, rests
from simulator.calibration.local.rpc_fit import fit_rpc, predicted
from simulator.calibration.local.unfolding import kind_of, unfolded
from simulator.calibration.measure.rpc import RpcGrid, RpcPoint
from simulator.calibration.train.plans import planned
from simulator.calibration.train.settings import Model, Settings
from simulator.calibration.train.step import LocalStep, Primitive
from simulator.errors import InputError
from simulator.hardware.servers import Rpc
from simulator.pipeline import compile_pipeline
from simulator.quantities import AllReduceWork, AllToAllWork, InTurn

MODEL = Model(tables=4, rows=5000, dimension=16, hidden=(32,))
LOCAL = ("copy", "distinct", "shared", "sgd", "adagrad", "hand_over")
OF_ROWS = ("gather", "scatter", "segment_sum")
PARTS = {"micro_batches": 4}


def curve(name: str, points: list[tuple[float, float]], **more: Any) -> dict[str, Any]:
    """A curve in plain data: (size, seconds) points; of the time, `core` (default: all) is the thread's."""
    core, context, shape = more.get("core", 1.0), more.get("context", 0.0), more.get("shape", ())
    return {
        "operation": name,
        "unit": "x",
        "context": context,
        "shape": list(shape),
        "points": [
            {
                "size": size, "seconds": seconds, "p90_over_p50": 1.0, "cpu_seconds": core * seconds,
                "repeats": 9, "back_to_back": None, "stolen_seconds": core * seconds,
            }
            for size, seconds in points
        ],
    }  # fmt: skip


def machine(
    network_s: float = 1e-3, core: float = 0.0, dense_s: float = 1e-3, ranks: int = 2
) -> LocalMachine:
    """Collectives take `network_s` whatever their size, dense passes `dense_s` for 64 samples."""
    curves = [curve(name, [(1.0, 1e-9), (1e9, 1e-9)]) for name in LOCAL]
    curves += [curve(name, [(1.0, 1e-9), (1e9, 1e-9)], shape=(16,)) for name in OF_ROWS]
    for name in ("mlp_forward", "mlp_backward"):
        curves.append(curve(name, [(1.0, dense_s / 64), (64.0, dense_s)], shape=MODEL.widths))
    for name in ("all_to_all", "all_reduce"):
        curves.append(curve(name, [(1.0, network_s), (1e9, network_s)], core=core))
    return LocalMachine(CurveSet.of(curves), ranks, 2)


def step_ms(where: LocalMachine, policy: str, **more: int) -> float:
    settings = Settings(policy, more, MODEL, 64, 40)
    return 1e3 * float(np.median(where.step_seconds(settings)))


def test_a_curve_goes_through_its_points_and_is_straight_in_log_log_axes_between_them() -> None:
    curves = CurveSet.of([curve("copy", [(10.0, 1e-6), (1000.0, 1e-4)])])
    assert curves.seconds("copy", 10, 0, ()) == pytest.approx(1e-6)
    assert curves.seconds("copy", 100, 0, ()) == pytest.approx(1e-5)
    assert curves.seconds("copy", 2000, 0, ()) == pytest.approx(2e-4)
    assert curves.seconds("copy", 1, 0, ()) == pytest.approx(1e-6)
    assert curves.seconds("copy", 0, 0, ()) == 0.0


def test_between_two_contexts_time_is_interpolated_and_outside_them_the_nearest_holds() -> None:
    curves = CurveSet.of([curve("gather", [(1.0, t)], context=c) for c, t in ((10.0, 1e-6), (1000.0, 4e-6))])
    assert curves.seconds("gather", 1, 100, ()) == pytest.approx(2e-6)
    assert curves.seconds("gather", 1, 1, ()) == pytest.approx(1e-6)
    assert curves.seconds("gather", 1, 1e6, ()) == pytest.approx(4e-6)


def test_what_was_not_measured_is_named() -> None:
    curves = CurveSet.of([curve("mlp_forward", [(1.0, 1e-6)], shape=(3, 2, 1))])
    with pytest.raises(InputError, match=r'no curve of "gathr"'):
        curves.seconds("gathr", 1, 0, ())
    with pytest.raises(InputError, match=r"not measured for the shape 4-1 \(measured: 3-2-1\)"):
        curves.seconds("mlp_forward", 1, 0, (4, 1))


def test_a_collective_is_half_its_threads_work_then_its_flow_then_the_other_half() -> None:
    parts = split(InTurn((Primitive("copy", 8.0), AllToAllWork(64.0), Primitive("copy", 9.0))))
    assert [type(part) for part in parts] == [Primitive, Handling, Wire, Handling, Primitive]
    costs = machine(network_s=2e-3, core=0.25).costs(Settings(model=MODEL))
    assert [costs.seconds(part) for part in parts[1:4]] == pytest.approx([2.5e-4, 1.5e-3, 2.5e-4], rel=1e-3)


def test_an_all_reduce_does_this_twice_and_takes_as_long_as_it_was_measured() -> None:
    parts = split(AllReduceWork(64.0))
    assert [type(part) for part in parts] == [Handling, Wire, Handling] * 2
    costs = machine(network_s=2e-3, core=0.25).costs(Settings(model=MODEL))
    assert sum(float(costs.seconds(part)) for part in parts) == pytest.approx(2e-3)


def test_a_full_token_bucket_shortens_a_collective_once_whatever_its_phases() -> None:
    where = machine(core=0.0)
    rested = curve("all_reduce", [(1.0, 2e-3), (1e9, 2e-3)], core=0.0)
    for point in rested["points"]:
        point["back_to_back"] = 3e-3
    others = [one for one in where.curves.curves if one.operation != "all_reduce"]
    costs = replace(where, curves=CurveSet((*others, *CurveSet.of([rested]).curves))).costs(
        Settings(model=MODEL)
    )
    flows = [part for part in split(AllReduceWork(64.0)) if isinstance(part, Wire)]
    for filled, seconds in ((1.0, 2e-3), (0.5, 2.5e-3), (0.0, 3e-3)):
        taken = replace(costs, rested={flows[0]: filled})
        assert sum(float(taken.seconds(flow)) for flow in flows) == pytest.approx(seconds)


def test_what_collectives_take_from_a_core_is_a_line_through_all_sizes_that_one_disturbed_does_not_bend() -> (
    None
):
    sizes = [1e3, 1e4, 1e5, 1e6, 4e6]
    points = curve("all_to_all", [(size, 2e-5 + 1e-8 * size) for size in sizes])
    for point in points["points"]:
        point["stolen_seconds"] = 1e-5 + 5e-9 * point["size"]
    points["points"][3]["stolen_seconds"] = 0.0  # a disturbed one
    (found,) = CurveSet.of([points]).curves
    for size in (5e4, 1e6, 4e6):
        assert found.core_seconds(size) == pytest.approx(1e-5 + 5e-9 * size, rel=0.15)


@pytest.mark.parametrize("settings", [
    Settings("serialized"), Settings("stale_prefetch"), Settings("dual_buffer"),
    Settings("frozen_window", PARTS), Settings("nestpipe", PARTS),
], ids=lambda one: one.title)  # fmt: skip
def test_taking_stages_apart_keeps_streams_updates_and_life(settings: Settings) -> None:
    whole = planned(replace(settings, model=MODEL), 2)
    apart = unfolded(whole)
    assert list(apart.streams) == list(whole.streams) and len(apart.updates) == len(whole.updates)
    for stream, stages in whole.streams.items():
        names = [stage.name.partition("/")[0] for stage in apart.streams[stream]]
        assert list(dict.fromkeys(names)) == [stage.name for stage in stages]
    assert compile_pipeline(apart).period == compile_pipeline(whole).period
    assert not any(stage.work.rendezvous and not isinstance(stage.work, Wire) for stage in apart.stages)


def test_a_serialized_step_is_the_sum_of_what_cannot_overlap() -> None:
    """Route 1, exchange 1, passes 2, then the gradients of rows and of the network, on one link: 2."""
    assert step_ms(machine(), "serialized") == pytest.approx(6.0, rel=1e-3)


@pytest.mark.parametrize("policy", ["stale_prefetch", "dual_buffer"])
def test_keys_sent_early_meet_the_exchange_on_the_link_and_gain_nothing(policy: str) -> None:
    """They start when the batch before is updated, as its exchange does: 2 ms for both instead of 1 and 1."""
    assert step_ms(machine(), policy) == pytest.approx(6.0, rel=1e-2)


def test_nothing_is_hidden_where_collectives_need_the_core_themselves() -> None:
    busy = machine(core=1.0)
    assert step_ms(busy, "stale_prefetch") == pytest.approx(step_ms(busy, "serialized"), rel=0.01)


def test_two_collectives_at_a_time_share_the_link() -> None:
    """A link twice as slow costs twice its part, whatever overlaps."""
    slow, fast = (step_ms(machine(network_s=s, dense_s=1e-6), "dual_buffer") for s in (2e-3, 1e-3))
    assert slow == pytest.approx(2 * fast, rel=0.01)


def test_micro_batches_hide_exchanges_behind_passes_and_pay_their_start_up() -> None:
    by_bytes = machine()
    slow = [curve(name, [(1.0, 1e-8), (1e9, 10.0)], core=0.0) for name in ("all_to_all", "all_reduce")]
    local = [one for one in by_bytes.curves.curves if one.operation not in ("all_to_all", "all_reduce")]
    by_bytes = replace(by_bytes, curves=CurveSet((*local, *CurveSet.of(slow).curves)))
    assert step_ms(by_bytes, "frozen_window", micro_batches=2) < step_ms(by_bytes, "serialized") - 0.05
    heavy = machine(network_s=4e-3)  # whatever its size: each part pays it again
    assert step_ms(heavy, "frozen_window", micro_batches=4) > 1.5 * step_ms(heavy, "serialized")


def test_the_program_of_a_stage_counts_once_for_each_stage() -> None:
    where = machine()
    few = Settings("serialized", {}, MODEL, 2, 24)
    names = [stage.name for stage in planned(few, 2).stages]
    used = {name: 1e-4 for name in names}
    costs = where.costs(few)
    known = {
        s.name: sum(float(costs.seconds(p)) for p in split(s.work) if not p.rendezvous)
        for s in planned(few, 2).stages
    }
    run = {"settings": few.to_dict(), "stage_cpu_s": {n: used[n] + known[n] for n in names}}
    programmed = replace(where, software=(run,))
    assert programmed.costs(few).seconds(Program("forward")) == pytest.approx(1e-4, rel=1e-3)
    more = step_ms(programmed, "serialized") - step_ms(where, "serialized")
    assert 0.8 < more < 1.3  # twelve stages, of which the two last collectives run beside each other


def test_kinds_are_names_without_numbers() -> None:
    assert kind_of("backward.3.0") == kind_of("backward.1") == "backward"


def test_a_token_bucket_is_full_after_a_rest_and_empty_right_after_a_flow() -> None:
    where = machine()
    settings = Settings("serialized", {}, MODEL, 64, 40)
    graph = compile_pipeline(unfolded(planned(settings, 2)))
    timeline = where._simulated(graph, where.costs(settings), 40)
    filled = {
        n.stage.name.partition("/")[0]: rests(timeline, where.costs(settings), 1e-3)[n.stage.work]
        for n in graph.nodes
        if isinstance(n.stage.work, Wire) and n.stage.work.phase == 0
    }
    assert filled["exchange"] == pytest.approx(0.0, abs=1e-3)  # right after the keys
    assert max(filled["send"], filled["reduce.0"]) == pytest.approx(1.0)  # after 2 ms of passes


def test_a_step_of_real_keys_counts_them_as_the_simulator_does() -> None:
    step = LocalStep.of(Settings(model=MODEL, batch=64), 2)
    (sort, sent) = step.route_keys.parts  # type: ignore[attr-defined]
    assert sort.size == 64 * 4
    assert sent.bytes == 8 * (step.traffic.distinct + 2)


def test_predictions_are_the_same_every_time() -> None:
    where, settings = machine(), Settings("nestpipe", PARTS, MODEL, 64, 40)
    np.testing.assert_array_equal(where.step_seconds(settings), where.step_seconds(settings))


def test_the_parameters_of_calls_come_back_from_calls_made_with_them() -> None:
    truth = Rpc(5e-4, 3e-4, 1.5e-4, 9e-10, 1e-5, 1e-10)
    shapes = [
        RpcPoint(mode, t, k, 2, 128, 2.0 * t * k * 136, 1.0, 1.0, 9)
        for t, k in RpcGrid().pairs
        for mode in ("in_turn", "at_once", "coalesced")
    ]
    points = [replace(one, seconds=predicted(one, truth)) for one in shapes]
    fitted = fit_rpc(points, RpcGrid().held_out)
    assert max(abs(case.error) for case in fitted.cases) < 0.02
    assert fitted.rpc.in_turn == pytest.approx(truth.in_turn, rel=0.02)


def test_too_few_calls_are_refused() -> None:
    with pytest.raises(InputError, match="too few"):
        fit_rpc([RpcPoint("in_turn", 1, 1, 2, 128, 1.0, 1.0, 1.0, 9)], ())


@pytest.mark.parametrize(("policy", "calls", "parameters"), [
    ("rpc_per_table", "in_turn", {}), ("rpc_per_table", "at_once", {"asynchronous": 1}),
    ("rpc_coalesced", "coalesced", {}),
])  # fmt: skip
def test_a_step_with_servers_is_its_fetch_its_passes_its_push_and_the_all_reduce(
    policy: str, calls: str, parameters: dict[str, int]
) -> None:
    where, shape = machine(), (MODEL.tables, MODEL.rows, MODEL.dimension)
    served = [
        curve(f"fetch_{calls}", [(1.0, 3e-3), (1e9, 3e-3)], shape=shape),
        curve(f"push_{calls}", [(1.0, 2e-3), (1e9, 2e-3)], shape=shape),
    ]
    where = replace(where, curves=CurveSet((*where.curves.curves, *CurveSet.of(served).curves)))
    settings = Settings(policy, parameters, MODEL, 64, 40)
    found = 1e3 * float(np.mean(where.step_seconds(settings)))
    # fetch 3, passes 2, push 2, all in 1; the all-reduce of 1 ms meets the push on no resource
    assert found == pytest.approx(8.0, rel=0.01)
    with pytest.raises(InputError, match="was not measured for the shape"):
        where.step_seconds(replace(settings, model=replace(MODEL, tables=5, hidden=MODEL.hidden)))


def test_steps_of_a_policy_with_a_cache_are_not_predicted_and_that_is_said() -> None:
    with pytest.raises(InputError, match='steps of "bagpipe" are executed here, not predicted'):
        machine().step_seconds(Settings("bagpipe", {}, MODEL, 64, 40))
