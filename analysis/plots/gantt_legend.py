"""The legend below a Gantt chart: batches by colour, kinds by hatching, and what else is drawn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.plots import style
from analysis.plots.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

MOST_NAMED = 9  # batches: with more, `batch` stands before the first only
LINE, FIRST = 0.15, 0.7  # inches: between lines of the legend, and of the first from the bottom


def draw_legend(figure: "Figure", schedule: Schedule, short: Sequence[str], footnote: str) -> None:
    """Draw the lines of the legend at the bottom of the figure; `short` explains abbreviations."""
    lines = [_batches(schedule), _kinds(schedule), _signs(schedule)]
    heights = [(FIRST - place * LINE) / figure.get_figheight() for place in range(len(lines) + 2)]
    for text, height in zip((",  ".join(short), footnote), heights[-2:], strict=True):
        figure.text(0.5, height, text, ha="center", va="center")
    for handles, height in zip(lines, heights, strict=False):
        figure.legend(
            handles=handles,
            loc="center",
            bbox_to_anchor=(0.5, height),
            ncols=len(handles),
            frameon=False,
            handlelength=1.5,
            handleheight=0.8,
            columnspacing=1.0,
            handletextpad=0.4,
            borderpad=0,
        )


def _batches(schedule: Schedule) -> "list[Artist]":
    """One patch per colour; batches far apart share one."""
    from matplotlib.patches import Patch

    shown = sorted({bar.batch for bar in schedule.bars})
    sharing: dict[str, list[str]] = {}
    for batch in shown:
        sharing.setdefault(style.batch_color(batch), []).append(str(batch))
    each = len(shown) <= MOST_NAMED
    return [
        Patch(facecolor=color, edgecolor=style.INK, linewidth=0.25, label=_named(batches, each or place == 0))
        for place, (color, batches) in enumerate(sharing.items())
    ]


def _named(batches: Sequence[str], with_noun: bool) -> str:
    """Return `batch 20`, or `batches 19 and 26` for those of one colour."""
    noun = ("batch " if len(batches) == 1 else "batches ") if with_noun else ""
    return noun + " and ".join(filter(None, (", ".join(batches[:-1]), batches[-1])))


def _kinds(schedule: Schedule) -> "list[Artist]":
    from matplotlib.patches import Patch

    shown = {bar.kind for bar in schedule.bars}
    return [
        Patch(facecolor="white", edgecolor=style.INK, linewidth=0.25, hatch=mark, label=_words(kind))
        for kind, mark in style.KIND_MARKS.items()
        if kind in shown
    ]


def _words(kind: str) -> str:
    return {"all_to_all": "all-to-all", "all_reduce": "all-reduce"}.get(kind, kind.replace("_", " "))


def _signs(schedule: Schedule) -> "list[Artist]":
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    signs: list[Artist] = [
        Line2D([], [], color=style.INK, linewidth=0.9, linestyle=(0, (4, 2)), label="update complete")
    ]
    if schedule.waits:
        signs.append(Patch(facecolor=style.PALE, label="compute waits"))
    if any(bar.begins > bar.arrives for bar in schedule.bars):
        hollow = Patch(facecolor="white", edgecolor=style.GREY, label="waits for the slowest rank")
        signs.append(hollow)
    return signs
