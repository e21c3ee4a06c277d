"""Points of sweeps as a report takes them."""

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from pydantic import Field, field_validator

from analysis.report.records import AboveZero, Name, Number, Part, Row, families, parts, short
from analysis.sweep.axes import WORKERS
from analysis.sweep.points import DONE, Record
from simulator.results.report import EXPOSED_KINDS

BEYOND = "beyond data: "


class Point(Part):
    """A point that could run."""

    scenario: Name
    policy: Name
    workers: AboveZero
    step_mean_ms: AboveZero
    throughput_samples_per_s: AboveZero
    compute_ms: Number
    usd_per_million_samples: Number | None
    staleness_declared_steps: Number | None
    peak_memory_hbm_bytes: Number
    interval_low_ms: Number | None
    interval_high_ms: Number | None
    bottleneck: str = Field(max_length=1_000_000)
    notes: str = Field(max_length=1_000_000)
    settings: dict[str, Any]
    exposed: dict[str, Number]
    engine: Name
    job: Name

    @field_validator("settings", mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        return json.loads(value) if isinstance(value, str) else value

    @classmethod
    def fields_of(cls, record: Record) -> Record:
        """Return a flat record of the dataset with its waits put together."""
        exposed = {kind: record[f"exposed_{kind}_ms"] for kind in EXPOSED_KINDS}
        return {**record, "exposed": exposed}

    @cached_property
    def row(self) -> Row:
        """The point as a row."""
        low, high = self.interval_low_ms, self.interval_high_ms
        return Row(
            short(self.scenario),
            short(self.policy),
            round(self.workers),
            self.step_mean_ms,
            self.throughput_samples_per_s,
            parts(self.compute_ms, self.exposed),
            self.usd_per_million_samples,
            self.staleness_declared_steps,
            self.peak_memory_hbm_bytes,
            families(self.bottleneck.split("; ")),
            None if low is None or high is None else (low, high),
            BEYOND in self.notes,
            short(", ".join(self._set())),
            short(self.engine),
            self.job,
        )

    def _set(self) -> Iterator[str]:
        """Yield what was set beside policy and workers, which have columns of their own."""
        for path, value in self.settings.items():
            if path == "policy" and isinstance(value, dict):
                yield from (f"{name} {inner}" for name, inner in value.items() if name != "kind")
            elif path not in ("policy", "policy.kind", WORKERS):
                yield f"{path.rpartition('.')[2]} {value if isinstance(value, str) else json.dumps(value)}"


def is_done(record: Record) -> bool:
    """Whether a record has numbers."""
    return bool(record["status"] == DONE)
