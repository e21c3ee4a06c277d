"""Fits the overheads of `software.yaml`: one per framework family, one gather efficiency per accelerators.

`python -m analysis.training.software_document FOLDER` writes the file from these fits.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from analysis.training.cases import Case
from analysis.training.parameters import FIT_ROWS, GATHERS, OVERHEADS, PARAMETERS, SHARED, Fitted, is_fitted
from analysis.training.rows import Measured, Row
from simulator.calibration.csv_table import number
from simulator.errors import InputError

__all__ = ["FIT_ROWS", "GATHERS", "OVERHEADS", "PARAMETERS", "Fit", "Fitted", "fit", "is_fitted"]

ROUNDS = 30  # of the whole set, at most; gather efficiencies and overheads hang together
AGREED = 3e-4  # of each value, from one round to the next
TOLERANCE = 1e-4  # of the step
# Of repeated runs of a submission, the 90th percentile of their spread: what a row that prints no runs may be
# off by either way.
SPREAD_OF_RUNS = 0.029


@dataclass
class Fit:
    """The values found so far; rows are predicted with them in place of the catalog's."""

    measured: Measured
    values: dict[Fitted, float]

    def case(self, row: str, **changed: Any) -> Case:
        """Return the case of a row with the values so far. Raises InputError when the row is not there."""
        found = next((one for one in self.measured.rows if one.case_id == row and is_fitted(one)), None)
        if found is None:
            step = f", measured at {FIT_ROWS[row]:g} ms" if row in FIT_ROWS else ""
            raise InputError(f'the tables have no row "{row}"{step}, on which a parameter is fitted')
        case = Case(found, self.measured)
        return case.with_software(**{**self._for(case), **changed})

    def _for(self, case: Case) -> dict[str, Any]:
        family, chips = case.framework.family, case.chips
        mine = [one for one in self.values if one.family in (family, chips, *SHARED.get(family, ()))]
        return {one.field: one.written(self.values[one]) for one in mine}

    def solve(self, one: Fitted, share: float = 1.0) -> float:
        """Return the value that makes the simulated step of the row `share` of the measured one.

        Raises InputError where no value between the parameter's ends does.
        """
        from scipy.optimize import brentq

        def miss(value: float) -> float:
            case = self.case(one.row, **{one.field: one.written(value)})
            return case.step_ms / (share * one.measured_ms) - 1

        if miss(one.low) * miss(one.high) > 0:
            problem = f"no value from {one.low:g} to {one.high:g} gives the measured step of {one.row}"
            raise InputError(f"{one.field} of {one.family}: {problem}")
        return float(brentq(miss, one.low, one.high, rtol=TOLERANCE, xtol=TOLERANCE * one.low + 1e-15))

    def interval(self, one: Fitted) -> tuple[float, float]:
        """Return the values, ascending, that the fastest and the slowest run of the row would give.

        Raises InputError where one of them is beyond the parameter's ends.
        """
        low, high = sorted(self.solve(one, share) for share in runs(self.case(one.row).row))
        return low, high


def runs(row: Row) -> tuple[float, float]:
    """Return the fastest and the slowest run of a row over its step; the usual, where it prints no runs."""
    ends = [number(row.words.get(f"step_ms_{end}_over_runs", "")) for end in ("min", "max")]
    if row.step_ms and ends[0] and ends[1] and 0 < ends[0] <= row.step_ms <= ends[1]:
        return ends[0] / row.step_ms, ends[1] / row.step_ms
    return 1 - SPREAD_OF_RUNS, 1 + SPREAD_OF_RUNS


def fit(measured: Measured, parameters: Iterable[Fitted] = PARAMETERS) -> Fit:
    """Return all values, each fitted on its row with the others in place, over and over until they agree.

    Raises InputError where a row is not there, where a value would lie at an end of its range, and where the
    values do not come to agree.
    """
    chosen = tuple(parameters)
    found = Fit(measured, {})
    for _ in range(ROUNDS):
        before = dict(found.values)
        for one in chosen:
            found.values[one] = found.solve(one)
        if before and all(abs(before[one] / found.values[one] - 1) <= AGREED for one in chosen):
            return found
    raise InputError(f"the fitted values do not agree after {ROUNDS} rounds")
