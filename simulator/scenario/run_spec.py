"""The `run` and `sharding` parts of a scenario."""

from typing import Literal

from pydantic import Field

from simulator.engine import Variation
from simulator.scenario.base import Spec
from simulator.scenario.fields import Count, CountOrZero, Flag, Fraction
from simulator.sharding import RowWise


class ShardingSpec(Spec):
    """Rows of every table over all ranks by a hash of their key.

    `tier`: memory that rows live in. `owners`: every owner receives the mean load, or a load drawn
    once per owner from the spread that the hash leaves.
    """

    kind: Literal["row_wise"]
    replicas: Literal[1] = 1
    tier: Literal["dram", "hbm"] = "dram"
    owners: Literal["expected", "drawn"] = "expected"

    def build(self) -> RowWise:
        """Return the plan."""
        return RowWise(self.tier, self.owners)


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
    contention: Flag = False
    jitter: JitterSpec = JitterSpec()

    def variation(self) -> Variation:
        """Return the spread of durations and the seed."""
        return Variation({kind: spread for kind, spread in self.jitter if spread}, self.seed)
