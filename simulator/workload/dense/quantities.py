"""What one sample costs in a dense model."""

from dataclasses import dataclass, field

from simulator.workload.dense.products import MatrixProduct


@dataclass(frozen=True)
class DenseQuantities:
    """What one sample costs in a dense model, from its shape alone.

    Per sample: `forward_flops`, `backward_flops` (recomputation included), `forward_memory_bytes`
    and `backward_memory_bytes` (element-wise passes), `activation_bytes` (kept for backward),
    `peak_layer_bytes` (largest transient on top of them). Per model: `parameters`, and `kernels`
    launched by one forward pass. `bottom` is the part of all that which reads no embedding row and can
    run before rows are there (None: there is no such part). `fused_forward_bytes` and
    `fused_backward_bytes` are the passes that fusion saves: a framework with a kernel for every
    arithmetic operation makes them, too. `products` are the matrix products of the forward pass, those of
    the `bottom` first; what a fused kernel holds, attention above all, is not among them.
    """

    forward_flops: float
    backward_flops: float
    forward_memory_bytes: float
    backward_memory_bytes: float
    activation_bytes: float
    parameters: float
    kernels: float = 0.0
    peak_layer_bytes: float = 0.0
    notes: tuple[str, ...] = field(default=())
    fused_forward_bytes: float = 0.0
    fused_backward_bytes: float = 0.0
    bottom: "DenseQuantities | None" = None
    products: tuple[MatrixProduct, ...] = ()

    @property
    def without_rows(self) -> "DenseQuantities":
        """The part that reads no rows; all its amounts are zero where there is none."""
        return self.bottom or DenseQuantities(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @property
    def with_rows(self) -> "DenseQuantities":
        """The part from the first use of rows on."""
        bottom = self.without_rows
        return DenseQuantities(
            self.forward_flops - bottom.forward_flops,
            self.backward_flops - bottom.backward_flops,
            self.forward_memory_bytes - bottom.forward_memory_bytes,
            self.backward_memory_bytes - bottom.backward_memory_bytes,
            self.activation_bytes - bottom.activation_bytes,
            self.parameters - bottom.parameters,
            self.kernels - bottom.kernels,
            self.peak_layer_bytes,
            products=self.products[len(bottom.products) :],
        )
