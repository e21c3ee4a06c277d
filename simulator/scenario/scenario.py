"""A scenario: one complete run, read from a file, checked, and ready to be simulated."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from simulator.costs import CostModel
from simulator.costs.software import Software
from simulator.errors import InputError, RecscaleError, Where
from simulator.hardware import Cluster
from simulator.pipeline import MarkedGraph, compile_pipeline
from simulator.policies.base import Policy
from simulator.scenario.applicable import check_applicable
from simulator.scenario.base import Spec
from simulator.scenario.cluster_spec import ClusterSpec
from simulator.scenario.document import Document
from simulator.scenario.file_kinds import refuse_other_kinds
from simulator.scenario.named_files import contents
from simulator.scenario.overrides import apply_overrides
from simulator.scenario.policy_spec import PolicySpec
from simulator.scenario.problems import to_input_error
from simulator.scenario.run_spec import RunSpec
from simulator.scenario.sharding_spec import ShardingSpec
from simulator.scenario.software_spec import SoftwareSpec, as_placed, as_written
from simulator.scenario.source import read_document
from simulator.scenario.workload_spec import WorkloadSpec
from simulator.sharding import TrainStep
from simulator.sharding.stacks import check_stacks, starts
from simulator.workload.job import Workload

Part = TypeVar("Part")


class ScenarioSpec(Spec):
    """The whole file."""

    name: str = ""
    cluster: ClusterSpec
    workload: WorkloadSpec
    sharding: ShardingSpec
    policy: PolicySpec
    run: RunSpec = RunSpec()
    software: str | SoftwareSpec | None = None

    @property
    def framework(self) -> SoftwareSpec:
        """The software, from the catalog if it is named; without one, nothing is added."""
        from simulator.scenario.software_catalog import profile

        return profile(self.software) if isinstance(self.software, str) else self.software or SoftwareSpec()


@dataclass(frozen=True)
class Scenario:
    """A validated scenario, the document it came from, and what follows from it.

    The parts are built when first asked for; each raises InputError with the place in the file.
    """

    spec: ScenarioSpec
    document: Document

    @classmethod
    def of(cls, document: Document) -> "Scenario":
        """Validate `document`. Raises InputError with file, line and path."""
        try:
            return cls(ScenarioSpec.model_validate(document.data), document)
        except ValidationError as error:
            refuse_other_kinds(document, "scenario")
            raise to_input_error(error, document, ScenarioSpec) from error

    @property
    def name(self) -> str:
        """The name in the file, or that of the file."""
        return self.spec.name or Path(self.document.file).stem

    @property
    def _folder(self) -> Path:
        """The folder that files named in the scenario lie in."""
        return Path(self.document.file).parent

    @cached_property
    def cluster(self) -> Cluster:
        """The hardware."""
        return self.software.on(self.at("cluster", lambda: self.spec.cluster.build(self._folder)))

    @cached_property
    def software(self) -> Software:
        """What the framework adds."""
        return self.at("software", lambda: self.spec.framework.build())

    @cached_property
    def workload(self) -> Workload:
        """What one rank trains per step."""
        return as_written(self.software, self.at("workload", lambda: self.spec.workload.build(self._folder)))

    @cached_property
    def policy(self) -> Policy:
        """The policy."""
        return self.at("policy", self.spec.policy.build)

    @cached_property
    def costs(self) -> CostModel:
        """How fast work goes on the cluster."""
        spec = self.spec.cluster
        return self.software.costs(self.at("cluster", lambda: spec.costs(self.cluster, self._folder)))

    @cached_property
    def step(self) -> TrainStep:
        """The quantities of one rank's step."""
        held = self.spec.cluster.unexplained_host_time or 0.0
        keys_per_sample, cluster = self.spec.workload.model.keys_per_sample, self.cluster
        plan = self.at("sharding", lambda: self.spec.sharding.build(keys_per_sample))
        plan, seed = as_placed(self.software, plan, self.workload), self.spec.run.seed
        step = TrainStep(self.workload, plan, cluster.ranks, seed, held, cluster.per_host, self.software)
        self.at("sharding", lambda: step.placed.shards)
        self.at("sharding", lambda: check_stacks(plan, len(self.workload.tables)))
        self.at("sharding", lambda: starts(step.traffic))
        return step

    @cached_property
    def graph(self) -> MarkedGraph:
        """The pipeline in compiled form. Raises InfeasibleError when it deadlocks or runs away."""
        self.at("policy", lambda: check_applicable(self.policy, self.cluster, self.step))
        return self.at("policy", lambda: compile_pipeline(self.policy.plan(self.step)))

    def with_overrides(self, settings: list[str]) -> "Scenario":
        """Return the scenario with `path=value` settings applied."""
        return Scenario.of(apply_overrides(self.document, settings))

    def with_workers(self, workers: int, source: str = "--workers") -> "Scenario":
        """Return the scenario on `workers` ranks, which `source` asked for: ranks per host stay."""
        cluster = self.cluster
        try:
            hosts = cluster.with_workers(workers).hosts
        except RecscaleError as error:
            raise type(error)(error.problem, Where(source)) from error
        return Scenario.of(apply_overrides(self.document, [f"cluster.hosts={hosts}"], source))

    def with_policy(self, policy: dict[str, Any]) -> "Scenario":
        """Return the scenario under another policy, given as its part of a file would be."""
        return Scenario.of(replace(self.document, data={**self.document.data, "policy": policy}))

    def resolved(self) -> dict[str, Any]:
        """Return the complete scenario, defaults filled in, quantities as text in base units."""
        resolved: dict[str, Any] = self.spec.model_dump(mode="json", warnings=False)
        return resolved

    @cached_property
    def hash(self) -> str:
        """Sixteen hexadecimal digits that name the resolved scenario and what the files it names hold."""
        resolved = self.resolved()
        files = contents(resolved, self._folder)
        text = json.dumps([resolved, files] if files else resolved, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def at(self, path: str, build: Callable[[], Part]) -> Part:
        """Build a part; an error without a place gets that of the part, or of the setting it speaks of."""
        try:
            return build()
        except RecscaleError as error:
            if error.where != Where():
                raise
            place = self.document.blamed((path,), error.problem)
            raise type(error)(error.problem, place) from error


def load(path: str | Path, settings: list[str] | None = None) -> Scenario:
    """Read and check the scenario file at `path`, with `path=value` settings applied.

    Raises InputError (file, line, path, what is allowed) for anything wrong with it.
    """
    document = read_document(Path(path))
    return Scenario.of(apply_overrides(document, settings) if settings else document)


__all__ = ["InputError", "Scenario", "ScenarioSpec", "load"]
