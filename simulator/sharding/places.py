"""Where pieces go: given places first, then the heaviest piece to the least loaded block of ranks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.errors import InputError
from simulator.quantities import FloatArray
from simulator.sharding.kinds import Piece
from simulator.sharding.world import World


@dataclass(frozen=True, eq=False)
class Shard:
    """A piece on the members `first` to `first + piece.span - 1` of every replica group."""

    piece: Piece
    first: int


def place(pieces: Sequence[Piece], world: World) -> tuple[Shard, ...]:
    """Return every piece with its place, in the order given.

    Greedy, longest first: within 4/3 of the best maximum for equal blocks (Graham, 1969). The load of a
    piece is the bytes of its lookups per owner. Raises InputError for places that do not exist.
    """
    for piece in pieces:
        _check_span(piece, world)
    load = np.zeros(world.members)
    found: dict[int, int] = {}
    for index in _heaviest_first(pieces):
        piece = pieces[index]
        first = _least_loaded(load, piece.span) if piece.first is None else _given(piece, world)
        load[first : first + piece.span] += weight(piece) / piece.span
        found[index] = first
    return tuple(Shard(piece, found[index]) for index, piece in enumerate(pieces))


def weight(piece: Piece) -> float:
    """Return the bytes that one sample looks up in a piece."""
    return piece.rows * piece.table.lookups(1.0) * piece.row_bytes


def _heaviest_first(pieces: Sequence[Piece]) -> Iterable[int]:
    def key(index: int) -> tuple[bool, float, int]:
        piece = pieces[index]
        return piece.first is None, -weight(piece) / piece.span, index

    return sorted(range(len(pieces)), key=key)


def _least_loaded(load: FloatArray, span: int) -> int:
    """Return the first rank of the aligned block whose busiest rank has least to do."""
    blocks = len(load) // span
    return int(load[: blocks * span].reshape(blocks, span).max(axis=1).argmin()) * span


def _check_span(piece: Piece, world: World) -> None:
    if world.members % piece.span:
        raise InputError(
            f'table "{piece.table.name}" takes blocks of {piece.span} ranks, '
            f"which do not divide groups of {world.members}"
        )


def _given(piece: Piece, world: World) -> int:
    assert piece.first is not None
    if not 0 <= piece.first <= world.members - piece.span:
        which = "ranks" if world.replicas == 1 else "ranks of a replica group"
        raise InputError(
            f'table "{piece.table.name}" cannot live on rank {piece.first}: '
            f"{which} are numbered from 0 to {world.members - 1}"
        )
    if piece.first % piece.span:
        raise InputError(
            f'table "{piece.table.name}" takes blocks of {piece.span} ranks, which begin at '
            f"multiples of {piece.span}, not at {piece.first}"
        )
    return piece.first
