"""How often intervals hold what was measured: counted right, each case by the spread of all others."""

import pytest

from analysis.training.interval_check import Checked, coverage


def one(measured: float, low: float = 1.0, high: float = 3.0) -> Checked:
    return Checked("case", "group", "one_host", measured, 2.0, low, high)


def test_the_share_inside_and_the_median_half_width_are_counted() -> None:
    found = [one(1.0), one(2.9), one(3.1), one(0.5, high=2.0)]
    assert coverage(found) == (0.5, pytest.approx(0.5))
    assert [case.inside for case in found] == [True, True, False, False]
    assert found[3].half_width == pytest.approx(0.25)


def test_nothing_checked_is_no_coverage() -> None:
    with pytest.raises(ValueError, match="median"):
        coverage([])
