"""Bagpipe: what a step consists of without a cache, and with one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analysis.bagpipe import FILE, Shares, shares
from analysis.figures.frame import Figure, Row, Settings, known_for, shipped
from analysis.figures.marks import Keys, Look, bars
from analysis.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS = {"no_cache": Look(style.ORANGE, "////"), "bagpipe": Look(style.BLUE)}
POLICIES: dict[str, dict[str, Any]] = {
    "no_cache": {"kind": "no_cache"},
    "bagpipe": {"kind": "bagpipe", "lookahead": 200},
}
PASSES, MOVING, REST = "forward, backward", "rows, gradients", "rest"
KNOWN = {("no_cache", PASSES): "B-2", ("no_cache", MOVING): "B-1"}
NOTE = (
    "published for existing systems that are not named; taken to be no_cache. 8.5 % (first version) and"
    " 75 % (second) do not agree; in ours passes take less than in either"
)


def rows(settings: Settings = ()) -> list[Row]:
    """Return one row per policy and part: its share of the step, per cent, and the published one."""
    scenario = shipped(FILE, settings)
    return [
        {"policy": name, "part": part, "share_percent": share, **known_for(KNOWN, (name, part))}
        for name, policy in POLICIES.items()
        for part, share in _parts(shares(scenario.with_policy(policy))).items()
    ]


def _parts(found: Shares) -> dict[str, float]:
    return {PASSES: found.passes, MOVING: found.moving, REST: 100 - found.passes - found.moving}


def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
    """Draw two bars per part, and the published shares."""
    bars(axes[0], rows, Keys("part", "policy", "share_percent"), LOOKS)
    axes[0].set_ylabel("share of the step, %")


FIGURE = Figure("fig_bagpipe_breakdown", "Where the time goes", NOTE, rows, draw, height=3.2)
