"""Rates of measured primitives in a file that `recscale calibrate fit --measured` wrote."""

from collections.abc import Mapping
from typing import Any

from simulator.errors import InputError, Where, did_you_mean

AMOUNT = "bytes"


def bytes_rate(data: Any, name: str, file: str | None = None) -> float:
    """Return the bytes/s of the primitive `name`: its fitted rate, or that between its two largest sizes.

    Raises InputError for a file of another form, an unknown name, and a primitive that is not measured by
    bytes alone or did not take longer for more of them.
    """
    entries = data.get("entries") if isinstance(data, Mapping) else None
    if not isinstance(entries, Mapping):
        raise InputError("holds no measured primitives", Where(file))
    if name not in entries:
        problem = f'no measured primitive is called "{name}"{did_you_mean(name, map(str, entries))}'
        raise InputError(problem, Where(file))
    where = Where(file, path=f"entries.{name}")
    try:
        return _rate(entries[name], where)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError):
        raise InputError("is not a measured primitive as fits are written", where) from None


def _rate(fields: Mapping[str, Any], where: Where) -> float:
    if list(fields["amounts"]) != [AMOUNT]:
        raise InputError(f"is measured by {', '.join(map(str, fields['amounts']))}, not by {AMOUNT}", where)
    values = [float(one["value"]) for one in fields["parameters"].values()]
    if fields["form"] == "affine":
        return values[1]
    sizes = [float(knot) for knot in fields["knots"]]
    if values[-1] <= values[-2]:
        raise InputError("took no longer for its largest size than for the one before", where)
    return (sizes[-1] - sizes[-2]) / (values[-1] - values[-2])
