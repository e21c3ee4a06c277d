"""DeepFM: a factorisation machine beside a perceptron that share the embeddings."""

from dataclasses import dataclass

from simulator.workload.dense.checks import require_counts, require_layers, require_zero_or_more
from simulator.workload.dense.operations import Operation
from simulator.workload.dense.quantities import DenseQuantities
from simulator.workload.dense.wide_and_deep import deep_part, wide_part


@dataclass(frozen=True)
class DeepFm:
    """DeepFM (Guo et al., arXiv 1703.04247): first-order part as in Wide & Deep, pairs, deep part.

    `layers` is the deep part and ends in the logit; `dense_features` may be 0. `value_bytes` is 2
    for half precision, 4 for single. Raises `InputError` for an empty or impossible shape.
    """

    dense_features: int
    embedding_features: int
    dimension: int
    layers: tuple[int, ...]
    value_bytes: int = 2

    def __post_init__(self) -> None:
        """Refuse an impossible shape."""
        require_zero_or_more(dense_features=self.dense_features)
        require_counts(
            embedding_features=self.embedding_features, dimension=self.dimension, value_bytes=self.value_bytes
        )
        require_layers("layers", self.layers)

    def quantities(self) -> DenseQuantities:
        """Return what one sample costs (our derivation; see `pairs`)."""
        embeddings = self.embedding_features * self.dimension
        deep = deep_part(self.dense_features, embeddings, self.layers)
        # Three logits: linear, pairs, deep.
        wide = wide_part(self.dense_features, self.embedding_features, logits=3)
        return (wide + pairs(self.embedding_features, self.dimension) + deep).quantities(self.value_bytes)


def pairs(features: int, dimension: int) -> Operation:
    """Return all pairwise dot products as (square of the sum - sum of the squares) / 2, one kernel.

    No matrix product. Forward: read every embedding, write the summed vector and the logit.
    Backward: read embeddings, summed vector and the logit's gradient, add to the embeddings' gradient
    from the deep part (read and write). Keeps the summed vector; the embeddings are kept by the deep part.
    """
    values = features * dimension
    return Operation(
        forward_values=values + dimension + 1,
        backward_values=3 * values + dimension + 1,
        kept_values=dimension,
        gradient_values=2 * values,
        kernels=1,
    )
