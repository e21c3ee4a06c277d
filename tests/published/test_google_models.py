"""Five models that stand for Google's: gates that do not depend on how the models were chosen.

The spread of their gains is reported beside the published one (1.58 to 2.80, geometric mean 2.16), and
nothing is asked of it: the models are ours. See docs/decisions/0009-five-models-for-google.md.
"""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from analysis.google import FILE, WIDTHS, Gains, five, geometric_mean, guessed
from analysis.published import by_id
from simulator.scenario import load
from simulator.scenario.shipped_files import shipped_folder
from simulator.sharding.placement import imbalance
from simulator.workload.dense import Mlp

PAGE = "docs/decisions/0009-five-models-for-google.md"
MLPERF_KEYS = (3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1)


@pytest.fixture(scope="module")
def models() -> tuple[Gains, ...]:
    return five()


def test_pipelining_alone_makes_no_model_more_than_twice_as_fast(models: tuple[Gains, ...]) -> None:
    assert [one.mflop for one in models] == [5, 17, 56, 190, 638]
    assert max(one.pipelining for one in models) <= by_id()["G-2"].value
    assert min(one.pipelining for one in models) >= 0.99


def test_models_bound_by_the_tensor_cores_gain_less(models: tuple[Gains, ...]) -> None:
    bound = [one for one in models if one.bound_by_dense]
    assert bound and bound[-1] is models[-1]
    assert models[-1].whole < geometric_mean(models)
    for before, after in pairwise(models):
        if after.bound_by_dense:
            assert after.whole < before.whole


def test_a_gain_above_two_needs_partitioning_by_measured_keys(models: tuple[Gains, ...]) -> None:
    above = [one for one in models if one.whole > 2]
    assert above
    for one in above:
        assert one.pipelining <= 2 < one.pipelining * one.partitioning
        assert one.base / one.hybrid < one.whole


def test_the_page_prints_what_comes_out(models: tuple[Gains, ...], checkout: Path) -> None:
    text = (checkout / PAGE).read_text(encoding="utf-8")
    printed = {
        int(row[0]): row
        for row in re.findall(
            r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$",
            text,
            re.M,
        )
    }
    for one in models:
        steps = (one.base, one.pipelined, one.hybrid, one.feedback)
        wanted = (*(f"{step:.1f}" for step in steps), f"{one.pipelining:.2f}", f"{one.whole:.2f}")
        assert printed[one.mflop][1:] == wanted
    low, high = min(one.whole for one in models), max(one.whole for one in models)
    assert f"{low:.2f} to {high:.2f} with a geometric mean of {geometric_mean(models):.2f}" in text


def test_the_notes_beside_the_published_spread_say_ours(models: tuple[Gains, ...]) -> None:
    whole = [one.whole for one in models]
    for name, value in (("G-1a", min(whole)), ("G-1b", max(whole)), ("G-1c", geometric_mean(models))):
        assert f"{value:.2f}" in by_id()[name].note


def test_the_five_are_what_the_page_says(checkout: Path) -> None:
    text = (checkout / PAGE).read_text(encoding="utf-8")
    for mflop, width in WIDTHS.items():
        flops = Mlp(33_280, (width, width, width, 1)).quantities().forward_flops
        assert flops == pytest.approx(mflop * 1e6, rel=0.01)
        assert f"{width:,}" in text and str(mflop) in text
    scenario = load(shipped_folder() / FILE)
    assert [spec.pooling for spec in scenario.spec.workload.tables] == list(MLPERF_KEYS)
    assert {spec.copies for spec in scenario.spec.workload.tables} == {10}
    assert sum(MLPERF_KEYS) == 214
    assert (scenario.cluster.ranks, scenario.workload.batch * scenario.cluster.ranks) == (64, 65_536)


def test_a_guess_knows_the_number_of_keys_and_not_whose_they_are() -> None:
    scenario = load(shipped_folder() / FILE)
    guess = guessed(scenario)
    assert guess.workload.keys_per_sample == pytest.approx(scenario.workload.keys_per_sample)
    assert len({table.pooling for table in guess.workload.tables}) == 1


def test_the_worked_example_of_an_imbalance_is_what_ours_says_of_it() -> None:
    import numpy as np

    assert imbalance(np.array([0.6, 0.3, 0.2, 0.1])) == pytest.approx(by_id()["G-3"].value, rel=1e-12)
