"""One batch in flight, every stage after the one before: the reference that others are held against."""

from dataclasses import dataclass

from simulator.pipeline import Pipeline
from simulator.policies.base import InterBatch, IntraBatch
from simulator.policies.parts import embed_serially
from simulator.sharding.step import TrainStep


@dataclass(frozen=True)
class Serialized(InterBatch):
    """Read, copy, route, retrieve, exchange, compute, return, update, write back; then the next batch."""

    def embed(self, step: TrainStep, intra_batch: IntraBatch) -> Pipeline:
        """Return the serial pipeline around `intra_batch`."""
        return embed_serially(step, intra_batch)
