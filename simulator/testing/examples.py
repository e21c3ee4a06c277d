"""Steps and clusters to try a policy on: small, and different in what binds."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from simulator.hardware import Cluster, TwoLevel, catalog
from simulator.hardware.servers import Rpc, Servers
from simulator.sharding import RowWise, ShardingPlan, TrainStep
from simulator.sharding.plan import Replicas
from simulator.sharding.tiers import Remote, Tier
from simulator.workload.dense import Mlp
from simulator.workload.job import InputPipeline, Workload
from simulator.workload.keys import BoundedZipf
from simulator.workload.tables import EmbeddingTable

AT_WORKERS = ((64, "dram", "expected"), (8192, "hbm", "expected"), (2048, "dram", "drawn"))
AT_SERVERS = ((64, Remote(1), "expected"), (8192, Remote(3), "expected"), (2048, Remote(2), "drawn"))


def example_steps(ranks: int = 4, needs: Sequence[str] = ()) -> Iterator[TrainStep]:
    """Yield steps that differ in batch size, memory tier and in how evenly owners are loaded.

    `needs` says in words of `REQUIREMENTS` what a policy cannot do without.
    """
    copies = Replicas(2 if "replicas" in needs else 1)
    cases: Sequence[tuple[int, str | Tier, str]] = AT_SERVERS if "servers" in needs else AT_WORKERS
    for batch, tier, owners in cases:
        tables = (
            EmbeddingTable("users", 1e6, 64, BoundedZipf(1_000_000, 0.9)),
            EmbeddingTable("items", 1e5, 32, BoundedZipf(100_000, 1.1), pooling=20.0),
        )
        model = Mlp(inputs=96, layers=(512, 256, 1))
        workload = Workload(model, tables, batch, InputPipeline(bytes=400.0, cpu_time=2e-6), bucket_bytes=3e5)
        yield TrainStep(workload, ShardingPlan(RowWise(tier, owners), replicas=copies), ranks)


def example_clusters(ranks: int, precision: str) -> Iterator[Cluster]:
    """Yield clusters of `ranks` ranks in which nothing, the network, the host or the accelerator is slow."""
    machine = catalog.machine(catalog.names("machine")[0])
    chip = replace(machine.accelerator, peak_flops={precision: max(machine.accelerator.peak_flops.values())})
    quick = Cluster(chip, machine.host, TwoLevel(100e9, 100e9, 1e-6, 1e-6), 1, ranks)
    yield quick
    yield replace(quick, servers=Servers(machine.host, 1e8, Rpc(1e-4, 1e-4, 1e-4, 1e-9, 1e-4, 1e-9), 1e-6))
    yield replace(quick, fabric=TwoLevel(1e9, 1e8, 1e-4, 1e-3))
    yield replace(
        quick, host=replace(machine.host, cores=1, dram_bandwidth=machine.host.dram_bandwidth / 100)
    )
    slow = replace(
        chip, peak_flops={precision: chip.peak(precision) / 1000}, hbm_bandwidth=chip.hbm_bandwidth / 100
    )
    yield replace(quick, accelerator=slow)
