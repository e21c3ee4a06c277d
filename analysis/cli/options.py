"""Options that several commands share, and commands that take their options as one object."""

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from simulator.scenario import Scenario

Options = TypeVar("Options")
WRITTEN = frozenset({"out", "plot", "export_torchrec"})
"""The options of all commands that name what is written; other paths are read."""


class Format(StrEnum):
    """How an answer is written."""

    table = "table"
    json = "json"
    csv = "csv"


class Engine(StrEnum):
    """Which engine simulates."""

    events = "events"
    vector = "vector"


ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file (YAML).")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change one value of the scenario, such as run.seed=3."),
]
Workers = Annotated[
    int | None, typer.Option(metavar="N", help="Run on N workers: hosts change, workers per host stay.")
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Seed of all random draws.")]
EngineName = Annotated[Engine, typer.Option(help="Event by event, or the recurrence on vectors.")]
FormatName = Annotated[Format, typer.Option(help="What to write on standard output.")]


@dataclass(frozen=True)
class ScenarioOptions:
    """Which scenario, and what to change in it."""

    scenario: ScenarioFile
    settings: Settings = None
    workers: Workers = None
    seed: Seed = None

    def load(self) -> "Scenario":
        """Return the scenario with all changes made. Raises InputError."""
        from simulator.scenario import Scenario, load
        from simulator.scenario.overrides import apply_overrides

        scenario = load(self.scenario, self.settings)
        if self.seed is not None:
            seeded = apply_overrides(scenario.document, [f"run.seed={self.seed}"], "--seed")
            scenario = Scenario.of(seeded)
        return scenario if self.workers is None else scenario.with_workers(self.workers)


def words(option: str, text: str | None, blanks: str | None = None) -> tuple[str, ...]:
    """Return the words of a list such as `a,b`, without the `blanks` around them (default: all blanks).

    None where the option is left out. Raises InputError for an empty list.
    """
    from simulator.errors import InputError

    if text is None:
        return ()
    found = tuple(word.strip(blanks) for word in text.split(",") if word.strip())
    if not found:
        raise InputError(f"{option}: the list is empty; name something, or leave the option out")
    return found


def once(option: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return each word once, and say which came more often."""
    from simulator.errors import printable

    repeated = [word for word, times in Counter(given).items() if times > 1]
    if repeated:
        told = f"recscale: {option} repeats {', '.join(repeated)}; shown once"
        print(printable(told), file=sys.stderr)
    return tuple(dict.fromkeys(given))


def _apart(given: Mapping[str, Any]) -> tuple[list[Path], list[Path]]:
    """Return the files that a command reads, and those that it writes."""
    read: list[Path] = []
    written: list[Path] = []
    for name, value in given.items():
        paths = value if isinstance(value, list) else [value]
        (written if name in WRITTEN else read).extend(path for path in paths if isinstance(path, Path))
    return read, written


def takes(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Return a decorator that makes a command of a function of one `options` object.

    The fields of the dataclass become the parameters of the command: their annotations say how.
    """

    def decorate(action: Callable[[Options], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            from simulator.results.export import keeping, refuse_kept

            read, written = _apart(given)
            with keeping(read):
                for path in written:
                    refuse_kept(path)
                action(options(**given))

        command.__name__, command.__doc__ = action.__name__, action.__doc__
        command.__annotations__ = {field.name: field.type for field in fields(options)}  # type: ignore[arg-type]
        command.__signature__ = inspect.Signature(_parameters(options))  # type: ignore[attr-defined]
        return command

    return decorate


def _parameters(options: type[Any]) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=field.type,
        )
        for field in fields(options)
    ]
