"""A thread that computes, to see what else on its core takes from it."""

import threading
import time
from collections.abc import Callable

import numpy as np

from simulator.calibration.measure.pinning import short_turns

WIDTH = 256  # of the matrices that it multiplies: together they fill half a usual L2 cache


class Spinner:
    """A thread that multiplies small matrices, and counts them, until it is left."""

    def __init__(self) -> None:
        """Make the matrices."""
        self._matrix = np.ones((WIDTH, WIDTH), dtype=np.float32)
        self._count = 0
        self._stop = False
        self._thread = threading.Thread(target=self._spin, daemon=True)

    def __enter__(self) -> "Spinner":
        """Start; the calling thread goes first from now on, as threads that communicate do in a run."""
        short_turns()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop."""
        self._stop = True
        self._thread.join()

    def during(self, action: Callable[[], object]) -> tuple[int, float]:
        """Return how many products were done during `action`, and its seconds."""
        before, began = self._count, time.perf_counter()
        action()
        return self._count - before, time.perf_counter() - began

    def _spin(self) -> None:
        while not self._stop:
            self._matrix @ self._matrix
            self._count += 1
