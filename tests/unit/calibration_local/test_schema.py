"""Measurement files: what is written is read again, and what is none is refused in one line."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from simulator.calibration.local.job import Job
from simulator.calibration.local.launch import Launcher
from simulator.calibration.local.recording import write
from simulator.calibration.local.schema import MOST_BYTES, read_measurement
from simulator.calibration.local.suite import SUITE
from simulator.calibration.measure.grids import QUICK
from simulator.calibration.measure.links import Loopback, parse_links
from simulator.calibration.measure.rpc import RpcGrid
from simulator.calibration.train.settings import Settings
from simulator.errors import InputError

MEASUREMENT: dict[str, Any] = {
    "format": "recscale.measurement",
    "version": 1,
    "taken": "2026-11-29T18:00:00+00:00",
    "launch": {
        "substrate": "tcp", "links": "loopback", "link_bytes_per_s": None, "burst_bytes": 0.0, "ranks": 2,
        "pinned": True, "isolated": False,
    },
    "load": {"before": 0.0, "after": 0.01, "allowed": False, "quiet": True},
    "noise": {"local": 1.05, "collective": 1.1, "rpc": None},
    "environment": {"cores": 2},
    "primitives": [
        {
            "operation": "copy", "unit": "bytes", "context": 0.0, "shape": [],
            "points": [
                {
                    "size": 64.0, "seconds": 1e-6, "p90_over_p50": 1.0, "cpu_seconds": 1e-6, "repeats": 9,
                    "back_to_back": None, "stolen_seconds": None,
                }
            ],
        }
    ],
    "rpc": [],
    "software": [],
    "runs": [],
}  # fmt: skip


def saved(data: Any, folder: Path) -> Path:
    path = folder / "m.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def test_a_measurement_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(MEASUREMENT, tmp_path / "new" / "m.json")
    assert read_measurement(tmp_path / "new" / "m.json") == MEASUREMENT


@pytest.mark.parametrize(("change", "said"), [
    (lambda m: m.update(format="x"), "is not a measurement"),
    (lambda m: m.update(version=2), "has version 2; this release reads 1"),
    (lambda m: m.update(more=1), "more: extra inputs"),
    (lambda m: m.pop("load"), "load: field required"),
    (lambda m: m["primitives"][0]["points"].clear(), "primitives.0.points"),
    (lambda m: m["primitives"][0]["points"][0].update(seconds=-1), "seconds: input should be greater than 0"),
    (lambda m: m["launch"].update(ranks="two"), "launch.ranks"),
])  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, change: Any, said: str) -> None:
    data = copy.deepcopy(MEASUREMENT)
    change(data)
    with pytest.raises(InputError) as error:
        read_measurement(saved(data, tmp_path))
    assert said in str(error.value) and "m.json" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00\x01", "[" * 100_000])
def test_what_is_no_json_object_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        read_measurement(saved(text, tmp_path))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(InputError, match="is larger than"):
        read_measurement(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_measurement(path)


def test_a_job_comes_back_from_its_file(tmp_path: Path) -> None:
    job = Job(2, "tcp", "out", QUICK, (Settings("nestpipe", {"micro_batches": 2}),), RpcGrid(), ("a", "b"))
    job.write(tmp_path / "job.json")
    assert Job.read(tmp_path / "job.json") == job


def test_every_run_of_the_suite_lies_off_the_grid_of_its_primitives() -> None:
    for launch in SUITE:
        job = launch.job()
        if job.grid:
            assert not {run.batch for run in job.runs} & set(job.grid.samples)
            assert not {run.batch * run.model.tables for run in job.runs} & {*job.grid.keys, *job.grid.rows}


def test_open_mpi_has_no_links_to_shape_and_unknown_substrates_are_refused() -> None:
    with pytest.raises(InputError, match="cannot be shaped"):
        Launcher("openmpi", parse_links("shaped:1Gbit/s"))
    with pytest.raises(InputError, match=r'no substrate "openmp".*openmpi'):
        Launcher("openmp", Loopback())
