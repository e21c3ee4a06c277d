"""`interval_ms` against measured steps that nothing was fitted on, one for each configuration."""

from pathlib import Path

import pytest

from analysis.training.interval_check import Checked, check_intervals, coverage
from analysis.training.tables import read_training

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def checked(measured_data: Path) -> list[Checked]:
    return check_intervals(read_training(measured_data))


def test_intervals_hold_about_as_many_measured_steps_as_they_say(checked: list[Checked]) -> None:
    share, half_width = coverage(checked)
    assert len(checked) >= 75
    assert 0.72 <= share <= 0.90
    assert half_width <= 0.25


def test_every_interval_encloses_its_step_and_none_is_a_point(checked: list[Checked]) -> None:
    for one in checked:
        assert one.low < one.predicted_ms < one.high, one.name
