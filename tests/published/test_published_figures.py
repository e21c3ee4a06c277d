"""The list of published figures is sound, and its inputs are what the scenarios say."""

from pathlib import Path

import pytest

from analysis.published import CONFIDENCE, ROLES, by_id, policy_part, published
from analysis.validation import QUANTITIES, scenario_value
from simulator.errors import InputError
from simulator.policies import catalog
from simulator.scenario import load


def test_every_row_has_a_source_and_known_marks() -> None:
    for row in published():
        assert row.source and row.unit is not None, row.id
        assert row.role in ROLES and row.confidence in CONFIDENCE, row.id


def test_what_was_computed_by_us_names_the_rows_it_came_from() -> None:
    computed = [row for row in published() if row.confidence == "I" and row.role != "input"]
    assert computed
    assert [row.id for row in computed if not row.derived_from] == []


def test_no_row_is_derived_from_itself() -> None:
    rows = by_id()

    def origins(name: str) -> set[str]:
        return {name}.union(*(origins(one) for one in rows[name].derived_from))

    for row in rows.values():
        assert all(row.id not in origins(one) for one in row.derived_from), row.id


def test_no_figure_that_a_fit_used_is_called_a_prediction() -> None:
    from analysis.fits import all_fits

    rows = by_id()
    used = {target.name for one in all_fits() for target in one.targets} | {"T8d"}
    behind = {origin for name in used for origin in rows[name].derived_from}
    parts = {"T4b", "T4c", "T9a", "T9b"}
    assert {name: rows[name].role for name in used | parts if rows[name].role != "fit"} == {}
    assert parts <= behind | {origin for name in behind for origin in rows[name].derived_from}


def test_every_input_is_what_its_scenario_says(checkout: Path) -> None:
    inputs = [row for row in published() if row.role == "input"]
    assert len(inputs) >= 9
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
    assert [row.id for row in unknown if not row.note] == []
    assert len(unknown) < len(others) / 4


def test_no_published_step_is_typed_into_a_scenario(checkout: Path) -> None:
    steps = [row for row in published() if row.quantity == "step_ms"]
    for row in steps:
        text = (checkout / "scenarios" / row.scenario).read_text(encoding="utf-8")
        assert f"{row.value:g}" not in text and f"{row.value:.2f}" not in text, row.id


def test_a_policy_with_micro_batches_becomes_a_part_of_a_scenario() -> None:
    assert policy_part("two_d_sparse") == {"kind": "two_d_sparse"}
    assert policy_part("nestpipe(8)") == {"kind": "nestpipe", "micro_batches": 8}
    with pytest.raises(InputError, match="not a policy"):
        policy_part("nestpipe(eight)")
