"""Random clusters of at most 32 ranks, all parts written out, so that all can be changed."""

from random import Random
from typing import Any

Part = dict[str, Any]
SHAPES = [(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (4, 1), (2, 4), (4, 2), (8, 1), (4, 4), (8, 2), (8, 4)]
SLOWED = ("compute", "memory", "host", "copy_links", "network")


def cluster(rng: Random, served: bool, sparse: bool) -> Part:
    """Return a `cluster`: alike hosts, or with slow ranks, or of two groups.

    Where it is `served`, parameter servers can be reached; where it is `sparse`, chips have such engines.
    """
    per_host, hosts = rng.choice(SHAPES)
    sparse = sparse or rng.random() < 0.15
    wires = (_two_level if served else fabric)(rng, per_host, hosts)
    part: Part = {"per_host": per_host, "fabric": wires}
    if hosts > 1 and rng.random() < 0.1:
        few = rng.randint(1, hosts - 1)
        part["groups"] = [_group(rng, few, sparse), _group(rng, hosts - few, sparse)]
    else:
        part |= _group(rng, hosts, sparse)
    if rng.random() < 0.25:
        part["slow"] = [_slow(rng, per_host * hosts)]
    if rng.random() < 0.15:
        part["host_limit"] = rng.choice([1, 1.5, 2])
    if rng.random() < 0.2:
        part["cards_on_host_link"] = False
    if served and rng.random() < 0.8:
        part["servers"] = _servers(rng)
    if rng.random() < 0.2:
        part["collectives"] = _collectives(rng, part["fabric"]["kind"])
    if rng.random() < 0.15:
        part["rows"] = {"kind": "on_chip"}
    return part


def _group(rng: Random, hosts: int, sparse: bool) -> Part:
    return {"accelerator": accelerator(rng, sparse), "host": host(rng), "hosts": hosts}


def accelerator(rng: Random, sparse: bool) -> Part:
    """Return an accelerator, with sparse engines or without."""
    return {
        "name": "chip",
        "kind": "tpu" if sparse else "gpu",
        "peak_flops": dict.fromkeys(("fp32", "bf16"), f"{rng.choice([20, 150, 900])} TFLOP/s"),
        "hbm_bytes": "2 TB",
        "hbm_bandwidth": f"{rng.choice([600, 1500, 3300])} GB/s",
        "cache_bytes": "40 MB",
        "launch_time": f"{rng.choice([0, 2, 5])} us",
        "matrix_efficiency": rng.choice([0.5, 0.7]),
        "memory_efficiency": 0.85,
        "gather_efficiency": rng.choice([0.4, 0.8]),
        "host_link_bandwidth": f"{rng.choice([6, 25, 55])} GB/s",
        "sparse_cores": 4 if sparse else 0,
    }


def host(rng: Random, name: str = "host") -> Part:
    """Return a host, mostly with a disk, at times with a PCIe switch that its accelerators share."""
    part = {
        "name": name,
        "cores": rng.choice([8, 32, 128]),
        "dram_bytes": "4 TB",
        "dram_bandwidth": f"{rng.choice([60, 200, 400])} GB/s",
        "dram_efficiency": rng.choice([0.2, 0.5, 0.8]),
        "ssd_bytes": "20 TB",
        "ssd_bandwidth": f"{rng.choice([3, 20])} GB/s",
    }
    if rng.random() < 0.3:
        part["pcie_bandwidth"] = f"{rng.choice([20, 60])} GB/s"
    return part


def _slow(rng: Random, ranks: int) -> Part:
    named = sorted(rng.sample(range(ranks), rng.randint(1, max(1, ranks // 2))))
    return {"ranks": named, rng.choice(SLOWED): rng.choice([0.3, 0.7, 0.95])}


def _servers(rng: Random) -> Part:
    part: Part = {"host": host(rng, "server"), "bandwidth": f"{rng.choice([10, 100])} Gb/s"}
    if rng.random() < 0.6:
        part["rpc"] = {"first": "0.2 ms", "in_turn": "0.1 ms", "pipelined": "0.05 ms", "server_call": "30 us"}
    if rng.random() < 0.5:
        part["key_time"] = "0.02 us"
    return part


def _collectives(rng: Random, fabric_kind: str) -> Part:
    part: Part = {"per_peer": f"{rng.choice([0, 0.5])} us"}
    if fabric_kind != "torus":
        part["algorithms"] = {
            "all_to_all": rng.choice(["auto", "direct", "pairwise", "hierarchical"]),
            "all_reduce": rng.choice(["auto", "hierarchical", "ring", "tree"]),
        }
    return part


def fabric(rng: Random, per_host: int, hosts: int) -> Part:
    """Return a fabric of any kind that this many hosts fit on."""
    kinds = [_two_level, _two_level, _torus, _flat, _flat, _fat_tree, _rails]
    return rng.choice(kinds)(rng, per_host, hosts)


def _two_level(rng: Random, per_host: int, hosts: int) -> Part:
    return {
        "kind": "two_level",
        "within": f"{rng.choice([20, 100, 400])} GB/s",
        "between": f"{rng.choice([1, 10, 50])} GB/s",
        "latency": f"{rng.choice([0, 5, 30])} us",
    }


def _torus(rng: Random, per_host: int, hosts: int) -> Part:
    dims = [side for side in (per_host, hosts) if side > 1] or [1]
    return {
        "kind": "torus",
        "dims": dims,
        "link_bandwidth": f"{rng.choice([5, 50])} GB/s",
        "hop_latency": f"{rng.choice([0.1, 1])} us",
    }


def _wired(rng: Random, per_host: int, hosts: int) -> Part:
    kind = rng.choice(["switch", "full_mesh", "pcie"]) if per_host % 2 == 0 else "switch"
    inside: Part = {"kind": kind, "bandwidth": f"{rng.choice([20, 200])} GB/s"}
    if kind == "pcie":
        inside = {"kind": kind, "lane": _link(25), "per_switch": 2, "trunk": _link(rng.choice([25, 50]))}
    cards = {"nics": {"per_host": per_host, "bandwidth": f"{rng.choice([25, 100, 400])} Gb/s"}}
    return {"inside": inside, "start_up": f"{rng.choice([2, 20])} us"} | (cards if hosts > 1 else {})


def _link(rate: int) -> Part:
    return {"bandwidth": f"{rate} GB/s"}


def _flat(rng: Random, per_host: int, hosts: int) -> Part:
    return {"kind": "flat"} | _wired(rng, per_host, hosts)


def _fat_tree(rng: Random, per_host: int, hosts: int) -> Part:
    if hosts < 2:
        return _flat(rng, per_host, hosts)
    spines = {"switches": 2, "bandwidth": f"{rng.choice([50, 400])} Gb/s"}
    leaf = {"leaf_hosts": max(1, hosts // 2), "spines": spines}
    return {"kind": "fat_tree"} | leaf | _wired(rng, per_host, hosts)


def _rails(rng: Random, per_host: int, hosts: int) -> Part:
    if hosts < 2:
        return _flat(rng, per_host, hosts)
    part: Part = {"kind": "rails", "unit_hosts": hosts} | _wired(rng, per_host, hosts)
    if rng.random() < 0.5:
        part["spines"] = {"switches": 1, "bandwidth": f"{rng.choice([50, 400])} Gb/s"}
    else:
        part["relays"] = True
    return part
