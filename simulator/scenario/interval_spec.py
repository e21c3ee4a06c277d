"""The `run.interval` part of a scenario: what is doubtful, and how often to draw it."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from simulator.quantities.statistics import COVERAGE as COVERAGE
from simulator.scenario.base import Spec
from simulator.scenario.fields import Flag, Fraction, Number
from simulator.units import shown


def _no_flag(value: object) -> object:
    """Refuse `true`, which Python takes for 1."""
    if isinstance(value, bool):
        raise ValueError(f"must be a number or a quantity, not {shown(value)}")
    return value


End = Annotated[str | float, BeforeValidator(_no_flag)]


class DoubtSpec(Spec):
    """A parameter of the scenario and the ends of its 80 % interval, written as its value is."""

    path: Annotated[str, Field(min_length=1, max_length=400)]
    low: End
    high: End


class IntervalSpec(Spec):
    """How often to draw the doubtful parameters, and which they are.

    `catalog`: the ranges and intervals that the named catalog entries and the software's profile state are
    drawn, too, and the profile's spread.
    `between_runs`: standard deviation over mean of the step from one launch to another.
    """

    samples: Annotated[int, Number(20, 10_000, whole=True)] = 100
    catalog: Flag = True
    between_runs: Fraction = 0.0
    parameters: Annotated[tuple[DoubtSpec, ...], Field(max_length=100)] = ()
