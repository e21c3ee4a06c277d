"""Opening key logs of any format: the contents decide which it is, not the name."""

from pathlib import Path

from simulator.errors import InputError, Where, did_you_mean, regular_file
from simulator.workload.keys.arrays import ZIP, open_zip
from simulator.workload.keys.columnar import is_columnar, open_columnar
from simulator.workload.keys.reading import KeyFile, readable
from simulator.workload.keys.recognition import TextFormat, layout_of
from simulator.workload.keys.text import codec_of, open_text, opened

PICKLE = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")  # by protocol
SNIFFED_BYTES = 1 << 16
MOST_COLUMNS = 10_000  # that are counted without being asked for
# control characters that no text file holds; tab, line ends, form feed and escape are allowed
NOT_TEXT = bytes(c for c in range(32) if c not in b"\t\n\r\f\x1b")


def open_log(path: Path, said: TextFormat) -> KeyFile:
    """Return the file, with its columns or tables known.

    Raises InputError for a missing, empty, binary or damaged file, and for one that must be unpacked.
    """
    start = _sniffed(path)
    if codec_of(path) is None and start.startswith(ZIP):
        return open_zip(path)
    if is_columnar(start):
        return open_columnar(path, start)
    return open_text(path, layout_of(start, path, said))


def _sniffed(path: Path) -> bytes:
    """Return the first bytes, decompressed; refuse what cannot be a log."""
    where = Where(str(path))
    if path.is_dir():
        raise InputError("is a directory, not a key log", where)
    if not path.exists():
        raise InputError("there is no such file", where)
    with readable(path), opened(regular_file(path)) as file:
        start = bytes(file.read(SNIFFED_BYTES))
    if not start.strip():
        raise InputError("the file is empty", where)
    _refuse_binary(start, path)
    return start


def _refuse_binary(start: bytes, path: Path) -> None:
    binary = start.startswith(ZIP) or is_columnar(start)
    if binary and codec_of(path) is not None:
        problem = f"its contents cannot be read inside {codec_of(path)}: unpack it first"
        raise InputError(problem, Where(str(path)))
    if start.startswith(PICKLE):
        problem = (
            "is a pickle, or a PyTorch file from before version 1.6: load it where you trust it, save it anew"
        )
        raise InputError(problem, Where(str(path)))
    if not binary and start.translate(None, NOT_TEXT) != start:
        problem = "the file is binary: none of CSV, TSV, Parquet, Arrow, .npz and .pt"
        raise InputError(problem, Where(str(path)))


def chosen(wanted: tuple[str, ...] | None, names: tuple[str, ...], path: Path) -> tuple[str, ...]:
    """Return `wanted`, or all of the file's `names`.

    Raises InputError for one that it does not have, and for all of very many.
    """
    for column in wanted or ():
        if column not in names:
            raise InputError(f'there is no column "{column}"{did_you_mean(column, names)}', Where(str(path)))
    if wanted is None and len(names) > MOST_COLUMNS:
        problem = f"has {len(names)} columns, more than {MOST_COLUMNS}: name those that hold keys"
        raise InputError(problem, Where(str(path)))
    return names if wanted is None else tuple(dict.fromkeys(wanted))
