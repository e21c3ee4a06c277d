"""HugeCTR: the exchange of rows beside the bottom network, the dense all-reduce beside the backward pass.

What needs no embedding row is computed while rows travel: the bottom network before the interaction on
the way forward, and its backward pass while row gradients travel back. Samples are read, copied and
their keys routed for later batches beside it; rows are read only when the batch before has updated
them, so nothing is stale. Hot tables held by all ranks (`data_parallel` in a mixture) need no exchange.
Merlin HugeCTR: arXiv 2210.08803, https://github.com/NVIDIA-Merlin/HugeCTR. What runs beside what is our
reading.
"""

from dataclasses import dataclass
from typing import ClassVar

from simulator.pipeline import Carry, Pipeline, Stage
from simulator.policies.parts import (
    Backward,
    copy_inputs,
    exchange_rows,
    read_inputs,
    reduced_backward,
    retrieve_rows,
    route_keys,
    rows_first,
    send_gradients,
    update,
    write_back,
)
from simulator.quantities import Work
from simulator.sharding.passes import DensePart, captured
from simulator.sharding.step import TrainStep


@dataclass(frozen=True)
class HugeCtr:
    """With `graph_capture`, the kernels of a pass are launched as one graph instead of one by one."""

    graph_capture: bool = False
    consistency: ClassVar[str] = "synchronous"
    staleness_steps: ClassVar[int] = 0

    def plan(self, step: TrainStep) -> Pipeline:
        """Return read+3, inputs+2, route+1; exchange beside the bottom's passes; rows updated first."""
        micro = step.micro_batch(1)
        read = read_inputs(step, ahead=3)
        inputs = copy_inputs(step, read, ahead=2)
        route = route_keys(step, inputs, ahead=1)
        retrieve = retrieve_rows(step, route)
        exchange = exchange_rows(micro, retrieve)
        below = Stage("bottom_forward", "compute", self._launched(micro.bottom.forward), after=[inputs])
        above = Stage("forward", "compute", self._launched(micro.top.forward), after=[exchange, below])
        back = self._backward(micro.top, above)
        send = send_gradients(micro, back.computes[-1])
        last = self._backward(micro.bottom, back.computes[-1], of="bottom_")
        computes, reduces = (*back.computes, *last.computes), (*back.reduces, *last.reduces)
        done = update(step, [send], reduces, computes[-1])
        written = write_back(step, [done.rows])
        streams = {
            "loader": [read],
            "copy": [inputs],
            "key network": [route],
            "host": [retrieve, written],
            "network": [exchange, send],
            "all_reduce": [*reduces, *done.reduces],
            "compute": [below, above, *computes, *rows_first(done)],
        }
        return Pipeline(streams, [Carry(written, to=retrieve)], updates=[done.rows, done.dense])

    def _launched(self, work: Work) -> Work:
        return captured(work) if self.graph_capture else work

    def _backward(self, part: DensePart, before: Stage, of: str = "") -> Backward:
        """Return the buckets of a part's backward pass, each with its all-reduce; none of an empty part."""
        works = [] if part.empty else [self._launched(work) for work in part.backward_buckets]
        return reduced_backward(part, works, before, of=of)
