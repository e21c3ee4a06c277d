"""Bagpipe: what looking further ahead does to prefetches, the cache and the step."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from analysis.bagpipe import FILE, SWEEP, cached, prefetched
from analysis.figures.frame import Figure, Row, Settings, known_for, shipped, unknown
from analysis.figures.marks import Keys, Look, curves
from analysis.plots import style
from simulator.scenario import run_scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CACHES = {200: "B-7a", 300: "B-7b"}
SHARED, ALONE = "ours", "ours, had each stage the network alone"
LOOKS = {SHARED: Look(style.BLUE), ALONE: Look(style.ORANGE, dashes="--")}
LABELS = {
    "prefetched_thousand_rows": "rows fetched\nper batch, 1,000",
    "cached_million_rows": "rows in a\ncache, million",
    "step_ms": "step, ms",
}
FETCHED, KEPT, STEP = LABELS
NOTE = "published: sizes set in the authors' scripts, which the cache must not exceed; no step is published"


def rows(settings: Settings = ()) -> list[Row]:
    """Return four rows per lookahead: rows fetched, rows cached, and the step with and without sharing."""
    return [row for lookahead in SWEEP for row in _rows(lookahead, settings)]


def _rows(lookahead: int, settings: Settings) -> Iterator[Row]:
    scenario = shipped(FILE, settings).with_overrides(_reaching(lookahead))
    base = {"lookahead": lookahead, "of": SHARED}
    yield {**base, "quantity": FETCHED, "value": prefetched(scenario, lookahead) / 1e3, **unknown()}
    in_cache = cached(scenario, lookahead) / 1e6
    yield {**base, "quantity": KEPT, "value": in_cache, **known_for(CACHES, lookahead)}
    for name, engine in {SHARED: "events", ALONE: "vector"}.items():
        step = run_scenario(scenario, engine).report.step_ms["mean"]
        yield {**base, "of": name, "quantity": STEP, "value": step, **unknown()}


def _reaching(lookahead: int) -> list[str]:
    """Return the settings with which a run looks so far ahead: caches are full before steps count."""
    run = [f"run.warm_up={lookahead + 2}", f"run.batches={2 * lookahead + 160}"]
    return [f"policy={{kind: bagpipe, lookahead: {lookahead}}}", *run]


def draw(rows: Sequence[Row], axes: "Sequence[Axes]") -> None:
    """Draw three panels over the lookahead."""
    for place, (quantity, label) in enumerate(LABELS.items()):
        mine = [row for row in rows if row["quantity"] == quantity]
        looks = LOOKS if quantity == STEP else {SHARED: LOOKS[SHARED]}
        curves(axes[place], mine, Keys("lookahead", "of", "value"), looks)
        axes[place].set_ylabel(label)
        axes[place].set_ylim(0, 1.15 * axes[place].dataLim.ymax)
    axes[-1].set_xlabel("lookahead, batches")


TITLE = "Looking further ahead"
FIGURE = Figure("fig_bagpipe_lookahead", TITLE, NOTE, rows, draw, grid=(3, 1), height=4.2)
