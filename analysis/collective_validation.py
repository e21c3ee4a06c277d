"""Measured collectives that were kept from the fit, and what the fit said about them.

`python -m analysis.collective_validation FOLDER` writes `docs/collectives.md` anew (run it in the checkout)
from the tables in FOLDER.
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from simulator.calibration.collective_held_out import (
    Fitter,
    HeldOut,
    every_second_size,
    from_to,
    interpolated,
    larger_scales,
    median_and_p90,
    scales_between,
)
from simulator.calibration.collective_lines import fit_lines
from simulator.calibration.collective_tables import Table, read_tables
from simulator.quantities import statistics

OPERATIONS = ("all_to_all", "all_reduce", "all_gather")
Errors = tuple[float, float, int]


@dataclass(frozen=True)
class Target:
    """What a kind of prediction is asked for: the median and, where it matters, the p90 of the errors."""

    name: str
    median: Mapping[str, float]
    p90: float | None = None

    def met(self, operation: str, errors: Errors) -> bool:
        """Whether `errors` of `operation` are within the target."""
        return errors[0] <= self.median[operation] and (self.p90 is None or errors[1] <= self.p90)


OTHER_SIZES = Target("every second size", dict.fromkeys(OPERATIONS, 0.08), 0.30)
LARGER_SCALES = Target(
    "whole tables, up to 4x the nodes", {"all_to_all": 0.20, "all_reduce": 0.15, "all_gather": 0.15}
)
WITH_LENT = Target("the same, and networks lent", LARGER_SCALES.median)
REFUSED = 1.0  # the error that a prediction counts for which was not made
FITTERS: Mapping[str, Fitter] = {
    "one line": lambda sizes, times: fit_lines(sizes, times, 1),
    "three lines": fit_lines,
    "log-log": interpolated,
}


@dataclass(frozen=True)
class Validation:
    """All predictions of one folder of tables; `tables` are those that may be fitted."""

    tables: tuple[Table, ...]
    noise: tuple[str, ...]
    sizes: tuple[HeldOut, ...]
    larger: tuple[HeldOut, ...]
    between: tuple[HeldOut, ...]
    far: tuple[HeldOut, ...]

    @property
    def own(self) -> tuple[HeldOut, ...]:
        """The larger scales of clusters whose own network had been tested at a smaller one."""
        return tuple(case for case in self.larger if case.predicted is not None and not case.lender)

    @property
    def lent(self) -> tuple[HeldOut, ...]:
        """The larger scales of clusters that were tested inside hosts only."""
        return tuple(case for case in self.larger if case.predicted is None or case.lender)

    @property
    def digest(self) -> str:
        """A mark of the tables, to tell whether a page was written from the same ones."""
        text = repr([(table.name, table.sizes, table.times) for table in self.tables])
        return sha256(text.encode()).hexdigest()[:12]


def validate(folder: Path) -> Validation:
    """Return the predictions of held-out measurements in `folder`; raise InputError if it cannot be read."""
    everything = read_tables(folder)
    tables = tuple(table for table in everything if not table.noise_only)
    return Validation(
        tables=tables,
        noise=tuple(table.name for table in everything if table.noise_only),
        sizes=tuple(every_second_size(tables)),
        larger=tuple(larger_scales(tables)),
        between=tuple(scales_between(tables)),
        far=tuple(from_to(tables, most=16, least=128)),
    )


def errors_of(cases: Iterable[HeldOut], operation: str) -> Errors:
    """Return the median and p90 of |error| for one operation, and the rows behind them."""
    return median_and_p90(case for case in cases if case.table.operation == operation)


def errors_with_refusals(cases: Iterable[HeldOut], operation: str) -> Errors:
    """Return the same, every row that was refused counted as wrong by `REFUSED`."""
    alike = [case for case in cases if case.table.operation == operation]
    errors = [error for case in alike for error in case.errors.tolist()]
    errors += [REFUSED for case in alike if case.predicted is None for _ in case.sizes]
    return statistics.median_and_p90(errors)


if __name__ == "__main__":
    from analysis.collective_page import write

    print(write(Path(sys.argv[1])))
