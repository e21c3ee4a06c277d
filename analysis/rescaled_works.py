"""Works with some of their amounts changed: longer holds, more core seconds, every leaf of a work."""

from collections.abc import Callable
from dataclasses import replace

from simulator.quantities import Amount, CpuWork, HoldWork, InTurn, ServerWork, Together, Work

Change = Callable[[Work, float], Work]
"""Returns a work of one part changed by a factor; what it does not concern comes back as it is."""


def longer_hold(setting: str) -> Change:
    """Return what makes the held times that come from `setting` so many times as long, and no others."""

    def changed(work: Work, factor: float) -> Work:
        if isinstance(work, HoldWork) and work.setting == setting:
            return replace(work, seconds=work.seconds * factor)
        return work

    return changed


def faster_hold(setting: str) -> Change:
    """Return the same for a rate, of which the time is the inverse."""
    longer = longer_hold(setting)
    return lambda work, factor: longer(work, 1.0 / factor)


def longer_cpu(work: Work, factor: Amount) -> Work:
    """Return work of host cores `factor` times as long: a number, or one per rank."""
    return replace(work, core_seconds=work.core_seconds * factor) if isinstance(work, CpuWork) else work


def longer_service(work: Work, factor: float) -> Work:
    """Return work of a server's cores `factor` times as long."""
    return replace(work, core_seconds=work.core_seconds * factor) if isinstance(work, ServerWork) else work


def rebuilt(work: Work, change: Change, factor: float) -> Work:
    """Return `work` with every leaf changed."""
    if isinstance(work, InTurn | Together):
        return replace(work, parts=tuple(rebuilt(part, change, factor) for part in work.parts))
    return change(work, factor)
