"""What a key log asks for: coverage, popularity by rank with its fitted law, and misses of LRU caches."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.plots import style
from simulator.errors import InputError
from simulator.quantities import FloatArray
from simulator.workload.caches import CacheCurves
from simulator.workload.keys import LogStatistics, TableStatistics, ZipfMandelbrot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = (style.BLUE, style.VERMILION, style.GREEN, style.ORANGE, style.PURPLE, style.SKY)
HEIGHT, PANEL, TITLE = 2.95, 1.75, 0.45  # inches
LEFT, BETWEEN, WIDTH = 0.5, 0.58, 1.78
MOST_POINTS = 400  # of a curve: more cannot be told apart at this size
NOTE = "dashed: the likeliest Zipf-Mandelbrot law (middle), the best possible cache (right)"


def draw_keys(log: LogStatistics, curves: Sequence[CacheCurves], path: Path) -> None:
    """Draw the tables of `log` to `path` (`.png` or `.svg`), with the misses in `curves` of each.

    The six tables with most keys have a colour and a name, the others are grey. Raises InputError for
    another suffix, and for curves of a table that the log does not have.
    """
    from matplotlib.figure import Figure

    style.check_suffix(path)
    known = {one.name: one for one in log}
    strange = next((one.table for one in curves if one.table not in known), None)
    if strange is not None:
        raise InputError(f'the log has no table "{strange}"')
    with style.house_style():
        figure = Figure(figsize=(style.WIDTH, HEIGHT))
        looks = _looks(log)
        _draw_coverage(_panel(figure, 0), log, looks)
        _draw_ranks(_panel(figure, 1), log, looks)
        _draw_misses(_panel(figure, 2), curves, looks)
        _frame(figure, log, looks)
        style.save(figure, path)


Looks = dict[str, dict[str, Any]]


def _looks(log: LogStatistics) -> Looks:
    """Return how each table's line is drawn, the grey ones first so that they lie below."""
    ordered = sorted(log, key=lambda one: -one.frequencies.distinct)
    named = {
        one.name: {"color": color, "linewidth": 1.1, "zorder": 3}
        for one, color in zip(ordered, COLORS, strict=False)
    }
    grey = {"color": style.GREY, "linewidth": 0.6, "zorder": 2}
    return {one.name: named.get(one.name, grey) for one in reversed(ordered)}


def _panel(figure: "Figure", place: int) -> "Axes":
    left = LEFT + place * (WIDTH + BETWEEN)
    bottom = HEIGHT - TITLE - PANEL
    axes = figure.add_axes((left / style.WIDTH, bottom / HEIGHT, WIDTH / style.WIDTH, PANEL / HEIGHT))
    axes.set_xscale("log")
    axes.tick_params(length=2.5, width=0.6, pad=2)
    axes.tick_params(which="minor", length=0)
    axes.grid(color=style.PALE, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _draw_coverage(axes: "Axes", log: LogStatistics, looks: Looks) -> None:
    for one in _in_order(log, looks):
        rows, shares = one.frequencies.classes().cumulative
        places = np.geomspace(1.0, rows[-1], MOST_POINTS)
        axes.plot(100 * places / rows[-1], 100 * np.interp(places, rows, shares), **looks[one.name])
    axes.set(ylim=(0, 102), xlabel="hottest keys (%)", ylabel="lookups on them (%)")
    axes.set_title("Coverage", size=style.NORMAL, pad=4)


def _draw_ranks(axes: "Axes", log: LogStatistics, looks: Looks) -> None:
    axes.set_yscale("log")
    for one in _in_order(log, looks):
        axes.plot(*_ranked(one), **looks[one.name])
        if looks[one.name]["color"] != style.GREY:
            axes.plot(*_fitted(one), **{**looks[one.name], "linewidth": 0.7}, linestyle=(0, (3, 2)))
    lowest = min(one.frequencies.counts[-1] / one.frequencies.lookups for one in log)
    axes.set(ylim=(0.4 * lowest, 1.5), xlabel="rank of a key", ylabel="its part of the lookups")
    axes.set_title("Popularity", size=style.NORMAL, pad=4)


def _ranked(one: TableStatistics) -> tuple[FloatArray, FloatArray]:
    """Return ranks and shares: both ends of each run of keys that were looked up equally often."""
    last = np.cumsum(one.frequencies.keys).astype(np.float64)
    first = np.append(1.0, last[:-1] + 1.0)
    shares = np.array(one.frequencies.counts) / one.frequencies.lookups
    return np.stack([first, last], axis=1).ravel(), np.repeat(shares, 2)


def _fitted(one: TableStatistics) -> tuple[FloatArray, FloatArray]:
    law = ZipfMandelbrot(one.mandelbrot.rows, one.mandelbrot.exponent, one.mandelbrot.shift).classes
    return np.cumsum(law.keys) - (law.keys - 1.0) / 2, law.probability


def _draw_misses(axes: "Axes", curves: Sequence[CacheCurves], looks: Looks) -> None:
    by_table = {one.table: one for one in curves}
    for name, look in looks.items():
        if name in by_table:
            one = by_table[name]
            axes.plot(one.slots, [100 * share for share in one.lru], **look)
            if look["color"] != style.GREY:
                best = [100 * share for share in one.belady]
                axes.plot(one.slots, best, **{**look, "linewidth": 0.7}, linestyle=(0, (3, 2)))
    axes.set(ylim=(0, 102), xlabel="rows in the cache", ylabel="misses (%)")
    axes.set_title("LRU cache", size=style.NORMAL, pad=4)


def _in_order(log: LogStatistics, looks: Looks) -> Iterator[TableStatistics]:
    by_name = {one.name: one for one in log}
    return (by_name[name] for name in looks)


def _frame(figure: "Figure", log: LogStatistics, looks: Looks) -> None:
    """Write the title above, names and note below."""
    from matplotlib.lines import Line2D

    title = f"{Path(log.path).name}: {log.samples:,} samples"
    figure.text(0.5, 1 - 0.14 / HEIGHT, title, size=style.LARGE, ha="center", va="center")
    named = [name for name, look in reversed(looks.items()) if look["color"] != style.GREY]
    handles = [Line2D([], [], **looks[name], label=_short(name)) for name in named]
    others = len(looks) - len(named)
    if others:
        label = "1 other" if others == 1 else f"{others} others"
        handles.append(Line2D([], [], color=style.GREY, linewidth=0.6, label=label))
    look: dict[str, Any] = {"frameon": False, "handlelength": 1.2, "columnspacing": 1.2, "borderpad": 0}
    look |= {"bbox_to_anchor": (0.5, 0.31 / HEIGHT), "ncols": len(handles), "handletextpad": 0.4}
    figure.legend(handles=handles, loc="center", **look)
    figure.text(0.5, 0.12 / HEIGHT, NOTE, ha="center", va="center")


def _short(name: str) -> str:
    return name if len(name) <= 16 else f"{name[:13]}..."
