"""Raw catalog entries: the YAML files as they are, one per kind, read once."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, cast

from simulator.errors import InputError, did_you_mean

Entry = Mapping[str, Any]

KINDS: Mapping[str, str] = {
    "accelerator": "accelerators.yaml",
    "host": "hosts.yaml",
    "nic": "nics.yaml",
    "fabric": "fabrics.yaml",
    "machine": "machines.yaml",
    "collective": "collectives.yaml",
    "gemm": "gemm.yaml",
    "software": "software.yaml",
}

CONFIDENCE: Mapping[str, str] = {
    "vendor": "the maker's documentation",
    "paper": "a published paper",
    "code": "a constant in public code",
    "measured": "a measurement published by its authors",
    "secondary": "someone else's account of any of these",
    "inferred": "computed here from the sources named",
    "assumed": "no source: the text says why this value",
}


def names(kind: str) -> tuple[str, ...]:
    """Return the names of a kind in alphabetical order; raise InputError for an unknown kind."""
    return tuple(sorted(_entries(kind)))


def entry(kind: str, name: str) -> Entry:
    """Return the raw entry: each number a mapping with value, source, confidence and perhaps range, note.

    Raises InputError, with the nearest name, for a kind or a name that is not there.
    """
    entries = _entries(kind)
    if name not in entries:
        raise InputError(f'the catalog has no {kind} "{name}"{did_you_mean(name, entries)}')
    return entries[name]


def _entries(kind: str) -> Mapping[str, Entry]:
    if kind not in KINDS:
        raise InputError(f'the catalog has no kind "{kind}"{did_you_mean(kind, KINDS)}')
    return _read(KINDS[kind])


@cache
def _read(file: str) -> Mapping[str, Entry]:
    import yaml

    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    return cast(Mapping[str, Entry], yaml.safe_load(text)["entries"])
