"""Numbering keys in the order in which a log first names them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.quantities import FloatArray, IntArray
from simulator.workload.keys.fingerprints import Fingerprints, fingerprints
from simulator.workload.keys.room import zeros

Level = tuple[Fingerprints, NDArray[np.int32]]


@dataclass
class Vocabulary:
    """Numbers keys from 0 in order of first appearance, in 12 bytes per distinct key.

    The known keys are a few sorted arrays of fingerprints, each at least twice as long as the next,
    so that adding a key costs a logarithmic number of merges.
    """

    size: int = 0
    numeric: bool = True
    _levels: list[Level] = field(default_factory=list)

    def encode(self, values: Any) -> IntArray:
        """Return the code of each value of a flat Arrow array without nulls."""
        from pyarrow import types

        self.numeric = self.numeric and types.is_integer(values.type)
        encoded = values.dictionary_encode()
        codes = self._codes(fingerprints(encoded.dictionary))
        return np.asarray(codes[np.asarray(encoded.indices)])

    def _codes(self, prints: Fingerprints) -> IntArray:
        """Return the codes of distinct fingerprints; unknown ones get the next numbers, in order."""
        order = np.argsort(prints)
        found = self._find(prints[order])
        codes = np.empty_like(found)
        codes[order] = found
        unknown = np.flatnonzero(codes < 0)
        codes[unknown] = self.size + np.arange(len(unknown))
        fresh = order[found < 0]
        self.size += len(unknown)
        self._add((prints[fresh], codes[fresh].astype(np.int32)))
        return codes

    def _find(self, wanted: Fingerprints) -> IntArray:
        """Return the code of each of `wanted` (sorted: neighbours are looked up together), or -1."""
        found = np.full(len(wanted), -1, dtype=np.int64)
        for known, codes in self._levels:
            at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            hit = known[at] == wanted
            found[hit] = codes[at[hit]]
        return found

    def _add(self, level: Level) -> None:
        if not len(level[0]):
            return
        while self._levels and len(self._levels[-1][0]) < 2 * len(level[0]):
            level = _merged(self._levels.pop(), level)
        self._levels.append(level)

    def places(self) -> FloatArray | None:
        """Return each key's place between the smallest (0) and the largest (1) key, by code.

        None unless all keys are whole numbers.
        """
        if not (self.numeric and self.size):
            return None
        places = np.empty(self.size)
        for known, codes in self._levels:
            places[codes] = known.view(np.int64)
        low, high = places.min(), places.max()
        return np.asarray((places - low) / max(high - low, 1.0))


def _merged(old: Level, new: Level) -> Level:
    """Return both levels as one, in room of its own and with little besides."""
    size = len(old[0]) + len(new[0])
    place = np.searchsorted(old[0], new[0]) + np.arange(len(new[0]))
    others = np.ones(size, dtype=bool)
    others[place] = False
    keys, codes = zeros(size, old[0].dtype), zeros(size, old[1].dtype)
    keys[place], codes[place] = new
    keys[others], codes[others] = old
    return keys, codes
