"""Files that ask something of a scenario, such as grids and planning questions: read and checked alike."""

from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import ValidationError

from simulator.errors import InputError
from simulator.scenario.base import Spec
from simulator.scenario.document import Document
from simulator.scenario.file_kinds import refuse_other_kinds
from simulator.scenario.places import inside
from simulator.scenario.problems import to_input_error
from simulator.scenario.source import read_document


class Asking(Protocol):
    """A specification that names a scenario."""

    @property
    def scenario(self) -> str:
        """The scenario's file, in the folder of the asking file or below."""


Asked = TypeVar("Asked", bound=Spec)


def read_asked(path: Path, model: type[Asked], kind: str) -> tuple[Asked, Document]:
    """Return the file at `path` as `model`, and as it was written; `kind` is what people call it.

    Raises InputError with file, line and path for anything wrong with it.
    """
    document = read_document(path)
    try:
        return model.model_validate(document.data), document
    except ValidationError as error:
        refuse_other_kinds(document, kind)
        raise to_input_error(error, document, model) from error


def read_base(path: Path, spec: Asking, document: Document) -> Document:
    """Return the scenario that `spec` names. Raises InputError when it lies elsewhere or is unreadable."""
    try:
        file = inside(path.parent, spec.scenario)
    except InputError as error:
        raise InputError(error.problem, document.where(("scenario",))) from error
    return read_document(file)
