"""How figures draw: curves and bars told apart without colour, published values in ink, one legend on top."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

Row = Mapping[str, Any]
Dashes = str | tuple[int, tuple[float, ...]]
PUBLISHED = "published: "
MARKS = {  # by role, and for upper limits: the mark, whether it is filled, what the legend calls it
    "input": ("s", False, f"{PUBLISHED}input"),
    "fit": ("^", False, f"{PUBLISHED}in a fit"),
    "predict": ("o", True, f"{PUBLISHED}predicted"),
    "bound": ("v", True, f"{PUBLISHED}at most"),
}
LEGEND_COLUMNS = 3
HANDLE = 2.4  # times the font size: long enough to tell dashes


@dataclass(frozen=True)
class Look:
    """How one series is drawn: its colour, and hatching (bars) or dashes (curves) that tell it without."""

    color: str
    hatch: str = ""
    dashes: Dashes = "-"
    width: float = 1.3


@dataclass(frozen=True)
class Keys:
    """Which columns of rows are drawn: along x, by series, and upwards."""

    x: str
    series: str
    y: str


def curves(axes: "Axes", rows: Sequence[Row], keys: Keys, looks: Mapping[str, Look]) -> None:
    """Draw one curve per series, and published values with a thin line to ours."""
    for series, look in looks.items():
        mine = [row for row in rows if row[keys.series] == series]
        line: dict[str, Any] = {"color": look.color, "linestyle": look.dashes, "linewidth": look.width}
        axes.plot([row[keys.x] for row in mine], [row[keys.y] for row in mine], label=series, **line)
    marked = [row for row in rows if row["published"] is not None]
    for row in marked:
        ends = (row[keys.y], row["published"])
        axes.plot([row[keys.x]] * 2, ends, color=style.INK, linewidth=0.5, zorder=2.5)
    mark_published(axes, ((float(row[keys.x]), row) for row in marked))


def bars(axes: "Axes", rows: Sequence[Row], keys: Keys, looks: Mapping[str, Look]) -> None:
    """Draw groups of bars, one bar per series, and published values; name the groups below."""
    groups = list(dict.fromkeys(row[keys.x] for row in rows))
    wide = 0.8 / len(looks)
    shifts = {series: (place - (len(looks) - 1) / 2) * wide for place, series in enumerate(looks)}
    at = [(groups.index(row[keys.x]) + shifts[row[keys.series]], row) for row in rows]
    for series, look in looks.items():
        mine = [(x, row[keys.y]) for x, row in at if row[keys.series] == series and row[keys.y] is not None]
        _draw_bars(axes, mine, look, width=0.94 * wide, label=series)
    mark_published(axes, at)
    name_groups(axes, groups)


def stacks(axes: "Axes", rows: Sequence[Row], x: str, parts: Mapping[str, tuple[str, Look]]) -> None:
    """Draw one bar per row, piled up of `parts` (column: its name and look), and published totals."""
    bottom = [0.0] * len(rows)
    for key, (name, look) in parts.items():
        heights = [row[key] for row in rows]
        _draw_bars(axes, list(enumerate(heights)), look, width=0.7, bottom=bottom, label=name)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    mark_published(axes, ((float(place), row) for place, row in enumerate(rows)))
    name_groups(axes, [row[x] for row in rows])


def _draw_bars(axes: "Axes", places: Sequence[tuple[float, float]], look: Look, **options: Any) -> None:
    xs, heights = [x for x, _ in places], [height for _, height in places]
    axes.bar(xs, heights, color=look.color, hatch=look.hatch, edgecolor=style.INK, linewidth=0.3, **options)


def name_groups(axes: "Axes", groups: Sequence[Any]) -> None:
    """Name what stands at 0, 1, 2, ... of x; slanted where names are long."""
    names = [f"{one:,}" if isinstance(one, int) else str(one) for one in groups]
    slanted = sum(map(len, names)) > 40
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.6, len(names) - 0.4)
    if slanted:
        axes.tick_params(axis="x", labelrotation=25)
        for text in axes.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")


def mark_published(axes: "Axes", placed: Iterable[tuple[float, Row]]) -> None:
    """Mark published values at their x, by role: filled where ours is a prediction, open elsewhere."""
    marked: dict[str, list[tuple[float, float]]] = {kind: [] for kind in MARKS}
    for x, row in placed:
        if row["published"] is not None:
            marked["bound" if row["bound"] else row["role"]].append((x, row["published"]))
    for kind, points in marked.items():
        if points:
            mark, filled, name = MARKS[kind]
            face, edge = (style.INK, "white") if filled else ("white", style.INK)
            look: dict[str, Any] = {"markersize": 4.5, "markeredgewidth": 0.6, "zorder": 3}
            look |= {"markerfacecolor": face, "markeredgecolor": edge}
            axes.plot(*zip(*points, strict=True), mark, label=name, **look)


def legend(drawing: "Drawing", title: str) -> None:
    """Put the title and, below it, one legend above all axes: each label once, published ones last."""
    once: dict[str, Any] = {}
    for axes in drawing.axes:
        handles, labels = axes.get_legend_handles_labels()
        once.update(zip(labels, handles, strict=True))
    names = sorted(once, key=lambda label: label.startswith(PUBLISHED))
    shape: dict[str, Any] = {"frameon": False, "fontsize": style.SMALL, "handlelength": HANDLE}
    shape |= {"title": title, "title_fontsize": style.LARGE, "columnspacing": 1.2, "borderpad": 0.1}
    shape |= {"ncols": columns(names, drawing.get_figwidth() * style.POINTS)}
    drawing.legend([once[name] for name in names], names, loc="outside upper center", **shape)


def columns(names: Sequence[str], room: float) -> int:
    """Return in how many columns a legend of `names` fits `room` (points): names fill one after the other."""
    for count in range(min(LEGEND_COLUMNS, len(names)), 1, -1):
        deep = -(-len(names) // count)
        runs = [names[start : start + deep] for start in range(0, len(names), deep)]
        widths = (max(style.text_width(name, style.SMALL) for name in run) for run in runs)
        if sum(widths) + count * (HANDLE + 2.5) * style.SMALL <= room:
            return count
    return 1


def workers_axis(axes: "Axes", workers: Sequence[int]) -> None:
    """Make x an axis of numbers of workers, each named, evenly spaced by factors."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(workers))
    axes.minorticks_off()
    style.separate_thousands(axes.xaxis)
    axes.set_xlabel("workers")
