"""From the settings of a run to the graph that is executed, and later simulated: the policy's own plan."""

from dataclasses import replace

from simulator.calibration.train.settings import Settings
from simulator.calibration.train.step import LocalStep
from simulator.pipeline import Carry, MarkedGraph, Pipeline, compile_pipeline
from simulator.policies.base import Policy
from simulator.policies.catalog import build


def policy_of(settings: Settings) -> Policy:
    """Return the policy that a run is to execute. Raises InputError for an unknown one."""
    return build(settings.policy, **settings.parameters)


def parts_of(settings: Settings) -> int:
    """Return in how many micro-batches the policy computes a batch."""
    return int(getattr(policy_of(settings), "micro_batches", 1))


def needs_servers(settings: Settings) -> bool:
    """Return whether the policy of a run works with parameter servers."""
    return "servers" in getattr(policy_of(settings), "needs", ())


def planned(settings: Settings, ranks: int) -> Pipeline:
    """Return the pipeline of the run's policy, with a fixed order of reads and writes of the tables."""
    policy, parts = policy_of(settings), parts_of(settings)
    pipeline = policy.plan(LocalStep.of(settings, ranks, parts, needs_servers(settings)))
    return pipeline if policy.consistency == "synchronous" else _settled(pipeline)


def graph_of(settings: Settings, ranks: int) -> MarkedGraph:
    """Return that pipeline in compiled form."""
    return compile_pipeline(planned(settings, ranks))


def _settled(pipeline: Pipeline) -> Pipeline:
    """Let rows be written back only once the next batch has read: same seed, same weights.

    A stale policy leaves that order to chance, and with it what a prefetch reads.
    """
    names = {stage.name: stage for stage in pipeline.stages}
    if not {"retrieve", "write_back"} <= names.keys():
        return pipeline
    order = Carry(names["retrieve"], to=names["write_back"], lag=-names["retrieve"].ahead)
    return replace(pipeline, carries=[*pipeline.carries, order])
