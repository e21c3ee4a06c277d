"""What a collective takes by a sum on paper: its bytes over the nominal rate of the links, nothing else.

Inside a fast domain every rank sends and receives what nccl-tests' bus bandwidth counts (its
doc/PERFORMANCE.md) at the nominal rate of its links. Between domains a ring leaves a host through all of its
cards at once, and of an all-to-all each rank sends what is for other domains through its own card.
"""

import re

from simulator.calibration.collective_lending import PER_RANK
from simulator.calibration.collective_tables import Table
from simulator.costs.curves import BUS_FACTORS
from simulator.hardware import TwoLevel
from simulator.hardware.catalog.build import fabric

# Fabrics of the catalog whose links are those of an accelerator: the same generation of NVLink.
_FABRICS = (
    (r"PCI", None),
    (r"^V100", "dgx_1"),
    (r"^A100", "dgx_a100"),
    (r"^(H100|H200|H800|GH200)", "dgx_h100"),
    (r"^(GB200|GB300)", "gb200_nvl72"),
    (r"^(B200|B300)", "dgx_b200"),
)


def nominal_seconds(table: Table, size: float) -> float | None:
    """Return the seconds of a collective of `size` bytes at nominal rates; None where a rate is unknown.

    The rate of the network cards is that of the table, the rate inside a domain that of the catalog.
    """
    inside = _links(table.accelerator)
    domain = table.scale.per_node
    if inside is not None and table.scale.nodes > 1:
        domain = max(domain, inside.domain_size(domain))
    ranks = table.scale.ranks
    if ranks <= domain:
        crossing = BUS_FACTORS[table.operation](ranks) * size
        return crossing / inside.within if inside is not None else None
    if table.card_rate is None:
        return None
    if table.operation in PER_RANK:
        share = (ranks - domain) / ranks if table.operation == "all_to_all" else 1.0
        return share * size / table.card_rate
    return BUS_FACTORS[table.operation](ranks) * size / (table.card_rate * table.scale.per_node)


def _links(accelerator: str) -> TwoLevel | None:
    """Return the catalog's fabric of an accelerator as tables call it; None for unknown ones."""
    name = next((name for pattern, name in _FABRICS if re.search(pattern, accelerator)), None)
    found = fabric(name) if name else None
    return found if isinstance(found, TwoLevel) else None
