"""Fitted primitives, for people."""

from typing import TYPE_CHECKING

from analysis.cli.output import count, percent, plain, table
from simulator.calibration.fit_measurement import MeasuredFit, gemm_row
from simulator.calibration.fit_series import FittedSeries
from simulator.calibration.gemm_doubt import FittedGemm
from simulator.quantities.statistics import COVERAGE
from simulator.units import format_time

if TYPE_CHECKING:
    from rich.console import Console

LEGEND = (
    f"held out: |predicted/measured - 1| of measurements kept from the fit, median and 90th percentile; the "
    f"form with the least median is taken. Intervals hold {COVERAGE:.0%}. * too small to be seen."
)


def draw_measured(fits: MeasuredFit, console: "Console") -> None:
    """Draw one line per primitive and law, the names of collective curves, and what was left out."""
    drawn = table("primitive", "form", "rows", "held out", "p90", "parameters", left=2)
    drawn.columns[-1].justify, drawn.columns[-1].no_wrap = "left", False
    lines = [(one.row(), _parameters(one.best)) for one in fits.primitives]
    lines += [(gemm_row(one), _law(one)) for one in fits.gemm]
    for row, parameters in lines:
        errors = (percent(row["held_out_median"]), percent(row["held_out_p90"]))
        drawn.add_row(plain(row["primitive"]), row["form"], str(row["rows"]), *errors, plain(parameters))
    console.print(drawn)
    console.print()
    console.print(LEGEND, style="dim")
    if fits.collectives:
        names = ", ".join(one.system.name for one in fits.collectives.fitted)
        console.print(plain(f"curves of collectives: {names}"))
    if fits.left_out:
        console.print(plain(f"! not fitted: {'; '.join(fits.left_out)}"), style="yellow")


def _law(one: FittedGemm) -> str:
    law = one.time.law
    rates = f"{count(law.rate)} flop/s; {count(law.bandwidth)} B/s; start_up {format_time(law.start_up)}"
    return f"{rates}{'; * ' + ', '.join(one.at_bound) if one.at_bound else ''}"


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
