"""Reading bags of keys: `indices` with `offsets`, from NumPy's .npz and PyTorch's .pt files.

The keys of all samples of the first table come first, then those of the second, and so on; entry
`t * samples + s` of `offsets` is where the keys of sample s in table t begin. That is how
embedding-bag operators take them, and how Meta's dlrm_datasets are laid out (indices, offsets, and
lengths of shape (tables, samples)).
"""

import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, Protocol

import numpy as np

from simulator.errors import InputError, Where
from simulator.quantities import IntArray
from simulator.workload.keys.reading import BagFile, BagPart, Progress, readable

NAMES = ("indices", "offsets", "lengths")  # in the order of Meta's files
ZIP = b"PK\x03\x04"
SAMPLES_PER_PART, KEYS_PER_PART = 1 << 14, 1 << 20
MOST_KEYS_PER_SAMPLE, MOST_TABLES = 1 << 22, 1 << 20
# what NumPy's own reader of headers raises about text that is none; it parses the text as Python
HEADER_ERRORS = (ValueError, SyntaxError, TokenError, TypeError, RecursionError, MemoryError, EOFError)


class Numbers(Protocol):
    """A one-dimensional array that is read from front to back."""

    shape: tuple[int, ...]

    def read(self, count: int) -> IntArray:
        """Return the next `count` numbers, fewer at the end."""


class _Member:
    """An array inside an .npz file, compressed or not, read as a stream and never unpickled."""

    def __init__(self, name: str, file: IO[bytes], size: int) -> None:
        """Read the header of array `name`; `size` is what the archive says that `file` unpacks to.

        Raises InputError for a header that is none, and for one that the size does not fit.
        """
        self._file = file
        self.shape, self._dtype = _header(name, file)
        if self._dtype.kind not in "iu":
            raise InputError(f"keys and offsets must be whole numbers, not {self._dtype}")
        wanted = file.tell() + math.prod(self.shape) * self._dtype.itemsize
        if min(self.shape, default=0) < 0 or wanted != size:
            raise InputError(f'the header of "{name}" does not fit its contents: the file is damaged')

    def read(self, count: int) -> IntArray:
        data = self._file.read(count * self._dtype.itemsize)
        return np.frombuffer(data, self._dtype).astype(np.int64)


def _header(name: str, file: IO[bytes]) -> tuple[tuple[int, ...], "np.dtype[Any]"]:
    """Return the shape and the format that an array's header tells. Raises InputError if it is no header."""
    try:
        first = np.lib.format.read_magic(file) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    except HEADER_ERRORS:
        raise InputError(f'the header of "{name}" cannot be read: the file is damaged') from None
    return shape, dtype


class _Tensor:
    """A tensor that stays on disk until its numbers are read. Raises InputError unless they are whole."""

    def __init__(self, tensor: Any) -> None:
        try:
            whole = tensor[:0].numpy().dtype.kind in "iu"
        except Exception:  # sparse, quantized, on another device, without dimensions, or no tensor at all
            whole = False
        if not whole:
            raise InputError("keys and offsets must be plain tensors of whole numbers")
        self._tensor, self._place = tensor, 0
        self.shape = tuple(tensor.shape)

    def read(self, count: int) -> IntArray:
        part = self._tensor[self._place : self._place + count]
        self._place += len(part)
        return np.asarray(part.numpy(), dtype=np.int64)


def open_zip(path: Path) -> BagFile:
    """Return the .npz or .pt file with its tables. Raises InputError for what holds no bags of keys."""
    with _undamaged(path), zipfile.ZipFile(path) as archive:
        members = archive.namelist()
    torch = any(name.endswith("data.pkl") for name in members)
    names = _tables(_torch(path) if torch else _numpy(path), path)

    def stream(tables: tuple[str, ...], progress: Progress) -> Iterator[BagPart]:
        with readable(path), _undamaged(path):
            parts = _parts(_torch(path) if torch else _numpy(path), names, progress)
            yield from (part for part in parts if part.table in tables)

    return BagFile(names, stream)


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    """Turn what the archive's reader raises about its file, and what is wrong within, into an InputError."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, OSError, EOFError, ValueError):
        raise InputError("the file is cut off or damaged", Where(str(path))) from None
    except (NotImplementedError, RuntimeError):  # an unknown compression; a password
        raise InputError("is compressed in a way that is not read, or encrypted", Where(str(path))) from None
    except InputError as error:
        raise InputError(error.problem, Where(str(path))) from None


def _numpy(path: Path) -> dict[str, Numbers]:
    with _undamaged(path):
        archive = zipfile.ZipFile(path)
        members = {name: f"{name}.npy" for name in NAMES if f"{name}.npy" in archive.namelist()}
        return {
            name: _Member(name, archive.open(member), archive.getinfo(member).file_size)
            for name, member in members.items()
        }


def _torch(path: Path) -> dict[str, Numbers]:
    try:
        import torch
    except ImportError:
        problem = 'a PyTorch file needs the extra "torch": pip install "recscale[torch]"'
        raise InputError(problem, Where(str(path))) from None
    loaded = _loaded(path, torch)
    if isinstance(loaded, list | tuple):
        loaded = dict(zip(NAMES, loaded, strict=False))
    found = {name: loaded[name] for name in NAMES if name in loaded} if isinstance(loaded, dict) else {}
    try:
        return {name: _Tensor(tensor) for name, tensor in found.items()}
    except InputError as error:
        raise InputError(error.problem, Where(str(path))) from None


def _loaded(path: Path, torch: Any) -> Any:
    """Return what the file holds; nothing but tensors and containers is ever built from it."""
    from pickle import UnpicklingError

    try:
        return torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except UnpicklingError:
        problem = "is refused: it holds other objects than plain tensors, and they could run code"
    except Exception:  # the loader raises many kinds, all about a file that it cannot make out
        problem = "cannot be loaded as plain tensors: the file is damaged"
    raise InputError(problem, Where(str(path)))


def _tables(arrays: dict[str, Numbers], path: Path) -> tuple[str, ...]:
    """Return the names of the tables: `keys` for one, else `table_0`, `table_1`, ..."""
    if not {"indices", "offsets"} <= set(arrays):
        found = ", ".join(sorted(arrays)) or "none of them"
        raise InputError(f'needs arrays "indices" and "offsets", has {found}', Where(str(path)))
    problem = _misfit(arrays)
    if problem:
        raise InputError(problem, Where(str(path)))
    lengths = arrays.get("lengths")
    if lengths is None or len(lengths.shape) != 2 or lengths.shape[0] == 1:
        return ("keys",)
    if lengths.shape[0] > MOST_TABLES:
        raise InputError(f"has {lengths.shape[0]:,} tables, more than {MOST_TABLES:,}", Where(str(path)))
    return tuple(f"table_{place}" for place in range(lengths.shape[0]))


def _misfit(arrays: dict[str, Numbers]) -> str:
    """Return how the arrays contradict each other, empty if they do not."""
    for name in ("indices", "offsets"):
        if len(arrays[name].shape) != 1:
            return f'"{name}" must have one dimension, not {len(arrays[name].shape)}'
    if "lengths" not in arrays:
        return ""
    shape, ends = arrays["lengths"].shape, arrays["offsets"].shape[0]
    if len(shape) not in (1, 2):
        return f'"lengths" must have one or two dimensions, not {len(shape)}'
    bags = math.prod(shape)
    fits = ends in (bags, bags + 1)
    return "" if fits else f'"lengths" speaks of {bags} bags of keys, and "offsets" of {max(ends - 1, 0)}'


def _samples(arrays: dict[str, Numbers], tables: int) -> int:
    """Return the samples per table that offsets are known to close."""
    lengths = arrays.get("lengths")
    if lengths is not None:
        return lengths.shape[-1]
    return max(arrays["offsets"].shape[0] - 1, 0) // tables


def _parts(arrays: dict[str, Numbers], names: tuple[str, ...], progress: Progress) -> Iterator[BagPart]:
    """Yield the file's samples; keys behind the last offset are one more sample of the last table."""
    offsets, indices = arrays["offsets"], arrays["indices"]
    done, total, samples = int(offsets.read(1).sum()), indices.shape[0], _samples(arrays, len(names))
    _pass_over(indices, done)
    for table in names:
        for start in range(0, samples, SAMPLES_PER_PART):
            ends = offsets.read(min(SAMPLES_PER_PART, samples - start))
            lengths = np.diff(_closed(ends, min(SAMPLES_PER_PART, samples - start), total), prepend=done)
            yield from _read(indices, table, start, lengths)
            done += int(lengths.sum())
            progress(done, total)
    if done < total:
        yield from _read(indices, names[-1], samples, np.array([total - done]))


def _pass_over(indices: Numbers, count: int) -> None:
    """Leave out the keys before the first offset, piece by piece."""
    for start in range(0, count, KEYS_PER_PART):
        indices.read(min(KEYS_PER_PART, count - start))


def _closed(ends: IntArray, wanted: int, total: int) -> IntArray:
    """Return the ends of the samples; the very last one may be left to the number of keys."""
    return ends if len(ends) == wanted else np.append(ends, total)


def _read(indices: Numbers, table: str, start: int, lengths: IntArray) -> Iterator[BagPart]:
    """Yield samples of `lengths` keys, in parts small enough to be held."""
    if lengths.min() < 0:
        raise InputError(f'the offsets of "{table}" fall, or point beyond the keys')
    if lengths.max() > MOST_KEYS_PER_SAMPLE:
        problem = f'a sample of "{table}" has {lengths.max():,} keys, more than {MOST_KEYS_PER_SAMPLE:,}'
        raise InputError(problem)
    parts = np.cumsum(lengths) // KEYS_PER_PART
    for part in np.split(lengths, np.flatnonzero(np.diff(parts)) + 1):
        yield BagPart(table, start, part, _keys(indices, part, table))
        start += len(part)


def _keys(indices: Numbers, lengths: IntArray, table: str) -> IntArray:
    wanted = int(lengths.sum())
    keys = indices.read(wanted)
    if len(keys) != wanted:
        raise InputError(f'the offsets of "{table}" fall, or point beyond the keys')
    return keys
