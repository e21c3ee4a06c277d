"""Fingerprints of keys: 64 bits that stand for a value, so that a vocabulary is two plain arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.quantities import IntArray
from simulator.workload.draws import mix64

Fingerprints = NDArray[np.uint64]

_WORD = 8


def fingerprints(values: Any) -> Fingerprints:
    """Return one number per value of a flat Arrow array without nulls.

    Whole numbers are their own fingerprint. Everything else is hashed as bytes; among n keys two
    coincide with odds of about n^2 / 2^65, 3 in 10,000 at a hundred million.
    """
    import pyarrow
    from pyarrow import types

    if types.is_integer(values.type):
        return np.asarray(values.cast(pyarrow.int64(), safe=False)).view(np.uint64)
    if not (types.is_binary(values.type) or types.is_large_binary(values.type)):
        values = values.cast(pyarrow.string())
    return _of_bytes(values.cast(pyarrow.large_binary()))


def _of_bytes(values: Any) -> Fingerprints:
    """Return the hash of each byte string: its length, then one mixing step per 8-byte word."""
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    lengths = np.diff(ends)
    text = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    words = np.lib.stride_tricks.sliding_window_view(np.append(text, np.zeros(_WORD, np.uint8)), _WORD)
    hashed = mix64(lengths.astype(np.uint64))
    for start in range(0, int(lengths.max(initial=0)), _WORD):
        active = np.flatnonzero(lengths > start)
        word = _words(words, ends[active] + start, lengths[active] - start)
        hashed[active] = mix64(hashed[active] ^ word)
    return hashed


def _words(words: NDArray[np.uint8], starts: IntArray, remaining: IntArray) -> Fingerprints:
    """Return the words at `starts`, with the bytes beyond the `remaining` ones set to zero."""
    word = np.ascontiguousarray(words[starts]).view(np.uint64).ravel()
    unused = np.uint64(8) * (np.uint64(_WORD) - np.minimum(remaining, _WORD).astype(np.uint64))
    return np.asarray((word << unused) >> unused)
