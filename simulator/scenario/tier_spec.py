"""The `tier` parts of a scenario: memories that rows live in."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from simulator.errors import did_you_mean
from simulator.scenario.base import Spec
from simulator.scenario.fields import Fraction, Number
from simulator.sharding import Dram, HbmCache, Remote, Ssd, Tier
from simulator.units import shown

MOST_SERVERS = 2**20  # as many as workers


class RemoteSpec(Spec):
    """Rows live on parameter servers: hosts like those of the cluster, reached over the network."""

    kind: Literal["remote"]
    servers: Annotated[int, Number(1, MOST_SERVERS, whole=True)]

    def build(self) -> Tier:
        """Return the tier."""
        return Remote(self.servers)


class HbmCacheSpec(Spec):
    """Some rows in device memory, all of them below.

    `share`: of each table's rows that fit. `hit_rate`: share of the rows of a batch that the cache
    holds (default: from the table's keys). `below`: memory of all rows. `replacement`: `hottest` rows
    stay in the cache, or the least recently used leave it.
    """

    kind: Literal["hbm_cache"]
    share: Fraction
    hit_rate: Fraction | None = None
    below: Literal["dram", "ssd"] | RemoteSpec = "dram"
    replacement: Literal["hottest", "lru"] = "hottest"

    @model_validator(mode="after")
    def _one_source_of_hits(self) -> "HbmCacheSpec":
        """Refuse a way to find what is given."""
        if self.hit_rate is not None and self.replacement != "hottest":
            raise ValueError("hit_rate says what replacement would find: leave out one of them")
        return self

    def build(self) -> Tier:
        """Return the tier."""
        return HbmCache(self.share, self.hit_rate, _below(self.below), self.replacement)


def _below(named: str | RemoteSpec) -> Tier:
    if isinstance(named, RemoteSpec):
        return named.build()
    return {"dram": Dram(), "ssd": Ssd()}[named]


def _known_tier(named: object) -> object:
    """Refuse a mapping of no known kind here: the union below would only say that it does not fit."""
    kinds = ("hbm_cache", "remote")
    kind = named.get("kind") if isinstance(named, dict) else None
    if isinstance(named, dict) and kind not in kinds:
        raise ValueError(f"unknown kind {shown(kind)}{did_you_mean(str(kind)[:100], kinds)}")
    return named


TierSpec = Annotated[
    Literal["dram", "hbm", "ssd"] | Annotated[HbmCacheSpec | RemoteSpec, Field(discriminator="kind")],
    BeforeValidator(_known_tier),
]


def tier_of(named: str | HbmCacheSpec | RemoteSpec) -> str | Tier:
    """Return what a kind of sharding takes: a name, or a tier with parameters."""
    return named if isinstance(named, str) else named.build()
