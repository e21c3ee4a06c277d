"""A plain multi-layer perceptron."""

from dataclasses import dataclass

from simulator.workload.dense.checks import require_counts, require_layers
from simulator.workload.dense.operations import perceptron
from simulator.workload.dense.quantities import DenseQuantities


@dataclass(frozen=True)
class Mlp:
    """Dense layers with bias and activation: `inputs` values in, widths of `layers` in order.

    Per layer i -> o: i*o + o parameters, 2*i*o flops, element-wise passes over o: 2 forward, 4
    backward. Kept: every layer's input and the last output. `value_bytes`: 2 for half precision, 4
    for single. Raises `InputError` for an empty or non-positive shape.
    """

    inputs: int
    layers: tuple[int, ...]
    value_bytes: int = 2

    def __post_init__(self) -> None:
        """Refuse an impossible shape."""
        require_counts(inputs=self.inputs, value_bytes=self.value_bytes)
        require_layers("layers", self.layers)

    def quantities(self) -> DenseQuantities:
        """Return what one sample costs (our derivation)."""
        return perceptron(self.inputs, self.layers).quantities(self.value_bytes)
