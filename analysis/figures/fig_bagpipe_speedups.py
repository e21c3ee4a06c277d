"""Bagpipe: how much faster it is than what, beside the published best cases.

The published ones are the best of several data sets and models, against baselines that the authors' scripts
run over Gloo. Ours run on the network that Bagpipe itself has, and on one model and data set.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analysis.bagpipe import FILE
from analysis.figures.frame import Figure, Row, Settings, known, report_of, shipped, unknown
from analysis.figures.marks import Keys, Look, bars
from analysis.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAGPIPE = {"kind": "bagpipe", "lookahead": 200}
BASELINES: dict[str, dict[str, Any]] = {
    "no_cache": {"kind": "no_cache"},
    "no_cache, own rows": {"kind": "no_cache", "all_rows": False},
    "rpc_per_table": {"kind": "rpc_per_table"},
    "rpc_coalesced": {"kind": "rpc_coalesced"},
    "fae": {"kind": "fae"},
    "het": {"kind": "het"},
}
PUBLISHED = {"no_cache": ("B-3", "B-4")}
BACKEND = "the network of bagpipe itself"
NOTE = (
    "published: up to, the best of several models and data sets, over baselines on Gloo; ours: one model,"
    f" baselines on {BACKEND}"
)


def rows(settings: Settings = ()) -> list[Row]:
    """Return one row per baseline and published value: its step (ms) over bagpipe's, and its `backend`."""
    scenario = shipped(FILE, settings)
    bagpipe = report_of(scenario.with_policy(BAGPIPE)).step_ms["mean"]
    found = []
    for name, policy in BASELINES.items():
        report = report_of(scenario.with_policy(policy))
        step = report.step_ms["mean"]
        row = {"baseline": name, "backend": BACKEND, "consistency": report.consistency, "step_ms": step}
        row |= {"of": "bagpipe", "bagpipe_ms": bagpipe, "speedup": step / bagpipe}
        found += [{**row, **published} for published in _published(name)]
    return found


def _published(baseline: str) -> list[Row]:
    return [known(identity) for identity in PUBLISHED.get(baseline, ())] or [unknown()]


def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
    """Draw one bar per baseline, and the published values."""
    bars(axes[0], rows, Keys("baseline", "of", "speedup"), {"bagpipe": Look(style.BLUE)})
    axes[0].axhline(1.0, color=style.INK, linewidth=0.8, linestyle="--", label="as fast as the baseline")
    axes[0].set_ylabel("speed-up over the baseline")


FIGURE = Figure("fig_bagpipe_speedups", "Bagpipe over other policies", NOTE, rows, draw, height=3.2)
