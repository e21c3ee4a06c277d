"""A fabric of the catalog, drawn: as large as it is, or four of its fast domains where it has no size."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator.hardware import Machine

DOMAINS = 4
PER_HOST = 8


def fabric_drawing(name: str) -> str:
    """Return the drawing of the catalog's fabric `name` in lines of at most 80 columns."""
    from simulator.hardware import Cluster, Torus, catalog
    from simulator.hardware.graphs import draw, wiring

    fabric, lender, per_host = catalog.fabric(name), _lender(name), _per_host(name)
    if isinstance(fabric, Torus):
        per_host, hosts, title = 1, fabric.size, "the whole of it"
    else:
        hosts = DOMAINS * max(1, fabric.domain_size(per_host) // per_host)
        title = f"{DOMAINS} fast domains of it"
    cluster = Cluster(lender.accelerator, lender.host, fabric, per_host, hosts)
    return f"{title}, as links:\n\n{draw(wiring(cluster))}"


def _lender(name: str) -> "Machine":
    """Return a machine with this fabric, or any: only its counts are drawn."""
    from simulator.hardware import catalog

    machines = catalog.names("machine")
    fitting = [one for one in machines if catalog.entry("machine", one)["fabric"] == name]
    return catalog.machine((fitting or list(machines))[0])


def _per_host(name: str) -> int:
    from simulator.hardware import catalog

    fitting = (catalog.entry("machine", one)["fabric"] == name for one in catalog.names("machine"))
    return _lender(name).per_host if any(fitting) else PER_HOST
