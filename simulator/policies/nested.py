"""Nesting: an inter-batch policy around an intra-batch one.

NestPipe (arXiv 2604.06956) is dual_buffer around frozen_window.
"""

from dataclasses import dataclass

from simulator.errors import InputError
from simulator.pipeline import Pipeline
from simulator.policies.base import InterBatch, IntraBatch, weaker
from simulator.sharding.step import TrainStep


@dataclass(frozen=True)
class Nested:
    """`inter_batch` arranges the life of a batch, `intra_batch` what happens to its rows within.

    Raises InputError when both decide when rows are exchanged: they would travel twice. `plan` raises it
    when one of them uses a place in a row buffer that the other has given to a later batch.
    """

    inter_batch: InterBatch
    intra_batch: IntraBatch

    def __post_init__(self) -> None:
        """Refuse pairs that would exchange the same rows twice."""
        outer, inner = (type(part).__name__ for part in (self.inter_batch, self.intra_batch))
        refuse_two_exchanges(self.inter_batch, self.intra_batch, (outer, inner))

    @property
    def needs(self) -> tuple[str, ...]:
        """What either part needs."""
        return tuple(dict.fromkeys((*self.inter_batch.needs, *self.intra_batch.needs)))

    @property
    def consistency(self) -> str:
        """The weaker of the two parts' promises."""
        return weaker(self.inter_batch.consistency, self.intra_batch.consistency)

    @property
    def staleness_steps(self) -> int:
        """Staleness adds up: each part falls behind on its own."""
        return self.inter_batch.staleness_steps + self.intra_batch.staleness_steps

    @property
    def loses_updates(self) -> bool:
        """That of the policy across batches: within a batch rows are updated once."""
        return self.inter_batch.loses_updates

    @property
    def remarks(self) -> tuple[str, ...]:
        """Those of the policy across batches."""
        return self.inter_batch.remarks

    @property
    def micro_batches(self) -> int:
        """How many parts a batch is computed in."""
        return self.intra_batch.micro_batches

    def plan(self, step: TrainStep) -> Pipeline:
        """Return the inter-batch pipeline with the intra-batch fragment inside."""
        pipeline = self.inter_batch.embed(step, self.intra_batch)
        refuse_lost_places(pipeline)
        return pipeline


def refuse_lost_places(pipeline: Pipeline) -> None:
    """Raise InputError when a stage touches the place of a batch whose slot a later one has taken."""
    for buffer in pipeline.buffers:
        stores = {write.store for write in buffer.taken_by.writes}
        for stage in pipeline.stages:
            for access in (*stage.reads, *stage.writes):
                if access.store in stores and access.of is not None and access.of >= buffer.slots:
                    raise InputError(
                        f'the buffers of the two contradict each other: stage "{stage.name}" touches rows of '
                        f'{access.of} batches back, and buffer "{buffer.name}" has {buffer.slots} slots'
                    )


def refuse_two_exchanges(outer: InterBatch, inner: IntraBatch, names: tuple[str, str]) -> None:
    """Raise InputError, with the `names` of the two, when both decide when rows are exchanged."""
    if outer.arranges_exchange and inner.arranges_exchange:
        raise InputError(
            f"{names[0]} cannot be nested around {names[1]}: both decide when rows are exchanged "
            "(batches ahead, and micro-batch by micro-batch), so the same rows would travel twice"
        )
