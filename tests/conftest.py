"""What every test shares: where the checkout and the measurements are, and proof of what is tested."""

import os
import signal
import sysconfig
from pathlib import Path

import pytest
from hypothesis import settings
from tiers import examples

os.environ.setdefault("MPLBACKEND", "Agg")
COSTLY_FIXTURES = (
    *("tests/published/", "tests/browser/", "tests/docs/test_notebooks.py"),
    *("tests/unit/test_cli_explain.py", "tests/unit/calibration_local/"),
)

settings.register_profile(
    "recscale", max_examples=examples(100), deadline=None, derandomize="CI" in os.environ, print_blob=True
)
settings.load_profile("recscale")


def pytest_configure() -> None:
    """Refuse to run when the wheel is to be tested and the packages come from somewhere else."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell script, where
        signal.signal(signal.SIGINT, signal.default_int_handler)  # interrupts would reach no process we start
    if "RECSCALE_TEST_WHEEL" in os.environ:
        import analysis
        import simulator

        installed = Path(sysconfig.get_path("purelib")).resolve()
        for package in (simulator, analysis):
            home = Path(str(package.__file__)).resolve()
            if not home.is_relative_to(installed):
                raise pytest.UsageError(f"the wheel is to be tested, but {package.__name__} is {home}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what shares costly fixtures: workers take tests off each other, and split files."""
    items.sort(key=lambda item: not item.nodeid.startswith(COSTLY_FIXTURES))


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The folder that holds pyproject.toml; for documents and scenarios, never for importing code."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def measured_data() -> Path:
    """The folder of real measurements named by RECSCALE_DATA; the test is skipped when it is unset."""
    named = os.environ.get("RECSCALE_DATA")
    if not named:
        pytest.skip("RECSCALE_DATA is not set: no measurements to compare with")
    folder = Path(named)
    assert folder.is_dir(), f"RECSCALE_DATA names no folder: {folder}"
    return folder
