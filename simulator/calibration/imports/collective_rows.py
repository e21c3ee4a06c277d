"""What tests of collectives print, in one form: tables of rows, whichever program printed them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from simulator.calibration.collective_tables import OPERATIONS
from simulator.costs.curves import BUS_FACTORS
from simulator.errors import InputError, Where, did_you_mean

MOST_ROWS = 1_000_000
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
    """What a person knows and a log may not say; what is given wins over what the log says."""

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
    """A table as it stood in a file: what was said about it, its rows, and the line it began in."""

    facts: Facts
    rows: tuple[Row, ...]
    where: Where


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

    Raises InputError naming what else neither log nor person says.
    """
    return tuple(_completed(one, given.filled(one.facts)) for one in found)


def _completed(found: Found, facts: Facts) -> Imported:
    if facts.operation is None:
        raise InputError("the log does not say which collective this is: give --collective", found.where)
    if facts.ranks is None:
        raise InputError("the log does not say how many ranks took part: give --ranks", found.where)
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
