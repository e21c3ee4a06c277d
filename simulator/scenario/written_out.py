"""Entries of the hardware catalog as a scenario writes them out: the same numbers, hence the same step."""

from collections.abc import Callable, Mapping
from typing import Any

from simulator.hardware import catalog
from simulator.scenario import software_catalog
from simulator.scenario.fabric_spec import fabric_part

Entry = Mapping[str, Any]


def written_out(kind: str, name: str) -> dict[str, Any] | None:
    """Return the part of a scenario that says what naming the entry says; None for kinds that are only named.

    An accelerator keeps its name, by which measured laws of matrix products are found. A machine is a
    `cluster` of one host. Network cards, curves of collectives and laws of matrix products are not written
    into scenarios one by one. Raises InputError for a name that is not there.
    """
    form = _FORMS.get(kind)
    return None if form is None else form(name)


def _accelerator(name: str) -> dict[str, Any]:
    raw = catalog.entry("accelerator", name)
    peaks = {precision: peak["value"] for precision, peak in raw["peak_flops"].items()}
    return {"name": name, "kind": raw["kind"], "peak_flops": peaks, **_numbers(raw)}


def _host(name: str) -> dict[str, Any]:
    return {"name": name, **_numbers(catalog.entry("host", name))}


def _fabric(name: str) -> dict[str, Any]:
    raw = catalog.entry("fabric", name)
    return fabric_part(raw["kind"]).written_out(raw)


def _machine(name: str) -> dict[str, Any]:
    raw = catalog.entry("machine", name)
    return {
        "accelerator": _accelerator(raw["accelerator"]),
        "per_host": raw["per_host"]["value"],
        "hosts": 1,
        "host": _host(raw["host"]),
        "fabric": _fabric(raw["fabric"]),
    }


def _numbers(raw: Entry) -> dict[str, Any]:
    return {field: one["value"] for field, one in raw.items() if isinstance(one, Mapping) and "value" in one}


_FORMS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "accelerator": _accelerator,
    "host": _host,
    "fabric": _fabric,
    "machine": _machine,
    "software": software_catalog.profile_data,
}
