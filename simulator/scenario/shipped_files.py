"""Where the scenarios that come with recscale are."""

from importlib.resources import files
from pathlib import Path


def shipped_folder() -> Path:
    """Return the folder of shipped scenarios: beside this module when installed, else the checkout's."""
    room = Path(str(files("simulator.scenario")))
    installed = room / "shipped"
    return installed if installed.is_dir() else room.parents[1] / "scenarios"


def scenarios_in(folder: Path) -> list[Path]:
    """Return the scenarios below `folder`, in order.

    Grids of sweeps and planning questions have a second suffix (`x.grid.yaml`, `x.plan.yaml`).
    """
    return sorted(path for path in folder.rglob("*.yaml") if "." not in path.stem)
