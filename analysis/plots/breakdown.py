"""Where a step's time goes, policy by policy: stacked bars, one panel per number of workers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import cos, radians, sin
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.plots import style
from simulator.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = {
    "compute_ms": ("compute", style.BLUE),
    "exposed_input_ms": ("exposed input", style.ORANGE),
    "exposed_lookup_ms": ("exposed lookup", style.GREEN),
    "exposed_all_to_all_ms": ("exposed all-to-all", style.VERMILION),
    "exposed_all_reduce_ms": ("exposed all-reduce", style.PURPLE),
    "exposed_other_ms": ("other waits", style.GREY),
}
NEEDED = ("scenario", "policy", "workers", "step_ms", "speedup", *PARTS)
NOTE = "above each bar: ms per step, and speed-up over serialized at the same workers"
ROUNDING = 1e-3  # of a step: how far parts that were printed may be from adding up
LEFT, RIGHT, TOP, BOTTOM = 0.7, 0.08, 0.3, 0.46  # inches, around all lines of panels
PANEL, TITLE = 1.9, 0.26  # inches of height: bars, and the title above them
BETWEEN, NARROWEST_PANEL = 0.14, 0.8  # inches of width
WIDEST_BAR, NARROWEST_BAR = 60, 28  # hundredths of an inch, the gap beside it included
ROOM = style.WIDTH - LEFT - RIGHT  # inches for a line of panels
HAIR = 0.3 / (PANEL * style.POINTS)  # of a panel's height: what cannot be seen
TILT = 40  # degrees: policy names


def draw_breakdown(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw one stacked bar for each row to `path` (`.png` or `.svg`); rows as `compare` makes them.

    Panels of one scenario share their axis. A row whose `step_ms` is None could not run, and is
    drawn as such. Raises InputError for another suffix, for no rows, for rows that lack a key, and
    for parts that do not add up to the step.
    """
    from matplotlib.figure import Figure

    style.check_suffix(path)
    for row in rows:
        _check(row)
    lines = _lines(_panels(rows))
    with style.house_style():
        page = _Page(lines, _names_height(rows))
        figure = Figure(figsize=(style.WIDTH, page.height))
        for place, line in enumerate(lines):
            _draw_line(figure, page, place, _highest(rows, line[0].scenario))
        _frame(figure, [PARTS[key] for key in PARTS if _is_seen(rows, key)])
        style.save(figure, path)


def _check(row: Mapping[str, Any]) -> None:
    missing = [key for key in NEEDED if key not in row]
    if missing:
        raise InputError(f"a row to be drawn lacks {', '.join(missing)}")
    parts = sum(_parts(row))
    if row["step_ms"] is not None and abs(parts - row["step_ms"]) > ROUNDING * row["step_ms"]:
        raise InputError(
            f"{row['policy']} at {row['workers']} workers: the parts add up to {parts:.3f} ms, "
            f"and the step is {row['step_ms']:.3f} ms"
        )


def _parts(row: Mapping[str, Any]) -> list[float]:
    return [float(row[key] or 0.0) for key in PARTS]


@dataclass(frozen=True)
class _Panel:
    """The rows of one scenario at one number of workers."""

    scenario: str
    workers: int
    rows: list[Mapping[str, Any]]

    @property
    def title(self) -> str:
        return f"{self.workers:,} worker{'s' if self.workers != 1 else ''}"

    def width(self, bar: float) -> float:
        """Return the panel's inches when a bar and its gap take `bar`."""
        return max(NARROWEST_PANEL, bar * len(self.rows))


@dataclass(frozen=True)
class _Page:
    """Where lines of panels stand; below each, policy names need `names` inches."""

    lines: "list[list[_Panel]]"
    names: float

    @cached_property
    def bar(self) -> float:
        """Inches of one bar with its gap, the same all over the page: the widest with which all lines fit."""
        widths = (hundredths / 100 for hundredths in range(WIDEST_BAR, NARROWEST_BAR, -1))
        wide = (width for width in widths if all(_fits(line, width) for line in self.lines))
        most = max(len(panel.rows) for line in self.lines for panel in line)
        return next(wide, min(NARROWEST_BAR / 100, ROOM / most))

    @property
    def height(self) -> float:
        return TOP + BOTTOM + len(self.lines) * (PANEL + TITLE + self.names)

    def bottom(self, place: int) -> float:
        """Return the inches below the panels of a line."""
        return BOTTOM + self.names + (len(self.lines) - 1 - place) * (PANEL + TITLE + self.names)

    @property
    def left(self) -> float:
        """Inches left of the panels, so that the widest line is in the middle."""
        widest = max(_width(line, self.bar) for line in self.lines)
        return LEFT + (ROOM - widest) / 2


def _panels(rows: Sequence[Mapping[str, Any]]) -> list[_Panel]:
    """Group rows by scenario (in order of appearance), then by workers, fewest first."""
    scenarios = list(dict.fromkeys(str(row["scenario"]) for row in rows))
    found: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        key = scenarios.index(str(row["scenario"])), int(row["workers"])
        found.setdefault(key, []).append(row)
    return [_Panel(scenarios[place], workers, found[place, workers]) for place, workers in sorted(found)]


def _lines(panels: Sequence[_Panel]) -> list[list[_Panel]]:
    """Set panels into lines as words: a line holds one scenario, and as many panels as fit."""
    if not panels:
        raise InputError("there are no rows to be drawn")
    lines: list[list[_Panel]] = [[]]
    for panel in panels:
        line = lines[-1]
        new = line and (line[0].scenario != panel.scenario or not _fits([*line, panel], NARROWEST_BAR / 100))
        if new:
            lines.append([panel])
        else:
            line.append(panel)
    return lines


def _width(line: Sequence[_Panel], bar: float) -> float:
    return sum(panel.width(bar) for panel in line) + BETWEEN * (len(line) - 1)


def _fits(line: Sequence[_Panel], bar: float) -> bool:
    return _width(line, bar) <= ROOM


def _names_height(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the inches that the tilted policy names need."""
    longest = max(style.text_width(str(row["policy"]), style.NORMAL) for row in rows)
    return 0.1 + (longest * sin(radians(TILT)) + style.NORMAL * cos(radians(TILT))) / style.POINTS


def _highest(rows: Sequence[Mapping[str, Any]], scenario: str) -> float:
    """Return the upper end of a scenario's axis, with room for two lines of text."""
    steps = [float(row["step_ms"] or 0.0) for row in rows if row["scenario"] == scenario]
    return (max(steps) or 1.0) * (1 + 22 / (PANEL * style.POINTS - 22))


def _draw_line(figure: "Figure", page: _Page, place: int, highest: float) -> None:
    left, line = page.left, page.lines[place]
    for panel in line:
        wide = panel.width(page.bar)
        box = (left / style.WIDTH, page.bottom(place) / page.height, wide / style.WIDTH, PANEL / page.height)
        axes = figure.add_axes(box)
        middle, half = (len(panel.rows) - 1) / 2, wide / page.bar / 2
        axes.set(xlim=(middle - half, middle + half), ylim=(0, highest))
        _frame_panel(axes, panel, first=panel is line[0])
        for number, row in enumerate(panel.rows):
            _draw_bar(axes, number, row, size=style.SMALL * min(1.0, page.bar * 100 / NARROWEST_BAR))
        left += wide + BETWEEN


def _frame_panel(axes: "Axes", panel: _Panel, first: bool) -> None:
    names = [str(row["policy"]).replace("_", " ") for row in panel.rows]
    axes.set_title(panel.title, size=style.NORMAL, pad=4)
    axes.set_xticks(range(len(names)), names, rotation=TILT, **_NAME)
    axes.tick_params(axis="x", length=0, pad=2)
    axes.tick_params(axis="y", length=2.5 if first else 0, width=0.6, labelleft=first)
    style.separate_thousands(axes.yaxis)
    axes.grid(axis="y", color=style.PALE, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines["left"].set_visible(first)
    if first:
        axes.set_ylabel(f"{panel.scenario}\ntime per step (ms)", parse_math=False)


def _draw_bar(axes: "Axes", place: int, row: Mapping[str, Any], size: float) -> None:
    """Stack the parts; write the step, and the speed-up where it is known, above them."""
    if row["step_ms"] is None:
        axes.annotate("cannot run", (place, 0), (0, 3), **_TEXT, size=size, rotation=90, color=style.GREY)
        return
    below = 0.0
    for part, (_, color) in zip(_parts(row), PARTS.values(), strict=True):
        axes.bar(place, part, bottom=below, width=0.74, color=color, edgecolor="white", linewidth=0.3)
        below += part
    speedup = f"\n×{row['speedup']:.2f}" if row["speedup"] is not None else ""
    axes.annotate(style.milliseconds(row["step_ms"]) + speedup, (place, below), (0, 2), **_TEXT, size=size)


_NAME: dict[str, Any] = {"ha": "right", "rotation_mode": "anchor", "parse_math": False}
_TEXT: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom", "linespacing": 1.1}


def _is_seen(rows: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Whether any bar shows this part: it is thicker than a hair."""
    return any((row[key] or 0.0) > HAIR * _highest(rows, str(row["scenario"])) for row in rows)


def _frame(figure: "Figure", parts: Sequence[tuple[str, str]]) -> None:
    """Draw the title above, the legend of the `parts` that occur and its note below."""
    from matplotlib.patches import Patch

    height = figure.get_figheight()
    figure.text(0.5, 1 - 0.16 / height, "What a step is spent on", size=style.LARGE, ha="center", va="center")
    handles = [Patch(facecolor=color, label=name) for name, color in parts]
    look: dict[str, Any] = {"frameon": False, "handlelength": 1.2, "columnspacing": 1.2, "borderpad": 0}
    look |= {"bbox_to_anchor": (0.5, 0.34 / height), "ncols": max(1, len(handles)), "handletextpad": 0.4}
    figure.legend(handles=handles, loc="center", **look)
    figure.text(0.5, 0.14 / height, NOTE, ha="center", va="center")
