"""The smallest changes with which a scenario fits in memory, each checked by building it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from simulator.scenario.scenario import Scenario

MOST_WORKERS = 1 << 17
FEWEST_TRIES = 4
MOST_BUILT = 10_000  # tables and products built to find what fits; beyond that the answer may be less tight
Fits = Callable[[Scenario, list[str]], bool]


def what_fits(scenario: Scenario, fits: Fits) -> list[str]:
    """Return what to change, one thing each, to words that go on after "it fits".

    The fewest workers more, or where memory grows with them, the most that are fewer; the largest batch;
    tables cut finer, or in host memory. `fits` builds the scenario with some settings and says whether that
    fits. Of a scenario that takes long to build few are tried: what is said fits, but may not be smallest.
    """
    hosts, batch, per_host = scenario.cluster.hosts, scenario.workload.batch, scenario.cluster.per_host
    tries = max(FEWEST_TRIES, MOST_BUILT // _parts_built(scenario))
    more = _least(hosts, MOST_WORKERS // per_host, _Tries(scenario, fits, "cluster.hosts", tries))
    workers = more or _most(hosts, _Tries(scenario, fits, "cluster.hosts", tries))
    less = _most(batch, _Tries(scenario, fits, "workload.batch", tries))
    found = [f"with {workers * per_host:,} workers"] if workers else []
    found += [f"with a batch of {less:,}"] if less else []
    return found + [f"with {' and '.join(way)}" for way in _shardings(scenario, fits)]


def _parts_built(scenario: Scenario) -> int:
    """Return how many tables and products of matrices a build of the scenario goes through."""
    workload = scenario.workload
    return len(workload.tables) + len(workload.model.quantities().products)


@dataclass
class _Tries:
    """Whether the scenario fits with a value at `path`; after `left` tries nothing is found to fit."""

    scenario: Scenario
    fits: Fits
    path: str
    left: int

    def __call__(self, value: int) -> bool:
        self.left -= 1
        return self.left >= 0 and self.fits(self.scenario, [f"{self.path}={value}"])


def _shardings(scenario: Scenario, fits: Fits) -> Iterator[list[str]]:
    """Yield the settings of `sharding` that help: where all tables are sharded alike, by one kind."""
    sharding = scenario.resolved()["sharding"]
    kind = sharding["kind"]
    here = [] if sharding.get("tier") else ["sharding.tier=hbm"]
    ways: list[list[str]] = []
    if kind in ("table_wise", "data_parallel"):
        ways.append(["sharding.kind=row_wise", *here])
    pieces = ["sharding.kind=column_wise"] if kind == "table_wise" else []
    if kind in ("table_wise", "column_wise", "grid"):
        cut = _pieces(scenario, lambda n: fits(scenario, [*pieces, f"sharding.shards={n}"]))
        ways += [[*pieces, f"sharding.shards={cut}"]] if cut else []
    if sharding.get("tier") == "hbm":
        ways.append(["sharding.tier=dram"])
    yield from (way for way in ways if fits(scenario, way))


def _pieces(scenario: Scenario, good: Callable[[int], bool]) -> int | None:
    """Return the fewest pieces of columns, a power of two, that fit; None where none do that are tried."""
    narrowest = min(int(table.dimension) for table in scenario.workload.tables)
    most = min(narrowest, MOST_BUILT // _parts_built(scenario))
    counts = (2**power for power in range(1, most.bit_length()))
    return next((count for count in counts if good(count)), None)


def _least(start: int, end: int, good: Callable[[int], bool]) -> int | None:
    """Return the least n in (start, end] found good by doubling, then halving the gap."""
    bad = start
    while bad < end:
        tried = min(2 * bad, end)
        if good(tried):
            return _narrowed(bad, tried, good)
        bad = tried
    return None


def _most(start: int, good: Callable[[int], bool]) -> int | None:
    """Return the largest n in [1, start) found good by halving, then halving the gap."""
    bad = start
    while bad > 1:
        tried = bad // 2
        if good(tried):
            return _narrowed(bad, tried, good)
        bad = tried
    return None


def _narrowed(bad: int, best: int, good: Callable[[int], bool]) -> int:
    while abs(bad - best) > 1:
        middle = (bad + best) // 2
        bad, best = (bad, middle) if good(middle) else (middle, best)
    return best
