"""Laws of matrix products as catalog files write them: those of `gemm.yaml` and of own measurements."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulator.costs.gemm import GemmTime, Residual, TileLaw
from simulator.errors import InputError, Where
from simulator.units import parse_quantity

SECTION = "gemm"  # of a file that holds more than laws
Laws = Mapping[str, GemmTime]  # by precision


def laws_of(data: Any, file: str | None = None) -> dict[str, Laws]:
    """Return the laws of each entry of a file, by precision.

    Entries stand under `gemm`, or under `entries` of a file that holds nothing else. Raises InputError,
    naming `file` and the entry, for anything in another form.
    """
    try:
        items = list((data.get(SECTION) or data["entries"]).items())
    except (KeyError, TypeError, AttributeError):
        raise InputError("holds no laws of matrix products", Where(file)) from None
    return {str(name): _laws(str(name), fields, file) for name, fields in items}


def _laws(name: str, fields: Any, file: str | None) -> Laws:
    where = Where(file, path=f"{SECTION}.{name}")
    try:
        found = formats_of(fields)
        return {str(precision): found[str(formats)] for precision, formats in fields["precisions"].items()}
    except KeyError as missing:
        raise InputError(f"{missing.args[0]} is missing", where) from None
    except (TypeError, ValueError, AttributeError, InputError) as problem:
        raise InputError(str(problem).splitlines()[0], where) from None


def formats_of(fields: Mapping[str, Any]) -> dict[str, GemmTime]:
    """Return law and residual of each combination of number formats of an entry."""
    shapes = np.log2(np.asarray(fields["shapes"]["value"], dtype=float).reshape(-1, 4))
    units, reach = float(fields["units"]["value"]), float(fields["reach"])
    found = {}
    for formats, raw in fields["formats"].items():
        weights = np.asarray(raw["weights"], dtype=float)
        if len(weights) != len(shapes):
            raise InputError(f"{formats}: {len(weights)} weights for {len(shapes)} shapes")
        found[str(formats)] = GemmTime(_law(raw, units), Residual(shapes, weights, reach))
    return found


def _law(raw: Mapping[str, Any], units: float) -> TileLaw:
    return TileLaw(
        rate=parse_quantity(raw["rate"]["value"], "rate"),
        bandwidth=parse_quantity(raw["bandwidth"]["value"], "bandwidth"),
        start_up=parse_quantity(raw["start_up"]["value"], "time"),
        units=units,
        quantisation=float(raw["quantisation"]["value"]) if "quantisation" in raw else 0.0,
        sharpness=float(raw["sharpness"]["value"]),
    )
