"""Printed bands: how far off predictions of a kind were on the reference measurements, from a file.

`bands.yaml` holds half widths with their source and date; `analysis.band_learning` writes it. They are used
on any folder, whatever its own errors are, so that a band can turn out wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import ceil, exp, log

from analysis.validated import Validated
from simulator.quantities.statistics import COVERAGE

FILE = "bands.yaml"
FEWEST = 15  # errors that tell the 80th percentile; fewer are taken together with more of their kind


@dataclass(frozen=True)
class HalfWidth:
    """`value`: the share of a prediction by which the time may be larger, or smaller the same way.

    So many reference `cases` told it.
    """

    value: float
    cases: int


def banded(case: Validated, widths: Mapping[str, HalfWidth] | None = None) -> Validated:
    """Return the case with the band of its kind, the shipped one unless `widths` says others.

    Nothing is changed where nothing is predicted, where there is a band, or where none is known.
    """
    if case.predicted_ms is None or case.low is not None:
        return case
    known = shipped() if widths is None else widths
    found = next((known[name] for name in names(case) if name in known), None)
    if found is None:
        return case.with_note("no band: nothing is known about the errors of such cases")
    factor = 1 + found.value
    return replace(case, low=case.predicted_ms / factor, high=case.predicted_ms * factor)


def names(case: Validated) -> tuple[str, ...]:
    """Return the names that a half width of the case may have, the most particular first."""
    parts = case.like.split(", ")
    return (*(f"{case.kind}: {', '.join(parts[at:])}" for at in range(len(parts))), case.kind)


def half_width(errors: Sequence[float]) -> float | None:
    """Return the share that holds `COVERAGE` of |log(predicted/measured)| and of one more; None for few.

    That quantile is conformal: of n errors the one of rank `COVERAGE` x (n + 1), rounded up.
    """
    rank = ceil(COVERAGE * (len(errors) + 1))
    if len(errors) < FEWEST:
        return None
    return exp(sorted(abs(error) for error in errors)[rank - 1]) - 1


def log_error(case: Validated) -> float:
    """Return log(predicted/measured) of a predicted case."""
    assert case.predicted_ms is not None
    return log(case.predicted_ms / case.measured_ms)


@cache
def shipped() -> Mapping[str, HalfWidth]:
    """Return the shipped half widths by name."""
    import yaml

    text = files("analysis").joinpath(FILE).read_text(encoding="utf-8")
    data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return {name: HalfWidth(**fields) for name, fields in data["half_widths"].items()}
