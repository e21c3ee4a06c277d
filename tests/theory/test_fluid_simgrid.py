"""The fluid solver against SimGrid: frozen results, and SimGrid itself where it is installed."""

import importlib.util
import json
import subprocess
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from simulator.engine.fluid import FlowClasses, finish_times

FOLDER = Path(__file__).resolve().parents[1] / "data" / "simgrid"
FROZEN = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))
SYSTEM_PYTHON = "/usr/bin/python3"
SMALL = [case for case in FROZEN if case["ranks"] == 16]


@cache
def maker() -> ModuleType:
    """Return the script that made the frozen results, for its matrices."""
    spec = importlib.util.spec_from_file_location("make_simgrid_results", FOLDER / "make.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def simgrid_is_installed() -> bool:
    try:
        asked = subprocess.run([SYSTEM_PYTHON, "-c", "import simgrid"], capture_output=True, timeout=60)
    except OSError:
        return False
    return asked.returncode == 0


def name_of(case: dict) -> str:
    return f"{case['ranks']} {case['skew']} {'spine' if case['spine'] else 'flat'}"


def our_finish(case: dict) -> np.ndarray:
    """Return seconds to the end of each flow of the same exchange."""
    make, ranks = maker(), case["ranks"]
    size = np.array(make.matrix(ranks, case["skew"]), dtype=float)
    source, target = np.nonzero(size)
    pods = np.array([make.pod_of(rank, ranks) for rank in range(ranks)])
    across = case["spine"] & (pods[source] != pods[target])
    spine_up = np.where(across, 2 * ranks + pods[source], -1)
    spine_down = np.where(across, 2 * ranks + make.PODS + pods[target], -1)
    paths = np.stack([source, ranks + target, spine_up, spine_down], axis=1)
    capacity = np.array([make.NIC] * (2 * ranks) + [make.pod_bandwidth(ranks)] * (2 * make.PODS))
    return finish_times(capacity, FlowClasses.over(paths, size[source, target]))


@pytest.mark.parametrize("case", FROZEN, ids=name_of)
def test_the_frozen_results_of_simgrid_are_met(case: dict) -> None:
    finish = our_finish(case)
    assert len(finish) == case["flows"]
    assert finish.max() == pytest.approx(case["makespan_s"], rel=1e-6)
    assert finish.mean() == pytest.approx(case["mean_finish_s"], rel=1e-6)


@pytest.mark.parametrize("case", SMALL, ids=name_of)
def test_simgrid_still_gives_its_frozen_results(case: dict) -> None:
    if not simgrid_is_installed():
        pytest.skip("no SimGrid here: apt install python3-simgrid")
    words = [str(case["ranks"]), case["skew"], "spine" if case["spine"] else "no-spine"]
    run = [SYSTEM_PYTHON, str(FOLDER / "make.py"), *words]
    told = json.loads(subprocess.run(run, capture_output=True, text=True, timeout=120, check=True).stdout)
    assert told["makespan_s"] == pytest.approx(case["makespan_s"], rel=1e-9)
    assert our_finish(case).max() == pytest.approx(told["makespan_s"], rel=1e-6)


def test_the_frozen_results_cover_every_case_of_the_script() -> None:
    told = [(case["ranks"], case["skew"], case["spine"]) for case in FROZEN]
    assert told == [tuple(case) for case in maker().CASES]
    assert {case["seed"] for case in FROZEN} == {maker().SEED}
