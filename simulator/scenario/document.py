"""A document: plain data from outside, and where each part of it was written."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.errors import Where, printable
from simulator.units import shown

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """Plain data (mappings, lists, text, numbers, true/false, nothing) with its places.

    `lines[path]` is the line (from 1) of the key or list item at `path`; `origin[path]` names what
    replaced or added the part at `path` (`--set`), which then has no line.
    """

    data: dict[str, Any]
    lines: Mapping[KeyPath, int]
    file: str
    origin: Mapping[KeyPath, str] = field(default_factory=dict)

    def where(self, path: KeyPath) -> Where:
        """Return the place of `path`, or of its nearest ancestor that was written somewhere."""
        for length in range(len(path), -1, -1):
            part = path[:length]
            if part in self.origin:
                return Where(self.origin[part], None, dotted(path))
            if part in self.lines:
                return Where(printable(self.file), self.lines[part], dotted(path))
        return Where(printable(self.file), None, dotted(path))

    def blamed(self, part: KeyPath, problem: str) -> Where:
        """Return the place of `problem` with `part`: that of a setting that it speaks of, or of the part.

        A setting is spoken of by its value or by its key.
        """
        below = [path for path in self.origin if path[: len(part)] == part]
        spoken = [path for path in below if self._is_named(path, problem)]
        return self.where(max(spoken, key=len, default=part))

    def _is_named(self, path: KeyPath, problem: str) -> bool:
        value: Any = self.data
        try:
            for step in path:
                value = value[step]
        except (LookupError, TypeError):  # a later setting has replaced what holds it
            return False
        words = [str(word) for word in (path[-1], value) if isinstance(word, str | int | float)]
        return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", problem) for word in words)


def dotted(path: KeyPath) -> str | None:
    """Return a path as people write it, `workload.tables[0].rows`, or None for the whole document."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{_key(step)}" for step in path)
    return steps.removeprefix(".") or None


def _key(step: str) -> str:
    return step if re.fullmatch(r"[\w-]{1,60}", step) else shown(step)
