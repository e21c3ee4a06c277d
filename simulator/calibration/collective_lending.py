"""A network for clusters that were tested inside hosts only: that of another cluster, scaled by its cards.

Lent are the tables between hosts of the cluster whose hosts are most alike: as many ranks, and cards of the
same rate. Sizes are scaled so that the cards of a host need the same time for what leaves it; start-up and
changes of protocol come along. No number is fitted for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import log2

import numpy as np

from simulator.calibration.collective_tables import Setting, Table, measured
from simulator.costs.curves import BUS_FACTORS, Scale

FURTHEST = 4.0  # cards are alike up to so many times each other's rate
FEWEST_SIZES = 6  # of a table that shows how a curve bends
BEYOND_CARDS = 2.5  # times the rate of the cards: hosts that share a fast domain (two hosts: at most 2.14)
PER_RANK = ("all_to_all", "point_to_point")  # what leaves a host is so many bytes of each of its ranks

Network = tuple[Table, ...]


def lent(own: Sequence[Table], others: Iterable[Table], card_rate: float | None = None) -> Network:
    """Return tables between hosts for the settings in `own`, tables of one cluster and operation.

    `card_rate` is that of the cluster's cards where `own` does not tell it. Empty where `own` has a
    table between hosts, where the rate of its cards is not known, and where no network of `others` is
    like its own.
    """
    rate = next((table.card_rate for table in own if table.card_rate), card_rate)
    if rate is None or not own or any(table.scale.nodes > 1 for table in own):
        return ()
    host = replace(own[0], card_rate=rate)
    networks = _networks(host, others)
    if not networks:
        return ()
    nearest = min(networks, key=lambda network: _unlike(host, network[0], len(network)))
    settings = sorted({table.setting for table in own}, key=str)
    return tuple(_scaled(one, host, setting) for one in nearest for setting in settings)


def _networks(own: Table, others: Iterable[Table]) -> list[Network]:
    """Return what other clusters could lend, each the tables of its fastest setting."""
    clusters: dict[str, dict[Setting, list[Table]]] = {}
    for table in others:
        if table.cluster != own.cluster and table.operation == own.operation and _is_fit(table):
            clusters.setdefault(table.cluster, {}).setdefault(table.setting, []).append(table)
    fastest = [_fastest(settings) for _, settings in sorted(clusters.items())]
    return [one for one in fastest if abs(log2(_ratio(one[0], own))) <= log2(FURTHEST)]


def _is_fit(table: Table) -> bool:
    """Whether a table shows a network of cards, at enough sizes, and not a fast domain of several hosts."""
    if table.scale.nodes == 1 or table.card_rate is None or len(set(table.sizes)) < FEWEST_SIZES:
        return False
    bus = BUS_FACTORS[table.operation](table.scale.ranks) * np.array(table.sizes) / np.array(table.times)
    return float(bus.max()) <= BEYOND_CARDS * _rate(table)


def _fastest(settings: Mapping[Setting, list[Table]]) -> Network:
    """Return the tables of the setting that is fastest at the fewest nodes, over the sizes all have."""
    first = {one: min(tables, key=lambda table: table.scale.nodes) for one, tables in settings.items()}
    least = max(min(table.sizes) for table in first.values())
    most = min(max(table.sizes) for table in first.values())
    sizes = np.geomspace(least, max(most, least), 32)
    mean = {one: np.log(measured([table]).curve.seconds(sizes)).mean() for one, table in first.items()}
    best = min(mean, key=lambda one: (first[one].scale.nodes, mean[one], str(one)))
    return tuple(settings[best])


def _rate(table: Table) -> float:
    """Return the bytes/s of the cards through which what a size stands for leaves a host."""
    assert table.card_rate is not None
    return table.card_rate * (1 if table.operation in PER_RANK else table.scale.per_node)


def _ratio(lender: Table, own: Table) -> float:
    return _rate(lender) / _rate(own)


def _unlike(own: Table, lender: Table, scales: int) -> tuple[float, bool, int, str]:
    """Return how unlike the hosts are in halvings, then whether the network is of another make."""
    halvings = abs(log2(_ratio(lender, own))) + abs(log2(lender.scale.per_node / own.scale.per_node))
    return round(halvings, 6), _make(lender) != _make(own), -scales, lender.cluster


def _make(table: Table) -> str:
    return table.network.split("(")[0]


def _scaled(table: Table, own: Table, setting: Setting) -> Table:
    """Return a table of `own` under `setting` as the lender's hosts would have measured it with its cards."""
    ratio, nodes = _ratio(table, own), table.scale.nodes
    return replace(
        table,
        cluster=own.cluster,
        setting=setting,
        scale=Scale(nodes * own.scale.per_node, nodes),
        sizes=tuple(size / ratio for size in table.sizes),
        card_rate=own.card_rate,
        lender=f"{table.cluster} ({table.setting})",
    )
