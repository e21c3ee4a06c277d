"""A measured training step as a table tells it, and what a folder of tables holds."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MLPERF, OTHER, CONFIGS = "mlperf_dlrm.csv", "other_benchmarks.csv", "model_configs.json"
Plan = tuple[tuple[int, ...], ...]
_ROUND = re.compile(r"(\d+)\.(\d+)")


@dataclass(frozen=True)
class Row:
    """One measured row. `step_ms` is None where it gives no step; `problem` says why nothing is predicted.

    `words` are the source's own cells by column, `notes` what was assumed in reading them. `plan` lists the
    tables of each accelerator (or host), `copied` the tables that all hold; both None where no log prints
    them. `measured_ms` is the time that the row gives, of a step or not; not a number where it gives none.
    """

    case_id: str
    table: str
    model: str
    accelerator: str
    accelerators: int
    hosts: int
    batch: int
    step_ms: float | None
    words: Mapping[str, str] = field(hash=False)
    plan: Plan | None = None
    copied: tuple[int, ...] | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()
    measured_ms: float = math.nan

    @property
    def per_host(self) -> int:
        """Accelerators of one host."""
        return max(1, self.accelerators // max(1, self.hosts))

    @property
    def from_mlperf(self) -> bool:
        """Whether the step time was derived from an MLPerf log."""
        return self.table == MLPERF

    @property
    def round(self) -> str:
        """The first MLPerf round of the row, such as `v3.1`; empty where none is stated."""
        return "v{}.{}".format(*self.numbered) if self.numbered else ""

    @property
    def numbered(self) -> tuple[int, int] | None:
        """The first round as two numbers, which compare as rounds do; None where none is stated."""
        found = _ROUND.search(self.words.get("rounds", ""))
        return (int(found.group(1)), int(found.group(2))) if found else None


@dataclass(frozen=True)
class Measured:
    """All rows of a folder, and the shapes of their models."""

    rows: tuple[Row, ...]
    configs: Mapping[str, Any] = field(hash=False)
