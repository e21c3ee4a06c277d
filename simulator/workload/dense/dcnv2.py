"""DCNv2: bottom network, low-rank cross layers, top network."""

from dataclasses import dataclass

from simulator.workload.dense.checks import require_bottom_ends_at, require_counts, require_layers
from simulator.workload.dense.operations import Operation, concat, in_sequence, perceptron, with_bottom
from simulator.workload.dense.products import MatrixProduct
from simulator.workload.dense.quantities import DenseQuantities


@dataclass(frozen=True)
class Dcnv2:
    """DLRM with the low-rank cross network of DCN-V2 (Wang et al., arXiv 2008.13535) as interaction.

    Bottom output and embeddings are joined to x0 of (embedding_features + 1) * dimension values,
    pass `cross_layers` layers of rank `rank`, then the top network, which ends in the logit.
    `value_bytes` is 2 for half precision, 4 for single. Raises `InputError` for an empty or
    non-positive shape, and when `bottom` does not end at `dimension`.
    """

    dense_features: int
    embedding_features: int
    dimension: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]
    cross_layers: int
    rank: int
    value_bytes: int = 2

    def __post_init__(self) -> None:
        """Refuse an impossible shape."""
        require_counts(
            dense_features=self.dense_features,
            embedding_features=self.embedding_features,
            dimension=self.dimension,
            cross_layers=self.cross_layers,
            rank=self.rank,
            value_bytes=self.value_bytes,
        )
        require_layers("bottom", self.bottom)
        require_layers("top", self.top)
        require_bottom_ends_at(self.dimension, self.bottom)

    @property
    def width(self) -> int:
        """Values that the cross layers work on."""
        return (self.embedding_features + 1) * self.dimension

    def quantities(self) -> DenseQuantities:
        """Return what one sample costs (our derivation; see `cross_layer`)."""
        crosses = in_sequence([cross_layer(self.width, self.rank)] * self.cross_layers)
        bottom = perceptron(self.dense_features, self.bottom)
        rest = concat(self.width) + crosses + perceptron(self.width, self.top)
        return with_bottom(bottom, rest, self.value_bytes)


def cross_layer(width: int, rank: int) -> Operation:
    """Return one layer x' = x0 * z + x with z = U (V x) + b, with V of rank x width and U of width x rank.

    Two products, 2 * width * rank parameters and twice that many flops, and the bias, which rides
    on the second product. Ten passes over `width`, as in a fused implementation: forward one kernel
    reads z, x0, x and writes x' (4); backward one kernel reads dx', z, x0 and the running gradient
    of x0, writes dz and that gradient (6), and sums the bias gradient while it holds dz. The bypass
    gradient is added by the last product as it writes. Unfused: bias (2), product (3), bypass (3) forward;
    two products (3 each), two additions (3 each) and the bias gradient (1) backward.
    Keeps x, V x and z; x0 is the first x.
    """
    weights = float(width) * rank
    return Operation(
        flops=4 * weights,
        parameters=2 * weights + width,
        forward_values=4 * width,
        backward_values=6 * width,
        kept_values=2 * width + rank,
        gradient_values=3 * width + rank,
        kernels=3,
        products=(MatrixProduct(1, rank, width), MatrixProduct(1, width, rank)),
        fused_forward=4 * width,
        fused_backward=7 * width,
    )
