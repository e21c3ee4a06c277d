"""The errors that people see: one line, a place, what is allowed, an exit code.

Anything a user can cause is a `RecscaleError`; the command line prints `str(error)` and leaves
with `error.exit_code`. Errors are raised here and below, and printed only by the command line.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from stat import S_ISDIR, S_ISREG

MOST_LISTED = 24
LONGEST_WORD = 80


@dataclass(frozen=True)
class Where:
    """A place in the input: file, line (from 1) and dotted path; any of them may be unknown."""

    file: str | None = None
    line: int | None = None
    path: str | None = None

    def __str__(self) -> str:
        """Return `file:line: path`, leaving out what is unknown."""
        spot = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return ": ".join(part for part in (spot, self.path) if part)


class RecscaleError(Exception):
    """The base of every error meant for the user. `exit_code` is what the command returns."""

    exit_code = 2

    def __init__(self, problem: str, where: Where | None = None) -> None:
        """Keep `problem` (one sentence, no newline) and the place it was found in."""
        self.problem = problem
        self.where = where or Where()
        place = str(self.where)
        super().__init__(brief(printable(f"{place}: {problem}" if place else problem)))


def printable(text: str) -> str:
    """Return `text` with control characters and lone surrogates escaped, so that it is one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def brief(message: str) -> str:
    """Return a message with what it repeats of somebody's endless words cut off; paths stay whole."""
    return re.sub(rf"[^\s/]{{{LONGEST_WORD + 1},}}", _cut, message)


def _cut(word: re.Match[str]) -> str:
    text = word[0]
    closing = text[len(text.rstrip("\"'):,;.")) :][-3:]
    return f"{text[: LONGEST_WORD - 3]}...{closing}"


class InputError(RecscaleError):
    """The input is wrong: a bad file, an unknown name, an impossible value (exit code 2)."""


class InfeasibleError(RecscaleError):
    """The input is well formed and the answer is no: it cannot fit, it deadlocks (exit code 1)."""

    exit_code = 1


def regular_file(path: Path) -> Path:
    """Return `path` if it is a regular file, links followed; a pipe or a device may never end.

    Raises InputError for anything else, and for what is not there.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the name is not valid"
        raise InputError(f"cannot be read: {reason}", Where(str(path))) from None
    if S_ISDIR(mode):
        raise InputError("cannot be read: Is a directory", Where(str(path)))
    if not S_ISREG(mode):
        raise InputError("is not a regular file", Where(str(path)))
    return path


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Return ` (did you mean "x"?)` for the nearest allowed name, or the allowed names, or ``.

    Case does not matter for what is near. Of many names that are not near, those that are least far.
    """
    options = sorted(allowed)
    spelled = {option.casefold(): option for option in reversed(options)}
    near = get_close_matches(name.casefold(), sorted(spelled), n=1, cutoff=0.6)
    if near:
        return f' (did you mean "{spelled[near[0]]}"?)'
    if len(options) > MOST_LISTED:
        nearest = get_close_matches(name, options, n=3, cutoff=0.0)
        return f" ({len(options)} are allowed, such as {', '.join(nearest)})"
    return f" (allowed: {', '.join(options)})" if options else ""
