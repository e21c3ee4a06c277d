"""The scenarios that travel with the distribution."""

from collections.abc import Iterator
from pathlib import Path

from simulator.errors import InputError, Where
from simulator.scenario.shipped_files import shipped_folder


def shipped_files() -> list[Path]:
    """Return the paths of all shipped files, relative to their folder, in order."""
    home = shipped_folder()
    return sorted(path.relative_to(home) for path in home.rglob("*") if path.is_file())


def copy_out(folder: Path, force: bool = False) -> Iterator[str]:
    """Copy every shipped file to `folder`, and yield one line on each.

    What is there already stays as it is, unless `force`. Raises InputError when `folder` is no folder.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file; a folder is needed", Where(str(folder)))
    for name in shipped_files():
        yield _copy(shipped_folder() / name, folder / name, force)


def _copy(source: Path, target: Path, force: bool) -> str:
    from simulator.results.export import replacing

    content = source.read_bytes()
    if target.exists() and not force:
        same = target.is_file() and target.read_bytes() == content
        return f"kept   {target}" + ("" if same else "  (differs from the shipped one; --force replaces it)")
    with replacing(target) as unfinished:
        unfinished.write_bytes(content)
    return f"wrote  {target}"
