"""How busy the resources of the slowest rank are: from amounts and their costs, not from waiting."""

from collections import Counter

from simulator.costs import CostModel
from simulator.costs.occupancy import occupancy, on_links
from simulator.quantities import Work
from simulator.results.report import BUSY
from simulator.scenario.simulate import Run

# Several resources behind one word of the report: the busiest of them counts, as does the busiest link.
BEHIND = {
    "compute": ("tensor",),
    "sparse": ("sparse",),
    "memory": ("hbm",),
    "host": ("cores", "dram", "ssd", "server"),
    "copy": ("host_to_device", "device_to_host", "pcie_down", "pcie_up"),
}


def busy_shares(run: Run) -> dict[str, float]:
    """Return the share of the step in which resources of the slowest rank work, by word of the report.

    At most 1 where resources are shared (`run.contention`, engine `events`), but for collectives that
    traffic to parameter servers holds up more than twice. The vector engine lets stages that overlap use
    one resource twice, which then comes out above 1.
    """
    cluster, graph = run.scenario.cluster, run.timeline.graph
    kind = 0 if cluster.kind_of is None else int(cluster.kind_of[run.timeline.rank_of(run.column)])
    costs, total, links = run.scenario.costs.by_kind[kind], Counter[str](), Counter[str]()
    for node in graph.nodes:
        total.update(occupancy(node.stage.work, costs))
        links.update(_links(node.stage.work, costs))
    cycle = run.breakdown.step_ns / 1e9 * graph.period
    found = {word: max(total[one] for one in names) / cycle for word, names in BEHIND.items()}
    found["network"] = max(links.values(), default=0.0) / cycle
    return {word: found[word] for word in BUSY}


def _links(work: Work, costs: CostModel) -> dict[str, float]:
    """Return seconds of full use by class of link, the way to parameter servers included."""
    used = on_links(work, costs)
    served = occupancy(work, costs).get("remote", 0.0)
    cards = costs.cluster.fabric.way_out(costs.cluster.per_host).links if served else ()
    return used | {card: used.get(card, 0.0) + served for card in cards}
