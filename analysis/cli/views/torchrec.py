"""A sharding plan of TorchRec, for people."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.cli.output import plain, table
from analysis.sharding_parts import oddities, spans
from simulator.sharding.placement.torchrec import TorchRecPlan

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDEST_RANKS = 20  # characters


def draw_plan(file: Path, plan: TorchRecPlan, console: "Console") -> None:
    """Draw every table by module, how often each kind occurs, and what is unusual."""
    tables = "1 table" if len(plan.tables) == 1 else f"{len(plan.tables):,} tables"
    console.print(plain(f"{file}: {tables} on {plan.ranks:,} ranks"), style="bold")
    for module in dict.fromkeys(one.module for one in plan.tables):
        console.print()
        console.print(plain(f"module {module}" if module else "no module named"))
        console.print(_tables(plan, module))
    console.print()
    kinds = Counter(one.sharding for one in plan.tables)
    console.print(plain("; ".join(f"{count} {kind}" for kind, count in kinds.most_common())))
    for oddity in oddities(plan):
        console.print()
        console.print(plain(f"! {oddity}"), style="yellow")


def _tables(plan: TorchRecPlan, module: str) -> "Table":
    drawn = table("table", "sharding", "kernel", "ranks", "shards", "rows", "columns", left=4)
    for one in plan.tables:
        if one.module == module:
            size = ("-", "-") if one.size is None else (f"{one.size[0]:,}", f"{one.size[1]:,}")
            text = (plain(one.name), one.sharding, plain(one.kernel), _ranks(one.ranks))
            drawn.add_row(*text, str(len(one.shards)), *size)
    return drawn


def _ranks(ranks: tuple[int, ...]) -> str:
    text = spans(sorted(set(ranks)))
    return text if len(text) <= WIDEST_RANKS else f"{text[: WIDEST_RANKS - 3].rpartition(',')[0]},..."
