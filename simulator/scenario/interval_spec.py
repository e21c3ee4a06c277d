"""The `run.interval` part of a scenario: what is doubtful, and how often to draw it."""

from typing import Annotated

from pydantic import Field

from simulator.scenario.base import Spec
from simulator.scenario.fields import Count, Flag, Fraction

COVERAGE = 0.8


class DoubtSpec(Spec):
    """A parameter of the scenario and the ends of its 80 % interval, written as its value is."""

    path: Annotated[str, Field(min_length=1, max_length=400)]
    low: str | float
    high: str | float


class IntervalSpec(Spec):
    """How often to draw the doubtful parameters, and which they are.

    `catalog`: the ranges and intervals that the named catalog entries state are drawn, too.
    `between_runs`: standard deviation over mean of the step from one launch to another.
    """

    samples: Annotated[Count, Field(ge=20, le=10_000)] = 100
    catalog: Flag = True
    between_runs: Fraction = 0.0
    parameters: Annotated[tuple[DoubtSpec, ...], Field(max_length=100)] = ()
