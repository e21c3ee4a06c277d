"""Curves over workers and over cost: how policies scale, and what nothing beats."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.plots import style
from simulator.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[str, Any]
COLORS = (style.BLUE, style.VERMILION, style.GREEN, style.ORANGE, style.PURPLE, style.SKY, style.GREY)
MARKS = "osD^vP*X"
HEIGHT = 2.6  # inches
MOST_TICKS = 10
DECADE = 10.0  # of samples/s: wider fronts are drawn over a logarithm


def draw_scaling(rows: Sequence[Row], path: Path) -> None:
    """Draw scaling efficiency over workers, one curve per scenario and policy, to `path` (`.png`, `.svg`).

    Rows have `scenario`, `policy`, `workers` and `scaling_efficiency` (1 at the fewest workers; rows
    with None are left out). Raises InputError when no row has one.
    """
    kept = [row for row in rows if row["scaling_efficiency"] is not None]
    if not kept:
        raise InputError("no policy was run on two numbers of workers: nothing scales")
    with _axes(path) as axes:
        for place, (name, curve) in enumerate(_curves(kept).items()):
            xs, ys = [row["workers"] for row in curve], [100 * row["scaling_efficiency"] for row in curve]
            axes.plot(xs, ys, label=name, linewidth=1.2, markersize=3.5, **_look(place))
        axes.set_xscale("log", base=2)
        sizes = sorted({row["workers"] for row in kept})
        axes.set_xticks(sizes[:: -(-len(sizes) // MOST_TICKS)])
        axes.minorticks_off()
        style.separate_thousands(axes.xaxis)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("workers")
        axes.set_ylabel("scaling efficiency, %")


def draw_front(rows: Sequence[Row], front: Sequence[Row], path: Path) -> None:
    """Draw cost over throughput, one mark per row, and a line through those of `front`.

    Rows have `policy`, `throughput_samples_per_s` and `usd_per_million_samples` (rows with None are
    left out). Raises InputError when no row has a cost.
    """
    kept = [row for row in rows if row["usd_per_million_samples"] is not None]
    if not kept:
        raise InputError("no row has a cost: no price is known")
    with _axes(path) as axes:
        steps = [(row["throughput_samples_per_s"], row["usd_per_million_samples"]) for row in front]
        axes.plot(*zip(*steps, strict=True), color=style.INK, linewidth=0.8, label="not beaten", zorder=1)
        for place, policy in enumerate(dict.fromkeys(str(row["policy"]) for row in kept)):
            mine = [row for row in kept if row["policy"] == policy]
            xs = [row["throughput_samples_per_s"] for row in mine]
            ys = [row["usd_per_million_samples"] for row in mine]
            axes.plot(xs, ys, label=policy, linestyle="none", markersize=4, **_look(place))
        _scale_throughput(axes, [row["throughput_samples_per_s"] for row in kept])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("samples/s")
        axes.set_ylabel("USD per million samples")


def _scale_throughput(axes: "Axes", values: Sequence[float]) -> None:
    """Write `20 M` instead of 20000000; over more than a decade, along a logarithm."""
    from matplotlib.ticker import EngFormatter, NullFormatter

    if max(values) > DECADE * min(values):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(EngFormatter(sep=" "))


def _curves(rows: Sequence[Row]) -> dict[str, list[Row]]:
    several = len({row["scenario"] for row in rows}) > 1
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: int(row["workers"])):
        name = f"{row['scenario']}: {row['policy']}" if several else str(row["policy"])
        found.setdefault(name, []).append(row)
    return dict(sorted(found.items()))


def _look(place: int) -> dict[str, Any]:
    return {"color": COLORS[place % len(COLORS)], "marker": MARKS[place % len(MARKS)]}


@contextmanager
def _axes(path: Path) -> "Iterator[Axes]":
    """Give one pair of axes, with a legend beside it; it is saved to `path` at the end."""
    import matplotlib
    from matplotlib.figure import Figure

    style.check_suffix(path)
    with style.house_style(), matplotlib.rc_context({"text.parse_math": False}):  # "$" is a sign in names
        figure = Figure(figsize=(style.WIDTH, HEIGHT), layout="constrained")
        axes: Axes = figure.add_subplot()
        axes.grid(True, color=style.PALE, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        yield axes
        figure.legend(loc="outside right upper", frameon=False)
        style.save(figure, path)
