"""The `run` part of a scenario."""

from typing import Literal

from pydantic import Field

from simulator.engine import Variation
from simulator.scenario.base import Spec
from simulator.scenario.fields import Count, CountOrZero, Flag, Fraction


class JitterSpec(Spec):
    """Random spread of durations (standard deviation over mean) by kind of stage."""

    compute: Fraction = 0.0
    input: Fraction = 0.0
    lookup: Fraction = 0.0
    all_to_all: Fraction = 0.0
    all_reduce: Fraction = 0.0


class RunSpec(Spec):
    """How long to run, what to leave out at the start, and how.

    `fold`: `auto` carries alike ranks together, `off` runs each rank on its own; both give the
    same times. `contention`: whether stages share engines, memories, copy paths and the network.
    """

    batches: Count = Field(default=60, le=100_000)
    warm_up: CountOrZero = 20
    seed: CountOrZero = 0
    fold: Literal["auto", "off"] = "auto"
    contention: Flag = True
    jitter: JitterSpec = JitterSpec()

    def variation(self) -> Variation:
        """Return the spread of durations and the seed."""
        return Variation({kind: spread for kind, spread in self.jitter if spread}, self.seed)
