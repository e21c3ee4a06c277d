"""Planning: from a question to plans that nothing beats, with costs that can be checked by hand."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from analysis.cli.running import run
from analysis.plan import Answered, answer, read_question
from analysis.plan.advice import changes
from analysis.plan.candidates import Candidate
from analysis.plan.money import MoneySpec, OwnershipSpec
from analysis.plan.outcomes import Limit, Outcome
from analysis.plan.pareto import pareto
from analysis.plan.words import in_words
from simulator.errors import InputError
from simulator.hardware.catalog import entry
from simulator.hardware.catalog.build import quantity
from simulator.scenario import load, run_scenario
from simulator.scenario.shipped_files import shipped_folder

pytestmark = pytest.mark.slow

SCENARIO = """
cluster: {accelerator: a100_80, per_host: 8, hosts: 1, fabric: dgx_a100}
workload:
  model: {kind: mlp, inputs: 512, layers: [1024, 256, 1], precision: tf32}
  tables: [{name: items, rows: 1e6, dimension: 64, pooling: 8}]
  keys: {kind: zipf, exponent: 1.0}
  batch: 2048
sharding: {kind: row_wise, tier: dram}
policy: {kind: serialized}
run: {batches: 30, warm_up: 8}
"""
QUESTION = """
scenario: base.yaml
target: {samples: 1e12%s}
hardware: [{name: a100, workers: [8, 16, 32], money: {price: 2 USD/h, power: 500 W}}]
policies: [{kind: serialized}, {kind: stale_prefetch}, {kind: nestpipe}]
micro_batches: [2, 4]
"""


def asked(folder: Path, text: str) -> Answered:
    (folder / "base.yaml").write_text(SCENARIO, encoding="utf-8")
    (folder / "ask.plan.yaml").write_text(text, encoding="utf-8")
    with ThreadPoolExecutor(1) as executor:
        return answer(read_question(folder / "ask.plan.yaml"), executor)


def outcome(
    hours: float, usd: float | None, kwh: float | None = 1.0, over: tuple[Limit, ...] = ()
) -> Outcome:
    return Outcome(Candidate(f"{hours} {usd}", "a", 8, ()), {}, hours, usd, kwh, None, over)


def test_hours_dollars_and_energy_follow_from_throughput_price_and_power(tmp_path: Path) -> None:
    found = asked(tmp_path, QUESTION % "")
    plan = found.plans[0]
    hours = 1e12 / plan.record["throughput_samples_per_s"] / 3600
    assert plan.hours == pytest.approx(hours)
    assert plan.usd == pytest.approx(hours * plan.candidate.workers * 2)
    assert plan.kwh == pytest.approx(hours * plan.candidate.workers * 0.5)


def test_a_plan_is_what_its_scenario_gives_event_by_event(tmp_path: Path) -> None:
    plan = asked(tmp_path, QUESTION % "").plans[0]
    settings = dict(plan.candidate.settings)
    scenario = load(tmp_path / "base.yaml").with_policy(settings["policy"])
    report = run_scenario(scenario.with_workers(plan.candidate.workers)).report
    assert plan.record["step_mean_ms"] == report.step_ms["mean"]


def test_no_plan_beats_another_and_stale_policies_are_left_out_unless_allowed(tmp_path: Path) -> None:
    found = asked(tmp_path, QUESTION % "")
    assert found.plans == pareto(found.plans)
    assert all(plan.record["staleness_declared_steps"] == 0 for plan in found.plans)
    assert found.refused == 3
    allowed = asked(tmp_path, QUESTION % "" + "limits: {staleness_steps: 1}\n")
    assert allowed.refused == 0


def test_the_same_question_has_the_same_answer(tmp_path: Path) -> None:
    assert asked(tmp_path, QUESTION % "").to_dict() == asked(tmp_path, QUESTION % "").to_dict()


def test_optuna_gives_the_same_answer_twice_and_only_plans_that_exist(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    text = QUESTION % "" + "search: {kind: optuna, trials: 12, seed: 3}\n"
    first, second = asked(tmp_path, text), asked(tmp_path, text)
    everything = asked(tmp_path, QUESTION % "")
    assert first.to_dict() == second.to_dict()
    assert 0 < first.tried <= 12
    assert everything.tried == 12


def test_an_infeasible_question_says_what_would_make_it_feasible(tmp_path: Path) -> None:
    found = asked(tmp_path, QUESTION % ", within: 1 s")
    best = min(change.outcome.hours for change in found.changes)
    assert found.plans == []
    assert found.chosen is None
    assert "hours instead of" in found.changes[0].what
    again = asked(tmp_path, QUESTION % f", within: {best * 3600 * 1.001:.6g} s")
    assert again.plans, "the change that was named makes the question feasible"


def test_of_ways_to_feasibility_those_that_change_fewest_limits_are_named() -> None:
    both = outcome(2, 2, over=(Limit("hours", 2.0, 1.0), Limit("USD", 2.0, 1.0)))
    slow = outcome(9, 1, over=(Limit("hours", 9.0, 1.0),))
    dear = outcome(1, 3, over=(Limit("USD", 3.0, 1.0),))
    assert [change.outcome for change in changes([both, slow, dear])] == [dear, slow]


def test_a_plan_that_is_beaten_in_everything_is_dropped_and_equal_ones_stand_once() -> None:
    fast, cheap, beaten = outcome(1, 10), outcome(5, 2), outcome(6, 11)
    assert pareto([beaten, cheap, fast]) == [fast, cheap]
    assert len(pareto([outcome(1, 1), outcome(1, 1)])) == 1


def test_an_unknown_cost_loses_against_a_known_one() -> None:
    known, unknown = outcome(1, 10), outcome(1, None)
    assert pareto([unknown, known]) == [known]


def test_owning_costs_capital_over_used_hours_and_electricity() -> None:
    parts = OwnershipSpec.model_validate(
        {
            "accelerator": "20 kUSD",
            "cpu": "1 kUSD",
            "ram": "1 kUSD",
            "tray": "1 kUSD",
            "network": "1 kUSD",
            "lifetime": "4 year",
            "utilization": "50 %",
            "power": "1000 W",
            "overhead": 1.2,
            "electricity": "0.1 USD/kWh",
        }
    )
    assert parts.usd_per_hour == pytest.approx(24_000 / (4 * 365 * 24 / 2) + 1.2 * 0.1)
    assert MoneySpec(ownership=parts).watts == pytest.approx(1200)


WRONG = {
    QUESTION.replace("nestpipe}", "nestpip}") % "": "nestpip",
    QUESTION.replace("micro_batches: [2, 4]\n", "") % "": "needs micro_batches",
    QUESTION.replace("1e12", "0") % "": "target.samples",
    QUESTION.replace("1e12", "true") % "": "target.samples",
    QUESTION % ", within: 5": "target.within",
    QUESTION.replace("price: 2 USD/h", "prise: 2 USD/h") % "": "prise",
    QUESTION % "" + "limits: {workers: 4}\n": "no candidate",
    QUESTION % ", within: 3 d": 'target.within: unknown unit "d"; did you mean "day"?',
    QUESTION.replace(
        "workers: [8, 16, 32]", "cluster: {accelerator: H100, per_host: 8, hosts: 1}, workers: [8]"
    )
    % "": '4: hardware[0].cluster.accelerator: the catalog has no accelerator "H100" (did you mean "h100"?)',
    QUESTION.replace(
        "workers: [8, 16, 32]", "cluster: {accelerator: h100, per_hots: 8, hosts: 1}, workers: [8]"
    )
    % "": '4: hardware[0].cluster.per_hots: unknown key "per_hots" (did you mean "per_host"?)',
    QUESTION.replace("workers: [8, 16, 32]", "settings: {workload.modle.kind: mlp}, workers: [8]")
    % "": 'hardware[0].settings."workload.modle.kind": unknown key "modle" (did you mean "model"?)',
    QUESTION.replace("[8, 16, 32]", "[8, 12]") % "": (
        "hardware[0].workers[1]: 12 workers do not fill hosts of 8: take 8 or 16"
    ),
    QUESTION.replace("{kind: stale_prefetch}", "{kind: dual_buffer, bufers: 1}") % "": (
        '5: policies[1].bufers: unknown key "bufers" (did you mean "buffers"?)'
    ),
    QUESTION % "" + "sharding: [{kind: row_wise}, {kind: row_wize}]\n": "7: sharding[1]",
    QUESTION.replace("workers:", "settings: {policy.buffers: 7}, workers:") % "": (
        'hardware[0].settings."policy.buffers": is replaced by `policies` of the question: leave it out'
    ),
    QUESTION.replace("workers:", "settings: {workload.batch: 77}, workers:") % "" + "batch: [64]\n": (
        "is replaced by `batch` of the question"
    ),
    QUESTION.replace("workers:", "settings: {sharding.tier: hbm}, workers:") % ""
    + "sharding: [{kind: row_wise}]\n": "is replaced by `sharding` of the question",
}


def test_settings_that_nothing_replaces_reach_the_candidates(tmp_path: Path) -> None:
    text = QUESTION.replace("workers:", "settings: {workload.batch: 77, sharding.tier: hbm}, workers:") % ""
    settings = dict(asked(tmp_path, text).plans[0].candidate.settings)
    assert settings["workload.batch"] == 77 and settings["sharding.tier"] == "hbm"


@pytest.mark.parametrize("text", WRONG, ids=lambda text: WRONG[text])
def test_a_wrong_question_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as refused:
        asked(tmp_path, text)
    assert WRONG[text] in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path))


def command(folder: Path, text: str, *words: str) -> int:
    (folder / "base.yaml").write_text(SCENARIO, encoding="utf-8")
    (folder / "ask.plan.yaml").write_text(text, encoding="utf-8")
    return run(["plan", str(folder / "ask.plan.yaml"), "--jobs", "1", *words])


def test_where_no_candidate_can_run_the_reason_is_told_with_the_options_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = QUESTION.replace("[{kind: serialized}, {kind: stale_prefetch}, {kind: nestpipe}]", "[{kind: fae}]")
    assert command(tmp_path, text % "") == 1
    assert "no candidate can run: 3 x a100: policy: not applicable here" in capsys.readouterr().err


def test_a_choice_beyond_the_plans_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = len(asked(tmp_path, QUESTION % "").plans)
    there = "is 1 plan" if count == 1 else f"are {count} plans"
    assert command(tmp_path, QUESTION % "", "--choose", "99") == 2
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1] == f"recscale: --choose: there {there}, not 99"  # after signs of life
    assert printed.out == ""


def test_how_many_candidates_break_which_limit_is_counted(tmp_path: Path) -> None:
    found = asked(tmp_path, QUESTION % ", within: 1 s, budget: 1 USD")
    assert found.broken == {"hours": 12, "USD": 12, "steps of staleness": 3}
    assert found.to_dict()["broken"] == found.broken
    assert found.refused == 12


def test_the_answer_repeats_the_question_and_says_what_its_prices_rest_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = QUESTION.replace(", money: {price: 2 USD/h, power: 500 W}", "") % ", within: 900 day"
    assert command(tmp_path, text) == 0
    words = " ".join(capsys.readouterr().out.split())
    price = entry("accelerator", "a100_80")["price_usd_per_hour"]
    assert "1,000,000,000,000 samples, within 21,600 h" in words and "synchronous training only" in words
    assert f"{quantity('price_usd_per_hour', price['value']):.4g} USD/h (catalog, a100_80: " in words
    assert " to ".join(price["range"]) in words
    assert "no software is counted" in words and "checkpoints and failures are left out" in words
    assert "W (catalog, a100_80: " in words and "of it are its part of the host" in words
    basis = asked(tmp_path, QUESTION % "").basis
    assert basis.rates[0].usd_per_hour.amount == pytest.approx(2)
    assert basis.rates[0].usd_per_hour.of == "money.price of the question"


def test_software_is_said_to_be_counted_where_it_is(tmp_path: Path) -> None:
    text = QUESTION.replace("workers:", "settings: {software: torchrec}, workers:") % ""
    assert asked(tmp_path, text).basis.assumptions[0].startswith("the software of the scenario is counted")
    both = text.replace("hardware: [", "hardware: [{name: bare, workers: [8]}, ")
    assert "counted for a100 only" in asked(tmp_path, both).basis.assumptions[0]


def test_policies_and_shardings_stand_in_words() -> None:
    assert in_words({"kind": "nestpipe", "micro_batches": 4}) == "nestpipe, micro_batches 4"
    nested = {"kind": "nested", "inter_batch": {"kind": "serialized"}, "cap": [1, True]}
    assert in_words(nested) == "nested, inter_batch (serialized), cap [1, true]"


def test_the_chosen_plan_is_written_as_a_scenario_that_gives_the_same_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert command(tmp_path, QUESTION % "", "--out", str(out)) == 0
    told = json.loads((out / "answer.json").read_text(encoding="utf-8"))
    plan = told["plans"][told["chosen"]]
    capsys.readouterr()
    assert run(["run", str(out / "scenario.yaml"), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["step_ms"]["mean"] == plan["step_ms"]
    assert report["ranks"] == plan["workers"]


def test_a_price_of_the_question_is_said_to_be_missing_in_the_written_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, told = tmp_path / "out", "the plan counts 2 USD/h and 500 W per accelerator, as the question says"
    assert command(tmp_path, QUESTION % "", "--out", str(out)) == 0
    assert told in (out / "scenario.yaml").read_text(encoding="utf-8").splitlines()[1]
    assert told in capsys.readouterr().err
    text = QUESTION.replace(", money: {price: 2 USD/h, power: 500 W}", "") % ""
    assert command(tmp_path, text, "--out", str(out)) == 0
    assert "the plan counts" not in (out / "scenario.yaml").read_text(encoding="utf-8")


def test_files_that_the_chosen_scenario_names_go_with_it(tmp_path: Path) -> None:
    study = tmp_path / "study"
    shutil.copytree(shipped_folder(), study)
    text = """
scenario: recorded_keys.yaml
target: {samples: 1e9}
hardware: [{name: own, workers: [8]}]
policies: [{kind: serialized}]
"""
    (study / "ask.plan.yaml").write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    assert run(["plan", str(study / "ask.plan.yaml"), "--jobs", "1", "--out", str(out)]) == 0
    assert run(["check", str(out / "scenario.yaml")]) == 0
    assert any((out / "data").iterdir())


def test_without_a_plan_only_the_answer_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert command(tmp_path, QUESTION % ", within: 1 s", "--out", str(out)) == 1
    assert [path.name for path in out.iterdir()] == ["answer.json"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["plan", "quickstart.yaml"], "is a scenario, not a planning question; recscale run takes it"),
        (
            ["run", "planning/retrain.plan.yaml"],
            "is a planning question, not a scenario; recscale plan takes it",
        ),
        (["explain", "nestpipe/scaling.grid.yaml"], "is a grid, not a scenario; recscale sweep takes it"),
        (["sweep", "quickstart.yaml", "--out", "x"], "is a scenario, not a grid; recscale run takes it"),
    ],
)
def test_a_file_of_another_kind_is_refused_by_its_name(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([words[0], str(shipped_folder() / words[1]), *words[2:]]) == 2
    error = capsys.readouterr().err
    assert says in error and len(error.strip().splitlines()) == 1


@pytest.mark.nightly
def test_the_shipped_question_has_an_answer_that_meets_its_target() -> None:
    question = read_question(shipped_folder() / "planning" / "retrain.plan.yaml")
    with ThreadPoolExecutor(1) as executor:
        found = answer(question, executor)
    assert len(found.plans) >= 2
    assert found.failed == 0
    assert all(plan.hours <= 48 and (plan.usd or 0) <= 8000 for plan in found.plans)
    assert found.gains[0].saved_share > 0.01
