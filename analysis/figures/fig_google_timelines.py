"""Google, figure 5: timelines of SparseCores and TensorCores, serialized and pipelined, as computed."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from analysis.figures.frame import Figure, Row, Settings, shipped, unknown
from analysis.figures.marks import Look
from analysis.plots import style
from analysis.plots.schedule import Bar, Schedule
from simulator.scenario import run_scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILE = "google/host_tables.yaml"
POLICIES = {"serialized": "sparse_core", "pipelined": "sparse_core_pipelined"}
CORES = {"sparse": "SparseCores", "compute": "TensorCores"}
SCATTERING = ("pack", "send", "sparse_update")
PHASES = {
    "gather rows": Look(style.GREEN, "////"),
    "scatter gradients": Look(style.YELLOW, "...."),
    "dense passes, optimizer": Look(style.SKY),
}
GATHER, SCATTER, DENSE = PHASES
STEPS = 3
NOTE = "computed for a model of ours on 128 TPU v4 chips; the published figure is a sketch without numbers"


def rows(settings: Settings = ()) -> list[Row]:
    """Return one row per phase of a batch on one kind of core: `begins_ms`, `ends_ms` from a step's start."""
    return [
        row
        for schedule, policy in POLICIES.items()
        for stream in CORES
        for row in _phases(schedule, Schedule(_run(policy, settings), STEPS).on(stream))
    ]


def _run(policy: str, settings: Settings) -> Any:
    return run_scenario(shipped(FILE, settings).with_policy({"kind": policy}))


def _phases(schedule: str, bars: Sequence[Bar]) -> list[Row]:
    """Return what one core does, neighbouring stages of one batch and phase made one."""
    found = []
    for (batch, phase), run in groupby(bars, lambda bar: (bar.batch, _phase(bar))):
        parts = list(run)
        row = {"schedule": schedule, "core": CORES[parts[0].stream], "batch": batch, "phase": phase}
        row |= {"begins_ms": parts[0].begins, "ends_ms": parts[-1].ends}
        found.append({**row, **unknown()})
    return found


def _phase(bar: Bar) -> str:
    if bar.stream == "compute":
        return DENSE
    return SCATTER if bar.stage in SCATTERING else GATHER


def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
    """Draw one chart per schedule: a line per kind of core, each bar with the number of its batch."""
    first = min(row["batch"] for row in rows)
    for place, schedule in enumerate(POLICIES):
        mine = [row for row in rows if row["schedule"] == schedule]
        for row in mine:
            _bar(axes[place], row, 1 + row["batch"] - first)
        axes[place].set_yticks(range(len(CORES)), CORES.values())
        axes[place].set_ylim(len(CORES) - 0.5, -0.5)
        axes[place].grid(False)
        per_step = max(row["ends_ms"] for row in mine) / STEPS
        axes[place].set_title(f"{schedule}: {per_step:.1f} ms per step", size=style.NORMAL, loc="left")
    axes[-1].set_xlabel("ms; numbers are batches")


def _bar(axes: "Axes", row: Row, number: int) -> None:
    look, line = PHASES[row["phase"]], list(CORES.values()).index(row["core"])
    box: dict[str, Any] = {"color": look.color, "hatch": look.hatch, "edgecolor": style.INK, "linewidth": 0.3}
    wide = row["ends_ms"] - row["begins_ms"]
    axes.barh(line, wide, 0.6, row["begins_ms"], label=row["phase"], **box)
    if wide > 0.6:
        paper = {"facecolor": look.color, "edgecolor": "none", "pad": 0.4}
        at: dict[str, Any] = {"ha": "center", "va": "center", "size": style.SMALL, "bbox": paper}
        axes.text(row["begins_ms"] + wide / 2, line, str(number), **at)


TITLE = "SparseCores beside TensorCores"
FIGURE = Figure("fig_google_timelines", TITLE, NOTE, rows, draw, grid=(2, 1))
