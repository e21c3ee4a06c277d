"""Two-dimensional sparse parallelism as a policy: another policy, on tables held in several copies.

arXiv 2508.03854, and https://pytorch.org/blog/scaling-recommendation-2d-sparse-parallelism/.

What it changes are amounts, and they stand where amounts stand, in the sharding (`sharding.replicas`: how
many copies, how often and over which rows they are averaged): rows travel inside a group of ranks only,
and every so many steps an all-reduce among the copies follows the row update, under any policy. So this
one adds no stage of its own. It names the combination, and does not pass one copy off as several.
"""

from dataclasses import dataclass
from typing import ClassVar

from simulator.pipeline import Pipeline
from simulator.policies.base import InterBatch, IntraBatch
from simulator.sharding.step import TrainStep


@dataclass(frozen=True)
class TwoDSparse(InterBatch):
    """`inter_batch` on tables in several copies. Its promise is that of `inter_batch`.

    What copies lack of each other is a property of the plan and is added in reports.
    """

    inter_batch: InterBatch
    needs: ClassVar[tuple[str, ...]] = ("replicas",)

    @property
    def consistency(self) -> str:  # type: ignore[override]
        """That of the policy across batches."""
        return self.inter_batch.consistency

    @property
    def staleness_steps(self) -> int:  # type: ignore[override]
        """That of the policy across batches."""
        return self.inter_batch.staleness_steps

    @property
    def loses_updates(self) -> bool:
        """That of the policy across batches."""
        return self.inter_batch.loses_updates

    @property
    def remarks(self) -> tuple[str, ...]:
        """Those of the policy across batches."""
        return self.inter_batch.remarks

    @property
    def arranges_exchange(self) -> bool:  # type: ignore[override]
        """Whether the policy across batches moves the exchange of rows."""
        return self.inter_batch.arranges_exchange

    def embed(self, step: TrainStep, intra_batch: IntraBatch) -> Pipeline:
        """Return the pipeline of the policy across batches."""
        return self.inter_batch.embed(step, intra_batch)
