"""Bands: half widths from a file, learned from errors, never from the folder that is looked at."""

from dataclasses import replace
from datetime import date
from math import log

import numpy as np
import pytest
import yaml

from analysis.band_learning import learned, left_out, text
from analysis.bands import FEWEST, HalfWidth, banded, half_width, log_error, names, shipped
from analysis.validated import Validated


def case(name: str, predicted: float, measured: float = 1.0, source: str = "a") -> Validated:
    bare = Validated(name, "local", "g", name, measured, source=source, like="one, two")
    return bare.with_prediction(predicted, (None, None))


def many(spread: float, source: str) -> list[Validated]:
    draws = np.random.default_rng(7).normal(0, spread, 60)
    return [case(f"{source}{place}", float(np.exp(one)), source=source) for place, one in enumerate(draws)]


def test_a_half_width_holds_the_share_of_one_more_error() -> None:
    errors = [log(1 + share / 100) for share in range(1, 20)]
    assert half_width(errors) == pytest.approx(0.16), "the 16th of 19: 0.8 times 20"
    assert half_width([-error for error in errors]) == pytest.approx(0.16), "either way"
    assert half_width(errors[: FEWEST - 1]) is None


def test_the_most_particular_known_half_width_is_used() -> None:
    assert names(case("x", 1.0)) == ("local: one, two", "local: two", "local")
    widths = {"local": HalfWidth(1.0, 99), "local: two": HalfWidth(0.25, 50)}
    found = banded(case("x", 10.0), widths)
    assert (found.low, found.high) == (8.0, 12.5)
    assert banded(case("x", 10.0), {"local": HalfWidth(1.0, 9)}).low == 5.0


def test_a_case_without_a_known_half_width_says_so_and_one_with_a_band_keeps_it() -> None:
    assert "no band" in banded(case("x", 10.0), {}).note
    own = replace(case("x", 10.0), low=9.0, high=11.0)
    assert banded(own, {"local": HalfWidth(1.0, 9)}) == own
    silent = Validated("x", "local", "g", "x", 1.0).not_predicted("so")
    assert banded(silent) == silent


def test_what_is_left_out_has_no_say_in_its_own_band() -> None:
    cases = many(0.02, "quiet") + many(0.5, "wild")
    whole, apart = [banded(one, learned(cases)) for one in cases], left_out(cases)
    wild = [one for one in apart if one.source == "wild"]
    assert sum(bool(one.covered) for one in whole) / len(whole) == pytest.approx(0.8, abs=0.03)
    assert all(one.high is not None and one.high / (one.predicted_ms or 1) < 1.1 for one in wild)
    assert sum(bool(one.covered) for one in wild) < 0.2 * len(wild)


def test_the_file_gives_back_what_was_written_with_date_and_sources() -> None:
    cases = many(0.1, "a")
    data = yaml.safe_load(text(learned(cases), date(2026, 1, 2)))
    assert data["date"] == date(2026, 1, 2)
    assert data["half_widths"]["local: two"] == {"value": pytest.approx(0.14, abs=0.04), "cases": 60}
    assert log_error(cases[0]) == pytest.approx(log(cases[0].predicted_ms or 0))


def test_every_shipped_half_width_has_a_source_a_date_and_enough_cases() -> None:
    from importlib.resources import files

    data = yaml.safe_load(files("analysis").joinpath("bands.yaml").read_text(encoding="utf-8"))
    assert isinstance(data["date"], date)
    for name, width in shipped().items():
        assert data["sources"][name.split(":")[0]]
        assert 0 < width.value < 3 and width.cases >= FEWEST, name
    assert {"collective", "gemm", "local", "trace"} <= shipped().keys()
