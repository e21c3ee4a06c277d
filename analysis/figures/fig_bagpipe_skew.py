"""Bagpipe: which part of all accesses the hottest rows take."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.bagpipe import FILE, hottest_accesses
from analysis.figures.frame import Figure, Row, Settings, known_for, shipped
from analysis.figures.marks import Keys, Look, curves
from analysis.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PERCENT = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
KNOWN = {1.0: "B-5"}
OURS = "one Zipf exponent for all 26 tables"
NOTE = 'published: "about 1 % take more than 92 %"; our exponent is chosen on it'


def rows(settings: Settings = ()) -> list[Row]:
    """Return one row per share of rows, hottest first: the share of accesses that they take, per cent."""
    scenario = shipped(FILE, settings)
    return [
        {
            "of": OURS,
            "rows_percent": percent,
            "accesses_percent": hottest_accesses(scenario, percent / 100),
            **known_for(KNOWN, percent),
        }
        for percent in PERCENT
    ]


def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
    """Draw the curve of coverage, and the published point."""
    curves(axes[0], rows, Keys("rows_percent", "of", "accesses_percent"), {OURS: Look(style.BLUE)})
    axes[0].set_xscale("log")
    style.separate_thousands(axes[0].xaxis)
    axes[0].set_xlabel("hottest rows of all tables together, %")
    axes[0].set_ylabel("accesses, %")
    axes[0].set_ylim(0, 103)


FIGURE = Figure("fig_bagpipe_skew", "Few rows take most accesses", NOTE, rows, draw, height=2.6)
