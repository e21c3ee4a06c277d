"""Scenarios of one name, told apart by their files."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from simulator.scenario import Scenario


def told_apart(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Return each file's scenario once; where several have one name, the file stands behind it."""
    each = {Path(one.document.file).resolve(): one for one in scenarios}
    names = Counter(one.name for one in each.values())
    return [_named(one) if names[one.name] > 1 else one for one in each.values()]


def _named(scenario: Scenario) -> Scenario:
    name = f"{scenario.name} ({scenario.document.file})"
    return Scenario.of(replace(scenario.document, data={**scenario.document.data, "name": name}))
