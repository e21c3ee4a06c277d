"""Parameter servers asked per table, and RPC coalescing: one fetch and one update pair for all tables.

A worker fetches the rows of its batch, computes, and pushes a gradient per row; servers update rows when
all workers have pushed. Calls are an amount: the policies differ in how many there are and whether they
wait for each other. Source: arXiv 2501.10546 (coalescing; by a machine review of the paper at pith.science).
What a call costs is measured (docs/concepts/server_policies.md).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from simulator.pipeline import Carry, Pipeline, Stage
from simulator.policies.parts import HOST, ROWS, copy_inputs, read_inputs
from simulator.policies.server_parts import all_in, dense
from simulator.sharding.served import Calls
from simulator.sharding.step import TrainStep


@dataclass(frozen=True)
class RpcPerTable:
    """One call per table and server: in turn, or with `asynchronous` all at once (the fair baseline)."""

    asynchronous: bool = False
    consistency: ClassVar[str] = "synchronous"
    staleness_steps: ClassVar[int] = 0
    needs: ClassVar[tuple[str, ...]] = ("servers",)

    def plan(self, step: TrainStep) -> Pipeline:
        """Return read+2, inputs+1, collect+1, fetch, the passes, push."""
        return _plan(step, Calls(len(step.served.tables), in_turn=not self.asynchronous))


@dataclass(frozen=True)
class RpcCoalesced:
    """One fetch and one update per step; without `reference_counted` splits, messages are copied apart."""

    reference_counted: bool = True
    consistency: ClassVar[str] = "synchronous"
    staleness_steps: ClassVar[int] = 0
    needs: ClassVar[tuple[str, ...]] = ("servers",)

    def plan(self, step: TrainStep) -> Pipeline:
        """Return read+2, inputs+1, collect+1, fetch, the passes, push."""
        return _plan(step, Calls(copies=not self.reference_counted))


def _plan(step: TrainStep, calls: Calls) -> Pipeline:
    served = step.served
    read = read_inputs(step, ahead=2)
    inputs = copy_inputs(step, read, ahead=1)
    collect = Stage("collect", "lookup", served.collect, after=[inputs], ahead=1)
    work = served.fetch(served.batch_rows, calls)
    fetch = Stage("fetch", "parameter_server", work, after=[collect], reads=(HOST,), writes=(ROWS,))
    passes = dense(step, [fetch], [ROWS])
    work = served.push(served.batch_rows, calls)
    push = Stage("push", "parameter_server", work, after=[passes.last])
    done = all_in(step, "all_pushed", push, (HOST, replace(HOST, adds=True)))
    streams = {
        "loader": [read],
        "copy": [inputs],
        "client": [collect],
        "server": [fetch, push, done],
        "all_reduce": passes.back.reduces,
        "compute": passes.computes,
    }
    return Pipeline(streams, [Carry(done, to=fetch)], updates=[passes.optimizer, done])
