"""The little of the protobuf wire format that execution traces need: fields of length-delimited messages.

See the "Encoding" page of the protobuf documentation. Nothing of a message is interpreted here.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from simulator.calibration.imports.opening import opened
from simulator.errors import InputError, Where

LARGEST = 64 << 20  # bytes of one message
LONGEST_VARINT = 10
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Field = tuple[int, int | bytes]  # field number; an integer (fixed ones little-endian) or bytes


class WireError(ValueError):
    """These bytes are no protobuf."""


def messages(path: Path, what: str) -> Iterator[bytes]:
    """Yield the messages of a file in which each stands behind its length.

    Raises InputError for a file that ends inside a message, or has one that is too large.
    """
    with opened(path) as file:
        try:
            first = True
            while (length := _length(file)) is not None:
                message = file.read(length) if length <= LARGEST else b""
                if len(message) < length and (first or length > LARGEST):
                    raise WireError
                if len(message) < length:
                    raise InputError("is cut short: it ends inside a message", Where(str(path)))
                first = False
                yield message
        except WireError:
            raise InputError(f"is not {what}", Where(str(path))) from None


def fields(message: bytes) -> Iterator[Field]:
    """Yield the fields of a message. Raises WireError for bytes that are none."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        value: int | bytes
        if kind == VARINT:
            value, place = _varint(message, place)
        elif kind == BYTES:
            length, place = _varint(message, place)
            value, place = message[place : place + length], place + length
        elif kind in (FIXED64, FIXED32):
            width = 8 if kind == FIXED64 else 4
            value, place = int.from_bytes(message[place : place + width], "little"), place + width
        else:
            raise WireError
        if place > len(message) or key >> 3 == 0:
            raise WireError
        yield key >> 3, value


def packed(value: int | bytes) -> Iterator[int]:
    """Yield the integers of a repeated field, packed or not."""
    if isinstance(value, int):
        yield value
        return
    place = 0
    while place < len(value):
        number, place = _varint(value, place)
        yield number


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(LONGEST_VARINT):
        if place >= len(data):
            raise WireError
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, place
    raise WireError


def _length(file: BinaryIO) -> int | None:
    """Return the length in front of the next message; None at the end of the file."""
    value = 0
    for shift in range(LONGEST_VARINT):
        byte = file.read(1)
        if not byte:
            if shift:
                raise WireError
            return None
        value |= (byte[0] & 0x7F) << (7 * shift)
        if byte[0] < 0x80:
            return value
    raise WireError
