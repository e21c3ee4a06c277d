"""Short names for stages, and texts that are written only where they fit."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Span = tuple[float, float]

GAP = 1.5  # points to leave free beside a text
DIGIT_HEIGHT = 0.73  # of the font size, in matplotlib's own font


def abbreviations(stages: Iterable[str]) -> dict[str, str]:
    """Return the shortest prefix that tells each stage from all others, its number behind it.

    `exchange.3` becomes `e3` where no other stage begins with `e`.
    """
    parts = {stage: stage.partition(".") for stage in stages}
    families = {family for family, _, _ in parts.values()}
    return {stage: _prefix(family, families) + number for stage, (family, _, number) in parts.items()}


def _prefix(family: str, families: Set[str]) -> str:
    shared = (sum(other.startswith(family[:n]) for other in families) > 1 for n in range(1, len(family)))
    return family[: next((n for n, others in enumerate(shared, 1) if not others), len(family))]


@dataclass(frozen=True)
class Writer:
    """Writes into spans of x (ms) on rows of y, where bars are `tall` points high."""

    axes: "Axes"
    points_per_ms: float
    tall: float

    def needs(self, text: str) -> float:
        """Return the ms that `text` needs, gaps included."""
        return (style.text_width(text, style.SMALL) + 2 * GAP) / self.points_per_ms

    def across(self, row: int, span: Span, texts: Sequence[str], **look: Any) -> str:
        """Write the first of `texts` that fits between the ends of `span`; return it, or nothing."""
        room = (span[1] - span[0]) * self.points_per_ms - GAP
        text = next((one for one in texts if style.text_width(one, style.SMALL) <= room), "")
        if text:
            self._write(row, span, text, size=style.SMALL, **look)
        return text

    def upright(self, row: int, span: Span, text: str, **look: Any) -> str:
        """Write `text` from bottom to top, smaller if need be; return it, or nothing."""
        wide = (span[1] - span[0]) * self.points_per_ms
        for size in (style.SMALL, style.TINY):
            if size * DIGIT_HEIGHT + size / 10 <= wide and style.text_width(text, size) + GAP <= self.tall:
                self._write(row, span, text, size=size, rotation=90, **look)
                return text
        return ""

    def _write(self, row: int, span: Span, text: str, **look: Any) -> None:
        look |= {"ha": "center", "va": "center_baseline", "rotation_mode": "anchor"}
        self.axes.text((span[0] + span[1]) / 2, row, text, **look)
