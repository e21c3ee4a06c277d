"""What a person gets with the distribution: the command, the data files, the types, the scenarios."""

import os
import subprocess
import sys
from importlib.metadata import distribution, entry_points
from importlib.resources import files
from pathlib import Path

import pytest

in_the_wheel = pytest.mark.skipif(
    "RECSCALE_TEST_WHEEL" not in os.environ, reason="only the wheel carries the scenarios inside the package"
)


def names_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_the_command_is_the_main_of_the_command_line() -> None:
    (command,) = entry_points(group="console_scripts", name="recscale")
    assert command.value == "analysis.cli:main"


def test_the_command_starts_under_both_its_names() -> None:
    for words in ([str(Path(sys.executable).with_name("recscale"))], [sys.executable, "-m", "simulator"]):
        told = subprocess.run([*words, "--help"], capture_output=True, text=True, timeout=60, check=True)
        assert "compare" in told.stdout


def test_both_packages_say_that_they_are_typed() -> None:
    assert all(files(package).joinpath("py.typed").is_file() for package in ("simulator", "analysis"))


def test_every_catalog_file_of_the_checkout_is_installed(checkout: Path) -> None:
    written = names_below(checkout / "simulator" / "hardware" / "catalog")
    installed = names_below(Path(str(files("simulator").joinpath("hardware/catalog"))))
    assert any(name.endswith(".yaml") for name in written)
    assert {name for name in written if name.endswith(".yaml")} <= installed


@in_the_wheel
def test_every_scenario_of_the_checkout_travels_in_the_wheel(checkout: Path) -> None:
    written = names_below(checkout / "scenarios")
    assert any(name.endswith(".yaml") for name in written)
    assert names_below(Path(str(files("simulator").joinpath("scenario/shipped")))) == written


@in_the_wheel
def test_the_licence_travels_in_the_wheel() -> None:
    assert any(path.name == "LICENSE" for path in distribution("recscale").files or [])
