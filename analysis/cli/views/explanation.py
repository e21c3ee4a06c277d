"""Why a step takes as long as it does, for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.cli.output import ms, percent, plain, table
from analysis.explain import CycleStep, Explanation
from analysis.sensitivity import Sensitivity

if TYPE_CHECKING:
    from rich.console import Console

ENDS = 11  # steps of a long cycle that are shown at its beginning and at its end
NIL = 0.0005  # an elasticity below which a parameter changes nothing worth a line


def draw_explanation(answer: Explanation, console: "Console") -> None:
    """Draw the cycle, the resources on it, and what the parameters are worth."""
    batches = "1 batch" if answer.batches == 1 else f"{answer.batches} batches"
    console.print(plain(f"{answer.scenario}: {answer.policy} on {answer.workers:,} workers"), style="bold")
    console.print()
    console.print(
        plain(
            f"No step can take less than {ms(answer.lower_bound_ms)} ms: that long is this cycle of stages, "
            f"each of which waits for the one before it ({ms(answer.cycle_ms)} ms for {batches})."
        )
    )
    console.print()
    _draw_cycle(answer.cycle, console)
    console.print()
    shares = ", ".join(f"{name} {percent(share)}" for name, share in answer.resources.items())
    console.print(plain(f"{answer.binds} binds: of the cycle, {shares}."))
    console.print()
    _draw_sensitivities(answer, console)


def _draw_cycle(cycle: Sequence[CycleStep], console: "Console") -> None:
    drawn = table("stage", "ms", "share", "why the next stage waits")
    drawn.columns[-1].justify = "left"
    hidden = len(cycle) - 2 * ENDS
    longest = max(step.duration_ms for step in cycle)
    for place, step in enumerate(cycle):
        if hidden > 1 and place == ENDS:
            time, share = _sum(cycle[ENDS:-ENDS])
            drawn.add_row(f"({hidden} more)", ms(time, longest), percent(share), "all are in --format json")
        if hidden <= 1 or not ENDS <= place < len(cycle) - ENDS:
            drawn.add_row(
                plain(step.stage),
                ms(step.duration_ms, longest),
                percent(step.share),
                plain(step.why_the_next_waits),
            )
    console.print(drawn)


def _sum(steps: Sequence[CycleStep]) -> tuple[float, float]:
    return sum(step.duration_ms for step in steps), sum(step.share for step in steps)


def _draw_sensitivities(answer: Explanation, console: "Console") -> None:
    moving = [one for one in answer.sensitivities if abs(one.elasticity) >= NIL]
    if moving:
        drawn = table("what would change it", "now", "halved", "doubled")
        for one in moving:
            cells = (_change(bound, answer.lower_bound_ms) for bound in (one.halved_ms, one.doubled_ms))
            drawn.add_row(plain(one.parameter), plain(one.value), *cells)
        console.print(drawn)
        if any("%" in one.value for one in moving):
            console.print("(what is a share is doubled up to 100 % only)", style="dim")
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


def _draw_list(reason: str, parameters: Sequence[Sensitivity], console: "Console") -> None:
    if parameters:
        names = ", ".join(one.parameter for one in parameters)
        console.print(plain(f"{reason}: {names}"))


def _change(bound: float | None, now: float) -> str:
    if bound is None or not now:
        return "-"
    return f"{100 * (bound / now - 1):+.1f}%" if bound != now else "0"
