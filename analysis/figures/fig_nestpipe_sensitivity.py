"""NestPipe, figure 10: speed-up over serialized by dimension, layers and sequence length."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.figures.frame import Figure, Row, Settings, report_of, shipped, unknown
from analysis.figures.marks import Keys, Look, bars
from analysis.figures.nestpipe import FILE, POLICIES
from analysis.plots import style
from simulator.errors import InfeasibleError
from simulator.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VARIED: dict[str, tuple[int, ...]] = {
    "dimension": (512, 768, 1024),
    "layers": (2, 4, 8),
    "sequence": (512, 1024, 2048),
}
SHOWN = ("serialized", "nestpipe")
OURS = "nestpipe over serialized, 1,536 workers"
NOTE = "no published values: summaries call the gain robust, without numbers"


def rows(settings: Settings = ()) -> list[Row]:
    """Return one row per varied shape: steps in ms and the speed-up; None, and why, where one cannot run."""
    return [
        {"varied": name, "value": value, **_speedup(name, value, settings), **unknown()}
        for name, values in VARIED.items()
        for value in values
    ]


def _speedup(name: str, value: int, settings: Settings) -> Row:
    changes = [f"workload.model.{name}={value}"]
    if name == "dimension":  # rows are as wide as the model
        changes.append(f"workload.tables[0].dimension={value}")
    scenario = shipped(FILE, settings).with_overrides(changes)
    steps = {policy: _step(scenario.with_policy(POLICIES[policy])) for policy in SHOWN}
    missing = [policy for policy, step in steps.items() if step is None]
    serialized, nested = steps.values()
    return {
        **{f"{policy}_ms": step for policy, step in steps.items()},
        "of": OURS,
        "speedup": serialized / nested if serialized and nested else None,
        "note": f"{' and '.join(missing)} does not fit" if missing else "",
    }


def _step(scenario: Scenario) -> float | None:
    try:
        return report_of(scenario).step_ms["mean"]
    except InfeasibleError:
        return None


def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
    """Draw one panel per shape: speed-up over its values; what cannot run is named where its bar would be."""
    for place, name in enumerate(VARIED):
        mine = [row for row in rows if row["varied"] == name]
        bars(axes[place], mine, Keys("value", "of", "speedup"), {OURS: Look(style.VERMILION)})
        axes[place].set_xlabel(name)
        axes[place].axhline(1.0, color=style.INK, linewidth=0.8, linestyle="--", label="no gain")
        for x, row in enumerate(mine):
            _say(axes[place], x, row["note"])
        axes[place].tick_params(axis="x", labelsize=style.SMALL)
    axes[0].set_ylabel("speed-up")


def _say(axes: "Axes", x: float, text: str) -> None:
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    axes.text(x, 0.08, text, rotation=90, ha="center", va="bottom", size=style.SMALL, bbox=paper)


FIGURE = Figure("fig_nestpipe_sensitivity", "Shapes of the model", NOTE, rows, draw, (1, 3), shares_y=True)
