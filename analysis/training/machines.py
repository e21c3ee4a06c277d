"""From the words for a machine to the `cluster` part of a scenario.

Machines of the catalog are named; the others are written out here from data sheets, with what a sheet does
not say taken from the nearest machine of the catalog.
"""

import re
from collections.abc import Mapping
from typing import Any

from analysis.training.tables import Row
from simulator.errors import InputError

Part = dict[str, Any]

# Accelerators that the catalog lacks: data sheets of A30 and L40 (peaks without sparsity), launch and
# efficiencies as an A100's.
_AMPERE = {
    "kind": "gpu",
    "launch_time": "2 us",
    "matrix_efficiency": 0.72,
    "memory_efficiency": 0.9,
    "gather_efficiency": 0.8,
    "host_link_bandwidth": "31.5 GB/s",
}
A30: Part = {
    "name": "a30",
    "peak_flops": {
        "fp32": "10.3 TFLOP/s",
        "tf32": "82 TFLOP/s",
        "fp16": "165 TFLOP/s",
        "bf16": "165 TFLOP/s",
    },
    "hbm_bytes": "24 GB",
    "hbm_bandwidth": "933 GB/s",
    "cache_bytes": "24 MB",
    **_AMPERE,
}
L40: Part = {
    "name": "l40",
    "peak_flops": {
        "fp32": "90.5 TFLOP/s",
        "tf32": "90.5 TFLOP/s",
        "fp16": "181 TFLOP/s",
        "bf16": "181 TFLOP/s",
    },
    "hbm_bytes": "48 GB",
    "hbm_bandwidth": "864 GB/s",
    "cache_bytes": "96 MB",
    **_AMPERE,
}
# PCIe 4.0 x16 between accelerators of one host: half of the lanes' rate, as two share a switch's uplink.
PCIE: Part = {"kind": "two_level", "within": "31.5 GB/s", "within_efficiency": 0.5, "within_latency": "40 us"}
# DGX-2: 16 V100 on NVSwitch; the share that an all-to-all reaches, and the start-up, as on the A100's.
NVSWITCH_2: Part = {
    "kind": "two_level",
    "within": "150 GB/s",
    "within_efficiency": 0.75,
    "within_latency": "34 us",
}
# Between hosts, where nothing is known: one 200 Gb/s card for two accelerators, as reached by a DGX A100.
_BETWEEN = {"between": "12.5 GB/s", "between_efficiency": 0.85, "latency": "34 us"}

# (pattern of the accelerator's name, accelerator, fabric, family of its lookup kernels)
_KNOWN: tuple[tuple[str, Any, Any, str], ...] = (
    (r"^A100.*PCI", "a100_80", PCIE, "ampere"),
    (r"^A100.*40 ?GB", "a100_40", "dgx_a100", "ampere"),
    (r"^A100", "a100_80", "dgx_a100", "ampere"),
    (r"^GB200", "gb200", "gb200_nvl72", "hopper"),
    (r"^B200", "b200", "dgx_b200", "hopper"),
    (r"^H200", "h200", "dgx_h100", "hopper"),
    (r"^H100.*(PCI|NVL$)", "h100", PCIE, "hopper"),
    (r"^H100", "h100", "dgx_h100", "hopper"),
    (r"^V100.*(SXM3|DGX-2)", "v100", NVSWITCH_2, "ampere"),
    (r"^V100", "v100", "dgx_1", "ampere"),
    (r"^A30\b", A30, PCIE, "ampere"),
    (r"^L40", L40, PCIE, "ampere"),
)
_HOSTS: Mapping[str, str] = {
    "dgx_b200": "dgx_b200",
    "gb200_nvl72": "gb200_tray",
    "dgx_h100": "dgx_h100",
    "dgx_1": "dgx_1",
}


# The smallest all-to-all among 16 A100 on two hosts took 58 us, the smallest all-reduce 34
# (https://github.com/argonne-lcf/alcf-nccl-tests, 385be33): the difference, for each of 15 peers.
PER_PEER = "1.6 us"
# Measured collectives of like machines, by family of accelerators and whether there are several hosts.
_CURVES: Mapping[tuple[str, bool], Part] = {
    ("a100", False): {
        "all_reduce": "sb_a100_nccl2_8_2_10_all_reduce",
        "all_to_all": "sb_a100_nccl2_8_2_10_all_to_all",
    },
    ("a100", True): {"all_reduce": "alcf_sophia_nccl_ib_verbs_tuned_all_reduce"},
    ("h100", False): {
        "all_reduce": "xla_h100_xla_collectives_over_nccl_all_reduce",
        "all_to_all": "xla_h100_xla_collectives_over_nccl_all_to_all",
    },
    ("h100", True): {"all_reduce": "h100_ib400_a_nccl2_26_2_all_reduce"},
}


def curves(row: Row) -> Part:
    """Return the measured collectives of machines like a row's: eight accelerators on NVSwitch per host."""
    fabric = known(row)[1]
    if row.per_host != 8 or not isinstance(fabric, str):
        return {}
    return _CURVES.get((fabric.removeprefix("dgx_"), row.hosts > 1), {})


def known(row: Row) -> tuple[Any, Any, str]:
    """Return accelerator, fabric and family of a row's machine. Raises InputError for an unknown one."""
    for pattern, *found in _KNOWN:
        if re.match(pattern, row.accelerator):
            return found[0], found[1], found[2]
    raise InputError(f'nothing is known about the accelerator "{row.accelerator}"')


def cluster(row: Row) -> Part:
    """Return the `cluster` part of a scenario. Raises InputError for an unknown machine."""
    accelerator, fabric, _ = known(row)
    part: Part = {"accelerator": accelerator, "per_host": row.per_host, "hosts": row.hosts}
    part["rows"], part["compute"] = {"kind": "on_chip"}, {"kind": "kernels"}
    measured = curves(row)
    part["collectives"] = measured if "all_to_all" in measured else {**measured, "per_peer": PER_PEER}
    part["fabric"] = fabric if isinstance(fabric, str) else {**_BETWEEN, **fabric}
    part["host"] = _HOSTS.get(fabric, "dgx_a100") if isinstance(fabric, str) else "dgx_a100"
    return part


def on_pcie(row: Row) -> bool:
    """Whether the accelerators of a host reach each other over PCIe."""
    return known(row)[1] is PCIE
