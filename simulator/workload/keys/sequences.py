"""Event logs (user, item, time) as samples: one user's history is one sample."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.errors import InputError
from simulator.quantities import IntArray
from simulator.workload.keys.counting import TableChunk
from simulator.workload.keys.key_columns import key_chunk
from simulator.workload.keys.reading import BrokenCounter
from simulator.workload.keys.vocabulary import Vocabulary

SAMPLES_PER_CHUNK = 1 << 14


@dataclass(frozen=True)
class SequenceColumns:
    """The columns of an event log. Without `time` the order of the file is the order of events.

    `longest` keeps the latest events of a longer history, as models with a bounded sequence do.
    Raises InputError when `longest` is below 1.
    """

    user: str
    item: str
    time: str | None = None
    longest: int | None = None

    def __post_init__(self) -> None:
        """Refuse an impossible length."""
        if self.longest is not None and self.longest < 1:
            raise InputError(f"the longest history must be at least 1 event, not {self.longest}")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns to read, each once."""
        wanted = (self.user, self.item) if self.time is None else (self.user, self.item, self.time)
        return tuple(dict.fromkeys(wanted))


@dataclass(frozen=True, eq=False)
class _Events:
    """Arrays of shape (events,): codes of users and items, and times that sort."""

    users: IntArray
    items: IntArray
    times: NDArray[np.float64]


def histories(
    batches: Iterable[Any], columns: SequenceColumns, broken: BrokenCounter, items: Vocabulary
) -> Iterator[tuple[int, TableChunk]]:
    """Yield (end, chunk) of samples: users in the order of their last event, events in time order.

    Events without a user, an item or a readable time are counted as broken lines.
    """
    users = Vocabulary()
    parts = [_events(batch, columns, (users, items), broken) for batch in batches]
    if not parts:
        return
    events = _Events(
        np.concatenate([part.users for part in parts]),
        np.concatenate([part.items for part in parts]),
        np.concatenate([part.times for part in parts]),
    )
    yield from _chunks(*_samples(events, columns.longest))


def _events(
    batch: Any, columns: SequenceColumns, words: tuple[Vocabulary, Vocabulary], broken: BrokenCounter
) -> _Events:
    """Return the complete events of one record batch."""
    users = key_chunk(batch.column(columns.user), None, 0, words[0])
    items = key_chunk(batch.column(columns.item), None, 0, words[1])
    times = _times(batch.column(columns.time)) if columns.time else np.zeros(batch.num_rows)
    cells = np.intersect1d(users.samples, items.samples)
    cells = cells[~np.isnan(times[cells])]
    if len(cells) < batch.num_rows:
        broken.add("an event lacks its user, its item or a readable time", batch.num_rows - len(cells))
    user_at, item_at = np.searchsorted(users.samples, cells), np.searchsorted(items.samples, cells)
    return _Events(users.codes[user_at], items.codes[item_at], times[cells])


def _times(column: Any) -> NDArray[np.float64]:
    """Return times as numbers: as written, or the seconds of ISO dates; NaN where unreadable."""
    import pandas

    values = column.to_pylist()
    text = [value.decode("latin-1") if isinstance(value, bytes) else value for value in values]
    numbers = pandas.to_numeric(pandas.Series(text, dtype=object), errors="coerce").to_numpy(np.float64)
    if len(numbers) == 0 or not np.isnan(numbers).all():
        return np.asarray(numbers)
    dates = pandas.to_datetime(pandas.Series(text), errors="coerce", utc=True, format="ISO8601")
    return np.asarray((dates - pandas.Timestamp(0, tz="UTC")).dt.total_seconds(), dtype=np.float64)


def _samples(events: _Events, longest: int | None) -> tuple[IntArray, IntArray]:
    """Return (codes, samples) sorted by sample and time, the latest `longest` of each."""
    order = np.lexsort((events.times, events.users))
    users, items = events.users[order], events.items[order]
    starts = np.flatnonzero(np.diff(users, prepend=-1))
    lengths = np.diff(np.append(starts, len(users)))
    last = events.times[order][starts + lengths - 1]
    place = np.empty(len(starts), dtype=np.int64)
    place[np.argsort(last, kind="stable")] = np.arange(len(starts))
    samples = np.repeat(place, lengths)
    from_end = np.repeat(starts + lengths, lengths) - np.arange(len(users))
    kept = from_end <= (longest or len(users))
    by_sample = np.argsort(samples[kept], kind="stable")
    return items[kept][by_sample], samples[kept][by_sample]


def _chunks(codes: IntArray, samples: IntArray) -> Iterator[tuple[int, TableChunk]]:
    """Cut the samples into chunks of bounded size."""
    total = int(samples[-1]) + 1 if len(samples) else 0
    for start in range(0, total, SAMPLES_PER_CHUNK):
        end = min(start + SAMPLES_PER_CHUNK, total)
        low, high = np.searchsorted(samples, (start, end))
        yield end, TableChunk(codes[low:high], samples[low:high])
