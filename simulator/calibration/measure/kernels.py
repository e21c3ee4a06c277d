"""The local operations of training on embedding rows, in numpy: measured alone, and used in real runs."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from simulator.calibration.measure.channel import Array
from simulator.quantities import IntArray

Rows = Array


@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct `values` (rising) of some codes, where each code went, and their order.

    `values[place]` are the codes; `order` sorts them; those of the i-th value lie in it from
    `starts[i]` to `starts[i + 1]`.
    """

    values: IntArray
    place: IntArray
    order: IntArray
    starts: IntArray


def distinct(codes: IntArray) -> Distinct:
    """Remove duplicates by sorting."""
    order = np.argsort(codes)
    ranked = codes[order]
    new = np.empty(len(codes), dtype=bool)
    new[:1] = True
    np.not_equal(ranked[1:], ranked[:-1], out=new[1:])
    place = np.empty(len(codes), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    starts = np.append(np.flatnonzero(new), len(codes))
    return Distinct(ranked[new], place, order, starts)


def gather(table: Rows, rows: IntArray) -> Rows:
    """Return the rows asked for, one below the other."""
    return np.take(table, rows, axis=0)


def scatter(table: Rows, rows: IntArray, values: Rows) -> None:
    """Write `values` to the rows of `table`."""
    table[rows] = values


def segment_sum(values: Rows, into: Distinct) -> Rows:
    """Return the sum of the rows of each distinct value: a sparse matrix of ones times the rows."""
    from scipy.sparse import csr_array

    ones = np.ones(len(into.order), dtype=values.dtype)
    shape = (len(into.values), len(into.order))
    summed: Rows = csr_array((ones, into.order, into.starts), shape=shape) @ values
    return summed


def shared(now: IntArray, before: IntArray) -> tuple[IntArray, IntArray]:
    """Return where the values common to two rising arrays stand in each."""
    if not len(before) or not len(now):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    at = np.minimum(np.searchsorted(before, now), len(before) - 1)
    common = np.flatnonzero(before[at] == now)
    return common, at[common]


@dataclass(eq=False)
class Mlp:
    """Dense layers with ReLU between them, forward and backward, in single precision.

    `widths` are inputs, then each layer; the last layer has no ReLU. All parameters lie in one vector.
    """

    widths: tuple[int, ...]
    parameters: Array

    @classmethod
    def seeded(cls, widths: tuple[int, ...], seed: int) -> "Mlp":
        """Return a network with He-scaled random weights, the same for the same seed."""
        random = np.random.default_rng([seed, 1])
        parts = [
            np.concatenate([random.standard_normal(i * o) * np.sqrt(2.0 / i), np.zeros(o)])
            for i, o in pairwise(widths)
        ]
        return cls(widths, np.concatenate(parts).astype(np.float32))

    def layers(self, vector: Array) -> list[tuple[Array, Array]]:
        """Return weights (in, out) and bias of each layer as views of a vector of parameters."""
        found, at = [], 0
        for i, o in pairwise(self.widths):
            weights, bias = vector[at : at + i * o].reshape(i, o), vector[at + i * o : at + i * o + o]
            found.append((weights, bias))
            at += i * o + o
        return found

    def forward(self, inputs: Array) -> list[Array]:
        """Return the inputs of each layer and the last output; shapes (batch, width)."""
        values = [inputs]
        layers = self.layers(self.parameters)
        for index, (weights, bias) in enumerate(layers):
            out = values[-1] @ weights
            out += bias
            if index < len(layers) - 1:
                np.maximum(out, 0.0, out=out)
            values.append(out)
        return values

    def backward(self, values: list[Array], slope: Array, gradient: Array) -> Array:
        """Add the gradients of the parameters to `gradient`; return that of the inputs."""
        pairs = list(zip(self.layers(self.parameters), self.layers(gradient), strict=True))
        for index in reversed(range(len(pairs))):
            (weights, _), (weight_sum, bias_sum) = pairs[index]
            weight_sum += values[index].T @ slope
            bias_sum += slope.sum(axis=0)
            slope = slope @ weights.T
            if index:
                slope *= values[index] > 0.0
        return slope


def logistic(logits: Array, labels: Array) -> tuple[float, Array]:
    """Return the mean binary cross-entropy and its slope by logit times the batch; shapes (batch, 1)."""
    likelihood = np.logaddexp(0.0, logits) - labels * logits
    slope: Array = (1.0 / (1.0 + np.exp(-logits)) - labels).astype(np.float32)
    return float(likelihood.mean(dtype=np.float64)), slope


def adagrad(rows: Array, state: Array, gradient: Array, rate: float) -> None:
    """Update `rows` and their sums of squares in place."""
    state += gradient * gradient
    rows -= rate * gradient / (np.sqrt(state) + 1e-8)


def sgd(rows: Array, gradient: Array, rate: float) -> None:
    """Update `rows` in place."""
    rows -= rate * gradient
