"""`recscale compare`: rows, what they are related to, and where policies take their parameters from."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.cli.running import run
from analysis.compare import Request, compare, policy_part
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder

NPU = str(shipped_folder() / "nestpipe" / "npu.yaml")
QUICKSTART = str(shipped_folder() / "quickstart.yaml")
FIVE = ("serialized", "stale_prefetch", "dual_buffer", "frozen_window", "nestpipe")
FIELDS = {
    *(
        "scenario",
        "policy",
        "workers",
        "step_ms",
        "speedup",
        "scaling_efficiency",
        "throughput_samples_per_s",
    ),
    *(
        "compute_ms",
        "exposed_input_ms",
        "exposed_lookup_ms",
        "exposed_all_to_all_ms",
        "exposed_all_reduce_ms",
    ),
    *(
        "exposed_other_ms",
        "staleness_declared_steps",
        "staleness_observed_max_steps",
        "updates_lost_share",
        "updates_duplicated_share",
        "peak_memory_hbm_bytes",
    ),
    *("peak_memory_host_bytes", "plain_sum_of_raw_parts_ms", "notes"),
}

Rows = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def rows(capsys: pytest.CaptureFixture[str]) -> Rows:
    """Run the command in this process and return its rows."""

    def asked(*words: str) -> list[dict[str, Any]]:
        code = run(["compare", *words, "--format", "json"])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        found: list[dict[str, Any]] = json.loads(printed.out)
        return found

    return asked


@pytest.fixture(scope="module")
def npu() -> Scenario:
    return load(NPU)


def test_there_is_a_row_for_each_policy_and_size_with_the_fields_of_the_contract(rows: Rows) -> None:
    found = rows(NPU, "--policies", ",".join(FIVE), "--workers", "128,256")
    assert [(row["policy"], row["workers"]) for row in found] == [(p, w) for p in FIVE for w in (128, 256)]
    assert all(row.keys() == FIELDS for row in found)


def test_compute_and_exposed_parts_of_every_row_add_up_to_its_step(rows: Rows) -> None:
    for row in rows(NPU, "--policies", "serialized,nestpipe", "--workers", "128"):
        parts = row["compute_ms"] + sum(value for name, value in row.items() if name.startswith("exposed_"))
        assert parts == pytest.approx(row["step_ms"])


def test_speedup_is_over_serialized_at_the_same_workers_even_when_that_is_not_asked_for(rows: Rows) -> None:
    alone = rows(NPU, "--policies", "nestpipe", "--workers", "128,256")
    beside = rows(NPU, "--policies", "serialized,nestpipe", "--workers", "128,256")
    assert [row["policy"] for row in alone] == ["nestpipe", "nestpipe"]
    assert alone == beside[2:]
    for reference, row in zip(beside[:2], alone, strict=True):
        assert row["speedup"] == pytest.approx(reference["step_ms"] / row["step_ms"])
        assert reference["speedup"] == 1.0


def test_scaling_efficiency_is_against_the_fewest_workers_in_whatever_order(rows: Rows) -> None:
    large, small = rows(NPU, "--policies", "nestpipe", "--workers", "256,128")
    assert (large["workers"], small["scaling_efficiency"]) == (256, 1.0)
    assert large["scaling_efficiency"] == pytest.approx(small["step_ms"] / large["step_ms"])


def test_scaling_starts_from_the_fewest_workers_that_can_run(rows: Rows) -> None:
    none, small, large = rows(NPU, "--policies", "nestpipe", "--workers", "16,128,256")
    assert (none["step_ms"], none["scaling_efficiency"]) == (None, None)
    assert small["scaling_efficiency"] == 1.0 > large["scaling_efficiency"] > 0.9


def test_a_policy_named_twice_is_shown_once_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["compare", QUICKSTART, "--policies", "dual_buffer,serialized,dual_buffer", "--workers", "8,8"])
        == 0
    )
    told = capsys.readouterr()
    rows = [line for line in told.out.splitlines() if line.startswith("dual_buffer ")]
    assert len(rows) == 2  # once in each table
    assert "--policies repeats dual_buffer; shown once" in told.err and "--workers repeats 8;" in told.err


def test_the_legend_says_what_speed_up_is_over_and_whether_that_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    over = "speed-up: over serialized at the same workers"
    assert run(["compare", QUICKSTART, "--policies", "dual_buffer"]) == 0
    assert f"{over}, not shown\n" in capsys.readouterr().out
    assert run(["compare", QUICKSTART, "--policies", "dual_buffer,serialized"]) == 0
    assert f"{over}\n" in capsys.readouterr().out


def test_the_plain_sum_of_a_serialized_run_is_its_step_less_what_it_does_not_add_up(rows: Rows) -> None:
    (row,) = rows(NPU, "--policies", "serialized", "--workers", "128")
    assert row["plain_sum_of_raw_parts_ms"] == pytest.approx(
        row["step_ms"] - row["exposed_all_reduce_ms"], rel=1e-2
    )


def test_a_policy_alone_gives_the_report_of_a_run(npu: Scenario) -> None:
    (row,) = compare([npu.with_workers(128)], Request(policies=("nestpipe",)))
    report = run_scenario(npu.with_workers(128)).report
    assert (row.step_ms, row.compute_ms) == (report.step_ms["mean"], report.compute_ms)


def test_parameters_come_from_the_scenario_at_any_depth_then_from_the_option_then_from_a_stated_default(
    npu: Scenario,
) -> None:
    nested = npu.with_policy(
        {
            "kind": "nested",
            "inter_batch": {"kind": "dual_buffer", "buffers": 1},
            "intra_batch": {"kind": "frozen_window", "micro_batches": 3},
        }
    )
    assert policy_part(nested, "nestpipe", 16) == {"kind": "nestpipe", "buffers": 1, "micro_batches": 3}
    assert policy_part(nested, "dual_buffer", None) == {"kind": "dual_buffer", "buffers": 1}
    assert policy_part(nested, "serialized", None) == {"kind": "serialized"}
    plain = npu.with_policy({"kind": "serialized"})
    assert policy_part(plain, "frozen_window", 16) == {"kind": "frozen_window", "micro_batches": 16}
    assert policy_part(plain, "nestpipe", None) == {"kind": "nestpipe", "micro_batches": 8}


def test_a_default_that_was_taken_and_an_option_that_was_not_are_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["compare", QUICKSTART, "--policies", "frozen_window"]) == 0
    told = capsys.readouterr()
    assert "quickstart states no micro_batches; 8 are taken" in told.err
    assert "! 8 workers: micro_batches is assumed to be 8" in " ".join(told.out.split())
    assert run(["compare", NPU, "--workers", "128", "--policies", "nestpipe", "--micro-batches", "4"]) == 0
    assert "states its own micro_batches" in capsys.readouterr().err


def test_a_policy_that_does_not_fit_is_a_row_without_numbers_and_the_others_stand(rows: Rows) -> None:
    words = (
        "--policies",
        "serialized,frozen_window",
        "--micro-batches",
        "64",
        "--set",
        "workload.batch=1_500_000",
    )
    serialized, window = rows(QUICKSTART, *words)
    assert serialized["step_ms"] is None and "does not fit in device memory" in serialized["notes"][0]
    assert window["step_ms"] > 0 and window["speedup"] is None and window["scaling_efficiency"] == 1.0


def test_when_nothing_fits_the_answer_is_no(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", QUICKSTART, "--set", "workload.batch=9_000_000"]) == 1
    assert "does not fit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--policies", "nestpip"], '--policies: no policy is called "nestpip" (did you mean "nestpipe"?)'),
        (["--policies", "nested"], "--policies: nested takes parameters, so write it in a scenario"),
        (["--workers", "8,many"], '--workers: "many" is not a number of workers'),
        (["--workers", "8,12"], "12 workers do not fill hosts of 8"),
        (["--micro-batches", "0"], "--micro-batches"),
    ],
)
def test_wrong_names_and_numbers_are_refused_before_anything_runs(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", QUICKSTART, *words]) == 2
    assert says in capsys.readouterr().err


def test_several_scenarios_follow_each_other(rows: Rows) -> None:
    found = rows(QUICKSTART, str(shipped_folder() / "recorded_keys.yaml"))
    assert [row["scenario"] for row in found] == ["quickstart", "recorded-keys"]


def test_the_table_fits_80_columns_and_warns_of_the_plain_sum(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["compare", NPU, "--policies", ",".join(FIVE), "--workers", "128,1536"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "stale_prefetch" in out and "is no evidence for the model" in " ".join(out.split())
    assert out.count("! 128 workers: 218 ms of each batch's lookup") == 1


def test_csv_has_one_record_per_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", QUICKSTART, "--policies", "serialized,dual_buffer", "--format", "csv"]) == 0
    header, *records = capsys.readouterr().out.splitlines()
    assert header.split(",")[:4] == ["scenario", "policy", "workers", "step_ms"] and len(records) == 2


def test_plots_are_drawn_beside_the_prefix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--policies",
        "serialized,dual_buffer",
        "--workers",
        "8,16",
        "--plot",
        str(tmp_path / "new" / "q"),
    ]
    assert run(["compare", QUICKSTART, *words]) == 0
    drawn = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert drawn == ["q-breakdown.png", "q-gantt-dual_buffer.png", "q-gantt-serialized.png"]
    assert "recscale: drew" in capsys.readouterr().err


def test_where_nothing_can_run_the_commonest_reasons_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--policies", "bagpipe,serialized,dual_buffer", "--workers", "8", "--engine", "vector"]
    assert run(["compare", NPU, *words]) == 1
    told = capsys.readouterr().err
    assert "none of 3 can run: 2 x " in told and "does not fit in host memory" in told
    assert "1 x " in told and "parameter servers" in told and told.count("\n") == 1


def drawn(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(["compare", *words]) == 0
    return capsys.readouterr().out


def test_on_80_columns_no_name_is_cut_and_one_size_has_no_scaling(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = ("serialized", "gradient_accumulation", "torchrec_sparse_dist", "two_d_sparse")
    out = drawn(capsys, QUICKSTART, "--policies", ",".join(names))
    assert all(f"\n{name} " in out for name in names)
    assert max(map(len, out.splitlines())) <= 80 and "scaling" not in out
    assert "scaling" in drawn(capsys, QUICKSTART, "--policies", "serialized", "--workers", "8,16")


def test_a_policy_that_does_not_apply_says_so_in_its_row(capsys: pytest.CaptureFixture[str]) -> None:
    lines = drawn(capsys, QUICKSTART, "--policies", "serialized,fae").splitlines()
    (place,) = [place for place, line in enumerate(lines) if line.startswith("fae ")]
    assert lines[place + 1] == "(not applicable)"
    large = drawn(capsys, NPU, "--policies", "nestpipe", "--workers", "16,128")
    assert "(cannot run)" in large


def test_the_help_says_where_policies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "--help"]) == 0
    assert "docs/concepts/policies.md" in capsys.readouterr().out


def test_a_policy_that_a_scenario_does_not_suit_leaves_the_others_their_rows(rows: Rows) -> None:
    caught_up = str(shipped_folder() / "servers" / "caught_up.yaml")
    found = {row["policy"]: row for row in rows(caught_up, "--policies", "bagpipe,no_cache")}
    assert found["bagpipe"]["step_ms"] is None
    assert "cannot run: " in found["bagpipe"]["notes"][0]
    assert "warm_up must be at least 201" in found["bagpipe"]["notes"][0]
    assert found["no_cache"]["step_ms"] > 0


def test_where_no_policy_can_run_the_scenario_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    caught_up = str(shipped_folder() / "servers" / "caught_up.yaml")
    assert run(["compare", caught_up, "--policies", "bagpipe"]) == 2
    assert "run.warm_up: warm_up must be at least 201" in capsys.readouterr().err


def test_where_nothing_can_run_scripts_still_get_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("json", "csv"):
        assert run(["compare", QUICKSTART, "--set", "workload.batch=9_000_000", "--format", form]) == 1
        told = capsys.readouterr()
        assert "does not fit" in told.err and "does not fit" in told.out
        assert form == "csv" or json.loads(told.out)[0]["step_ms"] is None


def test_scenarios_of_one_name_are_told_apart_by_their_files(rows: Rows, tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    text = Path(QUICKSTART).read_text(encoding="utf-8")
    first.write_text(text, encoding="utf-8")
    second.write_text(text.replace("batch: 8192", "batch: 4096"), encoding="utf-8")
    found = rows(str(first), str(second), str(first))
    assert [row["scenario"] for row in found] == [f"quickstart ({first})", f"quickstart ({second})"]
    assert found[0]["step_ms"] > found[1]["step_ms"]
    assert [row["scenario"] for row in rows(str(first), str(first))] == ["quickstart"]
