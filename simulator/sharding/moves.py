"""Rows by their width, and the work of accessing them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from simulator.quantities import Amount, InTurn, RowWork, Together, Work
from simulator.workload.tables import KEY_BYTES

Rows = Mapping[float, Amount]
"""Rows of one rank by their width in bytes."""


@dataclass(frozen=True, eq=False)
class Moved:
    """Rows that one rank needs from a tier: all of them, and those that do not lie in its device memory.

    `ranks` is how many ranks need as much at the same time, in the whole job.
    """

    rows: Rows
    missed: Rows
    ranks: int = 1


def access(rows: Rows, memory: str, passes: float = 1.0) -> Work:
    """Return random access to `rows`, one width after the other."""
    return _in_turn(RowWork(count, width, memory, passes) for width, count in rows.items())


def over_wire(rows: Rows, memory: str, back: bool, passes: float = 1.0) -> Work:
    """Return access to `rows` over network cards, whose two directions are used at the same time.

    Keys go out and rows come back (`back`): the wider of them counts. Or keys go out with the rows.
    """
    return _in_turn(
        RowWork(count, width, memory, passes, wire_bytes=max(width, KEY_BYTES) if back else width + KEY_BYTES)
        for width, count in rows.items()
    )


def _in_turn(works: Iterable[RowWork]) -> Work:
    parts = tuple(works)
    return parts[0] if len(parts) == 1 else InTurn(parts)


def width_total(rows: Rows) -> Amount:
    """Return the bytes of all rows."""
    return sum((width * count for width, count in rows.items()), start=0.0)


def streamed(parts: tuple[Work, ...]) -> Work:
    """Return parts that stream through each other; a single part is itself."""
    return parts[0] if len(parts) == 1 else Together(parts)
