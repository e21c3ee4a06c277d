"""The standard local runs: which launches `make measure` makes, and which runs each of them executes.

Batches, tables and rows lie off the grid on which primitives are measured, so that every prediction is
an interpolation. Primitives are measured and runs executed in rounds that take turns: a machine drifts.
"""

from dataclasses import dataclass, replace

from simulator.calibration.local.job import Job
from simulator.calibration.local.launch import Launcher
from simulator.calibration.local.work import POLICIES
from simulator.calibration.measure.grids import Grid
from simulator.calibration.measure.links import parse_links
from simulator.calibration.measure.rpc import RpcGrid
from simulator.calibration.train.settings import Model, Settings

USED = ("all_to_all", "all_reduce")  # collectives that the runs use
STEPS = 20
SERVED = (
    Settings("serialized"),
    Settings("rpc_per_table"),
    Settings("rpc_per_table", {"asynchronous": 1}),
    Settings("rpc_coalesced"),
)
WIDE = Model(tables=20, rows=7_000, dimension=32, hidden=(192, 64))
DEEP = Model(tables=12, rows=30_000, dimension=32, hidden=(256, 128))
FLAT = Model(tables=26, rows=11_000, dimension=32, hidden=(72, 40))


@dataclass(frozen=True)
class Launch:
    """One launch of the suite; `name` names its file."""

    name: str
    substrate: str
    links: str
    ranks: int
    shapes: tuple[tuple[Model, int], ...] = ()
    policies: tuple[Settings, ...] = POLICIES
    rpc: RpcGrid | None = None

    @property
    def launcher(self) -> Launcher:
        """What starts it."""
        return Launcher(self.substrate, parse_links(self.links))

    def job(self, isolated: bool = False, rounds: int = 2) -> Job:
        """Return what its ranks are to do."""
        runs = tuple(
            replace(policy, model=model, batch=batch, steps=STEPS)
            for model, batch in self.shapes
            for policy in self.policies
        )
        networks = tuple(dict.fromkeys(model.widths for model, _ in self.shapes))
        grid = Grid(networks=networks, collectives=USED) if runs else None
        return Job(self.ranks, self.substrate, "", grid, runs, self.rpc, isolated=isolated, rounds=rounds)


SUITE = (
    Launch("tcp_1gbit_2", "tcp", "shaped:1Gbit/s", 2, ((DEEP, 820), (WIDE, 780), (FLAT, 660))),
    Launch("tcp_4gbit_2", "tcp", "shaped:4Gbit/s", 2, ((DEEP, 1150), (WIDE, 1600), (FLAT, 2000))),
    Launch("tcp_1gbit_4", "tcp", "shaped:1Gbit/s", 4, ((DEEP, 430), (FLAT, 600))),
    Launch("tcp_4gbit_4", "tcp", "shaped:4Gbit/s", 4, ((WIDE, 860), (FLAT, 1250))),
    Launch(
        "openmpi_2", "openmpi", "loopback", 2,
        ((DEEP, 400), (DEEP, 1150), (WIDE, 720), (WIDE, 1450), (FLAT, 850), (FLAT, 2000)), POLICIES[:1],
    ),
    Launch("servers_2", "tcp", "loopback", 2, ((DEEP, 440), (WIDE, 620)), SERVED),
    Launch("grpc", "tcp", "loopback", 1, rpc=RpcGrid()),
)  # fmt: skip
