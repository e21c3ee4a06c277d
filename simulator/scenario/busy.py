"""How busy the resources of the slowest rank are: what the counted steps used of them, not who waited."""

from collections.abc import Mapping

from simulator.engine.usage import LINK
from simulator.results.report import BUSY
from simulator.scenario.simulate import Run

ROUNDING = 1e-9
WORTH_SAYING = 0.03  # of a step
# Several resources behind one word of the report: the busiest of them counts, as does the busiest link.
BEHIND = {
    "compute": ("tensor",),
    "sparse": ("sparse",),
    "memory": ("hbm",),
    "network": ("remote",),  # the card that leads to parameter servers; links join it below
    "host": ("cores", "dram", "ssd", "server"),
    "copy": ("host_to_device", "device_to_host", "pcie_down", "pcie_up"),
}


def busy_shares(run: Run) -> dict[str, float]:
    """Return the share of the counted steps in which resources of the slowest rank work, by their word.

    At most 1. Of what ranks of a host share, it is the share of the whole host, by all of them. What is cut
    off is rounding, or where steps do not repeat a guess at what stages under way at the first and last
    moment had done: what is certain, `Run.used` has found to be at most 1. Where nothing is shared, stages
    may ask for more than there is: `overbooked` then says of what.
    """
    return {word: min(1.0, share) for word, share in _asked(run).items()}


def overbooked(run: Run) -> list[str]:
    """Say which resources stages ask for more of than there is, in a run in which nothing is shared."""
    if run.shares:
        return []
    most = {word: share for word, share in _asked(run).items() if share > 1 + ROUNDING}
    if not most:
        return []
    named = ", ".join(f"{word} {share:.2f} times" for word, share in most.items())
    return [f"nothing is shared here, and stages ask for more than there is: {named}; the step is too short"]


def _asked(run: Run) -> dict[str, float]:
    return {word: _busiest(run.used.even, word) for word in BUSY}


def _busiest(used: Mapping[str, float], word: str) -> float:
    links = [share for name, share in used.items() if name.startswith(LINK) and word == "network"]
    return max([used.get(name, 0.0) for name in BEHIND[word]] + links)


def sharing_binds(run: Run, slowed_ms: float) -> list[str]:
    """Say so where stages slow each other down, by `slowed_ms` per batch, and the step is longer.

    A theory test shows how more of one resource then makes a step longer, as it can with lists of jobs.
    """
    step_ms, bound_ms = run.breakdown.step_ns / 1e6, run.lower_bound_ns / 1e6
    if step_ms <= bound_ms * (1 + WORTH_SAYING) or slowed_ms <= WORTH_SAYING * step_ms:
        return []
    above = f"{step_ms / bound_ms - 1:.0%} above its lower bound"
    return [
        f"stages that share slow each other down, by {slowed_ms:.2g} ms per batch in all, hidden or not, and "
        f"the step is {above}; there, more of one resource can make a step longer: what comes earlier "
        "takes from what the step waits for"
    ]
