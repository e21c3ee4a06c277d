"""`recscale shard`: which chip holds which table, or which piece of it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.cli.options import Format, FormatName, ScenarioFile, Settings, Workers, takes
from analysis.cli.output import tell
from analysis.cli.progress import progress

if TYPE_CHECKING:
    from analysis.placing import Placing
    from analysis.planning import PlacingRequest
    from simulator.scenario import Scenario
    from simulator.workload.keys import LogStatistics

USUAL_SECONDS = 4.5


@dataclass(frozen=True)
class ShardOptions:
    """What `shard` takes."""

    scenario: ScenarioFile
    exact: Annotated[
        bool, typer.Option("--exact", help="Search with CP-SAT (extra: planner); longest first without.")
    ] = False
    seconds: Annotated[
        float | None, typer.Option(metavar="S", min=0.1, help="How long to search (default: 4.5; --exact).")
    ] = None
    whole: Annotated[bool, typer.Option("--whole", help="Cut no table.")] = False
    keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Place by this key log; say what that gains.")
    ] = None
    separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Splits a cell of the log that holds several keys.")
    ] = None
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the sharding part of a scenario (YAML).")
    ] = None
    export_torchrec: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a TorchRec plan: JSON in .json, else text.")
    ] = None
    settings: Settings = None
    workers: Workers = None
    format: FormatName = Format.table

    def load(self) -> "Scenario":
        """Return the scenario with all changes made. Raises InputError."""
        from simulator.scenario import load

        scenario = load(self.scenario, self.settings)
        return scenario if self.workers is None else scenario.with_workers(self.workers)

    def request(self) -> "PlacingRequest":
        """Return how to place. Raises InputError on options that do not go together."""
        from analysis.planning import PlacingRequest
        from simulator.errors import InputError

        if self.seconds is not None and not self.exact:
            raise InputError("--seconds says how long to search with --exact; longest first needs no limit")
        if self.separator is not None and self.keys is None:
            raise InputError("--separator belongs to the log of --keys")
        return PlacingRequest(self.exact, self.seconds or USUAL_SECONDS, self.whole)


@takes(ShardOptions)
def shard(options: ShardOptions) -> None:
    """Place the tables of a scenario on its chips.

    Of placements that even out the chips' bytes or time, within the memory of each, the one with the
    shortest predicted step is taken.
    """
    from analysis.cli.output import Answer
    from analysis.cli.views.placement import draw_placing

    request, scenario = options.request(), options.load()
    if options.keys is not None:
        request = replace(request, keys=_measured(scenario, options.keys, options.separator))
    placing = _placed(scenario, request)
    _write(placing, options)
    data = placing.to_dict()
    Answer(data, data["shards"], lambda console: draw_placing(placing, console)).show(options.format)


def _measured(scenario: "Scenario", path: Path, separator: str | None) -> "LogStatistics":
    from analysis.placing import read_keys

    with progress(f"reading {path.name}", unit="") as work:
        return read_keys(scenario, path, separator, work.within)


def _placed(scenario: "Scenario", request: "PlacingRequest") -> "Placing":
    from analysis.placing_by_step import placed_by_step

    with progress(f"placing {scenario.name}"):
        return scenario.at("sharding", lambda: placed_by_step(scenario, request))


def _write(placing: "Placing", options: ShardOptions) -> None:
    from analysis.sharding_parts import exported, placed_part, written
    from simulator.results.export import replacing
    from simulator.sharding.placement.torchrec import write_torchrec_plan

    if options.out is not None:
        title = f"{placing.scenario.name}: placed by recscale shard ({placing.placement.method})"
        with replacing(options.out) as unfinished:
            unfinished.write_text(written(placed_part(placing), title), encoding="utf-8")
        tell(f"wrote {options.out}")
    if options.export_torchrec is not None:
        with replacing(options.export_torchrec) as unfinished:
            write_torchrec_plan(exported(placing), unfinished)
        tell(f"wrote {options.export_torchrec}")
