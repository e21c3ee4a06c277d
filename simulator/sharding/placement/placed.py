"""Where the pieces are: loads and memory per chip, how even they are, and how far from the best possible."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.errors import InputError
from simulator.quantities import FloatArray
from simulator.sharding.placement.cuts import Choice
from simulator.sharding.placement.shard import Shard

ROUNDING = 1e-9  # of a chip: sums of fractions may exceed a whole by so much
PROVEN = 1e-4  # a smaller gap counts as none: the resolution to which loads are solved


@dataclass(frozen=True)
class Chips:
    """`count` chips alike, each with `memory` bytes for tables. Raises InputError on impossible values."""

    count: int
    memory: float = math.inf

    def __post_init__(self) -> None:
        """Refuse no chips and no memory."""
        if self.count < 1 or not self.memory > 0:
            raise InputError("placement needs at least one chip, and memory on it")


def imbalance(loads: Sequence[float] | FloatArray) -> float:
    """Return N x max / sum of the loads of N chips: how many times its even share the busiest does.

    1 for a perfectly even placement, N when one chip does everything. With no load at all it is 1.
    """
    total = math.fsum(loads)
    return len(loads) * float(max(loads)) / total if total else 1.0


@dataclass(frozen=True)
class Placement:
    """Shard i lies on chip `chip_of[i]`. `bound` is a load that the busiest chip of no placement undercuts.

    `method` names what found it. Raises InputError when the two do not match, or a chip does not exist.
    """

    chips: Chips
    shards: tuple[Shard, ...]
    chip_of: tuple[int, ...]
    bound: float
    method: str

    def __post_init__(self) -> None:
        """Refuse shards without a chip."""
        if len(self.shards) != len(self.chip_of):
            raise InputError(f"{len(self.shards)} shards lie on {len(self.chip_of)} chips")
        if any(not 0 <= chip < self.chips.count for chip in self.chip_of):
            raise InputError(f"a shard lies on a chip that is not one of the {self.chips.count}")

    @cached_property
    def loads(self) -> FloatArray:
        """Return the load of each chip, shape (chips,)."""
        return self._summed(shard.load for shard in self.shards)

    @cached_property
    def memory(self) -> FloatArray:
        """Return the bytes that each chip stores, shape (chips,)."""
        return self._summed(shard.memory for shard in self.shards)

    @cached_property
    def bytes(self) -> FloatArray:
        """Return the bytes of rows that each chip sends per step, shape (chips,)."""
        return self._summed(shard.bytes for shard in self.shards)

    def _summed(self, values: Iterable[float]) -> FloatArray:
        summed: FloatArray = np.zeros(self.chips.count)
        np.add.at(summed, list(self.chip_of), list(values))
        return summed

    @property
    def busiest(self) -> float:
        """Return the load of the busiest chip: what the others wait for."""
        return float(self.loads.max())

    @property
    def imbalance(self) -> float:
        """Return N x max / sum of the loads."""
        return imbalance(self.loads)

    @property
    def gap(self) -> float:
        """Return how far the busiest chip is above the bound, as a share of the bound."""
        return max(self.busiest / self.bound - 1.0, 0.0) if self.bound else 0.0

    @property
    def proven(self) -> bool:
        """Whether no placement can be better, to within a hundredth of a percent."""
        return self.gap <= PROVEN

    def of_table(self, table: str) -> list[tuple[Shard, int]]:
        """Return the pieces of one table, each with its chip."""
        return [pair for pair in zip(self.shards, self.chip_of, strict=True) if pair[0].table == table]

    def to_dict(self) -> dict[str, object]:
        """Return the whole placement, JSON-ready; loads in the unit of the demands, memory in bytes."""
        return {
            "method": self.method,
            "chips": self.chips.count,
            "busiest": self.busiest,
            "bound": self.bound,
            "gap": self.gap,
            "proven": self.proven,
            "imbalance": self.imbalance,
            "loads": self.loads.tolist(),
            "memory_bytes": self.memory.tolist(),
            "shards": [_row(shard, chip) for shard, chip in zip(self.shards, self.chip_of, strict=True)],
        }


def _row(shard: Shard, chip: int) -> dict[str, object]:
    return {
        "table": shard.table,
        "chip": chip,
        "kind": shard.kind,
        "rows": [shard.rows.start, shard.rows.size],
        "columns": [shard.columns.start, shard.columns.size],
        "load": shard.load,
        "bytes": shard.bytes,
        "memory_bytes": shard.memory,
    }


def lower_bound(choices: Sequence[Sequence[Choice]], chips: Chips) -> float:
    """Return a load that the busiest chip cannot undercut, memory aside; `choices` are those of each table.

    The larger of an even share of the least total load (each table in its cheapest cut), and the
    longest piece that cannot be avoided (each table in its finest cut).
    """
    least = math.fsum(min(choice.total for choice in table) for table in choices)
    return max(least / chips.count, *(min(choice.longest for choice in table) for table in choices))
