"""Which ranks share a host, and how far hosts are alike.

Ranks of a host that are all alike do the same at the same time: each has an even part, and one column
stands for all such ranks of all hosts. Where ranks of a host differ, they share it; hosts with the same
ranks (in any order) are alike again and are folded into one.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from simulator.engine.durations import Durations
from simulator.quantities import IntArray


@dataclass(frozen=True, eq=False)
class Hosted:
    """Durations by column; `together` lists the columns that share a host, each with its ranks there.

    Columns in none of them have their even part. `kind_of` is the kind of rank of each column.
    """

    durations: Durations
    together: list[list[tuple[int, int]]]
    kind_of: IntArray


def hosted(durations: Durations, per_host: int, kind_of: IntArray | None, folded: bool) -> Hosted:
    """Return the columns that are needed where ranks of hosts of `per_host` may differ."""
    kinds = np.zeros(len(durations.column_of), dtype=np.int64) if kind_of is None else kind_of
    alike = _numbered(durations.column_of * (int(kinds.max()) + 1) + kinds)
    places = alike.reshape(-1, per_host)
    mixed = (places != places[:, :1]).any(axis=1)
    columns = _by_host(places, mixed) if folded else np.arange(len(alike), dtype=np.int64)
    first = np.unique(columns, return_index=True)[1]
    apart = _taken(durations, columns, first)
    return Hosted(apart, _together(columns.reshape(-1, per_host)[mixed]), kinds[first])


def _by_host(places: IntArray, mixed: np.ndarray) -> IntArray:
    """Return a number for each rank: the same where both it and its host are alike."""
    host_class = np.zeros(len(places), dtype=np.int64)
    if mixed.any():
        _, inverse = np.unique(np.sort(places[mixed], axis=1), axis=0, return_inverse=True)
        host_class[mixed] = 1 + inverse.reshape(-1)
    return _numbered((host_class[:, None] * (int(places.max()) + 1) + places).reshape(-1))


def _numbered(keys: IntArray) -> IntArray:
    """Return keys as numbers from 0, in order of first appearance."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    place = np.empty_like(first)
    place[np.argsort(first, kind="stable")] = np.arange(len(first))
    return place[inverse.reshape(-1)].astype(np.int64)


def _together(hosts: IntArray) -> list[list[tuple[int, int]]]:
    """Return the columns of each class of hosts once."""
    known = {tuple(sorted(Counter(row).items())): None for row in hosts.tolist()}
    return [list(columns) for columns in known]


def _taken(durations: Durations, columns: IntArray, first: IntArray) -> Durations:
    """Return the durations of each column. Cycles that share their memory go on to."""
    source, ns = durations.column_of[first], durations.ns
    if not np.array_equal(source, np.arange(ns.shape[2])):
        cycles = 1 if ns.strides[1] == 0 else ns.shape[1]
        ns = np.broadcast_to(ns[:, :cycles, source], (len(ns), ns.shape[1], len(source)))
    return replace(durations, ns=ns, column_of=columns)
