"""Tables of training steps: read with their places, rebuilt as scenarios, refused in one line."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from analysis.scores import Score, configurations, coverage, ratios
from analysis.training.cases import Case
from analysis.training.families import framework
from analysis.training.plans import balanced
from analysis.training.predictions import predict
from analysis.training.tables import MLPERF, OTHER, Measured, Row, read_training
from analysis.validated import Validated
from simulator.errors import InputError

ROW = {
    "case_id": "new_1x8",
    "rounds": "v4.0",
    "benchmark": "dlrm_dcnv2",
    "framework": "NVIDIA Merlin HugeCTR Release 24.04",
    "accel": "H100-SXM-80GB",
    "n_accel": "8",
    "n_nodes": "1",
    "global_batch": "55296",
    "step_ms_median": "3.5",
    "sharding_logged": "",
    "sharding_strategy_logged": "",
}
MODEL = {"rows": [40_000_000, 30_000, 12, 3_000_000], "multi_hot": [100, 1, 2, 12]}
CONFIGS = {
    "mlperf_dlrm_dcnv2": {
        **MODEL,
        "rows": MODEL["rows"] * 6 + [5, 6],
        "multi_hot": MODEL["multi_hot"] * 6 + [1, 1],
    },
    "mlperf_dlrm_v1": {"rows": [1_000_000] * 26, "multi_hot": [1] * 26},
}


def folder_of(path: Path, *rows: Mapping[str, str], file: str = MLPERF) -> Path:
    (path / "training").mkdir(exist_ok=True)
    with (path / "training" / file).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (path / "training" / "model_configs.json").write_text(json.dumps(CONFIGS), encoding="utf-8")
    return path


def row(**changed: Any) -> Row:
    words = {name: str(changed.pop(name)) for name in ("framework", "rounds") if name in changed}
    base = {"case_id": "x", "table": MLPERF, "model": "mlperf_dlrm_v1", "accelerator": "A100-SXM-80GB"}
    numbers = {"accelerators": 8, "hosts": 1, "batch": 55296, "step_ms": 1.5}
    return Row(**{**base, **numbers, "words": {"rounds": "v2.0", **words}, **changed})


def test_a_table_never_seen_is_predicted(tmp_path: Path) -> None:
    cases = predict(read_training(folder_of(tmp_path, ROW)))
    assert [case.case_id for case in cases] == ["new_1x8"]
    (case,) = cases
    assert case.role == "predict"
    assert case.predicted_ms is not None and 1 < case.predicted_ms < 20
    assert case.low is not None and case.high is not None and case.low < case.predicted_ms < case.high


def test_a_logged_plan_takes_the_place_of_ours(tmp_path: Path) -> None:
    lists = [[table for table in range(26) if table % 8 == rank] for rank in range(8)]
    logged = {
        **ROW,
        "sharding_logged": json.dumps(lists),
        "sharding_strategy_logged": "[('mp', []), ('dp', [3])]",
    }
    (found,) = read_training(folder_of(tmp_path, logged)).rows
    assert found.plan is not None and found.plan[1] == (1, 9, 17, 25)
    assert found.copied == (3,)


def test_more_hosts_share_a_host_s_tables(tmp_path: Path) -> None:
    big = {**ROW, "case_id": "new_2x8", "n_accel": "16", "n_nodes": "2"}
    measured = read_training(folder_of(tmp_path, ROW, big))
    step = Case(measured.rows[1], measured).scenario.step
    assert {flow.piece.span for flow in step.traffic.flows} == {8}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"n_accel": "eight"}, "n_accel must be a whole number"),
        ({"global_batch": "-1"}, "global_batch must be a whole number"),
        ({"n_nodes": "inf"}, "n_nodes must be a whole number"),
        ({"sharding_logged": "[[1, 2"}, "new_1x8"),
        ({"sharding_logged": "[[1]]", "sharding_strategy_logged": "__import__('os')"}, "new_1x8"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_with_its_line(
    tmp_path: Path, changed: dict[str, str], told: str
) -> None:
    with pytest.raises(InputError) as error:
        read_training(folder_of(tmp_path, ROW, {**ROW, **changed}))
    assert told in str(error.value)
    assert error.value.where.line == 3
    assert "\n" not in str(error.value)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    short = {name: value for name, value in ROW.items() if name != "accel"}
    with pytest.raises(InputError, match="no column accel"):
        read_training(folder_of(tmp_path, short))


def test_a_shape_file_that_is_no_object_is_refused(tmp_path: Path) -> None:
    folder_of(tmp_path, ROW)
    for text, told in (("[1", "not JSON"), ("[1]", "must be an object")):
        (tmp_path / "training" / "model_configs.json").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=told):
            read_training(tmp_path)


@pytest.mark.parametrize(
    ("metric", "unit", "value", "step"),
    [
        ("iteration_time", "ms", "8.5", 8.5),
        ("throughput", "samples/s", "1e6", 65.536),
        ("gpu_idle", "ms", "3", None),
    ],
)
def test_steps_are_read_from_times_and_throughputs(
    tmp_path: Path, metric: str, unit: str, value: str, step: float | None
) -> None:
    line = {
        "case_id": "sok_new",
        "model_config_id": "mlperf_dlrm_v1",
        "accel": "A100-SXM-80GB",
        "n_accel": "8",
        "n_nodes": "1",
        "global_batch": "65536",
        "precision": "TF32",
        "metric": metric,
        "value": value,
        "unit": unit,
    }
    (found,) = read_training(folder_of(tmp_path, line, file=OTHER)).rows
    assert found.step_ms == (pytest.approx(step) if step else None)


@pytest.mark.parametrize(
    ("words", "family"),
    [
        ("PyTorch NVIDIA Release 20.06", "pytorch"),
        ("NVIDIA Release 22.04 Tensorflow, MxNet, pytorch, hugectr", "hugectr_v1"),
        ("NGC MXNet 22.04 , NGC PyTorch 22.04", "hugectr_v1"),
        ("", "hugectr_v1"),
    ],
)
def test_families_are_read_off_the_words_of_submissions(words: str, family: str) -> None:
    assert framework(row(framework=words)).family == family


@pytest.mark.parametrize("accelerator", ["TPU-v4", "CPU:Intel(R) Xeon(R)", "MI300X"])
def test_what_is_not_known_is_not_predicted_and_says_why(accelerator: str) -> None:
    measured = Measured((row(accelerator=accelerator),), CONFIGS)
    (case,) = predict(measured)
    assert case.predicted_ms is None
    assert case.note.startswith("not predicted: ")


def test_a_balanced_plan_cuts_what_is_more_than_an_even_share() -> None:
    tables = [{"pooling": hot, "rows": 100 * hot**2} for hot in (100, 1, 1, 1, 1, 1, 1, 1)]
    plan = balanced(tables, 4, copied=(7,))
    assert sum(0 in listed for listed in plan) == 4
    assert not any(7 in listed for listed in plan)
    assert sorted(table for listed in plan for table in listed if table) == [1, 2, 3, 4, 5, 6]


def test_a_balanced_plan_leaves_room_for_rows() -> None:
    tables = [{"pooling": 1, "rows": rows} for rows in (4000, 4000, 4000, 4000, 1, 1, 1, 1)]
    plan = balanced(tables, 4, room=4500)
    cuts = {table: sum(table in listed for listed in plan) for table in range(4)}
    held = [sum(tables[table]["rows"] / cuts[table] for table in listed if table < 4) for listed in plan]
    assert max(held) <= 4500


def case(name: str, predicted: float, **changed: Any) -> Validated:
    base = {"kind": "training", "group": "g", "configuration": name, "measured_ms": 10.0, "series": "s"}
    return Validated(name, **{**base, **changed}).with_prediction(
        predicted, (0.8 * predicted, 1.2 * predicted)
    )


def test_repetitions_count_once_and_fitted_configurations_not_at_all() -> None:
    found = configurations(
        [
            case("a", 11, measured_ms=9.0),
            case("b", 11, configuration="a", measured_ms=11.0),
            case("c", 20, configuration="c"),
            case("d", 10, configuration="c", role="fit"),
        ]
    )
    assert [one.name for one in found] == ["a"]
    assert found[0].error() == pytest.approx(0.1)


def test_scores_count_shares_within_a_quarter() -> None:
    found = Score.of([0.1, -0.2, 0.3])
    assert found is not None
    assert (found.count, found.median, found.worst) == (3, 0.2, 0.3)
    assert found.near == pytest.approx(2 / 3)
    assert Score.of([]) is None


def test_ratios_compare_several_hosts_with_fewer() -> None:
    one, two = case("one", 11, size=(8, 1, 64)), case("two", 12.1, size=(16, 2, 64))
    (ratio,) = ratios([one, two])
    assert ratio.error() == pytest.approx(0.1)


def test_coverage_counts_measured_times_inside_their_bands() -> None:
    share, width, count = coverage([case("a", 11), case("b", 20)])
    assert (share, width, count) == (0.5, pytest.approx(0.2), 2)
