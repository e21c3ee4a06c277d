"""What of a run lies outside of what was measured."""

from pathlib import Path

import numpy as np

from simulator.costs.gemm_catalog import assumed_of
from simulator.quantities import DenseWork, leaves
from simulator.scenario.collective_rows import beyond_curves
from simulator.scenario.compute_spec import KernelsSpec
from simulator.scenario.simulate import Run


def beyond_measurements(run: Run) -> list[str]:
    """Name what was measured elsewhere or not at all: lookups beyond a key log, sizes beyond a fit."""
    scenario, workers = run.scenario, run.timeline.ranks
    asked = [(table, table.lookups(scenario.workload.batch) * workers) for table in scenario.workload.tables]
    beyond = [f"keys of table {table.name}" for table, count in asked if table.popularity.extrapolates(count)]
    known = scenario.spec.cluster.fitted_at
    beyond += known.outside(scenario.workload.batch, workers) if known else []
    beyond += scenario.spec.framework.unlike(scenario.cluster)
    beyond += _products(run) if scenario.spec.cluster.compute.kind == "kernels" else []
    return beyond + beyond_curves(run.timeline.graph, scenario.costs)


def _products(run: Run) -> list[str]:
    """Name the accelerators whose matrix products follow no law that was measured on them."""
    works = [part for node in run.timeline.graph.nodes for part in leaves(node.stage.work)]
    dense = [work for work in works if isinstance(work, DenseWork) and np.any(work.flops)]
    compute = run.scenario.spec.cluster.compute
    if isinstance(compute, KernelsSpec) and compute.law:
        return compute.outside(dense, Path(run.scenario.document.file).parent)
    precisions = {work.precision for work in dense if work.products is not None}
    chips = [group.accelerator for group in run.scenario.cluster.groups]
    told = [(chip.name, assumed_of(chip, one)) for chip in chips for one in sorted(precisions)]
    return [*dict.fromkeys(f"matrix products on {name} ({what})" for name, what in told if what)]
