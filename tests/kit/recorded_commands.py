"""The commands that the recorder runs: each of the command line, on each shipped input, in every format."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from judging import answered
from mutants import Mutants
from mutations import Rand, break_text, change_yaml
from seeds import PLACE, seeds

from simulator.policies import catalog as policies
from simulator.scenario.shipped_files import scenarios_in, shipped_folder

STUDY = "study"  # a copy of the shipped scenarios
BROKEN_INPUTS, BROKEN_SCENARIOS = 1000, 600
FORMATS = ("table", "json", "csv")
SHORT = ("--set", "run.interval=null")


def nothing(folder: Path) -> None:
    """Leave what was written: a later command reads it."""


@dataclass(frozen=True)
class Step:
    """One command line: `prepare` writes what it reads, and returns it. `broken` ones run within limits."""

    name: str
    prepare: Callable[[Path], list[str]]
    clean: Callable[[Path], None] = field(default=nothing)
    broken: bool = False
    needed: bool = False  # by other steps


def steps() -> Iterator[Step]:
    """Yield everything, what others need first."""
    yield said("init", "init", STUDY, needed=True)
    for path in scenarios_in(shipped_folder()):
        yield from of_scenario(path.relative_to(shipped_folder()).as_posix())
    yield from of_studies()
    yield from of_catalog()
    yield from of_measurements()
    yield from of_key_logs()
    yield from of_inputs(Inputs())
    yield from broken_scenarios()


def said(name: str, *words: str, needed: bool = False) -> Step:
    return Step(name, lambda folder: list(words), needed=needed)


def of_scenario(scenario: str) -> Iterator[Step]:
    file, name = f"{STUDY}/{scenario}", scenario.removesuffix(".yaml")
    yield said(f"check {name}", "check", file)
    yield said(f"run {name} events", "run", file, "--format", "json", "--out", f"results/{name}")
    yield said(f"run {name} vector", "run", file, *SHORT, "--engine", "vector", "--format", "json")
    for form in ("table", "csv"):
        yield said(f"run {name} {form}", "run", file, *SHORT, "--engine", "vector", "--format", form)
    for form in FORMATS:
        yield said(f"explain {name} {form}", "explain", file, "--format", form)
    yield said(
        f"trace {name}", "trace", file, "--engine", "vector", "--out", f"{name.replace('/', '_')}.trace.json"
    )
    yield said(f"shard {name}", "shard", file, "--format", "json")
    every = ",".join(policies.names())
    compared = ("compare", file, *SHORT, "--policies", every, "--micro-batches", "4", "--engine", "vector")
    yield said(f"compare {name} policies", *compared, "--format", "json")


def of_studies() -> Iterator[Step]:
    """Sweeps, plans, placements and pages: what stands on many runs."""
    quick, plan = f"{STUDY}/quickstart.yaml", f"{STUDY}/planning/retrain.plan.yaml"
    for form in FORMATS:
        sized = ("--workers", "8,16", "--policies", "serialized,dual_buffer,nestpipe")
        yield said(
            f"compare events {form}", "compare", quick, *sized, "--micro-batches", "4", "--format", form
        )
        out = ("--out", f"results/swept_{form}", "--jobs", "1")
        yield said(f"sweep {form}", "sweep", f"{STUDY}/nestpipe/scaling.grid.yaml", *out, "--format", form)
        yield said(f"shard placed {form}", "shard", f"{STUDY}/sharding/mixture.yaml", "--format", form)
    yield said("shard written", "shard", f"{STUDY}/sharding/mixture.yaml", "--out", "placed.yaml")
    yield said(
        "shard torchrec", "shard", f"{STUDY}/sharding/mixture.yaml", "--export-torchrec", "torchrec.json"
    )
    yield said("import torchrec", "import", "torchrec", "torchrec.json", "--out", "from_torchrec.yaml")
    yield said("plan json", "plan", plan, "--jobs", "1", "--format", "json", "--out", "results/chosen")
    yield said("plan table", "plan", plan, "--jobs", "1")
    yield said("report", "report", "results", "--out", "report.html")


def of_catalog() -> Iterator[Step]:
    yield said("schema", "schema")
    yield said("help", "--help")
    yield said("catalog", "catalog", "list", "--format", "json")
    for kind, names in json.loads(answered(["catalog", "list", "--format", "json"]).out).items():
        yield said(f"catalog list {kind}", "catalog", "list", kind, "--format", "json")
        for name in names:
            yield said(f"catalog show {kind} {name}", "catalog", "show", name)


def of_measurements() -> Iterator[Step]:
    yield said("validate", "validate", "--format", "json")
    data = os.environ.get("RECSCALE_DATA")
    if data:  # its name must not matter
        yield Step("validate data", lambda folder: linked(folder, Path(data), "data"))
    yield Step("validate local", lambda folder: linked(folder, Path(__file__).parents[1] / "data", "local"))


def linked(folder: Path, data: Path, name: str) -> list[str]:
    (folder / name).symlink_to(data.resolve())
    return ["validate", "--data", name, "--format", "json"]


class Inputs:
    """Seeds and broken inputs in the working folder, written when the first of them is read."""

    def __init__(self) -> None:
        """Begin without a folder."""
        self._mutants: Mutants | None = None

    def of(self, folder: Path) -> Mutants:
        """Return them, written into `folder`."""
        if self._mutants is None:
            self._mutants = Mutants(folder)
        return self._mutants

    def sound(self, folder: Path, command: tuple[str, ...], file: str) -> list[str]:
        """Return a command that reads a seed as it is."""
        self.of(folder)
        return [word.replace(PLACE, file) for word in command]


def of_key_logs() -> Iterator[Step]:
    log = f"{STUDY}/data/open_bandit_bts_women.csv.gz"
    for form in FORMATS:
        yield said(f"keys {form}", "keys", log, "--batch", "64", "--format", form)
    yield said("import keys", "import", "keys", log, "--batch", "64", "--out", "keys.json")


def of_inputs(inputs: Inputs) -> Iterator[Step]:
    """Key logs, imports and fits: first the sound ones, then those that are broken."""
    for seed in seeds():
        for number, command in enumerate(seed.commands):
            yield Step(
                f"sound {seed.name} {number}",
                lambda folder, command=command, file=seed.file: inputs.sound(folder, command, file),
                lambda folder: inputs.of(folder).restore(0),
            )
    for number in range(BROKEN_INPUTS):
        yield Step(
            f"broken {number}",
            lambda folder, number=number: inputs.of(folder).words(number),
            lambda folder, number=number: inputs.of(folder).restore(number),
            broken=True,
        )


def broken_scenarios() -> Iterator[Step]:
    paths = scenarios_in(shipped_folder())

    def words(folder: Path, number: int) -> list[str]:
        rand, path = Rand(number), paths[number % len(paths)]
        text = path.read_text(encoding="utf-8")
        text = change_yaml(text, rand) if number % 2 else break_text(text, rand, rand.choice([1, 2]))
        target = folder / STUDY / path.relative_to(shipped_folder()).parent / "broken.yml"
        target.write_text(text, encoding="utf-8", errors="surrogatepass")
        return ["check", target.relative_to(folder).as_posix()]

    for number in range(BROKEN_SCENARIOS):
        yield Step(
            f"broken scenario {number}", lambda folder, number=number: words(folder, number), broken=True
        )
