"""Placement: longest first, by constraints, and anew after measuring."""

import builtins
import itertools
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.errors import InfeasibleError, InputError
from simulator.sharding.placement import (
    WHOLE_TABLES,
    Chips,
    ColumnCut,
    CutRules,
    Demand,
    Placement,
    Profile,
    RowCut,
    Shard,
    Span,
    TableKeys,
    Whole,
    greedy,
    imbalance,
    judged,
    optimized,
    replanned,
)
from simulator.workload.keys import BoundedZipf, Uniform, summarize
from simulator.workload.tables import EmbeddingTable


@pytest.fixture
def solver() -> None:
    pytest.importorskip("ortools", reason="the extra [planner] is not installed")


def demand(table: str, load: float, memory: float = 0.0, **more: float) -> Demand:
    return Demand(table, 1000, 256, load, memory, **more)


def demands(*loads: float) -> list[Demand]:
    return [demand(f"t{number}", load) for number, load in enumerate(loads)]


def random_demands(tables: int, seed: int, spread: float = 1.2) -> list[Demand]:
    draws = np.random.default_rng(seed)
    loads, sizes = draws.lognormal(0, spread, tables), draws.lognormal(0, 1.0, tables)
    return [demand(f"t{n}", float(loads[n]), float(sizes[n]), key_share=0.03) for n in range(tables)]


def least_possible(tables: list[Demand], chips: Chips) -> float:
    """The best busiest load of whole tables, by trying every placement."""
    best = float("inf")
    for chip_of in itertools.product(range(chips.count), repeat=len(tables)):
        loads, memory = np.zeros(chips.count), np.zeros(chips.count)
        for table, chip in zip(tables, chip_of, strict=True):
            loads[chip] += table.load
            memory[chip] += table.memory
        if (memory <= chips.memory).all():
            best = min(best, float(loads.max()))
    return best


def test_the_worked_example_of_four_chips_has_an_imbalance_of_two() -> None:
    assert imbalance([0.6, 0.3, 0.2, 0.1]) == pytest.approx(2.0)
    assert greedy(demands(0.6, 0.3, 0.2, 0.1), Chips(4)).imbalance == pytest.approx(2.0)


def test_cutting_the_longest_table_evens_the_worked_example_out(solver: None) -> None:
    placed = optimized(demands(0.6, 0.3, 0.2, 0.1), Chips(4), CutRules(row_parts=(2,)))
    assert placed.imbalance == pytest.approx(1.0)
    assert placed.proven


def test_chips_alike_are_balanced_and_so_are_chips_without_load() -> None:
    assert imbalance([2.0, 2.0]) == 1.0
    assert imbalance([0.0, 0.0]) == 1.0
    assert imbalance([1.0, 0.0, 0.0, 0.0]) == 4.0


@pytest.mark.parametrize("seed", range(5))
def test_greedy_keeps_within_four_thirds_of_the_best(seed: int) -> None:
    tables, chips = random_demands(7, seed), Chips(3)
    best = least_possible(tables, chips)
    assert best <= greedy(tables, chips).busiest * (1 + 1e-12) <= (4 / 3 - 1 / 9) * best * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_solver_finds_what_trying_everything_finds_and_proves_it(solver: None, seed: int) -> None:
    tables = random_demands(7, seed)
    sizes = [table.memory for table in tables]
    chips = Chips(3, memory=max(1.2 * sum(sizes) / 3, *sizes))
    placed = optimized(tables, chips, WHOLE_TABLES)
    assert placed.busiest == pytest.approx(least_possible(tables, chips), rel=1e-4)
    assert placed.proven
    assert (placed.memory <= chips.memory).all()


def test_the_bound_lies_below_every_placement_and_the_gap_says_how_far() -> None:
    placed = greedy(demands(3.0, 3.0, 2.0, 2.0, 2.0), Chips(2))
    assert placed.bound == pytest.approx(6.0)
    assert placed.gap == pytest.approx(placed.busiest / 6.0 - 1.0)


def test_exchanges_repair_what_longest_first_gets_wrong() -> None:
    """Longest first puts 3, 2 and 2 on one chip, 3 and 2 on the other; 3 for 2 makes it even."""
    assert greedy(demands(3.0, 3.0, 2.0, 2.0, 2.0), Chips(2)).busiest == pytest.approx(6.0)


def test_the_same_problem_gets_the_same_answer(solver: None) -> None:
    tables, chips = random_demands(9, seed=1), Chips(3)
    first, again = (optimized(tables, chips, WHOLE_TABLES) for _ in range(2))
    assert first == again


def test_memory_is_respected_by_both_planners(solver: None) -> None:
    tables = random_demands(40, seed=4)
    chips = Chips(5, memory=1.1 * sum(table.memory for table in tables) / 5)
    for placed in (greedy(tables, chips), optimized(tables, chips, WHOLE_TABLES, seconds=1.0)):
        assert (placed.memory <= chips.memory).all()
        assert placed.memory.sum() == pytest.approx(sum(table.memory for table in tables))
        assert placed.loads.sum() == pytest.approx(sum(table.load for table in tables))


def test_a_table_too_large_for_a_chip_is_cut_or_refused_by_name() -> None:
    tables = [demand("huge", 1.0, memory=10e9), demand("small", 0.0, memory=1e9)]
    chips = Chips(4, memory=4e9)
    with pytest.raises(InfeasibleError, match=r'"huge" does not fit: .* takes 10 GB, a chip has 4 GB'):
        greedy(tables, chips)
    placed = greedy(tables, chips, CutRules())
    assert len(placed.of_table("huge")) == 4
    assert len(placed.of_table("small")) == 1
    assert (placed.memory <= chips.memory).all()


def test_tables_that_take_more_than_all_chips_are_refused_with_what_would_do() -> None:
    tables = [demand(f"t{n}", 1.0, memory=3e9) for n in range(4)]
    with pytest.raises(InfeasibleError, match=r"12 GB and 2 chips have 8 GB.*3 chips or 6 GB per chip"):
        greedy(tables, Chips(2, memory=4e9))


def test_pieces_that_leave_no_room_are_refused_with_what_would_do() -> None:
    tables = [demand(f"t{n}", 1.0, memory=3e9) for n in range(3)]
    with pytest.raises(InfeasibleError, match=r"no room was found.*finer pieces or 3 chips"):
        greedy(tables, Chips(2, memory=5e9))


def test_thirds_of_a_chip_fill_it_in_spite_of_rounding() -> None:
    tables = [demand(f"t{n}", 1.0, memory=1e9 / 3) for n in range(6)]
    assert greedy(tables, Chips(2, memory=1e9)).loads.tolist() == [3.0, 3.0]


def test_column_pieces_pay_for_all_keys_each_and_row_pieces_share_them() -> None:
    table = demand("t", 10.0, memory=8.0, bytes=4.0, key_share=0.2)
    columns, rows = ColumnCut(2).pieces(table), RowCut(2).pieces(table)
    assert [piece.load for piece in columns] == pytest.approx([6.0, 6.0])
    assert [piece.load for piece in rows] == pytest.approx([5.0, 5.0])
    for pieces in (columns, rows):
        assert [piece.memory for piece in pieces] == pytest.approx([4.0, 4.0])
        assert [piece.bytes for piece in pieces] == pytest.approx([2.0, 2.0])


def test_the_hottest_row_stays_in_one_row_piece() -> None:
    pieces = RowCut(4).pieces(demand("t", 10.0, hot_share=0.6))
    assert [piece.load for piece in pieces] == pytest.approx([7.0, 1.0, 1.0, 1.0])


def test_blocks_of_rows_are_those_of_torchrec() -> None:
    pieces = RowCut(4).pieces(Demand("t", 10, 256, load=1.0))
    assert [piece.rows for piece in pieces] == [Span(0, 3), Span(3, 3), Span(6, 3), Span(9, 1)]


def test_rules_offer_no_narrow_empty_or_superfluous_pieces() -> None:
    rules = CutRules(column_parts=(2, 4), row_parts=(2, 4, 8), narrowest=128)
    assert rules.cuts(Demand("t", 1000, 256, 1.0), 8) == (
        Whole(),
        ColumnCut(2),
        RowCut(2),
        RowCut(4),
        RowCut(8),
    )
    assert rules.cuts(Demand("t", 3, 200, 1.0), 8) == (Whole(), RowCut(2))
    assert rules.cuts(Demand("t", 1000, 512, 1.0), 2) == (Whole(), ColumnCut(2), RowCut(2))


def test_cuts_are_made_only_where_they_help() -> None:
    assert len(greedy(demands(1.0, 1.0, 1.0, 1.0), Chips(4), CutRules()).shards) == 4


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Demand("t", 0, 1, 1.0),
        lambda: Demand("t", 1, 1, -1.0),
        lambda: Demand("t", 1, 1, float("nan")),
        lambda: Demand("t", 1, 1, 1.0, hot_share=2.0),
        lambda: Chips(0),
        lambda: Chips(1, memory=0.0),
        lambda: CutRules(row_parts=(1,)),
        lambda: greedy([], Chips(1)),
        lambda: greedy([demand("same", 1.0), demand("same", 1.0)], Chips(1)),
        lambda: Placement(Chips(1), Whole().pieces(demand("t", 1.0)), (1,), 0.0, ""),
        lambda: Placement(Chips(1), Whole().pieces(demand("t", 1.0)), (), 0.0, ""),
    ],
)
def test_impossible_values_are_refused(wrong: Any) -> None:
    with pytest.raises(InputError) as refusal:
        wrong()
    assert "\n" not in str(refusal.value)


def test_without_the_solver_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("ortools"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(InputError, match=r'extra "planner": pip install "recscale\[planner\]"'):
        optimized(demands(3.0, 3.0, 2.0, 2.0, 2.5), Chips(2), WHOLE_TABLES)


def test_a_placement_tells_itself_in_plain_values() -> None:
    told = greedy([demand("t", 2.0, 5.0)], Chips(2)).to_dict()
    assert told["imbalance"] == 2.0
    assert told["loads"] == [2.0, 0.0]
    assert told["shards"] == [
        {
            "table": "t",
            "chip": 0,
            "kind": "table",
            "rows": [0, 1000],
            "columns": [0, 256],
            "load": 2.0,
            "bytes": 0.0,
            "memory_bytes": 5.0,
        }
    ]


def test_measured_loads_move_tables_and_the_gain_is_reported() -> None:
    assumed, measured = demands(1.0, 1.0, 1.0, 1.0), demands(3.0, 3.0, 1.0, 1.0)
    feedback = replanned(assumed, measured, Chips(2), greedy)
    before, after = feedback.before, feedback.after
    assert after.busiest == pytest.approx(4.0)
    assert feedback.gain == pytest.approx(before.busiest / 4.0) and feedback.gain >= 1.0
    assert feedback.to_dict()["imbalance_after"] == pytest.approx(1.0)


def test_a_first_plan_that_was_right_is_kept() -> None:
    loads = demands(2.0, 2.0)
    feedback = replanned(loads, loads, Chips(2), partial(greedy, rules=WHOLE_TABLES))
    assert feedback.gain == 1.0
    assert feedback.after is feedback.before


def test_planning_anew_wins_where_the_uniform_assumption_was_wrong() -> None:
    """Four tables were thought alike; two turn out to be asked for one key only, sent once per batch."""
    tables = [table(f"t{n}", Uniform(1e6)) for n in range(4)]
    real = [
        table("t0", Uniform(1)),
        table("t1", Uniform(1e6)),
        table("t2", Uniform(1)),
        table("t3", Uniform(1e6)),
    ]
    assumed = Profile.expected(tables, batch=128, ranks=2).demands(tables)
    measured = Profile.expected(real, batch=128, ranks=2).demands(tables)
    feedback = replanned(assumed, measured, Chips(2), greedy)
    assert feedback.gain == pytest.approx(2.0, rel=0.02)


def table(name: str, popularity: Any) -> EmbeddingTable:
    return EmbeddingTable(name, rows=1e6, dimension=128, popularity=popularity)


def test_judging_needs_the_demand_of_every_table() -> None:
    placed = greedy(demands(1.0, 2.0), Chips(2))
    assert judged(placed, demands(5.0, 2.0)).busiest == 5.0
    with pytest.raises(InputError, match='demand of table "t1"'):
        judged(placed, demands(1.0))


def test_an_expected_profile_counts_keys_after_duplicates_are_removed() -> None:
    items = table("items", BoundedZipf(1e6, 1.0))
    keys = Profile.expected([items], batch=512, ranks=4).tables["items"]
    distinct = items.popularity.distinct(512)
    assert keys == TableKeys(4 * distinct, 1 / distinct)
    (made,) = Profile({"items": keys}).demands([items])
    assert made.load == pytest.approx(4 * distinct * (8 + 512))
    assert made.bytes == pytest.approx(4 * distinct * 512)
    assert made.memory == 1e6 * (512 + 4)
    assert made.key_share == pytest.approx(8 / 520)


def test_a_profile_is_measured_from_a_key_log(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("hot,cold\n" + "".join(f"1,{n}\n" for n in range(64)))
    profile = Profile.measured(summarize(path, batch=16), batch=16, ranks=4)
    assert profile.tables["hot"] == TableKeys(4.0, 1.0)
    assert profile.tables["cold"].keys == pytest.approx(64.0)
    with pytest.raises(InputError, match='no keys of table "warm"'):
        profile.demands([table("warm", Uniform(10))])


def test_a_placement_becomes_a_plan_that_a_run_can_use() -> None:
    from simulator.sharding import PlacedPlan
    from simulator.sharding.placement.plans import as_sharding_plan
    from simulator.sharding.world import World

    tables = [table("a", Uniform(1e6)), table("b[0]", Uniform(1e6))]
    loads = [Demand("a", 10**6, 128, 3.0), Demand("b[0]", 10**6, 128, 1.0)]
    placed = greedy(loads, Chips(4), CutRules(row_parts=(3,)))
    plan = PlacedPlan(as_sharding_plan(placed), tuple(tables), World(4))
    assert sorted(shard.first for shard in plan.shards) == [0, 1, 2, 3]
    shares = {piece.rows for piece in (shard.piece for shard in plan.shards) if piece.table.name == "a"}
    assert max(shares) == pytest.approx(1 / 3, rel=1e-5)


def test_copies_share_the_load_and_send_nothing() -> None:
    from simulator.sharding.placement.shard import piece

    copy = piece(demand("t", 8.0, 5.0, bytes=3.0), "replica", Span(0, 1000), Span(0, 256), copies=4)
    assert copy == Shard("t", "replica", Span(0, 1000), Span(0, 256), 2.0, 0.0, 5.0, 4)
    with pytest.raises(InputError, match="reaches beyond"):
        piece(demand("t", 8.0), "row", Span(990, 11), Span(0, 256))
