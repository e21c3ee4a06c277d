"""Figures of papers: three files each, the same bytes every time, and published values as they are recorded.

Each figure is computed once, by `computed`; only the two cheapest are computed again, in other processes.
"""

import csv
import math
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as Drawing
from matplotlib.text import Text
from tiers import at_night

from analysis.figures import Computed, Keys, figure, figures, lines
from analysis.figures.__main__ import main
from analysis.figures.frame import COLUMN_WIDTH, SUMMARIES
from analysis.figures.marks import PUBLISHED, columns
from analysis.plots import style
from analysis.published import by_id
from simulator.errors import InputError

NAMES = list(figures())
WANTED = {
    "nestpipe": {
        "shares",
        "main",
        "scaling",
        "utilisation",
        "micro_batches",
        "sensitivity",
        "ablation",
        "grouped",
    },
    "google": {"timelines", "layers"},
    "bagpipe": {"breakdown", "lookahead", "skew", "speedups"},
}
LONG = ("fig_google_layers", "fig_bagpipe_lookahead")
FIGURES = [at_night(name) if name in LONG else name for name in NAMES]
CHEAP = ("fig_bagpipe_skew", "fig_google_timelines")
SHARES_OF = {"T2a": "T1", "T2b": "T1"}  # shown as per cent of another row where figure 2 shows shares
OKABE_ITO = {style.ORANGE, style.SKY, style.GREEN, style.YELLOW, style.BLUE, style.VERMILION, style.PURPLE}
SMALLEST_TEXT = 6.0  # points, at one column
COLUMNS = {"published", "role", "confidence", "bound", "published_id"}


@cache
def computed(name: str) -> Computed:
    return figure(name).compute()


@cache
def drawn(name: str) -> Drawing:
    """The figure as drawn, laid out."""
    with style.house_style():
        drawing = computed(name).drawing()
        drawing.draw_without_rendering()
    return drawing


def shown_texts(drawing: Drawing) -> list[Text]:
    return [text for text in drawing.findobj(Text) if text.get_text().strip() and text.get_visible()]


def by_label(drawing: Drawing, place: int, containers: bool) -> dict[str, Any]:
    """Ours on one of the axes: the first patch of each labelled group of bars, or each labelled line."""
    axes = drawing.axes[place]
    found = {one.get_label(): one.patches[0] for one in axes.containers} if containers else {}
    found |= {} if containers else {one.get_label(): one for one in axes.lines}
    return {label: one for label, one in found.items() if not label.startswith(("_", PUBLISHED))}


def test_there_is_every_figure_that_we_promise() -> None:
    assert set(NAMES) == {f"fig_{paper}_{name}" for paper, names in WANTED.items() for name in names}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_writes_three_files_with_the_same_bytes_every_time(name: str, tmp_path: Path) -> None:
    first, again = (computed(name).write(tmp_path / folder) for folder in ("first", "again"))
    assert [path.name for path in first] == [f"{name}.png", f"{name}.svg", f"{name}.csv"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert first[0].read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(first[1]).getroot().tag.endswith("svg")
    with first[2].open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(computed(name).rows)
    assert not [path for path in tmp_path.rglob("*") if "unfinished" in path.name]


@pytest.mark.parametrize("name", CHEAP)
def test_two_processes_write_the_same_bytes(name: str, tmp_path: Path) -> None:
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "analysis.figures", str(tmp_path / seed), name]
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True)
    for path in computed(name).write(tmp_path / "here"):
        assert path.read_bytes() == (tmp_path / "1" / path.name).read_bytes()
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes()


@pytest.mark.parametrize("name", FIGURES)
def test_published_values_and_their_roles_are_those_on_record(name: str) -> None:
    record = by_id()
    for row in computed(name).rows:
        assert set(row) >= COLUMNS
        if row["published_id"] is None:
            assert {row[column] for column in COLUMNS} == {None}
            continue
        one = record[row["published_id"]]
        assert (row["role"], row["confidence"], row["bound"]) == (one.role, one.confidence, one.is_bound)
        part = name == "fig_nestpipe_shares" and one.id in SHARES_OF
        value = 100 * one.value / record[SHARES_OF[one.id]].value if part else one.value
        assert row["published"] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("name", FIGURES)
def test_every_number_is_finite_or_says_why_it_is_missing(name: str) -> None:
    for row in computed(name).rows:
        ours = {key: value for key, value in row.items() if key not in COLUMNS}
        assert all(math.isfinite(value) for value in ours.values() if isinstance(value, float))
        assert None not in ours.values() or row["note"]


def test_values_taken_from_summaries_say_so() -> None:
    for name in NAMES:
        if "nestpipe" in name and any(row["published_id"] for row in computed(name).rows):
            assert SUMMARIES in computed(name).figure.source


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_readable_in_one_column(name: str) -> None:
    drawing = drawn(name)
    assert drawing.get_figwidth() == COLUMN_WIDTH
    assert min(text.get_fontsize() for text in shown_texts(drawing)) >= SMALLEST_TEXT
    box = drawing.get_tightbbox()
    assert box.x0 >= -0.01 and box.x1 <= drawing.get_figwidth() + 0.01
    assert box.y0 >= -0.01 and box.y1 <= drawing.get_figheight() + 0.01


@pytest.mark.parametrize("name", FIGURES)
def test_one_legend_stands_above_the_axes_with_published_marks_last(name: str) -> None:
    drawing = drawn(name)
    (legend,) = drawing.legends
    assert not any(axes.get_legend() for axes in drawing.axes)
    lowest = legend.get_window_extent().y0
    assert all(axes.get_window_extent().y1 <= lowest for axes in drawing.axes)
    labels = [text.get_text() for text in legend.get_texts()]
    assert len(set(labels)) == len(labels)
    published = [label.startswith(PUBLISHED) for label in labels]
    assert published == sorted(published)
    assert any(published) == any(row["published_id"] for row in computed(name).rows)


@pytest.mark.parametrize("name", FIGURES)
def test_series_are_told_apart_without_colour_and_by_colours_that_all_can_tell(name: str) -> None:
    drawing = drawn(name)
    for place in range(len(drawing.axes)):
        curves = by_label(drawing, place, containers=False)
        bars = by_label(drawing, place, containers=True)
        dashes = [(one.get_linestyle(), one._dash_pattern, one.get_linewidth()) for one in curves.values()]
        hatches = [one.get_hatch() for one in bars.values()]
        assert len(set(map(repr, dashes))) == len(dashes)
        assert len(set(hatches)) == len(hatches)
        colors = [to_hex(one.get_color()).upper() for one in curves.values()]
        colors += [to_hex(one.get_facecolor()).upper() for one in bars.values()]
        assert set(colors) <= OKABE_ITO | {style.INK}


def test_a_shape_that_does_not_fit_is_named_where_its_bar_would_be() -> None:
    rows = {(row["varied"], row["value"]): row for row in computed("fig_nestpipe_sensitivity").rows}
    missing = rows["dimension", 1024]
    assert missing["speedup"] is None and missing["note"] == "serialized does not fit"
    assert missing["nestpipe_ms"] > rows["dimension", 768]["nestpipe_ms"]
    assert missing["note"] in {text.get_text() for text in shown_texts(drawn("fig_nestpipe_sensitivity"))}


def test_pipelined_sparse_cores_work_on_another_batch_than_the_tensor_cores() -> None:
    rows = computed("fig_google_timelines").rows
    for schedule, most in {"serialized": 0, "pipelined": 2}.items():
        mine = [row for row in rows if row["schedule"] == schedule]
        dense = [row for row in mine if row["core"] == "TensorCores"]
        beside = {
            abs(row["batch"] - other["batch"])
            for row in mine
            for other in dense
            if row["phase"] == "gather rows" and row["begins_ms"] < other["ends_ms"]
            if other["begins_ms"] < row["ends_ms"]
        }
        assert max(beside, default=0) <= most
        assert bool(beside) == (schedule == "pipelined")


@pytest.mark.nightly
def test_the_models_behind_google_s_layers_are_called_no_evidence() -> None:
    shown = computed("fig_google_layers")
    assert "no evidence" in shown.figure.source
    gains = [row["gain"] for row in shown.rows if row["model"].isdigit() and row["layer"] == "+ feedback"]
    sums = {row["model"]: row["gain"] for row in shown.rows if not row["model"].isdigit()}
    assert sums["least"] == min(gains) and sums["most"] == max(gains)
    assert sums["mean"] == pytest.approx(math.prod(gains) ** (1 / len(gains)))


@pytest.mark.nightly
def test_looking_further_ahead_fetches_less_and_keeps_more_within_the_authors_sizes() -> None:
    rows = computed("fig_bagpipe_lookahead").rows
    fetched, kept = (
        [row["value"] for row in rows if row["quantity"] == quantity]
        for quantity in ("prefetched_thousand_rows", "cached_million_rows")
    )
    assert fetched == sorted(fetched, reverse=True) and kept == sorted(kept)
    bounds = [row for row in rows if row["bound"]]
    assert bounds and all(row["value"] <= row["published"] for row in bounds)


def test_bagpipe_s_baselines_state_their_backend() -> None:
    shown = computed("fig_bagpipe_speedups")
    assert "Gloo" in shown.figure.source
    assert all(row["backend"] for row in shown.rows)


def test_a_changed_assumption_changes_the_numbers_and_is_written_below() -> None:
    changed = figure("fig_bagpipe_skew").compute("workload.keys.exponent=0.6")
    before, after = (shown.rows[0]["accesses_percent"] for shown in (computed("fig_bagpipe_skew"), changed))
    assert after < before - 10
    assert "changed: workload.keys.exponent=0.6" in changed.note
    assert "changed" not in computed("fig_bagpipe_skew").note
    assert repr(changed) == "fig_bagpipe_skew workload.keys.exponent=0.6"


def test_a_notebook_gets_a_picture_and_a_table() -> None:
    shown = computed("fig_bagpipe_skew")
    assert shown._repr_png_().startswith(b"\x89PNG")
    assert list(shown.table().columns) == list(shown.rows[0])


def test_lines_of_any_rows_leave_out_what_cannot_run() -> None:
    rows = [{"n": 1, "of": "a", "ms": 2.0}, {"n": 2, "of": "a", "ms": None}, {"n": 4, "of": "b", "ms": 3.0}]
    shown = lines(rows, Keys("n", "of", "ms"), "title", "note")
    assert [row["n"] for row in shown.rows] == [1, 4]
    assert [line.get_label() for line in shown.drawing().axes[0].lines] == ["a", "b"]


def test_a_legend_has_as_many_columns_as_fit() -> None:
    assert columns(["a", "b", "c", "d"], 250) == 3
    assert columns(["a name that is rather long, and so is each of them"] * 3, 250) == 1
    assert columns([], 250) == 1


def test_an_unknown_figure_is_one_line_and_code_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([str(tmp_path), "fig_bagpipe_skwe"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "fig_bagpipe_skew" in told


def test_a_setting_that_the_scenario_does_not_take_is_one_line_and_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main([str(tmp_path), "fig_bagpipe_skew", "--set", "workload.keys.exponnt=1"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "exponent" in told
    assert not list(tmp_path.iterdir())


def test_names_of_figures_are_checked_before_any_is_computed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fig_google_layers"):
        figure("fig_google_layer")
    assert main([str(tmp_path), "fig_bagpipe_skew", "none"]) == 2
    assert not list(tmp_path.iterdir())
