"""`recscale shard`: tables placed on chips, judged, and written for scenarios and for TorchRec."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.cli.running import run
from analysis.placing import placed
from analysis.placing_by_step import placed_by_step
from analysis.planning import PlacingRequest
from analysis.sharding_parts import placed_part, spans, written
from simulator.hardware import catalog
from simulator.scenario import load, run_scenario
from simulator.scenario.shipped_files import shipped_folder
from simulator.sharding.load import RankLoad
from simulator.sharding.placement.torchrec import read_torchrec_plan
from simulator.workload.tables import KEY_BYTES

QUICKSTART = str(shipped_folder() / "quickstart.yaml")
RECORDED = str(shipped_folder() / "recorded_keys.yaml")
LOG = str(shipped_folder() / "data" / "open_bandit_bts_women.csv.gz")

Command = Callable[..., Any]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command in 80 columns; return exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "80")

    def command(*words: str) -> tuple[int, str, str]:
        code = run(["shard", *words])
        return (code, *capsys.readouterr())

    return command


def test_the_table_names_chips_tables_and_the_verdict_in_80_columns(told: Command) -> None:
    code, out, err = told(QUICKSTART)
    assert code == 0 and err == ""
    assert max(map(len, out.splitlines())) <= 80
    assert out.startswith("quickstart: a new plan (greedy) beside the scenario's own sharding\n26 tables in ")
    assert "; imbalance 1.000 now -> " in " ".join(out.split())
    for words in ("on 8 chips", "imbalance", "busiest chip", "room for", "cat_19", "(6 more)"):
        assert words in out


def test_json_holds_every_piece_and_whether_the_placement_is_proven(told: Command) -> None:
    code, out, _ = told(QUICKSTART, "--whole", "--format", "json")
    data = json.loads(out)
    assert code == 0 and (data["chips"], len(data["shards"])) == (8, 26)
    loads = np.bincount(
        [shard["chip"] for shard in data["shards"]], [shard["load"] for shard in data["shards"]], 8
    )
    assert data["loads"] == pytest.approx(loads.tolist())
    assert data["imbalance"] == pytest.approx(8 * loads.max() / loads.sum())
    assert data["gap"] == pytest.approx(data["busiest"] / data["bound"] - 1) and data["proven"] is False
    assert data["feedback"] is None and data["own"]["imbalance"] == pytest.approx(1.0)


def test_csv_has_one_record_per_piece(told: Command) -> None:
    header, *records = told(QUICKSTART, "--whole", "--format", "csv")[1].splitlines()
    assert header == "table,chip,kind,rows,columns,load,bytes,memory_bytes" and len(records) == 26


@pytest.mark.parametrize("name", ["quickstart.yaml", "sharding/mixture.yaml", "sharding/pooled.yaml"])
def test_a_run_of_the_placed_tables_counts_the_loads_that_placement_evened_out(name: str) -> None:
    """Whole tables agree to rounding; the hottest row of a cut one is spread by a run, not by placement."""
    scenario = load(shipped_folder() / name)
    placing = placed(scenario, PlacingRequest())
    again = scenario.with_overrides([f"sharding={written(placed_part(placing), 'placed')}"])
    loads = RankLoad.of(again.step.traffic)
    counted = loads.lookups * KEY_BYTES + loads.bytes
    assert counted == pytest.approx(placing.placement.loads, rel=2e-3)


def test_a_written_part_is_a_sharding_part_that_runs(told: Command, tmp_path: Path) -> None:
    part, mixture = tmp_path / "new" / "part.yaml", str(shipped_folder() / "sharding" / "mixture.yaml")
    code, _, err = told(mixture, "--out", str(part), "--format", "csv")
    assert code == 0 and err == f"recscale: wrote {part}\n"
    again = load(mixture, [f"sharding={part.read_text(encoding='utf-8')}"])
    now = RankLoad.of(again.step.traffic).imbalance["bytes"]
    assert now < 1.2 < RankLoad.of(load(mixture).step.traffic).imbalance["bytes"]
    assert again.step.placed.world.replicas == 1


def test_tiers_copies_and_tables_on_all_chips_are_carried_over() -> None:
    rules = "[{tables: ['tiny_*'], sharding: {kind: data_parallel}}]"
    own = f"{{kind: mixture, replicas: 2, default: {{kind: row_wise, tier: dram}}, rules: {rules}}}"
    scenario = load(QUICKSTART, [f"sharding={own}"])
    placing = placed(scenario, PlacingRequest(whole=True))
    assert placing.placement.chips.count == 4 and placing.memory == "host"
    again = scenario.with_overrides([f"sharding={written(placed_part(placing), 'placed')}"])
    assert [table.name for table in again.step.placed.replicated] == [f"tiny_{n}" for n in range(11)]
    assert again.step.placed.world.replicas == 2
    assert {shard.piece.kind.home.noun for shard in again.step.placed.shards} == {"host memory"}


def test_one_table_on_all_chips_is_written_as_row_wise() -> None:
    scenario = load(shipped_folder() / "nestpipe" / "npu.yaml", ["cluster.hosts=5"])
    placing = placed(scenario, PlacingRequest())
    assert len(placing.placement.shards) == 40
    (rule,) = placed_part(placing)["rules"]
    assert rule == {"tables": ["items"], "sharding": {"kind": "row_wise", "tier": "dram"}}


def test_sums_of_rows_are_never_cut_by_rows(told: Command) -> None:
    pooled = str(shipped_folder() / "sharding" / "pooled.yaml")
    data = json.loads(told(pooled, "--format", "json")[1])
    assert {shard["kind"] for shard in data["shards"]} <= {"table", "column"}
    assert "by columns only" in told(pooled)[1]


def test_a_table_whose_pieces_meet_on_one_chip_is_whole_again() -> None:
    scenario = load(shipped_folder() / "sharding" / "cached.yaml")
    placement = placed(scenario, PlacingRequest()).placement
    for table in {shard.table for shard in placement.shards}:
        pieces = placement.of_table(table)
        assert len(pieces) == 1 or len({chip for _, chip in pieces}) > 1


def test_a_log_changes_the_placement_and_the_gain_is_told(told: Command) -> None:
    """With uniform keys all six tables look alike to a small batch; the log knows better."""
    words = [RECORDED, "--set", "workload.keys={kind: uniform}", "--set", "cluster.per_host=4"]
    words += ["--set", "workload.batch=8", "--keys", LOG]
    data = json.loads(told(*words, "--format", "json")[1])
    feedback = data["feedback"]
    assert feedback["gain"] == pytest.approx(feedback["imbalance_before"] / data["imbalance"])
    assert feedback["gain"] > 1.05
    assert "by the log    gain 1." in told(*words)[1]


def test_a_scenario_that_knows_the_log_gains_nothing_from_it(told: Command) -> None:
    data = json.loads(told(RECORDED, "--keys", LOG, "--format", "json")[1])
    assert data["feedback"]["gain"] == 1.0
    assert "no gain" in told(RECORDED, "--keys", LOG)[1]


def test_the_search_is_at_least_as_good_as_longest_first(told: Command) -> None:
    pytest.importorskip("ortools", reason="the extra [planner] is not installed")
    first = json.loads(told(QUICKSTART, "--format", "json")[1])
    best = json.loads(told(QUICKSTART, "--exact", "--seconds", "1", "--format", "json")[1])
    assert best["busiest"] <= first["busiest"] and best["method"].startswith("cp-sat")


def test_without_the_solver_the_search_is_refused_in_one_line(
    told: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    code, out, err = told(QUICKSTART, "--exact")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert 'pip install "recscale[planner]"' in err


def test_the_torchrec_plan_holds_the_same_pieces(told: Command, tmp_path: Path) -> None:
    for name in ("plan.json", "plan.txt"):
        code, out, err = told(QUICKSTART, "--export-torchrec", str(tmp_path / name), "--format", "json")
        assert code == 0 and name in err
        plan = read_torchrec_plan(tmp_path / name)
        pieces = {
            (table.name, shard.rank, shard.rows.start) for table in plan.tables for shard in table.shards
        }
        ours = {(one["table"], one["chip"], one["rows"][0]) for one in json.loads(out)["shards"]}
        assert pieces == ours and {table.kernel for table in plan.tables} == {"fused"}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--seconds", "3"], 2, "--seconds says how long to search with --exact"),
        (["--separator", "|"], 2, "--separator belongs to the log"),
        (["--keys", LOG], 2, 'there is no column "cat_0"'),
        (["--keys", "missing.csv"], 2, "missing.csv: there is no such file"),
        (["--set", "sharding={kind: data_parallel}"], 2, "every chip holds all tables"),
        (
            ["--set", "sharding={kind: row_wise, tier: {kind: remote, servers: 2}}"],
            2,
            "lives on parameter servers",
        ),
        (["--set", "workload.tables[0].rows=4e10"], 1, 'table "cat_0" does not fit'),
        (["--set", "workload.batch=4_000_000"], 1, "no room for tables in device memory"),
        (["--out", "/dev/null/part.yaml"], 2, "/dev/null"),
    ],
)
def test_what_cannot_be_placed_is_refused_in_one_line(
    told: Command, words: list[str], code: int, says: str
) -> None:
    answer = told(QUICKSTART, *words)
    assert answer[0] == code and answer[1] == ""
    assert answer[2].startswith("recscale: ") and answer[2].count("\n") == 1
    assert says in answer[2]


def test_tables_in_several_memories_are_refused_by_name(told: Command) -> None:
    rules = "[{tables: [cat_0], sharding: {kind: row_wise, tier: dram}}]"
    own = f"sharding={{kind: mixture, default: {{kind: row_wise, tier: hbm}}, rules: {rules}}}"
    code, _, err = told(QUICKSTART, "--set", own)
    assert code == 2 and "in one memory" in err and '"cat_0" in host memory' in err


def test_a_log_with_more_keys_than_rows_is_refused(told: Command) -> None:
    words = ["--set", "workload.tables[0].rows=40", "--set", "workload.keys={kind: uniform}", "--keys", LOG]
    code, _, err = told(RECORDED, *words)
    assert code == 2 and 'table "item_id" has 40 rows, but the log names 46' in err


def test_numbers_in_a_row_are_told_in_short() -> None:
    assert spans([0, 1, 2, 3, 7, 9, 10]) == "0-3,7,9-10"
    assert spans([]) == ""


@pytest.mark.parametrize("order", [("h200", "h100"), ("h100", "h200")])
def test_tables_are_placed_by_the_smallest_memory_of_all_groups(order: tuple[str, str]) -> None:
    groups = ", ".join(f"{{accelerator: {name}, hosts: 1}}" for name in order)
    fitting = [
        f"cluster.groups=[{groups}]",
        "workload.tables=[{name: a, rows: 1e6, dimension: 64, copies: 8}]",
    ]
    scenario = load(
        shipped_folder() / "fabrics" / "mixed.yaml", [*fitting, "sharding={kind: table_wise, tier: hbm}"]
    )
    room = placed(scenario, PlacingRequest()).placement.chips.memory
    assert room < catalog.accelerator("h100").hbm_bytes < catalog.accelerator("h200").hbm_bytes


HOT = """
name: hot
cluster: {accelerator: h100, per_host: 8, hosts: 1, host: dgx_h100, fabric: dgx_h100}
workload:
  model: {kind: dlrm, dense_features: 13, embedding_features: 8, dimension: 128, bottom: [512, 128],
    top: [512, 1], precision: tf32}
  tables:
    - {name: cold, rows: 1_000_000, dimension: 128, pooling: 5, copies: 7}
    - {name: hot, rows: 10_000_000, dimension: 128, pooling: 300}
  keys: {kind: zipf, exponent: 0.9}
  batch: 4096
  optimizer: adagrad
sharding: {kind: table_wise, tier: hbm, exchange: pooled}
policy: {kind: torchrec_sparse_dist}
run: {batches: 20, warm_up: 8}
"""


@pytest.fixture
def hot(tmp_path: Path) -> str:
    path = tmp_path / "hot.yaml"
    path.write_text(HOT)
    return str(path)


def test_a_table_that_one_chip_reads_for_all_is_cut_and_the_step_falls(told: Command, hot: str) -> None:
    """Bytes on the network are fewest while it is whole: keys travel once. The step is not."""
    data = json.loads(told(hot, "--format", "json")[1])
    before, after = data["step_ms"]["before"], data["step_ms"]["after"]
    assert sum(shard["table"] == "hot" for shard in data["shards"]) == 8
    assert after < 0.5 * before
    assert before == pytest.approx(run_scenario(load(hot)).report.step_ms["mean"])
    steps = {
        one["objective"]: one["step_ms"] for one in data["candidates"] if one["narrowest_columns"] == 128
    }
    assert steps["bytes"] == pytest.approx(before)
    assert after <= 1.01 * min(one["step_ms"] for one in data["candidates"])


def test_the_step_that_shard_names_is_that_of_a_run_with_what_it_writes(
    told: Command, hot: str, tmp_path: Path
) -> None:
    part = tmp_path / "part.yaml"
    data = json.loads(told(hot, "--out", str(part), "--format", "json")[1])
    again = load(hot, [f"sharding={part.read_text(encoding='utf-8')}"])
    assert data["step_ms"]["after"] == pytest.approx(run_scenario(again).report.step_ms["mean"])


def test_proven_is_said_of_bytes_and_of_the_linear_time_and_never_of_the_step(
    told: Command, hot: str
) -> None:
    text = " ".join(told(hot, "--whole")[1].split())
    assert "proven: no placement with these cuts has fewer bytes there" in text
    assert "proven: no placement with these cuts has less under this linear cost" in text
    (step,) = [line for line in told(hot, "--whole")[1].splitlines() if line.startswith("step ")]
    assert "proven" not in step and "best" not in step


def test_no_placement_of_whole_tables_is_shorter_than_the_bound_on_the_linear_time() -> None:
    """All 81 placements of four tables on three chips."""
    tables = (
        "["
        + ", ".join(f"{{name: t{n}, rows: 1e5, dimension: {64 * n}, pooling: {n}}}" for n in (1, 2, 3, 5))
        + "]"
    )
    scenario = load(
        QUICKSTART, [f"workload.tables={tables}", "cluster.per_host=3", "sharding.kind=table_wise"]
    )
    steps = placed_by_step(scenario, PlacingRequest(whole=True)).steps
    assert steps is not None
    loads = [shard.load for shard in steps.linear.shards]
    longest = min(
        max(sum(load for load, at in zip(loads, chips, strict=True) if at == chip) for chip in range(3))
        for chips in product(range(3), repeat=4)
    )
    assert steps.linear.bound <= longest * (1 + 1e-9)
    assert steps.linear.busiest >= longest * (1 - 1e-9)


def test_a_pooled_table_larger_than_a_chip_is_cut_until_it_fits(told: Command, hot: str) -> None:
    code, out, _ = told(hot, "--set", "workload.tables[1].rows=3e8", "--format", "json")
    data = json.loads(out)
    assert code == 0 and data["step_ms"]["before"] is None
    assert max(data["memory_bytes"]) <= data["memory_bytes_per_chip"]
