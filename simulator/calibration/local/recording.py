"""Takes a measurement: looks at the load, runs a job, and puts together the file that is kept of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from simulator.calibration.local.job import Job
from simulator.calibration.local.launch import Launcher
from simulator.calibration.local.schema import VERSION
from simulator.calibration.measure.load import Load, busy_share, require_quiet
from simulator.calibration.measure.primitives import COLLECTIVES
from simulator.errors import InfeasibleError

TRIES = 3


@dataclass(frozen=True)
class Recorder:
    """Takes measurements with `launcher`; beside other work only if `allow_load`."""

    launcher: Launcher
    allow_load: bool = False

    def take(self, job: Job) -> dict[str, Any]:
        """Run `job` and return the measurement; repeat it when load came up meanwhile.

        Raises InfeasibleError when the machine is too busy and that is not allowed.
        """
        for _ in range(TRIES):
            load = require_quiet(self.allow_load)
            result = self.launcher.run(job)
            load = replace(load, after=busy_share())
            if load.quiet or self.allow_load:
                return self._file(job, load, result)
        raise InfeasibleError(
            f"other work came up during each of {TRIES} measurements: measure when it is idle"
        )

    def _file(self, job: Job, load: Load, result: Mapping[str, Any]) -> dict[str, Any]:
        links = self.launcher.links
        return {
            "format": "recscale.measurement",
            "version": VERSION,
            "taken": datetime.now(UTC).isoformat(timespec="seconds"),
            "launch": {
                "substrate": job.substrate,
                "links": "shared_memory" if job.substrate == "openmpi" else str(links),
                "link_bytes_per_s": links.rate,
                "burst_bytes": links.burst,
                "ranks": job.ranks,
                "pinned": job.pinned,
                "isolated": job.isolated,
            },
            "load": {
                "before": load.before,
                "after": load.after,
                "allowed": load.allowed,
                "quiet": load.quiet,
            },
            "noise": _noise(result),
            "environment": result["environment"],
            "primitives": result["primitives"],
            "rpc": result["rpc"],
            "software": result["software"],
            "runs": result["runs"],
        }


def _noise(result: Mapping[str, Any]) -> dict[str, float | None]:
    points = {True: list[float](), False: list[float]()}
    for curve in result["primitives"]:
        spreads = [point["p90_over_p50"] for point in curve["points"]]
        points[curve["operation"] in COLLECTIVES].extend(spreads)
    rpc = [point["p90_over_p50"] for point in result["rpc"]]
    return {"local": _median(points[False]), "collective": _median(points[True]), "rpc": _median(rpc)}


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def write(measurement: Mapping[str, Any], path: Path) -> None:
    """Write a measurement to a file, indented, so that versions of it can be compared."""
    import orjson

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(measurement, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
