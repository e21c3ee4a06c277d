"""The table of stages of a run, on timelines in which ranks wait for each other and slow each other down."""

import numpy as np
import pytest

from simulator.pipeline import Carry, Pipeline, Stage, compile_pipeline
from simulator.quantities import AllReduceWork
from simulator.results.tables import Columns, counted_cycles, stages_table
from simulator.results.timeline import Timeline
from simulator.scenario import load, run_scenario
from simulator.scenario.shipped_files import shipped_folder


def timeline() -> Timeline:
    """Two ranks compute 10 and 30 ns, then meet; the meeting takes 5 ns alone and 7 under contention."""
    train = Stage("train", "compute")
    meet = Stage("meet", "all_reduce", AllReduceWork(1.0), after=[train])
    graph = compile_pipeline(Pipeline({"compute": [train], "network": [meet]}, [Carry(meet, to=train)]))
    starts = 37 * np.arange(4)
    lasting = np.array([[[10, 30]] * 4, [[5, 5]] * 4])
    ends = np.stack([starts[:, None] + [10, 30], starts[:, None] + [37, 37]])
    return Timeline(graph, lasting, ends, np.arange(2), "by hand")


def row(table: Columns, stage: str) -> dict[str, float]:
    place = table["stage"].index(stage)
    return {name: float(table[name][place]) * 1e6 for name in ("duration_ms", "wait_ms", "slowed_ms")}


def test_waiting_for_the_slowest_rank_and_being_slowed_down_are_told_apart() -> None:
    first, last = (stages_table(timeline(), column, 1, 4) for column in (0, 1))
    assert row(first, "meet") == pytest.approx({"duration_ms": 5, "wait_ms": 20, "slowed_ms": 2})
    assert row(last, "meet") == pytest.approx({"duration_ms": 5, "wait_ms": 0, "slowed_ms": 2})
    assert row(first, "train") == pytest.approx({"duration_ms": 10, "wait_ms": 0, "slowed_ms": 0})


def test_stages_that_share_the_network_wait_for_nobody_where_all_ranks_are_alike() -> None:
    run = run_scenario(load(shipped_folder() / "quickstart.yaml", ["policy={kind: dual_buffer}"]))
    table = stages_table(run.timeline, run.column, run.first, run.last)
    assert run.report.interference_ms > 0
    assert sum(table["slowed_ms"]) == pytest.approx(run.report.interference_ms)
    assert max(table["wait_ms"]) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize(
    ("first", "last", "cycles"), [(4, 12, slice(1, 3)), (5, 13, slice(1, 3)), (6, 7, slice(1, 2))]
)
def test_whole_cycles_are_counted_and_one_at_least(first: int, last: int, cycles: slice) -> None:
    rare = Stage("rare", "compute", every=4)
    graph = compile_pipeline(Pipeline({"compute": [rare]}))
    ends = np.arange(1, 5, dtype=np.int64)[None, :, None]
    seen = Timeline(graph, np.ones_like(ends), ends, np.zeros(1, dtype=np.int64), "by hand")
    assert counted_cycles(seen, first, last) == cycles
