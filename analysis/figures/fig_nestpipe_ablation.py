"""NestPipe, ablation: what each half hides at 1,536 workers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.figures.frame import SUMMARIES, Figure, Row, Settings, known
from analysis.figures.marks import Keys, bars
from analysis.figures.nestpipe import ALL_TO_ALL, LOOKUP, MOST, lookup_ms, run
from analysis.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS = {"lookup": LOOKUP, "all-to-all": ALL_TO_ALL}
KNOWN = {
    "serialized": ("T2a", "T2b"),
    "dual_buffer": ("T11a", "T11b"),
    "frozen_window": ("T12a", "T12b"),
    "nestpipe": ("T13b", "T13c"),
}


def rows(settings: Settings = ()) -> list[Row]:
    """Return two rows per policy: exposed lookup and exposed all-to-all, ms, with the published ones."""
    found = []
    for policy, (lookup, exchange) in KNOWN.items():
        report = run(policy, MOST, settings)
        hidden = {"lookup": (lookup_ms(report), lookup)}
        hidden |= {"all-to-all": (report.exposed_ms["all_to_all"], exchange)}
        for part, (value, identity) in hidden.items():
            found.append({"policy": policy, "part": part, "exposed_ms": value, **known(identity)})
    return found


def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
    """Draw two bars per policy, and the published values."""
    bars(axes[0], rows, Keys("policy", "part", "exposed_ms"), LOOKS)
    axes[0].set_ylabel("exposed, ms per step")
    style.separate_thousands(axes[0].yaxis)


FIGURE = Figure("fig_nestpipe_ablation", "What each half of NestPipe hides", SUMMARIES, rows, draw)
