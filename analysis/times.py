"""Times as text: a report keeps to one unit, milliseconds."""

LONG_MS = 1e4
HOUR_S = 3600.0


def ms(value: float | None, beside: float | None = None) -> str:
    """Return milliseconds: as many decimals as suit `beside`, the largest value of the same table."""
    if value is None:
        return "-"
    largest = abs(value if beside is None else beside)
    return f"{value:,.{1 if largest >= 100 else 2 if largest >= 10 else 3}f}"


def duration(value: float) -> str:
    """Return a time given in ms with its unit: ms, or seconds above ten of them."""
    return f"{value / 1e3:,.1f} s" if value >= LONG_MS else f"{ms(value)} ms"
