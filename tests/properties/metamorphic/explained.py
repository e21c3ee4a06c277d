"""Why a step may be longer although there is more of something: named classes, each with a theory test.

`tests/theory/test_sharing_anomaly.py` shows both by hand.
"""

from simulator.scenario import run_scenario
from simulator.scenario.simulate import Run

from .relations import ROUNDING, rounding_ms, step_ms

LARGEST = 0.03  # a step that is longer by more than this share is explained by nothing


def why_slower(before: Run, after: Run) -> str | None:
    """Return the class of a step that is longer with more of something, or None: it must not be."""
    if step_ms(after) > step_ms(before) * (1 + LARGEST):
        return None
    if after.report.interference_ms > 0 and not _slower_alone(before, after):
        return "what comes earlier takes from what the step waits for"
    if _done_ms(after) <= _done_ms(before) * (1 + ROUNDING):
        return "the first counted update comes earlier, the last one no later"
    return None


def _slower_alone(before: Run, after: Run) -> bool:
    """Whether it is so even where nothing is shared."""
    alone = [run_scenario(run.scenario.with_overrides(["run.contention=false"])) for run in (before, after)]
    return step_ms(alone[1]) > step_ms(alone[0]) + rounding_ms(alone[0])


def _done_ms(run: Run) -> float:
    """Return when the last counted update was complete."""
    return float(run.timeline.update_ns[run.last - 1].max()) / 1e6
