"""Other ways to say the same: catalog entries written out, two levels as the wires that they are."""

from typing import Any

from simulator.hardware import catalog
from simulator.scenario.machine_spec import machine_with
from simulator.scenario.scenario import Scenario
from simulator.scenario.simulate import run_scenario
from simulator.scenario.written_out import written_out

Data = dict[str, Any]


def spelled_out(data: Data) -> Data:
    """Write out what a resolved scenario only names: software, accelerators, hosts, servers, the fabric."""
    if isinstance(data["software"], str):
        data["software"] = written_out("software", data["software"])
    cluster = data["cluster"]
    if cluster["groups"] and cluster["fabric"] is None:  # the slowest fabric of the groups' machines
        return data
    cluster["fabric"] = cluster["fabric"] or machine_part(cluster["accelerator"], "fabric")
    groups = cluster["groups"] or [cluster]
    for one in groups:
        one["host"] = one["host"] or machine_part(one["accelerator"], "host")
    for one in (cluster, *groups, cluster["servers"] or {}):
        for part in ("accelerator", "host", "fabric"):
            if isinstance(one.get(part), str):
                one[part] = written_out(part, one[part])
    return data


def machine_part(accelerator: str, part: str) -> str:
    """Return what the machine of the catalog with this accelerator has as `part`."""
    return str(catalog.entry("machine", machine_with(accelerator, part))[part])


def gb(rate: float) -> str:
    """Return a rate in GB/s as a scenario writes it."""
    return f"{rate!r} GB/s"


def us(time: float) -> str:
    """Return a time in microseconds as a scenario writes it."""
    return f"{time!r} us"


def wired(kind: str, two_level: dict[str, float], per_host: int, hosts: int) -> Data:
    """Return a fabric of `kind` with the wires of two levels: a card each, and no link above fills.

    `two_level` has the rates `within` and `between`, in GB/s, and `latency`, in microseconds.
    """
    within, between, latency = (two_level[field] for field in ("within", "between", "latency"))
    common = {
        "kind": kind,
        "inside": {"kind": "switch", "bandwidth": gb(within)},
        "nics": {"per_host": per_host, "bandwidth": gb(between)},
        "start_up": us(latency),
    }
    leaves = {
        "flat": {},
        "rails": {"unit_hosts": hosts // 2, "spines": {"switches": 2, "bandwidth": gb(hosts * between)}},
        "fat_tree": {"leaf_hosts": 1, "spines": {"switches": 2, "bandwidth": gb(per_host * between)}},
    }
    return {**common, **leaves[kind]}


def told(one: Scenario, engine: str) -> list[float]:
    """Return what equal wires must give alike: the step, its bound, and how busy everything is."""
    report = run_scenario(one, engine).report
    return [report.step_ms["mean"], report.lower_bound_ms, *report.busy_share.values()]
