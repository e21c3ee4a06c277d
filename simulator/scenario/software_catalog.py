"""Software profiles by name: the catalog file `software.yaml`, read as `software` parts of scenarios."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from simulator.errors import InputError, did_you_mean
from simulator.scenario.software_spec import SoftwareSpec


def names() -> tuple[str, ...]:
    """Return the names of the profiles in alphabetical order."""
    return tuple(sorted(_entries()))


def profile(name: str) -> SoftwareSpec:
    """Return the profile of that name; raise InputError, with the nearest name, if there is none."""
    if name not in _entries():
        raise InputError(f'the catalog has no software "{name}"{did_you_mean(name, _entries())}')
    return _profile(name)


def gather_efficiency(family: str) -> float:
    """Return the share of memory bandwidth that lookups reach on `ampere` or `hopper` accelerators.

    Raises InputError for an unknown family.
    """
    known = _read()["gather_efficiency"]
    if family not in known:
        raise InputError(f'no gather efficiency was fitted for "{family}"{did_you_mean(family, known)}')
    return float(known[family]["value"])


def two_stream_factor(name: str) -> float:
    """Return what a model of two streams at fixed shares is multiplied with, fitted on its best row.

    Raises InputError for a profile without one.
    """
    return float(_two_streams(name)["value"])


def two_stream_source(name: str) -> str:
    """Return the source of that factor, which names its row. Raises InputError for a profile without one."""
    return str(_two_streams(name)["source"])


def _two_streams(name: str) -> Mapping[str, Any]:
    known: Mapping[str, Mapping[str, Any]] = _read()["two_stream_factor"]
    if name not in known:
        raise InputError(f'no factor was fitted for "{name}"{did_you_mean(name, known)}')
    return known[name]


def numbers(name: str) -> dict[str, Mapping[str, Any]]:
    """Return the numbers of a profile by field, each with value, source and what else the file says of it.

    Raises InputError for an unknown name.
    """
    profile(name)
    fields = _entries()[name]
    return {field: one for field, one in fields.items() if isinstance(one, Mapping) and "source" in one}


def gather_numbers() -> Mapping[str, Mapping[str, Any]]:
    """Return the gather efficiencies by family of accelerators, each with value, source and the rest."""
    found: Mapping[str, Mapping[str, Any]] = _read()["gather_efficiency"]
    return found


def profile_data(name: str) -> dict[str, Any]:
    """Return the profile of that name as a scenario would write it. Raises InputError for an unknown name."""
    profile(name)
    return dict(_plain(_entries()[name]))


def forget() -> None:
    """Have the file read anew, after it was written."""
    _read.cache_clear()
    _profile.cache_clear()


@cache
def _profile(name: str) -> SoftwareSpec:
    return SoftwareSpec.model_validate(_plain(_entries()[name]))


def _plain(raw: Any) -> Any:
    """Return an entry without sources: a number with its source becomes the number."""
    if isinstance(raw, Mapping):
        if "value" in raw and "source" in raw:
            return raw["value"]
        return {key: _plain(value) for key, value in raw.items() if key != "note"}
    return raw


def _entries() -> Mapping[str, Any]:
    entries: Mapping[str, Any] = _read()["entries"]
    return entries


@cache
def _read() -> Mapping[str, Any]:
    import yaml

    text = files("simulator.hardware.catalog").joinpath("software.yaml").read_text(encoding="utf-8")
    found: Mapping[str, Any] = yaml.safe_load(text)
    return found
