"""From the words for a machine to the `cluster` part of a scenario.

The name of an accelerator is read whole, product, form and memory; a name with anything else is refused.
What the words leave open is taken from the other columns, then from the commonest machine, and noted.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from analysis.training import sheets
from analysis.training.rows import Row
from analysis.training.sheets import Part
from simulator.errors import InputError, did_you_mean
from simulator.hardware import catalog
from simulator.units import parse_quantity, shown

_NAME = re.compile(r"(?:NVIDIA[ _-]+)?(?:TESLA[ _-]+)?([A-Z]+\d+[A-Z]*)((?:[ _-]+\w+)*)", re.IGNORECASE)
_FORMS = (("pcie", r"PCI-?E?\d?"), ("sxm", r"(?:SXM|HGX)\d?"), ("nvl", r"NVL(?:\d+)?"))
_MEMORY = re.compile(r"(\d+)\s*(?:GB|GIB|G)\b", re.IGNORECASE)
_MEBIBYTES = re.compile(r"(\d{4,})\s*MIB\b", re.IGNORECASE)
BETWEEN_A100 = 60.0  # GB: more than the smaller A100 has, less than the larger
BETWEEN_V100 = 24.0  # GB, likewise
ALIKE = 0.12  # of the memory: makers, drivers and sheets count it differently
_PASSED = re.compile(r"\d+(?:GB|GIB|G)?|GB|GIB|HBM\d?E?|TENSOR|CORE|GPU|[AC]C", re.IGNORECASE)


@dataclass(frozen=True)
class Machine:
    """An accelerator, the fabric and host around it, and `chips`, the family whose lookup kernels it runs.

    Names of the catalog, or parts written out; `notes` say what was assumed.
    """

    accelerator: str | Part
    fabric: str | Part
    chips: str
    host: str = "dgx_a100"
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the accelerator."""
        return self.accelerator if isinstance(self.accelerator, str) else str(self.accelerator["name"])

    @property
    def bytes(self) -> float:
        """The memory of the accelerator."""
        if isinstance(self.accelerator, str):
            return float(catalog.accelerator(self.accelerator).hbm_bytes)
        return float(parse_quantity(self.accelerator["hbm_bytes"], "bytes"))


_DGX_A100 = Machine("a100_80", "dgx_a100", "ampere")
_DGX_H100 = Machine("h100", "dgx_h100", "hopper", "dgx_h100")
# (product, form) as names say them; the first form of a product is the one that is assumed.
_KNOWN: Mapping[tuple[str, str], Machine] = {
    ("A100", "sxm"): _DGX_A100,
    ("A100", "pcie"): Machine("a100_80", sheets.PCIE_4, "ampere"),
    ("A30", "pcie"): Machine(sheets.A30, sheets.PCIE_4, "ampere"),
    ("A40", "pcie"): Machine(sheets.A40, sheets.PCIE_4, "ampere"),
    ("L40", "pcie"): Machine(sheets.L40, sheets.PCIE_4, "ampere"),
    ("L40S", "pcie"): Machine(sheets.L40S, sheets.PCIE_4, "ampere"),
    ("V100", "sxm"): Machine("v100", "dgx_1", "ampere", "dgx_1"),
    ("V100", "pcie"): Machine(sheets.V100_PCIE, sheets.PCIE_3, "ampere"),
    ("H100", "sxm"): _DGX_H100,
    ("H100", "pcie"): Machine(sheets.H100_PCIE, sheets.PCIE_5, "hopper"),
    ("H100", "nvl"): Machine(sheets.H100_NVL, sheets.PCIE_5, "hopper"),
    ("H200", "sxm"): replace(_DGX_H100, accelerator="h200"),
    ("H200", "nvl"): Machine(sheets.H200_NVL, sheets.PCIE_5, "hopper"),
    ("B200", "sxm"): Machine("b200", "dgx_b200", "hopper", "dgx_b200"),
    ("B300", "sxm"): Machine(sheets.B300, "dgx_b200", "hopper", "dgx_b200"),
    ("GB200", "nvl"): Machine("gb200", "gb200_nvl72", "hopper", "gb200_tray"),
    ("GB300", "nvl"): Machine(
        "gb200", "gb200_nvl72", "hopper", "gb200_tray", ("accelerator: as a GB200, of whose kind it is",)
    ),
}
_SAID_BY_PRODUCT = frozenset({"A30", "A40", "L40", "L40S", "B200", "B300", "GB200", "GB300"})  # one form only

# The smallest all-to-all among 16 A100 on two hosts took 58 us, the smallest all-reduce 34
# (https://github.com/argonne-lcf/alcf-nccl-tests, 385be33): the difference, for each of 15 peers.
PER_PEER = "1.6 us"
# Measured collectives of like machines, by fabric and whether there are several hosts.
_CURVES: Mapping[tuple[str, bool], Part] = {
    ("dgx_a100", False): {
        "all_reduce": "sb_a100_nccl2_8_2_10_all_reduce",
        "all_to_all": "sb_a100_nccl2_8_2_10_all_to_all",
    },
    ("dgx_a100", True): {"all_reduce": "alcf_sophia_nccl_ib_verbs_tuned_all_reduce"},
    ("dgx_h100", False): {
        "all_reduce": "xla_h100_xla_collectives_over_nccl_all_reduce",
        "all_to_all": "xla_h100_xla_collectives_over_nccl_all_to_all",
    },
    ("dgx_h100", True): {"all_reduce": "h100_ib400_a_nccl2_26_2_all_reduce"},
}


def known(row: Row) -> Machine:
    """Return the machine of a row. Raises InputError for an unknown one."""
    product, words = _parts(row.accelerator)
    form, told = _form(product, words, row)
    machine = _KNOWN.get((product, form))
    if machine is None:
        raise InputError(f"nothing is known about the accelerator {shown(row.accelerator)}")
    machine = _sized(replace(machine, notes=(*machine.notes, *told)), product, row)
    return _placed(machine, row)


def _parts(name: str) -> tuple[str, list[str]]:
    """Return the product and the other words of a name, what stands in brackets left out."""
    bare = re.sub(r"\(.*?\)", " ", name).strip()
    found = _NAME.fullmatch(bare)
    products = sorted({product for product, _ in _KNOWN})
    if found is None or found.group(1).upper() not in products:
        near = did_you_mean(found.group(1) if found else bare, products)
        raise InputError(f"nothing is known about the accelerator {shown(name)}{near}")
    words = [word for word in re.split(r"[ _-]+", found.group(2)) if word]
    odd = [word for word in words if not _PASSED.fullmatch(word) and not _form_of(word)]
    if odd:
        raise InputError(f"nothing is known about the accelerator {shown(name)}: what {odd[0]} is")
    return found.group(1).upper(), words


def _form_of(word: str) -> str:
    return next((form for form, spelled in _FORMS if re.fullmatch(spelled, word, re.IGNORECASE)), "")


def _form(product: str, words: list[str], row: Row) -> tuple[str, tuple[str, ...]]:
    """Return the form of a board, and whether it was assumed."""
    usual = next(form for name, form in _KNOWN if name == product)
    said = next(filter(None, map(_form_of, words)), "")
    if said or product in _SAID_BY_PRODUCT:
        return (usual if product in _SAID_BY_PRODUCT else said), ()
    wires = f"{row.accelerator} {row.words.get('intra_node_interconnect', '')} {row.words.get('network', '')}"
    if re.search(r"nv ?link|nv ?switch|sxm|dgx", wires, re.IGNORECASE):
        return "sxm", ("form: SXM, read off the wires inside the host",)
    if re.search(r"\bpci", wires, re.IGNORECASE):
        return "pcie", ("form: PCIe, read off the wires inside the host",)
    return usual, ("form of the accelerator not stated: taken as SXM",)


def memory(row: Row) -> float | None:
    """Return the gigabytes of an accelerator as its name, or else their column, says; None for neither."""
    for text in (row.accelerator, row.words.get("accel_memory", "")):
        if found := _MEMORY.search(text):
            return float(found.group(1))
        if found := _MEBIBYTES.search(text):
            return float(found.group(1)) * 2**20 / 1e9
    return None


def _sized(machine: Machine, product: str, row: Row) -> Machine:
    """Return the machine with the memory that the row says, where boards of a product differ in it."""
    size = memory(row)
    if product == "A100":
        if size is None:
            return replace(machine, notes=(*machine.notes, "memory not stated: taken as 80 GB"))
        return replace(machine, accelerator="a100_40") if size < BETWEEN_A100 else machine
    if machine.accelerator == "v100" and size is not None and size < BETWEEN_V100:
        machine = replace(machine, accelerator="v100_16")
    own = machine.bytes / 1e9
    if size is None or abs(size / own - 1) <= ALIKE:
        return machine
    return replace(machine, notes=(*machine.notes, f"memory: {own:.0f} GB, not the {size:.0f} stated"))


def _placed(machine: Machine, row: Row) -> Machine:
    """Return the machine in the server that the name says in brackets, or else in the usual one."""
    if row.accelerator.upper().startswith("V100") and re.search(
        r"SXM3|DGX-?2", row.accelerator, re.IGNORECASE
    ):
        machine = replace(machine, fabric=sheets.NVSWITCH_2, host="dgx_a100")
    if machine.fabric == "dgx_1" and row.per_host > 8:
        raise InputError(f"no server is known with {row.per_host} V100 on NVLink")
    if machine.fabric == "dgx_a100" and "P4D" in row.accelerator.upper() and row.hosts > 1:
        machine = replace(machine, fabric="aws_p4d_24xlarge", host="aws_p4d_24xlarge")
    if row.hosts > 1:
        machine = replace(machine, notes=(*machine.notes, *_between(machine, row)))
    return machine


def _between(machine: Machine, row: Row) -> list[str]:
    """Return a note on the network between hosts: no column says its rate in a form that can be read."""
    fabric = machine.fabric if isinstance(machine.fabric, str) else "a 200 Gb/s card for two accelerators"
    said = row.words.get("host_networking") or row.words.get("network") or "nothing"
    return [f"between hosts: {fabric} (stated: {said})"]


def curves(row: Row) -> Part:
    """Return the measured collectives of machines like a row's: eight accelerators on NVSwitch per host."""
    fabric = known(row).fabric
    if row.per_host != 8 or not isinstance(fabric, str):
        return {}
    return _CURVES.get((fabric, row.hosts > 1), {})


def cluster(row: Row) -> Part:
    """Return the `cluster` part of a scenario. Raises InputError for an unknown machine."""
    machine = known(row)
    part: Part = {"accelerator": machine.accelerator, "per_host": row.per_host, "hosts": row.hosts}
    part["rows"], part["compute"] = {"kind": "on_chip"}, {"kind": "kernels"}
    measured = curves(row)
    part["collectives"] = measured if "all_to_all" in measured else {**measured, "per_peer": PER_PEER}
    fabric: Any = machine.fabric
    part["fabric"] = fabric if isinstance(fabric, str) else {**sheets.BETWEEN, **fabric}
    part["host"] = machine.host
    return part
