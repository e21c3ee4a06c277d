"""What the ranks of one launch are told to do: measure primitives, train, or both in the same processes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from simulator.calibration.measure.grids import Grid, tupled
from simulator.calibration.measure.rpc import RpcGrid
from simulator.calibration.train.settings import Settings

SUBSTRATES = ("tcp", "openmpi", "torch:gloo", "torch:nccl", "torch:hccl")


@dataclass(frozen=True)
class Job:
    """`grid` is measured (None: nothing), then calls of `rpc`, then `runs` are executed by `ranks` ranks.

    `substrate` joins them; rank 0 writes what came out to `result`. `addresses` and `first_port` say where
    ranks listen, `servers` where parameter servers do. A link rests for `rest` seconds before a collective
    is timed.
    A machine drifts, so primitives are measured and runs executed in `rounds` that take turns.
    `pinned` puts rank i on core i mod cores; `isolated` gives ranks a scheduling group of their own.
    """

    ranks: int
    substrate: str
    result: str
    grid: Grid | None = None
    runs: tuple[Settings, ...] = ()
    rpc: RpcGrid | None = None
    addresses: tuple[str, ...] = ()
    first_port: int = 0
    servers: tuple[str, ...] = ()
    rest: float = 0.0
    pinned: bool = True
    isolated: bool = False
    rounds: int = 1

    def write(self, path: Path) -> None:
        """Write the job to a file."""
        import orjson

        path.write_bytes(orjson.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> "Job":
        """Read the job that `write` wrote."""
        import orjson

        return cls.of(orjson.loads(path.read_bytes()))

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Job":
        """Return the job in plain data."""
        grid = Grid.of(data["grid"]) if data["grid"] else None
        rpc = RpcGrid(**{name: tupled(value) for name, value in data["rpc"].items()}) if data["rpc"] else None
        runs = tuple(Settings.of(run) for run in data["runs"])
        lists = {name: tuple(data[name]) for name in ("addresses", "servers")}
        return cls(**{**data, **lists, "grid": grid, "rpc": rpc, "runs": runs})
