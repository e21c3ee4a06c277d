"""Signs of life during long work, on standard error: a bar on a terminal, a line now and then elsewhere."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

FIRST_LINE_S, NEXT_LINES_S = 5.0, 15.0


@dataclass
class Progress:
    """How far the work `name` is: `total` parts, `done` of them, and how far the one under way.

    Parts say how far they are in `unit`; without one their speed says nothing and is not shown.
    """

    name: str
    total: int
    done: int = 0
    settled: int = 0
    under_way: tuple[int, int] = (0, 1)
    started: float = field(default_factory=time.monotonic)
    unit: str = "collectives"

    def within(self, settled: int, of: int) -> None:
        """Note how far the part under way is; engines and readers call this."""
        self.under_way = (settled, max(of, 1))

    def advance(self) -> None:
        """Count one more part."""
        self.settled += self.under_way[0]
        self.done, self.under_way = self.done + 1, (0, 1)

    @property
    def share(self) -> float:
        """The share of the work that is done."""
        settled, of = self.under_way
        return min(1.0, (self.done + settled / of) / self.total)

    def __str__(self) -> str:
        """Return share, time spent, units per second and time left, as far as known."""
        spent = time.monotonic() - self.started
        text = f"{self.name}: {100 * self.share:.0f}% after {spent:.0f} s"
        settled = self.settled + self.under_way[0]
        if self.unit and settled and spent:
            text += f", {settled / spent:,.0f} {self.unit}/s"
        if self.share:
            text += f", about {spent / self.share * (1 - self.share):.0f} s left"
        return text


@contextmanager
def progress(name: str, total: int = 1, unit: str = "collectives") -> Iterator[Progress]:
    """Show how far the work is until the block ends."""
    work = Progress(name, total, unit=unit)
    with _bar(work) if sys.stderr.isatty() else _heartbeat(work):
        yield work


@contextmanager
def _heartbeat(work: Progress) -> Iterator[None]:
    over = threading.Event()
    beat = threading.Thread(target=_beat, args=(work, over), daemon=True)
    beat.start()
    try:
        yield
    finally:
        over.set()
        beat.join()


def _beat(work: Progress, over: threading.Event) -> None:
    wait = FIRST_LINE_S
    while not over.wait(wait):
        print(f"recscale: {work}", file=sys.stderr, flush=True)
        wait = NEXT_LINES_S


@contextmanager
def _bar(work: Progress) -> Iterator[None]:
    """Draw a line that rich keeps up to date; it is wiped when the work is done."""
    from rich.live import Live
    from rich.spinner import Spinner

    from analysis.cli.output import console

    class Line:
        spinner = Spinner("line")

        def __rich__(self) -> Spinner:
            self.spinner.update(text=str(work))
            return self.spinner

    with Live(Line(), console=console(sys.stderr), transient=True, refresh_per_second=8):
        yield
