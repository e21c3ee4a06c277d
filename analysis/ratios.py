"""How results are held against each other: speed-up and scaling efficiency, defined once."""

from collections.abc import Mapping
from typing import Any


def speed_up(step_ms: float | None, reference_ms: float | None) -> float | None:
    """Return how many steps are done in the time of one of the reference; None where a time is not known.

    It says what a policy is worth only where both do the same job: same model, batch, workers and engine.
    """
    return None if step_ms is None or reference_ms is None else reference_ms / step_ms


MARKED = 1.005  # an efficiency above this is not told without its reason


def why_above(
    efficiency: float | None, mine: Mapping[str, Any], fewest: Mapping[str, Any], workers: int
) -> list[str]:
    """Return why an efficiency lies above 1: which part of a step fell most since so many (fewest) workers.

    `mine` and `fewest` hold the ms per step by part, among other fields, of the compared run and of its
    baseline. Nothing where it does not lie above.
    """
    if efficiency is None or efficiency <= MARKED:
        return []
    here, there = _spent(mine), _spent(fewest)
    part = max(there, key=lambda one: there[one] - here.get(one, 0.0))
    words = part.removesuffix("_ms").replace("_", " ")
    return [
        f"scaling efficiency above 100 %: its baseline of {workers:,} workers is bound by what more workers "
        f"share ({words} {there[part]:,.4g} ms a step there, {here.get(part, 0.0):,.4g} here)"
    ]


def _spent(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the ms of a step by what they are spent on."""
    return {
        name: ms for name, ms in row.items() if name.startswith(("compute_", "exposed_")) and ms is not None
    }


def efficiency(throughput: float, workers: float, fewest_throughput: float, fewest: float) -> float:
    """Return samples/s per worker over that on the fewest workers; 1 where nothing is lost by growing."""
    return (throughput / workers) / (fewest_throughput / fewest)
