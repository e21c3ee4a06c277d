"""Devices that matrix products were measured on: what they are in the catalog, and their multiprocessors."""

from collections.abc import Mapping, Sequence

from simulator.hardware import catalog

BOOK = "https://github.com/jax-ml/scaling-book gpus.md (revision 1a55377)"
MAKER = "multiprocessors (compute units) as the maker counts them"
# Multiprocessors by accelerator.
UNITS: Mapping[str, int] = {
    "v100": 80,
    "a100_40": 108,
    "a100_80": 108,
    "h100": 132,
    "h200": 132,
    "b200": 148,
    "gb200": 148,
    "mi300x": 304,
    "mi355x": 256,
}
# Accelerators that a device of a table is, the measured one first; only whole names are known: an H100 on a
# PCIe card has fewer multiprocessors than one on a board.
DEVICES: Mapping[str, Sequence[str]] = {
    "H100-SXM": ("h100", "h200"),
    "B200": ("b200", "gb200"),
    "MI300X-class": ("mi300x",),
    "MI355X-class": ("mi355x",),
}
# Formats that stand for a precision of the catalog.
PRECISIONS: Mapping[str, str] = {"bf16": "bf16xbf16->bf16", "fp16": "f16xf16->f16", "tf32": "f32xf32->f32"}


def units_of(device: str) -> int | None:
    """Return the multiprocessors of a device, a name of `DEVICES` or of the catalog; None if unknown."""
    return UNITS.get(DEVICES.get(device, (device,))[0])


def accelerators_of(device: str) -> tuple[str, ...]:
    """Return the accelerators of the catalog that a device is, the measured one first; perhaps none."""
    known = set(catalog.names("accelerator"))
    return tuple(name for name in DEVICES.get(device, (device,)) if name in known)


def nominal_rates(device: str, formats: str) -> tuple[float, float] | None:
    """Return the peak (flop/s) and the memory bandwidth (bytes/s) that the maker prints; None if unknown."""
    precision = next((name for name, one in PRECISIONS.items() if one == formats), None)
    names = accelerators_of(device)
    chip = catalog.accelerator(names[0]) if names else None
    if chip is None or precision is None or precision not in chip.peak_flops:
        return None
    return chip.peak(precision), chip.hbm_bandwidth
