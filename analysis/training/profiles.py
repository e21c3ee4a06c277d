"""What is known of each framework family without a fit: the note and the settings of its catalog entry."""

from collections.abc import Mapping
from dataclasses import dataclass, field

_EAGER = {"graph_capture": "false", "passes": "eager"}


@dataclass(frozen=True)
class Profile:
    """The note of a profile and its settings, as the catalog writes them."""

    note: str
    settings: Mapping[str, str] = field(default_factory=dict)


PROFILES: Mapping[str, Profile] = {
    "hugectr": Profile("HugeCTR with embedding collections (DCNv2), MLPerf rounds from v3.0 on."),
    "hugectr_v1": Profile("HugeCTR with a hybrid embedding (DLRM v1), MLPerf rounds v1.0 to v2.1."),
    "tensorflow": Profile(
        "TensorFlow 2 with custom lookups (DeepLearningExamples, SOK), not fused, no graph capture.", _EAGER
    ),
    "distributed_embeddings": Profile(
        "TensorFlow 2 with NVIDIA's distributed embeddings: one lookup per input.", _EAGER
    ),
    "pytorch": Profile(
        "PyTorch with fused perceptrons and interaction (DeepLearningExamples, MLPerf v0.7), no graphs.",
        {"graph_capture": "false"},
    ),
    "torchrec": Profile("TorchRec's DLRM example with its loader in the loop.", {"passes": "eager"}),
}
