"""Feedback-directed placement: plan, measure the keys, plan again, and say what that won."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from simulator.errors import InputError
from simulator.sharding.placement.placed import Chips, Placement
from simulator.sharding.placement.shard import Demand, piece

Planner = Callable[[Sequence[Demand], Chips], Placement]


@dataclass(frozen=True)
class Feedback:
    """The first plan under the measured loads (`before`), and the plan made from them (`after`)."""

    before: Placement
    after: Placement

    @property
    def gain(self) -> float:
        """Return how many times less the busiest chip does after planning anew; never below 1."""
        return self.before.busiest / self.after.busiest if self.after.busiest else 1.0

    def to_dict(self) -> dict[str, object]:
        """Return both plans' figures, JSON-ready."""
        return {
            "gain": self.gain,
            "imbalance_before": self.before.imbalance,
            "imbalance_after": self.after.imbalance,
            "after": self.after.to_dict(),
        }


def judged(placement: Placement, demands: Sequence[Demand]) -> Placement:
    """Return the same pieces on the same chips with the loads of `demands`.

    The bound is left at zero: it belonged to the old loads. Raises InputError for a table without demand.
    """
    known: Mapping[str, Demand] = {demand.table: demand for demand in demands}
    lacking = next((shard.table for shard in placement.shards if shard.table not in known), None)
    if lacking is not None:
        raise InputError(f'nothing is known of the demand of table "{lacking}"')
    shards = tuple(piece(known[s.table], s.kind, s.rows, s.columns, s.copies) for s in placement.shards)
    return replace(placement, shards=shards, bound=0.0)


def replanned(
    assumed: Sequence[Demand], measured: Sequence[Demand], chips: Chips, planner: Planner
) -> Feedback:
    """Return what planning by `measured` demands wins over a plan by `assumed` ones.

    Both are judged by the measured loads. Where the first plan is no worse it is kept, so that
    measuring never costs anything. Raises what `planner` raises.
    """
    before = judged(planner(assumed, chips), measured)
    after = planner(measured, chips)
    before = replace(before, bound=after.bound)
    fits = bool((before.memory <= chips.memory).all())
    return Feedback(before, before if fits and before.busiest <= after.busiest else after)
