"""NestPipe, main table: the step at 1,536 workers by policy, and what it consists of."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.figures.frame import SUMMARIES, Figure, Row, Settings, known_for
from analysis.figures.marks import Look, stacks
from analysis.figures.nestpipe import ALL_TO_ALL, LOOKUP, MOST, POLICIES, lookup_ms, named
from analysis.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = {
    "compute_ms": ("compute", Look(style.BLUE)),
    "lookup_ms": ("exposed lookup", LOOKUP),
    "all_to_all_ms": ("exposed all-to-all", ALL_TO_ALL),
    "other_ms": ("other waits", Look(style.YELLOW, "....")),
}
STEPS = {"serialized": "T1", "stale_prefetch": "T8a", "dual_buffer": "T11c", "frozen_window": "T12c"}
STEPS |= {"nestpipe": "T13a", "two_d_sparse": "T6a"}


def rows(settings: Settings = ()) -> list[Row]:
    """Return one row per policy: `step_ms`, its parts, and the published step."""
    found = []
    for policy in (*POLICIES, "two_d_sparse"):
        report = named(policy, MOST, settings)
        step, compute, lookup = report.step_ms["mean"], report.compute_ms, lookup_ms(report)
        exchange = report.exposed_ms["all_to_all"]
        parts = {"compute_ms": compute, "lookup_ms": lookup, "all_to_all_ms": exchange}
        other = step - compute - lookup - exchange
        row = {"policy": policy, "step_ms": step, **parts, "other_ms": other}
        found.append({**row, **known_for(STEPS, policy)})
    return found


def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
    """Draw one stacked bar per policy, and the published steps."""
    stacks(axes[0], rows, "policy", PARTS)
    axes[0].set_ylabel(f"step at {MOST:,} workers, ms")
    style.separate_thousands(axes[0].yaxis)


FIGURE = Figure("fig_nestpipe_main", "What each policy leaves exposed", SUMMARIES, rows, draw, height=3.2)
