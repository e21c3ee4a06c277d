"""`recscale calibrate train`: policies executed on real rows, what they learn, and their steps predicted."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analysis.cli.commands.calibrate_measure import (
    AllowLoad,
    Isolate,
    LinksName,
    NoPin,
    Out,
    Ranks,
    Substrate,
    parse_widths,
    save,
)
from analysis.cli.options import Format, FormatName, takes, words
from analysis.cli.output import tell
from analysis.cli.progress import progress

if TYPE_CHECKING:
    from simulator.calibration.train.settings import Model, Settings

ALL = "serialized,stale_prefetch,dual_buffer,frozen_window,nestpipe,bagpipe,rpc_per_table,rpc_coalesced"
Count = typer.Option(metavar="N", min=1)


@dataclass(frozen=True)
class TrainOptions:
    """What `calibrate train` takes."""

    policies: Annotated[str, typer.Option(metavar="A,B,...", help="Policies, executed in this order.")] = ALL
    ranks: Ranks = 2
    substrate: Substrate = "tcp"
    links: LinksName = "loopback"
    tables: Annotated[int, Count] = 8
    rows: Annotated[int, typer.Option(metavar="N", min=1, help="Rows of each table.")] = 10_000
    dimension: Annotated[int, typer.Option(metavar="N", min=1, help="Values of a row.")] = 32
    hidden: Annotated[str, typer.Option(metavar="WIDTHS", help="Hidden layers, such as 128-64.")] = "128-64"
    exponent: Annotated[float, typer.Option(metavar="S", min=0.0, help="Zipf exponent of the keys.")] = 1.05
    keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A recorded key log instead of Zipf keys.")
    ] = None
    batch: Annotated[int, typer.Option(metavar="N", min=1, help="Samples of a rank and step.")] = 256
    steps: Annotated[int, typer.Option(metavar="N", min=12, help="Steps of each run.")] = 32
    optimizer: Annotated[str, typer.Option(metavar="NAME", help="sgd or adagrad.")] = "adagrad"
    rate: Annotated[float, typer.Option(metavar="R", help="Learning rate.")] = 0.05
    micro_batches: Annotated[int, typer.Option(metavar="N", min=1, help="Of frozen_window and nestpipe.")] = 4
    lookahead: Annotated[
        int, typer.Option(metavar="N", min=4, help="Batches that bagpipe's oracle sees.")
    ] = 16
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of keys, labels and weights.")] = 0
    predict: Annotated[
        bool, typer.Option("--predict", help="Measure the primitives in the same processes, and predict.")
    ] = False
    allow_load: AllowLoad = False
    isolate: Isolate = False
    no_pin: NoPin = False
    out: Out = None
    format: FormatName = Format.table

    @property
    def model(self) -> "Model":
        """The tables and dense layers. Raises InputError."""
        from simulator.calibration.train.settings import Model

        hidden = parse_widths(f"{self.hidden}-1")[:-1]
        return Model(self.tables, self.rows, self.dimension, hidden=hidden, exponent=self.exponent)

    @property
    def runs(self) -> tuple["Settings", ...]:
        """One run per policy, the serialized one first: others are held against it. Raises InputError."""
        from simulator.calibration.train.plans import policy_of
        from simulator.calibration.train.settings import Settings

        names = dict.fromkeys(["serialized", *words("--policies", self.policies)])
        parameters: dict[str, Mapping[str, int]] = {
            "frozen_window": {"micro_batches": self.micro_batches},
            "nestpipe": {"micro_batches": self.micro_batches},
            "bagpipe": {"lookahead": self.lookahead},
        }
        log = None if self.keys is None else str(self.keys.resolve())
        common = Settings(
            model=self.model, batch=self.batch, steps=self.steps, optimizer=self.optimizer, rate=self.rate,
            seed=self.seed, keys=log,
        )  # fmt: skip
        found = tuple(replace(common, policy=name, parameters=parameters.get(name, {})) for name in names)
        for one in found:
            policy_of(one)
        return found


@takes(TrainOptions)
def train(options: TrainOptions) -> None:
    """Train a small recommendation model for real under several policies, and hold them against each other.

    Exit code 1 when a policy that promises synchronous training learned something else.
    """
    from analysis.cli.output import Answer
    from analysis.cli.views.training import draw_trained, trained_rows

    measurement = _taken(options)
    save(measurement, options.out)
    rows = trained_rows(measurement, options.predict)
    data = {"runs": rows, "launch": measurement["launch"], "load": measurement["load"]}
    Answer(data, rows, lambda console: draw_trained(rows, measurement, console)).show(options.format)
    wrong = [row["policy"] for row in rows if row["verdict"] == "differs"]
    if wrong:
        tell(f"not what serialized training learns: {', '.join(wrong)}")
        raise typer.Exit(1)


def _taken(options: TrainOptions) -> dict[str, Any]:
    """Run all policies. What they learn does not depend on load; only --predict refuses a busy machine."""
    from simulator.calibration.local.job import Job
    from simulator.calibration.local.launch import Launcher
    from simulator.calibration.local.recording import Recorder
    from simulator.calibration.measure.grids import Grid
    from simulator.calibration.measure.links import parse_links

    launcher, runs = Launcher(options.substrate, parse_links(options.links)), options.runs
    grid = Grid(networks=(runs[0].model.widths,), dimension=options.dimension) if options.predict else None
    job = Job(
        options.ranks, options.substrate, "", grid, runs, pinned=not options.no_pin, isolated=options.isolate
    )
    with progress(f"training with {len(runs)} policies"):
        return Recorder(launcher, options.allow_load or not options.predict).take(job)
