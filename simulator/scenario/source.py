"""Scenario files and `--set` overrides, read without trusting them, into a `Document`."""

from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import NoReturn

from simulator.errors import InputError, Where, did_you_mean, printable
from simulator.scenario.document import Document, KeyPath, dotted
from simulator.scenario.overrides import apply_overrides
from simulator.scenario.yaml_guard import YamlTextError, load
from simulator.units import shown

__all__ = ["Document", "KeyPath", "apply_overrides", "dotted", "parse_document", "read_document"]

MAX_BYTES = 4_000_000


def read_document(path: Path) -> Document:
    """Read the YAML file at `path`. Raises InputError, with the line, for whatever is wrong with it."""
    try:
        _check_regular(path)
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        linked = path.is_symlink()
        missing = "is a link to a file that is not there" if linked else f"there is no such file{_near(path)}"
        raise _problem(path, missing) from None
    except (OSError, ValueError) as error:
        raise _problem(path, f"cannot be read: {_reason(error)}") from None
    return parse_document(_decode(content, path), str(path))


def parse_document(text: str, file: str) -> Document:
    """Read YAML text whose top level is a mapping; `file` is the name used in errors. Raises InputError."""
    try:
        data, lines = load(text)
    except YamlTextError as problem:
        place = Where(printable(file), problem.line, dotted(problem.path))
        raise InputError(problem.problem, place) from None
    if not isinstance(data, dict):
        place = Where(printable(file), lines[()])
        raise InputError(f"the top level must be a mapping (key: value), not {shown(data)}", place)
    return Document(data, lines, file)


def _check_regular(path: Path) -> None:
    """Refuse what is no plain file before it is opened: a pipe or a device may never end."""
    mode = path.stat().st_mode
    if S_ISDIR(mode):
        raise _problem(path, "is a directory; a YAML file is needed")
    if not S_ISREG(mode):
        raise _problem(path, "is not a regular file")


def _problem(path: Path, problem: str) -> InputError:
    return InputError(problem, Where(printable(str(path))))


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or "the name is not valid").lower()


def _near(path: Path) -> str:
    """Name the file in the same folder that is spelled most like the missing one, if any is."""
    try:
        siblings = [other.name for other in islice(path.parent.iterdir(), 1000)]
    except OSError:
        return ""
    near = [name for name in get_close_matches(path.name, siblings) if _alike(path.name, name)][:1]
    return printable(did_you_mean(path.name, near)) if near else ""


def _alike(missing: str, name: str) -> bool:
    """Tell whether two names are close without the suffix that they may share, and not the same."""
    return name != missing and bool(get_close_matches(Path(missing).stem, [Path(name).stem]))


def _decode(content: bytes, path: Path) -> str:
    if len(content) > MAX_BYTES:
        raise _problem(path, f"is larger than {MAX_BYTES // 1_000_000} MB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _not_text(content, error.start, path)


def _not_text(content: bytes, position: int, path: Path) -> NoReturn:
    place = Where(printable(str(path)), content.count(b"\n", 0, position) + 1)
    raise InputError("is not UTF-8 text", place)
