"""Overrides such as `workload.tables[0].rows=2e9`, laid over a document."""

import re
from collections.abc import Iterable
from copy import deepcopy
from itertools import pairwise
from typing import Any

from simulator.errors import InputError, Where
from simulator.scenario.document import Document, KeyPath, dotted
from simulator.scenario.yaml_guard import MAX_DEPTH, YamlTextError, load
from simulator.units import shown

_SEGMENT = re.compile(r"([^\s.\[\]=]{1,200})((?:\[[0-9]{1,6}\])*)")
_MAX_VALUE = 65_536


def apply_overrides(document: Document, assignments: Iterable[str], source: str = "--set") -> Document:
    """Return a copy of `document` with each `path=value` applied in turn.

    Values are read as YAML by the rules for files. Keys that do not exist yet are made (validation
    judges them later, and `origin` lets it name `source`); a list keeps its length. Raises InputError.
    """
    result = Document(deepcopy(document.data), dict(document.lines), document.file, dict(document.origin))
    for assignment in assignments:
        result = _apply(result, assignment, source)
    return result


def _apply(document: Document, assignment: str, source: str) -> Document:
    path, text = _split(assignment, source)
    place = Where(source, None, dotted(path))
    value = _value(text, place)
    _store(_parent(document.data, path, place), path, value, place)
    lines = {old: line for old, line in document.lines.items() if old[: len(path)] != path}
    made = {path[:n]: source for n in range(1, len(path) + 1) if path[:n] not in lines}
    return Document(document.data, lines, document.file, {**document.origin, **made})


def path_of(text: str) -> KeyPath:
    """Return the steps of a path such as `workload.tables[0].rows`; none for what is no path."""
    matches = [_SEGMENT.fullmatch(part) for part in text.strip().split(".")]
    steps = tuple(step for match in matches if match for step in (match[1], *_indices(match[2])))
    return () if None in matches else steps


def _split(assignment: str, source: str) -> tuple[KeyPath, str]:
    left, equals, text = assignment.partition("=")
    steps = path_of(left)
    if not equals or not steps:
        raise InputError(f'{shown(assignment)} is not of the form "path.to.key=value"', Where(source))
    if len(steps) > MAX_DEPTH:
        raise InputError(f"a path of {len(steps)} steps is too long", Where(source))
    return steps, text


def _indices(brackets: str) -> list[int]:
    return [int(index) for index in re.findall("[0-9]+", brackets)]


def _value(text: str, place: Where) -> Any:
    if len(text) > _MAX_VALUE:
        raise InputError(f"a value of {len(text)} characters is too long", place)
    try:
        return load(text)[0]
    except YamlTextError as problem:
        raise InputError(f"the value {shown(text)}: {problem.problem}", place) from None


def _parent(data: Any, path: KeyPath, place: Where) -> Any:
    """Walk to the container of the last step, making the mappings that are missing on the way."""
    here = data
    for done, (step, following) in enumerate(pairwise(path)):
        _check_step(here, step, path[:done], place)
        if isinstance(here, dict) and here.get(str(step)) is None:
            here[str(step)] = [] if isinstance(following, int) else {}
        here = here[step]
    return here


def _store(container: Any, path: KeyPath, value: Any, place: Where) -> None:
    _check_step(container, path[-1], path[:-1], place)
    container[path[-1]] = value


def _check_step(container: Any, step: str | int, at: KeyPath, place: Where) -> None:
    """Refuse a key into what is no mapping, an index into what is no list or too short."""
    name = dotted(at) or "the document"
    if isinstance(step, str) and not isinstance(container, dict):
        raise InputError(f"{name} is {shown(container)}, not a mapping", place)
    if isinstance(step, int) and not isinstance(container, list):
        raise InputError(f"{name} is {shown(container)}, not a list", place)
    if isinstance(step, int) and step >= len(container):
        count = f"{len(container)} items, counted from 0"
        raise InputError(f"{name} has {count}; there is no [{step}]", place)
