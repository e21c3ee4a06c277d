"""No parameter is there for show: halving it changes the step, or `explain` says what binds instead.

Every physical parameter of every shipped scenario is halved, one at a time, and the scenario is run with
all resources shared. Where the step stays the same to the nanosecond, the explanation must name either
another resource as the one that binds, or another parameter of the same resource that matters, or must
say that no stage uses this one.
"""

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from tiers import at_night, some

from analysis.explain import Explanation, explain
from analysis.parameters import parameters
from analysis.scaled import Parameter
from analysis.sensitivity import Sensitivity
from simulator.costs import CostModel
from simulator.engine import Variation, tabulate
from simulator.engine.contention import Contention
from simulator.engine.events import run_events
from simulator.hardware import Cluster
from simulator.quantities import IntArray
from simulator.scenario import Scenario, load
from simulator.scenario.bounds import counted, cycles_of
from simulator.scenario.shipped_files import scenarios_in, shipped_folder

FILES = sorted(str(path.relative_to(shipped_folder())) for path in scenarios_in(shipped_folder()))
LONG = "bagpipe/criteo_kaggle.yaml"  # its policy looks 200 batches ahead
BATCHES, WARM_UP = 32, 8  # as many as explain runs: what happens once in a while happens to both, or to none

RESOURCE_OF = {
    "remote calls": ("rpc",),
    "parameter servers": ("servers",),
    "compute": ("peak_flops", "vector_flops", "matrix_efficiency", "launch_time", "share"),
    "device memory": ("hbm_bandwidth", "memory_efficiency", "gather_efficiency"),
    "host link": ("host_link_bandwidth",),
    "host memory": ("dram_bandwidth", "dram_efficiency"),
    "host cores": ("cores", "cpu_time"),
    "network": ("fabric",),
    "unexplained host time": ("unexplained_host_time",),
    "loader": ("loader_rate",),
    "framework": ("fixed_cost_per_step", "host_time_per_op", "time_per_key"),
}
ROUNDING = 1e-9


def resource_of(path: str) -> str:
    steps = path.split(".")
    return next(name for name, parts in RESOURCE_OF.items() if not set(parts).isdisjoint(steps))


@cache
def scenario_of(file: str) -> Scenario:
    """The shipped scenario with few batches, or as many as its policy asks for."""
    whole = load(shipped_folder() / file)
    deepest, period = max(stage.ahead for stage in whole.graph.pipeline.stages), whole.graph.period
    warm_up = max(WARM_UP, deepest + 1)
    batches = BATCHES - WARM_UP + warm_up + deepest + 2 * period
    return whole.with_overrides([f"run.batches={batches}", f"run.warm_up={warm_up}"])


@cache
def parameters_of(file: str) -> dict[str, Parameter]:
    return {one.path: one for one in parameters(scenario_of(file))}


@cache
def explanation_of(file: str) -> Explanation:
    return explain(scenario_of(file))


def halved_text(text: str) -> str | None:
    """Half of a quantity, in its own unit; None for nothing."""
    number, unit = re.fullmatch(r"([\d,.e+-]+)\s*(.*)", text).groups()  # type: ignore[union-attr]
    half = float(number.replace(",", "")) / 2
    return f"{half:g} {unit}".strip() if half else None


def with_half(scenario: Scenario, parameter: Parameter) -> tuple[Scenario, CostModel] | None:
    """The scenario and its costs with a parameter halved: in the file, or in the part that the file names."""
    half = halved_text(parameter.text)
    if half is None:
        return None
    part, *rest = parameter.path.split(".")[1:]
    if part.startswith("groups["):
        return scenario, replace(scenario.costs, cluster=with_smaller_group(scenario.cluster, part, rest))
    if part in ("accelerator", "host", "fabric") and not hasattr(
        getattr(scenario.spec.cluster, part), "build"
    ):
        smaller_part = smaller(getattr(scenario.cluster, part), rest)
        return scenario, replace(scenario.costs, cluster=replace(scenario.cluster, **{part: smaller_part}))
    changed = scenario.with_overrides([f"{parameter.path}={half}"])
    return changed, changed.costs


def with_smaller_group(cluster: Cluster, name: str, path: list[str]) -> Cluster:
    groups, place = list(cluster.groups), int(name.removeprefix("groups[").removesuffix("]"))
    part = getattr(groups[place], path[0])
    groups[place] = replace(groups[place], **{path[0]: smaller(part, path[1:])})
    return cluster.with_groups(groups)


def smaller(part: Any, path: list[str]) -> Any:
    assert path[0] in {field.name for field in fields(part)}
    value = getattr(part, path[0])
    half = {**value, path[1]: value[path[1]] / 2} if isinstance(value, dict) else type(value)(value / 2)
    return replace(part, **{path[0]: half})


def steps_ns(scenario: Scenario, costs: CostModel) -> IntArray:
    """Time between updates on the slowest rank over the batches that explain counts, ns."""
    graph, settings = scenario.graph, scenario.spec.run
    durations = tabulate(graph, costs.seconds, scenario.cluster.ranks, cycles_of(scenario), Variation())
    shared = Contention.of(graph, costs, settings.weigh()) if settings.contention else None
    timeline = run_events(graph, durations, contention=shared)
    first, last = counted(graph, settings, timeline.batches)
    steps: IntArray = np.diff(timeline.update_ns[first - 1 : last, timeline.slowest_column])
    return steps


def unexplained(file: str) -> Iterator[str]:
    """Yield the parameters of a scenario that change nothing without anybody saying why."""
    scenario, explanation = scenario_of(file), explanation_of(file)
    before = steps_ns(scenario, scenario.costs)
    assert explanation.without_jitter_ms == before.mean() / 1e6
    for path, parameter in parameters_of(file).items():
        halved = with_half(scenario, parameter)
        if halved and np.array_equal(steps_ns(*halved), before) and not is_explained(explanation, path):
            yield path


def is_explained(explanation: Explanation, path: str) -> bool:
    ours, resource = sensitivity(explanation, path), resource_of(path)
    assert ours.halved_ms is None or ours.halved_ms <= explanation.without_jitter_ms * (1 + ROUNDING)
    matters = {resource_of(one.parameter) for one in explanation.sensitivities if one.elasticity != 0}
    return not ours.used or explanation.binds != resource or resource in matters


def sensitivity(explanation: Explanation, path: str) -> Sensitivity:
    return next(one for one in explanation.sensitivities if one.parameter == path)


@pytest.mark.parametrize("file", [at_night(LONG), *some([file for file in FILES if file != LONG], gate=5)])
def test_halving_a_parameter_changes_the_step_or_explain_names_what_binds_instead(file: str) -> None:
    assert list(unexplained(file)) == []


def test_half_of_a_quantity_keeps_its_unit() -> None:
    assert [halved_text(text) for text in ("25 GB/s", "6.28 %", "192", "0 s")] == [
        "12.5 GB/s",
        "3.14 %",
        "96",
        None,
    ]


def test_the_parameters_that_bind_are_found_to_matter() -> None:
    """Halving the links between hosts and the rate of the accelerators slows the large scenario down."""
    scenario = scenario_of("nestpipe/npu.yaml")
    before = steps_ns(scenario, scenario.costs).mean()
    for path in ("cluster.fabric.between", "cluster.compute.share"):
        halved = with_half(scenario, parameters_of("nestpipe/npu.yaml")[path])
        assert halved and steps_ns(*halved).mean() > 1.2 * before
