"""What is fitted, and on which rows: an overhead per framework family, a gather efficiency per accelerators.

docs/decisions/0007-training-fit-and-predict.md says why these rows.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from analysis.training.rows import Row

SAME = 1e-3  # of the measured time: rows that print it with other digits are the same row


@dataclass(frozen=True)
class Fitted:
    """One parameter: field of the software part, the family it belongs to, and the row it is fitted on.

    `measured_ms` is the step of that row: another row of its name is another measurement. The value is
    looked for between `low` and `high`; one at an end is refused.
    """

    field: str
    family: str
    row: str
    measured_ms: float
    low: float
    high: float
    unit: str = ""

    def written(self, value: float) -> Any:
        """Return the value as a scenario writes it."""
        return f"{value!r} {self.unit}" if self.unit else value


OVERHEADS = (
    Fitted("fixed_cost_per_step", "hugectr", "mlp_dcnv2_b200sxm_1x8_9e0d", 2.154, 0.0, 2e-2, "s"),
    Fitted("slowdown", "hugectr_v1", "mlp_v1_a100sxm80gb_1x8_2dc5", 1.3554, 0.2, 5.0),
    Fitted("host_time_per_op", "tensorflow", "dle_tf2_a100_8g_large_TF32", 6.01248, 0.0, 1e-3, "s"),
    Fitted("time_per_key", "distributed_embeddings", "de_small_8gpu", 17.203, 0.0, 1e-7, "s"),
    Fitted("host_time_per_op", "pytorch", "dle_pt_a100_8g_large_TF32", 5.74877, 0.0, 1e-3, "s"),
    Fitted("loader_rate", "torchrec", "trdlrm_a100_8g_16384_dot", 17.6991, 1e4, 1e8, "/s"),
)
GATHERS = (
    Fitted("gather_efficiency", "hopper", "mlp_dcnv2_h100sxm80gb_1x8_a750", 3.6338, 0.05, 1.0),
    Fitted("gather_efficiency", "ampere", "mlp_dcnv2_a100sxm80gb_1x8_9873", 7.1454, 0.05, 1.0),
)
PARAMETERS = (*GATHERS, *OVERHEADS)
FIT_ROWS = MappingProxyType({one.row: one.measured_ms for one in PARAMETERS})
# Families that share a parameter of another one.
SHARED = {"distributed_embeddings": ("tensorflow",)}


def is_fitted(row: Row) -> bool:
    """Whether a parameter was fitted on a row: by its name and by what was measured."""
    step = FIT_ROWS.get(row.case_id)
    return step is not None and row.step_ms is not None and abs(row.step_ms / step - 1) <= SAME
