"""Recorded runs in `validate`: one case per experiment, doubts said, what cannot be predicted listed."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.validated import Validated
from analysis.validating import validate_folder
from simulator.errors import InputError

Data = dict[str, Any]
Change = Callable[[Data], None]


@pytest.fixture(scope="module")
def recording(checkout: Path) -> Data:
    """A real recording, cut down to one run of NestPipe and the serialized one of the same model."""
    path = checkout / "tests" / "data" / "local_runs" / "tcp_1gbit_2.json"
    data: Data = json.loads(path.read_text(encoding="utf-8"))
    first = data["runs"][0]["settings"]
    alike = [run for run in data["runs"] if run["settings"]["model"] == first["model"]]
    alike = [run for run in alike if run["settings"]["batch"] == first["batch"]]
    kinds = {run["settings"]["policy"]: run for run in alike}
    data["runs"], data["rpc"] = [kinds["serialized"], kinds["nestpipe"]], []
    return data


def written(folder: Path, data: Any, change: Change | None = None) -> list[Validated]:
    copied = json.loads(json.dumps(data))
    if change is not None:
        change(copied)
    (folder / "local_runs").mkdir(exist_ok=True)
    (folder / "local_runs" / "mine.json").write_text(json.dumps(copied), encoding="utf-8")
    return validate_folder(folder)


def test_runs_are_predicted_with_a_band_and_the_plain_sum(tmp_path: Path, recording: Data) -> None:
    serialized, nestpipe = written(tmp_path, recording)
    assert (serialized.group, nestpipe.group) == ("local runs, serialized", "local runs, overlapped")
    for case in (serialized, nestpipe):
        assert case.role == "predict" and case.source == "mine"
        assert abs(case.error or 1) < 0.5
        assert case.low and case.high and case.low < (case.predicted_ms or 0) < case.high
        assert 0 < (case.plain_sum_ms or 0) < 2 * case.measured_ms


def test_runs_that_differ_in_anything_are_different_cases(tmp_path: Path, recording: Data) -> None:
    def change(data: Data) -> None:
        run = data["runs"][1]
        for name, value in {"seed": 9, "rate": 0.5, "optimizer": "adagrad"}.items():
            data["runs"].append({**run, "settings": {**run["settings"], name: value}})
        fewer = {**run["settings"], "parameters": {"micro_batches": 2}}
        data["runs"].append({**run, "settings": fewer})

    found = written(tmp_path, recording, change)
    assert len({case.case_id for case in found}) == len({case.configuration for case in found}) == 6
    assert any("nestpipe-2, " in case.case_id for case in found)
    assert any("adagrad" in case.case_id for case in found) and any(
        "seed 9" in case.case_id for case in found
    )


def test_doubts_about_a_recording_stand_beside_each_case(tmp_path: Path, recording: Data) -> None:
    def change(data: Data) -> None:
        data["load"] |= {"quiet": False, "before": 0.4, "after": 0.5}
        data["launch"]["pinned"] = False

    for case in written(tmp_path, recording, change):
        assert "other work kept 40% and 50% of the cores busy" in case.note
        assert "not pinned" in case.note


def test_a_batch_beyond_the_measured_grid_is_extrapolated(tmp_path: Path, recording: Data) -> None:
    def change(data: Data) -> None:
        for run in data["runs"]:
            run["settings"]["batch"] = 20_000

    for case in written(tmp_path, recording, change):
        assert case.extrapolated
        assert any("is outside of its grid" in reason for reason in case.unlike)


def short(data: Data) -> None:
    data["runs"][0]["step_s"] = data["runs"][0]["step_s"][:7]


def unknown_policy(data: Data) -> None:
    data["runs"][0]["settings"]["policy"] = "frozen_windw"


def unmeasured(data: Data) -> None:
    data["runs"][0]["settings"]["model"] = {"tables": 3, "rows": 7, "dimension": 4, "hidden": [5]}


def unknown_setting(data: Data) -> None:
    data["runs"][0]["settings"]["speed"] = 1


def no_cores(data: Data) -> None:
    del data["environment"]["cores"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (short, "has 7 steps"),
        (unknown_policy, "frozen_windw"),
        (unmeasured, "was not measured"),
        (unknown_setting, 'no setting "speed"'),
        (no_cores, "cores"),
    ],
)
def test_a_run_that_cannot_be_predicted_is_listed(
    tmp_path: Path, recording: Data, change: Change, reason: str
) -> None:
    found = written(tmp_path, recording, change)
    assert len(found) == 2
    silent = [case for case in found if case.role == "none"]
    assert silent and all(case.note.startswith("not predicted: ") for case in silent)
    assert reason in silent[0].note
    assert len(silent) == (2 if change is no_cores else 1)


def test_few_fetches_are_listed_and_not_fitted(tmp_path: Path, checkout: Path, recording: Data) -> None:
    path = checkout / "tests" / "data" / "local_runs" / "grpc.json"
    calls = json.loads(path.read_text(encoding="utf-8"))["rpc"]
    found = written(tmp_path, {**recording, "runs": [], "rpc": calls[:6]})
    assert len(found) == 6
    assert all(case.role == "none" and "too few to fit" in case.note for case in found)
    found = written(tmp_path, {**recording, "runs": [], "rpc": calls})
    assert {case.role for case in found} == {"fit", "predict"}
    in_turn = next(case for case in found if case.group.endswith("in_turn, calls") and case.role == "predict")
    assert in_turn.plain_sum_ms == pytest.approx(in_turn.measured_ms, rel=0.5)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"something": "else"}, "is not a measurement"),
        ([1, 2], "is not a measurement"),
        ({"format": "recscale.measurement", "version": 99}, "has version 99"),
    ],
)
def test_a_file_of_another_kind_is_listed(tmp_path: Path, data: Any, reason: str) -> None:
    (case,) = written(tmp_path, data)
    assert case.case_id == "mine" and case.role == "none"
    assert reason in case.note
    assert case.record()["measured_ms"] is None


def test_a_file_that_is_not_json_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "local_runs").mkdir()
    (tmp_path / "local_runs" / "broken.json").write_text('{"format": "recsc', encoding="utf-8")
    with pytest.raises(InputError, match=r"broken\.json.*is not JSON"):
        validate_folder(tmp_path)


def test_a_pipe_and_a_dangling_link_are_listed_and_hold_nothing_up(tmp_path: Path) -> None:
    (tmp_path / "local_runs").mkdir()
    os.mkfifo(tmp_path / "local_runs" / "pipe.json")
    (tmp_path / "local_runs" / "link.json").symlink_to("nowhere.json")
    link, pipe = validate_folder(tmp_path)
    assert (link.case_id, pipe.case_id) == ("link", "pipe")
    assert {link.role, pipe.role} == {"none"}
    assert pipe.note == "not predicted: is not a regular file"
    assert "No such file" in link.note
