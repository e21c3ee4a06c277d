"""A stack of equal sequence layers, and what is recomputed in its backward pass."""

from dataclasses import dataclass, replace
from typing import Protocol

from simulator.errors import InputError, did_you_mean
from simulator.workload.dense.operations import Operation
from simulator.workload.dense.quantities import DenseQuantities


@dataclass(frozen=True)
class Stack:
    """`layers` equal layers over `width` values at each of `sequence` positions.

    `layer` is the cost of one layer at one position.
    """

    layer: Operation
    layers: int
    sequence: int
    width: int

    def whole_layer(self) -> Operation:
        """Return one layer over all positions of one sample.

        The gradient of the bypass (`width` per position) stays alive beside those of any operation.
        """
        layer = self.layer.at_positions(self.sequence)
        return replace(layer, gradient_values=layer.gradient_values + self.inputs())

    def inputs(self) -> float:
        """Return the values that enter one layer, per sample."""
        return float(self.sequence) * self.width


class Recompute(Protocol):
    """What the backward pass recomputes instead of keeping it."""

    def quantities(self, stack: Stack, value_bytes: float) -> DenseQuantities:
        """Return what one sample costs in `stack` with values of `value_bytes` bytes."""
        ...


class KeepAll:
    """Keep every layer's activations; recompute nothing."""

    def quantities(self, stack: Stack, value_bytes: float) -> DenseQuantities:
        """Return the cost: backward is twice forward; kept is what every layer needs."""
        layer, layers = stack.whole_layer(), stack.layers
        one = layer.quantities(value_bytes)
        return DenseQuantities(
            forward_flops=one.forward_flops * layers,
            backward_flops=one.backward_flops * layers,
            forward_memory_bytes=one.forward_memory_bytes * layers,
            backward_memory_bytes=one.backward_memory_bytes * layers,
            activation_bytes=one.activation_bytes * layers,
            parameters=one.parameters * layers,
            kernels=one.kernels * layers,
            peak_layer_bytes=one.peak_layer_bytes,
            products=one.products * layers,
        )


class RecomputeLayer:
    """Keep only each layer's input; run the layer forward again before its backward pass.

    Backward is then three times forward in flops (Chen et al., arXiv 1604.06174, per layer), and
    one layer's activations are rebuilt at a time, beside the gradients in flight.
    """

    def quantities(self, stack: Stack, value_bytes: float) -> DenseQuantities:
        """Return the cost: one more forward pass in the backward, and one layer alive at a time."""
        kept_all = KeepAll().quantities(stack, value_bytes)
        inputs = stack.inputs() * value_bytes
        rebuilt = kept_all.activation_bytes / stack.layers - inputs
        return replace(
            kept_all,
            backward_flops=kept_all.backward_flops + kept_all.forward_flops,
            backward_memory_bytes=kept_all.backward_memory_bytes + kept_all.forward_memory_bytes,
            activation_bytes=inputs * stack.layers,
            peak_layer_bytes=kept_all.peak_layer_bytes + rebuilt,
        )


_RECOMPUTE: dict[str, Recompute] = {"none": KeepAll(), "layer": RecomputeLayer()}


def recompute_named(name: str) -> Recompute:
    """Return the recomputation called `none` or `layer`; raise `InputError` for another name."""
    if name not in _RECOMPUTE:
        raise InputError(f'recompute "{name}" is unknown{did_you_mean(name, _RECOMPUTE)}')
    return _RECOMPUTE[name]


def attended(sequence: int, causal: bool) -> float:
    """Return the positions that one position attends to, on average: half of them when causal."""
    return sequence / 2 if causal else float(sequence)


def attention_note(causal: bool) -> str:
    """Return the sentence that says how attention was counted."""
    if causal:
        return "attention products counted for the causal half, as a causal kernel executes them"
    return "attention products counted in full, as published flop counts do, causal or not"
