"""Wide & Deep: a linear model beside a perceptron."""

from dataclasses import dataclass

from simulator.workload.dense.checks import require_counts, require_layers, require_zero_or_more
from simulator.workload.dense.operations import Operation, concat, perceptron, sum_logits
from simulator.workload.dense.quantities import DenseQuantities


@dataclass(frozen=True)
class WideAndDeep:
    """Wide & Deep (Cheng et al., arXiv 1606.07792); `layers` is the deep part and ends in the logit.

    The wide weight of a sparse key is a one-value row beside its embedding and belongs to the
    tables; here it is one more scalar per feature to sum. `dense_features` may be 0. `value_bytes`
    is 2 for half precision, 4 for single. Raises `InputError` for an empty or impossible shape.
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
        """Return what one sample costs (our derivation; see `wide_part` and `deep_part`)."""
        embeddings = self.embedding_features * self.dimension
        deep = deep_part(self.dense_features, embeddings, self.layers)
        return (wide_part(self.dense_features, self.embedding_features) + deep).quantities(self.value_bytes)


def wide_part(dense_features: int, embedding_features: int, logits: int = 2) -> Operation:
    """Return the linear model and the final sum of its `logits`: dense product, one weight per feature, bias.

    Element-wise: embedding_features weights and `logits` scalars read and one written, backward the
    reverse. Keeps nothing of its own: its dense inputs are kept by the deep part.
    """
    dense = Operation(2 * dense_features, dense_features + 1, kernels=min(dense_features, 1))
    return dense + sum_logits(embedding_features + logits)


def deep_part(dense_features: int, embedding_values: int, layers: tuple[int, ...]) -> Operation:
    """Return the join of dense inputs and embeddings (2 passes each way) and the perceptron on it."""
    width = dense_features + embedding_values
    return concat(width) + perceptron(width, layers)
