"""A profiled DLRM step predicted from the shapes in its execution traces."""

import json
from pathlib import Path

import pytest

from analysis.trace_steps import TracedStep, per_launch, read_shapes
from simulator.calibration.imports.kineto import Traces, read_traces
from simulator.errors import InputError
from simulator.scenario import run_scenario


@pytest.fixture(scope="session")
def step(measured_data: Path) -> tuple[TracedStep, Traces]:
    """The shapes and the profile of one step on eight V100."""
    folder = measured_data / "traces" / "param" / "dlrm_8xV100"
    shapes = TracedStep.of(str(path) for path in sorted((folder / "et").glob("*.gz")))
    return shapes, read_traces([str(path) for path in sorted((folder / "kineto").glob("*.gz"))])


def test_the_shapes_are_those_of_the_model(step: tuple[TracedStep, Traces]) -> None:
    scenario = step[0].scenario(50e-6, "v100")
    model = scenario.spec.workload.model.model_dump()
    assert (model["bottom"], model["top"]) == ((256, 128, 16), (512, 512, 256, 1))
    assert (model["dense_features"], model["embedding_features"], model["dimension"]) == (13, 26, 16)
    assert (scenario.workload.batch, scenario.cluster.ranks) == (16, 8)


def test_launches_counted_from_operators_are_near_those_that_ran(step: tuple[TracedStep, Traces]) -> None:
    ran = sorted(rank.table.steps[0].launches for rank in step[1].ranks)
    counted = step[0].ranks[0].launches
    assert abs(counted / ran[len(ran) // 2] - 1) < 0.1


def test_the_step_is_predicted_from_shapes_and_the_launches_of_another_job(
    step: tuple[TracedStep, Traces], measured_data: Path
) -> None:
    """The host's time per launch is that of an A100 job with another model; nothing of this step is used.

    The ranks began to record at different moments and wait for the last in the first exchange. The one
    that came last waits for nobody: its step is the job's, the mean over ranks holds the others' waiting.
    """
    other = read_traces([str(measured_data / "traces" / "hta" / "trace_diff_control_control.json.gz")])
    predicted = run_scenario(step[0].scenario(per_launch(other), "v100")).report.step_ms["mean"]
    steps = [rank.table.steps[0] for rank in step[1].ranks]
    last = min(steps, key=lambda one: one.exposed)
    assert last.step == min(one.step for one in steps)
    assert predicted == pytest.approx(last.step, rel=0.1)
    assert predicted == pytest.approx(sum(one.step for one in steps) / len(steps), rel=0.25)


def test_two_jobs_agree_on_the_time_per_launch(measured_data: Path) -> None:
    folder = measured_data / "traces" / "hta"
    found = [
        per_launch(read_traces([str(folder / f"trace_diff_{name}.json.gz")]))
        for name in ("control_control", "test_test")
    ]
    assert found[0] == pytest.approx(found[1], rel=0.05)
    assert all(40e-6 < one < 60e-6 for one in found)


def test_an_execution_trace_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "et.json"
    path.write_text(json.dumps({"schema": "1.0.1", "nodes": [{"id": 1, "name": "aten::add", "parent": 0}]}))
    with pytest.raises(InputError, match="no layers and lookups of a DLRM"):
        read_shapes(str(path))
