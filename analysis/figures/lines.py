"""A plain chart of any rows, one curve per series: what notebooks show of a comparison."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.figures.frame import Computed, Figure, Row, unknown
from analysis.figures.marks import Keys, Look, curves
from analysis.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS = (
    Look(style.INK, dashes=(0, (5, 1, 1, 1, 1, 1))),
    Look(style.ORANGE, width=1.8),
    Look(style.BLUE, dashes=(0, (1.5, 2))),
    Look(style.SKY, dashes="-."),
    Look(style.VERMILION),
    Look(style.PURPLE, dashes="--"),
)


def lines(rows: Sequence[Row], keys: Keys, title: str, note: str = "") -> Computed:
    """Return a chart of `rows`: `keys.y` over `keys.x` (by factors), one curve per `keys.series`.

    Rows in which `keys.y` is None are left out. Looks repeat after len(LOOKS) series.
    """
    kept = [{**unknown(), **row} for row in rows if row[keys.y] is not None]

    def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
        names = list(dict.fromkeys(str(row[keys.series]) for row in rows))
        looks = {name: LOOKS[place % len(LOOKS)] for place, name in enumerate(names)}
        curves(axes[0], rows, keys, looks)
        axes[0].set_xscale("log", base=2)
        axes[0].set_xticks(sorted({row[keys.x] for row in rows}))
        axes[0].minorticks_off()
        style.separate_thousands(axes[0].xaxis)
        style.separate_thousands(axes[0].yaxis)
        axes[0].set_xlabel(keys.x.replace("_", " "))
        axes[0].set_ylabel(keys.y.replace("_", " "))
        axes[0].set_ylim(0, 1.05 * axes[0].dataLim.ymax)

    return Figure("lines", title, note, lambda settings: kept, draw).compute()
