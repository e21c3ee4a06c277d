"""The `run` part of a scenario."""

from typing import Annotated, Literal

from pydantic import Field

from simulator.engine import Variation
from simulator.engine.weights import PER_COLLECTIVE, PerFlow, WeightRule
from simulator.scenario.base import Spec
from simulator.scenario.fields import CountOrZero, Flag, Fraction, Number
from simulator.scenario.interval_spec import IntervalSpec

WEIGHTS: dict[str, WeightRule] = {"collective": PER_COLLECTIVE, "flow": PerFlow()}


class JitterSpec(Spec):
    """Random spread of durations (standard deviation over mean) by kind of stage."""

    compute: Fraction = 0.0
    input: Fraction = 0.0
    lookup: Fraction = 0.0
    all_to_all: Fraction = 0.0
    all_reduce: Fraction = 0.0


class FoldSpec(Spec):
    """Ranks whose durations differ by at most a share are run as one class, with its longest durations."""

    within: Annotated[Fraction, Field(gt=0, le=0.5)]


class RunSpec(Spec):
    """How long to run, what to leave out at the start, and how.

    `fold`: `auto` carries alike ranks together, `off` runs each rank on its own; both give the
    same times. `{within: 1 %}` carries nearly alike ones together, with a stated error.
    `contention`: whether stages share engines, memories, copy paths and the network.
    `weights`: what counts the same where collectives meet on a link, each `collective` or each `flow`.
    """

    batches: Annotated[int, Number(1, 100_000, whole=True)] = 60
    warm_up: CountOrZero = 20
    seed: CountOrZero = 0
    fold: Literal["auto", "off"] | FoldSpec = "auto"
    contention: Flag = True
    weights: Literal["collective", "flow"] = "collective"
    jitter: JitterSpec = JitterSpec()
    interval: IntervalSpec | None = None

    def weigh(self) -> WeightRule:
        """Return the rule by which the flows of collectives that meet compete."""
        return WEIGHTS[self.weights]

    def variation(self) -> Variation:
        """Return the spread of durations and the seed."""
        return Variation({kind: spread for kind, spread in self.jitter if spread}, self.seed)
