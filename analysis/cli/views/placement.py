"""Where tables lie, for people: chips, tables, and how good the placement is."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from analysis.cli.output import pairs, percent, plain, table
from analysis.placed_steps import PlacedSteps
from analysis.placing import MEMORIES, UNIT, Placing
from analysis.sharding_parts import spans
from simulator.sharding.placement import Feedback, Shard, imbalance
from simulator.units import format_bytes

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MOST_CHIPS, MOST_TABLES = 16, 20
WIDEST_RANKS = 16  # characters
CUTS = {"table": "whole", "row": "rows", "column": "columns"}
Pieces = list[tuple[Shard, int]]


def draw_placing(placing: Placing, console: "Console") -> None:
    """Draw the chips, the tables with most to do, and the verdict."""
    placement = placing.placement
    tables = _by_table(placing)
    count = _count(len(tables), "table"), _count(len(placement.shards), "piece")
    chips = _count(placement.chips.count, "chip")
    replicas = placing.scenario.step.placed.world.replicas
    copies = f" (one of {replicas:,} copies)" if replicas > 1 else ""
    heading = f"{placing.scenario.name}: a new plan ({placement.method}) beside the scenario's own sharding"
    console.print(plain(heading), style="bold")
    console.print(plain(f"{count[0]} in {count[1]} on {chips}{copies}; {_change(placing)}"))
    console.print()
    console.print(_chips(placing))
    console.print()
    console.print(_tables(tables))
    console.print()
    console.print(pairs(_verdict(placing)))


def _change(placing: Placing) -> str:
    """Say how even the chips were and will be: by the log, where there is one."""
    after = f"{placing.placement.imbalance:.3f} with this plan"
    if placing.feedback is None:
        return f"imbalance {imbalance(placing.own_loads):.3f} now -> {after}"
    before = placing.feedback.before.imbalance
    return f"imbalance by the log {before:.3f}, placed without it -> {after}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _chips(placing: Placing) -> "Table":
    """Return the chips by number, or where they are many, the busiest and the idlest."""
    placement = placing.placement
    loads, mean = placement.loads.tolist(), float(placement.loads.mean())
    drawn = table("chip", "load per step", "of the mean", MEMORIES[placing.memory], "full", "pieces")
    order = sorted(range(len(loads)), key=lambda chip: -loads[chip])
    many = len(loads) > MOST_CHIPS
    for chip in [*order[: MOST_CHIPS - 4], *order[-4:]] if many else range(len(loads)):
        if many and chip == order[-4]:
            drawn.add_row(f"({len(loads) - MOST_CHIPS:,} more)")
        size = float(placement.memory[chip])
        drawn.add_row(
            str(chip),
            format_bytes(loads[chip]),
            f"{loads[chip] / mean:.3f}" if mean else "-",
            format_bytes(size),
            percent(size / placement.chips.memory),
            str(placement.chip_of.count(chip)),
        )
    return drawn


def _by_table(placing: Placing) -> dict[str, Pieces]:
    """Return the pieces of each table, most load first."""
    found: dict[str, Pieces] = {}
    placement = placing.placement
    for pair in zip(placement.shards, placement.chip_of, strict=True):
        found.setdefault(pair[0].table, []).append(pair)
    return dict(sorted(found.items(), key=lambda item: -_load(item[1])))


def _load(pieces: Pieces) -> float:
    return sum(shard.load for shard, _ in pieces)


def _tables(tables: dict[str, Pieces]) -> "Table":
    drawn = table("table", "cut", "chips", "pieces", "load per step", "of all", "size", left=3)
    total = sum(map(_load, tables.values()))
    for name, pieces in list(tables.items())[:MOST_TABLES]:
        load, size = _load(pieces), sum(shard.memory for shard, _ in pieces)
        drawn.add_row(
            plain(name),
            CUTS.get(pieces[0][0].kind, pieces[0][0].kind),
            _ranks([chip for _, chip in pieces]),
            str(len(pieces)),
            format_bytes(load),
            percent(load / total if total else None),
            format_bytes(size),
        )
    hidden = list(tables.values())[MOST_TABLES:]
    if hidden:
        load = sum(map(_load, hidden))
        share = percent(load / total if total else None)
        drawn.add_row(f"({len(hidden):,} more)", "", "", "", format_bytes(load), share)
    return drawn


def _ranks(chips: Sequence[int]) -> str:
    text = spans(sorted(set(chips)))
    return text if len(text) <= WIDEST_RANKS else f"{text[: WIDEST_RANKS - 3].rpartition(',')[0]},..."


def _gain(feedback: Feedback) -> str:
    before = feedback.before
    first = f"{format_bytes(before.busiest)}, imbalance {before.imbalance:.3f}"
    if feedback.gain == 1.0:
        return f"no gain: the placement by the scenario's own keys ({first}) stays"
    return f"gain {feedback.gain:.3f}: placed by the scenario's own keys, the busiest chip would do {first}"


def _sum_cuts(placing: Placing) -> str:
    by_rows = any(shard.kind == "row" for shard in placing.placement.shards)
    return "by rows only where nothing else fits" if by_rows else "by columns only"


def _steps(steps: PlacedSteps) -> Iterator[tuple[str, str]]:
    """Say what step is predicted, and what is proven of the time that was minimised."""
    count = len(steps.candidates)
    chosen = f"simulated; the shortest of {count} plans" if count > 1 else "simulated"
    before = "does not fit" if steps.before_ms is None else f"{steps.before_ms:.4g} ms"
    keep = "" if steps.gains else ": no gain, keep the scenario's own sharding"
    yield "step", f"{before} now -> {steps.after_ms:.4g} ms with this plan ({chosen}){keep}"
    longest = f"{steps.linear.busiest * 1e3:.4g} ms for its rows, table by table"
    if steps.linear.proven:
        said = "proven: no placement with these cuts has less under this linear cost"
    else:
        said = f"at most {percent(steps.linear.gap, 2)} more than the least under this linear cost"
    yield "longest chip", f"{longest}; {said}"


def _verdict(placing: Placing) -> Iterator[tuple[str, str]]:
    placement = placing.placement
    if placing.steps is not None:
        yield from _steps(placing.steps)
    yield "imbalance", f"{placement.imbalance:.3f} of bytes (chips x busiest / sum; 1 is even)"
    busiest = format_bytes(placement.busiest)
    if placement.proven:
        yield (
            "busiest chip",
            f"{busiest} per step; proven: no placement with these cuts has fewer bytes there",
        )
    else:
        gap = f"at most {percent(placement.gap, 2)} more bytes than the least"
        yield "busiest chip", f"{busiest} per step, {gap} ({format_bytes(placement.bound)} or more)"
    room = format_bytes(placement.chips.memory)
    yield "memory", f"{format_bytes(float(placement.memory.max()))} on the fullest chip, room for {room}"
    own = placing.own_loads
    if placing.feedback is None:
        now = f"imbalance {imbalance(own):.3f}, busiest chip {format_bytes(float(own.max()))} per step"
        yield "now", f"{now}, with the scenario's own sharding"
    else:
        yield "by the log", _gain(placing.feedback)
    yield "load", UNIT
    if placing.sums:
        yield (
            "cuts",
            f"{_sum_cuts(placing)}: each piece of the rows would send a sum of its own for every sample",
        )
