"""Which kind of file a document is: a scenario, a planning question, or a grid; each has its own commands."""

from collections.abc import Mapping
from dataclasses import dataclass

from simulator.errors import InputError
from simulator.scenario.document import Document


@dataclass(frozen=True)
class FileKind:
    """What a kind of file is called, the keys that only it has together, and a command that takes it."""

    name: str
    marks: frozenset[str]
    command: str


KINDS: Mapping[str, FileKind] = {
    "scenario": FileKind("a scenario", frozenset({"cluster", "workload"}), "recscale run"),
    "question": FileKind("a planning question", frozenset({"target", "hardware"}), "recscale plan"),
    "grid": FileKind("a grid", frozenset({"scenario", "vary"}), "recscale sweep"),
}


def refuse_other_kinds(document: Document, wanted: str) -> None:
    """Raise InputError when `document` is plainly a file of another kind than `wanted`; say what takes it."""
    if KINDS[wanted].marks <= document.data.keys():
        return
    for kind in KINDS.values():
        if kind.marks <= document.data.keys():
            problem = f"is {kind.name}, not {KINDS[wanted].name}; {kind.command} takes it"
            raise InputError(problem, document.where(()))
