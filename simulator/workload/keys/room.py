"""Arrays that grow with the keys of a log."""

import mmap
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)

OWN_PAGES = 1 << 17  # bytes


def zeros(size: int, dtype: "np.dtype[Any]") -> NDArray[Any]:
    """Return zeros in pages of their own when they are many.

    Hundreds of arrays that grow side by side leave holes on the heap, as large together as what they
    hold. Own pages return to the system when an array is outgrown, and take no memory until written.
    """
    if size * dtype.itemsize < OWN_PAGES:
        return np.zeros(size, dtype)
    return np.frombuffer(mmap.mmap(-1, size * dtype.itemsize), dtype)


def grown(values: NDArray[Number], size: int) -> NDArray[Number]:
    """Return `values` with room for `size` entries, new ones zero; doubles, so it is cheap."""
    if size <= len(values):
        return values
    room = zeros(max(size, 2 * len(values)), values.dtype)
    room[: len(values)] = values
    return room


def copied(*parts: NDArray[Number]) -> NDArray[Number]:
    """Return the parts end to end, in room of their own."""
    room = zeros(sum(map(len, parts)), parts[0].dtype)
    np.concatenate(parts, out=room)
    return room
