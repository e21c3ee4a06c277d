"""Which cuts a planner may choose from, and whether it searches or goes longest first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from simulator.sharding.placement import (
    WHOLE_TABLES,
    Chips,
    CutRules,
    Demand,
    Placement,
    Shard,
    Whole,
    greedy,
    optimized,
)
from simulator.sharding.placement.cuts import NARROWEST
from simulator.sharding.placement.feedback import Planner
from simulator.workload.keys import LogStatistics

USUAL_PARTS = 32  # finer cuts by rows are offered only where a table needs them
COLUMN_PARTS = (2, 4, 8, 16, 32)  # where pieces narrower than TorchRec's planner allows are offered


@dataclass(frozen=True)
class PlacingRequest:
    """How to place: by constraints (`exact`, for about `seconds`) or longest first; cut tables or not.

    `keys` is the summary of a log that the placement is to go by.
    """

    exact: bool = False
    seconds: float = 4.5
    whole: bool = False
    keys: LogStatistics | None = None


def planner(request: PlacingRequest, sums: bool, narrowest: int = NARROWEST) -> Planner:
    """Return what places tables as requested, in pieces of `narrowest` columns or more.

    `sums`: owners send sums of rows.
    """

    def plan(demands: Sequence[Demand], chips: Chips) -> Placement:
        rules = allowed_cuts(request, demands, chips, (sums, narrowest))
        method = partial(optimized, seconds=request.seconds) if request.exact else greedy
        return _joined(method(demands, chips, rules), demands)

    return plan


def _joined(placement: Placement, demands: Sequence[Demand]) -> Placement:
    """Return the placement in which a table that was cut and lies on one chip all the same is whole again.

    No load grows by it: pieces by columns paid for the keys once each.
    """
    pairs: list[tuple[Shard, int]] = []
    for demand in demands:
        pieces = placement.of_table(demand.table)
        chips = {chip for _, chip in pieces}
        (whole,) = Whole().pieces(demand)
        pairs += pieces if len(chips) > 1 else [(whole, chip) for chip in chips]
    shards, chip_of = zip(*pairs, strict=True)
    return replace(placement, shards=shards, chip_of=chip_of)


def allowed_cuts(
    request: PlacingRequest, demands: Sequence[Demand], chips: Chips, pieces: tuple[bool, int]
) -> CutRules:
    """Return the cuts to choose from: rows into any power of two, and into as many pieces as chips.

    `pieces` says whether owners send sums of rows, and how many columns the narrowest piece has. Rows stay
    together where owners send sums, since every piece would send one for every sample, unless a table fits
    no chip otherwise.
    """
    sums, narrowest = pieces
    if request.whole:
        return WHOLE_TABLES
    columns = CutRules().column_parts if narrowest == NARROWEST else COLUMN_PARTS
    by_columns = CutRules(columns, (), narrowest)
    if sums and all(_fits(demand, by_columns, chips) for demand in demands):
        return by_columns
    share = sum(demand.load for demand in demands) / chips.count
    need = max(max(_over(one.load, share), _over(one.memory, chips.memory)) for one in demands)
    most = chips.count if need > USUAL_PARTS else min(USUAL_PARTS, chips.count)
    powers = {2**power for power in range(1, most.bit_length()) if 2**power <= most}
    return CutRules(columns, tuple(sorted(powers | ({most} if most > 1 else set()))), narrowest)


def _fits(demand: Demand, rules: CutRules, chips: Chips) -> bool:
    """Whether some cut of a table has pieces that fit a chip."""
    return any(choice.largest <= chips.memory for choice in rules.choices([demand], chips.count)[0])


def _over(amount: float, unit: float) -> float:
    return amount / unit if unit else 0.0
