"""Columns of a key log that look like no table, and fitted exponents that say nothing."""

from simulator.workload.keys import LogStatistics, TableStatistics
from simulator.workload.keys.frequencies import STEEPEST

FEWEST_KEYS = 20  # a law over fewer ranks is not told from others
AT_THE_BOUND = 0.999  # of the steepest exponent that is looked for
ONE_EACH = 1.01  # lookups per key up to which nearly every sample has a key of its own
TIMES = frozenset(("time", "timestamp", "ts", "time_ms", "ts_ms", "date", "datetime", "hour", "day"))
LABELS = frozenset(
    ("label", "labels", "target", "y", "click", "clicks", "clicked", "is_click", "like", "rating")
)


def doubtful(log: LogStatistics) -> dict[str, str]:
    """Return why a column is hardly a table, for those of which that may be said."""
    found = {one.name: _doubt(one) for one in log}
    return {name: why for name, why in found.items() if why}


def _doubt(one: TableStatistics) -> str:
    keys = one.frequencies.distinct
    if keys == 1:
        return "one key only"
    if one.name.lower() in TIMES:
        return "a time"
    if one.name.lower() in LABELS:
        return "a label"
    if keys == 2:
        return "two keys: a label or a flag"
    if one.frequencies.lookups <= ONE_EACH * keys:
        return "hardly a key comes twice: a time or a number of the sample"
    return ""


def told_exponent(one: TableStatistics, exponent: float) -> float | None:
    """Return a fitted exponent, or None where it says nothing: few keys, or the end of what was searched."""
    few = one.frequencies.distinct < FEWEST_KEYS
    return None if few or exponent >= AT_THE_BOUND * STEEPEST else exponent


def untold(one: TableStatistics) -> bool:
    """Whether an exponent of this table says nothing."""
    return None in (told_exponent(one, one.fit.exponent), told_exponent(one, one.mandelbrot.exponent))
