"""Laws of matrix products by name: the catalog file `gemm.yaml`, and what is assumed where it is silent."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from simulator.costs.gemm import GemmTime, TileLaw
from simulator.costs.gemm_laws import formats_of
from simulator.hardware import Accelerator, catalog


def devices() -> tuple[str, ...]:
    """Return the names of the measured devices, as the source writes them."""
    return tuple(str(entry["device"]) for entry in _read()["entries"].values())


def measured_law(device: str, formats: str) -> GemmTime | None:
    """Return law and residual of a measured device and its number formats; None if there is none."""
    return _measured().get((device, formats))


@cache
def gemm_time(accelerator: Accelerator, precision: str) -> GemmTime:
    """Return the law of an accelerator of the catalog: as measured, or from its nominal rates.

    Unmeasured GPUs reach at best the share of the peak that a measured one does, and their memory
    efficiency of the bandwidth, with the tile waste and the sharpness of the measured ones; other devices
    their own matrix efficiency; arithmetic outside of matrix engines reaches `vector_share`. An entry
    was measured on the first of its accelerators: another one of its list, or one that bears such a name
    and has other nominal rates, is as much faster or slower as its peak and its bandwidth are (our
    assumption). Raises InputError for an unknown precision.
    """
    known = _known(accelerator.name, precision)
    if known is None:
        return GemmTime(_assumed(accelerator, precision))
    measured, found = known
    return _at_rates_of(accelerator, precision, catalog.accelerator(measured), found)


def assumed_of(accelerator: Accelerator, precision: str) -> str:
    """Return in words what `gemm_time` assumes of an accelerator; nothing where it was measured."""
    known = _known(accelerator.name, precision)
    if known is None:
        return f"no measured law for {precision}: analytic form only"
    law = known[1].law
    return "" if gemm_time(accelerator, precision).law == law else f"the law of {known[0]}, scaled by rates"


def attention_share() -> float:
    """Return the share of the peak that fused attention kernels reach."""
    return float(_read()["general"]["attention_share"]["value"])


def _known(name: str, precision: str) -> tuple[str, GemmTime] | None:
    """Return the accelerator that was measured for one of this name, and what was found."""
    for entry in _read()["entries"].values():
        formats = entry["precisions"].get(precision)
        if name in entry["accelerators"] and formats is not None:
            return entry["accelerators"][0], _measured()[entry["device"], formats]
    return None


def _at_rates_of(wanted: Accelerator, precision: str, measured: Accelerator, found: GemmTime) -> GemmTime:
    """Return what was `found` on the `measured` accelerator, as much faster as the wanted one is."""
    faster = wanted.peak(precision) / measured.peak(precision)
    wider = wanted.hbm_bandwidth / measured.hbm_bandwidth
    if faster == wider == 1.0:
        return found
    law = replace(found.law, rate=found.law.rate * faster, bandwidth=found.law.bandwidth * wider)
    return replace(found, law=law)


def _assumed(accelerator: Accelerator, precision: str) -> TileLaw:
    general = _read()["general"]
    peak = accelerator.peak(precision)
    plain = peak == accelerator.vector_flops
    units = _read()["units"].get(accelerator.name, {"value": 0})["value"]
    share = general["matrix_share"]["value"] if units else accelerator.matrix_efficiency
    share = general["vector_share"]["value"] if plain else share
    return TileLaw(
        rate=peak * share,
        bandwidth=accelerator.streaming_bandwidth,
        start_up=accelerator.launch_time,
        units=units or 1.0,
        quantisation=general["quantisation"]["value"] if units else 0.0,
        sharpness=general["sharpness"]["value"],
    )


@cache
def _measured() -> Mapping[tuple[str, str], GemmTime]:
    return {
        (str(entry["device"]), formats): time
        for entry in _read()["entries"].values()
        for formats, time in formats_of(entry).items()
    }


@cache
def _read() -> Mapping[str, Any]:
    import yaml

    text = files("simulator.hardware.catalog").joinpath("gemm.yaml").read_text(encoding="utf-8")
    found: Mapping[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return found
