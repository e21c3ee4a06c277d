"""Why tables do not fit, and the smallest change that would help."""

import math
from collections.abc import Sequence

from simulator.sharding.placement.placed import Chips
from simulator.sharding.placement.shard import Demand


def table_too_large(demand: Demand, smallest_piece: float, chips: Chips) -> str:
    """Say that no allowed piece of one table fits a chip."""
    return (
        f'table "{demand.table}" does not fit: its smallest allowed piece takes {_gb(smallest_piece)}, '
        f"a chip has {_gb(chips.memory)}; more chips do not help, unless they let it be cut finer"
    )


def tables_too_large(demands: Sequence[Demand], chips: Chips) -> str:
    """Say what is missing: memory in all, or only room for the last pieces."""
    total = math.fsum(demand.memory for demand in demands)
    have = chips.count * chips.memory
    largest = max(demands, key=lambda demand: demand.memory)
    names = f'the largest is "{largest.table}" ({_gb(largest.memory)})'
    if total > have:
        return (
            f"the tables take {_gb(total)} and {chips.count} chips have {_gb(have)}; {names}; they take "
            f"{math.ceil(total / chips.memory)} chips or {_gb(total / chips.count)} per chip at least"
        )
    return (
        f"no room was found for all pieces, though the tables take {_gb(total)} and {chips.count} chips "
        f"have {_gb(have)}; {names}; finer pieces or {chips.count + 1} chips may fit"
    )


def _gb(size: float) -> str:
    return f"{size / 1e9:.4g} GB"
