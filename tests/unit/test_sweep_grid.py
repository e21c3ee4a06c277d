"""What a grid file may say, and which points follow from it."""

import json
from pathlib import Path

import pytest

from analysis.sweep.grid import Grid, read_grid
from simulator.errors import InputError
from simulator.scenario.shipped_files import shipped_folder

BASE = (shipped_folder() / "quickstart.yaml").read_text(encoding="utf-8")


def grid_of(folder: Path, text: str) -> Grid:
    (folder / "base.yaml").write_text(BASE, encoding="utf-8")
    (folder / "grid.yaml").write_text("scenario: base.yaml\n" + text, encoding="utf-8")
    return read_grid(folder / "grid.yaml")


def settings(grid: Grid) -> list[dict[str, object]]:
    return [dict(point.settings) for point in grid.points]


def test_lists_make_every_combination_and_the_last_axis_moves_first(tmp_path: Path) -> None:
    grid = grid_of(
        tmp_path, "vary: [{path: workload.batch, values: [8, 16]}, {path: run.seed, values: [1, 2, 3]}]"
    )
    batches = [(one["workload.batch"], one["run.seed"]) for one in settings(grid)]
    assert batches == [(8, 1), (8, 2), (8, 3), (16, 1), (16, 2), (16, 3)]


def test_a_log_range_steps_by_equal_factors_and_keeps_its_unit(tmp_path: Path) -> None:
    text = "vary: [{path: a.b, range: {from: 10 GB/s, to: 1000 GB/s, points: 3, scale: log}}]"
    assert [one["a.b"] for one in settings(grid_of(tmp_path, text))] == [
        "10.0 GB/s",
        "100.0 GB/s",
        "1000.0 GB/s",
    ]


def test_a_linear_range_of_whole_numbers_is_rounded_and_repeats_nothing(tmp_path: Path) -> None:
    text = "vary: [{path: a, range: {from: 1, to: 3, points: 9, whole: true}}]"
    assert [one["a"] for one in settings(grid_of(tmp_path, text))] == [1, 2, 3]


def test_axes_together_move_in_step(tmp_path: Path) -> None:
    text = "vary: [{together: [{path: a, values: [1, 2]}, {path: b, values: [x, y]}]}]"
    assert settings(grid_of(tmp_path, text)) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


def test_a_latin_hypercube_puts_one_point_into_every_slice_of_every_axis(tmp_path: Path) -> None:
    text = """
vary: [{path: a, range: {from: 0, to: 1}}, {path: b, range: {from: 1 GB/s, to: 100 GB/s, scale: log}}]
sample: {method: latin_hypercube, points: 20, seed: 4}
"""
    points = settings(grid_of(tmp_path, text))
    slices = sorted(int(20 * float(str(one["a"]))) for one in points)
    assert slices == list(range(20))
    assert all(1 <= float(str(one["b"]).split()[0]) <= 100 for one in points)


def test_samples_depend_on_the_seed_alone(tmp_path: Path) -> None:
    text = "vary: [{path: a, range: {from: 0, to: 1}}]\nsample: {method: random, points: 5, seed: %d}"
    first, again, other = (settings(grid_of(tmp_path, text % seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_same_point_has_the_same_key_in_another_grid_and_another_key_on_another_engine(
    tmp_path: Path,
) -> None:
    small = grid_of(tmp_path, "vary: [{path: run.seed, values: [1]}]")
    large = grid_of(tmp_path, "vary: [{path: run.seed, values: [0, 1]}]")
    assert small.points[0] == large.points[1]
    assert small.points[0].key != small.on("events").points[0].key


MANY = [f"{{path: a{place}, range: {{from: 1, to: 2, points: 100}}}}" for place in range(5)]
WRONG = {
    "vary: []": "vary",
    "vary: [{path: a}]": "either values or a range",
    "vary: [{path: a, values: [1], range: {from: 1, to: 2, points: 2}}]": "either values or a range",
    "vary: [{path: a, range: {from: 1, to: 2}}]": "needs points",
    "vary: [{path: a, range: {from: 1 GB/s, to: 2 MB/s, points: 2}}]": "same unit",
    "vary: [{path: a, range: {from: 0, to: 2, points: 2, scale: log}}]": "above 0",
    "vary: [{path: a, range: {from: x y z 1, to: 2, points: 2}}]": "is a number",
    "vary: [{path: a, values: [1]}, {path: a, values: [2]}]": "varied twice",
    "vary: [{together: [{path: a, values: [1]}, {path: b, values: [1, 2]}]}]": "equally many values",
    "vary: [{path: a, vales: [1]}]": 'unknown key "vales"',
    "vary: [{path: a, values: [1]}]\nengine: vektor": "engine",
    "vary: [{path: a, values: [1]}]\nsample: {method: random, points: 3, seed: -1}": "seed",
    f"vary: [{', '.join(MANY)}]": "sample them",
    "vary: [{path: a, range: {from: 1, to: .inf, points: 3}}]": "is a number",
    "vary: [{path: workers, values: [8, eight]}]": 'workers must be whole numbers from 1, not "eight"',
    "vary: [{path: workers, values: [null]}]": "not nothing",
    "vary: [{path: workers, range: {from: 8, to: 32, points: 4}}]": "say whole: true",
    "vary: [{path: policy.buffers, values: [1, 2]}, {path: policy, values: [{kind: dual_buffer}]}]": (
        '"policy" replaces what "policy.buffers" sets'
    ),
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:60])
def test_a_wrong_grid_is_refused_in_one_line_that_names_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as refused:
        grid_of(tmp_path, text)
    assert WRONG[text] in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / "grid.yaml"))
    assert "\n" not in str(refused.value)


def test_a_scenario_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")
    (inner / "grid.yaml").write_text(
        "scenario: ../base.yaml\nvary: [{path: a, values: [1]}]", encoding="utf-8"
    )
    with pytest.raises(InputError, match="outside"):
        read_grid(inner / "grid.yaml")


def test_settings_are_json_so_that_a_policy_can_be_an_axis(tmp_path: Path) -> None:
    grid = grid_of(tmp_path, "vary: [{path: policy, values: [{kind: serialized}, {kind: dual_buffer}]}]")
    assert json.loads(json.dumps(settings(grid)))[1] == {"policy": {"kind": "dual_buffer"}}
