"""What could be misread is told: two runs of one name, efficiencies above 100 %, absurd steps, one worker."""

from pathlib import Path

import pytest

from analysis.compare import Request, compare
from analysis.ratios import why_above
from analysis.report.found import find_results
from analysis.report.records import Row
from analysis.report.relate import related
from analysis.saving import save_run
from simulator.scenario import load, run_scenario
from simulator.scenario.shipped_files import shipped_folder

QUICKSTART = shipped_folder() / "quickstart.yaml"
SHORT = ["run.batches=6", "run.warm_up=2"]
SMALL = "workload.tables=[{name: t, rows: 1e6, dimension: 128, copies: 26}]"
FAST = [
    "cluster.host={name: slow, cores: 64, dram_bytes: 1 TB, dram_bandwidth: 2 GB/s, dram_efficiency: 0.5}",
    "cluster.fabric={kind: two_level, within: 900 TB/s, between: 900 TB/s, latency: 0 s}",
]
ALONE = ["cluster.per_host=1", "cluster.hosts=1", SMALL, *SHORT]


def test_two_runs_that_share_a_name_are_both_shown_and_told_apart(tmp_path: Path) -> None:
    for folder, batch in (("slow", 1024), ("fast", 8192), ("again", 8192)):
        save_run(
            run_scenario(load(QUICKSTART, [f"workload.batch={batch}", *SHORT]), "vector"), tmp_path / folder
        )
    rows = find_results(tmp_path).rows
    assert {row.scenario for row in rows} == {"quickstart (slow)", "quickstart (fast)", "quickstart (again)"}
    assert len(related(rows)) == 3


def test_one_run_keeps_its_name_even_if_it_lies_there_twice(tmp_path: Path) -> None:
    for folder in ("one", "copy"):
        save_run(run_scenario(load(QUICKSTART, SHORT), "vector"), tmp_path / folder)
    assert {row.scenario for row in find_results(tmp_path).rows} == {"quickstart"}


def test_an_efficiency_above_one_says_which_part_of_the_baseline_shrinks() -> None:
    here, there = ({"compute_ms": 2.0, "exposed_lookup_ms": lookup} for lookup in (1.0, 5.0))
    [told] = why_above(1.1, here, there, 8)
    assert why_above(1.0, here, there, 8) == []
    assert "baseline of 8 workers" in told and "exposed lookup 5 ms a step there, 1 here" in told


def test_a_report_marks_efficiencies_above_one_with_their_reason() -> None:
    def row(workers: int, lookup: float) -> Row:
        parts = {"compute_ms": 2.0, "exposed_lookup_ms": lookup}
        step = sum(parts.values())
        return Row("s", "p", workers, step, workers * 1e3 / step, parts, None, None, 1.0, ())

    few, many = related([row(8, 4.0), row(16, 1.0)])
    assert many.efficiency == pytest.approx(2.0) and few.why_above == []
    assert many.why_above[0].startswith("p on 16 workers: scaling efficiency above 100 %")


def test_compare_marks_an_efficiency_above_one_and_no_other() -> None:
    """Rows that all batches ask for are read from host memory once for all: each owner's part shrinks."""
    table = "workload.tables=[{name: t, rows: 2e4, dimension: 1024, pooling: 20}]"
    settings = ["sharding={kind: row_wise, tier: dram}", "workload.batch=1024", table, *FAST, *SHORT]
    few, many = compare([load(QUICKSTART, settings)], Request(workers=(8, 32), engine="vector"))
    assert many.scaling_efficiency is not None and many.scaling_efficiency > 1.01
    assert any("above 100 %" in note and "exposed lookup" in note for note in many.notes)
    assert not any("above 100 %" in note for note in few.notes)


def test_a_step_of_hundreds_of_times_its_compute_is_told_with_a_note() -> None:
    usual, absurd = (
        run_scenario(load(QUICKSTART, [*SHORT, *more]), "vector").report.notes
        for more in ([], ["cluster.unexplained_host_time=1 s"])
    )
    assert not any("times its compute" in note for note in usual)
    assert any("times its compute" in note and "does not suit" in note for note in absurd)


def test_one_worker_has_no_all_to_all() -> None:
    report = run_scenario(load(QUICKSTART, ALONE)).report
    assert report.raw_ms["all_to_all"] == report.exposed_ms["all_to_all"] == 0.0
    assert report.raw_ms["lookup"] > 0.0 and report.collectives == []
    parts = report.compute_ms + sum(report.exposed_ms.values())
    assert parts == pytest.approx(report.step_ms["mean"])
