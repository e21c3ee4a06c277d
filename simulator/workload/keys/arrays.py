"""Reading bags of keys: `indices` with `offsets`, from NumPy's .npz and PyTorch's .pt files.

The keys of all samples of the first table come first, then those of the second, and so on; entry
`t * samples + s` of `offsets` is where the keys of sample s in table t begin. That is how
embedding-bag operators take them, and how Meta's dlrm_datasets are laid out (indices, offsets, and
lengths of shape (tables, samples)).
"""

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from simulator.errors import InputError, Where
from simulator.quantities import IntArray
from simulator.workload.keys.reading import BagFile, BagPart, Progress, readable

NAMES = ("indices", "offsets", "lengths")  # in the order of Meta's files
ZIP = b"PK\x03\x04"
SAMPLES_PER_PART = 1 << 14


class Numbers(Protocol):
    """A one-dimensional array that is read from front to back."""

    shape: tuple[int, ...]

    def read(self, count: int) -> IntArray:
        """Return the next `count` numbers, fewer at the end."""


class _Member:
    """An array inside an .npz file, compressed or not, read as a stream and never unpickled."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        first = np.lib.format.read_magic(file) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        header: tuple[tuple[int, ...], bool, np.dtype[Any]] = read(file)
        self.shape, _, self._dtype = header
        if self._dtype.kind not in "iu":
            raise InputError(f"keys and offsets must be whole numbers, not {self._dtype}")

    def read(self, count: int) -> IntArray:
        data = self._file.read(count * self._dtype.itemsize)
        return np.frombuffer(data, self._dtype).astype(np.int64)


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
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    except zipfile.BadZipFile:
        raise InputError("the file is cut off or damaged", Where(str(path))) from None
    torch = any(name.endswith("data.pkl") for name in members)
    names = _tables(_torch(path) if torch else _numpy(path), path)

    def stream(tables: tuple[str, ...], progress: Progress) -> Iterator[BagPart]:
        with readable(path):
            parts = _parts(_torch(path) if torch else _numpy(path), names, progress)
            yield from (part for part in parts if part.table in tables)

    return BagFile(names, stream)


def _numpy(path: Path) -> dict[str, Numbers]:
    archive = zipfile.ZipFile(path)
    wanted = [name for name in NAMES if f"{name}.npy" in archive.namelist()]
    try:
        return {name: _Member(archive.open(f"{name}.npy")) for name in wanted}
    except (ValueError, InputError) as error:
        raise InputError(str(error).splitlines()[0], Where(str(path))) from None


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
    indices.read(done)
    for table in names:
        for start in range(0, samples, SAMPLES_PER_PART):
            ends = offsets.read(min(SAMPLES_PER_PART, samples - start))
            lengths = np.diff(_closed(ends, min(SAMPLES_PER_PART, samples - start), total), prepend=done)
            yield BagPart(table, start, lengths, _keys(indices, lengths, table))
            done += int(lengths.sum())
            progress(done, total)
    if done < total:
        last = np.array([total - done])
        yield BagPart(names[-1], samples, last, _keys(indices, last, names[-1]))


def _closed(ends: IntArray, wanted: int, total: int) -> IntArray:
    """Return the ends of the samples; the very last one may be left to the number of keys."""
    return ends if len(ends) == wanted else np.append(ends, total)


def _keys(indices: Numbers, lengths: IntArray, table: str) -> IntArray:
    wanted = int(lengths.sum())
    keys = indices.read(wanted) if lengths.min() >= 0 else lengths[:0]
    if len(keys) != wanted:
        raise InputError(f'the offsets of "{table}" fall, or point beyond the keys')
    return keys
