"""NestPipe, figure 2: what share of a serialized step lookup and all-to-all take, by scale."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.figures.frame import SUMMARIES, Figure, Row, Settings, known, unknown
from analysis.figures.marks import Keys, curves, workers_axis
from analysis.figures.nestpipe import ALL_TO_ALL, LOOKUP, SIZES, lookup_ms, run
from analysis.published import by_id

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS = {"lookup": LOOKUP, "all-to-all": ALL_TO_ALL}
AT_FEWEST = {"lookup": "T4b", "all-to-all": "T4c"}
AT_MOST = {"lookup": "T2a", "all-to-all": "T2b"}


def rows(settings: Settings = ()) -> list[Row]:
    """Return one row per part and size: `part`, `workers`, `share_percent`, and the published share."""
    found = []
    for workers in SIZES:
        report = run("serialized", workers, settings)
        parts = {"lookup": lookup_ms(report), "all-to-all": report.exposed_ms["all_to_all"]}
        for part, spent in parts.items():
            share = 100 * spent / report.step_ms["mean"]
            row = {"part": part, "workers": workers, "share_percent": share}
            found.append({**row, **_published(part, workers)})
    return found


def _published(part: str, workers: int) -> Row:
    """Return the published share: given at 128 workers, from two published times at 1,536."""
    if workers == SIZES[0]:
        return known(AT_FEWEST[part])
    return known(AT_MOST[part], 100 / by_id()["T1"].value) if workers == SIZES[-1] else unknown()


def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
    """Draw one curve per part, and the published shares."""
    curves(axes[0], rows, Keys("workers", "part", "share_percent"), LOOKS)
    workers_axis(axes[0], SIZES)
    axes[0].set_ylabel("share of a serialized step, %")
    axes[0].set_ylim(0, 60)


FIGURE = Figure("fig_nestpipe_shares", "Lookup and all-to-all grow with scale", SUMMARIES, rows, draw)
