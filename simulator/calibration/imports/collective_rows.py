"""What tests of collectives print, in one form: tables of rows, whichever program printed them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from simulator.calibration.collective_tables import OPERATIONS
from simulator.costs.curves import BUS_FACTORS
from simulator.errors import InputError, Where, did_you_mean

MOST_ROWS = 1_000_000
MOST_DIGITS, MOST_BYTES, MOST_RANKS = 18, 10**18, 10**7
LEAST_US, MOST_US = 1e-6, 1e12  # of one collective, 1 ps to 1e6 s; beyond it a unit was mistaken
ONE_HOST = "the log does not say on how many hosts: taken as one (--nodes says it)"
NAMES: Mapping[str, str] = {name.replace("_", ""): operation for name, operation in OPERATIONS.items()} | {
    "alltoallv": "all_to_all",
    "alltoallsingle": "all_to_all",
    "alltoallvc": "all_to_all",
    "allgatherbase": "all_gather",
    "reducescatterbase": "reduce_scatter",
    "bcast": "broadcast",
    "pt2pt": "point_to_point",
}


@dataclass(frozen=True)
class Row:
    """One message size: `time_us` out of place, `in_place_us` where the test printed it (else None).

    `wrong` is the number of wrong elements as printed; empty where none were counted.
    """

    size: int
    time_us: float
    wrong: str = ""
    in_place_us: float | None = None
    dtype: str = ""


@dataclass(frozen=True)
class Facts:
    """What a person knows and a log may not say."""

    operation: str | None = None
    ranks: int | None = None
    nodes: int | None = None
    accelerator: str = ""
    library: str = ""

    def filled(self, other: "Facts") -> "Facts":
        """Return these facts, the unknown ones taken from `other`."""
        return Facts(
            self.operation or other.operation,
            self.ranks or other.ranks,
            self.nodes or other.nodes,
            self.accelerator or other.accelerator,
            self.library or other.library,
        )


@dataclass(frozen=True)
class Found:
    """A table as it stood in a file: what was said about it, its rows, and the line it began in.

    `named` is the collective that the name of the file tells: a guess, which anything else overrules.
    """

    facts: Facts
    rows: tuple[Row, ...]
    where: Where
    named: str | None = None


@dataclass(frozen=True)
class Imported:
    """A table that says all that a fit needs: `operation` is one of those that curves know.

    `note` is what had to be assumed, empty where nothing was.
    """

    operation: str
    ranks: int
    nodes: int
    accelerator: str
    library: str
    rows: tuple[Row, ...]
    where: Where
    note: str = ""

    def bus_gbps(self, row: Row) -> float:
        """Return the bus bandwidth of a row, 1e9 bytes/s."""
        return row.size / row.time_us / 1e3 * BUS_FACTORS[self.operation](self.ranks)


@dataclass(frozen=True)
class Log:
    """What one file held: tables, and what had to be left out, in words."""

    tables: tuple[Found, ...]
    notes: tuple[str, ...] = ()


class Reader(Protocol):
    """Reads one kind of output."""

    def __call__(self, path: str) -> Log:
        """Return what the file holds. Raises InputError."""


def operation(name: str, where: Where | None = None) -> str:
    """Return our word for a collective, as other programs spell it. Raises InputError for unknown ones."""
    short = name.lower().replace("_", "").replace("-", "")
    if short not in NAMES:
        raise InputError(
            f'the collective "{name}" is unknown{did_you_mean(name, set(NAMES.values()))}', where
        )
    return NAMES[short]


def is_operation(name: str) -> bool:
    """Return whether some program calls a collective that we know `name`."""
    return name.lower().replace("_", "").replace("-", "") in NAMES


def completed(found: Iterable[Found], given: Facts) -> tuple[Imported, ...]:
    """Return tables with `given` filled in; where nobody says how many hosts, one is taken and noted.

    Raises InputError naming what else neither log nor person says, what both say differently, and numbers
    that no measurement has.
    """
    return tuple(_completed(one, _agreed(one, given).filled(Facts(one.named))) for one in found)


def _agreed(found: Found, given: Facts) -> Facts:
    """Return the facts of both. Raises InputError where a person contradicts what the log says."""
    said = found.facts
    if given.ranks and said.ranks and given.ranks != said.ranks:
        problem = f"the log says {said.ranks} ranks, --ranks {given.ranks}: leave it out, or give another log"
        raise InputError(problem, found.where)
    if given.operation and said.operation and is_operation(said.operation):
        ours, theirs = (operation(name, found.where) for name in (given.operation, said.operation))
        if ours != theirs:
            problem = f"the log says {theirs}, --collective {ours}: leave it out, or give another log"
            raise InputError(problem, found.where)
    return given.filled(said)


def whole(digits: str, where: Where) -> int:
    """Return the number that digits spell. Raises InputError for one that counts nothing, being too long."""
    if len(digits) > MOST_DIGITS:
        raise InputError(f"a whole number of {len(digits)} digits: at most {MOST_DIGITS} are read", where)
    return int(digits)


def _check_rows(found: Found) -> None:
    for row in found.rows:
        if not 0 <= row.size <= MOST_BYTES:
            raise InputError(f"a size of more than {MOST_BYTES:g} bytes", found.where)
        for time in (row.time_us, row.in_place_us):
            if time is not None and not LEAST_US <= time <= MOST_US:
                raise InputError(f"a time of {time:g} us: {LEAST_US:g} to {MOST_US:g} are read", found.where)


def _completed(found: Found, facts: Facts) -> Imported:
    if facts.operation is None:
        raise InputError("the log does not say which collective this is: give --collective", found.where)
    if facts.ranks is None:
        raise InputError("the log does not say how many ranks took part: give --ranks", found.where)
    if facts.ranks > MOST_RANKS:
        raise InputError(f"more than {MOST_RANKS:,} ranks", found.where)
    _check_rows(found)
    nodes = facts.nodes or 1
    if facts.ranks % nodes:
        raise InputError(f"{facts.ranks} ranks do not fill {nodes} nodes evenly: give --nodes", found.where)
    name = operation(facts.operation, found.where)
    told = (name, facts.ranks, nodes, facts.accelerator, facts.library, found.rows, found.where)
    return Imported(*told, note="" if facts.nodes or facts.ranks == 1 else ONE_HOST)


def merged(tables: Iterable[Imported]) -> tuple[Imported, ...]:
    """Return tables of the same collective, scale and library put together: repeats of one test."""
    together: dict[tuple[object, ...], Imported] = {}
    for one in tables:
        key = (one.operation, one.ranks, one.nodes, one.accelerator, one.library)
        known = together.get(key)
        together[key] = one if known is None else replace(known, rows=known.rows + one.rows)
    return tuple(together.values())
