"""A plan is what trying everything event by event gives: the same candidates that nothing beats."""

import random
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from analysis.plan import answer, read_question
from analysis.plan.advice import changes
from analysis.plan.candidates import Space
from analysis.plan.outcomes import Outcome, outcome_of
from analysis.plan.pareto import pareto
from analysis.plan.question import Question
from analysis.sweep.points import run_point

FEW, MANY = 10, 200
SCENARIO = """
name: small
cluster:
  accelerator: a100_80
  per_host: 4
  hosts: 1
  host: {{name: h, cores: 64, dram_bytes: 2 TB, dram_bandwidth: {dram} GB/s, dram_efficiency: 0.5}}
  fabric: {{kind: two_level, within: 100 GB/s, between: {between} GB/s, latency: 10 us}}
workload:
  model: {{kind: mlp, inputs: 256, layers: [512, 256, 1], precision: tf32}}
  tables: [{tables}]
  keys: {{kind: uniform}}
  batch: {batch}
  input: {{bytes: 400 B, cpu_time: {cpu} us}}
sharding: {{kind: row_wise, tier: dram}}
policy: {{kind: serialized}}
run: {{batches: 24, warm_up: 8}}
"""


class Here(Executor):
    """Runs work where it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def scenario_text(draw: random.Random) -> str:
    count = draw.choice((1, 2, 5))
    tables = ", ".join(
        f"{{name: t{place}, rows: {draw.choice((1e5, 1e6))}, dimension: {draw.choice((32, 128))}, "
        f"pooling: {draw.choice((1, 20))}}}"
        for place in range(count)
    )
    return SCENARIO.format(
        dram=draw.choice((20, 100, 400)),
        between=draw.choice((1, 20)),
        tables=tables,
        batch=draw.choice((256, 2048)),
        cpu=draw.choice((0, 2, 20)),
    )


def question_text(draw: random.Random) -> str:
    tiers = ("dram", "hbm")
    options = []
    for place in range(draw.choice((1, 2, 3))):
        settings = [
            f"cluster.host.dram_bandwidth: {draw.choice((10, 50, 200))} GB/s",
            f"cluster.host_limit: {draw.choice((1, 2, 4))}",
        ]
        if draw.random() < 0.3:
            settings += ["cluster.slow: [{ranks: [1], host: 0.5, memory: 0.5}]"]
        chosen = draw.sample(settings, draw.randint(0, len(settings)))
        money = f"price: {draw.choice((1, 2, 5))} USD/h, power: {draw.choice((300, 700))} W"
        options += [
            f"  - {{name: o{place}, workers: {draw.choice(([4], [8], [4, 8]))}, money: {{{money}}}, "
            f"settings: {{{', '.join(chosen)}}}}}"
        ]
    kinds = ("table_wise", "row_wise")
    shardings = [f"{{kind: {kind}, tier: {tier}}}" for kind in kinds for tier in tiers]
    policies = ["serialized", "dual_buffer", "stale_prefetch", "nestpipe, micro_batches: 2"]
    lines = ["scenario: base.yaml", "hardware:", *options]
    lines += [
        f"policies: [{', '.join(f'{{kind: {one}}}' for one in draw.sample(policies, draw.choice((1, 2))))}]"
    ]
    lines += [f"sharding: [{', '.join(draw.sample(shardings, draw.choice((1, 2, 3))))}]"]
    lines += ["limits: {staleness_steps: 1}"] * (draw.random() < 0.5)
    return "\n".join(lines)


def limited(draw: random.Random, outcomes: list[Outcome]) -> str:
    """A target that about half of the candidates meet."""
    limit = draw.choice(("none", "within", "budget", "throughput", "both"))
    hours = draw.choice(outcomes).hours * draw.choice((0.8, 1.0001, 1.2))
    usd = (draw.choice(outcomes).usd or 0.0) * draw.choice((0.8, 1.0001, 1.2))
    wanted = {
        "within": f", within: {hours:.9g} h",
        "budget": f", budget: {usd:.9g} USD",
        "throughput": f", throughput: {1e10 / hours / 3600:.9g} /s",
    }
    wanted["both"] = wanted["within"] + wanted["budget"]
    return f"\ntarget: {{samples: 1e10{wanted.get(limit, '')}}}"


def everything(question: Question) -> list[Outcome]:
    """What each candidate brings event by event, in order; those that cannot run are left out."""
    space = Space(question)
    every = {one.key: one for one in space.every()}.values()
    ran = [(one, run_point(question.base, "events", space.point(one, "events"))) for one in every]
    assert all(record["status"] in ("done", "infeasible") for _, record in ran), ran
    return [found for one in ran if (found := outcome_of(question, *one)) is not None]


def read(folder: Path, scenario: str, question: str) -> Question:
    (folder / "base.yaml").write_text(scenario, encoding="utf-8")
    (folder / "ask.plan.yaml").write_text(question, encoding="utf-8")
    return read_question(folder / "ask.plan.yaml")


def check(folder: Path, seed: int) -> None:
    draw = random.Random(seed)
    scenario, text = scenario_text(draw), question_text(draw)
    free = everything(read(folder, scenario, text + "\ntarget: {samples: 1e10}"))
    if not free:
        return
    question = read(folder, scenario, text + limited(draw, free))
    outcomes, found = everything(question), answer(question, Here())
    wanted = pareto([one for one in outcomes if not one.over])
    assert keys(found.plans) == keys(wanted), seed
    assert [plan.goals for plan in found.plans] == [plan.goals for plan in wanted], seed
    assert found.undecided == 0
    if not wanted:
        told = [(one.what, one.outcome.candidate.key) for one in found.changes]
        assert told == [(one.what, one.outcome.candidate.key) for one in changes(outcomes)], seed


def keys(outcomes: list[Outcome]) -> list[str]:
    return [one.candidate.key for one in outcomes]


@pytest.fixture(autouse=True)
def no_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would improve a plan is not asked here, and takes as long as all the rest."""
    monkeypatch.setattr("analysis.plan.answering.improvements", lambda *_: [])


@pytest.mark.parametrize("seed", range(FEW))
def test_a_plan_is_what_trying_everything_event_by_event_gives(tmp_path: Path, seed: int) -> None:
    check(tmp_path, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(FEW, FEW + MANY))
def test_many_plans_are_what_trying_everything_event_by_event_gives(tmp_path: Path, seed: int) -> None:
    check(tmp_path, seed)
