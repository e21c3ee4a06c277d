"""Words that several views share."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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
    return f"{cluster.accelerators}, batch {scenario.workload.batch:,} each"


def memory_use(scenario: Scenario, need: Mapping[str, float]) -> Iterator[str]:
    """Yield what each worker needs of each memory, and what it has."""
    cluster = scenario.cluster
    have = {"hbm": cluster.hbm_bytes, "host": cluster.dram_bytes_per_rank}
    for name, words in (("hbm", "device"), ("host", "host")):
        yield f"{format_bytes(need[name])} of {format_bytes(have[name])} {words} memory"


@dataclass(frozen=True)
class Fold:
    """Neighbouring stages of a cycle told as one: from `begin` up to `end`, `names` come `times` times."""

    names: str
    times: int
    begin: int
    end: int

    def __str__(self) -> str:
        """Return `exchange, send x 7`, or the name alone of what comes once."""
        return self.names if self.times == 1 else f"{self.names} x {self.times}"


def arrows(stages: Sequence[str]) -> str:
    """Return a cycle of stages in one line; long ones by kind: `exchange, send x 7`."""
    if len(stages) <= MOST_STAGES:
        return " > ".join(stages)
    return " > ".join(map(str, folded(stages)))


def folded(stages: Sequence[str]) -> Iterator[Fold]:
    """Fold stages that alternate: exchange.2, send.1, exchange.3, send.2 is `exchange, send` x 2."""
    families = [stage.partition(".")[0] for stage in stages]
    place = 0
    while place < len(families):
        pair = families[place : place + 2]
        end = place + 2
        while len(pair) == 2 and families[end : end + 2] == pair:
            end += 2
        if end == place + 2:
            yield Fold(stages[place], 1, place, place + 1)
            place += 1
            continue
        alike = pair[0] == pair[1]
        yield Fold(pair[0] if alike else ", ".join(pair), (end - place) // (1 if alike else 2), place, end)
        place = end
