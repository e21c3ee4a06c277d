"""Google, figure 7: what each layer of optimisations gives five models, beside the published range.

The models are ours, for none of Google's is described: inputs, and no evidence for their own gains
(docs/decisions/0009-five-models-for-google.md).
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from analysis.figures.frame import Figure, Row, Settings, known, shipped, unknown
from analysis.figures.marks import Keys, Look, bars
from analysis.google import FILE, WIDTHS, Gains, five, gains, geometric_mean
from analysis.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS = {
    "+ pipelining": Look(style.SKY),
    "+ hybrid partitioning": Look(style.ORANGE, "////"),
    "+ feedback": Look(style.GREEN, "...."),
}
PIPELINING, HYBRID, FEEDBACK = LOOKS
NOTE = (
    "baseline: serialized, whole tables. Our five models are inputs and no evidence; Google's are not"
    " described (range: by a review of the paper; mean: its abstract)"
)


@cache
def models(settings: Settings = ()) -> tuple[Gains, ...]:
    """Return the gains of the five models, the smallest dense side first."""
    if not settings:
        return five()
    scenario = shipped(FILE, settings)
    return tuple(gains(scenario, mflop) for mflop in WIDTHS)


def rows(settings: Settings = ()) -> list[Row]:
    """Return one row per model and layer: `gain` over the baseline; and three that sum the models up."""
    found = models(settings)
    each = [row for one in found for row in _layers(one)]
    sums = {"least": min(one.whole for one in found), "mean": geometric_mean(found)}
    sums["most"] = max(one.whole for one in found)
    ids = {"least": "G-1a", "mean": "G-1c", "most": "G-1b"}
    told = [
        {"model": name, "layer": FEEDBACK, "gain": gain, **known(ids[name])} for name, gain in sums.items()
    ]
    return each + told


def _layers(one: Gains) -> list[Row]:
    steps = {PIPELINING: one.pipelined, HYBRID: one.hybrid, FEEDBACK: one.feedback}
    return [
        {"model": str(one.mflop), "layer": layer, "gain": one.base / step, "step_ms": step, **unknown()}
        for layer, step in steps.items()
    ]


def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
    """Draw three bars per model, then the least, mean and largest gain beside the published ones."""
    bars(axes[0], rows, Keys("model", "layer", "gain"), LOOKS)
    axes[0].axhline(1.0, color=style.INK, linewidth=0.8, linestyle="--", label="baseline")
    axes[0].axvline(len(WIDTHS) - 0.5, color=style.PALE, linewidth=0.8)
    axes[0].set_xlabel("MFLOP per sample of five models; and all of them together")
    axes[0].set_ylabel("gain over the baseline")


FIGURE = Figure("fig_google_layers", "What pipelining and placement give", NOTE, rows, draw, height=3.2)
