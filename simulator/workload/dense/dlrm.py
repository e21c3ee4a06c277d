"""DLRM: bottom network, pairwise dot products, top network."""

from dataclasses import dataclass

from simulator.workload.dense.checks import require_bottom_ends_at, require_counts, require_layers
from simulator.workload.dense.operations import Operation, concat, perceptron, with_bottom
from simulator.workload.dense.products import MatrixProduct
from simulator.workload.dense.quantities import DenseQuantities


@dataclass(frozen=True)
class Dlrm:
    """DLRM (Naumov et al., arXiv 1906.00091) with `embedding_features` pooled rows of `dimension`.

    The n = embedding_features + 1 vectors meet in all n*(n-1)/2 dot products (lower triangle, no
    diagonal), which are joined with the bottom output and fed to the top network. `top` ends in the
    logit; `value_bytes` is 2 for half precision, 4 for single. Raises `InputError` for an empty or
    non-positive shape, and when `bottom` does not end at `dimension`.
    """

    dense_features: int
    embedding_features: int
    dimension: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]
    value_bytes: int = 2

    def __post_init__(self) -> None:
        """Refuse an impossible shape."""
        require_counts(
            dense_features=self.dense_features,
            embedding_features=self.embedding_features,
            dimension=self.dimension,
            value_bytes=self.value_bytes,
        )
        require_layers("bottom", self.bottom)
        require_layers("top", self.top)
        require_bottom_ends_at(self.dimension, self.bottom)

    def quantities(self) -> DenseQuantities:
        """Return what one sample costs (our derivation; see `interaction`)."""
        bottom = perceptron(self.dense_features, self.bottom)
        return with_bottom(bottom, self._from_rows_on(), self.value_bytes)

    def _from_rows_on(self) -> Operation:
        vectors = self.embedding_features + 1
        interaction_width = vectors * (vectors - 1) // 2 + self.dimension
        joined = concat(vectors * self.dimension) + interaction(vectors, self.dimension)
        return joined + perceptron(interaction_width, self.top)


def interaction(vectors: int, dimension: int) -> Operation:
    """Return the dot products of `vectors` vectors, joined with the first of them.

    The product computes the full square matrix, 2 * vectors^2 * dimension flops, of which the
    triangle t below the diagonal is used. Element-wise, forward: read and write t + dimension.
    Backward: read that, write the square matrix and the first vector's share, then add that share
    to the gradient from the products (3 passes over one vector). Keeps the vectors.
    Unfused, the triangle is picked and joined by kernels of their own, and its gradient put into zeros.
    """
    square, triangle = vectors**2, vectors * (vectors - 1) // 2
    output = triangle + dimension
    return Operation(
        flops=2.0 * square * dimension,
        forward_values=2 * output,
        backward_values=output + square + dimension + 3 * dimension,
        kept_values=vectors * dimension,
        gradient_values=square + vectors * dimension,
        kernels=2,
        products=(MatrixProduct(vectors, vectors, dimension, stacked=True),),
        fused_forward=triangle + 2 * output,
        fused_backward=square + 2 * output,
    )
