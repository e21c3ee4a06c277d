"""Nesting: an inter-batch policy around an intra-batch one. NestPipe is dual_buffer around frozen_window."""

from dataclasses import dataclass

from simulator.pipeline import Pipeline
from simulator.policies.base import InterBatch, IntraBatch, weaker
from simulator.sharding.step import TrainStep


@dataclass(frozen=True)
class Nested:
    """`inter_batch` arranges the life of a batch, `intra_batch` what happens to its rows within."""

    inter_batch: InterBatch
    intra_batch: IntraBatch

    @property
    def consistency(self) -> str:
        """The weaker of the two parts' promises."""
        return weaker(self.inter_batch.consistency, self.intra_batch.consistency)

    @property
    def staleness_steps(self) -> int:
        """Staleness adds up: each part falls behind on its own."""
        return self.inter_batch.staleness_steps + self.intra_batch.staleness_steps

    @property
    def micro_batches(self) -> int:
        """How many parts a batch is computed in."""
        return self.intra_batch.micro_batches

    def plan(self, step: TrainStep) -> Pipeline:
        """Return the inter-batch pipeline with the intra-batch fragment inside."""
        return self.inter_batch.embed(step, self.intra_batch)
