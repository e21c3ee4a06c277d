"""Foreign load: how busy the machine is with other work. Beside other work no figure means anything."""

import time
from dataclasses import dataclass
from pathlib import Path

from simulator.errors import InfeasibleError

MOST_FOREIGN = 0.08
LOOK_S = 0.5
TRIES = 3


@dataclass(frozen=True)
class Ticks:
    """Counters of the kernel since the machine started, in ticks: all of it, and the part not idle."""

    total: int
    busy: int


def ticks(text: str) -> Ticks:
    """Return the counters in the first line of `/proc/stat`; waiting for disks counts as idle."""
    numbers = [int(word) for word in text.splitlines()[0].split()[1:9]]
    idle = numbers[3] + numbers[4]
    return Ticks(sum(numbers), sum(numbers) - idle)


def busy_share(seconds: float = LOOK_S) -> float | None:
    """Return the share of all cores that was busy over the next `seconds`; None where nobody counts.

    Call it while this process and its children rest: then all that is busy is foreign.
    """
    source = Path("/proc/stat")
    if not source.exists():
        return None
    before = ticks(source.read_text())
    time.sleep(seconds)
    after = ticks(source.read_text())
    return (after.busy - before.busy) / max(1, after.total - before.total)


@dataclass(frozen=True)
class Load:
    """The foreign load before and after a measurement (shares of all cores), and whether any was allowed."""

    before: float | None
    allowed: bool
    after: float | None = None

    @property
    def quiet(self) -> bool:
        """Whether the machine was idle enough both times."""
        return all(share is None or share <= MOST_FOREIGN for share in (self.before, self.after))


def require_quiet(allow: bool) -> Load:
    """Look at the load up to three times; raise InfeasibleError when it stays high and is not allowed."""
    share = busy_share()
    for _ in range(TRIES - 1):
        if share is None or share <= MOST_FOREIGN or allow:
            break
        time.sleep(1.0)
        share = busy_share()
    if share is not None and share > MOST_FOREIGN and not allow:
        raise InfeasibleError(
            f"other work keeps {100 * share:.0f} % of this machine busy (at most {100 * MOST_FOREIGN:.0f} %):"
            " measure when it is idle, or say --allow-load to mark the result as taken beside it"
        )
    return Load(share, allow)
