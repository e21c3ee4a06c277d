"""Speed-up and scaling efficiency, and the gain of coalescing that is told in the same way."""

import pytest

from analysis import coalescing
from analysis.ratios import efficiency, speed_up
from simulator.scenario import load


def test_a_speed_up_counts_steps_in_the_time_of_one_of_the_reference() -> None:
    assert speed_up(2.0, 3.0) == 1.5
    assert speed_up(None, 3.0) is None and speed_up(2.0, None) is None


def test_an_efficiency_is_one_where_nothing_is_lost_by_growing() -> None:
    assert efficiency(400.0, 16, 200.0, 8) == 1.0
    assert efficiency(300.0, 16, 200.0, 8) == 0.75


def test_coalescing_gains_what_it_says_more_steps_with_the_passes_it_names() -> None:
    scenario = load(coalescing.shipped_folder() / coalescing.FILE)
    found = coalescing.region(scenario, "in turn")
    assert found.passes_ms is not None
    with_calls = coalescing.step_ms(scenario, coalescing.BASELINES["in turn"])
    coalesced = coalescing.step_ms(scenario, coalescing.COALESCED)
    longer = found.passes_ms[1] - coalescing._passes_ms(scenario)
    assert speed_up(coalesced + longer, with_calls + longer) == pytest.approx(1 + coalescing.PUBLISHED[0])
