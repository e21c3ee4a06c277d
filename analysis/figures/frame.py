"""What all figures share: rows of numbers beside published ones, and files that never change."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from analysis.figures.marks import legend
from analysis.plots import style
from analysis.published import by_id
from simulator.results.csv_writing import write_csv
from simulator.results.export import replacing
from simulator.results.report import StepReport
from simulator.scenario import Scenario, load, run_scenario
from simulator.scenario.shipped_files import shipped_folder

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

Row = dict[str, Any]
Settings = tuple[str, ...]
"""Changes of the scenarios behind a figure, each `path=value`, as for `recscale run --set`."""
COLUMN_WIDTH = 3.5  # inches: one column of a two-column paper
NOTE_LETTERS = 74  # in a line of the note below a figure
SUMMARIES = "published values: from summaries of the paper, not from the paper"


@dataclass(frozen=True)
class Figure:
    """One figure: a name for its files, what it shows, how its rows are computed and drawn.

    `rows` are computed by running scenarios; each has the columns of `known` where a published value
    belongs to it (those of `unknown` elsewhere). `grid` is (rows, columns) of axes: those above each
    other share x, those beside each other y if `shares_y`. `source` says where published values come
    from, and `height` is in inches.
    """

    name: str
    title: str
    source: str
    rows: Callable[[Settings], list[Row]]
    draw: "Callable[[Sequence[Row], Sequence[Axes]], None]"
    grid: tuple[int, int] = (1, 1)
    shares_y: bool = False
    height: float = 2.9

    def compute(self, *settings: str) -> "Computed":
        """Run what the figure shows; `settings` (`path=value`) change its scenarios.

        Raises InputError for a setting that its scenarios do not take.
        """
        return Computed(self, self.rows(settings), settings)


@dataclass(frozen=True, repr=False)
class Computed:
    """A figure with its numbers, to be shown (in a notebook, by naming it), tabulated or written."""

    figure: Figure
    rows: list[Row]
    settings: Settings = field(default=())

    def __repr__(self) -> str:
        """Return the figure's name, and what was changed."""
        return " ".join([self.figure.name, *self.settings])

    @property
    def note(self) -> str:
        """What stands below the figure: where published values come from, and what was changed."""
        changed = f"changed: {', '.join(self.settings)}" if self.settings else ""
        return "\n".join(fill(text, NOTE_LETTERS) for text in (self.figure.source, changed) if text)

    def drawing(self) -> "Drawing":
        """Return the figure, drawn one column wide."""
        from matplotlib.figure import Figure as Drawing

        shape = self.figure
        drawing = Drawing(figsize=(COLUMN_WIDTH, shape.height), layout="constrained")
        axes = drawing.subplots(*shape.grid, squeeze=False, sharex=shape.grid[0] > 1, sharey=shape.shares_y)
        for one in axes.flat:
            one.spines[["top", "right"]].set_visible(False)
            one.grid(True, axis="y", color=style.PALE, linewidth=0.6)
            one.set_axisbelow(True)
        shape.draw(self.rows, list(axes.flat))
        legend(drawing, shape.title)
        drawing.supxlabel(self.note, fontsize=style.SMALL, color=style.INK)
        return drawing

    def write(self, folder: Path) -> list[Path]:
        """Write NAME.png, NAME.svg and NAME.csv to `folder`; the same numbers give the same bytes."""
        paths = [folder / f"{self.figure.name}.{suffix}" for suffix in ("png", "svg", "csv")]
        with style.house_style():
            for path in paths[:2]:
                with replacing(path) as unfinished:
                    style.save(self.drawing(), unfinished)
        with replacing(paths[2]) as unfinished:
            unfinished.write_text(as_csv(self.rows), encoding="utf-8")
        return paths

    def table(self) -> "pd.DataFrame":
        """Return the numbers, ours and the published, one line per row."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        with style.house_style():
            self.drawing().savefig(picture, format="png")
        return picture.getvalue()


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV with the columns of all of them, in order of appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    write_csv(names, rows, text)
    return text.getvalue()


@cache
def shipped(name: str, settings: Settings = ()) -> Scenario:
    """Return the shipped scenario `name` with `settings`. Raises InputError for one it does not take."""
    return load(shipped_folder() / name, list(settings))


def report_of(scenario: Scenario) -> StepReport:
    """Return the report of the event engine."""
    return run_scenario(scenario).report


def known(identity: str, scale: float = 1.0) -> Row:
    """Return the published value of that id as the columns of a row; `scale` changes its unit."""
    one = by_id()[identity]
    found = {"published": one.value * scale, "role": one.role, "confidence": one.confidence}
    return {**found, "bound": one.is_bound, "published_id": one.id}


def unknown() -> Row:
    """Return the same columns where nothing was published."""
    return dict.fromkeys(("published", "role", "confidence", "bound", "published_id"))


def known_for(ids: Mapping[Any, str], key: Any) -> Row:
    """Return the published columns of the id under `key`, or those of nothing published."""
    return known(ids[key]) if key in ids else unknown()
