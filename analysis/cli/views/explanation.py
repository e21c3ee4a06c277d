"""Why a step takes as long as it does, for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.cli.output import percent, plain, table
from analysis.cli.views.words import MOST_STAGES, Fold, folded
from analysis.explain import CycleStep, Explanation
from analysis.sensitivity import ESTIMATE, Sensitivity
from analysis.times import ms

if TYPE_CHECKING:
    from rich.console import Console

NIL = 0.0005  # an elasticity below which a parameter changes nothing worth a line


def draw_explanation(answer: Explanation, verbose: bool, console: "Console") -> None:
    """Draw the cycle, the resources on it, and what the parameters are worth; all steps if `verbose`."""
    batches = "1 batch" if answer.batches == 1 else f"{answer.batches} batches"
    console.print(plain(f"{answer.scenario}: {answer.policy} on {answer.workers:,} workers"), style="bold")
    console.print()
    console.print(
        plain(
            f"A step takes {ms(answer.step_ms)} ms on the event engine. In no run does it take less than "
            f"{ms(answer.lower_bound_ms)} ms: so much follows from the shortest time of each stage. "
            f"What sets the pace is this cycle of stages, each of which waits for the one before it "
            f"({ms(answer.cycle_ms)} ms for {batches})."
        )
    )
    console.print()
    _draw_cycle(answer.cycle, verbose, console)
    console.print()
    shares = ", ".join(f"{name} {percent(share)}" for name, share in answer.resources.items())
    console.print(plain(f"{answer.binds} binds: of the cycle, {shares}."))
    console.print()
    _draw_sensitivities(answer, console)


def _draw_cycle(cycle: Sequence[CycleStep], verbose: bool, console: "Console") -> None:
    drawn = table("stage", "ms", "of cycle", "why the next stage waits")
    drawn.columns[0].no_wrap, drawn.columns[-1].no_wrap = True, False
    drawn.columns[-1].justify = "left"
    longest = max(step.duration_ms for step in cycle)
    names = [step.stage for step in cycle]
    whole = verbose or len(cycle) <= MOST_STAGES
    for fold in map(_alone, range(len(names)), names) if whole else folded(names):
        steps = cycle[fold.begin : fold.end]
        drawn.add_row(
            plain(str(fold)),
            ms(sum(step.duration_ms for step in steps), longest),
            percent(sum(step.share for step in steps)),
            plain(steps[-1].why_the_next_waits),
        )
    console.print(drawn)
    if not whole:
        console.print("(micro-batches are added up; --verbose lists them)", style="dim")


def _alone(place: int, stage: str) -> Fold:
    return Fold(stage, 1, place, place + 1)


def _draw_sensitivities(answer: Explanation, console: "Console") -> None:
    moving = [one for one in answer.sensitivities if abs(one.elasticity) >= NIL]
    if moving:
        drawn = table("what would change it", "now", "step\nif halved", "step\nif doubled")
        for one in sorted(moving, key=_by_doubling):
            cells = (_change(step, answer.without_jitter_ms) for step in (one.halved_ms, one.doubled_ms))
            drawn.add_row(plain(one.parameter), plain(one.value), *cells)
        console.print(drawn)
        if any("%" in one.value for one in moving):
            console.print("(what is a share is doubled up to 100 % only)", style="dim")
        console.print(f"({_engines(answer)})", style="dim")
        console.print()
    still = [one for one in answer.sensitivities if abs(one.elasticity) < NIL]
    _draw_list(
        f"changes next to nothing because {answer.binds} binds", [one for one in still if one.used], console
    )
    _draw_list(
        "changes nothing because no stage's time depends on it",
        [one for one in still if not one.used],
        console,
    )


def _engines(answer: Explanation) -> str:
    """Say what the steps with a parameter changed are from."""
    estimated = sum(one.engine == ESTIMATE for one in answer.sensitivities)
    left_out = f", {' and '.join(answer.left_out)} left out" if answer.left_out else ""
    if not estimated:
        return f"each was run on the event engine{left_out}"
    counted = f"{estimated} of {len(answer.sensitivities)} parameters"
    return f"run on the event engine{left_out}; for {counted}, too many to run, estimated by the cycle alone"


def _by_doubling(one: Sensitivity) -> tuple[float, float]:
    """Order by the step with the parameter doubled, shortest first; what cannot be doubled comes last."""
    far = float("inf")
    return far if one.doubled_ms is None else one.doubled_ms, far if one.halved_ms is None else one.halved_ms


def _draw_list(reason: str, parameters: Sequence[Sensitivity], console: "Console") -> None:
    if parameters:
        names = ", ".join(one.parameter for one in parameters)
        console.print(plain(f"{reason}: {names}"))


def _change(step: float | None, now: float) -> str:
    if step is None or not now:
        return "-"
    return f"{round(100 * (step / now - 1), 1) + 0.0:+.1f}%"  # no -0.0%
