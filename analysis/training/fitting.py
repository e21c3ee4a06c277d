"""Fits the overheads of `software.yaml`: one per framework family, one gather efficiency per accelerators.

`python -m analysis.training.fitting FOLDER` prints the values; docs/decisions/0007 says which row each is
fitted on and why.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.training.cases import Case
from analysis.training.tables import Measured, read_training
from simulator.errors import InputError

ROUNDS = 4  # of the whole set; gather efficiencies and overheads hang together
TOLERANCE = 1e-4  # of the step


@dataclass(frozen=True)
class Fitted:
    """One parameter: field of the software part, the family it belongs to, and the row it is fitted on."""

    field: str
    family: str
    row: str
    low: float
    high: float
    unit: str = ""
    scale: float = 1.0

    def written(self, value: float) -> Any:
        """Return the value as a scenario writes it."""
        return f"{value / self.scale!r} {self.unit}" if self.unit else value


OVERHEADS = (
    Fitted("fixed_cost_per_step", "hugectr", "mlp_dcnv2_b200sxm_1x8_9e0d", 0.0, 2e-2, "s"),
    Fitted("slowdown", "hugectr_v1", "mlp_v1_a100sxm80gb_1x8_2dc5", 0.2, 5.0),
    Fitted("host_time_per_op", "tensorflow", "dle_tf2_a100_8g_large_TF32", 0.0, 1e-3, "s"),
    Fitted("time_per_key", "distributed_embeddings", "de_small_8gpu", 0.0, 1e-7, "s"),
    Fitted("host_time_per_op", "pytorch", "dle_pt_a100_8g_large_TF32", 0.0, 1e-3, "s"),
    Fitted("loader_rate", "torchrec", "trdlrm_a100_8g_16384_dot", 1e4, 1e8, "/s"),
)
GATHERS = (
    Fitted("gather_efficiency", "hopper", "mlp_dcnv2_h100sxm80gb_1x8_a750", 0.05, 1.0),
    Fitted("gather_efficiency", "ampere", "mlp_dcnv2_a100sxm80gb_1x8_9873", 0.05, 1.0),
)
PARAMETERS = (*GATHERS, *OVERHEADS)
FIT_ROWS = frozenset(one.row for one in PARAMETERS)


@dataclass
class Fit:
    """The values found so far; rows are predicted with them in place of the catalog's."""

    measured: Measured
    values: dict[Fitted, float]

    def case(self, row: str, **changed: Any) -> Case:
        """Return the case of a row with the values so far. Raises InputError when the row is not there."""
        found = next((one for one in self.measured.rows if one.case_id == row), None)
        if found is None:
            raise InputError(f'the tables have no row "{row}", on which a parameter is fitted')
        case = Case(found, self.measured)
        return case.with_software(**{**self._for(case), **changed})

    def _for(self, case: Case) -> dict[str, Any]:
        family, chips = case.framework.family, case.chips
        shared = {"distributed_embeddings": ("tensorflow",)}.get(family, ())
        mine = [one for one in self.values if one.family in (family, chips, *shared)]
        return {one.field: one.written(self.values[one]) for one in mine}

    def solve(self, one: Fitted) -> float:
        """Return the value that makes the simulated step of the row the measured one, or the nearest end."""
        from scipy.optimize import brentq

        def miss(value: float) -> float:
            case = self.case(one.row, **{one.field: one.written(value)})
            return case.step_ms / float(case.row.step_ms or 1.0) - 1

        ends = (miss(one.low), miss(one.high))
        if ends[0] * ends[1] > 0:
            return one.low if abs(ends[0]) < abs(ends[1]) else one.high
        return float(brentq(miss, one.low, one.high, rtol=TOLERANCE, xtol=TOLERANCE * one.low + 1e-15))


def fit(measured: Measured, parameters: Iterable[Fitted] = PARAMETERS) -> dict[Fitted, float]:
    """Return all values, each fitted on its row with the others in place, over and over until they agree."""
    chosen = tuple(parameters)
    found = Fit(measured, {})
    for _ in range(ROUNDS):
        for one in chosen:
            found.values[one] = found.solve(one)
    return found.values


def two_stream_factors(measured: Measured) -> dict[Fitted, float]:
    """Return what makes the two-stream model right on the row of each family."""
    from analysis.training.peers import two_streams_ms

    cases = {one: Fit(measured, {}).case(one.row) for one in OVERHEADS}
    return {one: float(case.row.step_ms or 0.0) / two_streams_ms(case) for one, case in cases.items()}


def _print(folder: Path) -> None:
    measured = read_training(folder)
    for one, value in fit(measured).items():
        print(f"{one.family:24} {one.field:20} {value:.4g} {one.unit}  ({one.row})")
    for one, factor in two_stream_factors(measured).items():
        print(f"{one.family:24} two_stream_factor    {factor:.4g}  ({one.row})")


if __name__ == "__main__":
    _print(Path(sys.argv[1]))
