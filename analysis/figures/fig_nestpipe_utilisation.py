"""NestPipe, figure 8: utilisation, the share of a step in which the compute stream works."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.figures.frame import SUMMARIES, Figure, Row, Settings, known_for
from analysis.figures.marks import Keys, curves, workers_axis
from analysis.figures.nestpipe import LOOKS, POLICIES, SIZES, run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KNOWN = {("serialized", 1536): "T3b", ("nestpipe", 1536): "T14d"}


def rows(settings: Settings = ()) -> list[Row]:
    """Return one row per policy and size: `utilisation_percent`, and the published one."""
    found = []
    for policy in POLICIES:
        for workers in SIZES:
            report = run(policy, workers, settings)
            busy = 100 * report.compute_ms / report.step_ms["mean"]
            row = {"policy": policy, "workers": workers, "utilisation_percent": busy}
            found.append({**row, **known_for(KNOWN, (policy, workers))})
    return found


def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
    """Draw one curve per policy, and the published points."""
    keys = Keys("workers", "policy", "utilisation_percent")
    curves(axes[0], rows, keys, {policy: LOOKS[policy] for policy in POLICIES})
    workers_axis(axes[0], SIZES)
    axes[0].set_ylabel("compute stream busy, %")
    axes[0].set_ylim(0, 105)


FIGURE = Figure("fig_nestpipe_utilisation", "How busy the compute stream is", SUMMARIES, rows, draw)
