"""How fast things could be done: accelerators, hosts, links, fabrics, clusters, and a sourced catalog."""

from simulator.hardware.cluster import Cluster, HostGroup, Machine
from simulator.hardware.fabric import Fabric, Link, TwoLevel
from simulator.hardware.mixed import slowest
from simulator.hardware.parts import Accelerator, Host, Nic
from simulator.hardware.slowdown import Slowdown
from simulator.hardware.torus import Torus

__all__ = [
    "Accelerator",
    "Cluster",
    "Fabric",
    "Host",
    "HostGroup",
    "Link",
    "Machine",
    "Nic",
    "Slowdown",
    "Torus",
    "TwoLevel",
    "slowest",
]
