"""What workers and parameter servers say to each other: whole numbers first, then rows or gradients.

A fetch names places in the server's shard, table by table; the answer is their rows, one below the other.
A push carries a gradient per place; a write overwrites rows (with their optimizer state).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.calibration.measure.channel import Array
from simulator.quantities import IntArray

FETCH, PUSH, WRITE, RESET = "Fetch", "Push", "Write", "Reset"
SERVICE = "recscale.Rows"
HEAD = 4  # step or width of answers, sender, group, number of parts


@dataclass(frozen=True, eq=False)
class Message:
    """One request: `step`, `sender`, the `group` that belongs together, `places` in parts, and `values`."""

    step: int
    sender: int
    group: int
    parts: tuple[IntArray, ...]
    values: Array | None = None

    def packed(self) -> bytes:
        """Return the message as bytes."""
        lengths = [len(part) for part in self.parts]
        head = np.array([self.step, self.sender, self.group, len(lengths), *lengths], dtype=np.int64)
        numbers = np.concatenate([head, *self.parts]).tobytes()
        return numbers if self.values is None else numbers + self.values.tobytes()

    @property
    def places(self) -> IntArray:
        """All places, one part after the other."""
        return np.concatenate(self.parts) if self.parts else np.empty(0, dtype=np.int64)


def unpacked(data: bytes) -> Message:
    """Return the message in `data`."""
    step, sender, group, parts = (int(n) for n in np.frombuffer(data, dtype=np.int64, count=HEAD))
    lengths = np.frombuffer(data, dtype=np.int64, count=parts, offset=8 * HEAD)
    total, start = int(lengths.sum()), 8 * (HEAD + parts)
    places = np.frombuffer(data, dtype=np.int64, count=total, offset=start)
    values = np.frombuffer(data, dtype=np.float32, offset=start + 8 * total)
    split = np.split(places, np.cumsum(lengths)[:-1]) if parts else []
    return Message(step, sender, group, tuple(split), values if len(values) else None)


def by_table(places: IntArray, server: int, servers: int, rows: int) -> list[tuple[int, slice]]:
    """Return the tables of rising `places` in a server's shard, and which of them belong to each."""
    tables = (places * servers + server) // rows
    present, starts = np.unique(tables, return_index=True)
    ends = np.append(starts[1:], len(places))
    return [(int(t), slice(int(a), int(b))) for t, a, b in zip(present, starts, ends, strict=True)]


def joined(arrays: Sequence[Array], width: int) -> Array:
    """Return flat parts as rows of `width` values."""
    return np.concatenate([array.reshape(-1) for array in arrays]).reshape(-1, width)
