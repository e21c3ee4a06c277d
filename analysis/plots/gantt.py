"""The Gantt chart of a run: who works on which batch when, and when the compute stream waits."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.plots import style
from analysis.plots.gantt_legend import draw_legend
from analysis.plots.labels import Span, Writer, abbreviations
from analysis.plots.schedule import Bar, Schedule
from simulator.scenario import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

STREAM_NAMES = {
    "loader": "input loader",
    "copy": "host-to-device copy",
    "host": "host memory",
    "network": "row network",
    "all_reduce": "all-reduce network",
}
LEFT, RIGHT, TOP, BOTTOM, ROW = 1.12, 0.1, 0.44, 1.12, 0.32  # inches
BAR_HEIGHT = 0.74  # of a row
THINNEST = 1.4  # points
MOST_UNNAMED = 3  # stages that are listed because their bars are too narrow for a name


def draw_gantt(run: Run, path: Path, steps: int = 3) -> None:
    """Draw `steps` consecutive steady steps of the slowest rank to `path` (`.png` or `.svg`).

    Bars too short to be seen are drawn a little wider than they are. Raises InputError for another
    suffix, or when `steps` is not positive.
    """
    from matplotlib.figure import Figure

    style.check_suffix(path)
    schedule = Schedule(run, steps)
    with style.house_style():
        height = TOP + BOTTOM + ROW * len(schedule.streams)
        figure = Figure(figsize=(style.WIDTH, height))
        size = (1 - (LEFT + RIGHT) / style.WIDTH, 1 - (TOP + BOTTOM) / height)
        axes = figure.add_axes((LEFT / style.WIDTH, BOTTOM / height, *size))
        chart = _Chart(schedule, axes)
        chart.draw()
        draw_legend(figure, schedule, chart.short_words(), chart.footnote())
        look: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False}  # "$" is a sign here
        figure.text(0.5, 1 - 0.14 / height, title(run), size=style.LARGE, **look)
        style.save(figure, path)


def title(run: Run) -> str:
    """Return scenario, policy, workers and mean step time in one line."""
    step = style.milliseconds(run.report.step_ms["mean"])
    workers = f"{run.timeline.ranks:,} workers"
    return "  ·  ".join((run.scenario.name, policy_name(run), workers, f"{step} ms per step"))


def policy_name(run: Run) -> str:
    """Return the policy's kind; of a nested one, both parts."""
    policy: Any = run.scenario.spec.policy
    if policy.kind == "nested":
        return f"{policy.inter_batch.kind} around {policy.intra_batch.kind}"
    return str(policy.kind)


@dataclass(frozen=True)
class _Chart:
    """The chart on its axes: one unit of y per stream, from the top down; x in ms."""

    schedule: Schedule
    axes: "Axes"
    explained: set[str] = field(default_factory=set)
    unnamed: set[str] = field(default_factory=set)
    widened: list[Bar] = field(default_factory=list)

    @cached_property
    def _writer(self) -> Writer:
        points = (style.WIDTH - LEFT - RIGHT) * style.POINTS
        return Writer(self.axes, points / self.schedule.length, BAR_HEIGHT * ROW * style.POINTS)

    @property
    def _thin(self) -> float:
        """The shortest time, ms, that is drawn as long as it is."""
        return THINNEST / self._writer.points_per_ms

    @cached_property
    def _short(self) -> dict[str, str]:
        return abbreviations(node.name for node in self.schedule.run.timeline.graph.nodes)

    def draw(self) -> None:
        """Draw everything."""
        self._frame()
        self._waits()
        for row, stream in enumerate(self.schedule.streams):
            self._row(row, self.schedule.on(stream))
        self._updates()

    def short_words(self) -> list[str]:
        """Return the abbreviations to be explained, as `e = exchange`."""
        return sorted(self.explained)

    def footnote(self) -> str:
        """Say which bars are drawn wider than they are, and what has no name on the compute stream."""
        told = []
        if self.widened:
            told.append(f"bars under {style.milliseconds(self._thin)} ms are drawn wider")
        named = {pair.partition(" = ")[2] for pair in self.explained}
        unnamed = sorted(self.unnamed - named)
        if unnamed:
            listed = ", ".join([*unnamed[:MOST_UNNAMED], *(["..."] if len(unnamed) > MOST_UNNAMED else [])])
            told.append(f"too narrow for a name on the compute stream: {listed}")
        return "; ".join(told)

    def _frame(self) -> None:
        streams = self.schedule.streams
        names = [STREAM_NAMES.get(name, name.replace("_", " ")) for name in streams]
        self.axes.set(xlim=(0, self.schedule.length), ylim=(len(streams) - 0.5, -0.5))
        self.axes.set_xlabel("time (ms)", labelpad=2)
        self.axes.set_yticks(range(len(streams)), names)
        self.axes.tick_params(axis="y", length=0)
        style.separate_thousands(self.axes.xaxis)
        self.axes.tick_params(axis="x", length=2.5, width=0.6)
        self.axes.spines[["top", "right", "left"]].set_visible(False)

    def _waits(self) -> None:
        """Shade the compute stream's waits, and say how long they are where there is room."""
        row = len(self.schedule.streams) - 1
        for wait in self.schedule.waits:
            self._box(row, wait, facecolor=style.PALE, zorder=0.5)
            ms = style.milliseconds(wait[1] - wait[0])
            self._writer.across(row, wait, [f"waits {ms} ms", f"{ms} ms"], color="#555555", style="italic")

    def _box(self, row: int, span: Span, **look: Any) -> "Patch":
        from matplotlib.patches import Rectangle

        tall = look.pop("height", BAR_HEIGHT)
        box = Rectangle((span[0], row - tall / 2), span[1] - span[0], tall, **look)
        return self.axes.add_patch(box)

    def _row(self, row: int, bars: Sequence[Bar]) -> None:
        """Draw one stream from left to right; `taken` is how far it is full."""
        taken = 0.0
        nexts = [*(bar.arrives for bar in bars[1:]), self.schedule.length]
        for bar, following in zip(bars, nexts, strict=False):  # a stream may have no bars
            seen = self._seen(bar)
            inside = self._inside(row, bar, self._bar(row, bar, seen))
            if not inside and bar.stream == self.schedule.streams[-1]:
                self.unnamed.add(bar.stage.partition(".")[0])
            beside = not inside and bar.stream != self.schedule.streams[-1]
            taken = self._beside(row, bar, seen, (taken, following)) if beside else seen[1]

    def _seen(self, bar: Bar) -> Span:
        """Return from where to where the bar is drawn: wide enough, and on its own side of an update."""
        thin = self._thin
        if bar.ends - bar.begins >= thin:
            return bar.begins, bar.ends
        self.widened.append(bar)
        crossed = any(bar.ends <= time < bar.begins + thin for time in self.schedule.updates.values())
        return (bar.ends - thin, bar.ends) if crossed else (bar.begins, bar.begins + thin)

    def _bar(self, row: int, bar: Bar, seen: Span) -> "Patch":
        """Draw a solid bar for work, and a hollow one before it for a wait for other ranks."""
        color = style.batch_color(bar.batch)
        if bar.begins > bar.arrives:
            wait = (bar.arrives, min(bar.begins, bar.ends))
            self._box(row, wait, facecolor="white", edgecolor=color, linewidth=0.8, height=0.4)
        mark = style.KIND_MARKS[bar.kind] if seen == (bar.begins, bar.ends) else ""
        return self._box(row, seen, hatch=mark, facecolor=color, edgecolor=style.INK, linewidth=0.25)

    def _inside(self, row: int, bar: Bar, box: "Patch") -> bool:
        """Write the stage, or its abbreviation, into its bar; return whether it fits."""
        from matplotlib.patheffects import withStroke

        color, span, short = style.batch_color(bar.batch), (bar.begins, bar.ends), self._short[bar.stage]
        halo = [withStroke(linewidth=1.6, foreground=color)] if style.KIND_MARKS[bar.kind] else []
        look: dict[str, Any] = {"color": style.ink_on(color), "path_effects": halo}
        look |= {"clip_path": box, "clip_on": True}
        text = self._writer.across(row, span, [bar.stage, short], **look)
        text = text or self._writer.upright(row, span, short, **look)
        if text and text != bar.stage:
            family, _, number = bar.stage.partition(".")
            self.explained.add(f"{short.removesuffix(number)} = {family}")
        return bool(text)

    def _beside(self, row: int, bar: Bar, seen: Span, room: Span) -> float:
        """Write the stage after its bar, or before it, within `room`; return how far the row is full."""
        updates, needs = self.schedule.updates.values(), self._writer.needs(bar.stage)
        after, before = (seen[1], seen[1] + needs), (bar.arrives - needs, bar.arrives)
        low = max([room[0], *(time for time in updates if time <= bar.arrives)])
        high = min([room[1], *(time for time in updates if time > bar.begins)])
        if after[1] <= high:
            self._writer.across(row, after, [bar.stage])
            return after[1]
        if before[0] >= low:
            self._writer.across(row, before, [bar.stage])
        return seen[1]

    def _updates(self) -> None:
        """Draw a line at each completed update; between two of them the batch and the length of its step."""
        updates = list(self.schedule.updates.items())
        for time in dict.fromkeys(self.schedule.updates.values()):
            self.axes.axvline(time, color=style.INK, linewidth=0.9, linestyle=(0, (4, 2)), clip_on=False)
        for (_, begin), (batch, end) in pairwise(updates):
            if end > begin:
                self._above((begin + end) / 2, f"step of batch {batch}: {style.milliseconds(end - begin)} ms")

    def _above(self, time: float, text: str) -> None:
        at: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        self.axes.annotate(text, (time, 1), xytext=(0, 3), ha="center", **at)
