"""NestPipe, figure 7: scaling efficiency against 128 workers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.figures.frame import SUMMARIES, Figure, Row, Settings, known_for
from analysis.figures.marks import Keys, curves, workers_axis
from analysis.figures.nestpipe import LOOKS, SIZES, efficiency

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = ("serialized", "two_d_sparse", "stale_prefetch", "nestpipe")
KNOWN = {
    ("serialized", 1536): "T5",
    ("two_d_sparse", 1536): "T6c",
    ("stale_prefetch", 512): "T9a",
    ("stale_prefetch", 1536): "T8c",
    ("nestpipe", 1536): "T14b",
}


def rows(settings: Settings = ()) -> list[Row]:
    """Return one row per policy and size: `efficiency_percent`, and the published one."""
    return [
        {
            "policy": policy,
            "workers": workers,
            "efficiency_percent": efficiency(policy, workers, settings),
            **known_for(KNOWN, (policy, workers)),
        }
        for policy in SHOWN
        for workers in SIZES
    ]


def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
    """Draw one curve per policy, and the published points."""
    keys = Keys("workers", "policy", "efficiency_percent")
    curves(axes[0], rows, keys, {policy: LOOKS[policy] for policy in SHOWN})
    workers_axis(axes[0], SIZES)
    axes[0].set_ylabel("scaling efficiency, %")
    axes[0].set_ylim(0, 105)


FIGURE = Figure("fig_nestpipe_scaling", "Scaling efficiency against 128 workers", SUMMARIES, rows, draw)
