"""What a grid varies: lists, ranges and axes that move together, each as settings of a scenario."""

import re
from collections import Counter
from collections.abc import Sequence
from math import isfinite
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from simulator.scenario.base import Spec
from simulator.scenario.fields import Count, Flag
from simulator.units import shown

MOST_VALUES = 10_000
WORKERS = "workers"  # the one axis that is no path: hosts change, ranks per host stay
Setting = tuple[str, Any]
_NUMBER_WITH_UNIT = re.compile(
    r"\s*([0-9][0-9_]*\.?[0-9]*(?:[eE][-+]?[0-9]{1,3})?)\s*([A-Za-z%/]*)\s*", re.ASCII
)


class RangeSpec(Spec):
    """Numbers from one end to the other, both included, evenly spaced or by equal factors (`log`)."""

    start: Annotated[Any, Field(alias="from")]
    to: Any
    points: Count | None = None
    scale: Literal["linear", "log"] = "linear"
    whole: Flag = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        (low, unit), (high, other) = self.ends
        if unit != other:
            raise ValueError(f'both ends of a range need the same unit, not "{unit}" and "{other}"')
        if self.scale == "log" and min(low, high) <= 0:
            raise ValueError("a log range needs ends above 0")
        if self.points is not None and not 2 <= self.points <= MOST_VALUES:
            raise ValueError(f"points of a range must be from 2 to {MOST_VALUES}, not {self.points}")
        return self

    @property
    def ends(self) -> tuple[tuple[float, str], tuple[float, str]]:
        """(number, unit) of both ends. Raises ValueError on what is neither."""
        return _number_and_unit(self.start), _number_and_unit(self.to)

    def at(self, share: float) -> Any:
        """Return the value at `share` (0 to 1) of the way, with the unit of the ends."""
        (low, unit), (high, _) = self.ends
        number = low * (high / low) ** share if self.scale == "log" else low + (high - low) * share
        number = round(number) if self.whole else float(f"{number:.12g}")
        return f"{number!r} {unit}" if unit else number


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _number_and_unit(value: Any) -> tuple[float, str]:
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return float(value), ""
    match = _NUMBER_WITH_UNIT.fullmatch(value) if isinstance(value, str) and len(value) <= 64 else None
    if match is None:
        raise ValueError('an end of a range is a number, with a unit where one is needed ("25 GB/s")')
    return float(match[1]), match[2]


class OneAxisSpec(Spec):
    """One path of the scenario and the values it takes: a list or a range."""

    path: Annotated[str, Field(min_length=1, max_length=200)]
    values: Annotated[tuple[Any, ...], Field(min_length=1, max_length=MOST_VALUES)] | None = None
    range: RangeSpec | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.values is None) == (self.range is None):
            raise ValueError("an axis needs either values or a range")
        if self.path == WORKERS and self.range is not None and not self.range.whole:
            raise ValueError("workers are whole numbers: say whole: true in the range")
        odd = [value for value in self.values or () if self.path == WORKERS and not _is_whole(value)]
        if odd:
            raise ValueError(f"workers must be whole numbers from 1, not {shown(odd[0])}")
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        """The path."""
        return (self.path,)

    @property
    def size(self) -> int:
        """How many values it takes. Raises ValueError for a range without points."""
        if self.values is not None:
            return len(self.values)
        assert self.range is not None
        if self.range.points is None:
            raise ValueError("a range in a grid needs points; without them it can only be sampled")
        return self.range.points

    def settings(self, place: int) -> tuple[Setting, ...]:
        """Return the setting at `place` of the list or the range."""
        if self.values is not None:
            return ((self.path, self.values[place]),)
        assert self.range is not None
        return ((self.path, self.range.at(place / (self.size - 1))),)

    def sampled(self, share: float) -> tuple[Setting, ...]:
        """Return the setting at `share` (0 up to, not including, 1) of the axis."""
        if self.range is not None:
            return ((self.path, self.range.at(share)),)
        return self.settings(int(share * self.size))


class TogetherSpec(Spec):
    """Axes of equal length that move together: the first values of all, then the second ones."""

    together: Annotated[tuple[OneAxisSpec, ...], Field(min_length=2, max_length=50)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        sizes = {axis.path: axis.size for axis in self.together}
        if len(set(sizes.values())) > 1:
            told = ", ".join(f"{path} has {size}" for path, size in sizes.items())
            raise ValueError(f"axes that move together need equally many values: {told}")
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all of them."""
        return tuple(axis.path for axis in self.together)

    @property
    def size(self) -> int:
        """How many values each takes."""
        return self.together[0].size

    def settings(self, place: int) -> tuple[Setting, ...]:
        """Return the settings at `place`."""
        return tuple(setting for axis in self.together for setting in axis.settings(place))

    def sampled(self, share: float) -> tuple[Setting, ...]:
        """Return the settings at `share` of the way."""
        return self.settings(int(share * self.size))


def _form(value: Any) -> str:
    """Tell what an axis is meant to be, so that errors speak of that; tags are names of classes."""
    together = isinstance(value, TogetherSpec) or (isinstance(value, dict) and "together" in value)
    return TogetherSpec.__name__ if together else OneAxisSpec.__name__


AxisSpec = Annotated[
    Annotated[OneAxisSpec, Tag("OneAxisSpec")] | Annotated[TogetherSpec, Tag("TogetherSpec")],
    Discriminator(_form),
]


class SampleSpec(Spec):
    """Instead of every combination, `points` of them: independent draws, or spread over each axis."""

    method: Literal["random", "latin_hypercube"]
    points: Annotated[Count, Field(le=1_000_000)]
    seed: Annotated[int, Field(ge=0, le=2**32 - 1, strict=True)]

    def shares(self, axes: int) -> Any:
        """Return (points, axes) numbers from 0 up to 1; the same seed gives the same ones."""
        import numpy as np

        generator = np.random.default_rng(self.seed)
        if self.method == "random":
            return generator.random((self.points, axes))
        from scipy.stats import qmc

        return qmc.LatinHypercube(axes, rng=generator).random(self.points)


def repeated(axes: Sequence[AxisSpec]) -> str | None:
    """Return a path that two axes vary, if any."""
    counts = Counter(path for axis in axes for path in axis.paths)
    return next((path for path, count in counts.items() if count > 1), None)


def undone(axes: Sequence[AxisSpec]) -> tuple[str, str] | None:
    """Return a path and a later one that replaces the whole part in which it stands, if any."""
    paths = [path for axis in axes for path in axis.paths]
    pairs = ((one, later) for place, one in enumerate(paths) for later in paths[place + 1 :])
    return next(((one, later) for one, later in pairs if one.startswith((f"{later}.", f"{later}["))), None)
