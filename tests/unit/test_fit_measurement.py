"""From a measurement to a fit to a scenario: products by shape, curves, primitives, and what is left out."""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.cli.running import run
from simulator.calibration.fit_measurement import MeasuredFit, fit_measurement
from simulator.costs.curve_catalog import read_curves
from simulator.costs.gemm_laws import laws_of
from simulator.errors import InputError
from simulator.scenario import load, run_scenario

RECORDED = Path(__file__).parents[1] / "data" / "local_runs" / "tcp_1gbit_2.json"

SHAPES = [(64, 64, 64), (256, 256, 256), (512, 512, 512), (16, 256, 512), (64, 1024, 128), (256, 64, 1024)]
RATE, START_UP = 5e10, 4e-6
SCENARIO = """\
cluster:
  accelerator: {name: own, kind: gpu, peak_flops: {fp32: 100 GFLOP/s}, hbm_bytes: 4 GiB,
                hbm_bandwidth: 10 GB/s, cache_bytes: 1 MB, launch_time: 1 us,
                matrix_efficiency: 0.8, memory_efficiency: 0.8,
                gather_efficiency: 0.2, host_link_bandwidth: 10 GB/s}
  per_host: 2
  hosts: 1
  host: dgx_a100
  fabric: {kind: two_level, within: 1 GB/s, between: 1 GB/s, latency: 20 us}
workload:
  model: {kind: dlrm, dense_features: 13, embedding_features: 2, dimension: 32, bottom: [64, 32],
          top: [64, 1], precision: fp32}
  tables: [{name: items, rows: 20_000, dimension: 32, copies: 2}]
  keys: {kind: zipf, exponent: 1.05}
  batch: 256
sharding: {kind: table_wise}
policy: {kind: serialized}
run: {batches: 6, warm_up: 2}
"""


def curve(operation: str, unit: str, points: list[tuple[float, float]], shape: tuple[int, ...] = ()) -> Any:
    told = [{"size": size, "seconds": seconds} for size, seconds in points]
    return {"operation": operation, "unit": unit, "context": 0.0, "shape": list(shape), "points": told}


def measurement() -> dict[str, Any]:
    """What `calibrate measure` would write of a machine with known rates."""
    products = [
        curve("gemm", "flops", [(2.0 * m * n * k, START_UP + 2.0 * m * n * k / RATE)], (m, n, k))
        for m, n, k in SHAPES
    ]
    copies = curve("copy", "bytes", [(4.0**power, 1e-6 + 4.0**power / 8e9) for power in range(5, 13)])
    exchanges = curve(
        "all_to_all", "bytes", [(4.0**power, 5e-5 + 4.0**power / 1e9) for power in range(5, 12)]
    )
    launch = {"substrate": "tcp", "links": "loopback", "link_bytes_per_s": None, "ranks": 2}
    found = [*products, copies, exchanges, curve("hand_over", "stages", [(1.0, 2e-5)])]
    return {"taken": "2026-11-29T20:45:47+00:00", "launch": launch, "primitives": found}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("measured") / "machine.json"
    path.write_text(json.dumps(measurement()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fits(measured: Path) -> MeasuredFit:
    return fit_measurement(measured)


def test_products_are_fitted_by_their_shape(fits: MeasuredFit) -> None:
    (one,) = fits.gemm
    assert len(one.table.rows) == len(SHAPES)
    assert one.time.law.rate == pytest.approx(RATE, rel=0.05)
    assert one.time.law.quantisation == 0.0, "the units of an own machine are not known"
    assert one.intervals["rate"][0] <= one.time.law.rate <= one.intervals["rate"][1]


def test_the_date_of_a_measurement_is_that_of_its_fits(fits: MeasuredFit) -> None:
    assert fits.to_yaml().count("2026-11-29T20:45:47") >= 3


def test_what_has_too_few_measurements_is_named(tmp_path: Path) -> None:
    data = measurement()
    data["primitives"] = [one for one in data["primitives"] if one["shape"] != [256, 64, 1024]]
    path = tmp_path / "few.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    fits = fit_measurement(path)
    assert fits.gemm == ()
    assert [left.split(":")[0] for left in fits.left_out] == ["hand_over", "gemm"]


@pytest.mark.parametrize(("rate", "nodes"), [(None, 1), (125e6, 2)])
def test_ranks_on_links_of_their_own_stand_for_hosts(tmp_path: Path, rate: float | None, nodes: int) -> None:
    data = measurement()
    data["launch"]["link_bytes_per_s"] = rate
    path = tmp_path / "m.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    collectives = fit_measurement(path).collectives
    assert collectives is not None
    assert [one.scale.nodes for one in collectives.fitted[0].system.curve.measured] == [nodes]


def test_one_file_holds_laws_curves_and_primitives(fits: MeasuredFit) -> None:
    import yaml

    text = fits.to_yaml()
    data = yaml.safe_load(text)
    assert list(laws_of(data)) == ["gemm"] and list(laws_of(data)["gemm"]) == ["fp32"]
    curves = read_curves(text)
    assert curves["measured_tcp_loopback_all_to_all"].seconds(4.0**8, 2, 1) == pytest.approx(
        5e-5 + 4.0**8 / 1e9, rel=1e-3
    )
    assert {"copy", "all_to_all"} <= data["entries"].keys()
    for name in ("rate", "bandwidth", "start_up", "sharpness"):
        assert {"value", "interval", "source", "confidence"} <= data["gemm"]["gemm"]["formats"][
            "f32xf32->f32"
        ][name].keys()


def scenario(folder: Path, *settings: str) -> Any:
    (folder / "own.yaml").write_text(SCENARIO, encoding="utf-8")
    return load(folder / "own.yaml", list(settings))


def test_a_measurement_is_fitted_and_run_end_to_end(
    measured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = measured.parent
    assert run(["calibrate", "fit", "--measured", str(measured), "--out", str(folder / "machine.yaml")]) == 0
    capsys.readouterr()
    own = scenario(
        folder,
        "cluster.compute={kind: kernels, file: machine.yaml, law: gemm}",
        "cluster.collectives={file: machine.yaml, all_to_all: measured_tcp_loopback_all_to_all}",
        "cluster.measured={file: machine.yaml, memory_copy: copy}",
    )
    assert own.cluster.accelerator.hbm_bandwidth == pytest.approx(16e9, rel=0.02)
    assert own.cluster.accelerator.memory_efficiency == 1.0
    report = run_scenario(own).report
    assert report.step_ms["mean"] > 0
    bare = run_scenario(scenario(folder)).report
    assert report.step_ms["mean"] != bare.step_ms["mean"]
    told = "matrix products of other sizes than gemm was measured on"
    assert told in report.extrapolated, "the bottom network is narrower than what was measured"


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("cluster.compute={kind: kernels, law: gemm}", "file is missing"),
        ("cluster.compute={kind: kernels, file: machine.yaml}", "law is missing"),
        ("cluster.compute={kind: kernels, file: machine.yaml, law: gem}", 'did you mean "gemm"'),
        ("cluster.compute={kind: kernels, file: none.yaml, law: gemm}", "no such file"),
        ("cluster.compute={kind: kernels, file: ../x.yaml, law: gemm}", "outside the folder"),
        ("cluster.measured={file: machine.yaml}", "no primitive of it is named"),
        ("cluster.measured={file: machine.yaml, memory_copy: copi}", 'did you mean "copy"'),
        ("cluster.measured={file: own.yaml, memory_copy: copy}", "holds no measured primitives"),
        ("cluster.compute={kind: kernels, file: own.yaml, law: gemm}", "holds no laws"),
    ],
)
def test_wrong_names_of_fitted_files_are_told_in_one_line(measured: Path, setting: str, problem: str) -> None:
    (measured.parent / "machine.yaml").write_text(fit_measurement(measured).to_yaml(), encoding="utf-8")
    with pytest.raises(InputError, match=problem) as told:
        _ = scenario(measured.parent, setting).costs
    assert "\n" not in str(told.value)


def recorded(folder: Path, **changed: dict[str, Any]) -> Path:
    """A real recording with the given fields of its parts changed."""
    data = json.loads(RECORDED.read_text(encoding="utf-8"))
    data["primitives"] = [one for one in data["primitives"] if len(one["points"]) >= 4][:1]
    data["load"] = {"before": 0.0, "after": 0.0, "allowed": False, "quiet": True}
    data["launch"]["pinned"], data["noise"] = True, dict.fromkeys(("local", "collective", "rpc"))
    for part, fields in changed.items():
        data[part] = {**data[part], **fields}
    path = folder / "recorded.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"load": {"quiet": False, "before": 0.4, "after": 0.5}}, "other work kept 40% and 50% of the cores"),
        ({"load": {"allowed": True}}, "other work was allowed beside it"),
        ({"launch": {"pinned": False}}, "ranks were not pinned"),
    ],
)
def test_what_speaks_against_a_recording_is_said_and_kept_with_its_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, Any], told: str
) -> None:
    import yaml

    path, out = recorded(tmp_path, **changed), tmp_path / "machine.yaml"
    assert run(["calibrate", "fit", "--measured", str(path), "--out", str(out), "--format", "json"]) == 0
    shown, said = capsys.readouterr()
    (warning,) = [line for line in said.splitlines() if "warning" in line]
    assert warning.startswith(f"recscale: warning: {path}: ") and told in warning
    text = out.read_text(encoding="utf-8")
    assert text.startswith("# Doubtful: ") and told in text.splitlines()[0]
    (kept,) = yaml.safe_load(text)["doubts"]
    assert told in kept and json.loads(shown)["doubts"] == [kept]


def test_a_quiet_and_pinned_recording_is_fitted_without_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "machine.yaml"
    assert run(["calibrate", "fit", "--measured", str(recorded(tmp_path)), "--out", str(out)]) == 0
    assert "warning" not in capsys.readouterr().err
    assert "oubt" not in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [("version", 2, "has version 2; this release reads 1"), ("units", "ms", "units: extra inputs are not")],
)
def test_a_file_that_says_it_is_a_measurement_is_read_by_its_schema(
    tmp_path: Path, field: str, value: Any, problem: str
) -> None:
    path = recorded(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), field: value}))
    with pytest.raises(InputError, match=problem):
        fit_measurement(path)


@pytest.mark.parametrize("ranks", [10**400, 10**4000])
def test_a_number_of_ranks_beyond_all_reason_is_refused(tmp_path: Path, ranks: int) -> None:
    data = measurement()
    data["launch"]["ranks"] = ranks
    path = tmp_path / "m.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError, match=r"launch\.ranks: a whole number is needed"):
        fit_measurement(path)
