"""What must hold in every single run, whatever the scenario."""

from collections.abc import Callable

import numpy as np

from simulator.quantities import AllToAllWork, leaves
from simulator.scenario import run_scenario
from simulator.scenario.simulate import Run

ROUNDING = 1e-9
Check = Callable[[Run], str | None]


def rounding_of_ends(run: Run) -> float:
    """Return by what share of a step its ends, each told up to a nanosecond late, may move it."""
    return len(run.timeline.graph.nodes) * 1e-6 / run.report.step_ms["mean"]


def bound_holds(run: Run) -> str | None:
    """The step is no shorter than its lower bound."""
    step, bound = run.report.step_ms["mean"], run.report.lower_bound_ms
    return None if step >= bound * (1 - ROUNDING) else f"a step of {step:.6f} ms, at least {bound:.6f} ms"


def nothing_is_used_twice(run: Run) -> str | None:
    """No resource is in use for longer than the counted steps last, as far as that is certain."""
    most = 1 + ROUNDING + rounding_of_ends(run) * run.timeline.cycles
    over = {name: share for name, share in run.used.least.items() if share > most}
    reported = {word: share for word, share in run.report.busy_share.items() if not 0 <= share <= 1}
    return f"more is used than there is: {over or reported}" if over or reported else None


def sent_is_received(run: Run) -> str | None:
    """What ranks send in an all-to-all, they receive, all together."""
    works = (leaf for node in run.timeline.graph.nodes for leaf in leaves(node.stage.work))
    for work in (work for work in works if isinstance(work, AllToAllWork)):
        received = work.bytes if work.received_bytes is None else work.received_bytes
        sums = [float(np.broadcast_to(one, (run.timeline.ranks,)).sum()) for one in (work.bytes, received)]
        if abs(sums[0] - sums[1]) > ROUNDING * max(sums):
            return f"{sums[0]:.6g} bytes sent, {sums[1]:.6g} received"
    return None


def time_adds_up(run: Run) -> str | None:
    """Compute and exposed time are the step."""
    report = run.report
    parts, step = report.compute_ms + sum(report.exposed_ms.values()), report.step_ms["mean"]
    return None if abs(parts - step) <= ROUNDING * step else f"{parts:.9f} ms in parts of {step:.9f} ms"


def updates_are_applied_once(run: Run) -> str | None:
    """No update is lost for good, and none is applied twice."""
    wrong = {name: share for name, share in run.report.updates.items() if share}
    return f"updates: {wrong}" if wrong else None


def engines_agree(run: Run) -> str | None:
    """Where nothing is shared, both engines give the same nanoseconds."""
    alone = run.scenario.with_overrides(["run.contention=false"])
    ours, theirs = run_scenario(alone), run_scenario(alone, "vector")
    ends = [one.timeline.end_ns[:, :, one.timeline.column_of] for one in (ours, theirs)]
    return None if np.array_equal(*ends) else f"ends differ by up to {np.abs(ends[0] - ends[1]).max()} ns"


def sharing_takes_time(run: Run) -> str | None:
    """No stage is quicker because others run beside it, on hosts of alike ranks."""
    if run.hosts_shared or int(run.timeline.slowed_ns.min()) >= 0:
        return None
    return f"a stage is {-int(run.timeline.slowed_ns.min())} ns quicker than alone"


CHECKS: dict[str, Check] = {
    "a step is no shorter than its lower bound": bound_holds,
    "no resource is busy for longer than a step": nothing_is_used_twice,
    "bytes sent are bytes received": sent_is_received,
    "compute and exposed time add up": time_adds_up,
    "updates are applied exactly once": updates_are_applied_once,
    "the engines agree where nothing is shared": engines_agree,
    "sharing makes no stage quicker": sharing_takes_time,
}
