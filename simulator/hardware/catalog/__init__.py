"""The catalog: accelerators, hosts, NICs, fabrics and whole servers by name, each number with its source.

    accelerator("a100_80").peak("bf16")     ->  3.12e14
    machine("dgx_a100").cluster(hosts=16)   ->  a Cluster of 128 ranks
    entry("accelerator", "a100_80")         ->  the raw numbers: value, source, confidence, range

The numbers live in the YAML files beside this module; the head of accelerators.yaml says how to add one.
"""

from simulator.hardware.catalog.build import accelerator, fabric, host, machine, nic
from simulator.hardware.catalog.entries import CONFIDENCE, KINDS, entry, names

__all__ = ["CONFIDENCE", "KINDS", "accelerator", "entry", "fabric", "host", "machine", "names", "nic"]
