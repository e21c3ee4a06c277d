"""Gradient accumulation: dense gradients of several batches are added up, reduced and applied once.

Rows are updated after every batch, as a fused row optimizer does it; only the dense all-reduce and the
dense optimizer wait. Samples per dense update grow with it, memory does not: the sums take the
place of the gradients. A batch trains on rows with all updates and on the dense parameters of the last
dense update, as it would with one batch at a time: nothing is stale, what is learnt differs.
"""

from dataclasses import dataclass, replace
from typing import Annotated

from annotated_types import Le

from simulator.errors import InputError
from simulator.pipeline import Stage
from simulator.policies.base import Fragment, IntraBatch
from simulator.policies.parts import backward, exchange_rows, forward, rows_first, send_gradients, update
from simulator.sharding.step import TrainStep

Batches = Annotated[int, Le(64)]


@dataclass(frozen=True)
class GradientAccumulation(IntraBatch):
    """One dense update for so many `batches`. Raises InputError when there are none."""

    batches: Batches = 2

    def __post_init__(self) -> None:
        """Refuse an update without batches."""
        if self.batches < 1:
            raise InputError("batches must be at least 1")

    def fragment(self, step: TrainStep, rows: Stage) -> Fragment:
        """Return the whole batch in turn, with all-reduces and optimizer after every so many batches."""
        micro = step.micro_batch(1)
        exchange = exchange_rows(micro, rows)
        ahead = forward(micro, exchange)
        back = backward(micro, ahead, adds=1 - 1 / self.batches)  # the first batch's gradients are the sums
        send = send_gradients(micro, back.computes[-1])
        reduces = [self._rarely(stage) for stage in back.reduces]
        done = update(step, [send], reduces, back.computes[-1])
        dense = self._rarely(done.dense)
        rows_current = [stage for stage in rows_first(done) if stage is not done.dense]
        streams = {
            "network": [exchange, send],
            "all_reduce": [*reduces, *done.reduces],
            "compute": [ahead, *back.computes, *rows_current, dense],
        }
        return Fragment(streams, (exchange,), done.rows, (done.rows, dense))

    def _rarely(self, stage: Stage) -> Stage:
        """Return `stage` in the last of so many batches only."""
        return replace(stage, every=self.batches, phase=self.batches - 1)
