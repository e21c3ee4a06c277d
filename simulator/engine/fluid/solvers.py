"""The two solvers of the sharing law, numpy and numba, behind one protocol; they agree to 1e-12."""

from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

import numpy as np

from simulator.engine.fluid.filling import NumpyFilling, Shares
from simulator.engine.fluid.problem import NEARLY, Problem
from simulator.quantities import FloatArray, IntArray

if TYPE_CHECKING:
    from simulator.engine.fluid.compiled import Columns

MANY = 2048  # crossings from which loading and calling compiled code pays


class Filling(Protocol):
    """Solves one problem for any subset of its flows."""

    def share(self, active: IntArray) -> Shares:
        """Return rates (0 for flows that are not `active`) and tight links; `active` are ids, ascending."""

    def holds(self, shares: Shares, ended: IntArray, active: IntArray) -> bool:
        """Return whether `shares` stay right for the `active` flows now that `ended` are gone."""


class Solver(Protocol):
    """One implementation of the sharing law."""

    def filling(self, problem: Problem) -> Filling:
        """Prepare to solve `problem` for many subsets of its flows."""

    def lone(self, problem: Problem, tick: float) -> FloatArray:
        """Return seconds to the end of each flow, (F,), when all start at once; `tick` in seconds."""


class NumpySolver:
    """Needs numpy alone."""

    def filling(self, problem: Problem) -> Filling:
        """Return a filling in whole-array steps."""
        return NumpyFilling(problem)

    def lone(self, problem: Problem, tick: float) -> FloatArray:
        """Share, let time pass to the next end (and a tick more), drop what ended, until none is left."""
        filling, left, finish = self.filling(problem), problem.size.copy(), np.zeros(len(problem.size))
        active, now = np.arange(len(problem.size), dtype=np.int64), 0.0
        shares = filling.share(active)
        while len(active):
            rate = shares.rate[active]
            due = left[active] / rate
            ended = due - NEARLY * problem.size[active] / rate <= due.min() + 2 * tick
            span = middle_of(due[ended], rate[ended]) if tick else due.min()
            finish[active[ended]] = now + due[ended]
            left[active[~ended]] -= rate[~ended] * span
            gone, active, now = active[ended], active[~ended], now + span
            if not filling.holds(shares, gone, active):
                shares = filling.share(active)
        return finish


def middle_of(due: FloatArray, rate: FloatArray) -> float:
    """Return the mean of `due`, weighted by `rate`; the earliest when some rates are infinite."""
    total = float(rate.sum())
    return float((due * rate).sum() / total) if total < np.inf else float(due.min())


class CompiledSolver:
    """Needs numba (the extra `fast`): 20 to 100 times quicker on thousands of flows."""

    def filling(self, problem: Problem) -> Filling:
        """Return a filling that goes link by link in machine code."""
        return _CompiledFilling(problem)

    def lone(self, problem: Problem, tick: float) -> FloatArray:
        """Return what `NumpySolver.lone` does, from one compiled loop."""
        from simulator.engine.fluid import course

        return course.lone(problem, tick)


@dataclass(frozen=True, eq=False)
class _CompiledFilling:
    problem: Problem

    def share(self, active: IntArray) -> Shares:
        from simulator.engine.fluid import compiled

        rate = np.zeros(len(self.problem.weight))
        return Shares(rate, compiled.fill(self.problem, self._columns, active, rate))

    def holds(self, shares: Shares, ended: IntArray, active: IntArray) -> bool:
        from simulator.engine.fluid import course

        return course.holds(self.problem, shares.tight, ended, active)

    @cached_property
    def _columns(self) -> "Columns":
        from simulator.engine.fluid import compiled

        return compiled.columns_of(self.problem, np.arange(len(self.problem.weight), dtype=np.int64))


@cache
def numba_is_installed() -> bool:
    """Return whether the extra `fast` is there, without importing it."""
    return find_spec("numba") is not None


def solver_for(crossings: int) -> Solver:
    """Return the quicker solver for a problem of so many crossings; only size and installation count."""
    return CompiledSolver() if numba_is_installed() and crossings >= MANY else NumpySolver()
