"""From words to an exit code: the one place where errors are printed.

Exit codes: 0 done, 1 the answer is no, 2 the input is wrong, 70 a defect of ours, 130 interrupted,
141 nobody reads the output any more, 143 terminated.
"""

import contextlib
import os
import re
import sys
import threading
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NoReturn

from analysis.cli import ending
from simulator.errors import RecscaleError, brief

WRONG_INPUT, DEFECT, INTERRUPTED, NO_READER = 2, 70, 130, 141

_saying = threading.Lock()


def main(words: Sequence[str] | None = None) -> NoReturn:
    """Run the command line on `words` (default: those of the process) and leave with its exit code."""
    _never_closed()
    with ending.on_signals(_say_once):
        code = run(sys.argv[1:] if words is None else words)
    if ending.caught() is not None:
        ending.leave(code)
    if code == NO_READER:  # Python would flush into the closed pipe once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(words: Sequence[str]) -> int:
    """Run the command line on `words`; return the exit code, and print any error as one line."""
    _never_fail_on_letters()
    try:
        problem, code = _outcome(words)
    except KeyboardInterrupt:  # while another error was being put into words
        problem, code = "", INTERRUPTED
    if ending.caught() is not None or code == INTERRUPTED:  # whatever else it led to
        return _say_once(ending.caught())
    return _say(problem, code) if problem else code


def _outcome(words: Sequence[str]) -> tuple[str, int]:
    """Run the command line; return what is to be said of how it ended, and the exit code."""
    try:
        code = _invoke(words)
        sys.stdout.flush()
        return "", code
    except BrokenPipeError:
        return "", NO_READER
    except KeyboardInterrupt:
        return "", INTERRUPTED
    except RecscaleError as error:
        return str(error), error.exit_code
    except OSError as error:
        return _file_trouble(error), WRONG_INPUT
    except MemoryError:
        return "not enough memory for a run of this size; take fewer batches or workers", 1
    except Exception as error:
        return _unexpected(error)


def _refuse_empty(words: Sequence[str]) -> None:
    """Refuse an argument without text: as a path it would be the folder here, as a list all there is."""
    from simulator.errors import InputError

    for before, word in pairwise(("", *words)):
        name, equals, value = word.partition("=")
        if word == "":
            what = before if before.startswith("-") else "an argument"
            raise InputError(f"{what}: the value is empty")
        if name.startswith("--") and equals and value == "":
            raise InputError(f"{name}: the value is empty")


def _invoke(words: Sequence[str]) -> int:
    from analysis.cli.app import app

    _refuse_empty(words)
    try:
        code = app(list(words), prog_name="recscale", standalone_mode=False)
    except SystemExit as left:  # typer leaves like this when it meets a closed pipe
        if isinstance(left.__context__, BrokenPipeError):
            raise left.__context__ from None
        raise
    if code == INTERRUPTED:  # newer versions of typer turn the interrupt into this code
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _unexpected(error: Exception) -> tuple[str, int]:
    """Tell a wrong command line from an interrupt inside typer, and both from a defect of ours."""
    usage: Any = getattr(error, "format_message", None)
    if usage is not None:
        return f"{brief(_usage(usage()))}{_help_for(error)}", WRONG_INPUT
    if isinstance(error.__cause__, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return "", INTERRUPTED
    if os.environ.get("RECSCALE_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    what = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return f"a defect, please report it with what RECSCALE_DEBUG=1 adds: {what}", DEFECT


def _usage(message: str) -> str:
    plain = " ".join(message.replace("Value error, ", "").split())
    plain = re.sub(r"Input should be a valid (integer|number).*", _number, plain)
    return plain[:1].lower() + plain[1:].rstrip(".")


def _number(said: re.Match[str]) -> str:
    return "a whole number is needed, in digits" if said[1] == "integer" else "a number is needed"


def _help_for(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f" (see {context.command_path} --help)" if context is not None else ""


def _file_trouble(error: OSError) -> str:
    from simulator.errors import printable

    reason = (error.strerror or str(error)).lower()
    return f"{printable(str(error.filename))}: {reason}" if error.filename is not None else reason


def _say(problem: str, code: int) -> int:
    from simulator.errors import printable

    with contextlib.suppress(BrokenPipeError):
        print(f"recscale: {printable(problem)}", file=sys.stderr, flush=True)
    return code


def _say_once(number: int | None) -> int:
    """Say that a signal (or an interrupt without one) ended the command; once, whoever notices it first."""
    code = INTERRUPTED if number is None else 128 + number
    return _say(ending.word(number), code) if number is None or _saying.acquire(blocking=False) else code


def _never_closed() -> None:
    """Give a process without standard output a pipe that nobody reads, and without errors a bin for them.

    Descriptor 1 is taken as well: a result file that got it would receive what libraries print.
    """
    if sys.stdout is None:
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def _never_fail_on_letters() -> None:
    """A letter that the terminal cannot show is escaped instead of ending the run."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
