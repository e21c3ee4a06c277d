"""From tables to curves: one per system, a cluster under one setting of its library, and operation.

A scale that a setting was not tested at is borrowed from another setting of the same cluster, if the
two differ less where both were tested than growing the own curve that far would err, or if the own
curve has nothing to grow from.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, log2

import numpy as np

from simulator.calibration.collective_lending import lent
from simulator.calibration.collective_tables import Setting, Table, measured
from simulator.costs.curves import Curve, Measured, Scale
from simulator.costs.growth import law
from simulator.errors import InputError
from simulator.quantities.statistics import COVERAGE

# Mean error of growing a curve by one doubling of the nodes, as an earlier study of such tables found.
PER_DOUBLING = 0.08
STEEPEST = 0.5  # bandwidth is not believed to decay faster than with the root of the nodes
DECAY_SIZES = 4  # so many halvings of the largest common message say how bandwidth decays

DECAYING = ("all_to_all", "all_gather", "reduce_scatter")

Scales = Mapping[Scale, Measured]


@dataclass(frozen=True)
class System:
    """One operation of a cluster under one setting: its `tables`, and the `curve` through them.

    `decay` is (low, value, high), the exponent by which bandwidth falls with nodes, or None where the
    law has none or one scale between hosts says nothing about it. `borrowed` says which scales come
    from which setting; `lent` are tables of another cluster, scaled to be those of this one.
    """

    cluster: str
    operation: str
    setting: Setting
    tables: tuple[Table, ...]
    curve: Curve
    decay: tuple[float, float, float] | None
    borrowed: Mapping[Scale, Setting]
    lent: tuple[Table, ...] = ()

    @property
    def name(self) -> str:
        """A name that can stand in a file: cluster, setting, operation."""
        text = f"{self.cluster} {self.setting} {self.operation}".lower()
        words = "".join(letter if letter.isalnum() and letter.isascii() else " " for letter in text).split()
        return "_".join(words)


def systems(tables: Iterable[Table]) -> tuple[System, ...]:
    """Return a system for each cluster, operation and setting in `tables`, in alphabetical order."""
    everything = tuple(tables)
    together: dict[tuple[str, str], list[Table]] = {}
    for table in everything:
        together.setdefault((table.cluster, table.operation), []).append(table)
    return tuple(
        system([*alike, *lent(alike, everything)], setting)
        for _, alike in sorted(together.items())
        for setting in sorted({table.setting for table in alike}, key=str)
    )


def system(tables: Sequence[Table], setting: Setting) -> System:
    """Return the system of `setting` from the `tables` of one cluster and operation.

    A setting without a table gets the curve of the one most like it: same environment first, then
    same library. Raises InputError for no tables, or tables of several clusters or operations.
    """
    if len({(table.cluster, table.operation) for table in tables}) != 1:
        raise InputError("a system is fitted from tables of one cluster and one operation")
    by_setting = _by_setting(tables)
    used = setting if setting in by_setting else _most_alike(by_setting, setting)
    borrowed = _borrowed(by_setting, used)
    scales = dict(by_setting[used]) | {scale: by_setting[other][scale] for scale, other in borrowed.items()}
    decay = _decay(tables[0].operation, scales)
    own = tuple(table for table in tables if table.setting == used and not table.lender)
    curve = _curve(tables[0].operation, scales, decay[1] if decay else 0.0)
    others = tuple(table for table in tables if table.lender)
    return System(tables[0].cluster, tables[0].operation, setting, own, curve, decay, borrowed, others)


def _curve(operation: str, scales: Scales, decay: float) -> Curve:
    ordered = sorted(scales.values(), key=lambda one: (one.scale.nodes, one.scale.ranks))
    return Curve(operation, tuple(ordered), law(operation, decay))


def _by_setting(tables: Iterable[Table]) -> dict[Setting, dict[Scale, Measured]]:
    together: dict[Setting, dict[Scale, list[Table]]] = {}
    for table in tables:
        together.setdefault(table.setting, {}).setdefault(table.scale, []).append(table)
    return {
        setting: {scale: measured(alike) for scale, alike in scales.items()}
        for setting, scales in together.items()
    }


def _most_alike(by_setting: Mapping[Setting, Scales], wanted: Setting) -> Setting:
    return min(by_setting, key=lambda one: (_unlike(one, wanted), -len(by_setting[one]), str(one)))


def _unlike(one: Setting, other: Setting) -> tuple[bool, bool]:
    return one.environment != other.environment, one.library != other.library


def _borrowed(by_setting: Mapping[Setting, Scales], own: Setting) -> dict[Scale, Setting]:
    """Return which setting lends which scale to `own`."""
    lenders: dict[Scale, Setting] = {}
    missing = {scale for scales in by_setting.values() for scale in scales} - by_setting[own].keys()
    for scale in missing:
        offers = {other: scales for other, scales in by_setting.items() if scale in scales}
        unlike = {other: _difference(by_setting[own], scales) for other, scales in offers.items()}
        nearest = min(unlike, key=lambda other: (unlike[other], _unlike(other, own), str(other)))
        growing = _growing_error(by_setting[own], scale)
        if growing == inf or unlike[nearest] < growing:
            lenders[scale] = nearest
    return lenders


def _difference(one: Scales, other: Scales) -> float:
    """Return the mean |log ratio| of two settings over sizes, at the scales that both have (their median)."""
    shared = [scale for scale in one if scale in other]
    return float(np.median([_mean_ratio(one[at], other[at]) for at in shared])) if shared else inf


def _mean_ratio(one: Measured, other: Measured) -> float:
    least, most = max(one.least, other.least), min(one.most, other.most)
    if least > most:
        return inf
    sizes = np.geomspace(least, most, 1 + round(log2(most / least))).astype(np.float64)
    return float(np.abs(np.log(one.curve.seconds(sizes) / other.curve.seconds(sizes))).mean())


def _growing_error(own: Scales, scale: Scale) -> float:
    alike = [known for known in own if (known.nodes > 1) == (scale.nodes > 1)]
    return min((PER_DOUBLING * abs(log2(scale.nodes / known.nodes)) for known in alike), default=inf)


def _decay(operation: str, scales: Scales) -> tuple[float, float, float] | None:
    """Return how time per step at the largest messages grew from fewest to most nodes, as an exponent.

    The value is the median over four sizes, the ends enclose the middle `COVERAGE` of the medians of all
    draws of these sizes with replacement.
    """
    between = sorted((one for one in scales.values() if one.scale.nodes > 1), key=lambda one: one.scale.nodes)
    if operation not in DECAYING or len(between) < 2 or between[0].scale.nodes == between[-1].scale.nodes:
        return None
    first, last = between[0], between[-1]
    message = min(one.most / one.scale.ranks for one in (first, last))
    sizes = np.asarray(last.scale.ranks * message / 2.0 ** np.arange(DECAY_SIZES), dtype=np.float64)
    steady = _curve(operation, {first.scale: first}, 0.0).seconds(sizes, last.scale.ranks, last.scale.nodes)
    growth = np.log(last.curve.seconds(sizes) / steady) / np.log(last.scale.nodes / first.scale.nodes)
    found = np.clip(growth, 0.0, STEEPEST)
    again = np.median(np.array(list(product(found.tolist(), repeat=DECAY_SIZES))), axis=1)
    low, high = np.quantile(again, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return float(low), float(np.median(found)), float(high)
