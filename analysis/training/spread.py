"""How wide bands must be: the spread of errors by family and by how unlike the fitted row a case is.

Parameters that were fitted on one row carry its own scatter, the laws theirs; what is left shows as the
spread of held-out errors. 80 % of the errors of configurations that were not fitted lie within the spread
of their kind. `analysis.training.software_document` writes them into `software.yaml`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, log

import numpy as np

from analysis.scores import configurations
from analysis.training.cases import Case
from analysis.training.predictions import predict
from analysis.training.rows import Measured
from simulator.quantities.statistics import COVERAGE

KINDS = ("one_host", "several_hosts", "smaller_host", "pcie")
FEWEST = 6  # configurations that speak for themselves; fewer are pooled over families
MANY = 10  # errors that leave room for one more
FLOOR = 0.03  # the 90th percentile of the spread of repeated runs of a submission
DRAWS, SEED = 400, 6  # of the errors, for the interval of a half width
Errors = Mapping[tuple[str, str], list[float]]  # of (family, kind)


@dataclass(frozen=True)
class Width:
    """Half of a band, as a share either way; `low` and `high` enclose 80 % of those of errors drawn again."""

    value: float
    low: float
    high: float
    count: int


def widths(measured: Measured) -> dict[str, dict[str, Width]]:
    """Return half of the band by family and kind."""
    errors = log_errors(measured)
    families = sorted({family for family, _ in errors})
    return {family: {kind: _width(_of_kind(errors, family, kind)) for kind in KINDS} for family in families}


def _width(errors: Sequence[float]) -> Width:
    if not errors:
        return Width(FLOOR, FLOOR, FLOOR, 0)
    drawn = np.random.default_rng(SEED).choice(np.asarray(errors), (DRAWS, len(errors)))
    low, high = np.quantile([_share(one.tolist()) for one in drawn], (0.1, 0.9))
    return Width(_share(errors), float(low), float(high), len(errors))


def log_errors(measured: Measured) -> Errors:
    """Return the logarithms of predicted over measured, one per configuration."""
    rows = {row.case_id: row for row in measured.rows}
    found: dict[tuple[str, str], list[float]] = {}
    for one in configurations(predict(measured)):
        error = one.error()
        assert error is not None  # such configurations are predicted
        case = Case(rows[one.cases[0].case_id], measured)
        found.setdefault((case.framework.family, kind_of(case)), []).append(log(1 + error))
    return found


def kind_of(case: Case) -> str:
    """Return how a case differs from the row that its family was fitted on."""
    fitted = case.scenario.spec.framework.calibrated_on
    assert fitted is not None  # all shipped profiles say it
    return fitted.kind(case.scenario.cluster)


def _of_kind(errors: Errors, family: str, kind: str) -> list[float]:
    own = errors.get((family, kind), [])
    pooled = [error for (_, other), listed in errors.items() if other == kind for error in listed]
    return own if len(own) >= FEWEST else pooled


def _share(errors: Sequence[float]) -> float:
    return max(FLOOR, exp(enclosing(errors)) - 1)


def half_width(errors: Errors, family: str, kind: str) -> float:
    """Return half of the band of a family on machines of a kind, as a share either way, from `errors`."""
    return _share(_of_kind(errors, family, kind))


def enclosing(errors: Iterable[float]) -> float:
    """Return the size within which one more error lies with chance `COVERAGE`; 0 where there are none."""
    sizes = sorted(abs(error) for error in errors)
    more = len(sizes) >= MANY  # else the one more would count for the largest
    return sizes[ceil(COVERAGE * (len(sizes) + more)) - 1] if sizes else 0.0


def coverage_left_out(errors: Errors) -> float:
    """Return the share of configurations inside a band that all other configurations of the kind gave."""
    inside = []
    for (family, kind), listed in errors.items():
        for place, error in enumerate(listed):
            rest = {**errors, (family, kind): [*listed[:place], *listed[place + 1 :]]}
            inside.append(abs(error) <= log(1 + half_width(rest, family, kind)))
    return sum(inside) / len(inside) if inside else 0.0
