"""What simpler models say of a training step: a plain sum of its parts, and two streams at fixed shares.

The two-stream model is what published planners do (MAD-Max, arXiv 2310.02784): arithmetic at 0.705 of the
peak, rows at 0.836 of the memory bandwidth, collectives at 0.56 of the links; the dense all-reduce hides
behind arithmetic, the exchange of rows does not.
"""

import numpy as np

from analysis.stage_sums import stage_sum_ms
from analysis.training.cases import Case
from simulator.hardware import TwoLevel
from simulator.scenario import Scenario

FLOPS, MEMORY, LINKS = 0.705, 0.836, 0.56
ROW_PASSES = 3  # read forward; read and written by the update


def plain_sum_ms(case: Case) -> float:
    """Return the sum of all stages of a batch on the busiest rank, nothing held or overlapped, ms."""
    return stage_sum_ms(case.run)


def two_streams_ms(case: Case) -> float:
    """Return the step of the two-stream model, ms, without any factor."""
    scenario = case.scenario
    exchange = 2 * _exchanged(scenario) / _link(scenario)
    reduced = _reduced(scenario)
    return 1e3 * (_rows(scenario) + exchange + max(_arithmetic(scenario), reduced))


def _arithmetic(scenario: Scenario) -> float:
    dense, work = scenario.workload.model.quantities(), scenario.workload
    flops = (dense.forward_flops + dense.backward_flops) * work.batch
    return flops / (FLOPS * scenario.cluster.accelerator.peak(work.precision))


def _rows(scenario: Scenario) -> float:
    traffic = scenario.step.traffic
    looked_up = traffic.total(lambda flow: flow.requests * flow.piece.row_bytes)
    moved = ROW_PASSES * float(np.max(looked_up))
    return moved / (MEMORY * scenario.cluster.accelerator.hbm_bandwidth)


def _exchanged(scenario: Scenario) -> float:
    traffic = scenario.step.traffic
    if scenario.cluster.ranks == 1:
        return 0.0
    return traffic.row_bytes_received


def _reduced(scenario: Scenario) -> float:
    """Return the seconds of the dense all-reduce: inside hosts, then each accelerator's part between them."""
    size, cluster = 2 * scenario.step.micro_batch(1).gradient_bytes, scenario.cluster
    fabric = cluster.fabric
    if not isinstance(fabric, TwoLevel) or fabric.domain_size(cluster.per_host) >= cluster.ranks:
        return size / _link(scenario)
    return size / (LINKS * fabric.within) + size / cluster.per_host / (LINKS * fabric.between)


def _link(scenario: Scenario) -> float:
    """Return the nominal bytes/s of the slowest level that the job uses, at the fixed share."""
    fabric, cluster = scenario.cluster.fabric, scenario.cluster
    if not isinstance(fabric, TwoLevel):
        return LINKS * cluster.accelerator.host_link_bandwidth
    inside = fabric.domain_size(cluster.per_host) >= cluster.ranks
    return LINKS * (fabric.within if inside else fabric.between)
