"""Sharding plans: which rank owns which rows, and in which memory tier they live."""

from dataclasses import dataclass

from simulator.errors import InputError, did_you_mean

TIERS = ("dram", "hbm")


@dataclass(frozen=True)
class RowWise:
    """Rows of every table are spread over all ranks by a hash of their key.

    `tier` says where they live: `dram` (of the owner's host) or `hbm`. `owners` is `expected`
    (all owners receive the mean load) or `drawn` (each owner's load is drawn once from the spread
    that the hash leaves: hot owners stay hot). Raises InputError on unknown names.
    """

    tier: str = "dram"
    owners: str = "expected"

    def __post_init__(self) -> None:
        """Refuse unknown tiers and load models."""
        for value, allowed in ((self.tier, TIERS), (self.owners, ("expected", "drawn"))):
            if value not in allowed:
                raise InputError(f'unknown value "{value}"{did_you_mean(value, allowed)}')
