"""Pipelines as plain data, so that two of them can be compared."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from simulator.pipeline import Stage


def structure(value: Any) -> Any:
    """Return plain nested tuples that are equal for pipelines of equal structure and amounts."""
    if isinstance(value, Stage):
        return (
            value.name,
            *(_field(value, name) for name in ("kind", "work", "ahead", "every", "phase")),
            *(tuple(before.name for before in value.after), structure(value.reads), structure(value.writes)),
        )
    if isinstance(value, np.ndarray):
        return value.shape, tuple(value.ravel().tolist())
    if isinstance(value, dict):
        return tuple((key, structure(held)) for key, held in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(structure(held) for held in value)
    if is_dataclass(value):
        return type(value).__name__, *(_field(value, one.name) for one in fields(value))
    return value


def _field(value: Any, name: str) -> Any:
    return structure(getattr(value, name))
