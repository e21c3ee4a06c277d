"""Executes a pipeline for real: one thread per stream, and every wait of its marked graph.

What the simulator's engine does in simulated time is done here in real time, from the same graph:
an instance runs when its turn on its stream has come and all that it waits for is done.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from simulator.calibration.measure.pinning import short_turns
from simulator.errors import InputError
from simulator.pipeline import MarkedGraph
from simulator.quantities import IntArray

Operation = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Execution:
    """When each instance began and ended, ns of the machine's clock, and processor time; (nodes, cycles)."""

    graph: MarkedGraph
    start_ns: IntArray
    end_ns: IntArray
    cpu_ns: IntArray

    @property
    def update_ns(self) -> IntArray:
        """When each batch's last update was done, shape (batches,)."""
        graph = self.graph
        done = np.zeros(self.end_ns.shape[1] * graph.period, dtype=np.int64)
        for node in graph.updates:
            batches = slice(graph.nodes[node].residue, None, graph.period)
            done[batches] = np.maximum(done[batches], self.end_ns[node])
        return np.maximum.accumulate(done)

    @property
    def stage_s(self) -> dict[str, float]:
        """The median seconds that each stage took."""
        return self._by_stage(self.end_ns - self.start_ns)

    @property
    def stage_cpu_s(self) -> dict[str, float]:
        """Processor seconds of each stage's thread: the median, of collectives the tenth percentile.

        Libraries that poll use the processor while they wait for another rank; the tenth percentile
        belongs to batches in which this rank came last.
        """
        meets = {node.name for node in self.graph.nodes if node.stage.work.rendezvous}
        least = self._by_stage(self.cpu_ns, 0.1)
        return {n: least[n] if n in meets else s for n, s in self._by_stage(self.cpu_ns).items()}

    def _by_stage(self, ns: IntArray, share: float = 0.5) -> dict[str, float]:
        runs: dict[str, list[int]] = {}
        for index, node in enumerate(self.graph.nodes):
            runs.setdefault(node.name, []).append(index)
        return {name: float(np.quantile(ns[nodes], share)) / 1e9 for name, nodes in runs.items()}


class Executor:
    """Runs `batches` batches of `graph`; `operations` says what each stage does for a batch."""

    def __init__(self, graph: MarkedGraph, operations: Mapping[str, Operation], batches: int) -> None:
        """Check that every stage has its operation. Raises InputError otherwise."""
        missing = [node.name for node in graph.nodes if node.name not in operations]
        if missing:
            raise InputError(f"stage {missing[0]} cannot be executed: nothing is known of what it does")
        if batches % graph.period:
            raise InputError(f"this pipeline runs whole periods of {graph.period} batches, not {batches}")
        self._graph = graph
        self._operations = operations
        self._cycles = batches // graph.period
        self._waits = self._count_waits()
        self._lock = threading.Lock()
        self._asleep: dict[tuple[int, int], threading.Lock] = {}
        self._failed: BaseException | None = None
        self._start = np.zeros((len(graph.nodes), self._cycles), dtype=np.int64)
        self._end, self._cpu = np.zeros_like(self._start), np.zeros_like(self._start)

    def run(self) -> Execution:
        """Run all batches; raise what any stage raised."""
        threads = [
            threading.Thread(target=self._stream, args=(order,), name=stream, daemon=True)
            for stream, order in self._orders().items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failed is not None:
            raise self._failed
        return Execution(self._graph, self._start, self._end, self._cpu)

    def _count_waits(self) -> list[list[int]]:
        """Return how many instances each instance waits for, those before the first cycle left out."""
        return [
            [sum(0 <= cycle - e.lag < self._cycles for e in edges) for cycle in range(self._cycles)]
            for edges in self._graph.incoming
        ]

    def _orders(self) -> dict[str, list[tuple[int, int]]]:
        """Return the instances of each stream in the order of (batch - ahead, position)."""
        graph, orders = self._graph, dict[str, list[tuple[int, int, int, int]]]()
        for index, node in enumerate(graph.nodes):
            for cycle in range(self._cycles):
                turn = graph.batch_of(index, cycle) - node.stage.ahead
                orders.setdefault(node.stream, []).append((turn, node.position, index, cycle))
        return {stream: [item[2:] for item in sorted(order)] for stream, order in orders.items()}

    def _stream(self, order: list[tuple[int, int]]) -> None:
        signal = threading.Lock()
        signal.acquire()
        short_turns()  # whoever becomes ready may run at once, however many streams compute meanwhile
        try:
            for node, cycle in order:
                self._wait(node, cycle, signal)
                if self._failed is not None:
                    return
                self._perform(node, cycle)
        except BaseException as error:  # whatever it was: the other streams must not wait for ever
            self._fail(error)

    def _wait(self, node: int, cycle: int, signal: threading.Lock) -> None:
        with self._lock:
            if not self._waits[node][cycle] or self._failed is not None:
                return
            self._asleep[node, cycle] = signal
        signal.acquire()

    def _perform(self, node: int, cycle: int) -> None:
        self._start[node, cycle], used = time.perf_counter_ns(), time.thread_time_ns()
        self._operations[self._graph.nodes[node].name](self._graph.batch_of(node, cycle))
        self._end[node, cycle], self._cpu[node, cycle] = time.perf_counter_ns(), time.thread_time_ns() - used
        with self._lock:
            for edge in self._graph.outgoing[node]:
                if 0 <= cycle + edge.lag < self._cycles:
                    self._tell(edge.target, cycle + edge.lag)

    def _tell(self, node: int, cycle: int) -> None:
        self._waits[node][cycle] -= 1
        if not self._waits[node][cycle]:
            sleeper = self._asleep.pop((node, cycle), None)
            if sleeper is not None:
                sleeper.release()

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._failed = self._failed or error
            for sleeper in self._asleep.values():
                sleeper.release()
            self._asleep.clear()
