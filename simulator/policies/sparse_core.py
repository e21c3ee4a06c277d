"""SparseCores and TensorCores of a TPU chip: rows on the one, dense passes on the other.

A cycle of the sparse engine scatters the gradients of one batch (pack, send, update), then gathers the rows
of a later one (route, retrieve, gather, exchange, unpack). Pipelined, the scatter of batch i - 2 and the
gather of batch i run beside the dense passes of batch i - 1, so a lookup sees all updates but the last:
one step stale, and a step takes the longer of the two instead of their sum. The dependency is
that of the public implementation (jax-tpu-embedding): n batches take n + 2 cycles.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from simulator.pipeline import Carry, Pipeline, Stage
from simulator.policies.base import Policy
from simulator.policies.parts import (
    Ahead,
    Updates,
    add_back,
    copy_inputs,
    read_inputs,
    reduced_backward,
    retrieve_rows,
    route_keys,
    rows_of,
    send_gradients,
    update,
    write_back,
)
from simulator.sharding.step import TrainStep


@dataclass(frozen=True, eq=False)
class _Life:
    """The stages of a batch, by the engine that they run on."""

    inputs: Sequence[Stage]
    gather: Sequence[Stage]
    dense: Sequence[Stage]
    reduces: Sequence[Stage]
    scatter: Sequence[Stage]
    done: Updates

    @classmethod
    def of(cls, step: TrainStep, early: bool = False) -> "_Life":
        """Rows that are gathered `early`, before the scatter of the batch before, go back as updates."""
        read = read_inputs(step)
        inputs = copy_inputs(step, read)
        gather = _gather(step, inputs)
        micro = step.micro_batch(1)
        ahead = Stage("forward", "compute", micro.whole.forward_alone, after=[gather[-1]])
        back = reduced_backward(micro.whole, micro.whole.backward_alone, ahead)
        pack = Stage("pack", "lookup", micro.expansion, after=[back.computes[-1]])
        send = send_gradients(micro, pack)
        done = update(step, [send], back.reduces, back.computes[-1], kind="lookup")
        written = (add_back if early else write_back)(step, [done.rows])
        rows = [stage for stage in done.computes if stage is not done.dense]
        dense, reduces = (ahead, *back.computes, done.dense), (*back.reduces, *done.reduces)
        return cls((read, inputs), gather, dense, reduces, (pack, send, *rows, written), done)

    def plan(self, gathered: int, trained: int) -> Pipeline:
        """Return the pipeline that gathers and trains so many batches before a batch is scattered."""
        by = {stage: gathered for stage in self.gather} | {stage: trained for stage in self.dense}
        by |= {stage: trained for stage in self.reduces if stage not in self.done.reduces}
        read, inputs = self.inputs
        at = Ahead(by | {read: gathered + 2, inputs: gathered + 1})
        first = (self.scatter, self.gather) if gathered else (self.gather, self.scatter)
        streams = {
            "loader": [at(read)],
            "copy": [at(inputs)],
            "sparse": [at(stage) for part in first for stage in part],
            "all_reduce": [at(stage) for stage in self.reduces],
            "compute": [at(stage) for stage in self.dense],
        }
        lag = max(1, gathered)
        carries = [Carry(at(self.scatter[-1]), to=at(self.gather[0]), lag=lag)]
        carries += [] if gathered else [Carry(at(self.done.dense), to=at(self.gather[0]))]
        return Pipeline(streams, carries, updates=[at(self.done.rows), at(self.done.dense)])


def _gather(step: TrainStep, inputs: Stage) -> tuple[Stage, ...]:
    """Keys to their owners, rows from their tier, rows in order, rows to their sources, rows to lookups."""
    micro = step.micro_batch(1)
    route = route_keys(step, inputs)
    retrieve = retrieve_rows(step, route)
    rows = (rows_of(step.placed),)
    gather = Stage("gather", "lookup", micro.gather_rows, after=[retrieve], reads=rows)
    exchange = Stage("exchange", "all_to_all", micro.deliver_rows, after=[gather], reads=rows)
    unpack = Stage("unpack", "lookup", micro.expansion, after=[exchange])
    return route, retrieve, gather, exchange, unpack


@dataclass(frozen=True)
class SparseCore(Policy):
    """One engine works while the other waits: gather, dense passes, scatter, batch by batch."""

    consistency: ClassVar[str] = "synchronous"
    staleness_steps: ClassVar[int] = 0
    needs: ClassVar[tuple[str, ...]] = ("sparse_cores",)

    def plan(self, step: TrainStep) -> Pipeline:
        """Return the chain; the next gather waits for this scatter. Inputs are copied a batch ahead."""
        return _Life.of(step).plan(gathered=0, trained=0)


@dataclass(frozen=True)
class SparseCorePipelined(Policy):
    """Both engines work at once: scatter of batch i - 2 and gather of i beside the passes of i - 1."""

    consistency: ClassVar[str] = "stale"
    staleness_steps: ClassVar[int] = 1
    needs: ClassVar[tuple[str, ...]] = ("sparse_cores",)

    def plan(self, step: TrainStep) -> Pipeline:
        """Return gather+2, forward+1, backward+1 and scatter."""
        return _Life.of(step, early=True).plan(gathered=2, trained=1)
