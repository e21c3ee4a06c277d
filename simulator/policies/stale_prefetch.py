"""Asynchronous prefetch (UniEmb-like): the whole lookup of batch k + 1 runs beside batch k.

Nothing brings the prefetched rows up to date, so rows that the running batch also uses are read
before its update: one step stale. Rows that live in device memory are read where they live, by the
exchange, which does not wait for the update of the batch before either. The all-to-alls stay exposed. So
summaries of NestPipe's paper (arXiv 2604.06956) describe its baseline UniEmb, which has no public paper.

What goes back to host memory are updates, which are added there: the buffer of batch k + 1 was read before
the update of batch k, so rows written back from it would undo that update. With `write_back: overwrite` they
do, and the updates are lost for good. How UniEmb does it is not public.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from simulator.errors import InputError
from simulator.pipeline import Pipeline
from simulator.policies.base import InterBatch, IntraBatch
from simulator.policies.parts import (
    add_back,
    copy_inputs,
    read_inputs,
    retrieve_rows,
    route_keys,
    settled,
    write_back,
)
from simulator.sharding.step import TrainStep


@dataclass(frozen=True)
class StalePrefetch(InterBatch):
    """One prefetcher, one batch ahead: read, copy, route and retrieve in turn on a stream of their own.

    `write_back`: updates are added to the rows in host memory (`add`), or rows replace them (`overwrite`).
    """

    write_back: Literal["add", "overwrite"] = "add"
    consistency: ClassVar[str] = "stale"
    staleness_steps: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Refuse other ways."""
        if self.write_back not in ("add", "overwrite"):
            raise InputError(f'write_back is "add" or "overwrite", not "{self.write_back}"')

    @property
    def loses_updates(self) -> bool:
        """Rows that replace what is there undo the update of the batch before."""
        return self.write_back == "overwrite"

    def embed(self, step: TrainStep, intra_batch: IntraBatch) -> Pipeline:
        """Return the prefetch stream beside `intra_batch`; updated rows are written back behind it."""
        read = read_inputs(step, ahead=1, parts=intra_batch.micro_batches)
        inputs = copy_inputs(step, read, ahead=1)
        route = route_keys(step, inputs, ahead=1)
        retrieve = retrieve_rows(step, route, ahead=1)
        part = intra_batch.fragment(step, retrieve)
        back = (write_back if self.loses_updates else add_back)(step, [part.rows_updated])
        streams = {"prefetch": [read, inputs, route, retrieve], "write back": [back], **part.streams}
        return Pipeline(streams, settled(back, part), updates=[*part.updates, back])
