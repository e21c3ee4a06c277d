"""What one pair of remote calls per step is worth: for which tables, keys and compute it gains 6 to 10 %.

Calls are exposed: nothing that a step does is long enough to hide them. So with passes that take a time C, a
step is C and a rest that does not depend on it. A gain is how much longer the step with a call per table is
than the coalesced one, as a share of the *coalesced* step: how many more steps are done in the same time, as
speed-ups are told. Of the step with a call per table it saves less: g / (1 + g).
`python -m analysis.coalescing` prints the table of the page on server policies.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.scenario import Scenario, load
from simulator.scenario.bounds import nominal_bottleneck
from simulator.scenario.shipped_files import shipped_folder

FILE = "servers/caught_up.yaml"
TABLES, KEYS = (5, 10, 20, 50, 100), (500, 5_000, 50_000)
PUBLISHED = (0.06, 0.10)  # arXiv 2501.10546, by a machine review of it
BASELINES: Mapping[str, Mapping[str, object]] = {
    "at once": {"kind": "rpc_per_table", "asynchronous": True},
    "in turn": {"kind": "rpc_per_table"},
}
COALESCED = {"kind": "rpc_coalesced"}


@dataclass(frozen=True)
class Region:
    """The passes (ms) with which coalescing does 10 and 6 % more steps; None where it never gains so much.

    `saved_ms` is what a step takes longer with a call per table, made `how`.
    """

    tables: int
    keys: int
    how: str
    saved_ms: float
    passes_ms: tuple[float, float] | None


def shaped(scenario: Scenario, tables: int, keys: int) -> Scenario:
    """Return the scenario with so many tables, each asked for so many keys by a worker's batch.

    The dense model is small, so that its own all-reduce hides no call; reading samples costs nothing.
    """
    return scenario.with_overrides(
        [
            f"workload.tables=[{{name: feature, rows: 50e6, dimension: 64, copies: {tables}}}]",
            f"workload.model.embedding_features={tables}",
            "workload.model.bottom=[64]",
            "workload.model.top=[64, 1]",
            "workload.input.cpu_time=0 s",
            f"workload.batch={keys}",
            f"sharding.tier.servers={max(2, -(-tables // 50))}",
        ]
    )


def step_ms(scenario: Scenario, policy: Mapping[str, object]) -> float:
    """Return the critical cycle of nominal durations: exact where nothing varies and nothing is shared."""
    return float(nominal_bottleneck(scenario.with_policy(dict(policy))).period_ns) / 1e6


def region(scenario: Scenario, how: str) -> Region:
    """Return where coalescing gains what was published over calls made `how`, on this scenario's calls.

    A pass takes what the scenario's does; a longer one adds to both steps alike.
    """
    with_calls, coalesced = step_ms(scenario, BASELINES[how]), step_ms(scenario, COALESCED)
    saved, passes = with_calls - coalesced, _passes_ms(scenario)
    rest = coalesced - passes
    ends = [saved / gain - rest for gain in reversed(PUBLISHED)]
    tables = len(scenario.workload.tables)
    found = (max(ends[0], 0.0), ends[1]) if ends[1] > 0 else None
    return Region(tables, scenario.workload.batch, how, saved, found)


def _passes_ms(scenario: Scenario) -> float:
    stages = scenario.with_policy(COALESCED).graph.pipeline.streams["compute"]
    return 1e3 * sum(float(scenario.costs.seconds(stage.work)) for stage in stages)


def regions(folder: Path | None = None) -> Iterator[tuple[Region, ...]]:
    """Yield the regions over each baseline for every number of tables and keys."""
    scenario = load((folder or shipped_folder()) / FILE)
    for tables in TABLES:
        for keys in KEYS:
            one = shaped(scenario, tables, keys)
            yield tuple(region(one, how) for how in BASELINES)


def table(folder: Path | None = None) -> str:
    """Return the regions as a table in Markdown."""
    heads = [f"{word}, calls {how}" for how in BASELINES for word in ("saved, ms", "passes, ms")]
    lines = [["tables", "keys a table", *heads], ["---:"] * (2 + len(heads))]
    for found in regions(folder):
        cells = [cell for one in found for cell in (f"{one.saved_ms:,.1f}", _span(one.passes_ms))]
        lines.append([str(found[0].tables), f"{found[0].keys:,}", *cells])
    return "\n".join(_line(line) for line in lines)


def _span(passes: tuple[float, float] | None) -> str:
    return "never" if passes is None else f"{passes[0]:,.0f} to {passes[1]:,.0f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(table())
