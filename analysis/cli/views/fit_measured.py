"""Fitted primitives, for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.cli.output import count, percent, plain, table
from simulator.calibration.fit_catalog import FitsOf
from simulator.calibration.fit_series import COVERAGE, FittedSeries
from simulator.units import format_time

if TYPE_CHECKING:
    from rich.console import Console

LEGEND = (
    f"held out: |predicted/measured - 1| of measurements kept from the fit, median and 90th percentile; the "
    f"form with the least median is taken. Intervals hold {COVERAGE:.0%}. * too small to be seen."
)


def draw_measured(fits: Sequence[FitsOf], console: "Console") -> None:
    """Draw one line per primitive, with its parameters where they are few."""
    drawn = table("primitive", "form", "rows", "held out", "p90", "parameters", left=2)
    drawn.columns[-1].justify, drawn.columns[-1].no_wrap = "left", False
    for one in fits:
        row = one.row()
        drawn.add_row(
            plain(one.series.name),
            one.best.form.name,
            str(row["rows"]),
            percent(row["held_out_median"]),
            percent(row["held_out_p90"]),
            plain(_parameters(one.best)),
        )
    console.print(drawn)
    console.print()
    console.print(LEGEND, style="dim")


def _parameters(best: FittedSeries) -> str:
    """Return start-up and rates; of segments, how many times they go through."""
    if best.form.name != "affine":
        return f"{len(best.values)} times"
    return "; ".join(
        f"{_value(one.unit, best.values[one.name])} ({_value(one.unit, best.intervals[one.name][0])} to "
        f"{_value(one.unit, best.intervals[one.name][1])}){'*' if one.name in best.at_bound else ''}"
        for one in best.parameters()
    )


def _value(unit: str, value: float) -> str:
    return format_time(value) if unit == "s" else f"{count(value)} {unit}"
