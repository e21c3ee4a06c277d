"""Accelerators that the catalog lacks, written out from data sheets, and fabrics that a sheet implies.

Peaks are dense (no structured sparsity). What a sheet does not say, launches and efficiencies, is that of the
nearest accelerator of the catalog: the A100 for those up to Ada, the H100 for later ones.
"""

from dataclasses import dataclass
from typing import Any

Part = dict[str, Any]

_AMPERE = {"launch_time": "2 us", "matrix_efficiency": 0.72, "memory_efficiency": 0.9}
_HOPPER = {"launch_time": "1.5 us", "matrix_efficiency": 0.81, "memory_efficiency": 0.94}
_PCIE_3, _PCIE_4, _PCIE_5 = "15.75 GB/s", "31.5 GB/s", "63 GB/s"


@dataclass(frozen=True)
class Sheet:
    """Figures of a data sheet: peaks in TFLOP/s (0: no such format), memory, and the link to the host."""

    name: str
    fp32: float
    tf32: float
    half: float
    bytes: str
    bandwidth: str
    cache: str
    link: str
    bf16: bool = True

    def part(self, nearest: Part) -> Part:
        """Return the accelerator as a scenario writes it."""
        peaks = {"fp32": self.fp32, "tf32": self.tf32, "fp16": self.half, "bf16": self.half * self.bf16}
        return {
            "name": self.name,
            "kind": "gpu",
            "peak_flops": {name: f"{peak:g} TFLOP/s" for name, peak in peaks.items() if peak},
            "hbm_bytes": self.bytes,
            "hbm_bandwidth": self.bandwidth,
            "cache_bytes": self.cache,
            "gather_efficiency": 0.8,
            "host_link_bandwidth": self.link,
            **nearest,
        }


# NVIDIA data sheets of the boards named.
A30 = Sheet("a30", 10.3, 82, 165, "24 GB", "933 GB/s", "24 MB", _PCIE_4).part(_AMPERE)
A40 = Sheet("a40", 37.4, 74.8, 149.7, "48 GB", "696 GB/s", "6 MB", _PCIE_4).part(_AMPERE)
L40 = Sheet("l40", 90.5, 90.5, 181, "48 GB", "864 GB/s", "96 MB", _PCIE_4).part(_AMPERE)
L40S = Sheet("l40s", 91.6, 183, 362, "48 GB", "864 GB/s", "96 MB", _PCIE_4).part(_AMPERE)
V100_PCIE = Sheet("v100_pcie", 14, 0, 112, "32 GB", "900 GB/s", "6 MB", _PCIE_3, bf16=False).part(_AMPERE)
H100_PCIE = Sheet("h100_pcie", 51, 378, 756, "80 GB", "2000 GB/s", "50 MB", _PCIE_5).part(_HOPPER)
H100_NVL = Sheet("h100_nvl", 60, 417.5, 835.5, "94 GB", "3900 GB/s", "50 MB", _PCIE_5).part(_HOPPER)
H200_NVL = Sheet("h200_nvl", 60, 417.5, 835.5, "141 GB", "4800 GB/s", "50 MB", _PCIE_5).part(_HOPPER)
B300 = Sheet("b300", 75, 1125, 2250, "270 GB", "8000 GB/s", "126 MB", _PCIE_5).part(
    {**_HOPPER, "matrix_efficiency": 0.74}
)


def pcie(rate: str) -> Part:
    """Return PCIe between accelerators of a host: half of the lanes' rate, as two share a switch's uplink."""
    return {"kind": "two_level", "within": rate, "within_efficiency": 0.5, "within_latency": "40 us"}


PCIE_3, PCIE_4, PCIE_5 = pcie(_PCIE_3), pcie(_PCIE_4), pcie(_PCIE_5)
# DGX-2: 16 V100 on NVSwitch; the share that an all-to-all reaches, and the start-up, as on the A100's.
NVSWITCH_2: Part = {
    "kind": "two_level",
    "within": "150 GB/s",
    "within_efficiency": 0.75,
    "within_latency": "34 us",
}
# Between hosts, where nothing is known: one 200 Gb/s card for two accelerators, as reached by a DGX A100.
BETWEEN = {"between": "12.5 GB/s", "between_efficiency": 0.85, "latency": "34 us"}
