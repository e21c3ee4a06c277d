"""Words that several views share."""

from collections.abc import Iterator, Mapping, Sequence

from simulator.scenario import Scenario
from simulator.units import format_bytes

KIND_WORDS = {
    "compute": "compute",
    "input": "waits for input",
    "lookup": "waits for lookup",
    "all_to_all": "waits for all-to-all",
    "all_reduce": "waits for all-reduce",
    "parameter_server": "waits for servers",
    "other": "waits for other ranks",
}
MOST_STAGES = 12


def sizes(scenario: Scenario) -> str:
    """Return how large the cluster is."""
    cluster = scenario.cluster
    return f"{cluster.ranks:,} x {cluster.accelerator.name}, batch {scenario.workload.batch:,} each"


def memory_use(scenario: Scenario, need: Mapping[str, float]) -> Iterator[str]:
    """Yield what each worker needs of each memory, and what it has."""
    cluster = scenario.cluster
    have = {"hbm": cluster.accelerator.hbm_bytes, "host": cluster.dram_bytes_per_rank}
    for name, words in (("hbm", "device"), ("host", "host")):
        yield f"{format_bytes(need[name])} of {format_bytes(have[name])} {words} memory"


def arrows(stages: Sequence[str]) -> str:
    """Return a cycle of stages in one line; long ones by kind: `exchange, send x 7`."""
    if len(stages) <= MOST_STAGES:
        return " > ".join(stages)
    return " > ".join(f"{name} x {count}" if count > 1 else name for name, count in _folded(stages))


def _folded(stages: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Fold stages that alternate: exchange.2, send.1, exchange.3, send.2 is `exchange, send` x 2."""
    names = [stage.partition(".")[0] for stage in stages]
    place = 0
    while place < len(names):
        pair = names[place : place + 2]
        count = 1
        while len(pair) == 2 and names[place + 2 * count : place + 2 * count + 2] == pair:
            count += 1
        if count > 1:
            yield ", ".join(pair) if pair[0] != pair[1] else pair[0], count * (1 if pair[0] != pair[1] else 2)
            place += 2 * count
        else:
            yield names[place], 1
            place += 1
