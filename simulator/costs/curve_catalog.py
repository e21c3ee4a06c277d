"""Measured collectives by name: the catalog file `collectives.yaml`, or another in its form, as curves."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from simulator.costs.curves import AlphaBeta, Curve, LogLog, Measured, Scale, Segments, SizeCurve
from simulator.costs.growth import law
from simulator.errors import InputError, Where, did_you_mean
from simulator.units import parse_quantity

SECTION = "collectives"  # of a file that holds more than curves


def names() -> tuple[str, ...]:
    """Return the names of the shipped curves in alphabetical order."""
    return tuple(sorted(_shipped()))


def curve(name: str) -> Curve:
    """Return the shipped curve of that name; raise InputError, with the nearest name, if there is none."""
    if name not in _shipped():
        raise InputError(f'the catalog has no measured collective "{name}"{did_you_mean(name, _shipped())}')
    return _shipped()[name]


def read_curves(text: str, file: str | None = None) -> dict[str, Curve]:
    """Return the curves of a catalog text by name; points are used where they stand beside lines.

    Raises InputError, naming `file` and the entry, for text in another form.
    """
    import yaml

    try:
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        raise InputError("is not a catalog of measured collectives", Where(file)) from None
    return curves_of(data, file)


def curves_of(data: Any, file: str | None = None) -> dict[str, Curve]:
    """Return the curves by name of a catalog that was read already; raise InputError for another form.

    They stand under `collectives` in a file that holds other fits, too.
    """
    try:
        items = list((data.get(SECTION) or data["entries"]).items())
    except (KeyError, TypeError, AttributeError):
        raise InputError("is not a catalog of measured collectives", Where(file)) from None
    return {str(name): _entry(name, fields, file) for name, fields in items}


@cache
def _shipped() -> Mapping[str, Curve]:
    text = files("simulator.hardware.catalog").joinpath("collectives.yaml").read_text(encoding="utf-8")
    return read_curves(text, "collectives.yaml")


def _entry(name: object, fields: Any, file: str | None) -> Curve:
    where = Where(file, path=f"entries.{name}")
    try:
        decay = float(fields["decay"]["value"]) if "decay" in fields else 0.0
        scales = tuple(_measured(one) for one in fields["scales"])
        return Curve(fields["operation"], scales, law(fields["operation"], decay))
    except KeyError as missing:
        raise InputError(f"{missing.args[0]} is missing", where) from None
    except (TypeError, ValueError, AttributeError, InputError) as problem:
        raise InputError(str(problem).splitlines()[0], where) from None


def _measured(fields: Mapping[str, Any]) -> Measured:
    least, most = (parse_quantity(end, "bytes") for end in fields["range"])
    scale, lender = Scale(fields["ranks"], fields["nodes"]), str(fields.get("lender", ""))
    return Measured(scale, _shape(fields), least, most, lender)


def _shape(fields: Mapping[str, Any]) -> SizeCurve:
    if "points" in fields:
        sizes = tuple(parse_quantity(size, "bytes") for size in fields["points"]["sizes"])
        return LogLog(sizes, tuple(parse_quantity(time, "time") for time in fields["points"]["times"]))
    return Segments(tuple(_line(line) for line in fields["lines"]))


def _line(line: Mapping[str, Any]) -> AlphaBeta:
    latency = parse_quantity(line["latency"]["value"], "time")
    return AlphaBeta(latency, parse_quantity(line["bandwidth"]["value"], "bandwidth"))
