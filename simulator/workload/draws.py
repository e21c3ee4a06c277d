"""Random draws keyed by (seed, rank, batch, stage): the same number in any order, process or folding."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from simulator.quantities import FloatArray, IntArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a one-to-one scramble of 64-bit numbers (SplitMix64: Steele, Lea, Flood, OOPSLA 2014)."""
    mixed = values + _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def uniforms(seed: int, label: str, batch: int, ranks: IntArray) -> FloatArray:
    """Return one number in (0, 1) per rank, a hash of (seed, label, batch, rank) and nothing else.

    One step of SplitMix64 per rank, from a start that the seed, the label and the batch give.
    """
    digest = hashlib.blake2b(f"{seed}/{label}/{batch}".encode(), digest_size=8).digest()
    key = np.uint64(int.from_bytes(digest, "little"))
    state = key + ranks.astype(np.uint64) * _GOLDEN
    return ((mix64(state) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def lognormal(uniform: FloatArray, spread: float) -> FloatArray:
    """Return factors with mean 1 and standard deviation `spread`, one per uniform number."""
    from scipy.special import ndtri

    variance = np.log1p(spread**2)
    factors: FloatArray = np.exp(np.sqrt(variance) * ndtri(uniform) - variance / 2)
    return factors
