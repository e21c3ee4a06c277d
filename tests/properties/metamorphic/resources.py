"""Changes by which a scenario has more of one resource, or less to do."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from random import Random
from typing import Any

from .clusters import Part

Place = tuple[Any, str]  # a mapping in the scenario, and the key that is changed there


def more_of(name: str) -> Callable[[Part, Random], Part | None]:
    """Return the change by which there is more of `name` everywhere (None where there is none at all)."""

    def change(data: Part, rng: Random) -> Part | None:
        changed = deepcopy(data)
        places = list(MORE[name](changed))
        factor = rng.choice([1.1, 1.5, 3.0])
        for part, key in places:
            part[key] = _better(part[key], key, factor)
        return changed if changed != data else None

    return change


FEWER = ("launch_time", "latency", "hop_latency", "start_up", "cpu_time", "per_peer", "flops", "memory_bytes")
SHARES = ("matrix_efficiency", "memory_efficiency", "gather_efficiency", "dram_efficiency")
COUNTS = ("cores",)


def _better(value: Any, key: str, factor: float) -> Any:
    """Return more of what helps, less of what hinders."""
    by = 1 / factor if key in FEWER or key in CALLS else factor
    if isinstance(value, dict):
        return {name: _better(one, key, factor) for name, one in value.items()}
    if isinstance(value, str):
        number, unit = value.split(" ")
        return f"{float(number) * by:.6g} {unit}"
    if key in SHARES:
        return min(1.0, value * by)
    return int(value * by) if key in COUNTS else value * by


CALLS = ("first", "in_turn", "pipelined", "server_call", "key_time")


def _groups(data: Part) -> list[Part]:
    return data["cluster"].get("groups", [data["cluster"]])


def _accelerators(key: str) -> Callable[[Part], Iterator[Place]]:
    return lambda data: ((group["accelerator"], key) for group in _groups(data))


def _hosts(key: str) -> Callable[[Part], Iterator[Place]]:
    return lambda data: ((group["host"], key) for group in _groups(data) if key in group["host"])


def _wires(*keys: str) -> Callable[[Part], Iterator[Place]]:
    """All keys of these names anywhere in the fabric."""

    def found(part: Any) -> Iterator[Place]:
        for key, value in part.items() if isinstance(part, dict) else ():
            if key in keys and not isinstance(value, dict):
                yield part, key
            yield from found(value)

    return lambda data: found(data["cluster"]["fabric"])


def _inside(data: Part) -> Iterator[Place]:
    fabric = data["cluster"]["fabric"]
    yield from ((fabric, key) for key in ("within",) if key in fabric)
    inside = fabric.get("inside", {})
    yield from ((inside, key) for key in ("bandwidth",) if key in inside)
    yield from ((inside[key], "bandwidth") for key in ("lane", "trunk") if key in inside)


def _outside(data: Part) -> Iterator[Place]:
    fabric = data["cluster"]["fabric"]
    yield from ((fabric, key) for key in ("between", "link_bandwidth") if key in fabric)
    yield from ((fabric[key], "bandwidth") for key in ("nics", "spines") if key in fabric)


def _servers(data: Part) -> Iterator[Place]:
    servers = data["cluster"].get("servers")
    for key in ("bandwidth", "key_time") if servers else ():
        yield from [(servers, key)] if key in servers else []
    for key in servers.get("rpc", {}) if servers else ():
        yield servers["rpc"], key


def _per_peer(data: Part) -> Iterator[Place]:
    found = data["cluster"].get("collectives", {})
    yield from [(found, "per_peer")] if "per_peer" in found else []


def _dense(key: str) -> Callable[[Part], Iterator[Place]]:
    return lambda data: ((data["workload"]["model"], key) for _ in (0,) if key in data["workload"]["model"])


def _input(data: Part) -> Iterator[Place]:
    return ((data["workload"]["input"], "cpu_time") for _ in (0,) if "input" in data["workload"])


MORE: Mapping[str, Callable[[Part], Iterator[Place]]] = {
    **{
        key: _accelerators(key)
        for key in (
            "peak_flops",
            "hbm_bandwidth",
            "matrix_efficiency",
            "memory_efficiency",
            "gather_efficiency",
            "launch_time",
            "host_link_bandwidth",
        )
    },
    **{
        key: _hosts(key)
        for key in ("cores", "dram_bandwidth", "dram_efficiency", "ssd_bandwidth", "pcie_bandwidth")
    },
    "bandwidth inside domains": _inside,
    "bandwidth between domains": _outside,
    "of the fabric's speed to start": _wires("latency", "hop_latency", "start_up"),
    "of the servers": _servers,
    "speed of messages to peers": _per_peer,
    "speed of input": _input,
    "speed of flops": _dense("flops"),
    "speed of passes": _dense("memory_bytes"),
}
