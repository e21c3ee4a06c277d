"""Writing synthetic traces as key logs: how sessions, drift and bursts get into a run."""

from pathlib import Path
from typing import Any

from simulator.errors import InputError
from simulator.quantities import IntArray
from simulator.workload.traces.trace import SyntheticTrace


def write_log(trace: SyntheticTrace, path: str | Path, batches: int, ranks: int = 1) -> Path:
    """Write `batches` batches of `ranks` ranks to the Parquet file `path`, and return the path.

    A column is a table, a line a sample, a cell a key or the list of a sample's keys. Batches follow
    each other, the ranks of a batch too. `recscale keys` reads the file, and so do recorded keys of a
    scenario. Raises InputError below one batch or rank, and when the file cannot be written.
    """
    from pyarrow import parquet

    if batches < 1 or ranks < 1:
        raise InputError(f"a log needs at least one batch and one rank, not {batches} and {ranks}")
    parts = (_batch(trace, rank, batch) for batch in range(batches) for rank in range(ranks))
    first = next(parts)
    try:
        with parquet.ParquetWriter(path, first.schema) as file:
            file.write_table(first)
            for part in parts:
                file.write_table(part)
    except OSError as error:
        raise InputError(f'cannot write "{path}": {error.strerror or error}') from error
    return Path(path)


def _batch(trace: SyntheticTrace, rank: int, batch: int) -> Any:
    import pyarrow

    return pyarrow.table({table.name: _column(trace.keys(table.name, rank, batch)) for table in trace.tables})


def _column(keys: IntArray) -> Any:
    """Return the keys, shape (samples, pooling), as single values or as lists of equal length."""
    import pyarrow

    values = pyarrow.array(keys.ravel())
    return values if keys.shape[1] == 1 else pyarrow.FixedSizeListArray.from_arrays(values, keys.shape[1])
