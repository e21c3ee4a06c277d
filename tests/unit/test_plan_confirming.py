"""What an answer is confirmed by: nothing is told, and nothing denied, that was not run event by event."""

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.cli.commands.plan import _no_plan
from analysis.plan import Answered, answer, read_question
from analysis.plan.advice import changes
from analysis.plan.answering import _incomplete
from analysis.plan.basis import Basis
from analysis.plan.candidates import Candidate
from analysis.plan.confirming import confirm
from analysis.plan.outcomes import Limit, Outcome
from analysis.plan.pareto import not_ruled_out, pareto
from analysis.sweep.points import Record
from simulator.errors import InfeasibleError, InputError

Goals = tuple[float, float, float]
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
policies: [{kind: serialized}, {kind: dual_buffer}, {kind: nestpipe}]
micro_batches: [2, 4]
"""


def outcome(key: str, goals: Goals, within: float) -> Outcome:
    """An outcome that breaks a limit on hours where it takes longer than `within`."""
    over = (Limit("hours", goals[0], within),) if goals[0] > within else ()
    return Outcome(Candidate(key, "a", 8, ()), {}, *goals, None, over)


@dataclass
class Tried:
    """Trials of candidates whose hours, USD and kWh on the vector engine are given.

    Event by event they take `slower` times as long; the bound is `least` of what the vector engine says.
    """

    vector: dict[str, Goals]
    slower: float
    within: float = float("inf")
    least: float = 1.0

    def __post_init__(self) -> None:
        self.confirmed: dict[str, Outcome] = {}
        self.rounds = 0

    def at(self, factor: float) -> list[Outcome]:
        return [
            outcome(key, (factor * hours, *rest), self.within)  # type: ignore[arg-type]
            for key, (hours, *rest) in self.vector.items()
            if key not in self.confirmed
        ]

    @property
    def known(self) -> list[Outcome]:
        return [self.confirmed[key] for key in self.vector if key in self.confirmed]

    @property
    def expected(self) -> list[Outcome]:
        return self.at(1.0)

    @property
    def best(self) -> list[Outcome]:
        return self.at(self.least)

    @property
    def order(self) -> dict[str, int]:
        return {key: place for place, key in enumerate(self.vector)}

    def confirm(self, candidates: Sequence[Candidate]) -> None:
        self.rounds += 1
        for one in candidates:
            hours, *rest = self.vector[one.key]
            self.confirmed[one.key] = outcome(one.key, (self.slower * hours, *rest), self.within)  # type: ignore[arg-type]

    def plans(self) -> list[Outcome]:
        return pareto([one for one in self.confirmed.values() if not one.over])


def front(count: int) -> dict[str, Goals]:
    """Candidates of which none beats another: the faster the dearer."""
    return {f"{place}": (1.0 + place, 1000.0 - place, 5.0) for place in range(count)}


def test_every_plan_that_nothing_beats_is_confirmed_however_many_rounds_that_takes() -> None:
    tried = Tried(front(60), slower=1.1)
    assert confirm(tried) == 0
    assert len(tried.plans()) == 60 and tried.rounds == 4


def test_no_answer_is_no_before_every_candidate_that_might_do_was_confirmed_to_break_a_limit() -> None:
    alike = {f"{place}": (10.0 + place / 100, 5.0 + place / 100, 5.0) for place in range(30)}
    tried = Tried(alike, slower=1.1, within=10.4)
    confirm(tried)
    assert tried.plans() == [] and len(tried.confirmed) == 30
    tried.vector["far"] = (10.39, 99.0, 5.0)  # slower and dearer, and it alone does not get slower
    tried.confirmed.clear()
    slow = tried.confirm

    def steady(candidates: Sequence[Candidate]) -> None:
        slow([one for one in candidates if one.key != "far"])
        if any(one.key == "far" for one in candidates):
            tried.confirmed["far"] = outcome("far", tried.vector["far"], tried.within)

    tried.confirm = steady  # type: ignore[method-assign]
    confirm(tried)
    assert [plan.candidate.key for plan in tried.plans()] == ["far"]


def test_what_is_named_as_a_change_is_confirmed_and_no_plan_that_keeps_all_limits() -> None:
    tried = Tried(front(8), slower=1.5, within=0.5)
    confirm(tried)
    named = changes(list(tried.confirmed.values()))
    assert [one.what for one in named] == ["1.5 hours instead of 0.5"]
    assert changes([outcome("fine", (1, 1, 1), 2.0)]) == []


def test_beyond_the_most_that_are_confirmed_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.plan.confirming.MOST_CONFIRMED", 20)
    tried = Tried(front(100), slower=1.1)
    left = confirm(tried)
    assert 0 < left < 80
    assert len(tried.confirmed) < 40
    assert next(_incomplete(left, 0, [])).startswith(f"{left} candidates were not decided")


def test_what_an_estimate_would_drop_is_confirmed_as_long_as_its_bound_does_not() -> None:
    """Estimated at 5 h and 50 USD, but it may take a fifth of that: a plan of 4 h decides nothing of it."""
    tried = Tried({"sure": (4.0, 40.0, 1.0), "shy": (5.0, 50.0, 1.0)}, slower=1.0, least=0.2)
    assert confirm(tried) == 0 and set(tried.confirmed) == {"sure", "shy"}
    tried = Tried({"sure": (4.0, 40.0, 1.0), "shy": (5.0, 50.0, 1.0)}, slower=1.0, least=0.9)
    assert confirm(tried) == 0 and set(tried.confirmed) == {"sure"}


def test_a_limit_that_an_estimate_breaks_and_a_bound_keeps_rules_nothing_out() -> None:
    tried = Tried({"shy": (5.0, 50.0, 1.0)}, slower=0.5, within=3.0, least=0.2)
    assert confirm(tried) == 0 and [plan.hours for plan in tried.plans()] == [2.5]


def test_of_candidates_that_are_equal_to_a_plan_the_first_stands() -> None:
    goals = (4.0, 40.0, 1.0)
    tried = Tried({"first": goals, "second": goals}, slower=1.0)
    assert confirm(tried) == 0 and [plan.candidate.key for plan in tried.plans()] == ["first"]


def test_thousands_of_candidates_that_all_break_a_limit_take_few_rounds_and_few_runs_more() -> None:
    """Each is expected to be as good as the others, then slower than allowed; the 2,000 took minutes once."""
    began = process_time()
    tried = Tried({f"{n}": (1.0 + n / 2000, 1000.0 - n, 5.0) for n in range(2000)}, slower=3.0, within=2.5)
    assert confirm(tried) == 0
    assert len(tried.confirmed) == 2000 and tried.rounds <= 30
    chain = Tried({f"{n}": (1.0 + n / 2000, 1.0 + n, 5.0) for n in range(2000)}, slower=3.0, within=2.5)
    assert confirm(chain) == 0
    assert len(chain.confirmed) == 2000 and chain.rounds <= 60  # each is expected to beat all that follow
    assert process_time() - began < 10.0


def test_a_plan_that_is_found_late_leaves_few_candidates_run_beside_it() -> None:
    chain = {f"{n}": (1.0 + n / 2000, 1.0 + n, 5.0) for n in range(2000)}
    tried = Tried({"good": (0.9, 1.0, 5.0), **chain}, slower=1.0)
    confirm(tried)
    assert list(tried.confirmed) == ["good"]


Known = tuple[float, float | None, float | None]


def beats(one: Known, other: Known) -> bool:
    return all(
        (inf if mine is None else mine) <= (inf if theirs is None else theirs)
        for mine, theirs in zip(one, other, strict=True)
    )


@given(st.data())
def test_plans_are_those_that_no_other_beats_pair_by_pair(data: st.DataObject) -> None:
    few = st.sampled_from((1.0, 2.0, 3.0))
    goals = st.lists(st.tuples(few, st.none() | few, st.none() | few), max_size=8)
    plans, rest = (
        [
            replace(outcome(f"{name}{n}", (1.0, 1.0, 1.0), 9.0), hours=h, usd=u, kwh=k)
            for n, (h, u, k) in drawn
        ]
        for name in ("plan ", "open ")
        for drawn in [list(enumerate(data.draw(goals)))]
    )
    front = [
        one
        for place, one in enumerate(plans)
        if not any(
            beats(other.goals, one.goals) and (not beats(one.goals, other.goals) or at < place)
            for at, other in enumerate(plans)
        )
    ]
    assert sorted(map(id, pareto(plans))) == sorted(map(id, front))
    keys = data.draw(st.permutations([one.candidate.key for one in (*plans, *rest)]))
    order = {key: place for place, key in enumerate(keys)}
    left = [
        one
        for one in rest
        if not any(
            beats(plan.goals, one.goals)
            and (not beats(one.goals, plan.goals) or order[plan.candidate.key] < order[one.candidate.key])
            for plan in plans
        )
    ]
    assert not_ruled_out(rest, plans, order) == left


def asked(folder: Path, text: str, executor: Executor) -> Answered:
    (folder / "base.yaml").write_text(SCENARIO, encoding="utf-8")
    (folder / "ask.plan.yaml").write_text(text, encoding="utf-8")
    return answer(read_question(folder / "ask.plan.yaml"), executor)


class Dying(Executor):
    """Runs work here; the first `deaths` tasks end as if their process had been killed."""

    def __init__(self, deaths: int) -> None:
        self.deaths = deaths

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.deaths:
            self.deaths -= 1
            future.set_exception(BrokenExecutor("killed"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_an_answer_outlives_a_killed_process_and_is_the_same(tmp_path: Path) -> None:
    whole = asked(tmp_path, QUESTION % "", Dying(0))
    assert asked(tmp_path, QUESTION % "", Dying(2)).to_dict() == whole.to_dict()


def test_what_kills_its_process_twice_is_a_defect_and_no_answer(tmp_path: Path) -> None:
    found = asked(tmp_path, QUESTION % "", Dying(1000))
    assert (found.plans, found.failed, found.defects) == ([], 12, 12)
    with pytest.raises(RuntimeError, match="12 of 12 candidates failed"):
        _no_plan(found)


def test_a_candidate_that_fits_on_one_engine_only_joins_those_that_cannot_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from analysis.sweep import points

    whole = points.run_scenario

    def refusing(scenario: Any, engine: str) -> Any:
        if engine == "events":
            raise InfeasibleError("too large for this engine")
        return whole(scenario, engine)

    monkeypatch.setattr(points, "run_scenario", refusing)
    found = asked(tmp_path, QUESTION % "", Dying(0))
    assert found.plans == [] and "too large for this engine" in found.reasons[0]
    with pytest.raises(InfeasibleError):
        _no_plan(found)


def test_candidates_that_are_all_refused_are_wrong_input_and_no_answer() -> None:
    basis = Basis("all", "none", (), ())
    told = Answered("q", [], None, [], [], 2, 2, 0, ["2 x refused"], [], {}, basis, wrong=2)
    with pytest.raises(InputError, match="2 x refused"):
        _no_plan(told)
    with pytest.raises(InfeasibleError):
        _no_plan(replace(told, wrong=1))


def test_an_unknown_cost_is_said_to_be_unknown_and_stands_after_what_is_known() -> None:
    unknown = Outcome(Candidate("u", "a", 8, ()), {}, 1, None, 1, None, (Limit("USD", None, 10_000.0),))
    both = (Limit("USD", 20_000.0, 10_000.0), Limit("hours", 2.0, 1.0))
    dear = Outcome(Candidate("d", "a", 8, ()), {}, 2, 20_000.0, 1, None, both)
    known, other = changes([unknown, dear])
    assert known.known and known.what == "20,000 USD instead of 10,000 and 2 hours instead of 1"
    assert not other.known and other.what.startswith("USD not known") and "10,000" in other.what


def test_a_throughput_that_is_missed_is_told_in_samples_per_second(tmp_path: Path) -> None:
    found = asked(tmp_path, QUESTION % ", throughput: 900 G/s", Dying(0))
    assert found.broken["samples/s"] == 12
    assert "samples/s instead of 900,000,000,000" in found.changes[0].what
    fastest = max(float(one.outcome.record["throughput_samples_per_s"]) for one in found.changes)
    again = asked(tmp_path, QUESTION % f", throughput: {fastest * 0.999:.0f} /s", Dying(0))
    assert again.plans, "the change that was named makes the question feasible"


def test_a_note_says_that_no_interval_was_asked_for(tmp_path: Path) -> None:
    assert (
        "no interval was asked for (run.interval in the scenario)"
        in asked(tmp_path, QUESTION % "", Dying(0)).notes
    )


def test_what_a_search_did_not_try_is_counted() -> None:
    assert "7 candidates were not tried" in next(_incomplete(0, 7, []))


def records(status: str) -> list[Record]:
    return [{"status": status, "error": "x"}]


def test_a_note_says_that_plans_may_be_missing_where_candidates_failed() -> None:
    assert list(_incomplete(0, 0, records("infeasible"))) == []
    assert "plans may be missing" in next(_incomplete(0, 0, records("failed")))
