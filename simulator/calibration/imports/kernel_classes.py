"""What a kernel does, from its name, and what a collective moves, from what the profiler noted beside it."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

COLLECTIVE, MEMCPY = "collective", "memcpy"
CLASSES = (
    "embedding_forward",
    "embedding_backward",
    "gemm",
    "attention",
    "convolution",
    "optimizer",
    "reduction",
    "indexing",
    "element_wise",
    "other",
)
# The first pattern that is found says the class; names are those of CUDA, ROCm, FBGEMM, Triton and CANN.
_PATTERNS: Sequence[tuple[str, str]] = (
    (
        COLLECTIVE,
        r"nccl(Dev)?Kernel|ncclKernel|\bnccl|rccl|c10d::|mscclKernel|hcom_|HcclAic|allreduce_kernel",
    ),
    (
        "embedding_backward",
        r"embedding\w*(backward|_grad)|backward\w*embedding|grad_weight\w*embed|EmbeddingDenseGrad",
    ),
    ("embedding_forward", r"embedding|EmbeddingBag|tbe_forward|GatherV2"),
    ("attention", r"flash|fmha|attention|softmax_warp"),
    ("convolution", r"conv(?!ert)|wgrad|dgrad|fprop|im2col|cudnn::bn|nchw"),
    ("gemm", r"gemm|gemv|cutlass|xmma|wgmma|splitK|cublas|Cijk_|dot_kernel|reduce_1Block|matmul|MatMul"),
    ("optimizer", r"multi_tensor_apply|adagrad|adam|lamb\b|sgd|addcmul|addcdiv|ApplyAdam"),
    ("reduction", r"reduce|softmax|norm|MeanOps|Reduction"),
    (
        "indexing",
        r"sort|scan|unique|permute|index|gather|scatter|searchsorted|bounds_check|recat|histogram|Scan",
    ),
    (
        "element_wise",
        r"element_?wise|CatArray|copy|fill|triton|Functor|dropout|relu|sigmoid|transpose|cast|Cast",
    ),
)
_COMPILED = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _PATTERNS)
_OPERATIONS = (
    ("reduce_scatter", "reducescatter"),
    ("all_reduce", "allreduce"),
    ("all_gather", "allgather"),
    ("all_to_all", "alltoall"),
    ("all_to_all", "sendrecv"),  # NCCL makes an all-to-all of sends and receives
    ("broadcast", "broadcast"),
    ("reduce", "reduce"),
)
_WIDTHS: Mapping[str, int] = {
    "float": 4,
    "float32": 4,
    "int": 4,
    "int32": 4,
    "double": 8,
    "float64": 8,
    "long": 8,
    "longint": 8,
    "int64": 8,
    "half": 2,
    "float16": 2,
    "c10::half": 2,
    "bfloat16": 2,
    "c10::bfloat16": 2,
    "short": 2,
}


@lru_cache(maxsize=65_536)
def kernel_class(name: str) -> str:
    """Return one of `CLASSES` or `COLLECTIVE` for the name of a kernel."""
    return next((kind for kind, pattern in _COMPILED if pattern.search(name)), "other")


def collective(name: str) -> str:
    """Return which collective a kernel or an operator is, in our words; `other` if its name does not say."""
    short = name.lower().replace("_", "").replace(" ", "")
    return next((operation for operation, word in _OPERATIONS if word in short), "other")


def width(dtype: object) -> int:
    """Return the bytes of one element of a type as PyTorch, c10 or NCCL spell it (1 for what is unknown)."""
    return _WIDTHS.get(str(dtype).lower().replace(" ", ""), 1)


def noted_bytes(args: Mapping[str, Any]) -> float | None:
    """Return the bytes of a collective's larger buffer from a kernel's notes, or None without any."""
    counts = [args.get("In msg nelems"), args.get("Out msg nelems")]
    known = [count for count in counts if isinstance(count, int | float) and not isinstance(count, bool)]
    return max(known) * width(args.get("dtype")) if known else None


def shaped_bytes(args: Mapping[str, Any]) -> float | None:
    """Return the bytes of an operator's first input from its recorded shape, or None without one."""
    shapes, types = args.get("Input Dims"), args.get("Input type")
    if not (isinstance(shapes, list) and isinstance(types, list) and shapes and types):
        return None
    first = shapes[0]
    if not isinstance(first, list) or not all(isinstance(side, int) for side in first):
        return None
    return float(prod(first) * width(types[0]))
