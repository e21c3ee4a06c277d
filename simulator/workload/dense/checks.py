"""Refusals shared by the models: a shape that cannot exist is named, with its value."""

import math
from collections.abc import Sequence

from simulator.errors import InputError


def require_counts(**fields: float) -> None:
    """Raise `InputError` for a field that is not a whole number of at least 1."""
    for name, value in fields.items():
        _require_whole(name, value, least=1)


def require_zero_or_more(**fields: float) -> None:
    """Raise `InputError` for a field that is not a whole number of at least 0."""
    for name, value in fields.items():
        _require_whole(name, value, least=0)


def require_layers(name: str, widths: Sequence[int]) -> None:
    """Raise `InputError` if `widths` is empty or holds a width that is not a positive whole number."""
    if not widths:
        raise InputError(f"{name} needs at least one layer")
    for position, width in enumerate(widths):
        _require_whole(f"{name}[{position}]", width, least=1)


def require_amounts(**fields: float) -> None:
    """Raise `InputError` for an amount that is negative, infinite or not a number."""
    for name, value in fields.items():
        if not (math.isfinite(value) and value >= 0):
            raise InputError(f"{name} must be zero or more, got {value}")


def require_divides(heads: int, dimension: int) -> None:
    """Raise `InputError` unless `dimension` splits evenly over `heads`."""
    if dimension % heads:
        raise InputError(f"heads = {heads} does not divide dimension = {dimension}")


def require_bottom_ends_at(dimension: int, bottom: Sequence[int]) -> None:
    """Raise `InputError` unless the bottom network ends as wide as one embedding row."""
    if bottom[-1] != dimension:
        wanted = f"bottom must end at dimension = {dimension} to join the embeddings"
        raise InputError(f"{wanted}, got {bottom[-1]}")


def _require_whole(name: str, value: float, least: int) -> None:
    if not (math.isfinite(value) and value >= least and value == int(value)):
        raise InputError(f"{name} must be a whole number of at least {least}, got {value}")
