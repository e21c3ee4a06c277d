"""What all pictures share: colours, sizes, and files whose bytes depend on nothing but the data.

Figures are made as objects, without pyplot, so that no window system, backend or setting of the
caller is asked or changed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito, "Color Universal Design" (2008): apart from each other for all common colour blindness.
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#999999"
INK, PALE = "#222222", "#E4E4E4"
# neighbours, and neighbours but one, are well apart: these are the batches that meet on a stream
BATCH_COLORS = (VERMILION, SKY, GREEN, ORANGE, BLUE, YELLOW, PURPLE)
KIND_MARKS = {
    "compute": "",
    "input": "....",
    "lookup": "////",
    "all_to_all": "\\\\\\\\",
    "all_reduce": "xxxx",
    "parameter_server": "++++",
}

WIDTH = 7.2  # inches: the text width of a page, or a column of a report
POINTS = 72.0  # per inch
TINY, SMALL, NORMAL, LARGE = 4.5, 6.0, 7.0, 8.5  # points
SUFFIXES = (".png", ".svg")

_SETTINGS: dict[str, Any] = {
    "font.size": NORMAL,
    "axes.titlesize": LARGE,
    "axes.labelsize": NORMAL,
    "xtick.labelsize": NORMAL,
    "ytick.labelsize": NORMAL,
    "legend.fontsize": NORMAL,
    "axes.linewidth": 0.6,
    "hatch.linewidth": 0.35,
    "text.color": INK,
    "svg.hashsalt": "recscale",
    "savefig.dpi": 220,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw within this: matplotlib's own defaults and our settings, whatever the caller has set."""
    import matplotlib.style

    with matplotlib.style.context(["default", _SETTINGS]):
        yield


def check_suffix(path: Path) -> None:
    """Raise InputError when `path` does not end in one of SUFFIXES."""
    if path.suffix not in SUFFIXES:
        raise InputError(f'pictures end in {" or ".join(SUFFIXES)}, "{path.name}" does not')


def save(figure: "Figure", path: Path) -> None:
    """Write `figure` without the date, so that the same data gives the same bytes."""
    check_suffix(path)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else {})


def separate_thousands(axis: "Axis") -> None:
    """Write the numbers of an axis as `1,000`, and `0.5` as it is."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def text_width(text: str, size: float) -> float:
    """Return the width of `text` in points at font size `size`."""
    from matplotlib.textpath import TextPath

    return float(TextPath((0, 0), text, size=size).get_extents().width) if text.strip() else 0.0


def batch_color(batch: int) -> str:
    """Return the colour of a batch; colours repeat after len(BATCH_COLORS) batches."""
    return BATCH_COLORS[batch % len(BATCH_COLORS)]


def ink_on(color: str) -> str:
    """Return the text colour that is read better on `color` (WCAG 2 relative luminance)."""
    red, green, blue = (_linear(int(color[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return "white" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.18 else INK


def _linear(value: float) -> float:
    return float(value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4)


def milliseconds(value: float) -> str:
    """Return `value` with as many decimals as matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
