"""The list of published figures is sound, and its inputs are what the scenarios say."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from analysis.fits import GROWTH_BASE, all_fits
from analysis.published import CONFIDENCE, ROLES, Published, ancestors, by_id, policy_part, published
from analysis.validation import QUANTITIES, scenario_value
from simulator.errors import InputError
from simulator.policies import catalog
from simulator.scenario import load
from simulator.units import parse_quantity

Values = Mapping[str, float]
SAMPLES = 1536 * 512
GOOGLE = ("G-1a", "G-1b", "G-1c", "G-2", "G-3", "G-7a", "G-7b", "G-10")
BOUNDS = ("G-2", "G-10")
CHOSEN = {"B-5"}  # the exponent of Bagpipe's keys was chosen on it

# How each figure that we computed follows from the rows it names; one entry per row of confidence I.
ARITHMETIC: Mapping[str, Callable[[Values], float]] = {
    "T2c": lambda v: v["T1"] - v["T2a"] - v["T2b"],
    "T4a": lambda v: v["T1"] * v["T5"] / 100,
    "T4d": lambda v: v["T4a"] * v["T4b"] / 100,
    "T4e": lambda v: v["T4a"] * v["T4c"] / 100,
    "T7": lambda v: v["T6a"] * v["T6c"] / 100,
    "T8d": lambda v: v["T8a"] - v["T8b"] - v["T2c"],
    "T9b": lambda v: (v["T8a"] + SAMPLES / v["T8e"] * 1e3) / 2 * v["T8c"] / v["T9a"],
    "T9c": lambda v: v["T9b"] - v["T8b"] - v["T2c"],
    "T10": lambda v: v["T8a"] * v["T8c"] / 100,
    "T11c": lambda v: v["T11a"] + v["T11b"] + v["T2c"],
    "T12c": lambda v: v["T12a"] + v["T12b"] + v["T2c"],
    "T14d": lambda v: 100 * v["T2c"] / v["T13a"],
    "T15": lambda v: v["T13a"] * v["T14b"] / 100,
}
# Published figures that only say others again: which, and how.
REPEATED: Mapping[str, Callable[[Values], float]] = {
    "T3a": lambda v: SAMPLES / v["T1"] * 1e3,
    "T3b": lambda v: 100 * v["T2c"] / v["T1"],
    "T12a": lambda v: v["T2a"],
    "T14a": lambda v: v["T1"] / v["T13a"],
    "T14c": lambda v: SAMPLES / v["T13a"] * 1e3,
}


class Used(dict[str, float]):
    """Values by id that remember which were asked for."""

    def __init__(self, rows: Mapping[str, Published]) -> None:
        super().__init__({name: row.value for name, row in rows.items()})
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> float:
        self.asked.add(name)
        return super().__getitem__(name)


def used_up(rows: Mapping[str, Published]) -> set[str]:
    """Return the targets of the fits, the figures that inputs were chosen on, and all behind either."""
    targets = {target.name for one in all_fits() for target in one.targets} | {GROWTH_BASE}
    chosen = {name for name, row in rows.items() if row.role == "input"}
    return targets | ancestors(targets | chosen, rows)


def contained(row: Published, rows: Mapping[str, Published], used: set[str]) -> set[str]:
    """Return the nearest used-up figures behind `row`, and what figures in between say they share."""
    found: set[str] = set()
    for origin in row.derived_from:
        found |= {origin} if origin in used else contained(rows[origin], rows, used)
    return found | set(row.shares)


def test_every_row_has_a_source_and_known_marks() -> None:
    for row in published():
        assert row.source and row.unit is not None, row.id
        assert row.role in ROLES and row.confidence in CONFIDENCE, row.id


def test_every_figure_computed_by_us_says_how() -> None:
    computed = {row.id for row in published() if row.confidence == "I" and row.role != "input"}
    assert computed == set(ARITHMETIC)


@pytest.mark.parametrize("name", [*ARITHMETIC, *REPEATED])
def test_a_derived_figure_follows_from_exactly_the_rows_it_names(name: str) -> None:
    rows = by_id()
    values = Used(rows)
    followed = {**ARITHMETIC, **REPEATED}[name](values)
    assert values.asked == set(rows[name].derived_from)
    # half a unit of the last digit that is printed, or 0.1 % where a source rounds more coarsely
    tolerance = 0.005 if name in ("T3a", "T3b", "T14a", "T14c") else 0.001
    assert rows[name].value == pytest.approx(followed, rel=tolerance)


def test_every_row_with_origins_is_covered_by_the_arithmetic_or_an_input() -> None:
    with_origins = {row.id for row in published() if row.derived_from and row.role != "input"}
    assert with_origins == set(ARITHMETIC) | set(REPEATED)


def test_no_row_is_derived_from_itself() -> None:
    rows = by_id()
    for name in rows:
        assert name not in ancestors([name], rows), name


def test_no_figure_behind_a_fit_or_an_input_is_called_a_prediction() -> None:
    rows = by_id()
    used = used_up(rows)
    assert {"T1", "T2b", "T5", "T6b", "T8a", "T8b", "T8c", "T8e", "T13c", "T13d"} <= used
    assert {name: rows[name].role for name in used if rows[name].role != "fit"} == {}


def test_the_role_fit_is_given_to_nothing_else() -> None:
    rows = by_id()
    assert {row.id for row in rows.values() if row.role == "fit"} == used_up(rows)


def test_a_prediction_names_every_used_up_figure_that_it_contains() -> None:
    rows = by_id()
    used = used_up(rows)
    for row in rows.values():
        if row.role == "predict":
            assert contained(row, rows, used) == set(row.shares), row.id


def test_only_predictions_share_and_only_with_figures_of_the_fit() -> None:
    rows = by_id()
    sharing = [row for row in rows.values() if row.shares]
    assert {row.role for row in sharing} == {"predict"}
    assert {rows[name].role for row in sharing for name in row.shares} == {"fit"}


def test_an_exposed_all_to_all_of_eight_micro_batches_shares_with_the_row_their_number_came_from() -> None:
    rows = by_id()
    assert "T13c" in rows["I3"].derived_from
    eight = [
        row for row in rows.values() if row.policy.endswith("(8)") and row.scenario == "nestpipe/npu.yaml"
    ]
    touched = [row for row in eight if row.role == "predict" and "lookup" not in row.quantity]
    unshared = {row.id for row in touched if "T13c" not in row.shares}
    assert unshared == {"T22"}  # the copy between row buffers has no part in an exchange


def test_the_clean_predictions_are_few() -> None:
    nestpipe = ("T11a", "T13b", "T19b", "T20", "T22", "T23b")
    assert [row.id for row in published() if row.is_clean] == [*nestpipe, *GOOGLE, "B-6"]


def test_every_input_is_what_its_scenario_says(checkout: Path) -> None:
    inputs = [row for row in published() if row.role == "input"]
    assert len(inputs) >= 10
    for row in inputs:
        value = scenario_value(load(checkout / "scenarios" / row.scenario), row)
        assert value == pytest.approx(row.value, rel=1e-12), row.id


def test_a_figure_that_is_not_predicted_says_why() -> None:
    others = [row for row in published() if row.role != "input"]
    unknown = [
        row
        for row in others
        if row.quantity not in QUANTITIES or row.policy_part["kind"] not in catalog.names()
    ]
    assert [row.id for row in unknown] == ["T23b", *(one for one in GOOGLE if one not in BOUNDS)]
    assert all(row.note for row in unknown)


def leaves(part: Any) -> Iterator[Any]:
    """Yield the values of a document."""
    if isinstance(part, dict | list):
        for one in part.values() if isinstance(part, dict) else part:
            yield from leaves(one)
    else:
        yield part


def milliseconds(value: Any) -> list[float]:
    """Return what `value` may mean in ms: a bare number is taken as s, ms and us, other text as nothing."""
    try:
        return [float(value), float(value) * 1e3, float(value) / 1e3]
    except (TypeError, ValueError):
        pass
    try:
        return [parse_quantity(value, "time") * 1e3]
    except ValueError:
        return []


def typed_in(row: Published, document: Any) -> list[Any]:
    """Return the values of `document` that are the time of `row`, to a thousandth."""
    return [
        value
        for value in leaves(document)
        if any(one == pytest.approx(row.value, rel=1e-3) for one in milliseconds(value))
    ]


@pytest.mark.parametrize("text", ["5793.83 ms", "5.79383 s", "5793830 us", 5793.83, "5.7938"])
def test_a_published_step_is_recognised_in_any_unit(text: Any) -> None:
    assert typed_in(by_id()["T1"], {"a": [{"b": text}]}) == [text]
    assert typed_in(by_id()["T1"], {"a": ["5.7 s", 5793, "5793.83 GB/s", True]}) == [5793]


def test_no_published_time_is_typed_into_a_scenario(checkout: Path) -> None:
    times = [row for row in published() if row.quantity.endswith("_ms")]
    assert len(times) > 20
    for row in times:
        document = load(checkout / "scenarios" / row.scenario).document.data
        assert typed_in(row, document) == [], row.id


def test_a_policy_with_micro_batches_becomes_a_part_of_a_scenario() -> None:
    assert policy_part("two_d_sparse") == {"kind": "two_d_sparse"}
    assert policy_part("nestpipe(8)") == {"kind": "nestpipe", "micro_batches": 8}
    with pytest.raises(InputError, match="not a policy"):
        policy_part("nestpipe(eight)")
