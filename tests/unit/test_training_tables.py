"""Tables of training steps: read with their places, rebuilt as scenarios, refused in one line."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from analysis.scores import Score, configurations, coverage, ratios
from analysis.training.cases import Case
from analysis.training.families import copies_tables, framework
from analysis.training.fitting import FIT_ROWS, Fit, Fitted, runs
from analysis.training.machines import known
from analysis.training.plans import balanced
from analysis.training.predictions import predict
from analysis.training.shapes import precision
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
    words |= changed.pop("words", {"rounds": "v2.0", **words})
    base = {"case_id": "x", "table": MLPERF, "model": "mlperf_dlrm_v1", "accelerator": "A100-SXM-80GB"}
    numbers = {"accelerators": 8, "hosts": 1, "batch": 55296, "step_ms": 1.5}
    return Row(**{**base, **numbers, "words": words, **changed})


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
        ({"n_accel": "eight"}, 'n_accel: a positive number is needed, not "eight"'),
        ({"n_accel": "7.5"}, 'n_accel: a whole number is needed, not "7.5"'),
        ({"n_accel": "9e12"}, "n_accel: at most 1,000,000,000"),
        ({"global_batch": "-1"}, 'global_batch: a positive number is needed, not "-1"'),
        ({"global_batch": ""}, "the batch is not stated"),
        ({"n_nodes": "inf"}, "n_nodes: a positive number is needed"),
        ({"n_nodes": "16"}, "8 accelerators do not fill 16 hosts evenly"),
        ({"n_accel": "10", "n_nodes": "4"}, "10 accelerators do not fill 4 hosts evenly"),
        ({"global_batch": "55297"}, "a batch of 55,297 is not divided evenly over 8 accelerators"),
        ({"step_ms_median": "0"}, 'step_ms_median: a positive number is needed, not "0"'),
        ({"step_ms_median": "-3"}, 'step_ms_median: a positive number is needed, not "-3"'),
        ({"step_ms_median": "nan"}, "step_ms_median: a positive number is needed"),
        ({"step_ms_median": ""}, "the source gives no step time"),
    ],
)
def test_a_row_that_cannot_be_read_is_listed_with_its_line_and_the_others_are_predicted(
    tmp_path: Path, changed: dict[str, str], told: str
) -> None:
    bad = {**ROW, "case_id": "bad", **changed}
    good, listed = predict(read_training(folder_of(tmp_path, ROW, bad)))
    assert good.predicted_ms is not None
    assert (listed.case_id, listed.role, listed.predicted_ms) == ("bad", "none", None)
    assert listed.note.startswith(f"not predicted: line 3: {told}")
    assert "\n" not in listed.note
    assert [one.name for one in configurations([good, listed])] == [good.configuration]


@pytest.mark.parametrize(
    "changed",
    [
        {"sharding_logged": "[[1, 2"},
        {"sharding_logged": "[[1]]", "sharding_strategy_logged": "__import__('os')"},
        {"sharding_logged": "[" * 100_000},
        {"sharding_logged": '[["x"]]'},
        {"sharding_logged": "7"},
    ],
)
def test_a_plan_that_cannot_be_read_is_left_out_and_noted(tmp_path: Path, changed: dict[str, str]) -> None:
    (found,) = predict(read_training(folder_of(tmp_path, {**ROW, **changed})))
    assert found.predicted_ms is not None
    assert "the logged plan cannot be read and was not used" in found.note


@pytest.mark.parametrize("lists", [[[0]] * 4, [[0]] * 8, [[*range(27)]] * 8])
def test_a_plan_of_another_machine_or_model_is_not_used(tmp_path: Path, lists: list[list[int]]) -> None:
    (found,) = predict(read_training(folder_of(tmp_path, {**ROW, "sharding_logged": json.dumps(lists)})))
    assert found.predicted_ms is not None
    assert "does not fit its machine and tables; plan: made here" in found.note


def test_a_plan_from_the_log_of_a_like_row_is_named(tmp_path: Path) -> None:
    lists = [[table for table in range(26) if table % 8 == rank] for rank in range(8)]
    logged = {**ROW, "case_id": "logged", "sharding_logged": json.dumps(lists)}
    other = {**logged, "case_id": "pcie", "accel": "H100-PCIe"}
    rows = read_training(folder_of(tmp_path, other, logged, ROW)).rows
    shape = {"mlperf_dlrm_dcnv2": {"rows": [1_000_000] * 26, "multi_hot": [8] * 26}}
    notes = {case.case_id: case.note for case in predict(Measured(rows, shape))}
    assert "plan: from the log of logged" in notes["new_1x8"]
    assert "plan: " not in notes["logged"]


def test_a_second_row_of_a_name_is_listed_and_never_scored(tmp_path: Path) -> None:
    first, second = predict(read_training(folder_of(tmp_path, ROW, {**ROW, "step_ms_median": "30"})))
    assert first.predicted_ms is not None
    assert (second.role, second.note) == ("none", "not predicted: line 3: a second row of this case_id")


def test_a_row_named_like_a_fitted_one_is_fitted_only_if_measured_alike(tmp_path: Path) -> None:
    name, step = next(iter(FIT_ROWS.items()))
    for measured, role in ((step, "fit"), (99.0, "predict")):
        line = {**ROW, "case_id": name, "step_ms_median": str(measured)}
        (found,) = predict(read_training(folder_of(tmp_path, line)))
        assert found.role == role
        assert ("named like a row that was fitted" in found.note) == (role == "predict")


def test_what_a_column_lacks_is_taken_from_others_and_noted(tmp_path: Path) -> None:
    line = {
        name: text for name, text in ROW.items() if name not in ("n_nodes", "global_batch", "step_ms_median")
    }
    line |= {"accel_per_node": "8", "local_batch": "6912.0", "samples_per_s_train_only": "15798857"}
    (found,) = predict(read_training(folder_of(tmp_path, line)))
    assert found.predicted_ms is not None
    assert found.measured_ms == pytest.approx(3.5)
    for note in ("counted from accel_per_node", "local_batch times", "from samples_per_s_train_only"):
        assert note in found.note


def test_missing_rounds_and_frameworks_are_noted(tmp_path: Path) -> None:
    bare = {name: text for name, text in ROW.items() if name not in ("rounds", "framework")}
    unknown, released, known = predict(
        read_training(
            folder_of(
                tmp_path,
                {**ROW, **dict.fromkeys(ROW.keys() - bare.keys(), "")},
                {**ROW, "case_id": "released", "rounds": ""},
                {**ROW, "case_id": "known"},
            )
        )
    )
    assert "round not stated: taken as v3.1 or later" in unknown.note
    assert "framework not stated: taken as HugeCTR" in unknown.note
    assert "round read off release 24.04" in released.note
    assert "round" not in known.note
    assert unknown.predicted_ms == released.predicted_ms == known.predicted_ms


def test_rounds_compare_as_numbers() -> None:
    assert row(rounds="v10.0").numbered == (10, 0)
    assert copies_tables(row(rounds="v10.0"))
    assert not copies_tables(row(rounds="v3.0"))


def test_a_folder_without_a_table_that_is_known_is_refused(tmp_path: Path) -> None:
    folder_of(tmp_path, ROW, file="mlperf.csv")
    with pytest.raises(
        InputError, match=r"neither mlperf_dlrm\.csv nor other_benchmarks\.csv \(it has mlperf\.csv\)"
    ):
        read_training(tmp_path)
    assert read_training(tmp_path / "nothing").rows == ()


def test_a_table_of_another_name_beside_known_ones_is_listed(tmp_path: Path) -> None:
    folder_of(tmp_path, ROW, file="mlperf_new.csv")
    good, listed = predict(read_training(folder_of(tmp_path, ROW)))
    assert good.predicted_ms is not None
    assert (listed.case_id, listed.role) == ("mlperf_new.csv", "none")


def test_a_table_from_a_spreadsheet_is_read(tmp_path: Path) -> None:
    file = folder_of(tmp_path, ROW) / "training" / MLPERF
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert [one.case_id for one in read_training(tmp_path).rows] == ["new_1x8"]


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


OTHER_ROW = {
    "case_id": "sok_new",
    "model_config_id": "mlperf_dlrm_v1",
    "accel": "A100-SXM-80GB",
    "n_accel": "8",
    "n_nodes": "1",
    "global_batch": "65536",
    "precision": "TF32",
    "metric": "iteration_time",
    "value": "8.5",
    "unit": "ms",
}


@pytest.mark.parametrize(
    ("metric", "unit", "value", "step"),
    [
        ("iteration_time", "ms", "8.5", 8.5),
        ("step_time", "s", "0.0085", 8.5),
        ("Median step time", "us", "8500", 8.5),
        ("throughput", "samples/s", "1e6", 65.536),
        ("throughput", "samples/s/gpu", "125000", 65.536),
        ("throughput", "batches/s", "100", 10),
        ("training_throughput", "k samples/s", "1000", 65.536),
        ("qps", "QPS", "1e6", 65.536),
        ("gpu_idle", "ms", "3", None),
        ("epoch_time", "ms", "3", None),
        ("step_time", "furlongs", "3", None),
        ("throughput", "GB/s", "3", None),
        ("throughput", "samples/s", "0", None),
        ("step_time", "ms", "-3", None),
        ("step_time", "ms", "fast", None),
    ],
)
def test_steps_are_read_from_times_and_throughputs(
    tmp_path: Path, metric: str, unit: str, value: str, step: float | None
) -> None:
    line = {**OTHER_ROW, "metric": metric, "value": value, "unit": unit}
    (found,) = read_training(folder_of(tmp_path, line, file=OTHER)).rows
    assert found.step_ms == (pytest.approx(step) if step else None)
    assert bool(found.problem) == (step is None)


def test_a_measured_row_that_is_no_step_is_listed_with_its_time(tmp_path: Path) -> None:
    line = {**OTHER_ROW, "metric": "gpu_idle", "value": "0.003", "unit": "s"}
    (found,) = predict(read_training(folder_of(tmp_path, line, file=OTHER)))
    assert (found.role, found.measured_ms, found.predicted_ms) == ("none", 3.0, None)
    assert found.note == "not predicted: line 2: gpu_idle is not the time of a whole step"


@pytest.mark.parametrize("batch", ["", "-65536", "0"])
def test_a_rate_without_a_batch_says_nothing_of_a_step(tmp_path: Path, batch: str) -> None:
    line = {**OTHER_ROW, "global_batch": batch, "metric": "throughput", "unit": "samples/s"}
    (found,) = predict(read_training(folder_of(tmp_path, line, file=OTHER)))
    assert (found.role, found.predicted_ms) == ("none", None)
    assert "batch" in found.note


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"multi_hot": None}, "multi_hot of the model"),
        ({"multi_hot": [1, 2]}, "one number for each of 26 tables is needed, not 2"),
        ({"rows": ["many"] * 26}, "rows of the model"),
        ({"rows": [-1] * 26}, "rows of the model"),
        ({"rows": "26"}, "rows of the model"),
        ({"bottom_mlp": [0]}, "bottom_mlp of the model"),
        ({"emb_dim": 12.5}, "emb_dim of the model"),
    ],
)
def test_a_shape_that_is_not_whole_is_named(tmp_path: Path, broken: dict[str, Any], told: str) -> None:
    folder = folder_of(tmp_path, ROW)
    shape = {**CONFIGS["mlperf_dlrm_dcnv2"], **broken}
    text = json.dumps(
        {"mlperf_dlrm_dcnv2": {key: value for key, value in shape.items() if value is not None}}
    )
    (folder / "training" / "model_configs.json").write_text(text, encoding="utf-8")
    (found,) = predict(read_training(folder))
    assert (found.role, found.predicted_ms) == ("none", None)
    assert told in found.note


def test_widths_are_those_of_the_model_and_others_are_noted(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, ROW)
    place = folder / "training" / "model_configs.json"
    stated = {"dense_features": 7, "emb_dim": 64, "bottom_mlp": [256, 64], "top_mlp": [512, 1]}
    shape = {"rows": [1000] * 24, "multi_hot": [1] * 24, **stated, "interaction": "2 layers, projection 32"}
    place.write_text(json.dumps({"mlperf_dlrm_dcnv2": shape}), encoding="utf-8")
    measured = read_training(folder)
    model = Case(measured.rows[0], measured).workload["model"]
    assert (model["embedding_features"], model["dimension"], model["dense_features"]) == (24, 64, 7)
    assert (model["bottom"], model["top"]) == ([256, 64], [512, 1])
    assert (model["cross_layers"], model["rank"]) == (2, 32)
    (bare,) = predict(Measured(measured.rows, CONFIGS))
    assert "as in MLPerf, for want of a statement: dense_features, emb_dim" in bare.note


@pytest.mark.parametrize(
    ("words", "accelerator", "memory"),
    [
        ({}, "A100-SXM4-40GB", "a100_40"),
        ({}, "NVIDIA A100-SXM-80GB (DGX A100)", "a100_80"),
        ({"accel_memory": "40 GB"}, "A100-PCIe", "a100_40"),
        ({"accel_memory": "81559 MiB"}, "A100", "a100_80"),
        ({}, "H100-NVL-94GB", "h100_nvl"),
        ({}, "H200-NVL", "h200_nvl"),
        ({}, "H100-PCIe", "h100_pcie"),
        ({"intra_node_interconnect": "PCIe 5.0"}, "H100", "h100_pcie"),
        ({}, "L40S", "l40s"),
        ({}, "L40", "l40"),
        ({}, "Tesla V100-PCIE-32GB", "v100_pcie"),
        ({}, "V100-SXM2-16GB", "v100_16"),
        ({}, "GB200-NVL72", "gb200"),
    ],
)
def test_accelerators_are_told_apart_by_form_and_memory(
    words: dict[str, str], accelerator: str, memory: str
) -> None:
    found = row(accelerator=accelerator, words={"rounds": "v2.0", **words})
    assert known(found).name == memory


def test_boards_on_pcie_are_not_on_nvlink() -> None:
    for name in ("H100-PCIe", "H100-NVL", "H200-NVL", "V100-PCIe", "A100-PCIe-80GB", "L40S", "A40"):
        assert isinstance(known(row(accelerator=name)).fabric, dict)
    for name in ("H100-SXM-80GB", "H200-SXM", "V100-SXM2", "A100-SXM-80GB"):
        assert isinstance(known(row(accelerator=name)).fabric, str)


def test_what_a_name_leaves_open_is_noted() -> None:
    notes = " ".join(known(row(accelerator="A100", words={})).notes)
    assert "form of the accelerator not stated: taken as SXM" in notes
    assert "memory not stated: taken as 80 GB" in notes
    assert "between hosts" in " ".join(known(row(hosts=2, accelerators=16)).notes)


@pytest.mark.parametrize("name", ["A100X", "H20", "MI300X", "GH200-96GB", "H100-Turbo", "", "Gaudi 3", "L4"])
def test_an_accelerator_of_another_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="nothing is known about the accelerator"):
        known(row(accelerator=name))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("mlperf_dlrm_dcnv2", "TorchRec PyTorch"),
        ("mlperf_dlrm_dcnv2", "PaddlePaddle"),
        ("mlperf_dlrm_dcnv2", "PyTorch 2.1"),
        ("mlperf_dlrm_v1", "TorchRec PyTorch"),
        ("mlperf_dlrm_v1", "MindSpore"),
        ("mlperf_dlrm_v1", "Intel PyTorch with IPEX"),
    ],
)
def test_software_that_no_row_was_fitted_for_is_refused(model: str, words: str) -> None:
    (found,) = predict(Measured((row(model=model, framework=words),), CONFIGS))
    assert (found.role, found.predicted_ms) == ("none", None)
    assert f'no row of MLPerf was fitted for the framework "{words}"' in found.note


@pytest.mark.parametrize(
    ("source", "path", "family"),
    [
        ("NVIDIA-Merlin/HugeCTR", "sparse_operation_kit/documents/README.md", "tensorflow"),
        ("NVIDIA-Merlin/distributed-embeddings", "examples/README.md", "distributed_embeddings"),
        ("NVIDIA/DeepLearningExamples", "PyTorch/Recommendation/DLRM/README.md", "pytorch"),
        ("NVIDIA/DeepLearningExamples", "TensorFlow2/Recommendation/DLRM/README.md", "tensorflow"),
        ("facebookresearch/dlrm", "torchrec_dlrm/README.MD", "torchrec"),
    ],
)
def test_families_of_published_rows_are_read_off_their_sources(source: str, path: str, family: str) -> None:
    found = framework(row(case_id="anything", table=OTHER, words={"source": source, "path": path}))
    assert found.family == family
    assert not any("read off" in note for note in found.notes)


def test_precisions_of_another_kind_are_refused() -> None:
    assert precision(row(words={"precision": "fp32/TF32 unstated"})) == "tf32"
    assert precision(row(accelerator="V100-SXM2", words={"precision": "FP32"})) == "fp32"
    assert precision(row(words={"precision": "bf16 mixed"})) == "bf16"
    with pytest.raises(InputError, match="none of fp32"):
        precision(row(words={"precision": "fp8"}))


def test_several_hosts_are_unlike_the_one_that_was_fitted(tmp_path: Path) -> None:
    big = {**ROW, "n_accel": "16", "n_nodes": "2", "accel": "B200-SXM", "framework": "HugeCTR 25.03"}
    (found,) = predict(read_training(folder_of(tmp_path, big)))
    assert [one for one in found.unlike if one.startswith("2 hosts (software fitted on b200")]
    assert found.extrapolated


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


def test_a_fit_that_ends_at_a_bound_is_refused(tmp_path: Path) -> None:
    name, step = "mlp_dcnv2_h100sxm80gb_1x8_a750", FIT_ROWS["mlp_dcnv2_h100sxm80gb_1x8_a750"]
    measured = read_training(folder_of(tmp_path, {**ROW, "case_id": name, "step_ms_median": str(step)}))
    one = Fitted("fixed_cost_per_step", "hugectr", name, step, 1.0, 2.0, "s")
    with pytest.raises(InputError, match="fixed_cost_per_step of hugectr: no value from 1 to 2 gives"):
        Fit(measured, {}).solve(one)


def test_the_interval_of_a_fit_is_what_its_fastest_and_slowest_run_give(tmp_path: Path) -> None:
    name, step = "mlp_dcnv2_h100sxm80gb_1x8_a750", FIT_ROWS["mlp_dcnv2_h100sxm80gb_1x8_a750"]
    ends = {"step_ms_min_over_runs": str(step * 0.99), "step_ms_max_over_runs": str(step * 1.02)}
    line = {**ROW, "case_id": name, "step_ms_median": str(step), **ends}
    shape = {"mlperf_dlrm_dcnv2": {"rows": [1_000_000] * 26, "multi_hot": [8] * 26}}
    measured = Measured(read_training(folder_of(tmp_path, line)).rows, shape)
    assert runs(measured.rows[0]) == pytest.approx((0.99, 1.02))
    one = Fitted("gather_efficiency", "hopper", name, step, 0.05, 1.0)
    found = Fit(measured, {})
    low, high = found.interval(one)
    assert low < found.solve(one) < high
    case = Case(measured.rows[0], measured)
    assert case.with_software(gather_efficiency=low).step_ms == pytest.approx(1.02 * step, rel=1e-3)


def test_an_unknown_framework_is_told_with_the_columns_looked_at_and_what_is_known() -> None:
    words = {"framework": "Chainer", "source": "a page", "precision": "FP32"}
    (found,) = predict(Measured((row(table=OTHER, words=words),), CONFIGS))
    assert 'framework ("Chainer"), source, path and notes name none of HugeCTR with DCNv2' in found.note
    assert found.note.endswith("distributed_embeddings, pytorch, tensorflow, torchrec")
    (found,) = predict(Measured((row(framework="MindSpore"),), CONFIGS))
    assert "(fitted: HugeCTR; with DLRM v1 also PyTorch)" in found.note


def test_without_its_file_of_shapes_a_row_says_so(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, ROW)
    (folder / "training" / "model_configs.json").unlink()
    (found,) = predict(read_training(folder))
    assert found.role == "none"
    assert "is not known: model_configs.json is missing or empty" in found.note
