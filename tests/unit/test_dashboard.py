"""The dashboard without its page: what a choice means, what is shown for it, and files that repeat it."""

import shutil
import socket
from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest

from analysis.compare import Request, compare
from analysis.dashboard import Choice, exported, show
from analysis.dashboard.choices import (
    OWN,
    base,
    models,
    on_hardware,
    own_skew,
    precisions,
    takes_micro_batches,
)
from analysis.dashboard.network import rebuilt, way_out, with_bandwidth, written_out
from analysis.dashboard.screen import Screen, long_enough, size_of
from analysis.dashboard.serving import check, is_loopback, settings, warning
from analysis.dashboard.sweeps import load_sweep, table_of
from analysis.sweep import Dataset, read_grid
from analysis.sweep.points import Task, run_task
from simulator.errors import InfeasibleError, InputError, RecscaleError
from simulator.hardware import catalog
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder

QUICK = Choice("quickstart")
NPU = Choice("nestpipe/npu")
MOVED = (
    replace(QUICK, workers=16, batch=4096, skew=0.8, bandwidth=5e9),
    replace(QUICK, hardware="dgx_h100", policy="nestpipe", micro_batches=4, workers=24),
    replace(QUICK, hardware="dgx_1", precision="fp16"),
    replace(NPU, workers=128, policy="dual_buffer", bandwidth=50e9),
    replace(NPU, micro_batches=16),
    Choice("google/ads", bandwidth=20e9, workers=64),
    Choice("fabrics/fat_tree", bandwidth=12e9),
    Choice("bagpipe/criteo_kaggle", batch=4096),
)


def step_ms(screen: Screen) -> float:
    return screen.report.step_ms["mean"]


def file_of(screen: Screen, folder: Path) -> Path:
    path = folder / "exported.yaml"
    path.write_text(exported(screen), encoding="utf-8")
    return path


@pytest.mark.parametrize("choice", MOVED, ids=str)
def test_the_exported_file_gives_the_step_of_the_screen(choice: Choice, tmp_path: Path) -> None:
    screen = show(choice)
    again = run_scenario(load(file_of(screen, tmp_path)), "vector")
    assert again.report.step_ms == screen.report.step_ms
    assert again.scenario.hash == screen.run.scenario.hash


def test_the_head_of_an_exported_file_names_the_step_and_how_to_run_it() -> None:
    screen = show(QUICK)
    head = exported(screen).partition("\n\n")[0]
    assert f"{step_ms(screen):.6f} ms" in head
    assert "--engine vector" in head
    assert screen.run.scenario.hash in head


def test_an_exported_file_that_reads_others_says_where_it_belongs(tmp_path: Path) -> None:
    screen = show(Choice("recorded_keys", batch=256))
    text = exported(screen)
    assert "It reads files" in text
    place = Path(shutil.copytree(shipped_folder(), tmp_path / "study"))
    assert run_scenario(load(file_of(screen, place)), "vector").report.step_ms == screen.report.step_ms


@pytest.mark.parametrize("model", models())
def test_a_scenario_that_nothing_was_moved_in_is_the_shipped_one(model: str) -> None:
    assert Choice(model).scenario.hash == base(model).hash


@pytest.mark.parametrize("model", models())
def test_controls_at_their_own_values_change_nothing(model: str) -> None:
    own = base(model)
    way = way_out(own)
    choice = Choice(
        model,
        workers=own.cluster.ranks,
        batch=own.spec.workload.batch,
        skew=own_skew(model),
        bandwidth=way.bandwidth if way else None,
    )
    assert choice.scenario.hash == own.hash


def test_every_control_changes_the_step() -> None:
    start = replace(QUICK, workers=16)
    moves = (
        {"workers": 32},
        {"batch": 2048},
        {"skew": 0.5},
        {"bandwidth": 5e9},
        {"precision": "fp16"},
        {"hardware": "dgx_h100"},
        {"policy": "dual_buffer"},
    )
    for move in moves:
        changed = replace(start, **move)  # type: ignore[arg-type]
        assert step_ms(show(changed)) != step_ms(show(start)), move


@pytest.mark.parametrize("name", catalog.names("machine"))
def test_a_fabric_written_out_is_that_of_the_catalog(name: str) -> None:
    scenario = on_hardware(replace(QUICK, hardware=name))
    fabric = written_out(scenario)
    assert fabric is not None
    changed = rebuilt(scenario, cluster={**scenario.document.data["cluster"], "fabric": fabric})
    assert changed.cluster.fabric == scenario.cluster.fabric


def test_a_moved_bandwidth_is_the_one_that_is_then_there() -> None:
    for model in models():
        way = way_out(base(model))
        if way is not None:
            moved = way_out(with_bandwidth(base(model), way.bandwidth / 2))
            assert moved is not None
            assert moved.bandwidth == pytest.approx(way.bandwidth / 2)


def test_a_fabric_of_groups_has_no_bandwidth_to_move() -> None:
    assert any(way_out(base(model)) is None for model in models())
    with pytest.raises(InputError, match="no single bandwidth"):
        with_bandwidth(base("fabrics/mixed"), 1e9)


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (Choice("quickstrat"), 'did you mean "quickstart"'),
        (replace(QUICK, workers=13), "13"),
        (replace(QUICK, policy="nestpip"), "nestpip"),
        (replace(QUICK, hardware="dgx_a1000"), "dgx_a100"),
        (replace(QUICK, hardware="dgx_1"), "tf32"),
        (replace(QUICK, policy="sparse_core"), ""),
        (replace(QUICK, bandwidth=-1.0), ""),
        (replace(QUICK, batch=10**9), "memory"),
    ],
    ids=str,
)
def test_a_choice_that_cannot_be_is_refused_in_one_line(choice: Choice, told: str) -> None:
    with pytest.raises(RecscaleError) as caught:
        show(choice)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_rows_are_those_of_compare() -> None:
    screen = show(replace(NPU, workers=128))
    rows = compare([screen.run.scenario], Request(("serialized", "nestpipe"), engine="vector"))
    assert [row.step_ms for row in screen.rows] == [row.step_ms for row in rows]
    assert screen.speedup == pytest.approx(rows[1].speedup)


def test_the_curve_holds_what_runs_of_these_sizes_say() -> None:
    screen = show(replace(NPU, workers=128))
    assert sorted(size.workers for size in screen.sizes if size.policy == "nestpipe") == [32, 64, 128, 256]
    for size in screen.sizes:
        policy = OWN if size.policy == "nestpipe" else size.policy
        report = show(replace(NPU, workers=size.workers, policy=policy)).report
        assert size.step_ms == pytest.approx(report.step_ms["mean"])
        assert size.throughput == pytest.approx(report.throughput_samples_per_s)


def test_cost_on_the_curve_is_that_of_the_report() -> None:
    size = size_of(replace(QUICK, workers=16))
    cost = show(replace(QUICK, workers=16)).report.cost
    assert size is not None
    assert cost is not None
    assert size.usd_per_million == pytest.approx(cost["usd_per_million_samples"])


def test_sizes_that_cannot_run_are_left_out_of_the_curve() -> None:
    assert size_of(replace(QUICK, workers=13)) is None
    assert {size.policy for size in show(replace(QUICK, policy="nestpipe")).sizes} == {
        "nestpipe",
        "serialized",
    }


def test_a_policy_that_looks_far_ahead_gets_the_batches_it_needs_and_the_page_says_so() -> None:
    short = rebuilt(base("bagpipe/criteo_kaggle"), run={"batches": 30, "warm_up": 10})
    with pytest.raises(InputError, match="warm_up must be at least"):
        run_scenario(short, "vector")
    longer, (told,) = long_enough(short)
    assert run_scenario(longer, "vector").report.step_ms["mean"] > 0
    assert f"run.batches is {longer.spec.run.batches}" in told
    assert long_enough(longer) == (longer, ())


def test_notes_say_that_bandwidth_between_hosts_changes_nothing_on_one_host() -> None:
    assert any("changes nothing" in note for note in show(QUICK).notes)
    assert not any("changes nothing" in note for note in show(replace(QUICK, workers=16)).notes)


def test_numbers_that_were_fitted_do_not_move_to_other_hardware() -> None:
    moved = on_hardware(replace(NPU, hardware="dgx_h100"))
    assert moved.spec.cluster.unexplained_host_time is None
    assert moved.spec.cluster.fitted_at is None


def test_only_policies_of_micro_batches_have_that_control() -> None:
    assert takes_micro_batches(NPU)
    assert not takes_micro_batches(QUICK)
    assert takes_micro_batches(replace(QUICK, policy="frozen_window"))


def test_precisions_are_those_of_the_accelerator() -> None:
    assert "tf32" in precisions(QUICK)
    assert "tf32" not in precisions(replace(QUICK, hardware="dgx_1"))


@pytest.mark.parametrize("model", ["quickstart", "planning/model", "nestpipe/npu", "nestpipe/gpu"])
def test_a_moved_control_is_answered_in_less_than_a_second(model: str) -> None:
    show(Choice(model)).sizes  # noqa: B018  what is read and imported once
    begun = process_time()
    screen = show(Choice(model, batch=base(model).spec.workload.batch - 8))
    assert screen.rows[-1].step_ms == step_ms(screen)
    assert screen.schedule.bars
    assert screen.sizes
    assert process_time() - begun < 1.0


def sweep_in(checkout: Path, folder: Path) -> Path:
    shutil.copy(checkout / "scenarios/quickstart.yaml", folder)
    grid = "scenario: quickstart.yaml\nvary:\n  - {path: workers, values: [8, 16, 12]}\n"
    (folder / "sizes.grid.yaml").write_text(grid)
    read = read_grid(folder / "sizes.grid.yaml")
    Dataset(folder / "out").add(run_task(Task(read.base, "vector", read.points)))
    return folder / "out"


def test_a_sweep_is_loaded_with_its_failures(checkout: Path, tmp_path: Path) -> None:
    sweep = load_sweep(f"  {sweep_in(checkout, tmp_path)} ")
    assert sweep.summary == "3 points, 1 could not run"
    assert len(sweep.reasons) == 1
    rows = table_of(sweep.scenarios["quickstart"])
    assert [row["workers"] for row in rows] == [8, 16]


@pytest.mark.parametrize("typed", ["", "/nowhere/at/all", "\0", "x" * 5000, "~nobody_of_this_name/x", "a\nb"])
def test_what_is_no_folder_of_a_sweep_is_refused_in_one_line(
    typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        load_sweep(typed)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 6000


def test_a_folder_of_runs_without_points_is_no_sweep(tmp_path: Path) -> None:
    from analysis.saving import run_record
    from simulator.results.export import write_json

    write_json(tmp_path / "run.json", run_record(show(QUICK).run))
    with pytest.raises(InputError, match="holds no sweep"):
        load_sweep(str(tmp_path))


def test_the_server_listens_on_loopback_and_tells_nobody() -> None:
    told = settings("127.0.0.1", 8501)
    assert told["server.address"] == "127.0.0.1"
    assert told["browser.gatherUsageStats"] is False
    assert told["server.fileWatcherType"] == "none"
    assert warning("127.0.0.1") is None


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example"])
def test_a_host_that_others_reach_is_warned_about(host: str) -> None:
    assert not is_loopback(host)
    assert host in str(warning(host))


def test_a_port_that_is_taken_is_refused_in_one_line() -> None:
    pytest.importorskip("streamlit")
    pytest.importorskip("plotly")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="address already in use"):
            check("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(InputError, match=r"--host nowhere\.invalid"):
        check("nowhere.invalid", 8501)


def test_without_its_libraries_the_dashboard_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.dashboard.serving.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"recscale\[dashboard\]"):
        check("127.0.0.1", 8501)


def test_a_scenario_too_large_is_infeasible_and_not_wrong() -> None:
    with pytest.raises(InfeasibleError):
        show(replace(QUICK, batch=10**9))


def test_a_rebuilt_scenario_leaves_the_one_it_came_from_alone() -> None:
    before = base("quickstart").hash
    changed = rebuilt(base("quickstart"), run={"batches": 70, "warm_up": 30})
    assert isinstance(changed, Scenario)
    assert base("quickstart").hash == before != changed.hash
