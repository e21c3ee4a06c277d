"""What a report says about whom: the slowest rank, sums over a batch, and what lies beyond the data."""

import pytest

from simulator.costs.curve_catalog import curve
from simulator.errors import InputError
from simulator.results.report import StepReport
from simulator.scenario import load, run_scenario
from simulator.scenario.priced import PRICE_OF
from simulator.scenario.shipped_files import shipped_folder


def report(name: str, *settings: str) -> StepReport:
    return run_scenario(load(shipped_folder() / name, ["run.batches=40", *settings]), "vector").report


def test_a_straggler_is_reported_as_the_rank_that_computes_longest() -> None:
    usual = report("quickstart.yaml")
    slow = report("quickstart.yaml", "cluster.slow=[{ranks: [3], compute: 0.5}]")
    assert slow.compute_ms > 1.8 * usual.compute_ms
    assert slow.raw_ms["compute"] == pytest.approx(slow.compute_ms)
    assert slow.exposed_ms["other"] == pytest.approx(0.0, abs=1e-9)


def test_host_time_in_the_notes_is_that_of_one_batch_however_long_the_period() -> None:
    once = report("nestpipe/npu.yaml", "run.batches=60")
    unrolled = report("sharding/two_d_sparse.yaml", "sharding.replicas.every=4", "run.batches=80")
    held = [
        next(note for note in one.notes if "host time" in note).split(" ms")[0] for one in (once, unrolled)
    ]
    assert held[0] == held[1]


@pytest.mark.parametrize(
    ("setting", "word"), [("workload.batch=256", "batch 256"), ("cluster.hosts=192", "workers 1,536")]
)
def test_a_size_outside_of_the_fit_is_marked(setting: str, word: str) -> None:
    assert report("nestpipe/npu.yaml", "cluster.hosts=64", "run.batches=60").extrapolated == []
    marked = report("nestpipe/npu.yaml", "cluster.hosts=64", "run.batches=60", setting).extrapolated
    assert [text for text in marked if text.startswith(word)]


def test_what_was_left_out_and_taken_to_be_perfect_is_said() -> None:
    said = report(
        "quickstart.yaml",
        "workload.input=null",
        "cluster.fabric={kind: two_level, within: 300 GB/s, between: 25 GB/s, latency: 10 us}",
    ).notes
    assert any("input pipeline" in note for note in said)
    assert any("nominal rate" in note for note in said)
    assert all(note.startswith(PRICE_OF) for note in report("quickstart.yaml").notes)


def test_a_cycle_through_many_batches_names_each_stage_once() -> None:
    names = report("sharding/two_d_sparse.yaml", "sharding.replicas.every=4", "run.batches=80").bottleneck
    assert len(names) == len(set(names)) > 1


def test_a_measured_collective_takes_what_was_measured_and_is_named_so() -> None:
    name = "clustera_nccl2_29_2_all_to_all"
    setting = f"cluster.collectives={{all_to_all: {name}}}"
    found = report("fabrics/fat_tree.yaml", "cluster.hosts=2", setting)
    row = next(row for row in found.collectives if row["name"] == "exchange.0")
    seconds = curve(name).seconds(row["bytes"], 16, 2)
    assert row["algorithm"] == "measured"
    assert row["algbw_gbps"] == pytest.approx(row["bytes"] / seconds / 1e9)


def test_a_curve_of_another_operation_is_refused() -> None:
    with pytest.raises(InputError, match="was measured for all_reduce"):
        report("quickstart.yaml", "cluster.collectives={all_to_all: aws_p5_nccl_all_reduce}")
