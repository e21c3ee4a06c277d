"""Sharding plans of TorchRec from and to files."""

from pathlib import Path

from simulator.errors import InputError, Where, regular_file
from simulator.sharding.placement.torchrec.plan import TorchRecPlan
from simulator.sharding.placement.torchrec.printed import from_printed, is_printed, to_printed
from simulator.sharding.placement.torchrec.serialized import from_json, to_json
from simulator.sharding.placement.torchrec.statistics import from_statistics, is_statistics

MOST_BYTES = 64_000_000


def read_torchrec_plan(path: str | Path) -> TorchRecPlan:
    """Return the plan in a file: JSON, as printed by TorchRec, or in the log of its planner.

    The form is told from the content. Raises InputError (one line, with file, and line or path) for an
    unreadable file, and for one that holds no plan.
    """
    path = Path(path)
    try:
        with regular_file(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InputError(f"is larger than {MOST_BYTES // 10**6} MB", Where(str(path)))
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError(f"cannot be read: {reason}", Where(str(path))) from None
    try:
        return parsed(text)
    except InputError as error:
        where = Where(str(path), error.where.line, error.where.path)
        raise InputError(error.problem, where) from None


def parsed(text: str) -> TorchRecPlan:
    """Return the plan in `text`. Raises InputError as `read_torchrec_plan`, without the file."""
    if text.lstrip().startswith(("{", "[")):
        return from_json(text)
    if is_printed(text):
        return from_printed(text)
    if is_statistics(text):
        return from_statistics(text)
    raise InputError("no TorchRec sharding plan: neither JSON, nor printed by a plan or a planner")


def write_torchrec_plan(plan: TorchRecPlan, path: str | Path) -> None:
    """Write the plan: JSON for a name that ends in .json, else as TorchRec prints it.

    Raises InputError when the file cannot be written.
    """
    path = Path(path)
    text = to_json(plan) if path.suffix == ".json" else to_printed(plan)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", Where(str(path))) from None
