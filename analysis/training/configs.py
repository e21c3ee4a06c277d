"""Shapes of models as `model_configs.json` writes them, read with a reason for what is missing or wrong."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.training.rows import CONFIGS, Row
from simulator.errors import InputError
from simulator.units import shown

Config = Mapping[str, Any]
MOST = 10**13  # rows, widths or layers of anything


def config_of(configs: Config, name: str) -> Config:
    """Return the shape of the model of that name. Raises InputError where there is none."""
    if not configs:
        raise InputError(f"the shape of the model {shown(name)} is not known: {CONFIGS} is missing or empty")
    return part_of(configs, name, name)


def part_of(config: Config, name: str, model: str) -> Config:
    """Return a shape within a shape. Raises InputError where there is none."""
    found = config.get(name)
    if not isinstance(found, Mapping):
        raise InputError(f"the shape of the model {shown(model)} is not known")
    return found


def size_of(config: Config, key: str, model: str) -> int:
    """Return a positive whole number. Raises InputError for anything else."""
    return widths({key: [config.get(key)]}, key, model)[0]


def widths(config: Config, key: str, model: str) -> list[int]:
    """Return a list of positive whole numbers. Raises InputError for anything else."""
    found = config.get(key)
    if not isinstance(found, list) or not found or not all(_counts(one) for one in found):
        raise InputError(f"{key} of the model {shown(model)}: positive whole numbers are needed")
    return [int(one) for one in found]


def _counts(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    return value == int(value) and 1 <= value <= MOST


def lengths(config: Config, model: str) -> Sequence[float]:
    """Return the keys of each table per sample. Raises InputError where they are not one for each table."""
    hots, rows = widths(config, "multi_hot", model), widths(config, "rows", model)
    if len(hots) != len(rows):
        needed = f"one number for each of {len(rows)} tables is needed, not {len(hots)}"
        raise InputError(f"multi_hot of the model {shown(model)}: {needed}")
    return hots


def histories(row: Row) -> int:
    """Return the positions of a history of fixed length: T, or items S and as many actions.

    Raises InputError where the notes of a row say neither.
    """
    said = row.words.get("notes", "")
    if found := re.search(r"\bT ?= ?(\d+)", said):
        return int(found.group(1))
    if found := re.search(r"\bS ?= ?(\d+)", said):
        return 2 * int(found.group(1))
    raise InputError("the length of the histories is not stated (S=... or T=... in notes)")
