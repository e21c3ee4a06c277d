"""Histograms of reuse: how many keys are looked up once, twice, up to four times, and so on."""

from dataclasses import dataclass

import numpy as np

from simulator.quantities import FloatArray

LARGEST_POWER = 15
EDGES = tuple(2**power for power in range(LARGEST_POWER + 1))  # as Meta's dlrm_datasets publish them


@dataclass(frozen=True)
class ReuseHistogram:
    """Cumulative shares of keys, and of lookups, that belong to keys looked up at most `edges[i]` times.

    `lookups` and `keys` are the totals that the shares refer to.
    """

    lookups: float
    keys: float
    key_shares: tuple[float, ...]
    lookup_shares: tuple[float, ...]
    edges: tuple[int, ...] = EDGES

    @property
    def mean(self) -> float:
        """Return the mean lookups per key."""
        return self.lookups / self.keys

    def distance(self, other: "ReuseHistogram") -> tuple[float, float]:
        """Return the largest differences of the cumulative shares, of keys and of lookups."""
        pairs = (self.key_shares, other.key_shares), (self.lookup_shares, other.lookup_shares)
        keys, lookups = (float(np.max(np.abs(np.subtract(*pair)))) for pair in pairs)
        return keys, lookups

    def rows(self) -> list[dict[str, float | int | None]]:
        """Return one record per range of reuse; the last has no upper end."""
        edges: list[int | None] = [*self.edges, None]
        keys = np.diff(np.append(self.key_shares, 1.0), prepend=0.0)
        lookups = np.diff(np.append(self.lookup_shares, 1.0), prepend=0.0)
        return [
            {"at_most": edge, "share_of_keys": float(k), "share_of_lookups": float(n)}
            for edge, k, n in zip(edges, keys, lookups, strict=True)
        ]


def counted(counts: FloatArray, keys: FloatArray) -> ReuseHistogram:
    """Return the histogram of `keys[j]` keys that were each looked up `counts[j]` times."""
    within = counts <= np.array(EDGES)[:, None]
    total, lookups = float(keys.sum()), float(counts @ keys)
    key_shares = (within @ keys) / total
    lookup_shares = (within @ (counts * keys)) / lookups
    return ReuseHistogram(lookups, total, tuple(key_shares.tolist()), tuple(lookup_shares.tolist()))


def expected(rates: FloatArray, keys: FloatArray) -> ReuseHistogram:
    """Return the expected histogram when `keys[j]` keys are each looked up Poisson(`rates[j]`) times.

    Keys that are not looked up at all do not count. A key's lookups at most e times make up
    rate x P(at most e - 1) of its rate.
    """
    from scipy.special import pdtr

    edges = np.array(EDGES, dtype=np.float64)[:, None]
    silent = np.exp(-rates)
    total, lookups = float(keys @ -np.expm1(-rates)), float(keys @ rates)
    key_shares = (pdtr(edges, rates) - silent) @ keys / total
    lookup_shares = pdtr(edges - 1, rates) @ (keys * rates) / lookups
    return ReuseHistogram(lookups, total, tuple(key_shares.tolist()), tuple(lookup_shares.tolist()))
