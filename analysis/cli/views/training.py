"""Real runs of policies: what they learned, how long their steps took, and what was predicted."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.cli.output import percent, plain, table
from analysis.recording_doubts import doubts
from simulator.calibration.local.comparison import FIRST, LAST, compared_calls, compared_runs
from simulator.calibration.local.served import asks_servers
from simulator.calibration.train.plans import needs_servers, policy_of
from simulator.calibration.train.settings import Settings

if TYPE_CHECKING:
    from rich.console import Console

TOLERANCE = 1e-4
LEGEND = (
    "A synchronous policy is equal to serialized training if no weight ends further from it than 1e-4 of the "
    "largest way that any weight went (single precision adds up in another order). apart: that share."
)


def trained_rows(measurement: Mapping[str, Any], predict: bool) -> list[dict[str, Any]]:
    """Return one flat record for each run, with the predicted step where `predict` and it can be."""
    rows = [_row(run) for run in measurement["runs"]]
    for row, run in zip(rows, measurement["runs"], strict=True):
        settings = Settings.of(run["settings"])
        known = asks_servers(settings) or not needs_servers(settings)
        row["predicted_ms"] = _predicted(measurement, run) if predict and known else None
        row["speedup"] = rows[0]["step_ms"] / row["step_ms"]
    return rows


def _predicted(measurement: Mapping[str, Any], run: Mapping[str, Any]) -> float:
    return 1e3 * compared_runs("", {**measurement, "runs": [run]})[0].predicted


def _row(run: Mapping[str, Any]) -> dict[str, Any]:
    settings, apart = Settings.of(run["settings"]), run["against_first"]
    promised = policy_of(settings).consistency
    furthest = max(apart["rows"], apart["parameters"]) / max(apart["moved"], 1e-30)
    equal = "equal" if furthest <= TOLERANCE else "differs"
    return {
        "policy": settings.title,
        "step_ms": 1e3 * float(np.median(run["step_s"][FIRST:-LAST])),
        "consistency": promised,
        "verdict": equal if promised == "synchronous" else "stale",
        "apart": furthest,
        "loss_apart": apart["loss"],
        "first_loss": run["loss"][0],
        "last_loss": run["loss"][-1],
    }


def draw_trained(
    rows: Sequence[Mapping[str, Any]], measurement: Mapping[str, Any], console: "Console"
) -> None:
    """Draw one line for each policy."""
    drawn = table("policy", "step ms", "predicted ms", "error", "speedup", "last loss", "apart", "learned")
    for row in rows:
        drawn.add_row(
            plain(row["policy"]),
            f"{row['step_ms']:.2f}",
            "-" if row["predicted_ms"] is None else f"{row['predicted_ms']:.2f}",
            "-"
            if row["predicted_ms"] is None
            else f"{100 * (row['predicted_ms'] / row['step_ms'] - 1):+.0f}%",
            f"{row['speedup']:.2f}",
            f"{row['last_loss']:.6f}",
            f"{row['apart']:.1e}",
            row["verdict"],
        )
    console.print(drawn)
    console.print(LEGEND, style="dim")
    for doubt in doubts(measurement):
        console.print(plain(f"! {doubt}"), style="yellow")


def rows_of_file(name: str, recording: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one flat record for each run or fetch of a recording, measured beside predicted."""
    runs = [
        {
            "recording": name,
            "case": f"{one.settings.title}, {one.settings.model.tables} tables, batch {one.settings.batch}",
            "measured_ms": 1e3 * one.measured,
            "predicted_ms": 1e3 * one.predicted,
            "error": one.error,
            "measured_gain": one.measured_gain,
            "predicted_gain": one.predicted_gain,
        }
        for one in (compared_runs(name, recording) if recording["runs"] else [])
    ]
    return runs + (_call_rows(name, recording) if recording["rpc"] else [])


def _call_rows(name: str, recording: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "recording": name,
            "case": f"{one.mode}, {one.tables} tables, {one.keys} keys"
            + ("" if one.held_out else " (fitted)"),
            "measured_ms": 1e3 * one.measured,
            "predicted_ms": 1e3 * one.predicted,
            "error": one.error,
            "measured_gain": None,
            "predicted_gain": None,
        }
        for one in compared_calls(recording)
    ]


def draw_compared(rows: Sequence[Mapping[str, Any]], console: "Console") -> None:
    """Draw one line for each case, and the median error of each recording."""
    drawn = table("recording", "case", "measured", "predicted", "error", "gain", "predicted", left=2)
    for row in rows:
        drawn.add_row(
            row["recording"],
            plain(row["case"]),
            f"{row['measured_ms']:.2f} ms",
            f"{row['predicted_ms']:.2f} ms",
            percent(row["error"]),
            *(_gain(row[name]) for name in ("measured_gain", "predicted_gain")),
        )
    console.print(drawn)
    for name in dict.fromkeys(row["recording"] for row in rows):
        errors = [abs(row["error"]) for row in rows if row["recording"] == name]
        console.print(plain(f"{name}: median error {percent(float(np.median(errors)))} of {len(errors)}"))


def _gain(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
