"""From Arrow columns to numbered keys: single values, separated values, and lists."""

from typing import Any

import numpy as np

from simulator.errors import InputError
from simulator.quantities import IntArray
from simulator.workload.keys.counting import TableChunk
from simulator.workload.keys.vocabulary import Vocabulary


def _lists(column: Any, separator: str | None) -> Any:
    """Return the column as an Arrow array of lists, or unchanged when it holds single values."""
    import pyarrow
    from pyarrow import compute, types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    inner = column.type.value_type if _is_list(column) else column.type
    if types.is_nested(inner):
        raise InputError(f"a column of {column.type} holds no keys: name the columns that do")
    text = types.is_string(column.type) or types.is_large_string(column.type) or _is_bytes(column)
    if separator is None or not text:
        return column
    return compute.split_pattern(column.cast(pyarrow.binary()), separator.encode())


def _is_bytes(column: Any) -> bool:
    from pyarrow import types

    return bool(types.is_binary(column.type) or types.is_large_binary(column.type))


def _filled(values: Any) -> IntArray:
    """Return the places of the values that are neither null, nor no number, nor empty strings."""
    import pyarrow
    from pyarrow import compute, types

    present = compute.is_valid(values)
    if types.is_floating(values.type):
        present = compute.and_(present, compute.invert(compute.fill_null(compute.is_nan(values), False)))
    if types.is_string(values.type) or types.is_large_string(values.type) or _is_bytes(values):
        length = compute.binary_length(values.cast(pyarrow.binary()))
        present = compute.and_(present, compute.greater(compute.fill_null(length, 0), 0))
    return np.flatnonzero(np.asarray(present))


def _is_list(column: Any) -> bool:
    from pyarrow import types

    kind = column.type
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def key_chunk(column: Any, separator: str | None, start: int, vocabulary: Vocabulary) -> TableChunk:
    """Return the keys of one Arrow column whose first cell belongs to sample `start`.

    Null cells, empty cells and empty values of a multi-hot cell are no lookups; cells without any
    lookup are counted as missing. Raises InputError for a column of structs, maps or
    lists of lists.
    """
    from pyarrow import compute

    lists = _lists(column, separator)
    cells = np.arange(len(lists), dtype=np.int64)
    values = lists
    if _is_list(lists):
        cells = np.asarray(compute.list_parent_indices(lists), dtype=np.int64)
        values = compute.list_flatten(lists)
    kept = _filled(values)
    codes = vocabulary.encode(values.take(kept))
    cells = cells[kept]
    present = np.count_nonzero(np.diff(cells, prepend=-1))  # cells do not fall
    return TableChunk(codes, cells + start, missing=len(lists) - int(present))
