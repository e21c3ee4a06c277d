"""From raw entries to value objects: numbers with units become SI floats, names become parts."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

from simulator.errors import InputError
from simulator.hardware.catalog.entries import Entry, entry
from simulator.hardware.cluster import Machine
from simulator.hardware.fabric import Fabric, TwoLevel
from simulator.hardware.parts import Accelerator, Host, Nic
from simulator.hardware.torus import Torus
from simulator.units import parse_quantity, usd_per_hour

# The dimension of every numeric field, as `simulator.units` calls it; counts are whole numbers.
DIMENSIONS: Mapping[str, str] = {
    "peak_flops": "rate",
    "vector_flops": "rate",
    "hbm_bytes": "bytes",
    "cache_bytes": "bytes",
    "dram_bytes": "bytes",
    "ssd_bytes": "bytes",
    "hbm_bandwidth": "bandwidth",
    "host_link_bandwidth": "bandwidth",
    "dram_bandwidth": "bandwidth",
    "ssd_bandwidth": "bandwidth",
    "link_bandwidth": "bandwidth",
    "bandwidth": "bandwidth",
    "within": "bandwidth",
    "between": "bandwidth",
    "launch_time": "time",
    "hop_latency": "time",
    "within_latency": "time",
    "between_latency": "time",
    "matrix_efficiency": "fraction",
    "memory_efficiency": "fraction",
    "gather_efficiency": "fraction",
    "dram_efficiency": "fraction",
    "within_efficiency": "fraction",
    "between_efficiency": "fraction",
    "efficiency": "fraction",
    "price_usd_per_hour": "money",
    "power_watts": "power",
    "sparse_cores": "count",
    "tensor_cores": "count",
    "cores": "count",
    "per_host": "count",
    "domain": "count",
    "decay_workers": "count",
    "dims": "count",
}
PROSE = ("note", "kind", "accelerator", "host", "fabric", "wrap", "only_priced")


def quantity(field: str, value: object) -> float:
    """Return a field's value in SI units (prices: USD per hour); raise InputError naming the field."""
    dimension = DIMENSIONS[field]
    if dimension == "count":
        return _count(field, value)
    try:
        amount = parse_quantity(value, dimension)
    except ValueError as problem:
        raise InputError(f"{field}: {problem}") from None
    hourly = usd_per_hour(amount) if dimension == "money" else None
    return amount if hourly is None else hourly


def _count(field: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{field}: a whole number is needed, not {value!r}")
    return value


@cache
def accelerator(name: str) -> Accelerator:
    """Return the accelerator of that name; raise InputError, with the nearest name, if there is none."""
    raw = entry("accelerator", name)
    peaks = {kind: quantity("peak_flops", peak["value"]) for kind, peak in raw["peak_flops"].items()}
    return Accelerator(name=name, kind=raw["kind"], peak_flops=peaks, **_numbers(raw, "peak_flops"))


@cache
def host(name: str) -> Host:
    """Return the host of that name; raise InputError, with the nearest name, if there is none."""
    return Host(name=name, **_numbers(entry("host", name)))


@cache
def nic(name: str) -> Nic:
    """Return the network card of that name; raise InputError, with the nearest name, if there is none."""
    return Nic(name=name, **_numbers(entry("nic", name)))


@cache
def fabric(name: str) -> Fabric:
    """Return the fabric of that name; raise InputError, with the nearest name, if there is none."""
    raw = entry("fabric", name)
    return _FABRICS[raw["kind"]](raw)


@cache
def machine(name: str) -> Machine:
    """Return the server of that name; raise InputError, with the nearest name, if there is none."""
    raw = entry("machine", name)
    parts = accelerator(raw["accelerator"]), host(raw["host"]), fabric(raw["fabric"])
    return Machine(name, *parts, **_numbers(raw))


def _two_level(raw: Entry) -> Fabric:
    return TwoLevel(**_numbers(raw))


def _torus(raw: Entry) -> Fabric:
    dims = tuple(_count("dims", length) for length in raw["dims"]["value"])
    return Torus(dims=dims, wrap=cast(bool, raw["wrap"]), **_numbers(raw, "dims"))


_FABRICS: Mapping[str, Callable[[Entry], Fabric]] = {"two_level": _two_level, "torus": _torus}


def _numbers(raw: Entry, *apart: str) -> dict[str, Any]:
    """Return the numeric fields of an entry in SI units, those in `apart` left out."""
    fields = [name for name in raw if name not in PROSE and name not in apart]
    return {name: quantity(name, raw[name]["value"]) for name in fields}
