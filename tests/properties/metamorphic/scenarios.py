"""Random scenarios: every policy, sharding, tier and fabric, alike and unlike ranks, jitter or none."""

from collections.abc import Iterator
from random import Random
from typing import Any

import yaml

from simulator.engine.contention import Contention
from simulator.errors import InfeasibleError, InputError
from simulator.scenario import Scenario
from simulator.scenario.document import Document
from simulator.scenario.memory import checked_memory
from simulator.scenario.simulate import tabulated

from .clusters import Part, cluster

MOST_DRAWS = 400  # how many scenarios may be refused in a row before the generator counts as broken
INTER = ("serialized", "stale_prefetch", "dual_buffer", "torchrec_sparse_dist", "torchrec_semi_sync")
POLICIES: list[Part] = [
    *({"kind": kind} for kind in ("serialized", "stale_prefetch", "dual_buffer", "hugectr", "fae", "het")),
    {"kind": "dual_buffer", "buffers": 1},
    *({"kind": f"torchrec_{kind}"} for kind in ("base", "sparse_dist", "prefetch", "fused", "semi_sync")),
    {"kind": "two_d_sparse", "inter_batch": "dual_buffer"},
    {"kind": "two_d_sparse"},
    {"kind": "frozen_window", "micro_batches": 2},
    {"kind": "frozen_window", "micro_batches": 4},
    {"kind": "gradient_accumulation", "batches": 2},
    {"kind": "nestpipe", "micro_batches": 2},
    {"kind": "nestpipe", "micro_batches": 4, "buffers": 1},
    *({"kind": kind} for kind in ("rpc_per_table", "rpc_coalesced", "no_cache")),
    {"kind": "bagpipe", "lookahead": 8},
    *({"kind": kind} for kind in ("sparse_core", "sparse_core_pipelined")),
]
SERVED = ("rpc_per_table", "rpc_coalesced", "no_cache", "bagpipe", "fae", "het")
HEADROOM = {"bagpipe": 12, "het": 21}


def scenario_of(data: Part) -> Scenario:
    """Return the scenario of plain data. Raises InputError as for a file."""
    return Scenario.of(Document(data, {}, "drawn.yaml"))


def as_yaml(data: Part) -> str:
    """Return the data as a file that `recscale run` takes."""
    return yaml.safe_dump(data, sort_keys=False)


def drawn(seed: int) -> Scenario:
    """Return the scenario number `seed`: the first of a sequence drawn from it that can run at all."""
    rng = Random(seed)
    for _ in range(MOST_DRAWS):
        found = scenario_of(any_data(rng))
        if can_run(found):
            return found
    raise AssertionError(f"none of {MOST_DRAWS} scenarios drawn from {seed} can run")


def can_run(scenario: Scenario) -> bool:
    """Return whether policy, sharding and fabric fit each other, and all have room."""
    try:
        checked_memory(scenario)
        tabulated(scenario, 1)
        Contention.of(scenario.graph, scenario.costs)
    except (InputError, InfeasibleError):
        return False
    return True


def any_data(rng: Random) -> Part:
    """Return a scenario as plain data; not every combination can run."""
    chosen = policy(rng)
    kind = chosen["kind"]
    served = kind in SERVED or rng.random() < 0.1
    hardware = cluster(rng, served, sparse=kind.startswith("sparse_core"))
    how = sharding(rng, remote=served)
    if kind in SERVED:
        how = {"kind": "row_wise", "tier": {"kind": "remote", "servers": rng.choice([1, 4])}}
    if kind == "two_d_sparse":
        how = {"kind": "row_wise", "tier": rng.choice(["dram", "hbm"])} | replicas(rng)
    return {
        "name": "drawn",
        "cluster": hardware,
        "workload": workload(rng),
        "sharding": how,
        "policy": chosen,
        "run": run(rng, chosen),
    }


def policy(rng: Random) -> Part:
    """Return a policy of the catalog, or one nested in another."""
    if rng.random() < 0.15:
        inner = rng.choice(
            [{"kind": "frozen_window", "micro_batches": 3}, {"kind": "gradient_accumulation", "batches": 2}]
        )
        return {"kind": "nested", "inter_batch": {"kind": rng.choice(INTER)}, "intra_batch": inner}
    return rng.choice(POLICIES)


def workload(rng: Random) -> Part:
    """Return one to four tables, and a model of any size beside them."""
    part: Part = {
        "model": _model(rng),
        "tables": [_table(rng, place) for place in range(rng.randint(1, 4))],
        "keys": rng.choice([{"kind": "uniform"}, {"kind": "zipf", "exponent": 1.05}]),
        "batch": rng.choice([96, 512, 4096]),
        "optimizer": rng.choice(["sgd", "adam_rowwise_adagrad"]),
    }
    if rng.random() < 0.6:
        part["input"] = {"bytes": "500 B", "cpu_time": f"{rng.choice([0, 2, 20])} us"}
    return part


def _model(rng: Random) -> Part:
    if rng.random() < 0.5:
        return {"kind": "mlp", "inputs": 256, "layers": [1024, 512, 1], "precision": "bf16"}
    return {
        "kind": "profile",
        "flops": rng.choice([1e3, 1e7, 1e9]),
        "memory_bytes": f"{rng.choice([0, 20])} kB",
        "parameters": rng.choice([1e3, 3e7]),
        "activation_bytes": "4 kB",
    }


def _table(rng: Random, place: int) -> Part:
    return {
        "name": f"table {place}",
        "rows": rng.choice([1000, 1_000_000, 40_000_000]),
        "dimension": rng.choice([32, 64, 128]),
        "pooling": rng.choice([1, 3, 30]),
    }


def _tier(rng: Random, remote: bool) -> Any:
    servers = {"kind": "remote", "servers": rng.choice([1, 4])}
    cached = {"kind": "hbm_cache", "share": rng.choice(["1 %", "20 %"]), "below": rng.choice(["dram", "ssd"])}
    return rng.choice(
        ["dram", "dram", "hbm", "hbm", "ssd", cached, cached, *[servers] * (8 if remote else 0)]
    )


def sharding(rng: Random, remote: bool) -> Part:
    """Return a sharding of any kind, one in six with copies, one in six with pooled exchanges."""
    part = rng.choice([_rows, _rows, _whole, _columns, _on_hosts, _grid, _copied, _mixed])(rng, remote)
    if rng.random() < 0.17:
        part |= replicas(rng)
    if rng.random() < 0.17:
        part["exchange"] = "pooled"
    return part


def replicas(rng: Random) -> Part:
    """Return two copies of all tables."""
    return {"replicas": {"count": 2, "every": rng.choice([1, 2]), "rows": rng.choice(["all", "touched"])}}


def _rows(rng: Random, remote: bool) -> Part:
    part: Part = {"kind": "row_wise", "tier": _tier(rng, remote)}
    if rng.random() < 0.3:
        part["owners"] = "drawn"
    elif rng.random() < 0.2:
        part["shares"] = [1, 2, 1.5, 1]
    return part


def _whole(rng: Random, remote: bool) -> Part:
    return {"kind": "table_wise", "tier": _tier(rng, remote)}


def _columns(rng: Random, remote: bool) -> Part:
    return {"kind": "column_wise", "shards": 2, "tier": _tier(rng, remote)}


def _on_hosts(rng: Random, remote: bool) -> Part:
    return {"kind": "table_row_wise", "tier": _tier(rng, remote)}


def _grid(rng: Random, remote: bool) -> Part:
    return {"kind": "grid", "shards": 2, "tier": _tier(rng, remote)}


def _copied(rng: Random, remote: bool) -> Part:
    return {"kind": "data_parallel"}


def _mixed(rng: Random, remote: bool) -> Part:
    rule = {"tables": ["table 0"], "sharding": rng.choice([_whole, _copied, _rows])(rng, remote)}
    return {"kind": "mixture", "default": rng.choice([_rows, _whole])(rng, remote), "rules": [rule]}


def run(rng: Random, chosen: Part) -> Part:
    """Return run settings: few batches, one run in five with jitter."""
    warm_up = HEADROOM.get(chosen["kind"], 7)
    part: Part = {"batches": 2 * warm_up + 10, "warm_up": warm_up, "seed": rng.randint(0, 99)}
    if rng.random() < 0.2:
        part["jitter"] = dict.fromkeys(("compute", "input", "lookup", "all_to_all"), rng.choice([0.05, 0.3]))
    if rng.random() < 0.15:
        part["weights"] = "flow"
    return part


def scenarios(first: int, count: int) -> Iterator[Scenario]:
    """Yield `count` scenarios, from number `first` on."""
    return (drawn(seed) for seed in range(first, first + count))
