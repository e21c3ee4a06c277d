"""NestPipe combined with 2D sparse parallelism: exchanges within groups, pipelined or not."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.figures.frame import SUMMARIES, Figure, Row, Settings, known_for
from analysis.figures.marks import Keys, Look, bars
from analysis.figures.nestpipe import MOST, grouped, run
from analysis.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = ("serialized", "dual_buffer", "frozen_window", "nestpipe")
KINDS = {"one copy of the tables": run, "a copy per group": grouped}
LOOKS = dict(zip(KINDS, (Look(style.BLUE), Look(style.PURPLE, "////")), strict=True))
ONE, EACH = KINDS
KNOWN = {("serialized", ONE): "T1", ("nestpipe", ONE): "T13a", ("serialized", EACH): "T6a"}


def rows(settings: Settings = ()) -> list[Row]:
    """Return one row per policy with tables held once or once per group: `step_ms`, and the published."""
    return [
        {
            "policy": policy,
            "tables": tables,
            "step_ms": runs(policy, MOST, settings).step_ms["mean"],
            **known_for(KNOWN, (policy, tables)),
        }
        for policy in SHOWN
        for tables, runs in KINDS.items()
    ]


def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
    """Draw two bars per policy, and the published steps."""
    bars(axes[0], rows, Keys("policy", "tables", "step_ms"), LOOKS)
    axes[0].set_ylabel(f"step at {MOST:,} workers, ms")
    style.separate_thousands(axes[0].yaxis)


FIGURE = Figure("fig_nestpipe_grouped", "NestPipe with tables copied per group", SUMMARIES, rows, draw)
