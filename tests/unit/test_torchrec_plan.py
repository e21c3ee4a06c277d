"""TorchRec's sharding plans: read from their three public forms, judged, and written back."""

import json
from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.sharding.placement import Chips, CutRules, Demand, Span, greedy
from simulator.sharding.placement.torchrec import (
    TorchRecPlan,
    TorchRecShard,
    TorchRecTable,
    parsed,
    read_torchrec_plan,
    to_json,
    to_printed,
    write_torchrec_plan,
)

PLAN = TorchRecPlan(
    (
        TorchRecTable(
            "model.sparse", "users", "table_wise", "fused", (1,),
            (TorchRecShard(Span(0, 4096), Span(0, 32), 1, "cuda:1"),),
        ),
        TorchRecTable(
            "model.sparse", "items", "row_wise", "fused_uvm_caching", (0, 1),
            (
                TorchRecShard(Span(0, 2048), Span(0, 64), 0, "cuda:0"),
                TorchRecShard(Span(2048, 2000), Span(0, 64), 1, "cuda:1"),
            ),
        ),
        TorchRecTable("model.sparse", "days", "data_parallel", "dense", (0, 1)),
    )
)  # fmt: skip

WITH_TABULATE = """module: model.sparse

param    sharding type    compute kernel     ranks
-------  ---------------  -----------------  -------
users    table_wise       fused              [1]
items    row_wise         fused_uvm_caching  [0, 1]
days     data_parallel    dense              [0, 1]

param    shard offsets    shard sizes    placement
-------  ---------------  -------------  -------------
users    [0, 0]           [4096, 32]     rank:1/cuda:1
items    [0, 0]           [2048, 64]     rank:0/cuda:0
items    [2048, 0]        [2000, 64]     rank:1/cuda:1
"""

WITHOUT_TABULATE = """module: model.sparse

 param | sharding type |  compute kernel   | ranks
------ | ------------- | ----------------- | ------
users  | table_wise    | fused             | [1]
items  | row_wise      | fused_uvm_caching | [0, 1]
days   | data_parallel | dense             | [0, 1]

 param | shard offsets | shard sizes |   placement
------ | ------------- | ----------- | -------------
users  | [0, 0]        | [4096, 32]  | rank:1/cuda:1
items  | [0, 0]        | [2048, 64]  | rank:0/cuda:0
items  | [2048, 0]     | [2000, 64]  | rank:1/cuda:1
"""

_LOG = """
###################################################################################
#                            --- Planner Statistics ---                            #
# -------------------------------------------------------------------------------- #
#      Rank     HBM (GB)     DDR (GB)     Perf (ms)                       Shards   #
#    ------   ----------   ----------   -----------                     --------   #
#         0     0.2 (1%)     0.0 (0%)          0.08                       TW: 26   #
#                                                                                  #
# Parameter Info:                                                                  #
#              FQN   Sharding   Compute Kernel         Perf (ms)   Emb Dim (CW Dim)   Hash Size   Ranks #
#            -----  ----------   --------------       -----------   ----------------   ---------   ----- #
#     sparse.whole         TW            fused   0.2 (0.1,0.05)                 64         1000       3 #
#       sparse.col         CW            fused   0.2 (0.1,0.05)           128 (32)         1000     0-3 #
#       sparse.row         RW            fused   0.2 (0.1,0.05)                 64           10     0-3 #
#      sparse.host       TWRW            fused   0.2 (0.1,0.05)                 64           10     2,3 #
#      sparse.grid         GS            fused   0.2 (0.1,0.05)           128 (64)           10     0-3 #
#      sparse.copy         DP            dense   0.2 (0.1,0.05)                 64           10     0-3 #
#                                                                                  #
# Batch Size: 512                                                                  #
"""
STATISTICS = "\n".join(f"INFO:torchrec.distributed.planner.stats:{line}" for line in _LOG.split("\n"))


def loads(*sizes: tuple[str, int, int]) -> list[Demand]:
    return [Demand(name, rows, width, load=12.0, memory=8.0, bytes=6.0) for name, rows, width in sizes]


OURS = loads(("users", 4096, 32), ("items", 4048, 64), ("days", 7, 16))


@pytest.mark.parametrize("text", [WITH_TABULATE, WITHOUT_TABULATE])
def test_both_printed_forms_are_read(text: str) -> None:
    assert parsed(text) == PLAN


def test_what_is_printed_is_what_torchrec_prints() -> None:
    assert to_printed(PLAN) == WITH_TABULATE


def test_both_forms_survive_the_way_there_and_back(tmp_path: Path) -> None:
    for name in ("plan.json", "plan.txt"):
        write_torchrec_plan(PLAN, tmp_path / name)
        assert read_torchrec_plan(tmp_path / name) == PLAN


def test_the_json_form_has_torchrecs_keys() -> None:
    items = json.loads(to_json(PLAN))["plan"]["model.sparse"]["items"]
    assert items == {
        "sharding_type": "row_wise",
        "compute_kernel": "fused_uvm_caching",
        "ranks": [0, 1],
        "shards": [
            {"shard_offsets": [0, 0], "shard_sizes": [2048, 64], "placement": "rank:0/cuda:0"},
            {"shard_offsets": [2048, 0], "shard_sizes": [2000, 64], "placement": "rank:1/cuda:1"},
        ],
    }


def test_json_without_the_upper_levels_is_read_too() -> None:
    modules = json.loads(to_json(PLAN))["plan"]
    assert parsed(json.dumps(modules)) == PLAN
    bare = parsed(json.dumps(modules["model.sparse"]))
    assert [table.name for table in bare.tables] == ["users", "items", "days"]
    assert bare.tables[0].module == ""


def test_several_modules_are_kept_apart() -> None:
    second = WITH_TABULATE.replace("model.sparse", "model.towers")
    plan = parsed(WITH_TABULATE + "\n\n" + second)
    assert [table.module for table in plan.tables] == ["model.sparse"] * 3 + ["model.towers"] * 3
    assert parsed(to_printed(plan)) == plan


def test_the_planners_log_is_read_with_equal_blocks() -> None:
    tables = {table.name: table for table in parsed(STATISTICS).tables}
    assert list(tables) == ["whole", "col", "row", "host", "grid", "copy"]
    assert tables["whole"].module == "sparse" and tables["whole"].ranks == (3,)
    assert [shard.columns for shard in tables["col"].shards] == [Span(32 * n, 32) for n in range(4)]
    assert [shard.rows.size for shard in tables["row"].shards] == [3, 3, 3, 1]
    assert [shard.rank for shard in tables["host"].shards] == [2, 3]
    grid = [(shard.rows.start, shard.columns.start, shard.rank) for shard in tables["grid"].shards]
    assert grid == [(0, 0, 0), (5, 0, 1), (0, 64, 2), (5, 64, 3)]
    assert tables["copy"].shards == () and tables["copy"].size is None


def test_a_plan_is_judged_by_our_loads() -> None:
    placed = PLAN.placement(OURS)
    assert placed.chips.count == 2
    share = 2048 / 4048
    assert placed.loads == pytest.approx([12 * share + 6, 12 + 12 * (1 - share) + 6])
    assert placed.memory == pytest.approx([8 * share + 8, 8 + 8 * (1 - share) + 8])
    assert placed.bytes.sum() == pytest.approx(12.0)


def test_a_plan_for_another_model_is_refused() -> None:
    with pytest.raises(InputError, match=r'"items" is \(4048, 64\) in the plan, \(4048, 32\) in the model'):
        PLAN.placement(loads(("users", 4096, 32), ("items", 4048, 32), ("days", 7, 16)))
    with pytest.raises(InputError, match='nothing is known of table "days"'):
        PLAN.placement(OURS[:2])


def test_our_placement_becomes_a_plan_and_comes_back_as_it_was() -> None:
    tables = [
        Demand("whole", 1000, 128, 4.0, 4.0),
        Demand("rows", 10, 64, 16.0, 4.0),
        Demand("columns", 1000, 256, 8.0, 4.0, hot_share=1.0),
    ]
    placed = greedy(tables, Chips(4), CutRules((2,), (4,)))
    plan = TorchRecPlan.of(placed, per_host=2, module="ebc")
    kinds = {table.name: table.sharding for table in plan.tables}
    assert kinds["columns"] == "column_wise" and kinds["rows"] == "row_wise"
    again = parsed(to_json(plan)).placement(tables, placed.chips)
    assert again.loads == pytest.approx(placed.loads)
    assert again.memory == pytest.approx(placed.memory)
    assert {shard.device for table in plan.tables for shard in table.shards} <= {"cuda:0", "cuda:1"}


def test_rows_on_one_host_are_table_row_wise_and_odd_ones_are_named() -> None:
    one_host = PLAN.tables[1]
    placed = TorchRecPlan((one_host,)).placement(OURS, Chips(4))
    assert TorchRecPlan.of(placed, per_host=2).tables[0].sharding == "table_row_wise"
    scattered = TorchRecPlan.of(placed, per_host=4)
    assert scattered.tables[0].sharding == "row_wise"
    assert scattered.unusual() == ()
    reversed_shards = TorchRecTable("", "items", "row_wise", "fused", (1, 0), one_host.shards[::-1])
    assert TorchRecPlan((reversed_shards,)).unusual() == ("items",)


def test_hosts_must_be_filled() -> None:
    with pytest.raises(InputError, match="4 chips do not fill hosts of 3"):
        TorchRecPlan.of(greedy([Demand("t", 10, 8, 1.0)], Chips(4)), per_host=3)


@pytest.mark.parametrize(
    "text, problem",
    [
        ("hello\nworld\n", "neither JSON, nor printed"),
        ("{", "broken JSON"),
        ("[]", "expected an object, found list"),
        ("{}", "has no tables"),
        ('{"plan": {"m": 3}}', "m: expected an object, found int"),
        ('{"m": {"t": {"sharding_type": "row_wize"}}}', 'm.t: unknown sharding type "row_wize".*row_wise'),
        ('{"m": {"t": {"sharding_type": "row_wise"}}}', 'm.t: table "t" is row_wise and has no shards'),
        ('{"t": {"sharding_type": "table_wise", "shards": [{}]}}', "t: no shard as TorchRec writes it"),
        ('{"t": {"sharding_type": "table_wise", "ranks": [0], "shards": 7}}', "t: no shard as TorchRec"),
        (WITH_TABULATE.replace("[4096, 32]", "[4096]    "), "11: .*should have 2 numbers"),
        (WITH_TABULATE.replace("[4096, 32]", "4096 x 32 "), "11: .*no list of whole numbers"),
        (WITH_TABULATE.replace("rank:1/cuda:1", "somewhere"), "11: .*no placement such as rank:0/cuda:0"),
        (WITH_TABULATE.replace("users    table_wise", "users    table_wise    now"), "5: expected 4 columns"),
        (STATISTICS.replace("128 (32)", "wide    "), "is no width such as"),
        (STATISTICS.replace("      TWRW ", "      XXXX "), "does not know 'XXXX'"),
        (
            STATISTICS.replace("(32)         1000     0-3", "(32)         1000     0-2"),
            "3 ranks do not hold 4",
        ),
    ],
)
def test_what_is_no_plan_is_refused_in_one_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "plan"
    path.write_text(text)
    with pytest.raises(InputError, match=problem) as refusal:
        read_torchrec_plan(path)
    assert "\n" not in str(refusal.value) and str(refusal.value).startswith(str(path))


def test_files_that_cannot_be_read_or_written_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_torchrec_plan(tmp_path / "missing")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_torchrec_plan(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00plan")
    with pytest.raises(InputError, match="it is not text"):
        read_torchrec_plan(tmp_path / "binary")
    with pytest.raises(InputError, match="cannot be written"):
        write_torchrec_plan(PLAN, tmp_path / "missing" / "plan.json")


def test_two_tables_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match='two tables "days" in module "m"'):
        TorchRecPlan(tuple(TorchRecTable("m", "days", "data_parallel", "dense", (0,)) for _ in range(2)))
