"""Files that a scenario names: in its own folder or below, nowhere else."""

from pathlib import Path

from simulator.errors import InputError


def inside(folder: Path, name: str) -> Path:
    """Return the file `name` in `folder`. Raises InputError when it lies outside, links followed."""
    try:
        path = (folder / name).resolve()
    except (OSError, RuntimeError, ValueError):  # links that lead to each other, names that no system takes
        raise InputError(f'"{name}" cannot be followed to a file') from None
    if not path.is_relative_to(folder.resolve()):
        raise InputError(f'"{name}" lies outside the folder of the scenario file')
    return path
