"""Policies on two real ranks: synchronous ones learn what serialized training learns, stale ones nearly."""

from collections.abc import Mapping
from typing import Any

import pytest

from simulator.calibration.local.job import Job
from simulator.calibration.local.launch import Launcher
from simulator.calibration.measure.links import Loopback
from simulator.calibration.train.settings import Model, Settings
from simulator.errors import InfeasibleError, InputError

pytestmark = pytest.mark.slow

TOLERANCE = 1e-4  # of the largest way that a weight went: another order of adding up in single precision
MODEL = Model(tables=4, rows=700, dimension=8, hidden=(16,))


def trained(
    *policies: tuple[str, Mapping[str, Any]], optimizer: str = "adagrad"
) -> dict[str, dict[str, Any]]:
    runs = tuple(Settings(name, parameters, MODEL, 64, 24, optimizer, 0.1) for name, parameters in policies)
    result = Launcher("tcp", Loopback()).run(Job(2, "tcp", "", runs=runs))
    return {Settings.of(run["settings"]).title: run for run in result["runs"]}


def apart(run: Mapping[str, Any]) -> float:
    """How far a weight ended from where serialized training brought it, over the largest way."""
    found = run["against_first"]
    return float(max(found["rows"], found["parameters"]) / found["moved"])


@pytest.fixture(scope="module", params=["sgd", "adagrad"])
def runs(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    parts = {"micro_batches": 4}
    names = [
        ("serialized", {}), ("stale_prefetch", {}), ("dual_buffer", {}), ("frozen_window", parts),
        ("nestpipe", parts), ("stale_prefetch", {"write_back": "overwrite"}),
    ]  # fmt: skip
    return trained(*names, optimizer=request.param)


def test_the_loss_falls(runs: dict[str, dict[str, Any]]) -> None:
    loss = runs["serialized"]["loss"]
    assert sum(loss[-6:]) < sum(loss[:6])


def test_dual_buffer_learns_the_very_same_bits(runs: dict[str, dict[str, Any]]) -> None:
    assert apart(runs["dual_buffer"]) == 0.0
    assert runs["dual_buffer"]["loss"] == runs["serialized"]["loss"]


@pytest.mark.parametrize("policy", ["frozen_window-4", "nestpipe-4"])
def test_micro_batches_change_the_order_of_adding_up_and_nothing_else(
    runs: dict[str, dict[str, Any]], policy: str
) -> None:
    assert 0.0 < apart(runs[policy]) <= TOLERANCE


def test_stale_prefetch_learns_something_else_but_not_far_off(runs: dict[str, dict[str, Any]]) -> None:
    assert TOLERANCE < apart(runs["stale_prefetch"]) < 0.02
    losses = zip(runs["stale_prefetch"]["loss"], runs["serialized"]["loss"], strict=True)
    assert max(abs(stale - fresh) for stale, fresh in losses) < 0.02


def test_rows_that_overwrite_the_update_before_take_training_further_off_than_late_ones(
    runs: dict[str, dict[str, Any]],
) -> None:
    assert apart(runs["stale_prefetch-overwrite"]) > 3 * apart(runs["stale_prefetch"])


def test_even_a_stale_run_is_the_same_every_time() -> None:
    runs = Launcher("tcp", Loopback()).run(
        Job(2, "tcp", "", runs=(Settings("stale_prefetch", {}, MODEL, 64, 24, rate=0.5),) * 3)
    )["runs"]
    assert [apart(run) for run in runs] == [0.0, 0.0, 0.0]
    assert runs[0]["loss"] == runs[1]["loss"] == runs[2]["loss"]


def test_parameter_servers_and_bagpipe_learn_the_same() -> None:
    pytest.importorskip("grpc")
    runs = trained(
        ("serialized", {}), ("rpc_per_table", {}), ("rpc_per_table", {"asynchronous": True}),
        ("rpc_coalesced", {}), ("bagpipe", {"lookahead": 4}), ("bagpipe", {"lookahead": 16}),
        ("bagpipe", {"lookahead": 8, "refresh": 0.5}),
    )  # fmt: skip
    assert len(runs) == 7
    assert {title: apart(run) for title, run in runs.items() if apart(run) > TOLERANCE} == {}


def test_a_rank_that_fails_says_why_and_none_is_left_running() -> None:
    runs = (Settings("serialized", {}, MODEL, 64, 24, keys="/nowhere.csv"),)
    with pytest.raises((InputError, InfeasibleError), match="nowhere"):
        Launcher("tcp", Loopback()).run(Job(2, "tcp", "", runs=runs))


def test_open_mpi_runs_the_same_policies() -> None:
    pytest.importorskip("mpi4py")
    runs = tuple(Settings(name, {}, MODEL, 64, 24) for name in ("serialized", "dual_buffer"))
    try:
        result = Launcher("openmpi", Loopback()).run(Job(2, "openmpi", "", runs=runs))
    except InfeasibleError as error:
        if "not installed" in str(error):
            pytest.skip(str(error))
        raise
    assert [apart(run) for run in result["runs"]] == [0.0, 0.0]
