"""Dual-buffer pipelining (NestPipe's DBP, arXiv 2604.06956): five stages of consecutive batches run at once.

Rows of batch k are read from host memory while batch k - 1 trains on the other buffer. Those that
both batches use were read before k - 1's update, so they are copied from the active to the
prefetch buffer after it (the refresh). Rows used by k - 2 and k but not k - 1 are safe because
the buffer of batch k is taken only when batch k - 2 has been written back.
"""

from dataclasses import dataclass
from typing import Literal

from simulator.errors import InputError
from simulator.pipeline import Access, Buffer, Carry, Pipeline, Stage
from simulator.policies.base import InterBatch, IntraBatch
from simulator.policies.parts import (
    ROWS,
    buffered,
    copy_inputs,
    read_inputs,
    retrieve_rows,
    route_keys,
    settled,
    write_back,
)
from simulator.sharding.step import TrainStep

Buffers = Literal[1, 2]


@dataclass(frozen=True)
class DualBuffer(InterBatch):
    """Row buffers in device memory (`buffers`: 2, or 1 to see what the second is worth)."""

    buffers: Buffers = 2

    def __post_init__(self) -> None:
        """Refuse buffer counts for which the refresh rule does not hold."""
        if self.buffers not in (1, 2):
            raise InputError(f"dual_buffer works with 1 or 2 row buffers, not {self.buffers}")

    def embed(self, step: TrainStep, intra_batch: IntraBatch) -> Pipeline:
        """Return read+4, inputs+3, route+2, retrieve+1, refresh, then `intra_batch` and write-back."""
        two = self.buffers == 2
        read = read_inputs(step, ahead=4, parts=intra_batch.micro_batches)
        inputs = copy_inputs(step, read, ahead=3)
        route = route_keys(step, inputs, ahead=2)
        retrieve = retrieve_rows(step, route, ahead=1 if two else 0)
        refresh = _refresh(step, retrieve, two)
        part = intra_batch.fragment(step, refresh)
        back = write_back(step, [part.rows_updated])
        streams = {
            "loader": [read],
            "copy": [inputs],
            "key network": [route],
            "host": [retrieve, back],
            "device copy": [refresh],
            **part.streams,
        }
        carries = [Carry(part.rows_updated, to=refresh), *settled(back, part)]
        return Pipeline(streams, carries, [_rows(self.buffers, retrieve, refresh, back)], part.updates)


def _refresh(step: TrainStep, retrieve: Stage, two: bool) -> Stage:
    """Copy the rows shared with the previous batch from its buffer; with one buffer they are there."""
    if not two:
        return Stage("refresh", "lookup", after=[retrieve])
    shared, rows = buffered(step, Access(ROWS.store, keys="shared", of=1)), buffered(step, ROWS)
    return Stage("refresh", "lookup", step.refresh_rows, [retrieve], ahead=1, reads=shared, writes=rows)


def _rows(slots: int, retrieve: Stage, refresh: Stage, back: Stage) -> Buffer:
    """Two slots: free when written back and when the next batch has copied what it shares."""
    return Buffer("rows", slots, taken_by=retrieve, freed_by=[back, (refresh, 1)] if slots == 2 else [back])
