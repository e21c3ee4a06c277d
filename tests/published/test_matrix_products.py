"""Measured matrix products that were kept from the fit: each kind of prediction within its target."""

from pathlib import Path

import pytest

from analysis.gemm_validation import cross_fitted, held_out, largest, median_and_p90, random_half, tables_in
from simulator.calibration.gemm_table import GemmTable


@pytest.fixture(scope="module")
def tables(measured_data: Path) -> tuple[GemmTable, ...]:
    return tables_in(measured_data)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_random_half_gives_the_other(tables: tuple[GemmTable, ...], seed: int) -> None:
    cases = held_out(tables, random_half(seed))
    median, p90 = median_and_p90(cases)
    assert len(cases) > 1500
    assert median <= 0.05
    assert p90 <= 0.20


def test_the_largest_shapes_are_predicted_from_smaller_ones(tables: tuple[GemmTable, ...]) -> None:
    cases = held_out(tables, largest)
    assert len(cases) > 500
    assert median_and_p90(cases)[0] <= 0.10


def test_every_row_is_predicted_once_by_what_has_not_seen_it(tables: tuple[GemmTable, ...]) -> None:
    cases = cross_fitted(tables)
    assert len(cases) == len({case.name for case in cases}) == sum(len(table.rows) for table in tables)
    median, p90 = median_and_p90(cases)
    assert median <= 0.05
    assert p90 <= 0.20
