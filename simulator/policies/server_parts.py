"""Stages of policies whose workers deal with parameter servers themselves, without exchanging rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from simulator.pipeline import Access, Stage
from simulator.policies.parts import Backward, backward, forward
from simulator.sharding.micro import MicroStep
from simulator.sharding.moves import width_total
from simulator.sharding.served import Rows
from simulator.sharding.step import TrainStep

CACHE = Access("rows kept on the device", of=None)
GRADIENTS = "row gradients that are added up"


@dataclass(frozen=True, eq=False)
class Dense:
    """Forward, backward with its all-reduces, and the optimizer of the dense model."""

    forward: Stage
    back: Backward
    optimizer: Stage

    @property
    def computes(self) -> tuple[Stage, ...]:
        """All of them in their order on the compute stream."""
        return self.forward, *self.back.computes, self.optimizer

    @property
    def last(self) -> Stage:
        """The pass that row gradients come out of."""
        return self.back.computes[-1]


def dense(step: TrainStep, rows: Sequence[Stage], reads: Sequence[Access]) -> Dense:
    """Return the passes over a batch that waits for all of `rows` and finds them where `reads` says."""
    micro: MicroStep = step.micro_batch(1)
    first = replace(forward(micro, rows[0]), after=tuple(rows), reads=tuple(reads))
    back = backward(micro, first)
    optimizer = Stage("optimizer", "compute", step.optimizer, after=[*back.reduces, back.computes[-1]])
    return Dense(first, back, optimizer)


def moved(fetched: Rows, returned: Rows) -> tuple[float, float]:
    """Return the bytes of rows that one worker gets from servers per batch, and those that it gives back."""
    return float(width_total(fetched)), float(width_total(returned))


def all_in(step: TrainStep, name: str, sent: Stage, accesses: tuple[Access, Access]) -> Stage:
    """Servers have what all workers `sent`, and write it: `accesses` are what is read and written.

    Where gradients were sent, servers add an update to their rows; where rows were, those replace them.
    """
    read, write = accesses
    work = step.served.all_in
    return replace(sent, name=name, work=work, after=(sent,), reads=(read,), writes=(write,))


def look_ahead(step: TrainStep, batches: int) -> Stage:
    """One host reads the samples of all workers, decides what to cache, and sends each its batch."""
    return Stage("look_ahead", "input", step.lookahead(batches).oracle, ahead=max(2, batches))
