"""Which rank holds which rows, as the `sharding` part of a scenario: pieces of tables and where they lie."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Any

from analysis.training.families import framework
from analysis.training.rows import Plan, Row
from simulator.errors import InputError

Part = dict[str, Any]
CACHED = 0.1  # of the rows of dynamic tables, where the model does not say it


def sharding(row: Row, tables: Sequence[Part], cached: float = CACHED) -> Part:
    """Return the `sharding` part of a scenario whose tables no plan places; `cached` is a share of rows."""
    family = framework(row)
    if family.hybrid:
        return {
            "kind": "mixture",
            "exchange": "rows",
            "default": _on_device("row_wise"),
            "rules": _none(tables),
        }
    if row.model == "hstu_fixed":
        return {"kind": "row_wise", "tier": {"kind": "hbm_cache", "share": cached}, "exchange": "rows"}
    return _spread(tables, row.accelerators, _PLACEMENTS.get(row.model.split("_")[0], _idlest))


def _none(tables: Sequence[Part]) -> list[Part]:
    """Return a rule that changes nothing: a mixture has at least one."""
    return [{"tables": [str(tables[0]["name"])], "sharding": _on_device("row_wise")}]


def _on_device(kind: str, **more: Any) -> Part:
    return {"kind": kind, "tier": "hbm", **more}


def balanced(tables: Sequence[Part], blocks: int, copied: Sequence[int] = (), room: float = inf) -> Plan:
    """Return tables spread over `blocks` so that each has about as much to do, and at most `room` rows.

    A table costs its lookups and the sum that it sends. One that costs more than an even share, or has
    more rows than half of the room, is cut; the costliest pieces are placed first.
    """
    own = [place for place in range(len(tables)) if place not in copied]
    cost = {place: float(tables[place]["pooling"]) + 1 for place in own}
    rows = {place: float(tables[place]["rows"]) for place in own}
    even = sum(cost.values()) / blocks
    cuts = {p: max(1, min(blocks, max(round(cost[p] / even), ceil(2 * rows[p] / room)))) for p in own}
    order = sorted((max(cost[p] / even, rows[p] / room) / cuts[p], p) for p in own for _ in range(cuts[p]))
    load, held, lists = [0.0] * blocks, [0.0] * blocks, [set[int]() for _ in range(blocks)]
    for _, place in reversed(order):
        size, piece = rows[place] / cuts[place], cost[place] / cuts[place]
        free = [one for one in range(blocks) if place not in lists[one]]
        fitting = [one for one in free if held[one] + size <= room]
        block = min(fitting or free, key=lambda one: (load if fitting else held)[one])
        load[block], held[block] = load[block] + piece, held[block] + size
        lists[block].add(place)
    return tuple(tuple(sorted(one)) for one in lists)


def placed(plan: Plan, copied: Sequence[int], ranks: int) -> Part:
    """Return a plan by rank, or by block of ranks, such as a host, that shares a list.

    Raises InputError for a plan that places nothing.
    """
    span = ranks // len(plan)
    owners: dict[int, list[int]] = {}
    for block, listed in enumerate(plan):
        for table in listed:
            if table not in copied:
                owners.setdefault(table, []).append(block)
    rules = [_rule(table, blocks, span) for table, blocks in owners.items()]
    if copied:
        rules.insert(0, {"tables": [f"t{table}" for table in copied], "sharding": {"kind": "data_parallel"}})
    if not rules:
        raise InputError("the plan places no table")
    return {"kind": "mixture", "exchange": "pooled", "default": _on_device("table_wise"), "rules": rules}


def _rule(table: int, blocks: Sequence[int], span: int) -> Part:
    parts = [{"rank": block * span, "rows": 1 / len(blocks), "span": span} for block in blocks]
    return {"tables": [f"t{table}"], "sharding": _on_device("placed", parts=parts)}


@dataclass(frozen=True)
class Piece:
    """Some columns of one table: its bytes, what a sample has it do, and the share of the columns."""

    table: str
    bytes: float
    load: float
    columns: float


def pieces(tables: Sequence[Part], ranks: int) -> list[Piece]:
    """Return all tables in pieces, largest first; none is larger than half an even share of all bytes."""
    sizes = [4.0 * one["rows"] * one["dimension"] for one in tables]
    most = sum(size * one["copies"] for size, one in zip(sizes, tables, strict=True)) / ranks / 2
    found: list[Piece] = []
    for size, one in zip(sizes, tables, strict=True):
        cuts = 1
        while size / cuts > most and cuts < min(one["dimension"], ranks):
            cuts *= 2
        load = one["dimension"] * (one["pooling"] + 1) / cuts
        found += [Piece(name, size / cuts, load, 1 / cuts) for name in names(one) for _ in range(cuts)]
    return sorted(found, key=lambda piece: (-piece.bytes, piece.table))


def _dealt(tables: Sequence[Part], ranks: int) -> list[int]:
    """Return the rank of each piece, dealt out there and back again (`memory_balanced` of the source)."""
    turn = [*range(ranks), *reversed(range(ranks))]
    return [turn[place % (2 * ranks)] for place in range(len(pieces(tables, ranks)))]


def _idlest(tables: Sequence[Part], ranks: int) -> list[int]:
    """Return the rank of each piece, the busiest first, put where there is least to do and still room."""
    listed = pieces(tables, ranks)
    room = 1.25 * sum(piece.bytes for piece in listed) / ranks
    held, load, found = [0.0] * ranks, [0.0] * ranks, [0] * len(listed)
    for place in sorted(range(len(listed)), key=lambda one: -listed[one].load):
        piece = listed[place]
        fitting = [one for one in range(ranks) if held[one] + piece.bytes <= room] or list(range(ranks))
        rank = min(fitting, key=lambda one: load[one])
        held[rank], load[rank], found[place] = held[rank] + piece.bytes, load[rank] + piece.load, rank
    return found


def _spread(tables: Sequence[Part], ranks: int, put: Callable[[Sequence[Part], int], list[int]]) -> Part:
    parts = dict[str, list[Part]]()
    for piece, rank in zip(pieces(tables, ranks), put(tables, ranks), strict=True):
        parts.setdefault(piece.table, []).append({"rank": rank, "columns": piece.columns})
    rules = [{"tables": [name], "sharding": _on_device("placed", parts=own)} for name, own in parts.items()]
    return {"kind": "mixture", "exchange": "pooled", "default": _on_device("table_wise"), "rules": rules}


def names(table: Part) -> list[str]:
    """Return the names of a table's copies, as scenarios number them."""
    if table["copies"] == 1:
        return [table["name"]]
    return [f"{table['name']}_{copy}" for copy in range(table["copies"])]


# How the sources place tables, where they say it: NVIDIA's synthetic models deal them out by size.
_PLACEMENTS = {"de": _dealt}
