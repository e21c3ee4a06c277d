"""The operations that dense models are made of, and what each one costs.

Conventions, the same for every model (our derivation):

- A multiply-add is two flops. Only matrix products have flops; element-wise work is memory traffic.
- A matrix product has twice its forward flops in the backward pass (one product for the gradient of
  each operand). The input gradient of the very first layer is counted too, although nobody needs it.
- Element-wise traffic counts every operand read and every result written once per kernel, as values
  that cross device memory. What a matrix product or a fused attention kernel reads and writes
  belongs to that kernel's own rate and is not counted here.
- A tensor kept for the backward pass is counted once, at the operation that needs it.
- Optimizer, loss and embedding lookups belong to other stages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from simulator.workload.dense.products import MatrixProduct
from simulator.workload.dense.quantities import DenseQuantities


@dataclass(frozen=True)
class Operation:
    """Cost of one operation, or of several added together, for one sample or one position.

    `flops`: matrix products, forward. `forward_values`, `backward_values`: values through device
    memory in element-wise kernels. `kept_values`: kept for backward. `gradient_values`: gradients
    alive at once in the backward pass (largest single operation). `parameters` and `kernels`
    (forward launches) are per model, whatever the number of samples. `fused_forward` and
    `fused_backward` are values that a framework without fused kernels passes through memory besides.
    `products` are the forward matrix products by shape, where a library makes them.
    """

    flops: float = 0.0
    parameters: float = 0.0
    forward_values: float = 0.0
    backward_values: float = 0.0
    kept_values: float = 0.0
    gradient_values: float = 0.0
    kernels: float = 0.0
    fused_forward: float = 0.0
    fused_backward: float = 0.0
    products: tuple[MatrixProduct, ...] = ()

    def __add__(self, other: "Operation") -> "Operation":
        """Return both, one after the other: all add up but the gradients alive, which take the larger."""
        return Operation(
            flops=self.flops + other.flops,
            parameters=self.parameters + other.parameters,
            forward_values=self.forward_values + other.forward_values,
            backward_values=self.backward_values + other.backward_values,
            kept_values=self.kept_values + other.kept_values,
            gradient_values=max(self.gradient_values, other.gradient_values),
            kernels=self.kernels + other.kernels,
            fused_forward=self.fused_forward + other.fused_forward,
            fused_backward=self.fused_backward + other.fused_backward,
            products=self.products + other.products,
        )

    def at_positions(self, count: float) -> "Operation":
        """Return the same operation applied to `count` positions of a sequence, in one launch each."""
        return Operation(
            flops=self.flops * count,
            parameters=self.parameters,
            forward_values=self.forward_values * count,
            backward_values=self.backward_values * count,
            kept_values=self.kept_values * count,
            gradient_values=self.gradient_values * count,
            kernels=self.kernels,
            fused_forward=self.fused_forward * count,
            fused_backward=self.fused_backward * count,
            products=tuple(product.of(count) for product in self.products),
        )

    def quantities(self, value_bytes: float) -> DenseQuantities:
        """Return the totals with `value_bytes` bytes per value; everything kept, nothing recomputed."""
        return DenseQuantities(
            forward_flops=self.flops,
            backward_flops=2 * self.flops,
            forward_memory_bytes=self.forward_values * value_bytes,
            backward_memory_bytes=self.backward_values * value_bytes,
            activation_bytes=self.kept_values * value_bytes,
            parameters=self.parameters,
            kernels=self.kernels,
            peak_layer_bytes=self.gradient_values * value_bytes,
            fused_forward_bytes=self.fused_forward * value_bytes,
            fused_backward_bytes=self.fused_backward * value_bytes,
            products=self.products,
        )


def with_bottom(bottom: Operation, rest: Operation, value_bytes: float) -> DenseQuantities:
    """Return the cost of `bottom`, which reads no embedding row, and of the rest of the model together."""
    whole = (bottom + rest).quantities(value_bytes)
    return replace(whole, bottom=bottom.quantities(value_bytes))


def in_sequence(operations: Sequence[Operation]) -> Operation:
    """Return the sum of `operations`."""
    return reduce(Operation.__add__, operations, Operation())


def linear(inputs: int, outputs: int) -> Operation:
    """Return a product with an `inputs` x `outputs` matrix, no bias; it keeps its input."""
    weights = float(inputs) * outputs
    return Operation(
        2 * weights,
        weights,
        kept_values=inputs,
        gradient_values=inputs + outputs,
        kernels=1,
        products=(MatrixProduct(1, outputs, inputs),),
    )


def dense_layer(inputs: int, outputs: int) -> Operation:
    """Return a linear layer with bias and activation.

    The bias rides on the product. Forward: read and write the outputs (2). Backward: read gradient
    and output, write gradient (3), and read it once more for the bias gradient (1). The output that
    the activation needs is the next layer's input, and counted there. Unfused, the bias has a kernel
    of its own (2).
    """
    passes = Operation(
        parameters=outputs,
        forward_values=2 * outputs,
        backward_values=4 * outputs,
        kernels=1,
        fused_forward=2 * outputs,
    )
    return linear(inputs, outputs) + passes


def perceptron(inputs: int, layers: Sequence[int]) -> Operation:
    """Return dense layers one after the other; they keep every input and the last output."""
    widths = (inputs, *layers)
    chain = in_sequence([dense_layer(*pair) for pair in zip(widths, layers, strict=False)])
    return chain + Operation(kept_values=layers[-1])


def element_wise(width: int, forward: int, backward: int, kept: int = 0) -> Operation:
    """Return one kernel that makes `forward` passes over `width` values, and `backward` passes back.

    It keeps `kept` tensors of `width`. The gradients alive at once are those of the tensors that
    the forward pass reads and writes, hence as many as its passes.
    """
    return Operation(
        forward_values=forward * width,
        backward_values=backward * width,
        kept_values=kept * width,
        gradient_values=forward * width,
        kernels=1,
    )


def concat(width: int) -> Operation:
    """Return a copy of several tensors into one of `width`: x -> y (2) both ways; keeps nothing."""
    return element_wise(width, forward=2, backward=2)


def norm(width: int) -> Operation:
    """Return a layer or RMS norm without weights: x -> y (2), backward x, dy -> dx (3); keeps x."""
    return element_wise(width, forward=2, backward=3, kept=1)


def silu(width: int) -> Operation:
    """Return a SiLU: x -> y (2), backward x, dy -> dx (3); keeps x."""
    return element_wise(width, forward=2, backward=3, kept=1)


def gate(width: int) -> Operation:
    """Return a product of two tensors: a, b -> y (3), backward a, b, dy -> da, db (5); keeps a, b."""
    return element_wise(width, forward=3, backward=5, kept=2)


def residual(width: int) -> Operation:
    """Return a branch plus its bypass: a, b -> y (3), backward da, db -> dx (3); keeps nothing."""
    return element_wise(width, forward=3, backward=3)


def attention(width: int, keys: float, value_channels: int = 1) -> Operation:
    """Return one position's fused attention over `keys` positions, all heads together `width` wide.

    One product of query and key and `value_channels` products with the values, 2 * keys * width
    flops each; the number of heads cancels. It keeps query, key and value; the keys x keys matrix
    lives inside the kernel. What a fused backward kernel recomputes of it is not counted, as in
    published model-flops utilisation.
    """
    products = 1 + value_channels
    return Operation(
        2 * keys * width * products,
        kept_values=3 * width,
        gradient_values=(3 + value_channels) * width,
        kernels=1,
    )


def sum_logits(terms: int) -> Operation:
    """Return the sum of `terms` scalars to one logit: read all, write one; backward the reverse."""
    return element_wise(terms + 1, forward=1, backward=1)
