"""The timeline of a run: when every stage of every batch began and ended, on every rank kept apart."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.pipeline import MarkedGraph
from simulator.quantities import IntArray


@dataclass(frozen=True, eq=False)
class Timeline:
    """Completion times of all instances, whole nanoseconds.

    `end_ns` and `duration_ns` have shape (nodes, cycles, columns). A column stands for
    `ranks_in[column]` ranks that behave alike; `column_of[rank]` finds a rank's column.
    `events` counts the SimPy events that were spent (0 for the vector engine).
    """

    graph: MarkedGraph
    duration_ns: IntArray
    end_ns: IntArray
    column_of: IntArray
    engine: str
    events: int = 0

    @property
    def cycles(self) -> int:
        """How many cycles of `graph.period` batches were run."""
        return int(self.end_ns.shape[1])

    @property
    def batches(self) -> int:
        """How many batches were run."""
        return self.cycles * self.graph.period

    @property
    def ranks(self) -> int:
        """How many ranks the run stands for."""
        return len(self.column_of)

    @cached_property
    def ranks_in(self) -> IntArray:
        """Number of ranks in each column."""
        return np.bincount(self.column_of, minlength=self.end_ns.shape[2]).astype(np.int64)

    @cached_property
    def start_ns(self) -> IntArray:
        """When each instance had all it waited for: max over incoming edges (shape as `end_ns`)."""
        start = np.zeros_like(self.end_ns)
        for node, edges in enumerate(self.graph.incoming):
            for edge in edges:
                into, out = _overlapping(edge.lag, self.cycles)
                np.maximum(start[node, into], self.end_ns[edge.source, out], out=start[node, into])
        return start

    @cached_property
    def began_ns(self) -> IntArray:
        """When each instance began to work: a collective, when the last rank had arrived (as `end_ns`)."""
        began = self.start_ns.copy()
        for index, node in enumerate(self.graph.nodes):
            if node.stage.work.rendezvous:
                began[index] = began[index].max(axis=1, keepdims=True)
        return began

    @property
    def slowed_ns(self) -> IntArray:
        """What sharing cost each instance: the time it ran beyond its nominal duration (as `end_ns`)."""
        slowed: IntArray = self.end_ns - self.began_ns - self.duration_ns
        return slowed

    @cached_property
    def update_ns(self) -> IntArray:
        """When each batch's last update was complete, shape (batches, columns).

        In a batch without an update of its own (gradient accumulation) the last one before counts.
        """
        done = np.zeros((self.batches, self.end_ns.shape[2]), dtype=np.int64)
        for node in self.graph.updates:
            rows = slice(self.graph.nodes[node].residue, None, self.graph.period)
            np.maximum(done[rows], self.end_ns[node], out=done[rows])
        return np.maximum.accumulate(done, axis=0)

    @cached_property
    def slowest_column(self) -> int:
        """The column whose last update came last; of several, the one that computed longest.

        Ranks that meet in every batch end together: the one that the others wait for has worked most.
        """
        last = self.update_ns[-1]
        return int(np.argmax(np.where(last == last.max(), self._computed_ns, -1)))

    @property
    def _computed_ns(self) -> IntArray:
        """Nanoseconds that the compute stream of each column was at work, shape (columns,)."""
        on_compute = [n.stream == self.graph.pipeline.compute for n in self.graph.nodes]
        worked: IntArray = (self.end_ns - self.began_ns)[on_compute].sum(axis=(0, 1))
        return worked

    def rank_of(self, column: int) -> int:
        """Return the first rank that `column` stands for."""
        return int(np.flatnonzero(self.column_of == column)[0])


def _overlapping(lag: int, cycles: int) -> tuple[slice, slice]:
    """Return the cycles m and m - lag that both lie within the run, as two slices."""
    if lag >= 0:
        return slice(lag, cycles), slice(0, max(0, cycles - lag))
    return slice(0, max(0, cycles + lag)), slice(-lag, cycles)
