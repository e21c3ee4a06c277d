"""Profiled steps in `validate`: jobs and lone profiles, foreign ones listed with the reason."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from analysis.validated import Validated
from analysis.validating import validate_folder
from analysis.validating_traces import accelerator

PRODUCT, LOOKUP = (
    "void gemmSN_TN_kernel<float>(int)",
    "void split_embedding_codegen_forward_kernel<float>(int)",
)


def event(name: str, start: float, duration: float, category: str = "kernel") -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, "tid": 7, "args": {}}


def profile(path: Path, kernel: str, device: str = "Tesla V100-SXM2-32GB", steps: int = 2) -> None:
    """Steps of 100 us with two kernels each."""
    events = [event(f"ProfilerStep#{n}", 1000 + 100 * n, 100, "user_annotation") for n in range(steps)]
    events += [event(kernel, 1010 + 50 * n, 20) for n in range(2 * steps)]
    data = {"deviceProperties": [{"name": device}], "distributedInfo": {"rank": 0}, "traceEvents": events}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")


def job(place: Path, nodes: list[dict[str, Any]], device: str = "Tesla V100-SXM2-32GB") -> None:
    profile(place / "kineto" / "rank0.json", LOOKUP, device)
    (place / "et").mkdir()
    (place / "et" / "rank0.json").write_text(
        json.dumps({"schema": "1.0.1", "nodes": nodes}), encoding="utf-8"
    )


def one(found: list[Validated], start: str) -> Validated:
    (case,) = [case for case in found if case.case_id.startswith(start)]
    return case


ADD = [{"id": 1, "name": "aten::add", "parent": 0}]


def test_a_job_of_something_else_is_listed_with_its_measured_step(tmp_path: Path) -> None:
    job(tmp_path / "traces" / "mine", ADD)
    profile(tmp_path / "traces" / "other.json", LOOKUP)
    found = validate_folder(tmp_path)
    case = one(found, "mine")
    assert (case.role, case.predicted_ms) == ("none", None)
    assert case.measured_ms == pytest.approx(0.1)
    assert "no layers and lookups of a DLRM" in case.note


def test_without_another_profile_nothing_says_what_a_launch_takes(tmp_path: Path) -> None:
    job(tmp_path / "traces" / "mine", ADD)
    (case,) = validate_folder(tmp_path)
    assert "no other profile says what the host takes per launch" in case.note


def test_lone_profiles_and_foreign_files_are_listed(tmp_path: Path) -> None:
    place = tmp_path / "traces"
    profile(place / "tables.json", LOOKUP)
    profile(place / "dense.json", PRODUCT)
    (place / "chakra.json").write_text("{}", encoding="utf-8")
    (place / "broken.json.gz").write_bytes(b"\x1f\x8b\x08 no more")
    found = validate_folder(tmp_path)
    assert {case.case_id for case in found} == {"tables.json", "dense.json", "chakra.json", "broken.json.gz"}
    assert {case.role for case in found} == {"none"}
    assert "a launch takes the host 50.0 us" in one(found, "tables").note
    assert one(found, "dense").measured_ms == pytest.approx(0.1)
    assert "no execution traces" in one(found, "dense").note
    assert "launch" not in one(found, "dense").note
    assert one(found, "chakra").record()["measured_ms"] is None


def test_an_unknown_device_is_no_default() -> None:
    from simulator.errors import InputError

    with pytest.raises(InputError, match="MI300X"):
        accelerator("AMD Instinct MI300X")


def test_the_profiled_job_is_predicted_with_a_band_and_a_plain_sum(measured_data: Path) -> None:
    from analysis.bands import banded
    from analysis.validating_traces import profiled

    found = [banded(case) for case in profiled(measured_data)]
    case = one(found, "param/dlrm_8xV100")
    assert abs(case.error or 1) < 0.25
    assert case.low and case.plain_sum_ms and case.plain_sum_ms < case.measured_ms
    assert all(case.note for case in found if case.predicted_ms is None)


def test_pipes_are_listed_in_and_outside_of_jobs(tmp_path: Path) -> None:
    job(tmp_path / "traces" / "mine", ADD)
    os.mkfifo(tmp_path / "traces" / "pipe.json")
    os.mkfifo(tmp_path / "traces" / "mine" / "kineto" / "rank1.json")
    found = validate_folder(tmp_path)
    assert len(found) == 3
    for name in ("pipe.json", "mine/kineto/rank1.json"):
        case = one(found, name)
        assert case.role == "none" and case.note == "not predicted: is not a regular file"
