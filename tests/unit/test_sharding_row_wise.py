"""Row-wise sharding, the first plan there was: its amounts are frozen, by formula and by number."""

from dataclasses import dataclass

import numpy as np
import pytest

from simulator.policies.frozen_window import FrozenWindow
from simulator.quantities import AllToAllWork, Amount, CopyWork, DenseWork, InTurn, RowWork, Together, Work
from simulator.sharding import RowWise, ShardingPlan, TrainStep
from simulator.workload.dense import Mlp
from simulator.workload.job import Workload
from simulator.workload.keys import BoundedZipf
from simulator.workload.tables import EmbeddingTable

SEQUENCE = (EmbeddingTable("items", 2e9, 512, BoundedZipf(2_000_000_000, 0.87), pooling=2048.0),)
FEATURES = (
    EmbeddingTable("users", 4e7, 128, BoundedZipf(40_000_000, 1.05)),
    EmbeddingTable("ads", 5e5, 64, BoundedZipf(500_000, 1.05), pooling=20.0),
    EmbeddingTable("days", 7, 16, BoundedZipf(7, 1.05)),
)
RANKS, BATCH, SORT = 128, 512, 128  # a radix sort: 8 passes that read and write 8 bytes


def step_of(tables: tuple[EmbeddingTable, ...], tier: str, owners: str = "expected") -> TrainStep:
    return TrainStep(Workload(Mlp(96, (64, 1)), tables, BATCH), RowWise(tier, owners), RANKS, seed=7)


def moved(work: Work) -> dict[str, float]:
    """Bytes of the busiest rank by what moves them."""
    if isinstance(work, InTurn | Together):
        total: dict[str, float] = {}
        for part in work.parts:
            for name, size in moved(part).items():
                total[name] = total.get(name, 0.0) + size
        return total
    if isinstance(work, RowWork):
        return {work.tier: top(work.rows * work.row_bytes * work.passes)}
    if isinstance(work, AllToAllWork):
        assert work.received_bytes is not None
        return {"sent": top(work.bytes), "received": top(work.received_bytes)}
    if isinstance(work, CopyWork):
        return {work.path: top(work.bytes)}
    assert isinstance(work, DenseWork)
    return {"sort": top(work.memory_bytes)} if not work.flops else {}


def top(amount: Amount) -> float:
    return float(np.max(amount))


@dataclass(frozen=True)
class Sums:
    """What the formulas of docs/concepts/step.md say, summed over tables; m lookups of one source."""

    m: float = 0.0
    d: float = 0.0
    u: float = 0.0
    m_bytes: float = 0.0
    d_bytes: float = 0.0
    u_bytes: float = 0.0
    v_bytes: float = 0.0

    @classmethod
    def of(cls, tables: tuple[EmbeddingTable, ...], samples: float) -> "Sums":
        rows = []
        for table in tables:
            m, w = samples * table.pooling, table.dimension * 4
            d = table.popularity.distinct(m)
            u = table.popularity.union(m, RANKS) / RANKS
            v = table.popularity.overlap(m * RANKS) / RANKS
            rows.append((m, d, u, m * w, d * w, u * w, v * w))
        return cls(*(float(sum(column)) for column in zip(*rows, strict=True)))


@pytest.mark.parametrize("tables", [SEQUENCE, FEATURES], ids=["sequence", "features"])
def test_the_amounts_of_a_step_are_those_of_the_formulas(tables: tuple[EmbeddingTable, ...]) -> None:
    step, whole, part = step_of(tables, "dram"), Sums.of(tables, BATCH), Sums.of(tables, BATCH / 8)
    micro = step.micro_batch(8)
    expected = {
        "route": {"sort": SORT * whole.m, "sent": 8 * whole.d, "received": 8 * whole.d},
        "retrieve": {"sort": SORT * whole.d, "dram": whole.u_bytes, "host_to_device": whole.u_bytes},
        "refresh": {"device": whole.v_bytes},
        "update": {"hbm": whole.d_bytes + 3 * whole.u_bytes},
        "write_back": {"dram": whole.u_bytes, "device_to_host": whole.u_bytes},
        "exchange": {"hbm": 2 * part.d_bytes, "sent": part.d_bytes, "received": part.d_bytes},
        "send": {"sent": part.d_bytes, "received": part.d_bytes},
        "forward": {"hbm": part.d_bytes + part.m_bytes},
    }
    found = {
        "route": step.route_keys,
        "retrieve": step.retrieve_rows,
        "refresh": step.refresh_rows,
        "update": step.sparse_update(),
        "write_back": step.write_back,
        "exchange": micro.exchange_rows,
        "send": micro.send_gradients,
        "forward": micro.forward,
    }
    for name, work in found.items():
        assert moved(work) == pytest.approx(expected[name], rel=1e-12), name


def test_rows_in_device_memory_are_read_by_the_exchange_only_and_not_written_back() -> None:
    step, sums = step_of(SEQUENCE, "hbm"), Sums.of(SEQUENCE, BATCH)
    assert moved(step.retrieve_rows) == pytest.approx({"sort": SORT * sums.d}, rel=1e-12)
    assert moved(step.refresh_rows) == {"device": 0.0}
    assert moved(step.write_back) == {}


@pytest.mark.parametrize("parts", [1, 4, 8])
def test_an_owner_reads_a_gradient_for_every_micro_batch_that_uses_a_row(parts: int) -> None:
    step, whole, part = step_of(FEATURES, "dram"), Sums.of(FEATURES, BATCH), Sums.of(FEATURES, BATCH / parts)
    expected = parts * part.d_bytes + 3 * whole.u_bytes
    assert moved(step.sparse_update(parts)) == pytest.approx({"hbm": expected}, rel=1e-12)
    (update,) = [s for s in FrozenWindow(parts).plan(step).stages if s.name == "sparse_update"]
    assert moved(update.work) == pytest.approx({"hbm": expected}, rel=1e-12)


@pytest.mark.parametrize("parts", [1, 4])
def test_every_micro_batch_but_the_first_reads_and_writes_the_sums_of_dense_gradients(parts: int) -> None:
    parameters = (96 + 1) * 64 + (64 + 1)
    stages = FrozenWindow(parts).plan(step_of(FEATURES, "dram")).stages
    extra = [moved(s.work).get("sort", 0.0) for s in stages if s.name.startswith("backward")]
    assert sum(extra) == (parts - 1) * 2 * 4 * parameters


def test_the_dense_optimizer_moves_each_parameter_as_often_as_it_says() -> None:
    work = step_of(FEATURES, "dram").optimizer
    assert isinstance(work, DenseWork)
    assert work.memory_bytes == 7 * 4 * ((96 + 1) * 64 + (64 + 1))  # Adam: four values read, three written


def test_the_amounts_of_the_sequence_step_are_these() -> None:
    """The step on which the NestPipe fit stands; keys are approximated to a few parts per million."""
    step = step_of(SEQUENCE, "dram")
    traffic = step.traffic
    assert traffic.lookups == 512 * 2048
    assert traffic.distinct == pytest.approx(853_385, rel=1e-4)
    assert traffic.rows_owned == pytest.approx(578_675, rel=1e-4)
    assert traffic.bytes_shared == pytest.approx(235.2e6, rel=1e-4)
    assert moved(step.micro_batch(8).exchange_rows)["sent"] == pytest.approx(236.162e6, rel=1e-4)


def test_a_kind_alone_is_a_plan_for_all_tables() -> None:
    alone, plan = step_of(FEATURES, "dram"), ShardingPlan(RowWise("dram"))
    whole = TrainStep(alone.workload, plan, RANKS, seed=7)
    assert moved(whole.retrieve_rows) == moved(alone.retrieve_rows)
    assert whole.synchronize_every == 0


def test_drawn_owners_keep_the_mean_and_spread_as_the_hash_does() -> None:
    step = step_of(SEQUENCE, "dram", "drawn")
    requests, table = step.traffic.requests, SEQUENCE[0]
    load = table.popularity.owner_load(table.lookups(BATCH), RANKS)
    assert isinstance(requests, np.ndarray) and requests.shape == (RANKS,)
    assert requests.mean() == pytest.approx(load.mean, rel=1e-12)
    # the standard deviation of 128 normal draws is known to 1 / sqrt(2 * 127), 6 %
    assert requests.std(ddof=1) == pytest.approx(load.sd, rel=4 * 0.063)
    assert np.array_equal(requests, step_of(SEQUENCE, "dram", "drawn").traffic.requests)
