"""Checks shared by the hardware value objects: each raises InputError naming the owner and the field."""

from math import isfinite

from simulator.errors import InputError
from simulator.units import shown

MOST_RANKS = 1 << 20


def positive(owner: str, **values: float) -> None:
    """Refuse values that are not finite and above zero."""
    for name, value in values.items():
        if not (isfinite(value) and value > 0):
            raise InputError(f"{owner}: {name} must be above zero, not {value:g}")


def not_negative(owner: str, **values: float) -> None:
    """Refuse values that are not finite or lie below zero."""
    for name, value in values.items():
        if not (isfinite(value) and value >= 0):
            raise InputError(f"{owner}: {name} must not be below zero, it is {value:g}")


def shares(owner: str, **values: float) -> None:
    """Refuse values outside (0, 1]: an efficiency of zero or above one is a typing error."""
    for name, value in values.items():
        if not 0 < value <= 1:
            raise InputError(f"{owner}: {name} must lie above 0 and at most 1, not {value:g}")


def counts(owner: str, **values: int) -> None:
    """Refuse numbers that are not whole or lie below one."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{owner}: {name} must be a whole number from 1, not {value}")


def ranks(count: int) -> None:
    """Raise InputError for more workers than a cluster may have."""
    if count > MOST_RANKS:
        raise InputError(f"{shown(count)} workers are too many; at most {MOST_RANKS:,} are allowed")
