"""Random scenarios of every kind: what holds in each run, and between a run and that of a changed scenario.

Seeds are fixed. A violation is printed as the scenario that shows it, to be saved and run again.
"""

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest

from simulator.errors import InfeasibleError, InputError
from simulator.scenario import run_scenario
from simulator.scenario.simulate import Run

from .checks import CHECKS
from .explained import why_slower
from .relations import EQUAL, MONOTONE, Relation
from .scenarios import as_yaml, drawn, scenario_of

GROUPS, EACH = 4, 6  # in the gate: as many groups of as many scenarios
NIGHTLY = range(1000, 1240)
MOST_EXPLAINED = 0.01


@dataclass
class Findings:
    """How many relations were looked at, which were explained, by class, and which were violated."""

    relations: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def scenario(self, seed: int, monotone: int) -> None:
        """Look at all relations of a scenario, at `monotone` of those with more of something."""
        before, rng = run_scenario(drawn(seed)), Random(seed)
        for name, check in CHECKS.items():
            self.relations += 1
            self._note(name, check(before), (before,))
        for relation in [*EQUAL, *rng.sample(MONOTONE, monotone)]:
            after = changed(before, relation, rng)
            if after is not None:
                self._compare(relation, before, after)

    def _compare(self, relation: Relation, before: Run, after: Run) -> None:
        self.relations += 1
        found = relation.violation(before, after)
        why = why_slower(before, after) if found and relation in MONOTONE else None
        if why:
            self.explained[why] += 1
        else:
            self._note(relation.name, found, (before, after))

    def _note(self, name: str, found: str | None, runs: tuple[Run, ...]) -> None:
        if found:
            files = [as_yaml(run.scenario.document.data) for run in runs]
            self.violations.append(f"{name}: {found}\n" + "\n--- and changed:\n".join(files))


def changed(before: Run, relation: Relation, rng: Random) -> Run | None:
    """Return the run of the changed scenario, or None where the change says nothing or is refused."""
    data = relation.change(before.scenario.document.data, rng)
    if data is None:
        return None
    try:
        return run_scenario(scenario_of(data))
    except (InputError, InfeasibleError):
        return None


@pytest.mark.parametrize("group", range(GROUPS))
def test_relations_between_runs_of_random_scenarios_hold(group: int) -> None:
    found = Findings()
    for seed in range(group * EACH, (group + 1) * EACH):
        found.scenario(seed, monotone=3)
    print(f"{found.relations} relations, explained: {dict(found.explained)}")
    assert not found.violations, "\n\n".join(found.violations)
    assert found.relations >= 200 / GROUPS
    assert found.explained.total() <= 2


@pytest.mark.nightly
def test_thousands_of_relations_hold_and_hardly_any_needs_an_explanation() -> None:
    found = Findings()
    for seed in NIGHTLY:
        found.scenario(seed, monotone=5)
    print(f"{found.relations} relations, explained: {dict(found.explained)}")
    assert not found.violations, "\n\n".join(found.violations)
    assert found.relations >= 2000
    assert found.explained.total() <= MOST_EXPLAINED * found.relations


def test_a_scenario_that_is_printed_runs_again_as_it_did() -> None:
    import yaml

    scenario = drawn(3)
    again = scenario_of(yaml.safe_load(as_yaml(scenario.document.data)))
    assert run_scenario(again).report == run_scenario(scenario).report


def test_random_scenarios_are_of_every_kind() -> None:
    data = [drawn(seed).document.data for seed in range(120)]
    fabrics = {one["cluster"]["fabric"]["kind"] for one in data}
    assert fabrics == {"two_level", "torus", "flat", "fat_tree", "rails"}
    assert len({one["policy"]["kind"] for one in data}) >= 20
    assert len({one["sharding"]["kind"] for one in data}) == 7
    for part in ("slow", "groups", "servers", "host_limit", "collectives"):
        assert any(part in one["cluster"] for one in data), part
    assert any("jitter" in one["run"] for one in data) and any("replicas" in one["sharding"] for one in data)
