"""What a policy is: a pure plan from the quantities of a step to a pipeline, and how two nest.

An intra-batch policy arranges the exchanges and the dense computation of one batch and returns a
`Fragment`; an inter-batch policy arranges the life of a batch around it (input, key routing,
retrieval, write-back), embeds the fragment, and supplies the carry that keeps its rows fresh.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from simulator.pipeline import Pipeline, Stage
from simulator.sharding.step import TrainStep

CONSISTENCY = ("synchronous", "stale", "asynchronous")
REQUIREMENTS = {
    "sparse_cores": "accelerators with sparse cores",
    "servers": "tables on parameter servers (sharding tier remote)",
    "replicas": "several copies of the tables (sharding.replicas above 1)",
}


def weaker(*promises: str) -> str:
    """Return the weakest of several promises of consistency."""
    return max(promises, key=CONSISTENCY.index)


class Policy(Protocol):
    """Anything that turns a step's quantities into a pipeline, with its promise beside it.

    A policy that works on some hardware or sharding only says so in `needs`, in words of `REQUIREMENTS`;
    one without the attribute works anywhere. One that throws updates of rows away says `loses_updates`; one
    without the attribute promises that each update is applied once, sooner or later. One that must say more
    beside the numbers of a run has `remarks`, sentences that the report notes.
    """

    @property
    def consistency(self) -> str:
        """`synchronous`, `stale` or `asynchronous`."""
        ...

    @property
    def staleness_steps(self) -> int:
        """How many updates behind a synchronous run the rows may be that a batch trains on."""
        ...

    def plan(self, step: TrainStep) -> Pipeline:
        """Return the stages, carries and buffers of one batch. Pure: same step, same pipeline."""
        ...


@dataclass(frozen=True, eq=False)
class Fragment:
    """The stages of one batch from its rows to its updates.

    `rows_in` are the stages that read the batch's rows at their owners, `update` the stages that
    write them (and the dense parameters); `rows_updated` is the one that leaves the rows current.
    """

    streams: Mapping[str, Sequence[Stage]]
    rows_in: tuple[Stage, ...]
    rows_updated: Stage
    updates: tuple[Stage, ...]


class IntraBatch(ABC):
    """A policy within one batch, computed in `micro_batches` parts.

    On its own it runs one batch at a time. `arranges_exchange`: it decides itself when rows are exchanged,
    so an inter-batch policy cannot decide it as well.
    """

    consistency: ClassVar[str] = "synchronous"
    staleness_steps: ClassVar[int] = 0
    needs: ClassVar[tuple[str, ...]] = ()
    arranges_exchange: ClassVar[bool] = False
    micro_batches: int = 1

    @abstractmethod
    def fragment(self, step: TrainStep, rows: Stage) -> Fragment:
        """Return the stages of a batch whose rows are in place once `rows` is done."""

    def plan(self, step: TrainStep) -> Pipeline:
        """Return the pipeline that runs this policy with one batch in flight."""
        from simulator.policies.parts import embed_serially

        return embed_serially(step, self)


class InterBatch(ABC):
    """A policy across batches. On its own it exchanges and computes each batch as a whole.

    `arranges_exchange`: it moves the exchange of rows itself, so an intra-batch policy cannot do so as well.
    """

    consistency: ClassVar[str] = "synchronous"
    staleness_steps: ClassVar[int] = 0
    needs: ClassVar[tuple[str, ...]] = ()
    arranges_exchange: ClassVar[bool] = False

    @property
    def loses_updates(self) -> bool:
        """Whether updates of rows may be overwritten by older rows, and so be lost for good."""
        return False

    @property
    def remarks(self) -> tuple[str, ...]:
        """What must be said beside the numbers of a run."""
        return ()

    @abstractmethod
    def embed(self, step: TrainStep, intra_batch: IntraBatch) -> Pipeline:
        """Return the pipeline of a batch's whole life around `intra_batch`."""

    def plan(self, step: TrainStep) -> Pipeline:
        """Return the pipeline of this policy around a batch that is handled whole."""
        from simulator.policies.parts import WholeBatch

        return self.embed(step, WholeBatch())
