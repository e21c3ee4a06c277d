"""The keys of a batch, sample by sample, and which of them several samples share."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.errors import InputError
from simulator.quantities import IntArray


@dataclass(frozen=True, eq=False)
class SampleKeys:
    """The keys that each of `count` samples looks up.

    Lookup i asks for `keys[i]` on behalf of sample `samples[i]`, from 0; both have shape (lookups,).
    Keys of different tables must differ: give each table its own range. Raises InputError when the
    shapes differ or a sample lies outside the batch.
    """

    keys: IntArray
    samples: IntArray
    count: int

    def __post_init__(self) -> None:
        """Refuse lookups that belong to no sample."""
        if self.keys.shape != self.samples.shape:
            raise InputError("every lookup needs a sample: keys and samples differ in shape")
        if len(self.samples) and not 0 <= int(self.samples.min()) <= int(self.samples.max()) < self.count:
            raise InputError(f"a sample lies outside the batch of {self.count}")

    @classmethod
    def from_matrix(cls, keys: IntArray) -> "SampleKeys":
        """Return the keys of samples that all look up equally many; `keys` is (samples, lookups)."""
        count, width = keys.shape
        return cls(keys.ravel(), np.repeat(np.arange(count, dtype=np.int64), width), count)

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """Return (key number, sample) of each key that a sample asks for, sorted, without repeats.

        Keys are numbered from 0 in ascending order. One sort of whole numbers does it all.
        """
        if not len(self.keys):
            return self.keys, self.samples
        keys = self.keys - self.keys.min()
        if int(keys.max()) >= 2**62 // self.count:
            keys = np.unique(keys, return_inverse=True)[1].astype(np.int64)
        packed = np.sort(keys * self.count + self.samples)
        packed = packed[starts(packed)]
        owners = packed // self.count
        return np.cumsum(starts(owners)) - 1, packed % self.count

    @property
    def distinct(self) -> int:
        """Return how many different keys the whole batch asks for."""
        numbers, _ = self.pairs
        return int(numbers[-1]) + 1 if len(numbers) else 0


def starts(ordered: IntArray) -> IntArray:
    """Return where a new value starts in a sorted array, as a mask of its shape."""
    mask: IntArray = np.append(True, ordered[1:] != ordered[:-1])
    return mask


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists of whole numbers laid end to end: list i is `values[starts[i] : starts[i + 1]]`."""

    starts: IntArray
    values: IntArray

    @classmethod
    def grouped(cls, owners: IntArray, values: IntArray, count: int) -> "Lists":
        """Return for each owner 0..count-1 the values that stand beside it; `owners` must be sorted."""
        return cls(np.append(0, np.cumsum(np.bincount(owners, minlength=count))), values)

    def of(self, owner: int) -> IntArray:
        """Return one owner's list."""
        return self.values[self.starts[owner] : self.starts[owner + 1]]

    def joined(self, owners: IntArray) -> IntArray:
        """Return the lists of `owners`, one behind the other."""
        first = self.starts[owners]
        lengths = self.starts[owners + 1] - first
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        return self.values[np.repeat(first - ends + lengths, lengths) + np.arange(total)]


@dataclass(frozen=True, eq=False)
class SharedKeys:
    """The keys that at least two samples ask for: `holders` of each key, and `keys` of each sample."""

    holders: Lists
    keys: Lists

    @classmethod
    def of(cls, batch: SampleKeys) -> "SharedKeys":
        """Return the index of a batch; keys of a single sample cannot be shared and are left out."""
        numbers, samples = batch.pairs
        shared = np.bincount(numbers)[numbers] > 1 if len(numbers) else numbers > 0
        numbers, samples = numbers[shared], samples[shared]
        numbers = np.cumsum(starts(numbers)) - 1 if len(numbers) else numbers
        by_sample = np.argsort(samples, kind="stable")
        count = int(numbers[-1]) + 1 if len(numbers) else 0
        holders = Lists.grouped(numbers, samples, count)
        return cls(holders, Lists.grouped(samples[by_sample], numbers[by_sample], batch.count))
