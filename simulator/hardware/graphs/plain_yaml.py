"""Read a small YAML file into plain data: no tags, no aliases, no repeated keys, bounded in size."""

from pathlib import Path
from typing import Any

import yaml

from simulator.errors import InputError, Where, printable, regular_file
from simulator.units import shown

MOST_BYTES = 4_000_000
MOST_DEPTH = 20


class Marked(dict[Any, Any]):
    """A mapping that knows the line it begins on."""

    line: int | None = None


def read(path: Path) -> Any:
    """Return the data in a file. Raises InputError naming the file and, where known, the line."""
    text = _text(path)
    try:
        _guard(text, str(path))
        return yaml.load(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        problem = printable(str(error.problem or "it cannot be read")[:160])
        raise InputError(f"not valid YAML: {problem}", Where(str(path), line)) from None
    except (yaml.YAMLError, ValueError):  # a date or number that is none, text that is binary
        raise InputError("not valid YAML; is this a text file?", Where(str(path))) from None


def _text(path: Path) -> str:
    try:
        with regular_file(path).open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise InputError(f"the file is larger than {MOST_BYTES // 10**6} MB", Where(str(path)))
        return raw.decode()
    except UnicodeDecodeError:
        raise InputError("this is no UTF-8 text file", Where(str(path))) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", Where(str(path))) from None


def _guard(text: str, file: str) -> None:
    """Look at the events as they stream by, before anything recursive sees them."""
    depth = 0
    event: Any
    for event in yaml.parse(text, Loader=_LOADER):
        where = Where(file, event.start_mark.line + 1)
        if isinstance(event, yaml.AliasEvent):
            raise InputError("aliases (*name) are not supported; write it out", where)
        tag = getattr(event, "tag", None)
        if tag not in (None, "!"):
            raise InputError(f"tag {shown(tag)} is not allowed", where)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:
            raise InputError(f"nested more than {MOST_DEPTH} levels deep", where)


def _mapping(loader: Any, node: Any) -> Marked:
    found = Marked()
    found.line = node.start_mark.line + 1
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str) or key in found:
            problem = f"key {shown(key)} is given twice" if isinstance(key, str) else "keys must be text"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
        found[key] = loader.construct_object(value_node, deep=True)
    return found


_LOADER: Any = type("FabricLoader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
_LOADER.add_constructor("tag:yaml.org,2002:map", _mapping)
