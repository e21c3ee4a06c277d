"""Number formats, and the bytes of a value in each: the one list of them."""

from collections.abc import Mapping

from simulator.errors import InputError

VALUE_BYTES: Mapping[str, int] = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}


def value_bytes(number_format: str) -> int:
    """Return the bytes of one value in memory. Raises InputError, naming the known formats, for another."""
    if number_format not in VALUE_BYTES:
        known = ", ".join(VALUE_BYTES)
        raise InputError(f'no number format is called "{number_format}" (known: {known})')
    return VALUE_BYTES[number_format]
