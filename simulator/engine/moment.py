"""Times between whole nanoseconds, exact however long a run is."""

from math import floor

Moment = tuple[int, float]  # whole nanoseconds, and a part of one beside them
NEVER = 2**63


def between(begin: Moment, end: Moment) -> float:
    """Return the ns from one time to another."""
    return end[0] - begin[0] + (end[1] - begin[1])


def after(at: Moment, span: float) -> Moment:
    """Return the time `span` ns later; a span of less than nothing counts as none."""
    total = at[1] + max(0.0, span)
    whole = floor(total)
    return at[0] + whole, total - whole
