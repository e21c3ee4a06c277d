"""From a key log's file to its statistics."""

from pathlib import Path

from simulator.errors import InputError, Where
from simulator.units import shown
from simulator.workload.keys.key_log import KeyLog, LogOptions, read_key_log
from simulator.workload.keys.reading import Progress, unwatched
from simulator.workload.keys.statistics import LogStatistics
from simulator.workload.keys.table_counter import TableCounter

DEFAULT_OWNERS = 8
LARGEST_BATCH = 2**31 - 1


def summarize(
    path: str | Path,
    batch: int,
    options: LogOptions | None = None,
    owners: int = DEFAULT_OWNERS,
    progress: Progress = unwatched,
) -> LogStatistics:
    """Return the statistics of the log at `path` for batches of `batch` samples, in one pass.

    Memory: about 40 bytes per distinct key, and 0.3 GB. `owners` is the number of owners of rows
    whose load is measured; `progress(done, total)` is called as the file is read. Raises InputError for an
    unreadable file (see `read_key_log`), a log without samples or keys or shorter than one batch,
    for `batch` or `owners` below 1, and for a `batch` beyond `LARGEST_BATCH`.
    """
    if batch < 1 or owners < 1:
        raise InputError(f"batch and owners must be at least 1, not {batch} and {owners}")
    if batch > LARGEST_BATCH:
        raise InputError(f"a batch holds at most {LARGEST_BATCH} samples, not {shown(batch)}")
    log = read_key_log(path, options)
    counters = {table: TableCounter(table, batch, owners) for table in log.tables}
    samples = _count(log, counters, progress)
    _refuse_short(log, counters, samples, batch)
    # taken out one by one, so that what was counted makes room for what is computed
    tables = tuple(counters.pop(name).finish(log.words.pop(name).places()) for name in log.tables)
    return LogStatistics(str(path), samples, batch, log.broken, tables)


def _count(log: KeyLog, counters: dict[str, TableCounter], progress: Progress) -> int:
    """Count the whole log; return its samples."""
    samples = 0
    for chunk in log.chunks(progress):
        samples = max(samples, chunk.end)
        for table, keys in chunk.tables.items():
            counters[table].add(keys, chunk.end)
    return samples


def _refuse_short(log: KeyLog, counters: dict[str, TableCounter], samples: int, batch: int) -> None:
    where, broken = Where(str(log.path)), log.broken
    if samples == 0:
        first = f" ({broken.count} broken lines, the first: {broken.first})" if broken.count else ""
        raise InputError(f"the log holds no samples{first}", where)
    if samples < batch:
        raise InputError(f"the log's {samples} samples are less than one batch of {batch}", where)
    empty = next((name for name, counter in counters.items() if not counter.distinct), None)
    if empty is not None:
        raise InputError(f'column "{empty}" holds no keys: leave it out of the columns', where)
