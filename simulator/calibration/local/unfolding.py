"""Stages as their threads run them: local work and flows apart, so that each shares what it really uses.

A stage such as *gather rows, then exchange them* is one stage to a policy. Here it becomes a chain of
stages on the same stream, each with its own needs; what waited for the stage waits for the last of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

from simulator.calibration.local.costs import Program, split
from simulator.calibration.train.step import Primitive
from simulator.pipeline import Buffer, Carry, Pipeline, Stage
from simulator.quantities import InTurn, Work

HAND_OVER = Primitive("hand_over", 1.0)


@dataclass(eq=False)
class _Chains:
    """The chain that each stage has become; `works` says by kind what a stage does instead of its own."""

    works: Mapping[str, Work] = field(default_factory=dict)
    chains: dict[int, tuple[Stage, ...]] = field(default_factory=dict)

    def of(self, stage: Stage) -> tuple[Stage, ...]:
        """Return the chain of `stage`; those of the stages before it are made first."""
        if id(stage) not in self.chains:
            self.chains[id(stage)] = tuple(self._made(stage))
        return self.chains[id(stage)]

    def _made(self, stage: Stage) -> Iterator[Stage]:
        after = [self.of(before)[-1] for before in stage.after]
        own = replace(stage, work=self.works.get(kind_of(stage.name), stage.work))
        for number, work in enumerate(_segments(own)):
            name = f"{stage.name}/{number}" if number else stage.name
            link = replace(stage, name=name, work=work, after=tuple(after), reads=(), writes=())
            yield link
            after = [link]


def _segments(stage: Stage) -> list[Work]:
    """Return local parts put together, and each flow alone; first of all the stage is handed over."""
    parts = [HAND_OVER, Program(kind_of(stage.name)), *split(stage.work)]
    found: list[Work] = []
    for meets, run in groupby(parts, key=lambda part: part.rendezvous):
        members = tuple(run)
        found.extend(members if meets else [InTurn(members)])
    return found


def kind_of(name: str) -> str:
    """Return the name of a stage without the number of its micro-batch or bucket."""
    return name.partition(".")[0]


def unfolded(pipeline: Pipeline, works: Mapping[str, Work] | None = None) -> Pipeline:
    """Return `pipeline` with every stage taken apart into what its thread does.

    `works` says by kind of stage what is done instead of the work that the policy planned.
    """
    chains = _Chains(works or {})
    streams = {
        name: [link for stage in stream for link in chains.of(stage)]
        for name, stream in pipeline.streams.items()
    }
    carries = [
        Carry(chains.of(carry.source)[-1], to=chains.of(carry.to)[0], lag=carry.lag)
        for carry in pipeline.carries
    ]
    buffers = [_buffer(buffer, chains) for buffer in pipeline.buffers]
    updates = [chains.of(stage)[-1] for stage in pipeline.updates]
    return Pipeline(streams, carries, buffers, updates, pipeline.compute)


def _buffer(buffer: Buffer, chains: _Chains) -> Buffer:
    freed = [
        (chains.of(entry[0])[-1], entry[1]) if isinstance(entry, tuple) else chains.of(entry)[-1]
        for entry in buffer.freed_by
    ]
    return Buffer(buffer.name, buffer.slots, chains.of(buffer.taken_by)[0], freed)
