"""NestPipe, figure 9: what the number of micro-batches does to the all-to-all, raw and exposed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.figures.frame import SUMMARIES, Figure, Row, Settings, known_for, report_of, shipped, unknown
from analysis.figures.marks import Keys, Look, curves
from analysis.figures.nestpipe import ALL_TO_ALL, FILE
from analysis.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUNTS = (2, 4, 8, 16, 32)
RAW, SHARE = {8: "T13d", 32: "T19a"}, {32: "T19b"}
LOOKS = {"ours": ALL_TO_ALL, "theory: 1/N": Look(style.INK, dashes=(0, (1, 2)))}


def rows(settings: Settings = ()) -> list[Row]:
    """Return three rows per number of micro-batches: raw all-to-all (ms), its exposed share (%), and 1/N."""
    found: list[Row] = []
    for count in COUNTS:
        scenario = shipped(FILE, settings).with_policy({"kind": "nestpipe", "micro_batches": count})
        report = report_of(scenario)
        raw, exposed = report.raw_ms["all_to_all"], report.exposed_ms["all_to_all"]
        base = {"micro_batches": count, "samples": scenario.workload.batch // count}
        ours, share = {**base, "of": "ours"}, {"quantity": "exposed_percent"}
        found.append({**ours, "quantity": "raw_ms", "value": raw, **known_for(RAW, count)})
        found.append({**ours, **share, "value": 100 * exposed / raw, **known_for(SHARE, count)})
        found.append({**base, "of": "theory: 1/N", **share, "value": 100 / count, **unknown()})
    return found


def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
    """Draw the raw all-to-all on the left, the exposed share with 1/N on the right."""
    for place, (quantity, label) in enumerate({"raw_ms": "raw, ms", "exposed_percent": "exposed, %"}.items()):
        mine = [row for row in rows if row["quantity"] == quantity]
        looks = {name: look for name, look in LOOKS.items() if any(row["of"] == name for row in mine)}
        curves(axes[place], mine, Keys("micro_batches", "of", "value"), looks)
        axes[place].set_xscale("log", base=2)
        axes[place].set_xticks(COUNTS, [str(count) for count in COUNTS])
        axes[place].set_xlabel("micro-batches")
        axes[place].set_ylabel(f"all-to-all, {label}")
        axes[place].set_ylim(0, 1.1 * axes[place].dataLim.ymax)
        style.separate_thousands(axes[place].yaxis)


NOTE = f"{SUMMARIES}; why 25.2 % stay exposed with 32 is not said"
TITLE = "Splitting: more traffic, less exposed"
FIGURE = Figure("fig_nestpipe_micro_batches", TITLE, NOTE, rows, draw, grid=(1, 2))
