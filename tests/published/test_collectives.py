"""Measured collectives that were kept from the fit: each kind of prediction within its target."""

from pathlib import Path

import pytest

from analysis.collective_page import page
from analysis.collective_validation import (
    LARGER_SCALES,
    OPERATIONS,
    OTHER_SIZES,
    WITH_LENT,
    Validation,
    errors_of,
    errors_with_refusals,
    validate,
)
from simulator.calibration.collective_held_out import every_second_size
from simulator.calibration.collectives import fit_folder
from simulator.costs import curve_catalog


@pytest.fixture(scope="module")
def found(measured_data: Path) -> Validation:
    return validate(measured_data / "collectives")


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("first", [0, 1])
def test_every_second_size_of_a_table_gives_the_others(found: Validation, operation: str, first: int) -> None:
    errors = errors_of(every_second_size(found.tables, first=first), operation)
    assert errors[2] > 100
    assert OTHER_SIZES.met(operation, errors), errors


@pytest.mark.parametrize("operation", OPERATIONS)
def test_whole_tables_at_up_to_four_times_the_known_nodes_are_predicted(
    found: Validation, operation: str
) -> None:
    errors = errors_of(found.own, operation)
    assert errors[2] > 30
    assert LARGER_SCALES.met(operation, errors), errors


@pytest.mark.parametrize(
    ("operation", "reached"), [("all_to_all", 0.20), ("all_reduce", 0.20), ("all_gather", 0.15)]
)
def test_with_networks_lent_no_table_is_left_out(found: Validation, operation: str, reached: float) -> None:
    """The target of all-reduce is missed: 0.15 was asked for, and what is reached must not get worse."""
    errors = errors_with_refusals(found.larger, operation)
    assert errors[2] == sum(len(case.sizes) for case in found.larger if case.table.operation == operation)
    assert errors[0] <= reached
    assert WITH_LENT.met(operation, errors) == (operation != "all_reduce")


def test_a_network_is_lent_only_where_none_was_tested(found: Validation) -> None:
    assert found.lent
    for case in found.lent:
        between = [
            table
            for table in found.tables
            if (table.cluster, table.operation) == (case.table.cluster, case.table.operation)
            and 1 < table.scale.nodes <= case.known_nodes
        ]
        assert between == [], case.table.name
        assert not case.lender.startswith(f"{case.table.cluster} ")


def test_nothing_is_refused_among_larger_scales(found: Validation) -> None:
    assert [case.table.name for case in (*found.larger, *found.far) if case.predicted is None] == []


def test_the_page_is_up_to_date(found: Validation, checkout: Path) -> None:
    written = (checkout / "docs/collectives.md").read_text(encoding="utf-8")
    if f"`{found.digest}`" not in written:
        pytest.skip("the page was written from other tables")
    assert written == page(found)


def test_the_shipped_curves_are_those_of_the_fit(
    found: Validation, measured_data: Path, checkout: Path
) -> None:
    written = (checkout / "docs/collectives.md").read_text(encoding="utf-8")
    if f"`{found.digest}`" not in written:
        pytest.skip("the catalog was fitted on other tables")
    fitted = curve_catalog.read_curves(fit_folder(measured_data / "collectives").to_yaml(shipped=True))
    assert sorted(fitted) == list(curve_catalog.names())
    for name, curve in fitted.items():
        assert curve == curve_catalog.curve(name), name
