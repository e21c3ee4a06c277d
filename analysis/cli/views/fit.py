"""Fitted collective curves, for people."""

from itertools import groupby
from typing import TYPE_CHECKING, Any

from analysis.cli.output import percent, plain, table
from simulator.calibration.collectives import CollectiveFit, FittedSystem

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

LEGEND = (
    "tested at: nodes; * borrowed from another setting of the cluster. decay: bandwidth falls with this "
    "power of the nodes beyond the largest scale. Errors are |predicted/measured - 1| of rows held out: "
    "every second size (median, 90th percentile), and whole tables at up to four times the largest "
    "known nodes (median). -: nothing to hold out."
)


def draw_fit(fitted: CollectiveFit, console: "Console") -> None:
    """Draw one table per cluster, then what was left out."""
    for cluster, systems in groupby(fitted.fitted, key=lambda one: one.system.cluster):
        console.print(plain(cluster), style="bold")
        console.print(_table(list(systems)))
        console.print()
    console.print(LEGEND, style="dim")
    if fitted.left_out:
        console.print()
        names = ", ".join(fitted.left_out)
        console.print(plain(f"! fit for noise studies only, by their own notes: {names}"), style="yellow")


def _table(systems: list[FittedSystem]) -> "Table":
    drawn = table("operation", "setting", "tested at", "decay", "sizes", "p90", "scales", left=3, gap=1)
    for place, one in enumerate(systems):
        row = one.row()
        first = place == 0 or systems[place - 1].system.operation != one.system.operation
        drawn.add_row(
            row["operation"] if first else "",
            plain(str(one.system.setting)),
            _scales(one),
            "-" if row["decay"] is None else f"{row['decay']:.2f}",
            *(_error(row[name]) for name in ("sizes_median_error", "sizes_p90_error", "scales_median_error")),
        )
    return drawn


def _error(share: Any) -> str:
    return percent(share)


def _scales(one: FittedSystem) -> str:
    """Return the nodes of each scale, once each."""
    borrowed = {scale.nodes for scale in one.system.borrowed}
    nodes = dict.fromkeys(measured.scale.nodes for measured in one.system.curve.measured)
    return ", ".join(f"{count}{'*' if count in borrowed else ''}" for count in nodes)
