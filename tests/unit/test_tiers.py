"""The tiers of tests: what the gate leaves out runs at night, and nothing is left out of every tier."""

from pathlib import Path

import pytest
from hypothesis import settings
from tiers import TIERS, at_night, examples, some


def test_a_lower_tier_draws_fewer_examples_and_the_night_draws_all() -> None:
    for nightly in (5, 40, 100, 1500):
        drawn = [examples(nightly, tier) for tier in TIERS]
        assert drawn == sorted(drawn) and drawn[-1] == nightly and drawn[0] > 0


def test_a_test_without_a_number_of_its_own_draws_the_share_of_its_tier() -> None:
    assert settings.default is not None
    assert settings.default.max_examples == examples(100)


def test_some_cases_stay_in_the_gate_from_the_first_to_the_last() -> None:
    kept = [case for case in some(list(range(19)), gate=4) if isinstance(case, int)]
    assert kept == [0, 6, 12, 18]
    assert len(some(list(range(19)), gate=4)) == 19


def test_a_case_for_the_night_keeps_its_values_and_marks() -> None:
    case = at_night(pytest.param(1, 2, marks=pytest.mark.slow, id="both"))
    assert (case.values, case.id, [mark.name for mark in case.marks]) == ((1, 2), "both", ["slow", "nightly"])
    assert at_night((1, 2)).values == (1, 2)


def test_no_file_is_for_the_night_only_but_those_whose_kind_is_named_here(checkout: Path) -> None:
    """Each with the tests of the gate that check the same kind of thing."""
    others = {"tests/published/test_interval_coverage.py": "tests/published/test_training_steps.py"}
    whole = {
        path.relative_to(checkout).as_posix()
        for path in (checkout / "tests").rglob("test_*.py")
        if "pytestmark = pytest.mark.nightly" in path.read_text(encoding="utf-8").splitlines()
    }
    assert whole == set(others)
    assert all((checkout / other).is_file() for other in others.values())
