"""The factors of the two-stream model: per family, from that one of our fitted rows that suits it best.

A planner's user would calibrate on one measured step as well. To give the simpler model every chance, the row
is picked with its errors on all other configurations of the family in sight; ours were fixed beforehand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from analysis.scores import Configuration, configurations
from analysis.training.cases import Case
from analysis.training.fitting import Fit
from analysis.training.parameters import OVERHEADS, PARAMETERS, SHARED, Fitted
from analysis.training.peers import two_streams_ms
from analysis.training.predictions import predict
from analysis.training.rows import Measured


@dataclass(frozen=True)
class Factor:
    """What makes the two-stream model right on one row, and its median error on the family's other cases."""

    family: str
    one: Fitted
    value: float
    error: float

    @property
    def row(self) -> str:
        """The row."""
        return self.one.row


def two_stream_factors(measured: Measured) -> dict[str, Factor]:
    """Return the best factor of each family."""
    tried = all_factors(measured)
    return {family: min(found, key=lambda one: one.error) for family, found in tried.items()}


def all_factors(measured: Measured) -> dict[str, list[Factor]]:
    """Return, for each family, the factor of each fitted row that enters our predictions of it."""
    rows = {row.case_id: row for row in measured.rows}
    known = configurations(predict(measured))
    unscaled = {
        case.case_id: two_streams_ms(Case(rows[case.case_id], measured))
        for one in known
        for case in one.cases
    }
    return {
        own.family: [
            _factor(own.family, one, measured, known, unscaled) for one in _candidates(own, measured)
        ]
        for own in OVERHEADS
    }


def _candidates(own: Fitted, measured: Measured) -> list[Fitted]:
    """Return the fitted rows that our predictions of a family rest on and that its peer could use."""
    others = SHARED.get(own.family, ())
    found = [own, *(one for one in OVERHEADS if one.family in others)]
    return [
        *found,
        *(
            one
            for one in PARAMETERS
            if one not in found and Fit(measured, {}).case(one.row).framework.family == own.family
        ),
    ]


def _factor(
    family: str, one: Fitted, measured: Measured, known: Sequence[Configuration], unscaled: dict[str, float]
) -> Factor:
    value = one.measured_ms / two_streams_ms(Fit(measured, {}).case(one.row))
    rows = {row.case_id: row for row in measured.rows}
    mine = [
        found for found in known if Case(rows[found.cases[0].case_id], measured).framework.family == family
    ]
    errors = [
        abs(value * median(unscaled[case.case_id] for case in found.cases) / found.measured_ms - 1)
        for found in mine
    ]
    return Factor(family, one, value, median(errors) if errors else float("nan"))
