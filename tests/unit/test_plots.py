"""Pictures: what they show is what the run says, texts do not collide, same data gives same bytes."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from analysis.plots import style
from analysis.plots.breakdown import PARTS, draw_breakdown
from analysis.plots.gantt import draw_gantt, title
from analysis.plots.labels import abbreviations
from analysis.plots.schedule import Schedule
from simulator.errors import InputError
from simulator.results.exposed import break_down
from simulator.scenario import Run, load, run_scenario

POLICIES: dict[str, dict[str, Any]] = {
    "serialized": {"kind": "serialized"},
    "dual_buffer": {"kind": "dual_buffer"},
    "frozen_window": {"kind": "frozen_window", "micro_batches": 8},
    "nestpipe": {"kind": "nestpipe", "micro_batches": 8},
}


def run_of(checkout: Path, policy: str, *settings: str) -> Run:
    scenario = load(checkout / "scenarios/nestpipe/npu.yaml", list(settings))
    return run_scenario(scenario.with_policy(POLICIES[policy]))


@pytest.fixture(scope="module", params=POLICIES)
def run(request: pytest.FixtureRequest, checkout: Path) -> Run:
    return run_of(checkout, request.param)


@pytest.fixture(scope="module")
def serialized(checkout: Path) -> Run:
    return run_of(checkout, "serialized")


@contextmanager
def catching() -> Iterator[list[Figure]]:
    """Draw figures in memory instead of saving them."""
    figures: list[Figure] = []

    def draw(figure: Figure, path: Path) -> None:
        FigureCanvasAgg(figure).draw()
        figures.append(figure)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "save", draw)
        yield figures


@pytest.fixture
def drawn() -> Iterator[list[Figure]]:
    with catching() as figures:
        yield figures


@pytest.fixture(scope="module")
def chart(run: Run) -> Figure:
    with catching() as figures:
        draw_gantt(run, Path("chart.png"))
    return figures[0]


def shown_texts(figure: Figure) -> list[Text]:
    """All texts; matplotlib also keeps ticks beyond the ends of an axis, which it never draws."""
    beyond: set[Text] = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            beyond |= {tick.label1 for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high}
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text) and text not in beyond]
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


def ink(text: Text) -> Bbox:
    """The extent of a text without the room that its line has for accents and tails."""
    leading = -0.2 * text.get_fontsize() * text.figure.dpi / style.POINTS  # type: ignore[union-attr]
    box = text.get_window_extent()
    return box.padded(leading, 0) if text.get_rotation() == 90 else box.padded(0, leading)


def colliding(figure: Figure) -> Iterator[tuple[str, str]]:
    boxes = [(text.get_text(), ink(text)) for text in shown_texts(figure)]
    for (one, a), (other, b) in combinations(boxes, 2):
        if min(a.x1, b.x1) > max(a.x0, b.x0) and min(a.y1, b.y1) > max(a.y0, b.y0):
            yield one, other


def legend_texts(figure: Figure) -> set[str]:
    return {text.get_text() for legend in figure.legends for text in legend.get_texts()}


def row(policy: str, workers: int, compute: float = 60.0, lookup: float = 40.0) -> dict[str, Any]:
    parts = dict.fromkeys(PARTS, 0.0) | {"compute_ms": compute, "exposed_lookup_ms": lookup}
    facts = {"scenario": "one", "policy": policy, "workers": workers, "speedup": 1.5}
    return {**facts, "step_ms": compute + lookup, **parts}


def test_bars_of_a_stream_never_overlap(run: Run) -> None:
    schedule = Schedule(run)
    for stream in schedule.streams:
        bars = schedule.on(stream)
        assert all(bar.ends <= later.begins + 1e-9 for bar, later in pairwise(bars))


def test_compute_and_its_waits_fill_the_window(run: Run) -> None:
    schedule = Schedule(run)
    busy = sum(bar.ends - bar.begins for bar in schedule.on("compute"))
    idle = sum(end - begin for begin, end in schedule.waits)
    assert busy + idle == pytest.approx(schedule.length, abs=1e-6)


def test_the_waits_shown_are_the_exposed_time_of_the_breakdown(run: Run) -> None:
    schedule = Schedule(run)
    idle = sum(end - begin for begin, end in schedule.waits)
    exposed = break_down(run.timeline, run.column, run.first, run.first + 3).exposed_ns
    assert idle == pytest.approx(3 * sum(exposed.values()) / 1e6, abs=1e-6)


def test_three_steps_of_the_reported_length_are_shown_from_the_first_that_counts(run: Run) -> None:
    schedule = Schedule(run)
    assert list(schedule.updates) == [19, 20, 21, 22]
    lengths = [end - begin for begin, end in pairwise(schedule.updates.values())]
    assert lengths == pytest.approx([run.report.step_ms["mean"]] * 3, rel=1e-3)


def test_the_compute_stream_stands_at_the_bottom(run: Run) -> None:
    streams = Schedule(run).streams
    assert streams[-1] == "compute"
    assert sorted(streams) == sorted(run.timeline.graph.pipeline.streams)


def test_a_chart_without_steps_is_refused(serialized: Run) -> None:
    with pytest.raises(InputError, match="at least one step"):
        Schedule(serialized, steps=0)


def test_a_short_run_shows_the_steps_that_it_has(checkout: Path) -> None:
    short = run_of(checkout, "serialized", "run.batches=23")
    assert len(Schedule(short, steps=50).batches) == short.last - short.first == 2


def test_a_collective_s_wait_for_the_slowest_rank_is_told_from_its_work(checkout: Path) -> None:
    alike, uneven = (
        run_of(checkout, "serialized", "cluster.hosts=2", "workload.tables[0].rows=1e8", *more)
        for more in ((), ("run.jitter.compute=10 %",))
    )
    assert not any(bar.begins > bar.arrives for bar in Schedule(alike).bars)
    waiting = {bar.kind for bar in Schedule(uneven).bars if bar.begins > bar.arrives}
    assert waiting and waiting <= {"lookup", "all_to_all", "all_reduce"}


def test_abbreviations_tell_stages_apart_and_keep_their_numbers() -> None:
    short = abbreviations(["send.0", "sparse_update", "exchange.11", "b", "read", "reduce.1"])
    expected = ["se0", "sp", "e11", "b", "rea", "red1"]
    assert list(short.values()) == expected


def test_no_texts_of_a_gantt_chart_collide(chart: Figure) -> None:
    assert list(colliding(chart)) == []


def test_all_texts_of_a_gantt_chart_stand_within_the_figure(chart: Figure) -> None:
    page = chart.bbox
    outside = [
        text.get_text()
        for text in shown_texts(chart)
        if not (page.x0 <= text.get_window_extent().x0 and text.get_window_extent().x1 <= page.x1)
    ]
    assert outside == []


def test_the_legend_explains_every_batch_kind_and_abbreviation(run: Run, chart: Figure) -> None:
    words = legend_texts(chart)
    explained = {number for word in words for number in re.findall(r"\d+", word)}
    assert {str(bar.batch) for bar in Schedule(run).bars} <= explained
    assert {
        "compute",
        "input",
        "lookup",
        "all-to-all",
        "all-reduce",
        "update complete",
        "compute waits",
    } <= words
    written = {text.get_text() for text in chart.axes[0].texts}
    notes = {pair for text in chart.texts for pair in text.get_text().split(",  ")}
    short = abbreviations(node.name for node in run.timeline.graph.nodes)
    used = {(short[name], name) for name in short if short[name] != name and short[name] in written}
    families = {(name.partition(".")[0], text.removesuffix(name.partition(".")[2])) for text, name in used}
    assert used and {f"{text} = {family}" for family, text in families} <= notes


def test_bars_that_are_drawn_wider_and_names_that_found_no_room_are_told(run: Run, chart: Figure) -> None:
    told = " ".join(text.get_text() for text in chart.texts)
    schedule = Schedule(run)
    thin = re.search(r"bars under ([\d.]+) ms are drawn wider", told)
    assert thin and any(bar.ends - bar.begins < float(thin[1]) for bar in schedule.bars)
    names = {bar.stage.partition(".")[0] for bar in schedule.on("compute")}
    written = {text.get_text() for text in chart.axes[0].texts}
    assert all(name in told or name in {word.partition(".")[0] for word in written} for name in names)


def test_batches_of_one_colour_are_named_together(chart: Figure) -> None:
    batches = {word for word in legend_texts(chart) if word.startswith("batch")}
    assert all(re.fullmatch(r"batch \d+|batches \d+(, \d+)* and \d+", word) for word in batches)


def test_the_legend_names_only_what_the_bars_show(drawn: list[Figure]) -> None:
    draw_breakdown([row("serialized", 8), row("nestpipe", 8, lookup=0.01)], Path("parts.png"))
    assert legend_texts(drawn[0]) == {"compute", "exposed lookup"}


def test_the_title_names_scenario_policy_workers_and_step(serialized: Run) -> None:
    step = serialized.report.step_ms["mean"]
    assert title(serialized) == f"nestpipe-npu  ·  serialized  ·  1,536 workers  ·  {step:,.0f} ms per step"


def test_a_line_stands_at_every_completed_update(run: Run, chart: Figure) -> None:
    lines = [float(line.get_xdata()[0]) for line in chart.axes[0].lines]  # type: ignore[index,arg-type]
    assert lines == list(Schedule(run).updates.values())


@pytest.mark.parametrize("suffix", style.SUFFIXES)
def test_the_same_run_gives_the_same_bytes_whatever_the_caller_has_set(
    serialized: Run, tmp_path: Path, suffix: str
) -> None:
    draw_gantt(serialized, tmp_path / f"one{suffix}")
    with matplotlib.rc_context({"font.size": 30, "svg.hashsalt": None, "axes.facecolor": "red"}):
        before = matplotlib.rcParams.copy()
        draw_gantt(serialized, tmp_path / f"other{suffix}")
        assert matplotlib.rcParams == before
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"other{suffix}").read_bytes()


def test_another_process_writes_the_same_picture_and_never_asks_for_a_window(tmp_path: Path) -> None:
    rows = [row("serialized", 8), row("nestpipe", 8)]
    draw_breakdown(rows, tmp_path / "here.svg")
    program = (
        "import sys; from pathlib import Path; from analysis.plots.breakdown import draw_breakdown;"
        f"draw_breakdown({rows!r}, Path({str(tmp_path / 'there.svg')!r}));"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "7",
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    }
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, cwd=Path.cwd())
    assert (tmp_path / "here.svg").read_bytes() == (tmp_path / "there.svg").read_bytes()


@pytest.mark.parametrize("name", ["chart.pdf", "chart", "chart.PNG"])
def test_other_suffixes_are_refused_before_anything_is_written(
    serialized: Run, tmp_path: Path, name: str
) -> None:
    with pytest.raises(InputError, match=r"pictures end in \.png or \.svg"):
        draw_gantt(serialized, tmp_path / name)
    with pytest.raises(InputError, match=r"pictures end in \.png or \.svg"):
        draw_breakdown([row("serialized", 8)], tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def bars_of(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def test_the_parts_of_a_bar_are_stacked_to_the_step(drawn: list[Figure]) -> None:
    draw_breakdown([row("serialized", 8, compute=30, lookup=90)], Path("parts.png"))
    bars = bars_of(drawn[0].axes[0])
    assert [bar.get_height() for bar in bars] == [30, 0, 90, 0, 0, 0]
    assert [bar.get_y() for bar in bars] == [0, 30, 30, 120, 120, 120]


def test_step_and_speed_up_are_written_above_the_bar(drawn: list[Figure]) -> None:
    draw_breakdown([row("nestpipe", 8), {**row("fae", 8), "speedup": None}], Path("parts.png"))
    assert [text.get_text() for text in drawn[0].axes[0].texts] == ["100\n×1.50", "100"]


def test_a_panel_stands_for_each_number_of_workers_fewest_first(drawn: list[Figure]) -> None:
    draw_breakdown([row("nestpipe", workers) for workers in (512, 1, 128)], Path("parts.png"))
    assert [axes.get_title() for axes in drawn[0].axes] == ["1 worker", "128 workers", "512 workers"]
    assert len({axes.get_ylim() for axes in drawn[0].axes}) == 1


def test_scenarios_stand_on_lines_of_their_own(drawn: list[Figure]) -> None:
    draw_breakdown([row("nestpipe", 8), {**row("nestpipe", 8), "scenario": "two"}], Path("parts.png"))
    first, second = drawn[0].axes
    assert first.get_position().y0 > second.get_position().y1
    assert [axes.get_ylabel().split("\n")[0] for axes in drawn[0].axes] == ["one", "two"]


@pytest.mark.parametrize(("policies", "sizes"), [(1, 9), (5, 5), (20, 1), (30, 2)])
def test_no_texts_above_the_bars_collide_however_many_there_are(
    drawn: list[Figure], policies: int, sizes: int
) -> None:
    rows = [row(f"policy_{number}", 128 * size) for size in range(1, sizes + 1) for number in range(policies)]
    draw_breakdown(rows, Path("parts.png"))
    tilted = {text for axes in drawn[0].axes for text in axes.get_xticklabels()}
    names = {text.get_text() for text in tilted}  # a tilted text fills its box only along the diagonal
    assert [pair for pair in colliding(drawn[0]) if not names & set(pair)] == []


def test_a_policy_that_cannot_run_is_shown_as_such(drawn: list[Figure]) -> None:
    failed = dict.fromkeys(row("het", 8), None) | {"scenario": "one", "policy": "het", "workers": 8}
    draw_breakdown([row("serialized", 8), failed], Path("parts.png"))
    axes = drawn[0].axes[0]
    assert [text.get_text() for text in axes.texts] == ["100\n×1.50", "cannot run"]
    assert len(bars_of(axes)) == len(PARTS)


def test_parts_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(InputError, match=r"nestpipe at 8 workers: the parts add up to 100\.000 ms"):
        draw_breakdown([{**row("nestpipe", 8), "step_ms": 101.0}], Path("parts.png"))


def test_rows_without_a_key_and_no_rows_are_refused() -> None:
    with pytest.raises(InputError, match="lacks speedup"):
        draw_breakdown(
            [{key: value for key, value in row("het", 8).items() if key != "speedup"}], Path("a.png")
        )
    with pytest.raises(InputError, match="no rows"):
        draw_breakdown([], Path("a.png"))


@pytest.mark.parametrize(
    ("value", "text"), [(2186.6, "2,187"), (99.94, "99.9"), (1.005, "1.00"), (0.04, "0.04")]
)
def test_times_are_written_with_the_decimals_that_matter(value: float, text: str) -> None:
    assert style.milliseconds(value) == text


@pytest.mark.parametrize("color", style.BATCH_COLORS)
def test_text_is_readable_on_every_batch_colour(color: str) -> None:
    """Contrast of at least 3.9 to 1, near the 4.5 that WCAG asks of small print."""
    light, dark = sorted((luminance(color), luminance(style.ink_on(color))), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3.9


def luminance(color: str) -> float:
    red, green, blue = (float(value) for value in matplotlib.colors.to_rgb(color))
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
