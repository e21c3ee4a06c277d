"""Three tiers of tests: `quick` while you type, `gate` before a change goes in, `nightly` for everything.

The environment variable RECSCALE_TIER names the tier (default: gate); the Makefile sets it. A check is in
every tier from its first on. What is too long for the gate is thinned out there, never dropped: numbers in
the tests are those of the night, and the helpers here take their share of them.
"""

import os
from collections.abc import Sequence
from typing import Any

import pytest

TIERS = ("quick", "gate", "nightly")
TIER = os.environ.get("RECSCALE_TIER", "gate")
SHARE = {"quick": 0.05, "gate": 0.2, "nightly": 1.0}  # of the random examples
FEWEST = {"quick": 10, "gate": 25, "nightly": 0}  # of a test that has as many


def examples(nightly: int, tier: str = TIER) -> int:
    """How many random examples a test draws in this tier, given how many it draws at night."""
    return min(nightly, max(FEWEST[tier], round(nightly * SHARE[tier])))


def some(cases: Sequence[Any], gate: int) -> list[Any]:
    """Parameters of a test: `gate` of them, spread evenly from the first to the last, stay in the gate.

    The others run nightly; those that were marked already keep their marks.
    """
    every = max(len(cases) - 1, 1) / max(gate - 1, 1)
    kept = {round(number * every) for number in range(gate)}
    return [case if place in kept else at_night(case) for place, case in enumerate(cases)]


def at_night(case: Any) -> Any:
    """Return the same parameters, marked as too long for the gate."""
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.nightly])
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.nightly)
