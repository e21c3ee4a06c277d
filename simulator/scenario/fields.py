"""The types of scenario fields: quantities with units, counts, and plain numbers within limits.

Each is a float or int to the program, accepts only what a person may write, and describes itself
in the exported JSON Schema. Dumped as JSON, a quantity becomes text with its unit, and reads back equal.
"""

from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Annotated, Any

from pydantic import Strict
from pydantic_core import CoreSchema, core_schema

from simulator.units import DIMENSIONS, parse_quantity, shown


@dataclass(frozen=True)
class Quantity:
    """Marks a float as a physical value of one dimension: `Annotated[float, Quantity("time")]`."""

    dimension: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Read text with a unit to SI; write it to JSON as text in the base unit."""
        with_unit = partial(_with_unit, base=DIMENSIONS[self.dimension].base)
        write = core_schema.plain_serializer_function_ser_schema(with_unit, when_used="json")
        read = partial(parse_quantity, dimension=self.dimension)
        return core_schema.no_info_plain_validator_function(read, serialization=write)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        """Return text with an example; a fraction may be a number, too."""
        kind = DIMENSIONS[self.dimension]
        text = {"type": "string", "description": f"{kind.noun} with its unit", "examples": [kind.example]}
        if kind.base:
            return text
        return {"anyOf": [{"type": "number", "minimum": kind.least, "maximum": kind.most}, text]}


def _with_unit(value: float, base: str) -> str | float:
    return f"{value!r} {base}" if base else value


@dataclass(frozen=True)
class Number:
    """Marks a bare number from `least` (or above it, if `above`) to `most`; whole numbers may be `2e9`."""

    least: float
    most: float
    whole: bool = False
    above: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Check the number; the result is an int if whole, a float otherwise."""
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        """Return the JSON type with its limits."""
        low = "exclusiveMinimum" if self.above else "minimum"
        return {"type": "integer" if self.whole else "number", low: self.least, "maximum": self.most}

    def read(self, value: object) -> int | float:
        """Return `value` as a number within the limits. Raises ValueError that says what is needed."""
        if isinstance(value, str) and _is_number(value):
            raise ValueError(f"{shown(value)} is text; write {_plain(value)} without quotes")
        if isinstance(value, bool) or not isinstance(value, int | float) or not self._fits(value):
            raise ValueError(f"must be {self._needed(value)}, not {shown(value)}")
        return int(value) if self.whole else float(value)

    def _fits(self, value: float) -> bool:
        low = value > self.least if self.above else value >= self.least
        return low and value <= self.most and (not self.whole or value == int(value))  # nan fails the first

    def _needed(self, value: object) -> str:
        most = f"{self.most:.0f}" if self.whole and self.most < MOST else f"{self.most:g}"
        if isinstance(value, int | float) and value > self.most and self.most < MOST:
            return f"at most {most}"
        noun = "a whole number" if self.whole else "a number"
        return f"{noun} {'above' if self.above else 'from'} {self.least:g} to {most}"


def _is_number(text: str) -> bool:
    try:
        return len(text) <= 40 and isfinite(float(text))
    except ValueError:
        return False


def _plain(text: str) -> str:
    """Return the number in `text` as YAML reads one: `07` is text there."""
    digits = text.strip()
    return digits.lstrip("0") or "0" if digits.isdigit() else digits


Bytes = Annotated[float, Quantity("bytes")]
Bandwidth = Annotated[float, Quantity("bandwidth")]
Time = Annotated[float, Quantity("time")]
FlopRate = Annotated[float, Quantity("rate")]
Frequency = Annotated[float, Quantity("frequency")]
Power = Annotated[float, Quantity("power")]
Energy = Annotated[float, Quantity("energy")]
Price = Annotated[float, Quantity("price")]
EnergyPrice = Annotated[float, Quantity("energy_price")]
MoneyRate = Annotated[float, Quantity("money")]
Fraction = Annotated[float, Quantity("fraction")]

# 1e15 stays exact as a float and leaves room for products of a few counts in 64-bit integers.
MOST = 1e15
Count = Annotated[int, Number(1, MOST, whole=True)]
CountOrZero = Annotated[int, Number(0, MOST, whole=True)]
PositiveFloat = Annotated[float, Number(0, 1e30, above=True)]
NonNegativeFloat = Annotated[float, Number(0, 1e30)]
Flag = Annotated[bool, Strict()]
