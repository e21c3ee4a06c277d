"""Strings with units at the border: `"25 GB/s"` in, SI floats out, and back again for people.

A quantity is a plain number, a space if you like, and one of the spellings of `spellings(dimension)`.
Case matters: `Gb` is a gigabit, `GB` a gigabyte, `GiB` is 2^30 bytes. `Gbps`, `GBps` and `KB` are
refused with a hint because people mean different things by them. A year is 365 days. A frequency is
written `500 MHz` or `500 M/s` (millions of anything per second). Nothing is evaluated: one strict
pattern takes the text apart, and pint only converts units that are on the list.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from functools import cache, lru_cache
from itertools import product
from math import isfinite
from typing import Any

from simulator.errors import printable

_MAX_TEXT = 64
_QUANTITY = re.compile(
    r"\s*([+-]?(?:\d[\d_]{0,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?)\s*([A-Za-z%/\s]{0,20})",
    re.ASCII,
)
# The few units of the border; the spellings below keep out the words pint would add (kilominute).
_DEFINITIONS = """
n- = 1e-9; u- = 1e-6; m- = 1e-3; k- = 1e3; M- = 1e6; G- = 1e9; T- = 1e12; P- = 1e15; E- = 1e18
Ki- = 1024; Mi- = 1048576; Gi- = 1073741824; Ti- = 1099511627776; Pi- = 1125899906842624
byte = [information] = B; bit = 0.125 * byte = b
second = [time] = s; minute = 60 * second = min; hour = 60 * minute = h; day = 24 * hour; year = 365 * day
flop = [operation] = FLOP = OP; FLOPS = flop / second
watt = [power] = W; joule = watt * second = J; watt_hour = watt * hour = Wh
dollar = [money] = USD; hertz = 1 / second = Hz; percent = 0.01 = %
"""
_TIMES = ("s", "ms", "us", "ns", "min", "h", "day", "year")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi")
_SIZES = tuple(prefix + unit for prefix, unit in product(_DECIMAL + _BINARY, ("B", "b", "bit")))
_BANDWIDTHS = tuple(f"{size}/{time}" for size, time in product(_SIZES, _TIMES))
_RATES = tuple(prefix + unit for prefix, unit in product(_DECIMAL, ("FLOP/s", "flop/s", "FLOPS", "OP/s")))
_FREQUENCIES = tuple(prefix + unit for prefix, unit in product(_DECIMAL, ("/s", "Hz")))
_POWERS = ("W", "mW", "kW", "MW", "GW")
_ENERGIES = ("J", "mJ", "kJ", "MJ", "GJ", "Wh", "kWh", "MWh", "GWh")
_ENERGY_PRICES = ("USD/kWh", "USD/MWh", "USD/J")
_MONEY = tuple(f"USD/{time}" for time in _TIMES)


@dataclass(frozen=True)
class Dimension:
    """What kind of quantity a field holds: its noun, SI base unit, an example and the sane range.

    Values are zero (if `zero`) or lie between `least` and `most`, in `base`; never negative.
    """

    noun: str
    base: str
    example: str
    spellings: tuple[str, ...]
    least: float
    most: float
    zero: bool = True

    @property
    def unit(self) -> str:
        """The unit of the example."""
        return self.example.split(" ", 1)[1]


DIMENSIONS: Mapping[str, Dimension] = {
    "bytes": Dimension("an amount of data", "B", "64 kB", _SIZES, 0.125, 1e21),
    "bandwidth": Dimension("a bandwidth", "B/s", "25 GB/s", _BANDWIDTHS, 1.0, 1e18, zero=False),
    "time": Dimension("a time", "s", "20 us", _TIMES, 1e-15, 1e9),
    "rate": Dimension("a rate of arithmetic", "flop/s", "312 TFLOP/s", _RATES, 1.0, 1e24, zero=False),
    "frequency": Dimension("a frequency", "Hz", "500 M/s", _FREQUENCIES, 1e-9, 1e18, zero=False),
    "power": Dimension("a power", "W", "400 W", _POWERS, 1e-6, 1e12),
    "energy": Dimension("an energy", "J", "3.6 MJ", _ENERGIES, 1e-15, 1e20),
    "price": Dimension("a price", "USD", "30 kUSD", ("USD", "kUSD", "MUSD"), 1e-12, 1e15),
    "energy_price": Dimension("a price of energy", "USD/J", "0.08 USD/kWh", _ENERGY_PRICES, 1e-15, 1.0),
    "money": Dimension("a price per time", "USD/s", "2.5 USD/h", _MONEY, 1e-15, 1e9),
    "fraction": Dimension("a fraction", "", "24.7 %", ("%",), 0.0, 1.0),
}
_WORDS = {
    **dict.fromkeys(("sec", "second", "seconds"), "s"),
    **dict.fromkeys(("minute", "minutes"), "min"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "days"), "day"),
    **dict.fromkeys(("y", "yr", "years"), "year"),
}
_DIMENSION_OF = {unit: name for name, kind in DIMENSIONS.items() for unit in kind.spellings}


def spellings(dimension: str) -> tuple[str, ...]:
    """Return the units that a quantity of this dimension may be written in."""
    return DIMENSIONS[dimension].spellings


def shown(value: object) -> str:
    """Return a short, printable, one-line picture of any value, for error messages."""
    if isinstance(value, str):
        return f'"{printable(value if len(value) <= 40 else value[:37] + "...")}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value) if abs(value) < 10**18 else "a very large number"
    if isinstance(value, float | Decimal):
        return f"{value:.6g}"
    return _CONTAINERS.get(type(value), "an object")


_CONTAINERS = {type(None): "nothing", dict: "a mapping", list: "a list", tuple: "a list"}


def parse_quantity(text: object, dimension: str) -> float:
    """Return the SI value (`DIMENSIONS[dimension].base`) of a string such as `"25 GB/s"`.

    Fractions may also be bare numbers from 0 to 1. The result is the float nearest to the exact
    decimal value (`"20 us"` equals `2e-5`). Raises ValueError with one line that says what to write.
    """
    kind = DIMENSIONS[dimension]
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"{shown(text)} is not {kind.noun}; {_write(kind)}")
    if not isinstance(text, str):
        return _bare(text, kind)
    if len(text) > _MAX_TEXT:
        raise ValueError(f"{shown(text)} is too long for {kind.noun}; {_write(kind)}")
    return _parse(text, dimension)


def _write(kind: Dimension) -> str:
    return f'write it like "{kind.example}"'


def _bare(number: float | Decimal, kind: Dimension) -> float:
    """Take a number without a unit: right for a fraction, refused for all else."""
    if kind.base:
        value, usual = shown(number), 0 < number < 1000
        hint = f': write "{value} {kind.unit}", not {value}' if usual else f', such as "{kind.example}"'
        raise ValueError(f"needs a unit{hint}")
    return _in_range(number, shown(number), kind)


@lru_cache(maxsize=4096)
def _parse(text: str, dimension: str) -> float:
    kind = DIMENSIONS[dimension]
    match = _QUANTITY.fullmatch(text.replace("\u00b5", "u").replace("\u03bc", "u"))  # both signs for micro
    if not match:
        raise ValueError(f"{shown(text)} is not a number with a unit; {_write(kind)}")
    number, unit = Decimal(match[1]), re.sub(r"\s*/\s*", "/", match[2].strip())
    if not unit:
        return _bare(number, kind)
    _check_unit(text, unit, dimension)
    return _in_range(number * _factor(unit, kind.base), shown(text), kind)


def _check_unit(text: str, unit: str, dimension: str) -> None:
    found, kind = _DIMENSION_OF.get(unit), DIMENSIONS[dimension]
    if found is None:
        raise ValueError(f"unknown unit {shown(unit)}{_nearest(unit, kind)}")
    if found != dimension:
        noun = DIMENSIONS[found].noun
        raise ValueError(f'{shown(text)} is {noun}; {kind.noun} is needed, such as "{kind.example}"')


def _nearest(unit: str, kind: Dimension) -> str:
    """Name the spellings that differ by case, by `ps` for `/s` or by a time's name, else what is closest."""
    *amount, last = re.sub("ps$", "/s", unit.casefold()).split("/")
    folded = "/".join([*amount, _WORDS.get(last, last)])
    near = [known for known in kind.spellings if known.casefold() == folded]
    near = near or get_close_matches(unit, kind.spellings, n=1, cutoff=0.6)
    if not near:
        return f'; {kind.noun} is written like "{kind.example}"'
    return "; did you mean " + " or ".join(f'"{known}"' for known in near[:3]) + "?"


def _in_range(value: float | Decimal, text: str, kind: Dimension) -> float:
    if value < 0:
        raise ValueError(f"{text} is negative; {kind.noun} cannot be")
    if value == 0 and not kind.zero:
        raise ValueError(f"{text} is zero; {kind.noun} cannot be")
    if value != 0 and not kind.least <= value <= kind.most:  # nan and infinity, too; exact, before rounding
        limits = f"{kind.least:g} and {kind.most:g} {kind.base}".strip()
        raise ValueError(f"{text} is out of range: {kind.noun} lies between {limits}")
    return float(value)


@cache
def _registry() -> Any:
    """Build the private registry: its own few units, exact decimals (pint's default reads Gb as gilbert)."""
    import pint

    registry: Any = pint.UnitRegistry(None, non_int_type=Decimal)
    for definition in re.split("[;\n]", _DEFINITIONS.strip()):
        registry.define(definition.strip())
    return registry


@cache
def _factor(unit: str, base: str) -> Decimal:
    name = unit.replace("%", "percent")
    name = f"{name[:-2]}Hz" if base == "Hz" and name.endswith("/s") else name
    factor = _registry().Quantity(Decimal(1), name).to(base or "dimensionless").magnitude
    return Decimal(factor)


def usd_per_hour(usd_per_second: float | None) -> float | None:
    """Return a price per time, as read, in the USD per hour that people state; None is unknown."""
    return None if usd_per_second is None else round(usd_per_second * 3600, 9)


_LONG_TIMES = ((60.0, "min"), (3600.0, "h"), (86400.0, "day"))
_TIME_STEPS = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"), *_LONG_TIMES)


def format_time(seconds: float) -> str:
    """Return seconds as text with four significant digits: `1.896 s`, `20 us`, `2.5 h`."""
    return _prefixed(seconds, _TIME_STEPS, "s")


def format_bytes(amount: float) -> str:
    """Return bytes as text with a decimal prefix: `85.9 GB`."""
    return _prefixed(amount, _steps("B"), "B")


def format_bandwidth(bytes_per_second: float) -> str:
    """Return bytes/s as text with a decimal prefix: `25 GB/s`."""
    return _prefixed(bytes_per_second, _steps("B/s"), "B/s")


def format_rate(flops_per_second: float) -> str:
    """Return flop/s as text with a decimal prefix: `312 TFLOP/s`."""
    return _prefixed(flops_per_second, _steps("FLOP/s"), "FLOP/s")


@cache
def _steps(unit: str) -> tuple[tuple[float, str], ...]:
    return tuple((10.0 ** (3 * power), prefix + unit) for power, prefix in enumerate(_DECIMAL))


def _prefixed(value: float, steps: tuple[tuple[float, str], ...], base: str) -> str:
    if not isfinite(value) or value == 0:
        return f"{value:g} {base}"
    rounded = float(f"{value:.4g}")  # first, so that 999.96 us becomes 1 ms and not 1000 us
    factor, unit = next((step for step in reversed(steps) if abs(rounded) >= step[0]), steps[0])
    return f"{value / factor:.4g} {unit}"
