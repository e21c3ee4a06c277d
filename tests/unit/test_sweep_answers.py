"""What a sweep says: what was set beside what ran, which engine made it, and what is no answer."""

import csv
import io
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from analysis.cli.commands.sweep import _say_what_is_no_answer
from analysis.cli.progress import Progress
from analysis.cli.running import run
from analysis.jobs import job_of
from analysis.report.found import find_results
from analysis.report.relate import by_scenario, related
from analysis.sweep import Dataset, read_grid
from analysis.sweep.checking import check_values
from analysis.sweep.points import Record, Task, run_task
from simulator.errors import InfeasibleError, InputError
from simulator.scenario import load
from simulator.scenario.shipped_files import shipped_folder

SCENARIO = """
cluster: {accelerator: a100_80, per_host: 8, hosts: 1, fabric: dgx_a100}
workload:
  model: {kind: mlp, inputs: 512, layers: [1024, 256, 1], precision: tf32}
  tables: [{name: items, rows: 1e6, dimension: 64, pooling: 8}]
  keys: {kind: zipf, exponent: 1.0}
  batch: 2048
sharding: {kind: row_wise, tier: dram}
policy: {kind: serialized}
run: {batches: 30, warm_up: 8}
"""
SERIAL_LARGE = {"policy": {"kind": "serialized"}, "workload.batch": 8192}
ENGINES = ("vector", "events")
TWO_NESTED = (
    "[{path: policy, values: [{kind: nestpipe, micro_batches: 2}, {kind: nestpipe, micro_batches: 8}]}]"
)


def grid_file(folder: Path, vary: str) -> Path:
    (folder / "base.yaml").write_text(SCENARIO, encoding="utf-8")
    path = folder / "some.grid.yaml"
    path.write_text(f"scenario: base.yaml\nvary: {vary}\n", encoding="utf-8")
    return path


def swept(folder: Path, vary: str, *words: str) -> int:
    path = grid_file(folder, vary)
    return run(["sweep", str(path), "--out", str(folder / "out"), "--jobs", "1", *words])


def test_a_policy_that_was_swept_stands_beside_the_kind_that_ran(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert swept(tmp_path, TWO_NESTED, "--format", "json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [json.loads(row["settings.policy"])["micro_batches"] for row in rows] == [2, 8]
    assert {row["policy"] for row in rows} == {"nestpipe"}
    assert swept(tmp_path, TWO_NESTED, "--resume", "--format", "csv") == 0
    read = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert read[0]["settings.policy"] != read[1]["settings.policy"]
    frame = Dataset(tmp_path / "out").frame()
    assert frame["settings.policy"].nunique() == 2 and set(frame["policy"]) == {"nestpipe"}
    assert swept(tmp_path, TWO_NESTED, "--resume") == 0
    table = " ".join(capsys.readouterr().out.split())
    assert "nestpipe, micro_batches 2" in table and "nestpipe, micro_batches 8" in table
    assert "nothing is shared between stages, ranks or collectives: an estimate where they meet" in table


def test_a_record_says_which_engine_made_it_and_what_that_leaves_out(tmp_path: Path) -> None:
    grid = read_grid(grid_file(tmp_path, "[{path: workload.batch, values: [512]}]"))
    made = {engine: run_task(Task(grid.base, engine, grid.on(engine).points))[0] for engine in ENGINES}
    assert {engine: record["engine"] for engine, record in made.items()} == {one: one for one in ENGINES}
    assert "nothing is shared" in made["vector"]["fidelity"]
    assert "nothing is shared" not in made["events"]["fidelity"]


def test_results_of_two_engines_stand_apart_and_only_like_jobs_are_held_against_each_other(
    tmp_path: Path,
) -> None:
    policies = "{path: policy, values: [{kind: serialized}, {kind: dual_buffer}]}"
    vary = f"[{policies}, {{path: workload.batch, values: [512, 8192]}}]"
    grid = read_grid(grid_file(tmp_path, vary))
    for engine in ENGINES:
        points = grid.on(engine).points
        kept = points if engine == "vector" else [one for one in points if dict(one.settings) != SERIAL_LARGE]
        Dataset(tmp_path / "out").add(run_task(Task(grid.base, engine, tuple(kept))))
    rows = find_results(tmp_path / "out").rows
    shown = by_scenario(related(rows))
    assert list(shown) == ["base (engine events)", "base (engine vector)"]
    serial, faster = shown["base (engine vector)"]
    assert "batch 8192" in serial.row.at and "batch 8192" in faster.row.at
    assert faster.speedup == pytest.approx(serial.row.step_ms / faster.row.step_ms)
    small, large = shown["base (engine events)"]
    assert "batch 512" in small.row.at and "batch 8192" in large.row.at
    assert large.speedup is None, "serialized ran with another batch only"


def test_a_job_is_all_but_name_policy_workers_and_how_long_is_looked(tmp_path: Path) -> None:
    grid_file(tmp_path, "[]")
    base = load(tmp_path / "base.yaml")
    job = job_of(base.resolved())
    alike = base.with_policy({"kind": "dual_buffer"}).with_workers(16)
    assert job_of(alike.with_overrides(["run.batches=50", "run.warm_up=9", "name=x"]).resolved()) == job
    for other in (
        "workload.batch=64",
        "sharding.tier=hbm",
        "cluster.fabric=dgx_h100",
        "run.contention=false",
    ):
        assert job_of(base.with_overrides([other]).resolved()) != job


WRONG = {
    "[{path: workload.bach, values: [1024, 2048]}]": (
        'grid.yaml:2: vary[0].values[0]: workload.bach: unknown key "bach" (did you mean "batch"?)'
    ),
    "[{path: workload.batch, values: [8]}, {path: policy.kind, values: [serialized, nestpip]}]": (
        "vary[1].values[1]: policy.kind: "
    ),
    "[{path: cluster.accelerator, values: [a100_80, H100]}]": (
        'vary[0].values[1]: cluster.accelerator: the catalog has no accelerator "H100" (did you mean "h100"?)'
    ),
    "[{path: run.seed, values: [1]}, {path: workload.input, range: {from: 1, to: 2, points: 3}}]": (
        "vary[1].range: workload.input: "
    ),
    "[{together: [{path: workload.batch, values: [8, 0]}, {path: run.seed, values: [1, 2]}]}]": (
        "vary[0].together[0].values[1]: workload.batch: "
    ),
}


@pytest.mark.parametrize("vary", WRONG, ids=lambda vary: WRONG[vary])
def test_a_value_that_no_point_can_take_is_wrong_input_before_anything_runs(
    tmp_path: Path, vary: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert swept(tmp_path, vary) == 2
    told = capsys.readouterr()
    assert WRONG[vary] in told.err and told.err.count("\n") == 1 and told.out == ""
    assert not (tmp_path / "out").exists()


def test_a_value_that_some_other_axis_allows_is_left_to_the_points(tmp_path: Path) -> None:
    vary = "[{path: policy.kind, values: [serialized, dual_buffer]}, {path: policy.buffers, values: [1, 2]}]"
    check_values(read_grid(grid_file(tmp_path, vary)))
    with pytest.raises(InputError, match=r"policy\.buffers"):
        check_values(read_grid(grid_file(tmp_path, vary.replace("[1, 2]", "[1, many]"))))


def test_a_scenario_that_is_wrong_itself_is_named_itself(tmp_path: Path) -> None:
    path = grid_file(tmp_path, "[{path: workload.batch, values: [8]}]")
    (tmp_path / "base.yaml").write_text(SCENARIO.replace("warm_up", "worm_up"), encoding="utf-8")
    with pytest.raises(InputError, match=r"base\.yaml:.*worm_up"):
        check_values(read_grid(path))


def test_sizes_that_fill_no_host_are_wrong_input_when_no_point_ran(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert swept(tmp_path, "[{path: workers, values: [9, 10]}]", "--format", "json") == 2
    told = capsys.readouterr()
    assert "no point could run; the first: sweep: 9 workers do not fill hosts of 8" in told.err
    assert [row["settings.workers"] for row in json.loads(told.out)] == [9, 10]


def record(status: str) -> Record:
    return {"status": status, "error": f"so {status}"}


def test_a_failure_of_ours_is_no_answer() -> None:
    with pytest.raises(RuntimeError, match="so failed"):
        _say_what_is_no_answer([record("infeasible"), record("failed")])
    with pytest.raises(InfeasibleError):
        _say_what_is_no_answer([record("infeasible"), record("wrong")])
    with pytest.raises(InputError):
        _say_what_is_no_answer([record("wrong")])


def test_points_that_are_no_answer_are_counted_beside_those_that_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _say_what_is_no_answer([record("done"), record("failed"), record("wrong"), record("wrong")])
    assert capsys.readouterr().err.splitlines() == [
        "recscale: 2 of 4 points are wrong; the first: so wrong",
        "recscale: 1 of 4 points are failed; the first: so failed",
    ]


def test_what_was_kept_before_does_not_make_the_time_left_look_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Progress] = []
    grid = read_grid(grid_file(tmp_path, "[{path: run.seed, values: [1, 2, 3, 4]}]"))
    Dataset(tmp_path / "out").add(run_task(Task(grid.base, "vector", grid.points[:3])))

    @contextmanager
    def watched(name: str, total: int, unit: str) -> Iterator[Progress]:
        made.append(Progress(name, total, unit=unit))
        yield made[0]

    monkeypatch.setattr("analysis.cli.commands.sweep.progress", watched)
    assert swept(tmp_path, "[{path: run.seed, values: [1, 2, 3, 4]}]", "--resume") == 0
    assert [(work.done, work.total, work.settled) for work in made] == [(1, 1, 1)]


def test_a_point_and_a_scenario_are_known_by_what_the_files_they_name_hold(tmp_path: Path) -> None:
    shutil.copytree(shipped_folder() / "data", tmp_path / "data")
    shutil.copy(shipped_folder() / "recorded_keys.yaml", tmp_path)
    path = tmp_path / "keys.grid.yaml"
    path.write_text("scenario: recorded_keys.yaml\nvary: [{path: run.seed, values: [1]}]\n", encoding="utf-8")
    (before,), hashed = read_grid(path).points, load(tmp_path / "recorded_keys.yaml").hash
    (again,) = read_grid(path).points
    assert again.key == before.key and load(tmp_path / "recorded_keys.yaml").hash == hashed
    named = tmp_path / "data" / "open_bandit_bts_women.csv.gz"
    with named.open("ab") as stream:
        stream.write(b"\n")
    (after,) = read_grid(path).points
    assert after.key != before.key
    assert load(tmp_path / "recorded_keys.yaml").hash != hashed
