"""What speaks against a measurement of this machine, as `recscale calibrate measure` recorded it."""

from collections.abc import Mapping
from typing import Any

NOISY = 1.25  # p90 over p50 above which a figure is doubtful


def doubts(measurement: Mapping[str, Any]) -> list[str]:
    """Return what speaks against using a measurement, in words; nothing where it was quiet and pinned."""
    load, noise = measurement["load"], measurement["noise"]
    found = []
    if not load["quiet"]:
        shares = " and ".join(_share(load[name]) for name in ("before", "after"))
        found.append(f"other work kept {shares} of the cores busy before and after: not a calibration")
    if not measurement["launch"]["pinned"]:
        found.append("ranks were not pinned: two on one core take twice as long")
    for kind, spread in noise.items():
        if spread is not None and spread > NOISY:
            found.append(
                f"{kind} operations repeat badly: the 90th percentile is {spread:.2f} times the median"
            )
    return found


def fit_doubts(measurement: Mapping[str, Any]) -> list[str]:
    """Return what speaks against fitting to a measurement; nothing of a file of another form.

    Beside `doubts`, that other work was allowed: it may have come and gone between the two looks at the load.
    """
    from simulator.calibration.local.schema import FORMAT

    if measurement.get("format") != FORMAT:
        return []
    found = doubts(measurement)
    if measurement["load"]["allowed"] and measurement["load"]["quiet"]:
        found.append("other work was allowed beside it (--allow-load): it may have come and gone unseen")
    return found


def _share(busy: float | None) -> str:
    return "-" if busy is None else f"{100 * busy:.0f}%"
