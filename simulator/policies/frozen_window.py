"""Frozen-window pipelining (NestPipe's FWP, arXiv 2604.06956): exchange beside computation.

The batch is split into N micro-batches; rows and parameters stay frozen until all N are done, so
all of them see the same rows and their accumulated gradients make one update: the result of the
whole batch. The network fetches micro-batch i + 1 while i computes; of 2N all-to-alls only the
first forward one and the last gradient one have nothing to hide behind, a share of 1/N.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Le

from simulator.errors import InputError
from simulator.pipeline import Stage
from simulator.policies.base import Fragment, IntraBatch
from simulator.policies.parts import Backward, backward, exchange_rows, forward, send_gradients, update
from simulator.sharding.step import TrainStep

MicroBatches = Annotated[int, Le(1024)]


@dataclass(frozen=True)
class FrozenWindow(IntraBatch):
    """N micro-batches per batch (`micro_batches`), one update. Raises InputError when N < 1."""

    arranges_exchange: ClassVar[bool] = True
    micro_batches: MicroBatches = field()  # no default: how many is the decision to make

    def __post_init__(self) -> None:
        """Refuse a window without micro-batches."""
        if self.micro_batches < 1:
            raise InputError("micro_batches must be at least 1")

    def fragment(self, step: TrainStep, rows: Stage) -> Fragment:
        """Return e1, e2, s1, e3, s2, ... on the network beside f1, b1, f2, b2, ... on compute."""
        micro, count = step.micro_batch(self.micro_batches), self.micro_batches
        exchanges = [exchange_rows(micro, rows, f".{i}") for i in range(count)]
        forwards = [forward(micro, exchange, f".{i}") for i, exchange in enumerate(exchanges)]
        backs = [backward(micro, at, f".{i}", i == count - 1, adds=i > 0) for i, at in enumerate(forwards)]
        sends = [send_gradients(micro, back.computes[-1], f".{i}") for i, back in enumerate(backs)]
        done = update(step, sends, backs[-1].reduces, backs[-1].computes[-1])
        streams = {
            "network": _interleaved(exchanges, sends),
            "all_reduce": [*backs[-1].reduces, *done.reduces],
            "compute": [*_in_turn(forwards, backs), *done.computes],
        }
        return Fragment(streams, tuple(exchanges), done.rows, (done.rows, done.dense))


def _interleaved(exchanges: list[Stage], sends: list[Stage]) -> list[Stage]:
    """Fetch one micro-batch ahead of the gradients that go back: e1, e2, s1, e3, s2, ..., sN."""
    order = [exchanges[0]]
    for exchange, send in zip(exchanges[1:], sends, strict=False):
        order += [exchange, send]
    return [*order, sends[-1]]


def _in_turn(forwards: list[Stage], backs: list[Backward]) -> list[Stage]:
    return [stage for ahead, back in zip(forwards, backs, strict=True) for stage in (ahead, *back.computes)]
