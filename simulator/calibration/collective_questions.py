"""Every measured collective predicted once, from measurements that do not hold it.

A table at more nodes than others of its cluster is predicted as a whole from those (what a fit is for);
any other table size by size, each from its other sizes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.calibration.collective_held_out import FEWEST_KNOWN, FURTHEST, HeldOut, at_scale
from simulator.calibration.collective_tables import Table, measured
from simulator.costs.curves import LogLog

SIZES, END_SIZES, TWO_SIZES = "other sizes", "end sizes", "two sizes"
NEIGHBOURS = 2  # sizes on either side that a point of a curve depends on
SCALES, LENT = "larger scales", "networks lent"


@dataclass(frozen=True)
class Answered:
    """What is said of one size of a table: `seconds`, or None and the reason in `refused`.

    `question` says from what; `beyond` in which ways the size lies outside of that.
    """

    table: Table
    size: float
    seconds: float | None
    question: str
    beyond: tuple[str, ...] = ()
    refused: str = ""


def answered(tables: Sequence[Table]) -> Iterator[Answered]:
    """Yield each distinct size of each of `tables` once."""
    drawable = [table for table in tables if len(set(table.sizes)) >= FEWEST_KNOWN]
    for table in tables:
        found = _from_smaller(table, drawable)
        yield from _scaled(found) if found is not None and found.predicted else _other_sizes(table)


def _from_smaller(table: Table, known: Sequence[Table]) -> HeldOut | None:
    """Return the table as foretold from the next smaller scales of its cluster; None where there are none."""
    nodes = {
        one.scale.nodes
        for one in known
        if (one.cluster, one.operation) == (table.cluster, table.operation)
        and one.scale.nodes < table.scale.nodes <= FURTHEST * one.scale.nodes
    }
    return at_scale(table, known, max(nodes)) if nodes else None


def _scaled(found: HeldOut) -> Iterator[Answered]:
    grown = f"{found.table.scale.nodes} nodes from at most {found.known_nodes}"
    borrowed = f"the network of {found.lender}, scaled by the rates of cards" if found.lender else ""
    beyond = tuple(filter(None, (grown, borrowed)))
    said = dict(zip(found.sizes, found.predicted or (), strict=True))
    for size, seconds in said.items():
        yield Answered(found.table, size, seconds, LENT if found.lender else SCALES, beyond)


def _other_sizes(table: Table) -> Iterator[Answered]:
    if len(set(table.sizes)) < FEWEST_KNOWN:
        reason = "the table has one size only, and no smaller scale of its cluster is in the folder"
        yield from (Answered(table, size, None, SIZES, refused=reason) for size in set(table.sizes))
        return
    curve = measured([table]).curve
    assert isinstance(curve, LogLog)
    for place, size in enumerate(curve.sizes):
        yield _left_out(table, curve, place, size)


def _left_out(table: Table, curve: LogLog, place: int, size: float) -> Answered:
    near = slice(max(0, place - NEIGHBOURS), place + NEIGHBOURS + 1)  # those farther off have no say
    at = place - near.start
    around = (one[near] for one in (curve.sizes, curve.times))
    sizes, times = (one[:at] + one[at + 1 :] for one in around)
    if len(sizes) < FEWEST_KNOWN:
        beyond = ("from one other size, in proportion",)
        return Answered(table, size, times[0] * size / sizes[0], TWO_SIZES, beyond)
    seconds = float(LogLog(sizes, times).seconds(np.array([size]))[0])
    if sizes[0] < size < sizes[-1]:
        return Answered(table, size, seconds, SIZES)
    edge = "smaller" if size < sizes[0] else "larger"
    return Answered(table, size, seconds, END_SIZES, (f"{edge} than all other sizes of the table",))
